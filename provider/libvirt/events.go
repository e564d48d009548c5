package libvirt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// onUp begins the events of a new generation: subscribe first, then say "link
// up", on which the controller lists. In the other order a change between the
// two would be seen by neither. What cannot be subscribed to at once is tried
// again for as long as the generation lives.
func (h *Host) onUp(l *Link, s *session) {
	h.listing.invalidate()
	h.newConnection(s)
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, readLimit)
		defer cancel()
		subs := h.subscriptions()
		for _, sub := range subs {
			if err := h.subscribe(ctx, l, s, sub); err != nil && s.ctx.Err() == nil {
				h.eventsOff(s, sub, limited(err, readLimit))
				go h.resubscribe(l, s, sub, err)
			}
		}
		if s.ctx.Err() == nil {
			h.opts.OnEvent(provider.Event{Host: h.name, What: provider.EventLinkUp})
		}
		h.identify(l, s)
	}()
}

// subscription is one kind of event of one generation.
type subscription struct {
	id   golibvirt.DomainEventID
	what string
	// read returns which domain an event is about and what happened; no domain:
	// it is nothing to tell.
	read func(ev any) (domain, what string)
	q    lone
	on   atomic.Bool
}

func (h *Host) subscriptions() []*subscription {
	return []*subscription{
		{id: golibvirt.DomainEventIDLifecycle, what: "lifecycle", q: newLone(nil), read: func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackLifecycleMsg)
			if !ok {
				return "", ""
			}
			if t := golibvirt.DomainEventType(m.Msg.Event); t == golibvirt.DomainEventDefined || t == golibvirt.DomainEventUndefined {
				h.marks.forget(formatUUID(m.Msg.Dom.UUID)) // a definition has its own metadata
			}
			return m.Msg.Dom.Name, lifecycleWord(golibvirt.DomainEventType(m.Msg.Event))
		}},
		{id: golibvirt.DomainEventIDMetadataChange, what: "metadata", q: newLone(nil), read: func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackMetadataChangeMsg)
			if !ok || len(m.Nsuri) > 0 && m.Nsuri[0] != markURI {
				return "", ""
			}
			h.marks.forget(formatUUID(m.Dom.UUID))
			return m.Dom.Name, "mark changed"
		}},
		{id: golibvirt.DomainEventIDAgentLifecycle, what: "agent", q: newLone(nil), read: func(ev any) (string, string) {
			m, ok := ev.(*golibvirt.DomainEventCallbackAgentLifecycleMsg)
			if !ok {
				return "", ""
			}
			h.agentNews(formatUUID(m.Dom.UUID), m.State == agentConnected)
			if m.State == agentConnected {
				return m.Dom.Name, "agent connected"
			}
			return m.Dom.Name, "agent disconnected"
		}},
	}
}

// agentConnected is VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED.
const agentConnected = 1

// subscribe registers for one kind of event. Its success may come after it has
// returned: the events are taken from the moment on at which the daemon has
// registered us, since go-libvirt's sender waits for its reader without a way
// out.
func (h *Host) subscribe(ctx context.Context, l *Link, s *session, sub *subscription) error {
	if err := ctx.Err(); err != nil {
		return err // or it might still be asked, and be granted to nobody
	}
	_, err := onLone(ctx, l, s, sub.q, call{Class: ClassRead, What: "subscribe to " + sub.what + " events"},
		func(v *golibvirt.Libvirt) (struct{}, error) {
			ch, err := v.SubscribeEvents(s.ctx, sub.id, nil)
			if err == nil {
				sub.on.Store(true)
				go h.drain(ch, sub)
			}
			return struct{}{}, err
		})
	return err
}

func (h *Host) drain(ch <-chan any, sub *subscription) {
	for ev := range ch { // to the very end
		if dom, what := sub.read(ev); dom != "" {
			h.listing.invalidate()
			h.opts.OnEvent(provider.Event{Host: h.name, Domain: dom, What: what})
		}
	}
}

// resubscribe goes on after a first failure, err. When the host tells at last,
// everything must be looked at once: what changed until then was told to nobody.
func (h *Host) resubscribe(l *Link, s *session, sub *subscription, err error) {
	if persist(s, sub.q, err, sub.on.Load, func() error {
		ctx, cancel := context.WithTimeout(s.ctx, readLimit)
		defer cancel()
		err := h.subscribe(ctx, l, s, sub)
		if err != nil {
			h.eventsOff(s, sub, limited(err, readLimit))
		}
		return err
	}) {
		h.eventsOff(s, sub, nil)
		h.opts.OnEvent(provider.Event{Host: h.name, What: provider.EventSubscribed})
	}
}

// eventsOff notes why a kind of event is not told on a generation; nil: it is.
func (h *Host) eventsOff(s *session, sub *subscription, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noEvents.gen > s.gen {
		return // of an older generation
	}
	if h.noEvents.gen != s.gen {
		h.noEvents.gen, h.noEvents.why = s.gen, map[string]string{}
	}
	delete(h.noEvents.why, sub.what)
	if why != nil {
		h.noEvents.why[sub.what] = why.Error()
	}
}

// noEvents says which kinds of event a generation does not tell, and why.
type noEvents struct {
	gen uint64
	why map[string]string
}

// text is for people; "" if all are told.
func (n noEvents) text(gen uint64) string {
	if n.gen != gen {
		return ""
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(n.why)) {
		out = append(out, what+": "+n.why[what])
	}
	return strings.Join(out, "; ")
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
