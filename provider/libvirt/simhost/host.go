package simhost

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// Options say what a simulated host is. The zero value is usable: a host
// "sim" with the NAT network "default" and an origin of its own.
type Options struct {
	// Name is the host name that the daemon reports. Default "sim".
	Name string
	// UUID is the host UUID in the capabilities. Zero means one derived from Name.
	UUID [16]byte
	// LibVersion is what ConnectGetLibVersion says:
	// 1,000,000*major + 1,000*minor + micro. Default 9,000,000.
	LibVersion uint64
	// Seed makes UUIDs, MACs and garbage repeatable. Zero is a seed too.
	Seed uint64
	// Networks are the libvirt networks. Nil means [DefaultNetwork] alone; an
	// empty list that is not nil means none.
	Networks []NetworkSpec
	// Pools are the storage pools. Nil means [DefaultPool] alone; an empty list
	// that is not nil means none.
	Pools []PoolSpec
	// OnDefine, if not nil, is told of each domain that a client defines, before
	// it is made, and may fill in what the XML does not say: how its guest boots,
	// its addresses, its proxy. It must not call the host's methods.
	OnDefine func(*DomainSpec)
	// Origin is the web server behind the proxies. Nil means a new one that
	// Close of this host ends; one that is given is shared and not ended.
	Origin *Origin

	// MaxRequests is how many calls of one connection the daemon takes before
	// it stops reading from it (max_client_requests). Default 5.
	MaxRequests int
	// Workers and PrioWorkers are the daemon's pools: normal workers take every
	// call, priority workers only those that never wait for a guest. Defaults
	// 20 and 5.
	Workers, PrioWorkers int
	// Work is processor time that each call takes beyond what the simulation
	// needs, for benchmarks: a real daemon's cheapest call takes some 80 µs more.
	// It is spun away, so it has no place in virtual time.
	Work time.Duration
	// ReadOnly refuses writes and the agent (code 29), as the read-only socket does.
	ReadOnly bool
	// NoRouteAfter is how long a dial to an address that nobody has takes before
	// it fails (EHOSTUNREACH): the neighbour lookup of a real kernel. Default 3 s.
	NoRouteAfter time.Duration
}

// A Host is one simulated libvirt daemon with its domains, its networks, and
// the guests and proxies behind them. All methods are safe for concurrent use.
type Host struct {
	opts      Options
	origin    *Origin
	ownOrigin bool
	procs     map[Proc]procedure
	boot      time.Time // when the host came up, for CPU times

	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the host

	mu        sync.Mutex
	closed    bool
	rng       *rand.Rand
	daemon    *daemon // nil while killed
	refuse    bool
	off       bool // see PowerOff
	auth      Auth
	frozen    *gate
	listeners map[*unixListener]struct{}
	domains   []*Domain
	byUUID    map[[16]byte]*Domain
	names     map[string]*Domain
	holders   map[netip.Addr][]*nic // whose guests have the address, up or not
	nextID    int32
	vnet      int
	macs      uint32 // how many were generated
	nets      []*network
	pools     []*pool
	faults    []*installed
	calls     map[Proc]int
	asked     map[libvirt.DomainInterfaceAddressesSource]int
	dials     int
	pings     int
	arpError  string
	noEvents  bool
	clock     time.Duration // how far the daemon's clock is ahead
	claims    uint64        // order in which guests took their addresses

	violations []string
}

// New makes a host; its daemon runs at once. Close ends it.
func New(opts Options) *Host {
	if opts.Name == "" {
		opts.Name = "sim"
	}
	if opts.UUID == ([16]byte{}) {
		opts.UUID = derivedUUID("host", opts.Name)
	}
	if opts.LibVersion == 0 {
		opts.LibVersion = 9_000_000
	}
	if opts.Networks == nil {
		opts.Networks = []NetworkSpec{DefaultNetwork()}
	}
	if opts.Pools == nil {
		opts.Pools = []PoolSpec{DefaultPool()}
	}
	if opts.MaxRequests <= 0 {
		opts.MaxRequests = 5
	}
	if opts.Workers <= 0 {
		opts.Workers = 20
	}
	if opts.PrioWorkers <= 0 {
		opts.PrioWorkers = 5
	}
	if opts.NoRouteAfter <= 0 {
		opts.NoRouteAfter = 3 * time.Second
	}
	h := &Host{
		opts:      opts,
		origin:    opts.Origin,
		boot:      time.Now(),
		rng:       rand.New(rand.NewPCG(opts.Seed, 0x5eed)),
		frozen:    newGate(),
		listeners: map[*unixListener]struct{}{},
		byUUID:    map[[16]byte]*Domain{},
		names:     map[string]*Domain{},
		holders:   map[netip.Addr][]*nic{},
		calls:     map[Proc]int{},
		asked:     map[libvirt.DomainInterfaceAddressesSource]int{},
	}
	if h.origin == nil {
		h.origin, h.ownOrigin = NewOrigin(""), true
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.procs = procedures()
	for _, spec := range opts.Networks {
		h.nets = append(h.nets, newNetwork(spec))
	}
	for _, spec := range opts.Pools {
		h.pools = append(h.pools, h.newPool(spec))
	}
	h.daemon = h.newDaemon()
	return h
}

// Name returns the host name.
func (h *Host) Name() string { return h.opts.Name }

// UUID returns the host UUID that the capabilities show.
func (h *Host) UUID() [16]byte { return h.opts.UUID }

// Origin returns the web server behind the host's proxies.
func (h *Host) Origin() *Origin { return h.origin }

// Dial opens an in-memory connection to the daemon. It does not wait: a frozen
// daemon's connection is accepted and stays silent, as on a real unix socket. A
// daemon that is killed, refuses or is closed gives a *net.OpError with
// ECONNREFUSED; a context that has ended gives its error.
func (h *Host) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: simAddr(h.opts.Name), Err: err}
	}
	client, server := newPipe("unix", simAddr("client"), simAddr(h.opts.Name))
	if !h.accept(server) {
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: simAddr(h.opts.Name), Err: syscall.ECONNREFUSED}
	}
	return client, nil
}

