package ui

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"virdeck/model"
)

// plight is what stands between a proxy and its clients, as the console tells it:
// chosen from states, never from the wording of a reason.
type plight int

const (
	plightNone        plight = iota // nothing: it serves, or an operator wanted it so
	plightMissing                   // no such domain on its host
	plightStopped                   // shut off or crashed
	plightLink                      // its host cannot be asked
	plightWrite                     // a change to its VM was refused for good
	plightBooting                   // runs, and no source names an address
	plightUnseen                    // not looked at yet
	plightRead                      // the link is up, and the last read failed
	plightCredentials               // 407
	plightHop                       // nobody answers at its address
	plightWayOut                    // it answers and does not get out
	plightSlow                      // its answers come too late
	plightAnswer                    // something else answers
	plightOutside                   // probes fail by our fault or a target's
	plightProving                   // probes pass, not yet often enough
	plightWriting                   // its VM is being made, started or removed
	plightWanted                    // something is wanted of its VM, and waits
)

// plightOf picks the one that an operator must know first.
func plightOf(p *model.ProxyView, h *model.HostView) plight {
	out := !p.Health.InRotation
	if v := p.Managed; v != nil && out && p.State != model.StateDrained && p.State != model.StateFailed {
		switch {
		case v.Write != "":
			return plightWriting
		case v.Plan != "" && p.State != model.StateDeleting && (!p.Spec.EffectiveHost(p.IP).IsValid() || v.Latched):
			return plightWanted
		}
	}
	switch {
	case p.State == model.StateDeleting, p.State == model.StateDrained:
		return plightNone
	case p.State == model.StateFailed:
		return plightWrite
	case h != nil && !h.External && h.Link.State != model.LinkUp && (!out || !probeFault(p)):
		return plightLink
	case p.Spec.Backing != model.BackingExternal && p.Domain == model.DomainMissing:
		return plightMissing
	case out && (p.Domain == model.DomainShutoff || p.Domain == model.DomainCrashed) && p.Spec.Backing != model.BackingExternal:
		return plightStopped
	case p.State == model.StateTransient:
		return plightRead
	case !p.Spec.EffectiveHost(p.IP).IsValid():
		if p.State == model.StateProvisioning || p.Domain == model.DomainRunning {
			return plightBooting
		}
		return plightUnseen
	}
	return plightOfProbe(p, out)
}

// probeFault reports whether the last probe speaks against the proxy.
func probeFault(p *model.ProxyView) bool {
	last := p.Health.Last
	return !last.Started.IsZero() && !last.Passed && last.Culprit.ProxysFault()
}

func plightOfProbe(p *model.ProxyView, out bool) plight {
	last := p.Health.Last
	switch last.Culprit {
	case model.CulpritCredentials:
		return plightCredentials
	case model.CulpritHop:
		return plightHop
	case model.CulpritWayOut:
		return plightWayOut
	case model.CulpritSlow:
		return plightSlow
	case model.CulpritAnswer:
		return plightAnswer
	case model.CulpritUs, model.CulpritTarget:
		return plightOutside
	case model.CulpritNone:
	}
	if out {
		return plightProving
	}
	return plightNone
}

// story is a plight in words: what it is, what virdeck did and did not do, and
// what the operator can do, the most useful first.
type story struct{ is, did, can string }

