package providertest

import (
	"fmt"
	"net/netip"
	"time"

	"virdeck/provider"
)

// Guest is a kind of guest. A rig has exactly one of each.
type Guest int

// The kinds.
const (
	// NAT runs, on a libvirt network with DHCP, with its agent up: every source
	// knows it.
	NAT Guest = iota
	// Bridged runs, bridged past its host, with its agent up: the agent alone
	// knows it.
	Bridged
	// NoAgent runs, on a libvirt network with DHCP, without an agent channel.
	NoAgent
	// Off is shut off; when started it boots on a libvirt network with DHCP and
	// brings its agent up.
	Off
	// Missing is a name that no domain of the host has.
	Missing
)

// Guests returns the kinds that are domains.
func Guests() []Guest { return []Guest{NAT, Bridged, NoAgent, Off} }

// String names the kind.
func (g Guest) String() string {
	switch g {
	case NAT:
		return "NAT guest"
	case Bridged:
		return "bridged guest"
	case NoAgent:
		return "guest without an agent channel"
	case Off:
		return "guest that is shut off"
	case Missing:
		return "missing guest"
	}
	return fmt.Sprintf("unknown-guest-%d", int(g))
}

// Fault is something that can be done to a rig.
type Fault int

// The faults that every rig can do. Those of the daemon ignore the guest.
const (
	AgentStop  Fault = iota // the agent's process ends
	AgentStart              // and is there again
	AgentHang               // SIGSTOP: connected and silent
	AgentThaw
	DaemonKill // SIGKILL; guests go on
	DaemonStart
	DaemonFreeze // SIGSTOP
	DaemonThaw
	DomainStart // behind the provider's back, as all that follow
	DomainDestroy
	DomainPause
	DomainResume

	// The faults that a rig may lack.

	AgentBare   // the agent lists interfaces, and no address on them
	LeaseLose   // the host forgets the guest's lease
	ARPFail     // the host's neighbour table cannot be read, with a message of no known bug
	NetworkGone // the libvirt network is undefined under its guest
	Refused     // every address source refuses the guest with code 8, invalid argument
)

// String names the fault.
func (f Fault) String() string {
	names := [...]string{
		"stop the agent", "start the agent", "hang the agent", "thaw the agent",
		"kill the daemon", "start the daemon", "freeze the daemon", "thaw the daemon",
		"start the domain", "destroy the domain", "pause the domain", "resume the domain",
		"make the agent list no address", "lose the lease", "fail ARP", "undefine the network", "refuse all reads of addresses",
	}
	if f < 0 || int(f) >= len(names) {
		return fmt.Sprintf("unknown-fault-%d", int(f))
	}
	return names[f]
}

// Rig is a host with guests, and the hands that do things to it.
//
// A rig is for one case. It begins sound: the daemon runs, each guest is what
// its kind says. Its agents' response timeout is set by the provider. What a
// case leaves behind, the rig's end repairs.
type Rig interface {
	// Host is the provider under test, new, with its link on the way up. The
	// rig closes it.
	Host() provider.Host
	// Name is the name of the guest's domain.
	Name(Guest) string
	// Address is the guest's true address, by its own word. The zero value
	// means that it is not known, as that of a guest that has not booted.
	Address(Guest) netip.Addr
	// Do does something and returns when it is done. An error that wraps
	// errors.ErrUnsupported says that this rig cannot do it at all.
	Do(Fault, Guest) error
	// Events returns what the provider has told so far, oldest first.
	Events() []provider.Event
	// Patience says how long things may take here.
	Patience() Patience
}

// Patience are limits. They are promises of the provider where it alone decides
// (AtOnce, Frozen, Forced), and the slowness of real machines elsewhere.
type Patience struct {
	AtOnce   time.Duration // an answer that needs no host: "the link is down"
	Call     time.Duration // a read of a sound guest on a sound host
	Agent    time.Duration // a read of a guest whose agent hangs
	Event    time.Duration // from a change to the event that tells it
	AgentUp  time.Duration // from the agent's start to its first answer
	Boot     time.Duration // from a start to the address
	Stop     time.Duration // a stop, the guest's own grace included
	Frozen   time.Duration // from a freeze to the link being called down
	Forced   time.Duration // a reconnect that the operator asks for, on a daemon that answers
	Recover  time.Duration // from the daemon's return to the link being up by itself
	Shared   time.Duration // how old an answer may be that the provider gives to several callers
	Interval time.Duration // between two looks while waiting
}
