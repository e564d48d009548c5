package controller

import (
	"cmp"
	"maps"
	"slices"

	"virdeck/model"
	"virdeck/store"
)

// refuseAdopt returns why a domain cannot become a proxy, or nil.
func (c *Controller) refuseAdopt(h *host, cmd model.Command) error {
	a := cmd.Adopt
	switch {
	case a == nil || a.Name == "" || a.Domain == "" || a.Port == 0:
		return model.Refuse("adopt needs a name, a domain and a port")
	case h.external():
		return model.Refuse("external proxies have no domains")
	case c.hostOf(a.Name) != nil:
		return model.Refuse("there is a proxy %s already", a.Name)
	}
	if pool, ok := c.declared.Load().member(a.Name); ok {
		return model.Refuse("%s is a name of the pool %s", a.Name, pool.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		if p.spec.Domain == a.Domain {
			return model.Refuse("domain %s is the proxy %s already", a.Domain, p.spec.Name)
		}
	}
	if !slices.Contains(h.strangers, a.Domain) {
		return model.Refuse("there is no domain %s on %s, as far as the last look knows", a.Domain, h.name)
	}
	for _, in := range h.marked {
		if in.Name == a.Domain {
			return model.Refuse("domain %s has the mark of this fleet's proxy %s: it is not adopted, but managed or removed", a.Domain, in.Owner.Proxy)
		}
	}
	return nil
}

// adopt makes a domain a proxy, and remembers it: it is declared in the store,
// not in the configuration.
func (c *Controller) adopt(h *host, spec model.ProxySpec) error {
	c.adopting.Lock()
	defer c.adopting.Unlock()
	if err := c.refuseAdopt(h, model.Command{Adopt: &spec}); err != nil { // somebody was faster
		return err
	}
	a := store.Adopted{
		Name: spec.Name, Host: h.name, Domain: spec.Domain, Port: spec.Port, Probe: spec.Probe, Pool: spec.Pool, Labels: spec.Labels, Creds: spec.Creds,
	}
	if err := c.apply(store.PutAdopted(a)); err != nil {
		return err
	}
	c.rememberAdopted(a)
	c.declare()
	h.refreshAll()
	c.log.Info("adopted", "host", string(h.name), "proxy", string(spec.Name), "domain", spec.Domain)
	return nil
}

func (c *Controller) rememberAdopted(a store.Adopted) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.adopted[a.Name] = a
}

// adoptedSpec is the proxy that a record of the store declares.
func adoptedSpec(a store.Adopted) model.ProxySpec {
	return model.ProxySpec{
		Name: a.Name, Host: a.Host, Backing: model.BackingAdopted, Domain: a.Domain, Port: a.Port, Probe: a.Probe, Creds: a.Creds, Pool: a.Pool, Labels: a.Labels,
	}
}

// consoleAdopted returns what is declared in the store alone, by name.
func (c *Controller) consoleAdopted() []store.Adopted {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	return slices.SortedFunc(maps.Values(c.adopted), func(a, b store.Adopted) int { return cmp.Compare(a.Name, b.Name) })
}

func (c *Controller) isConsoleAdopted(n model.ProxyName) bool {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	_, ok := c.adopted[n]
	return ok
}

// forgetAdopted has a proxy declared in the store no more.
func (c *Controller) forgetAdopted(n model.ProxyName) error {
	if err := c.apply(store.DeleteAdopted(n)); err != nil {
		return err
	}
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	delete(c.adopted, n)
	return nil
}
