package controller

import (
	"virdeck/model"
	"virdeck/provider"
)

// foreign returns why the domain that has the name of a managed proxy's is not its
// VM; empty if nothing is known against it. One that virdeck did not make is known
// by its mark alone, which byMark looks after. The lock is held.
func (h *host) foreign(p *proxy, in model.Instance) string {
	m := p.m
	if m == nil || m.adopted || in.UUID == "" {
		return ""
	}
	if in.OwnerKnown {
		f := vmFacts{owner: in.Owner, uid: m.uid, fleet: h.c.settings().Fleet, id: h.c.id, takeover: h.c.settings().Takeover}
		if why := notOurs(f); why != "" {
			return why
		}
	}
	if in.UUID != m.uuid {
		return "a domain of its name is there with another UUID: it is left alone"
	}
	return ""
}

// itsOwn turns a look at a domain that is not the proxy's into one that found
// none: nothing of it is read, probed or served. The lock is held.
func (h *host) itsOwn(p *proxy, r read) read {
	if h.foreign(p, r.inst) != "" {
		r.inst = model.Instance{At: r.inst.At, Generation: r.inst.Generation}
		r.err = provider.ErrNotFound
	}
	return r
}

// unsure reports whether a look saw a domain for the first time, and not yet its
// mark: an address that is once taken from somebody else's VM would be kept while
// it passes probes. The lock is held.
func (p *proxy) unsure(in model.Instance) bool {
	return p.m != nil && !p.m.adopted && in.UUID != "" && in.UUID != p.st.uuid && !in.OwnerKnown
}

// refuseForeign refuses what would be done to somebody else's domain.
func (h *host) refuseForeign(p *proxy) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m != nil && p.m.foreign != "" {
		return model.Refuse("%s", p.m.foreign)
	}
	return nil
}
