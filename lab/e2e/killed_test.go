//go:build lab

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// The kills of TestKilled.
const (
	killsLeast = 8
	killsTime  = 60 * time.Second // no further one is begun after that
)

// TestKilled ends virdeck with SIGKILL at random moments: while it makes a pool
// from nothing, under an operator's commands, while it scales. What was
// acknowledged holds in each life after that, and in the end everything is as it
// is declared, and nothing else is there. LAB_SEED repeats the choices.
func TestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LAB_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("LAB_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	conf := poolConfig{count: 4, memory: 128, more: "[budget]\nper_host = 100\nper_pool = 100\n"}
	p := newPooled(t, conf)
	looks := guard(t)
	begin := time.Now()
	for _, most := range []time.Duration{4 * time.Second, 12 * time.Second} { // image, disks, seeds, starts
		p.begin()
		pause(t, time.Duration(rnd.Int64N(int64(most))))
		p.kill()
	}
	o := &operator{t: t, p: p, rnd: rnd, wants: map[string]*wanted{}}
	kills := 2
	for ; kills < killsLeast || time.Since(begin) < killsTime; kills++ {
		if kills == 5 { // while nobody runs, more is declared
			conf.count = 5
			p.write(conf)
		}
		e := o.sit()
		e.await(e.start, 15*time.Second, fmt.Sprintf("life %d knows its VMs", kills+1), o.known(conf.count))
		s := p.look()
		o.check(s)
		o.order(s)
		pause(t, time.Duration(rnd.Int64N(int64(2*time.Second))))
		e.kill()
	}
	t.Logf("%d kills in %.0f s; acknowledged: %q", kills, time.Since(begin).Seconds(), o.acked)

	p.begin()
	p.await(p.start, 15*time.Second, "the last life knows its VMs", o.known(conf.count))
	o.check(p.look())
	p.await(p.start, 120*time.Second, "all is as it is wanted", o.ended(conf.count))
	for name, w := range o.wants {
		t.Logf("%s: wish %s, drained %v", name, w.wish, w.drained)
	}
	o.audited()
	s := p.look()
	for _, h := range []string{"h1", "h2"} {
		if not := p.differs(h, s); not != "" {
			t.Errorf("%s: %s", h, not)
		}
	}
	conf.count = 0
	at := p.reload(conf)
	p.await(at, 60*time.Second, "scaled to none", settled(0))
	for _, h := range []string{"h1", "h2"} {
		if left := p.holds(h); len(left.domains)+len(left.volumes) > 0 {
			t.Errorf("left on %s: %+v", h, left)
		}
	}
	if n := looks(); n < 500 {
		t.Errorf("the VMs were looked at %d times only", n)
	}
}

// known holds when the hosts have been looked at and the members are there.
func (o *operator) known(n int) Condition {
	return func(s *model.Status) string {
		if len(s.Proxies) != n {
			return fmt.Sprintf("%d proxies, want %d", len(s.Proxies), n)
		}
		for i := range s.Proxies {
			if q := &s.Proxies[i]; q.Managed == nil || q.DomainState == "unknown" {
				return q.Name + " has not been looked at: " + proxyLine(q)
			}
		}
		return All(Link("h1", "up"), Link("h2", "up"))(s)
	}
}

// differs says in what a host differs from what the status says of it; empty: in
// nothing.
func (p *pooled) differs(host string, s *model.Status) string {
	var domains, volumes []string
	for _, q := range s.Proxies {
		if q.Host == host && q.DomainState != "missing" {
			domains = append(domains, q.Managed.Domain)
			volumes = append(volumes, q.Managed.Domain+".qcow2", q.Managed.Domain+"-seed.iso")
		}
	}
	slices.Sort(domains)
	slices.Sort(volumes)
	got := p.holds(host)
	switch {
	case !slices.Equal(got.domains, domains):
		return fmt.Sprintf("its domains are %q, want %q", got.domains, domains)
	case !slices.Equal(got.volumes, volumes):
		return fmt.Sprintf("its volumes are %q, want %q", got.volumes, volumes)
	case len(got.bases) != 2 || got.bases[1] != got.bases[0]+".ok":
		return fmt.Sprintf("its base images are %q, want one and its proof", got.bases)
	}
	return ""
}

// audited wants each line of the audit log whole, and each command that was
// acknowledged in it.
func (o *operator) audited() {
	o.t.Helper()
	accepted := map[string]int{}
	for line := range strings.Lines(o.p.read("state/audit.jsonl")) {
		var e struct{ Verb, Proxy, Phase string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			o.t.Errorf("the audit log has a line %q: %v", line, err)
		}
		if e.Phase == "accepted" {
			accepted[e.Verb+" "+e.Proxy]++
		}
	}
	for _, what := range o.acked {
		if accepted[what]--; accepted[what] < 0 {
			o.t.Errorf("%s was acknowledged and is not in the audit log", what)
		}
	}
}
