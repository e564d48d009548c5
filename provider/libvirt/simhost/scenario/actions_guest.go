package scenario

import (
	"fmt"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider/libvirt/simhost"
)

// eachGuest makes an action's run from what is done to one guest, and undone.
func eachGuest(do func(d *simhost.Domain, s *step) error, undo func(d *simhost.Domain, s *step) error) func(*Stage, *step) (func() error, error) {
	return func(st *Stage, s *step) (func() error, error) {
		if err := st.onGuests(s, do); err != nil {
			return nil, err
		}
		if undo == nil {
			return nil, nil //nolint:nilnil // nothing to end
		}
		return func() error { return st.onGuests(s, undo) }, nil
	}
}

var pauseReasons = map[string]libvirt.DomainPausedReason{
	"user": libvirt.DomainPausedUser, "migration": libvirt.DomainPausedMigration, "save": libvirt.DomainPausedSave,
	"dump": libvirt.DomainPausedDump, "io-error": libvirt.DomainPausedIoerror, "watchdog": libvirt.DomainPausedWatchdog,
	"snapshot": libvirt.DomainPausedSnapshot, "crashed": libvirt.DomainPausedCrashed, "postcopy": libvirt.DomainPausedPostcopy,
}

// powerActions are what happens to a domain as a whole. That an operator of a
// console was quicker is no mistake: it is then as the step wants it.
func powerActions() map[string]action {
	start := func(d *simhost.Domain, _ *step) error { return already(d.Start()) }
	destroy := func(d *simhost.Domain, _ *step) error { return already(d.Destroy()) }
	resume := never((*simhost.Domain).Resume)
	lasts := []string{"for"}
	return map[string]action{
		"start":    {on: onGuest, run: eachGuest(start, nil)},
		"shutdown": {on: onGuest, run: eachGuest(func(d *simhost.Domain, _ *step) error { return already(d.Shutdown()) }, nil)},
		"destroy":  {on: onGuest, takes: lasts, run: eachGuest(destroy, start)},
		"crash":    {on: onGuest, takes: lasts, run: eachGuest(never((*simhost.Domain).Crash), start)},
		"reset": {on: onGuest, run: eachGuest(func(d *simhost.Domain, s *step) error {
			if err := destroy(d, s); err != nil {
				return err
			}
			return start(d, s)
		}, nil)},
		"reboot": {on: onGuest, run: eachGuest(never((*simhost.Domain).Reboot), nil)},
		"pause": {on: onGuest, takes: []string{"reason", "for"},
			check: func(_ *Scenario, s *step) (string, string) {
				if !s.given["reason"] {
					return "", ""
				}
				return checkWord("reason", s.Reason, pauseReasons)
			},
			run: eachGuest(func(d *simhost.Domain, s *step) error {
				reason := libvirt.DomainPausedUser
				if s.Reason != "" {
					reason = pauseReasons[s.Reason]
				}
				d.Pause(reason)
				return nil
			}, resume)},
		"resume": {on: onGuest, run: eachGuest(resume, nil)},
		"rename": {on: onGuest, needs: []string{"name"},
			check: func(_ *Scenario, s *step) (string, string) {
				if len(s.guests) != 1 || s.Name == "" {
					return "name", "want one guest and a name"
				}
				return "", ""
			},
			run: eachGuest(func(d *simhost.Domain, s *step) error {
				if d.Host().Domain(s.Name) != nil {
					return fmt.Errorf("rename: host %s has a %q", d.Host().Name(), s.Name)
				}
				if err := d.Rename(s.Name); err != nil {
					return fmt.Errorf("rename: %w", err)
				}
				return nil
			}, nil)},
		"undefine": {on: onGuest, run: eachGuest(never((*simhost.Domain).Undefine), nil)},
		"define": {on: onGuest, run: func(st *Stage, s *step) (func() error, error) {
			return nil, st.define(s.guests)
		}},
		"set-boot": {on: onGuest, takes: []string{"boot_lease", "boot_agent", "boot_agent_address", "boot_proxy"},
			run: eachGuest(func(d *simhost.Domain, s *step) error {
				d.SetBoot(simhost.Boot{Lease: s.Lease.stage(), Agent: s.Agent.stage(), AgentAddress: s.AgentAddress.stage(), Proxy: s.Proxy.stage()})
				return nil
			}, nil)},
	}
}

