package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// Options configures a Host.
type Options struct {
	Link         LinkOptions // Host, Dial and Endpoint at least
	Prefer       Family
	AgentTimeout time.Duration // given to libvirt for each running domain; 0 leaves its default, which is to wait for ever
	// OnEvent is told of everything that the host tells. It must not block.
	OnEvent func(provider.Event)
}

// readLimit bounds each shared read of the host, apart from its callers.
const readLimit = 5 * time.Second

// listingAge is how old a shared listing may be for a Get: young enough that a
// burst of Gets shares one, too young to hide anything from a poll.
const listingAge = time.Second

// Host is a libvirt host. It implements provider.Host.
type Host struct {
	opts Options
	link *Link
	name model.HostName

	listing shared[looked]

	mu        sync.Mutex
	infos     map[string]cachedInfo // by UUID
	agents    map[string]*agentCall // by UUID; two proxies in one VM share the question
	nets      *networks             // of the newest connection that was asked for leases
	uuid      string                // of the host
	uuidGen   uint64                // the generation that told it
	noEvents  noEvents
	arpBroken bool
	clock     clock
	hung      map[string]quarantine            // by UUID
	seen      *session                         // the newest connection
	busy      map[golibvirt.UUID]chan struct{} // VMs on which a lifecycle call works
	bases     map[string]*baseFlight           // uploads of base images under way, by pool and volume

	marks marks
}

var (
	_ provider.Host    = (*Host)(nil)
	_ provider.Builder = (*Host)(nil)
)

// cachedInfo is a domain's XML as far as it matters, for one incarnation on one
// connection.
type cachedInfo struct {
	gen         uint64
	incarnation model.Incarnation
	info        domainInfo
	timeoutSet  bool   // the agent's response timeout is set for this incarnation
	timeoutNote string // why it could not be
}

// agentCall is what a guest's agent said last.
type agentCall = shared[[]golibvirt.DomainInterface]

// New starts a host: its link dials at once.
func New(o Options) *Host {
	h := &Host{opts: o, name: o.Link.Host, infos: map[string]cachedInfo{}, agents: map[string]*agentCall{}, hung: map[string]quarantine{},
		busy: map[golibvirt.UUID]chan struct{}{}, bases: map[string]*baseFlight{}}
	if h.opts.OnEvent == nil {
		h.opts.OnEvent = func(provider.Event) {}
	}
	o.Link.onUp = h.onUp
	tell := o.Link.OnChange
	o.Link.OnChange = func(st model.LinkStatus) {
		h.listing.invalidate() // what another link saw does not answer for this one
		if tell != nil {
			tell(st)
		}
	}
	h.link = NewLink(o.Link)
	return h
}

// Link implements provider.Host.
func (h *Host) Link() model.LinkStatus {
	st := h.link.Status()
	h.mu.Lock()
	defer h.mu.Unlock()
	st.ClockDiff, st.ClockError, st.ClockKnown = h.clock.diff, h.clock.err, h.clock.known
	st.EventsOff = h.noEvents.text(st.Generation)
	return st
}

// Close implements provider.Host.
func (h *Host) Close() { h.link.Close() }

// Reconnect implements provider.Host.
func (h *Host) Reconnect(ctx context.Context) (provider.ReconnectReport, error) {
	rep, err := h.link.Reconnect(ctx)
	if err != nil {
		return rep, h.wrap(err)
	}
	return rep, nil
}

// wrap names the host.
func (h *Host) wrap(err error) error { return fmt.Errorf("host %s: %w", h.name, err) }

// readErr is the error of a read: the context's own, "not found", or transient
// whatever the code beneath says. A host that refuses reads condemns no proxy.
func (h *Host) readErr(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, provider.ErrTransient), errors.Is(err, provider.ErrNotFound):
		return h.wrap(err)
	}
	return fmt.Errorf("host %s: %w: %w", h.name, provider.ErrTransient, err)
}

// limited puts it into words when a call was ended by a limit of ours: nobody
// else's deadline has passed.
func limited(err error, limit time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return provider.Transient(fmt.Sprintf("no answer within %s", limit), nil)
	}
	return err
}

// readCtx is for reads that several callers share: none of them may end it.
func readCtx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), readLimit)
}
