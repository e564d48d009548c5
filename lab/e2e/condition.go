package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"virdeck/model"
)

// Condition says why a status does not meet it, or nothing when it does. It looks
// at that status alone: an old one may be asked about again.
type Condition func(*model.Status) string

// All holds when every one of the conditions does.
func All(cs ...Condition) Condition {
	return func(s *model.Status) string {
		for _, c := range cs {
			if not := c(s); not != "" {
				return not
			}
		}
		return ""
	}
}

// Not holds when the condition does not.
func Not(c Condition) Condition {
	return func(s *model.Status) string {
		if c(s) == "" {
			return "it is so"
		}
		return ""
	}
}

// proxy makes a condition on each of the proxies named.
func proxy(names []string, c func(*model.ProxyStatus) string) Condition {
	return func(s *model.Status) string {
		for _, name := range names {
			i := slices.IndexFunc(s.Proxies, func(p model.ProxyStatus) bool { return p.Name == name })
			if i < 0 {
				return "there is no proxy " + name
			}
			if not := c(&s.Proxies[i]); not != "" {
				return name + " " + not
			}
		}
		return ""
	}
}

// host makes a condition on a host that has a link.
func host(name string, c func(*model.HostStatus) string) Condition {
	return func(s *model.Status) string {
		i := slices.IndexFunc(s.Hosts, func(h model.HostStatus) bool { return h.Name == name })
		if i < 0 || s.Hosts[i].Link == nil {
			return "there is no host " + name + " with a link"
		}
		if not := c(&s.Hosts[i]); not != "" {
			return name + " " + not
		}
		return ""
	}
}

// State holds when the proxy is in one of the states.
func State(name string, states ...string) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		if slices.Contains(states, p.State) {
			return ""
		}
		return "is " + proxyLine(p)
	})
}

// Ready holds when each of the proxies is ready.
func Ready(names ...string) Condition {
	return proxy(names, func(p *model.ProxyStatus) string {
		if p.State == "ready" {
			return ""
		}
		return "is " + proxyLine(p)
	})
}

// InRotation holds when each of the proxies is in the rotation.
func InRotation(names ...string) Condition {
	return proxy(names, func(p *model.ProxyStatus) string {
		if p.Rotation.In {
			return ""
		}
		return "is out of the rotation (" + p.Rotation.Reason + "): " + proxyLine(p)
	})
}

// OutOfRotation holds when the proxy is out of the rotation.
func OutOfRotation(name string) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		if !p.Rotation.In {
			return ""
		}
		return "is in the rotation: " + proxyLine(p)
	})
}

// IP holds when the proxy has the address.
func IP(name string, want netip.Addr) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		if p.IP == want.String() {
			return ""
		}
		return fmt.Sprintf("has address %q, not %v", p.IP, want)
	})
}

// Held holds when the proxy's address is held, by its mark and its hold; with
// held false, when it is neither.
func Held(name string, held bool) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		mark := slices.Contains(p.Marks, "held")
		if mark == held && (p.Hold != nil) == held {
			return ""
		}
		return fmt.Sprintf("has mark held %v, hold %v, not %v", mark, p.Hold != nil, held)
	})
}

// Source holds when the source's last outcome for the proxy is one of the kinds.
func Source(name, source string, kinds ...string) Condition {
	return outcome(name, source, func(o *model.SourceStatus) string {
		if slices.Contains(kinds, o.Kind) {
			return ""
		}
		return fmt.Sprintf("says %s (%d %s), not %s", o.Kind, o.Code, o.Message, strings.Join(kinds, " or "))
	})
}

// Code holds when the source's last outcome for the proxy is a failure with
// libvirt's code.
func Code(name, source string, code int) Condition {
	return outcome(name, source, func(o *model.SourceStatus) string {
		if o.Kind == "failed" && o.Code == code {
			return ""
		}
		return fmt.Sprintf("says %s (%d %s), not failed with %d", o.Kind, o.Code, o.Message, code)
	})
}

// Names holds when the source names the address, asked at or after the instant.
func Names(name, source string, want netip.Addr, after time.Time) Condition {
	return outcome(name, source, func(o *model.SourceStatus) string {
		switch {
		case o.Kind != "addresses" || !slices.Contains(o.Addresses, want.String()):
			return fmt.Sprintf("says %s %v (%d %s), not %v", o.Kind, o.Addresses, o.Code, o.Message, want)
		case o.At == nil || o.At.Before(after):
			return "has not been asked since"
		}
		return ""
	})
}

func outcome(name, source string, c func(*model.SourceStatus) string) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		i := slices.IndexFunc(p.Sources, func(o model.SourceStatus) bool { return o.Source == source })
		if i < 0 {
			return "has no source " + source
		}
		if not := c(&p.Sources[i]); not != "" {
			return source + " " + not
		}
		return ""
	})
}

// Reason holds when the proxy's reason, or the reason of its membership, has the
// words in it (letter case does not count).
func Reason(name, words string) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		all := p.Reason + " / " + p.Rotation.Reason + " / " + p.Health.LastReason
		if strings.Contains(strings.ToLower(all), strings.ToLower(words)) {
			return ""
		}
		return fmt.Sprintf("gives no reason with %q: %s", words, all)
	})
}

// Link holds when the host's link is in one of the states.
func Link(name string, states ...string) Condition {
	return host(name, func(h *model.HostStatus) string {
		if slices.Contains(states, h.Link.State) {
			return ""
		}
		return "has " + hostLine(h)
	})
}

// Generation holds when the host's link is up in that generation.
func Generation(name string, want uint64) Condition {
	return host(name, func(h *model.HostStatus) string {
		if h.Link.State == "up" && h.Link.Generation == want {
			return ""
		}
		return fmt.Sprintf("has %s, not up gen %d", hostLine(h), want)
	})
}

// NoEvents holds when neither the host nor a proxy of it has an event of the
// instant or later.
func NoEvents(name string, after time.Time) Condition {
	recent := func(who string, events []model.EventStatus) string {
		for _, e := range events {
			if !e.At.Before(after) {
				return fmt.Sprintf("%s has the event %q (%s to %s)", who, e.What, e.From, e.To)
			}
		}
		return ""
	}
	return func(s *model.Status) string {
		for i := range s.Hosts {
			if s.Hosts[i].Name == name {
				if not := recent(name, s.Hosts[i].Events); not != "" {
					return not
				}
			}
		}
		for i := range s.Proxies {
			if s.Proxies[i].Host == name {
				if not := recent(s.Proxies[i].Name, s.Proxies[i].Events); not != "" {
					return not
				}
			}
		}
		return ""
	}
}

// HasEvent holds when the proxy has an event of the instant or later that ends
// in the state and gives evidence.
func HasEvent(name, to string, after time.Time) Condition {
	return proxy([]string{name}, func(p *model.ProxyStatus) string {
		for _, e := range p.Events {
			if e.To == to && !e.At.Before(after) && len(e.Evidence) > 0 {
				return ""
			}
		}
		return "has no event to " + to + " with evidence"
	})
}
