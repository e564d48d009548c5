package controller

import (
	"context"
	"fmt"
	"time"

	"virdeck/model"
)

// publishEvery bounds how often a new snapshot appears; idleEvery is how often
// one appears without a change, so that link figures do not stand still.
const (
	publishEvery = 100 * time.Millisecond
	idleEvery    = 2 * time.Second
)

// Snapshot returns the newest published snapshot. It is never nil, and nobody
// changes it.
func (c *Controller) Snapshot() *model.Snapshot { return c.snap.Load() }

// publishLoop publishes after a change, at most ten times a second.
func (c *Controller) publishLoop(ctx context.Context) {
	idle := time.NewTicker(idleEvery)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			c.markLinks()
		case <-c.changed:
		}
		c.publish()
		t := time.NewTimer(publishEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// markLinks has the hosts' link figures renewed where they moved.
func (c *Controller) markLinks() {
	for _, h := range c.hosts() {
		h.mu.Lock()
		if !h.external() && h.view != nil && h.view.Link != h.via().prov.Link() {
			h.dirty = true
		}
		h.mu.Unlock()
	}
}

// publish builds a snapshot. What did not change is shared with the one before.
func (c *Controller) publish() {
	now := time.Now()
	old := c.snap.Load()
	s := &model.Snapshot{
		Fleet: c.settings().Fleet, Version: c.settings().Version, Demo: c.settings().Demo, At: now, Started: c.started, Gen: 1,
		Ops: c.ops.snapshot(now), Health: c.health.Fleet(),
		Timing: model.Timing{
			Poll: c.settings().Poll, AddressRefresh: c.settings().AddressRefresh, AddressHold: c.settings().AddressHold,
			ProbeInterval: c.settings().ProbeInterval, ProbeTimeout: c.settings().ProbeTimeout,
		},
	}
	if old != nil {
		s.Gen = old.Gen + 1
	}
	s.DryRun = c.settings().DryRun
	if p := c.plan.Load(); p != nil {
		s.Plan = *p
	}
	if v := c.poolViews.Load(); v != nil {
		s.Pools = *v
	}
	for _, h := range c.hosts() {
		s.Hosts = append(s.Hosts, h.publish())
	}
	s.Notices = append(notices(s), c.standing()...)
	c.snap.Store(s)
}

func (h *host) publish() *model.HostView {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.view != nil && !h.dirty {
		return h.view
	}
	v := &model.HostView{
		Name: h.name, External: h.external(), URI: h.via().spec.URI, Sources: h.via().spec.Sources,
		UUID: h.pinned, Misconfig: h.misconfig, Shows: h.stranger(), Twin: h.twin, ARPBroken: h.arpBroken, LastGood: h.lastGood,
		Domains: h.domains, Undeclared: h.strangers, Events: h.events,
		Proxies: make([]*model.ProxyView, 0, len(h.proxies)),
	}
	if !h.external() {
		v.Link = h.via().prov.Link()
		v.Budget = h.c.budgetView(h.name, "", time.Now())
		v.Orphans = h.orphanViews(time.Now())
	}
	for _, p := range h.proxies {
		v.Proxies = append(v.Proxies, p.view)
	}
	h.view, h.dirty = v, false
	return v
}

// standing returns the notices that are not about probes or hosts.
func (c *Controller) standing() []model.Notice {
	var out []model.Notice
	if why := c.storeErr.Load(); why != nil {
		out = append(out, model.Notice{Level: model.NoticeAlert, Text: "nothing is changed on any host, since it could not be remembered: " + *why})
	}
	if why := c.blind(); why != "" {
		out = append(out, model.Notice{Level: model.NoticeWarn, Text: "no VM is made, removed or taken over: " + why})
	}
	if n := c.reloadNote.Load(); n != nil {
		note := *n
		note.Reload = true
		out = append(out, note)
	}
	return out
}

// notices puts into words what concerns the whole fleet.
func notices(s *model.Snapshot) []model.Notice {
	var out []model.Notice
	f := s.Health
	if f.Frozen {
		out = append(out, model.Notice{Level: model.NoticeAlert, Since: f.FrozenSince,
			Text: "ROTATION HELD AS IT IS: " + f.FrozenWhy})
	}
	if f.BrakeOn {
		out = append(out, model.Notice{Level: model.NoticeWarn, Since: f.BrakeSince,
			Text: "demotions wait for a witness: " + f.BrakeNote})
	}
	if n, why := ourFault(s); n > 0 {
		out = append(out, model.Notice{Level: model.NoticeAlert,
			Text: fmt.Sprintf("%d probes cannot be made from here: %s. Nothing is concluded from them", n, why)})
	}
	if f.Control == model.WitnessNone && !anyIn(s) {
		out = append(out, model.Notice{Level: model.NoticeWarn,
			Text: "the targets do not answer from here, with or without a proxy: " + f.ControlNote})
	}
	for _, h := range s.Hosts {
		if h.Twin != "" {
			out = append(out, model.Notice{Level: model.NoticeAlert, Text: h.Twin})
		}
		if h.Misconfig != "" {
			out = append(out, model.Notice{Level: model.NoticeAlert, Text: "host " + string(h.Name) + ": " + h.Misconfig})
		}
	}
	return out
}

// ourFault counts the proxies whose last probe failed by a fault of this
// machine, with one of the reasons.
func ourFault(s *model.Snapshot) (n int, why string) {
	for _, h := range s.Hosts {
		for _, p := range h.Proxies {
			if p.Health.Last.Culprit == model.CulpritUs {
				n, why = n+1, p.Health.Last.Reason
			}
		}
	}
	return n, why
}

// anyIn reports whether any proxy is in rotation.
func anyIn(s *model.Snapshot) bool {
	for _, h := range s.Hosts {
		for _, p := range h.Proxies {
			if p.Health.InRotation {
				return true
			}
		}
	}
	return false
}
