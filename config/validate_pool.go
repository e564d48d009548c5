package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"virdeck/internal/problem"
	"virdeck/model"
)

// maxMembers bounds a pool, so that a slip of a key does not order a million VMs.
const maxMembers = 10000

// pools comes after hosts, templates and proxies, whose names it needs.
func (k *checker) pools() {
	names := map[string]keyPath{}
	for i := range k.c.Pools {
		if at := section("pool", index(i)); !k.blamed[at.id()] {
			k.pool(at, &k.c.Pools[i], names)
		}
	}
	k.members(names)
}

func (k *checker) pool(at keyPath, p *Pool, names map[string]keyPath) {
	k.unique(at, p.Name, names)
	if most := 63 - len("-") - len(strconv.Itoa(maxMembers)); len(p.Name) > most && len(p.Name) <= 63 {
		k.problem(at.with("name"), "%d letters long; allowed: at most %d, since members are called NAME-1, NAME-2 ...", len(p.Name), most)
	}
	k.template(at, p.Template)
	if !k.has(at.with("count")) {
		k.missing(at, "count", "0 to "+strconv.Itoa(maxMembers))
	} else {
		k.number(at.with("count"), p.Count, 0, maxMembers)
	}
	k.poolHosts(at, p)
	k.service(at, p.Port, p.Protocol, p.Probe)
	k.number(at.with("surge"), p.Surge, 0, 100)
	k.available(at, p)
	if low, high := 10*time.Minute, 10*365*24*time.Hour; p.MaxAge != 0 && (p.MaxAge < low || p.MaxAge > high) {
		k.problem(at.with("max_age"), "%s is out of range; allowed: %s to %s, or \"0s\" for never", model.Length(p.MaxAge), model.Length(low), model.Length(high))
	}
	k.span(at.with("drain_time"), p.DrainTime, 0, 24*time.Hour)
	k.span(at.with("failover_after"), p.FailoverAfter, 30*time.Second, 24*time.Hour)
	k.labels(at, p.Labels)
}

// span bounds a duration of a pool.
func (k *checker) span(at keyPath, v, low, high time.Duration) {
	if v < low || v > high {
		k.problem(at, "%s is out of range; allowed: %s to %s", model.Length(v), model.Length(low), model.Length(high))
	}
}

// poolHosts takes all hosts where the file names none.
func (k *checker) poolHosts(at keyPath, p *Pool) {
	where := at.with("hosts")
	switch {
	case len(k.hostNames) == 0:
		k.problem(at, "there is no [[host]] for its members; allowed: at least one")
	case !k.has(where):
		p.Hosts = slices.Clone(k.hostNames)
	case len(p.Hosts) == 0:
		k.problem(where, "empty; allowed: at least one of %s, or no hosts setting for all", problem.Listed(k.hostNames))
	default:
		for i, h := range p.Hosts {
			k.known(where.with(index(i)), h, "host", k.hostNames, k.isHost)
			if slices.Contains(p.Hosts[:i], h) {
				k.problem(where.with(index(i)), "%q is given twice; allowed: each once", h)
			}
		}
	}
}

// available checks min_available, or derives it: one of them may be missing.
func (k *checker) available(at keyPath, p *Pool) {
	where := at.with("min_available")
	switch {
	case !k.has(where):
		p.MinAvailable = max(0, p.Count-1)
	case p.MinAvailable < 0 || p.MinAvailable > max(0, p.Count):
		k.problem(where, "%d is out of range; allowed: 0 to count, which is %d", p.MinAvailable, p.Count)
	case p.MinAvailable == p.Count && p.Surge == 0 && p.Count > 0:
		k.problem(where, "%d of %d with surge = 0: no member could ever be replaced; allowed: at most %d, or a surge", p.MinAvailable, p.Count, p.Count-1)
	}
}

// members refuses declared proxies that are called as members of a pool are, or
// may be when its count is raised, and those that adopt the VM of a managed proxy.
func (k *checker) members(pools map[string]keyPath) {
	managed := map[model.ProxyName]keyPath{}
	for i := range k.c.Proxies {
		if p := &k.c.Proxies[i]; p.Managed() {
			managed[model.ProxyName(p.Name)] = section("proxy", index(i), "name")
		}
	}
	for i := range k.c.Proxies {
		p, at := &k.c.Proxies[i], section("proxy", index(i))
		if pool := k.poolOf(model.ProxyName(p.Name), pools); pool != nil {
			k.problem(at.with("name"), "a member of %s may be called so; allowed: another name", k.declared(pool))
		}
		if !k.has(at.with("domain")) {
			continue
		}
		for _, name := range k.vmOf(p.Domain) {
			whose := ""
			if proxy := managed[name]; proxy != nil {
				whose = k.declared(proxy)
			} else if pool := k.poolOf(name, pools); pool != nil {
				whose = "a member of " + k.declared(pool)
			} else {
				continue
			}
			k.problem(at.with("domain"), "%q is, or may be, the VM of %s, which virdeck makes; allowed: another domain", p.Domain, whose)
		}
	}
}

// declared is what a name stands for, and where.
func (k *checker) declared(name keyPath) string {
	return fmt.Sprintf("%s in line %d", k.label(name[:len(name)-1]), k.pos.of(name))
}

// vmOf returns the names of the proxies whose VM a domain may be.
func (k *checker) vmOf(domain string) []model.ProxyName {
	names := []model.ProxyName{model.ProxyName(domain)}
	if made, ok := model.MadeFor(k.c.Fleet.Name, domain); ok {
		names = append(names, made)
	}
	return names
}

// poolOf returns where the pool is named of which a member may have the name, or
// nil.
func (k *checker) poolOf(name model.ProxyName, pools map[string]keyPath) keyPath {
	for _, p := range k.c.Pools {
		if _, is := (model.PoolSpec{Name: p.Name}).Ordinal(name); is {
			return pools[p.Name] // nil if its name is no good
		}
	}
	return nil
}
