package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"virdeck/internal/problem"

	"virdeck/model"
)

// SocketName is the name of the unix socket in Fleet.StateDir.
const SocketName = "virdeck.sock"

// maxSocketPath is what a sockaddr_un holds, less its closing zero byte.
const maxSocketPath = 107

// checker holds a decoded configuration against the rules. A setting whose type
// was wrong has its default by now and raises nothing more.
type checker struct {
	*document
	c   *Config
	src Sources

	hostNames []string        // of all hosts, in their order
	isHost    map[string]bool // the same, to look up

	templateNames []string
	isTemplate    map[string]bool
}

func (k *checker) all() {
	k.fleet()
	k.pace()
	k.health()
	k.log()
	k.hosts()
	k.templates()
	k.proxies()
	k.pools()
}

func section(path ...string) keyPath { return keyPath(path) }

func (k *checker) fleet() {
	f := &k.c.Fleet
	k.name(section("fleet", "name"), f.Name)
	at := section("fleet", "state_dir")
	dir, err := k.src.stateDir(f.StateDir)
	if err != nil {
		k.problem(at, "%v; allowed: a directory", err)
		return
	}
	f.StateDir = dir
	if n := len(filepath.Join(f.StateDir, SocketName)); n > maxSocketPath {
		k.problem(at, "too long for the unix socket in it (%d bytes); allowed: %d bytes less than that", n, n-maxSocketPath)
	}
}

// durationRule bounds one duration.
type durationRule struct {
	section, key string
	value        time.Duration
	low, high    time.Duration
}

func (k *checker) durations() []durationRule {
	c, l, h := &k.c.Controller, &k.c.Link, &k.c.Health
	const ms, s, m, hour = time.Millisecond, time.Second, time.Minute, time.Hour
	return []durationRule{
		{"controller", "poll", c.Poll, 500 * ms, hour},
		{"controller", "address_refresh", c.AddressRefresh, s, 24 * hour},
		{"controller", "address_retry", c.AddressRetry, 500 * ms, hour},
		{"controller", "reconcile_budget", c.ReconcileBudget, 500 * ms, 10 * m},
		{"controller", "create_timeout", c.CreateTimeout, 10 * s, 24 * hour},
		{"controller", "delete_timeout", c.DeleteTimeout, 5 * s, hour},
		{"controller", "orphan_grace", c.OrphanGrace, 0, 30 * 24 * hour},
		{"controller", "replace_after", c.ReplaceAfter, 0, 30 * 24 * hour},
		{"budget", "window", k.c.Budget.Window, m, 7 * 24 * hour},
		{"link", "ping", l.Ping, 100 * ms, 5 * m},
		{"link", "silence", l.Silence, 100 * ms, 5 * m},
		{"link", "second_opinion", l.SecondOpinion, 100 * ms, m},
		{"link", "dial_timeout", l.DialTimeout, 100 * ms, 2 * m},
		{"link", "backoff_min", l.BackoffMin, 10 * ms, m},
		{"link", "backoff_max", l.BackoffMax, 10 * ms, 10 * m},
		{"link", "backoff_max_late", l.BackoffMaxLate, 10 * ms, hour},
		{"link", "agent_response_timeout", l.AgentResponseTimeout, 0, m},
		{"health", "interval", h.Interval, 200 * ms, hour},
		{"health", "fast", h.Fast, 100 * ms, hour},
		{"health", "slow", h.Slow, 200 * ms, 24 * hour},
		{"health", "slow_after", h.SlowAfter, s, 24 * hour},
		{"health", "timeout", h.Timeout, 50 * ms, 2 * m},
		{"health", "brake", h.Brake, 0, 5 * m},
	}
}

// pace checks the sections that are numbers and durations.
func (k *checker) pace() {
	for _, r := range k.durations() {
		if r.value < r.low || r.value > r.high {
			k.problem(section(r.section, r.key), "%s is out of range; allowed: %s to %s", model.Length(r.value), model.Length(r.low), model.Length(r.high))
		}
	}
	c, l, h := &k.c.Controller, &k.c.Link, &k.c.Health
	k.number(section("controller", "address_hold"), c.AddressHold, 1, 100)
	k.number(section("controller", "workers_per_host"), c.WorkersPerHost, 1, 64)
	k.number(section("controller", "creates_per_host"), c.CreatesPerHost, 1, 64)
	k.number(section("budget", "per_host"), k.c.Budget.PerHost, 0, 10000)
	k.number(section("budget", "per_pool"), k.c.Budget.PerPool, 0, 10000)
	k.number(section("link", "slots"), l.Slots, 1, 16)
	k.number(section("health", "rise"), h.Rise, 1, 100)
	k.number(section("health", "fall"), h.Fall, 1, 100)
	if l.AgentResponseTimeout%time.Second != 0 {
		k.problem(section("link", "agent_response_timeout"), "%s is not whole seconds; allowed: whole seconds, or \"0s\" to turn it off", model.Length(l.AgentResponseTimeout))
	}
	k.ordered("link", "backoff_min", l.BackoffMin, "backoff_max", l.BackoffMax)
	k.ordered("link", "backoff_max", l.BackoffMax, "backoff_max_late", l.BackoffMaxLate)
	k.ordered("health", "fast", h.Fast, "interval", h.Interval)
	k.ordered("health", "interval", h.Interval, "slow", h.Slow)
}