func (m *Model) story(p *model.ProxyView, h *model.HostView) story {
	host := clean(string(p.Spec.Host))
	domain := clean(orWord(p.Spec.Domain, string(p.Spec.Name)))
	hl := p.Health
	back := "It enters the rotation when its probes pass."
	if hl.Rise > 0 { // unknown of one that is not probed
		back = fmt.Sprintf("It enters the rotation after %s in a row.", count(hl.Rise, "pass", "passes"))
	}
	if hl.InRotation && hl.Fails > 0 {
		back = fmt.Sprintf("It is still in the rotation: %d of %s in a row that take it out.", hl.Fails, count(hl.Fall, "failure", "failures"))
	} else if !hl.InRotation && hl.Passes > 0 && hl.Rise > 0 {
		back = fmt.Sprintf("It enters the rotation after %s in a row, %d so far.", count(hl.Rise, "pass", "passes"), hl.Passes)
	}
	left := "It was not let into the rotation; nothing was done to its VM."
	switch {
	case hl.InRotation:
		left = "Nothing yet: it is still in the rotation."
	case hl.Demoted:
		left = "It was taken out of the rotation; nothing was done to its VM, and probes go on."
	}
	switch plightOf(p, h) {
	case plightNone:
		return m.calmStory(p)
	case plightWriting, plightWanted:
		return m.managedStory(p)
	case plightMissing:
		s := story{
			is:  fmt.Sprintf("No domain %s is defined on %s.", domain, host),
			did: "virdeck defines no domain and deletes none. " + left,
			can: "Define it there, or correct domain or host in the configuration; enter on the host lists what it has, r looks again. S cannot start what is not there.",
		}
		if p.Managed != nil {
			s.did, s.can = "virdeck makes it again when a second look has not found it either, within the budget. "+left, "Wait; P shows what is planned. r looks now."
		}
		if hl.InRotation {
			s.did = "Its address still passes probes, so it stays in the rotation: it may have moved to another host."
		}
		return s
	case plightStopped:
		if p.Managed != nil && p.Managed.Wish != "stop" {
			return story{
				is:  fmt.Sprintf("Its VM is %s: nothing serves.", p.Domain),
				did: "Its address counts no longer, and nothing is probed. virdeck starts it again after a second look, within the budget.",
				can: "Wait; P shows what is planned. When it has booted, " + lower(back),
			}
		}
		if p.Managed != nil {
			return story{
				is:  fmt.Sprintf("An operator stopped it: its VM is %s.", p.Domain),
				did: "It is left so until an operator starts it.",
				can: "S starts it, after a question. When it has booted, " + lower(back),
			}
		}
		return story{
			is:  fmt.Sprintf("Its VM is %s: nothing serves.", p.Domain),
			did: "Its address counts no longer, and nothing is probed. virdeck starts no VM by itself.",
			can: "S starts it, after a question. When it has booted, " + lower(back),
		}
	case plightLink:
		return m.linkStory(h)
	case plightWrite:
		return story{
			is:  "A change to its VM was refused for good, and no VM serves.",
			did: "virdeck does not try again by itself until its declaration changes.",
			can: "r tries again; the reason above is the host's own." + managedHint(p),
		}
	case plightBooting:
		return story{
			is:  "Its VM runs, and no source names an address yet.",
			did: "All sources are asked again and again. Nothing is done to the VM.",
			can: "Wait if it boots; else enter shows what each source said. r asks them now; x restarts the VM, after a question.",
		}
	case plightUnseen:
		if p.Managed != nil {
			return m.managedStory(p)
		}
		return story{is: "Nothing of it has been seen yet.", did: "It is looked at by itself.", can: "r looks now."}
	case plightRead:
		return story{
			is:  "The last look at it failed and says nothing about it.",
			did: "All that was known is kept, rotation too; probes go on, and it is looked at again by itself.",
			can: "r looks now; enter shows what failed.",
		}
	case plightCredentials:
		what := "refuses the user and the password that are configured for it"
		if p.Spec.Creds.Empty() {
			what = "wants a user and a password, and none are configured"
		}
		return story{
			is:  "The proxy answers, and " + what + " (407). That is a fault of the configuration: the VM is well.",
			did: left + " Nothing is restarted or replaced for it.",
			can: "Correct user and password in the configuration, or on the proxy. " + back,
		}
	case plightHop:
		return story{
			is:  fmt.Sprintf("Nobody answers as a proxy at %s: its service is down, or the way to it is.", endpoint(p)),
			did: left,
			can: vmKeys(p, "See to the service on port "+strconv.Itoa(int(p.Spec.Port))+" and to the network between") + back,
		}
	case plightWayOut:
		return story{
			is:  "The proxy answers, and does not get out to the target: its own way out is broken (name server, gateway, upstream, firewall).",
			did: left,
			can: vmKeys(p, "See to its way out") + back,
		}
	case plightSlow:
		limit := ""
		if t := m.snap.Timing.ProbeTimeout; t > 0 {
			limit = " (" + took(t) + ")"
		}
		return story{
			is:  "The proxy answers too late" + limit + ": overloaded, or a slow way out.",
			did: left,
			can: vmKeys(p, "See to its load and its way out") + back,
		}
	case plightAnswer:
		return story{
			is:  fmt.Sprintf("Something answers at %s, and not as this proxy does: another service, another machine, or a page in between.", endpoint(p)),
			did: left,
			can: vmKeys(p, "Check port and probe in the configuration, and who has the address") + back,
		}
	case plightOutside:
		who := "of the target"
		if hl.Last.Culprit == model.CulpritUs {
			who = "of this machine"
		}
		s := story{
			is:  "Its probes fail by a fault " + who + ", not its own.",
			did: "Such a failure counts against no proxy: it stays as it was, " + inOut(hl.InRotation) + ".",
			can: "See to the target, or to this machine's way out; o shows what the witnesses say.",
		}
		return s
	case plightProving:
		is := "It has an address, and has not passed enough probes in a row yet."
		if hl.Demoted {
			is = "It was taken out for its own fault, and its probes pass again."
		}
		return story{is: is, did: "It is probed faster than usual, and kept out until it is proven.", can: "Wait. " + back}
	}
	return story{}
}