// accept gives a new connection to the running daemon, or says no.
func (h *Host) accept(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.daemon == nil || h.refuse {
		return false
	}
	h.dials++
	h.daemon.serve(c)
	return true
}

// Kill ends the daemon as kill -9 does: connections break, calls in it are lost,
// event registrations too; guests go on. [Host.Start] brings it back.
func (h *Host) Kill() {
	h.mu.Lock()
	d := h.daemon
	h.daemon = nil
	ls := h.listenerList()
	h.mu.Unlock()
	for _, l := range ls {
		l.down()
	}
	if d != nil {
		d.stop()
	}
}

// Start brings a killed daemon back, and a host that is off with it. It has no
// effect on a running or closed one. A daemon that is new to its guests' agents
// syncs with each before the first command, for 5 s at most.
// Unix sockets of [Host.ListenUnix] listen again; an error says which could not.
func (h *Host) Start() error {
	h.mu.Lock()
	if h.closed || h.daemon != nil {
		h.mu.Unlock()
		return nil
	}
	for _, d := range h.domains {
		d.guest.synced = false // its channels to the agents are new
	}
	if h.off {
		h.bootUp()
	}
	h.daemon = h.newDaemon()
	h.frozen.open()
	ls := h.listenerList()
	h.mu.Unlock()
	for _, l := range ls {
		if err := l.up(); err != nil {
			return fmt.Errorf("simulated host %s: listen again: %w", h.opts.Name, err)
		}
	}
	return nil
}

// Freeze stops the daemon as SIGSTOP does: connections are accepted and stay
// silent, calls are not answered, events are not sent. Guests go on.
func (h *Host) Freeze() { h.frozen.shut() }

// Thaw lets a frozen daemon go on; it answers what it was asked meanwhile.
func (h *Host) Thaw() { h.frozen.open() }

// Refuse makes the daemon refuse (true) or take (false) new connections. Those
// that are open stay.
func (h *Host) Refuse(refuse bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = refuse
}

// SetARPError makes every ARP read fail with this message: as old daemons on
// newer kernels do ([ARPWrongLength], [ARPMalformed]), with code 1 for an
// "internal error", or with code 38, a system's error ([ARPNoBuffer]); "" ends
// it.
func (h *Host) SetARPError(message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arpError = message
}

// DropEvents loses all events from now on (true) or sends them again (false).
func (h *Host) DropEvents(drop bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noEvents = drop
}

// Calls returns how often each procedure was called since the last
// ResetCalls, those that failed or were hit by a fault included.
func (h *Host) Calls() map[Proc]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.calls)
}

// Asked returns how often DomainInterfaceAddresses was called for each source
// since the last ResetCalls, without the calls that a fault kept from being
// carried out.
func (h *Host) Asked() map[libvirt.DomainInterfaceAddressesSource]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.asked)
}

// ResetCalls sets all counts of Calls, Asked, Dials and Pings to zero.
func (h *Host) ResetCalls() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.calls)
	clear(h.asked)
	h.dials, h.pings = 0, 0
}

// Dials returns how many connections the daemon took since the last ResetCalls.
func (h *Host) Dials() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dials
}

// Pings returns how many keepalive pings the daemon read since the last ResetCalls.
func (h *Host) Pings() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pings
}

// Conns returns how many client connections are open now.
func (h *Host) Conns() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.daemon == nil {
		return 0
	}
	return h.daemon.connCount()
}

// Close ends the daemon, the guests and their proxies, and waits until every
// goroutine of the host has ended. Closing twice is harmless.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		h.wg.Wait()
		return nil
	}
	h.closed = true
	h.cancel()
	d := h.daemon
	h.daemon = nil
	ls := h.listenerList()
	var conns []net.Conn
	for _, dom := range h.domains {
		dom.stopTimers()
		conns = append(conns, dom.takeConns()...)
	}
	h.mu.Unlock()

	var err error
	for _, l := range ls {
		if e := l.Close(); e != nil && err == nil {
			err = e
		}
	}
	if d != nil {
		d.stop()
	}
	h.frozen.open()
	for _, c := range conns {
		_ = c.Close() // ours, and going away
	}
	h.wg.Wait()
	if h.ownOrigin {
		if e := h.origin.Close(); e != nil && err == nil {
			err = e
		}
	}
	return err
}