// ordered wants a not above b; it blames whichever the file gives.
func (k *checker) ordered(sect, a string, av time.Duration, b string, bv time.Duration) {
	if av <= bv {
		return
	}
	if k.has(section(sect, a)) || !k.has(section(sect, b)) {
		k.problem(section(sect, a), "%s is longer than %s, which is %s; allowed: at most that", model.Length(av), b, model.Length(bv))
	} else {
		k.problem(section(sect, b), "%s is shorter than %s, which is %s; allowed: at least that", model.Length(bv), a, model.Length(av))
	}
}

func (k *checker) health() {
	if len(k.c.Health.Targets) == 0 && len(k.c.Proxies)+len(k.c.Pools) > 0 {
		p := k.at(section("health", "target"), "missing; allowed: at least one [[health.target]] with a url, for the probes to ask for")
		if p.Line == 0 {
			p.Line = k.pos.of(section("proxy", index(0))) // what wants to be probed
			if len(k.c.Proxies) == 0 {
				p.Line = k.pos.of(section("pool", index(0)))
			}
		}
		k.problems = append(k.problems, p)
	}
	seen := map[string]keyPath{}
	for i := range k.c.Health.Targets {
		if at := section("health", "target", index(i)); !k.blamed[at.id()] {
			k.target(at, &k.c.Health.Targets[i], seen)
		}
	}
}

func (k *checker) target(at keyPath, t *Target, seen map[string]keyPath) {
	if t.URL == "" {
		k.missing(at, "url", "an http or https URL")
	} else if u, err := parseTarget(t.URL); err != nil {
		k.problem(at.with("url"), "%v; allowed: an http or https URL such as \"http://example.net/ip\"", err)
	} else if first, again := seen[u.String()]; again {
		k.problem(at.with("url"), "the same as in line %d; allowed: each URL once", k.pos.of(first))
	} else {
		seen[u.String()] = at.with("url")
	}
	if len(t.Status) == 0 {
		k.problem(at.with("status"), "empty; allowed: at least one status from 100 to 599")
	}
	for i, s := range t.Status {
		switch {
		case s == 407:
			k.problem(at.with("status", index(i)), "407 is a proxy that refuses the credentials and never passes; allowed: the target's own answers")
		case s < 100 || s > 599:
			k.problem(at.with("status", index(i)), "%d is not an HTTP status; allowed: 100 to 599", s)
		}
	}
	if t.Body == "" && k.has(at.with("body")) {
		k.problem(at.with("body"), "empty; allowed: a text, or no body setting to accept every answer")
	}
}

// parseTarget reads a target's URL; its errors do not quote user information.
func parseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not known", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("user information cannot stand in a target")
	case checkHost(u.Hostname()) != nil:
		return nil, fmt.Errorf("host %q is not a host name or IP address", u.Hostname())
	case u.Fragment != "":
		return nil, fmt.Errorf("what follows # is never sent")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("port %s is out of range", p)
		}
	}
	return u, nil
}

func (k *checker) log() {
	l := &k.c.Log
	oneOf(k, section("log", "level"), l.Level, "debug", "info", "warn", "error")
	oneOf(k, section("log", "format"), l.Format, "text", "json")
	oneOf(k, section("ui", "background"), k.c.UI.Background, "auto", "dark", "light")
	k.number(section("log", "ring"), l.Ring, 100, 1_000_000)
	if l.File != "" {
		l.File = k.src.resolve(l.File)
		k.place(section("log", "file"), l.File)
	}
}

// place checks that a file can be made where it is to be. Only what is certain is
// said: what cannot be looked at may still be written.
func (k *checker) place(at keyPath, path string) {
	const allowed = "a file in one that exists, or \"\" for none"
	dir := filepath.Dir(path)
	switch is, err := k.src.isDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
		k.problem(at, "there is no directory %s; allowed: %s", oneLine(dir), allowed)
	case err == nil && !is:
		k.problem(at, "%s is not a directory; allowed: %s", oneLine(dir), allowed)
	default:
		if is, err := k.src.isDir(path); err == nil && is {
			k.problem(at, "%s is a directory; allowed: a file, or \"\" for none", oneLine(path))
		}
	}
}

// name checks a name that is shown in columns and used on command lines.
func (k *checker) name(at keyPath, v string) bool {
	ok := v != "" && len(v) <= 63 && v[0] != '.' && v[0] != '-'
	for _, r := range v {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-')
	}
	if !ok {
		k.problem(at, "%q is not a name; allowed: a to z, 0 to 9, dots and -, beginning with a letter or digit, at most 63", v)
	}
	return ok
}

func (k *checker) number(at keyPath, v, low, high int) {
	if v < low || v > high {
		k.problem(at, "%d is out of range; allowed: %d to %d", v, low, high)
	}
}

func (k *checker) missing(table keyPath, key, allowed string) {
	at := table.with(key)
	if k.has(at) {
		k.problem(at, "empty; allowed: %s", allowed)
	} else {
		k.problem(at, "missing; allowed: %s", allowed)
	}
}

func oneOf[S ~string](k *checker, at keyPath, v S, allowed ...S) bool {
	if slices.Contains(allowed, v) {
		return true
	}
	k.problem(at, "%q is not known%s allowed: %s", string(v), orSemicolon(problem.Suggest(string(v), allowed)), problem.Quoted(allowed))
	return false
}

// text checks what is shown or sent as it is.
func (k *checker) text(at keyPath, v string) {
	const most = 255
	switch {
	case len(v) > most:
		k.problem(at, "%d bytes long; allowed: at most %d", len(v), most)
	case strings.ContainsFunc(v, control):
		k.problem(at, "holds a control character; allowed: printable text")
	}
}

// control is true of C0, DEL and C1.
func control(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }
