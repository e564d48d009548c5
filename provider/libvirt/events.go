package libvirt

import (
	"context"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// onUp begins the events of a new generation: subscribe first, then say "link
// up", on which the controller lists. In the other order a change between the
// two would be seen by neither.
func (h *Host) onUp(l *Link, s *session) {
	h.listing.invalidate()
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, readLimit)
		defer cancel()
		h.subscribe(ctx, l, s, golibvirt.DomainEventIDLifecycle, func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackLifecycleMsg)
			if !ok {
				return "", ""
			}
			if t := golibvirt.DomainEventType(m.Msg.Event); t == golibvirt.DomainEventDefined || t == golibvirt.DomainEventUndefined {
				h.marks.forget(formatUUID(m.Msg.Dom.UUID)) // a definition has its own metadata
			}
			return m.Msg.Dom.Name, lifecycleWord(golibvirt.DomainEventType(m.Msg.Event))
		})
		h.subscribe(ctx, l, s, golibvirt.DomainEventIDMetadataChange, func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackMetadataChangeMsg)
			if !ok || len(m.Nsuri) > 0 && m.Nsuri[0] != markURI {
				return "", ""
			}
			h.marks.forget(formatUUID(m.Dom.UUID))
			return m.Dom.Name, "mark changed"
		})
		h.subscribe(ctx, l, s, golibvirt.DomainEventIDAgentLifecycle, func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackAgentLifecycleMsg)
			if !ok {
				return "", ""
			}
			h.agentNews(formatUUID(m.Dom.UUID), m.State == agentConnected)
			if m.State == agentConnected {
				return m.Dom.Name, "agent connected"
			}
			return m.Dom.Name, "agent disconnected"
		})
		if s.ctx.Err() == nil {
			h.opts.OnEvent(provider.Event{Host: h.name, What: provider.EventLinkUp})
		}
		h.identify(l, s)
	}()
}

// identifyLimit is how long a host may take to say which machine it is, and
// identifyPause how long after a failure it is asked again. The capabilities can
// take seconds: the daemon may probe its emulators for them.
const (
	identifyLimit = 30 * time.Second
	identifyPause = 2 * time.Second
)

// identify asks which machine this generation speaks to, until it is known.
func (h *Host) identify(l *Link, s *session) {
	for !h.readUUID(l, s) {
		t := time.NewTimer(identifyPause)
		select {
		case <-t.C:
		case <-s.dead():
			t.Stop()
			return
		}
	}
	h.opts.OnEvent(provider.Event{Host: h.name, What: provider.EventIdentified})
}

// agentConnected is VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED.
const agentConnected = 1

// readUUID reports whether the host has said its UUID.
func (h *Host) readUUID(l *Link, s *session) bool {
	ctx, cancel := context.WithTimeout(s.ctx, identifyLimit)
	defer cancel()
	text, err := onSession(ctx, l, s, call{Class: ClassRead, What: "read capabilities"},
		func(v *golibvirt.Libvirt) (string, error) { return v.ConnectGetCapabilities() })
	if err != nil {
		return false
	}
	u, err := hostUUID(text)
	if err != nil || u == "" {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uuid, h.uuidGen = u, s.gen
	return true
}

// subscribe registers for one kind of event. Where that fails, the regular look
// at the host finds the same changes later.
func (h *Host) subscribe(ctx context.Context, l *Link, s *session, id golibvirt.DomainEventID, read func(any) (domain, what string)) {
	ch, err := onSession(ctx, l, s, call{Class: ClassRead, What: "subscribe to events"},
		func(v *golibvirt.Libvirt) (<-chan any, error) { return v.SubscribeEvents(s.ctx, id, nil) })
	if err != nil {
		return
	}
	go func() {
		// To the very end: go-libvirt's sender waits without a way out.
		for ev := range ch {
			if dom, what := read(ev); dom != "" {
				h.listing.invalidate()
				h.opts.OnEvent(provider.Event{Host: h.name, Domain: dom, What: what})
			}
		}
	}()
}

func lifecycleWord(t golibvirt.DomainEventType) string {
	switch t {
	case golibvirt.DomainEventDefined:
		return "defined"
	case golibvirt.DomainEventUndefined:
		return "undefined"
	case golibvirt.DomainEventStarted:
		return "started"
	case golibvirt.DomainEventSuspended:
		return "paused"
	case golibvirt.DomainEventResumed:
		return "resumed"
	case golibvirt.DomainEventStopped:
		return "stopped"
	case golibvirt.DomainEventShutdown:
		return "shutting down"
	case golibvirt.DomainEventPmsuspended:
		return "suspended by the guest"
	case golibvirt.DomainEventCrashed:
		return "crashed"
	}
	return "changed"
}
