package config

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"virdeck/model"
)

// Warnings are settings of the file that are legal and suspicious, by line. The
// caller may keep the slice.
func (c *Config) Warnings() []Problem { return slices.Clone(c.warnings) }

// suspicions looks for what is legal and rarely meant.
func (k *checker) suspicions() []Problem {
	var out []Problem
	warn := func(at keyPath, msg string) { out = append(out, k.at(at, "%s", msg)) }
	c := k.c
	used := map[string]bool{}
	for i := range c.Proxies {
		used[c.Proxies[i].Host] = true
	}
	made := map[string]bool{}
	for i := range c.Proxies {
		made[c.Proxies[i].Template] = true
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		made[p.Template] = true
		for _, h := range p.Hosts {
			used[h] = true
		}
		if n := replacements(p, c.Budget.Window); n > float64(c.Budget.PerPool) {
			warn(section("pool", index(i), "max_age"), fmt.Sprintf("replaces %.1f members in %s, and budget.per_pool allows %d", n, model.Length(c.Budget.Window), c.Budget.PerPool))
		}
	}
	for i := range c.Templates {
		if !made[c.Templates[i].Name] {
			warn(section("template", index(i)), "no pool and no proxy is made of it")
		}
	}
	for i := range c.Hosts {
		h, at := &c.Hosts[i], section("host", index(i))
		switch e := h.Endpoint; {
		case e.NoVerify:
			warn(at.with("uri"), "no_verify accepts any key or certificate: whoever answers there is taken for the host")
		case e.Transport == TransportTCP && !loopback(e.Host):
			warn(at.with("uri"), "qemu+tcp has no encryption and, as used here, no authentication: whoever reaches that port owns the host")
		}
		if len(h.Sources) == 1 && h.Sources[0] == SourceARP {
			warn(at.with("sources"), "ARP alone goes silent for a busy guest and beyond some 50 neighbours")
		}
		if !used[h.Name] {
			warn(at, "no proxy is on this host")
		}
	}
	if c.Link.Slots > 4 {
		warn(section("link", "slots"), "libvirtd stops reading a connection at 5 calls in flight, unless max_client_requests is raised on every host")
	}
	if c.Link.AgentResponseTimeout == 0 {
		warn(section("link", "agent_response_timeout"), "off: a hung guest agent holds its calls for ever")
	}
	if !c.Health.Control {
		warn(section("health", "control"), "off: only other proxies can tell a dead proxy from a dead target")
	}
	if len(c.Proxies)+len(c.Pools) == 0 {
		warn(nil, "no [[proxy]] and no [[pool]]: there is nothing to manage")
	}
	return out
}

// replacements is how many members of a pool reach their maximum age in a window.
func replacements(p *Pool, window time.Duration) float64 {
	if p.MaxAge == 0 {
		return 0
	}
	return float64(p.Count) * float64(window) / float64(p.MaxAge)
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
