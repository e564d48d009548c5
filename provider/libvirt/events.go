package libvirt

import (
	"context"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// onUp begins the events of a new generation: subscribe first, then say "link
// up", on which the controller lists. In the other order a change between the
// two would be seen by neither.
func (h *Host) onUp(l *Link, s *session) {
	h.mu.Lock()
	h.uuid = "" // until this generation has told it
	h.mu.Unlock()
	h.listing.invalidate()
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, readLimit)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { h.readUUID(ctx, l, s) })
		h.subscribe(ctx, l, s, golibvirt.DomainEventIDLifecycle, func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackLifecycleMsg)
			if !ok {
				return "", ""
			}
			return m.Msg.Dom.Name, lifecycleWord(golibvirt.DomainEventType(m.Msg.Event))
		})
		h.subscribe(ctx, l, s, golibvirt.DomainEventIDAgentLifecycle, func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackAgentLifecycleMsg)
			if !ok {
				return "", ""
			}
			if m.State == agentConnected {
				return m.Dom.Name, "agent connected"
			}
			return m.Dom.Name, "agent disconnected"
		})
		wg.Wait()
		if s.ctx.Err() == nil {
			h.opts.OnEvent(provider.Event{Host: h.name, What: "link up"})
		}
	}()
}

// agentConnected is VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED.
const agentConnected = 1

// readUUID pins which host this generation speaks to.
func (h *Host) readUUID(ctx context.Context, l *Link, s *session) {
	text, err := onSession(ctx, l, s, call{Class: ClassRead, What: "read capabilities"},
		func(v *golibvirt.Libvirt) (string, error) { return v.ConnectGetCapabilities() })
	if err != nil {
		return // unknown is a value too: nothing is concluded from it
	}
	u, err := hostUUID(text)
	if err != nil {
		return
	}
	h.mu.Lock()
	h.uuid = u
	h.mu.Unlock()
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
