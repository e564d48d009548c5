package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// The hosts of the fleet.
const (
	Beelink = "beelink" // its VMs are bridged past it: the agent alone knows addresses
	KVM2    = "kvm2"    // NAT
	Local   = "local"   // NAT
)

// Options change the demo. The zero value is the demo.
type Options struct {
	// Still leaves the story out: the fleet stands as it is at the start.
	Still bool
	// Log gets one line per step of the story. Nil means none.
	Log *slog.Logger
}

// A Proxy is one that is to be declared: a domain on a host with a port and,
// where its proxy asks for them, credentials.
type Proxy struct {
	Name     string
	Host     string
	Domain   string
	Port     int
	User     string
	Password string
}

// A Fleet is the demo's three hosts, their VMs and the story.
type Fleet struct {
	hosts   []*simhost.Host
	byName  map[string]*simhost.Host
	origin  *simhost.Origin
	proxies []Proxy
	log     *slog.Logger
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// New makes the fleet and starts its story, which ends with the context, or
// with Close. Close must be called in either case.
func New(ctx context.Context, opts Options) *Fleet {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Fleet{
		byName: map[string]*simhost.Host{},
		origin: simhost.NewOrigin(""),
		log:    opts.Log,
		cancel: cancel,
	}
	f.build()
	if !opts.Still {
		f.wg.Go(func() { f.tell(ctx) })
	}
	return f
}

// build sets the stage: twelve VMs have been up for long, p-05 boots with a late
// agent, and p-14 with a slow network.
func (f *Fleet) build() {
	network := func(gateway string) []simhost.NetworkSpec {
		return []simhost.NetworkSpec{{Name: "default", Gateway: netip.MustParsePrefix(gateway)}}
	}
	f.addHost(Beelink, []simhost.NetworkSpec{})
	f.addHost(KVM2, network("192.168.122.1/24"))
	f.addHost(Local, network("192.168.123.1/24"))
	for i := 1; i <= vms; i++ {
		spec := simhost.DomainSpec{Name: fmt.Sprintf("p-%02d", i), Running: true}
		host := Local
		switch {
		case i <= 5:
			host = Beelink
			spec.NICs = []simhost.NIC{{
				Bridge:    "br0",
				Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), 24)},
			}}
		case i <= 9:
			host = KVM2
		}
		spec.Proxy = sound(i)
		spec.Running = i != lateAgent && i != newcomer
		spec.Boot = boots(i)
		f.add(host, spec)
	}
	for _, i := range []int{lateAgent, newcomer} {
		f.start(i)
	}
}

// sound is the proxy of a VM as it is when nothing is wrong with it: each as far
// away as its neighbour is not, 15 to 60 ms, and never twice the same.
func sound(i int) simhost.Proxy {
	p := simhost.Proxy{Delay: time.Duration(15+i*17%40) * time.Millisecond, Jitter: 5 * time.Millisecond}
	if i == guarded {
		p.User, p.Password = "virdeck", "demo"
	}
	return p
}

// vms is how many VMs there are.
const vms = 14

func (f *Fleet) addHost(name string, networks []simhost.NetworkSpec) {
	h := simhost.New(simhost.Options{Name: name, Networks: networks, Origin: f.origin})
	f.hosts = append(f.hosts, h)
	f.byName[name] = h
}

func (f *Fleet) add(host string, spec simhost.DomainSpec) {
	d := f.byName[host].AddDomain(spec)
	f.proxies = append(f.proxies, Proxy{
		Name: spec.Name, Host: host, Domain: spec.Name, Port: d.Port(),
		User: spec.Proxy.User, Password: spec.Proxy.Password,
	})
}

// Hosts returns the names of the hosts in order.
func (f *Fleet) Hosts() []string {
	out := make([]string, 0, len(f.hosts))
	for _, h := range f.hosts {
		out = append(out, h.Name())
	}
	return out
}

// Host returns a host, or nil.
func (f *Fleet) Host(name string) *simhost.Host { return f.byName[name] }

// Proxies returns what is to be declared, in order.
func (f *Fleet) Proxies() []Proxy { return append([]Proxy(nil), f.proxies...) }

// Dial opens an in-memory connection to a host's daemon (see simhost.Host.Dial).
// A host that is not in the fleet is an error.
func (f *Fleet) Dial(ctx context.Context, host string) (net.Conn, error) {
	h := f.byName[host]
	if h == nil {
		return nil, fmt.Errorf("demo has no host %q", host)
	}
	return h.Dial(ctx)
}

// DialProxy opens an in-memory connection to the proxy at an address of any of
// the hosts' guests (see simhost.Host.DialProxy).
func (f *Fleet) DialProxy(ctx context.Context, network, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("demo: dial %s: %w", address, err)
	}
	for _, h := range f.hosts {
		if h.HasAddress(at.Addr()) {
			return h.DialProxy(ctx, network, address)
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
}

// OriginURL returns the page that the probes ask for; it shows the exit address.
func (f *Fleet) OriginURL() string { return f.origin.URL() }

// Origin returns the web server that the proxies reach.
func (f *Fleet) Origin() *simhost.Origin { return f.origin }

// DialOrigin opens an in-memory connection to the origin without a proxy, for
// control probes.
func (f *Fleet) DialOrigin(ctx context.Context, network, address string) (net.Conn, error) {
	return f.origin.Dial(ctx, network, address)
}

// Close ends the story, the hosts and the origin, and waits for them.
func (f *Fleet) Close() error {
	f.cancel()
	f.wg.Wait()
	var errs []error
	for _, h := range f.hosts {
		errs = append(errs, h.Close())
	}
	errs = append(errs, f.origin.Close())
	return errors.Join(errs...)
}

var _ io.Closer = (*Fleet)(nil)