func inOut(in bool) string {
	if in {
		return "in the rotation"
	}
	return "out of the rotation"
}

// calmStory is for those that are as they are meant to be.
func (m *Model) calmStory(p *model.ProxyView) story {
	switch p.State {
	case model.StateDeleting:
		if p.Managed != nil {
			return m.managedStory(p)
		}
		return story{is: "It is being removed.", did: "It leaves the rotation first.", can: "Nothing needs doing."}
	case model.StateDrained:
		if p.Domain == model.DomainShutoff || p.Domain == model.DomainMissing {
			return story{is: "An operator took it out, and its VM does not run.", did: "It is not probed.", can: "S starts its VM, D puts it back."}
		}
		return story{is: "An operator took it out.", did: "Open connections may finish; its VM goes on, and probes do.", can: "D puts it back."}
	case model.StateFailed, model.StateDemoted, model.StateTransient, model.StateProvisioning,
		model.StatePending, model.StateUnproven, model.StateReady:
	}
	if p.Hold.Active {
		return story{
			is: "Its probes pass; its sources have gone quiet, so its address is held.",
			did: fmt.Sprintf("The address is kept until %d polls have named none and a probe through it fails by its own fault; %s so far.",
				p.Hold.Of, count(p.Hold.Polls, "poll", "polls")),
			can: "Nothing needs doing. r asks the sources now.",
		}
	}
	if p.Domain == model.DomainPaused {
		return story{is: "Its probes pass, though its VM is paused.", did: "virdeck resumes no VM by itself; probes decide.", can: "Nothing needs doing while it serves."}
	}
	every := "It is probed by itself."
	if d := m.snap.Timing.ProbeInterval; d > 0 {
		every = "It is probed every " + span(d) + "."
	}
	return story{is: "Its address is known and its probes pass.", did: every, can: "Nothing needs doing."}
}

func (m *Model) linkStory(h *model.HostView) story {
	name := clean(string(h.Name))
	again := ""
	if in := m.until(h.Link.NextRetry); in != "" {
		again = ", dialled again in " + in
	}
	return story{
		is:  fmt.Sprintf("The link of %s is %s: nothing new is learned of its VM.", name, h.Link.State),
		did: "All that was known is kept, rotation too; probes, which do not use the link, go on and decide.",
		can: fmt.Sprintf("c reconnects %s now (%s%s).", name, h.Link.State, again),
	}
}

// vmKeys are the ways in which an operator can go after a fault of the VM.
func vmKeys(p *model.ProxyView, look string) string {
	switch {
	case p.Spec.Backing == model.BackingExternal:
		return look + ". "
	case p.Domain == model.DomainPaused:
		return "Its VM is paused: resume it on its host. "
	}
	return look + "; x restarts the VM, after a question. "
}

// endpoint is where the proxy is asked: the address that was probed last.
func endpoint(p *model.ProxyView) string {
	a := p.Spec.EffectiveHost(p.IP)
	if !a.IsValid() {
		a = p.Health.Last.Address
	}
	return net.JoinHostPort(a.String(), strconv.Itoa(int(p.Spec.Port)))
}

func lower(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}
