package demo

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// The actors, by number.
const (
	restarter = 2  // beelink: its agent restarts
	guarded   = 4  // beelink: its proxy asks for credentials
	lateAgent = 5  // beelink: its agent comes late at each boot
	rebooter  = 8  // kvm2: crashes and boots
	hanger    = 11 // local: its proxy hangs
	mute      = 12 // local: its agent hangs
	mover     = 13 // local: its address changes
	newcomer  = 14 // local: boots slowly
)

// A Step is one turn of the story.
type Step struct {
	// At is when it comes, counted from the beginning of a round.
	At time.Duration
	// Title says what happens, for the log.
	Title string

	do func(f *Fleet)
}

// Round is how long the story takes before it begins anew.
const Round = 180 * time.Second

// Story returns the steps of a round, in order. What a step does is undone by a
// later one, so that every round begins with a sound fleet.
func Story() []Step {
	return []Step{
		{10 * time.Second, "beelink: the agent of p-02 restarts, for 14 s", func(f *Fleet) {
			f.domain(restarter).AgentRestart(14 * time.Second)
		}},
		{30 * time.Second, "kvm2: the daemon is killed, for 15 s", func(f *Fleet) { f.byName[KVM2].Kill() }},
		{45 * time.Second, "kvm2: the daemon is back", func(f *Fleet) { f.up(KVM2) }},
		{58 * time.Second, "beelink: the proxy of p-04 wants another password", func(f *Fleet) {
			f.proxy(guarded, func(p *simhost.Proxy) { p.Password = "changed" })
		}},
		{78 * time.Second, "beelink: p-04 takes its password again", func(f *Fleet) {
			f.domain(guarded).SetProxy(sound(guarded))
		}},
		{88 * time.Second, "kvm2: p-08 crashes", func(f *Fleet) { f.domain(rebooter).Crash() }},
		{96 * time.Second, "kvm2: p-08 boots", func(f *Fleet) { f.start(rebooter) }},
		{108 * time.Second, "local: the proxy of p-11 hangs, for 22 s", func(f *Fleet) {
			f.proxy(hanger, func(p *simhost.Proxy) { p.Mode = simhost.ProxyHang })
		}},
		{122 * time.Second, "local: the agent of p-12 hangs, for 16 s", func(f *Fleet) { f.domain(mute).AgentHang() }},
		{130 * time.Second, "local: the proxy of p-11 goes on", func(f *Fleet) {
			f.domain(hanger).SetProxy(sound(hanger))
		}},
		{138 * time.Second, "local: the agent of p-12 goes on", func(f *Fleet) { f.domain(mute).AgentThaw() }},
		{142 * time.Second, "beelink: p-05 boots, its agent comes late", func(f *Fleet) { f.reset(lateAgent) }},
		{156 * time.Second, "local: p-13 gets another address", func(f *Fleet) { f.move(mover) }},
		{168 * time.Second, "local: p-14 boots slowly, as a new VM", func(f *Fleet) {
			f.domain(newcomer).LoseLease() // the lease of its last run would tell its address at once
			f.reset(newcomer)
		}},
	}
}

// boots returns how a VM comes up; most come up as ordinary guests do.
func boots(i int) simhost.Boot {
	switch i {
	case lateAgent:
		return simhost.Boot{Lease: 3 * time.Second, Agent: 18 * time.Second}
	case newcomer:
		return simhost.Boot{Lease: 8 * time.Second, Agent: 5 * time.Second}
	default:
		return simhost.Boot{}
	}
}

// tell tells the story until the context ends.
func (f *Fleet) tell(ctx context.Context) {
	begin := time.Now()
	for round := 0; ; round++ {
		for _, s := range Story() {
			at := begin.Add(time.Duration(round)*Round + s.At)
			t := time.NewTimer(time.Until(at))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
			f.log.Info("demo story", "step", s.Title)
			s.do(f)
		}
	}
}

// domain returns the VM of that number. A round never removes one, and an
// operator of the console cannot.
func (f *Fleet) domain(i int) *simhost.Domain {
	name := fmt.Sprintf("p-%02d", i)
	for _, h := range f.hosts {
		if d := h.Domain(name); d != nil {
			return d
		}
	}
	panic("demo: no VM " + name) // the fleet is built in this package
}

// proxy changes something about a VM's proxy.
func (f *Fleet) proxy(i int, change func(*simhost.Proxy)) {
	p := sound(i)
	change(&p)
	f.domain(i).SetProxy(p)
}

// start starts a VM; that an operator was quicker does not matter.
func (f *Fleet) start(i int) {
	if err := f.domain(i).Start(); err != nil {
		f.log.Debug("demo start", "vm", i, "error", err)
	}
}

// reset pulls a VM's plug and starts it again.
func (f *Fleet) reset(i int) {
	if err := f.domain(i).Destroy(); err != nil {
		f.log.Debug("demo destroy", "vm", i, "error", err)
	}
	f.start(i)
}

// up brings a daemon back.
func (f *Fleet) up(host string) {
	if err := f.byName[host].Start(); err != nil {
		f.log.Error("demo daemon", "host", host, "error", err)
	}
}

// move gives a VM the other of its two addresses.
func (f *Fleet) move(i int) {
	d := f.domain(i)
	here, there := netip.MustParsePrefix("192.168.123.113/24"), netip.MustParsePrefix("192.168.123.213/24")
	if a := d.Addresses(); len(a) > 0 && a[0] == here.Addr() {
		here = there
	}
	d.SetAddress(here)
}
