package simhost

import (
	"net/netip"
	"slices"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// agentState is the guest agent as the channel shows it.
type agentState int

const (
	agentDown agentState = iota // not connected
	agentUp
	agentHung // connected and stopped: it answers nothing
)

// guest is what runs inside a domain, as far as it can be seen from outside.
// Guarded by the host's mutex, but for job.
type guest struct {
	net        bool // has its address and answers on it
	agent      agentState
	agentLists bool // the agent lists addresses already
	synced     bool // the daemon has talked to this agent since it connected
	override   []Interface
	overridden bool
	proxyUp    bool
	arpHidden  bool
	timeout    int32 // DomainAgentSetResponseTimeout, seconds; -1 is the default
	timers     []*time.Timer

	// job is the domain's agent job: it holds one token while an agent call runs.
	job chan struct{}
}

// reset is the guest's state without a running system in it.
func (g *guest) reset(d *Domain) {
	d.stopTimers()
	*g = guest{job: g.job, timeout: timeoutDefault, override: g.override, overridden: g.overridden}
}

// bootStages sets the clock for what comes up when.
func (g *guest) bootStages(d *Domain, b Boot) {
	stage := func(at time.Duration, reach func()) {
		if at >= 0 {
			g.after(d, at, func() { reach(); d.notify() })
		}
	}
	stage(b.Lease, func() { g.netUp(d) })
	stage(b.Agent, func() { g.agentUp(d) })
	stage(b.AgentAddress, func() { g.agentLists = true })
	stage(b.Proxy, func() { g.proxyUp = true })
}

// after runs f under the host's mutex, unless this run of the guest has ended.
func (g *guest) after(d *Domain, wait time.Duration, f func()) {
	var t *time.Timer
	// The timer may fire at once; the mutex, held by the caller, orders that.
	t = time.AfterFunc(wait, func() {
		d.h.mu.Lock()
		defer d.h.mu.Unlock()
		if i := slices.Index(g.timers, t); i >= 0 && !d.h.closed {
			g.timers = slices.Delete(g.timers, i, i+1)
			f()
		}
	})
	g.timers = append(g.timers, t)
}

func (d *Domain) stopTimers() {
	for _, t := range d.guest.timers {
		t.Stop()
	}
	d.guest.timers = nil
}

// netUp gives the guest its addresses and, where there is DHCP, its leases.
func (g *guest) netUp(d *Domain) {
	g.net = true
	now := d.h.now()
	for _, n := range d.nics {
		d.h.claims++
		n.claimed = d.h.claims
		if net := d.h.network(n.spec.Network); net != nil {
			net.grant(d, n, now)
		}
	}
}

func (g *guest) agentUp(d *Domain) {
	if d.spec.NoAgentChannel || g.agent != agentDown {
		return
	}
	g.agent, g.synced = agentUp, false
	d.h.emitAgent(d, libvirt.ConnectDomainEventAgentLifecycleStateConnected, libvirt.ConnectDomainEventAgentLifecycleReasonChannel)
}

// netRunning says whether a guest with an address runs (paused counts: its
// lease is renewed when it goes on, and nothing measured says otherwise).
func (d *Domain) netRunning() bool { return d.active() && d.guest.net }

// AgentStop ends the agent in the guest: its channel disconnects (event), calls
// that wait for it fail with code 86, as do new ones.
func (d *Domain) AgentStop() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.agentStop()
}

func (d *Domain) agentStop() {
	if d.guest.agent == agentDown {
		return
	}
	d.guest.agent = agentDown
	d.h.emitAgent(d, libvirt.ConnectDomainEventAgentLifecycleStateDisconnected, libvirt.ConnectDomainEventAgentLifecycleReasonChannel)
	d.notify()
}

// AgentStart starts the agent in an active guest (event), also one whose boot
// would never have.
func (d *Domain) AgentStart() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.agentStart()
}

func (d *Domain) agentStart() {
	if !d.active() {
		return
	}
	d.guest.agentUp(d)
	d.guest.agentLists = true
	d.notify()
}

// AgentRestart stops the agent and starts it again after the gap.
func (d *Domain) AgentRestart(gap time.Duration) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if !d.active() {
		return
	}
	d.agentStop()
	d.guest.after(d, gap, d.agentStart)
}

// AgentHang stops the agent's process in the guest (SIGSTOP): the channel stays
// connected, calls block: without limit when the daemon has talked to this agent
// before, else for libvirt's 5 s; with a response timeout set, for that long. No
// effect on an agent that is not connected.
func (d *Domain) AgentHang() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if d.guest.agent == agentUp {
		d.guest.agent = agentHung
		d.notify()
	}
}

// AgentThaw lets a hung agent go on; calls that wait for it are answered.
func (d *Domain) AgentThaw() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if d.guest.agent == agentHung {
		d.guest.agent = agentUp
		d.notify()
	}
}

// SetAgentInterfaces makes the agent list exactly these, whatever the guest
// has; nil lets it list the truth again: lo, and each card by its MAC with the
// guest's addresses and a link-local one.
func (d *Domain) SetAgentInterfaces(list []Interface) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.guest.override, d.guest.overridden = slices.Clone(list), list != nil
}

// SetAddress gives the first NIC of the guest other addresses at once: its
// lease, its agent and the ARP table show them, and its proxy answers there. No
// address at all leaves the guest without one. No effect without a NIC.
func (d *Domain) SetAddress(addrs ...netip.Prefix) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if len(d.nics) == 0 {
		return
	}
	n := d.nics[0]
	d.h.setAddrs(n, addrs)
	if d.netRunning() {
		d.guest.netUp(d)
	}
	d.notify()
}

// LoseLease takes the guest's leases out of the daemon's list, as a lost lease
// file does. The next boot or SetAddress brings them back.
func (d *Domain) LoseLease() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	for _, n := range d.nics {
		if net := d.h.network(n.spec.Network); net != nil {
			net.drop(n.mac)
		}
	}
}

// ExpireLease lets the guest's leases end now, unrenewed: the daemon, which
// filters ended leases, lists none. The next boot or SetAddress brings them back.
func (d *Domain) ExpireLease() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	now := d.h.now().daemon
	for _, n := range d.nics {
		if net := d.h.network(n.spec.Network); net != nil {
			for _, l := range net.byMAC[n.mac] {
				l.Expires, l.lost = now, true
			}
		}
	}
}

// HideARP makes the ARP table answer with nothing for this guest (true), as it
// does for a neighbour in DELAY or PROBE and in a table of many; false ends it.
func (d *Domain) HideARP(hide bool) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.guest.arpHidden = hide
}
