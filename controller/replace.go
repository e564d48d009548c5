package controller

import (
	"time"

	"virdeck/model"
)

// grow notes when a VM that runs is no use for so long that another is to take
// its place: no address, or probes that condemn it by its own fault. A proxy
// that refuses its credentials is never replaced: that is a mistake in a
// configuration, and the next VM would be refused as well. The lock is held.
func (h *host) grow(p *proxy, now time.Time) {
	m := p.m
	if !h.useless(p) {
		m.useless = time.Time{}
		if !m.leaving() || m.busy == jobNone && h.healthOf(p).InRotation { // it has come back, or nobody can tell any more
			m.unused = ""
		}
		return
	}
	if m.useless.IsZero() {
		m.useless = now
	}
	after := h.c.settings().ReplaceAfter
	if after <= 0 || m.unused != "" || m.adopted || m.order != nil || m.wish != wishRun || now.Sub(m.useless) < after<<min(m.barren, 6) {
		return
	}
	m.unused = join("it has been of no use for "+after.String(), ": ", p.view.Reason)
}

// useless reports whether the VM runs and does not serve, by a fault of its own
// that has been seen, not assumed.
func (h *host) useless(p *proxy) bool {
	if !p.m.built || !p.m.listed || p.m.busy != jobNone || p.m.leaving() || p.drained || p.st.domain != model.DomainRunning {
		return false
	}
	switch p.state {
	case model.StateProvisioning:
		return p.st.failed.IsZero()
	case model.StateUnproven, model.StateDemoted:
		hl := h.healthOf(p)
		own := hl.Last.Culprit.ProxysFault() && hl.Last.Culprit != model.CulpritCredentials
		if hl.Last.Culprit == model.CulpritHop && h.allFail(p) {
			return false // the way to this host, as likely as all of its VMs at once
		}
		return own && (hl.Demoted || hl.Fall > 0 && hl.Fails >= hl.Fall)
	case model.StateDeleting, model.StateDrained, model.StateFailed, model.StateTransient, model.StatePending, model.StateReady:
	}
	return false
}

// allFail reports whether p has neighbours on its host, and none of them is in
// rotation.
func (h *host) allFail(p *proxy) bool {
	others := 0
	for _, q := range h.proxies {
		if q == p || !q.effective().IsValid() {
			continue
		}
		if q.inRot {
			return false
		}
		others++
	}
	return others > 0
}