// already forgives "it is so already" (code 55).
func already(err error) error {
	if e, ok := err.(*simhost.Error); ok && e.Code == libvirt.ErrOperationInvalid { //nolint:errorlint // it comes as it is
		return nil
	}
	return err
}

var proxyModes = map[string]simhost.ProxyMode{
	"ok": simhost.ProxyOK, "off": simhost.ProxyOff, "hang": simhost.ProxyHang, "drop": simhost.ProxyDrop,
	"502": simhost.ProxyBadGateway, "silent-tunnel": simhost.ProxySilentTunnel, "banner": simhost.ProxyWrongBanner,
	"web-server": simhost.ProxyPlainHTTP,
}

// guestActions are what happens inside a guest, or to what is known of it.
func guestActions() map[string]action {
	lasts := []string{"for"}
	agentStop, agentStart := never((*simhost.Domain).AgentStop), never((*simhost.Domain).AgentStart)
	hang, thaw := never((*simhost.Domain).AgentHang), never((*simhost.Domain).AgentThaw)
	truth := never(func(d *simhost.Domain) { d.SetAgentInterfaces(nil) })
	arp := func(hide bool) func(*simhost.Domain, *step) error {
		return never(func(d *simhost.Domain) { d.HideARP(hide) })
	}
	return map[string]action{
		"agent-stop":  {on: onGuest, takes: lasts, run: eachGuest(agentStop, agentStart)},
		"agent-start": {on: onGuest, run: eachGuest(agentStart, nil)},
		"agent-restart": {on: onGuest, needs: lasts, run: func(st *Stage, s *step) (func() error, error) {
			// The guest counts the gap itself, and its end by another boot ends that.
			return nil, st.onGuests(s, func(d *simhost.Domain, s *step) error {
				d.AgentRestart(s.For)
				return nil
			})
		}},
		"agent-hang": {on: onGuest, takes: lasts, run: eachGuest(hang, thaw)},
		"agent-thaw": {on: onGuest, run: eachGuest(thaw, nil)},
		"agent-lists": {on: onGuest, needs: []string{"interfaces"}, takes: lasts, run: eachGuest(func(d *simhost.Domain, s *step) error {
			d.SetAgentInterfaces(append([]simhost.Interface{}, s.cards...))
			return nil
		}, truth)},
		"agent-lists-truth": {on: onGuest, run: eachGuest(truth, nil)},

		"address":     {on: onGuest, needs: []string{"address"}, takes: lasts, run: (*Stage).setAddress},
		"lease-lose":  {on: onGuest, run: eachGuest(never((*simhost.Domain).LoseLease), nil)},
		"lease-end":   {on: onGuest, run: eachGuest(never((*simhost.Domain).ExpireLease), nil)},
		"lease-again": {on: onGuest, needs: []string{"address"}, takes: []string{"network", "expires"}, check: knownNetwork, run: eachGuest(secondLease, nil)},
		"arp-hide":    {on: onGuest, takes: lasts, run: eachGuest(arp(true), arp(false))},
		"arp-show":    {on: onGuest, run: eachGuest(arp(false), nil)},

		"proxy": {on: onGuest, takes: []string{"mode", "user", "password", "delay", "jitter", "banner", "for"},
			check: func(_ *Scenario, s *step) (string, string) {
				if !s.given["mode"] {
					return "", ""
				}
				return checkWord("mode", s.Mode, proxyModes)
			},
			run: (*Stage).setProxy},
	}
}

// secondLease gives a guest's card one more lease.
func secondLease(d *simhost.Domain, s *step) error {
	network := s.Network
	if network == "" {
		network = simhost.DefaultNetwork().Name
	}
	for _, a := range s.Address {
		d.Host().AddLease(network, simhost.Lease{MAC: d.MAC(), Address: a, Hostname: d.Name(), Expires: s.expiry(d.Host())})
	}
	return nil
}
