package provider

import (
	"context"
	"net/netip"
	"time"

	"virdeck/model"
)

// Listing is one look at all domains of a host.
type Listing struct {
	HostUUID   string // libvirt's UUID of the host, lower case; empty until this generation has told it
	Generation uint64 // of the link through which it was seen
	At         time.Time
	// Instances has every domain of the host, running or not. State is never
	// InstanceRunning or InstanceProvisioning on the strength of a listing
	// alone, since a listing knows no addresses; Domain and Incarnation tell
	// what it knows. Outcomes has at most the lease, where a lease is known.
	Instances []model.Instance
	ARPBroken bool // the host's ARP source cannot be read by its libvirt
}

// Find returns the instance of a domain by name.
func (l Listing) Find(domain string) (model.Instance, bool) {
	for _, in := range l.Instances {
		if in.Name == domain {
			return in, true
		}
	}
	return model.Instance{}, false
}

// GetRequest asks for one domain.
type GetRequest struct {
	Domain  string
	Sources []model.Source // the sources that may be asked
	Hint    netip.Addr     // the address known before; helps to choose among several, nothing else
	Fresh   bool           // do not answer from a recent listing
}

// Host is one libvirt host: what the controller asks of it.
//
// Get returns what it learned in the Instance even beside an error. Its errors:
// the context's own; ErrTransient (nothing learned; ErrLinkDown and ErrNotAsked
// say why); ErrNotFound (the domain is not there, seen through a live link).
// List returns the context's error or ErrTransient. Start, Stop and Restart
// count "it is already so" as success.
type Host interface {
	List(ctx context.Context) (Listing, error)
	Get(ctx context.Context, req GetRequest) (model.Instance, error)
	Start(ctx context.Context, domain string) error
	Stop(ctx context.Context, domain string) error
	Restart(ctx context.Context, domain string) error
	// Link never blocks.
	Link() model.LinkStatus
	// Reconnect closes the present connection under its callers and dials
	// again at once. It returns when a new generation is up, when the first
	// dial has failed (its error), or when ctx ends (the redial goes on).
	Reconnect(ctx context.Context) (ReconnectReport, error)
	// Close ends the link and all goroutines of the host.
	Close()
}

// ReconnectReport says what a forced reconnect did.
type ReconnectReport struct {
	From, To    uint64   // generations; To is 0 if none is up yet
	Interrupted []string // calls that were under way, in words
	Took        time.Duration
}

// What of the events about a host as a whole.
const (
	EventLinkUp     = "link up"    // a new generation, already subscribed to events
	EventIdentified = "identified" // this generation has told its host's UUID
	EventSubscribed = "subscribed" // this generation tells events now that it did not tell before
)

// Event is something that a host told of its own accord. It is a trigger to
// look, never a fact to act upon: it may be late, doubled or lost.
type Event struct {
	Host   model.HostName
	Domain string // empty: about the host as a whole
	What   string // "started", "agent connected", ...; EventLinkUp, EventIdentified
}
