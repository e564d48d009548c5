package libvirt_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// The benchmarks compare within one run, since nothing else of a machine stands
// still: two ways to do the same take turns, and the figure is the median of
// five ratios. One iteration is such a run; b.N is of no use to them, and ns/op
// is left out.

// In each of the rounds both take so many turns, of so long, one after the
// other: short ones, so that what else the machine does falls on both.
const (
	rounds = 5
	turns  = 12
	turn   = 20 * time.Millisecond
)

// onSocket is a simulated host on a unix socket with a provider on it and, beside
// that, the bare client library.
type onSocket struct {
	sim  *simhost.Host
	prov *libvirt.Host
	bare *golibvirt.Libvirt
	dial libvirt.DialFunc
}

func newOnSocket(b *testing.B, sim *simhost.Host) *onSocket {
	b.Helper()
	dir, err := os.MkdirTemp("", "vd-") // short: a socket's path has little room
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	if _, err := sim.ListenUnix(path); err != nil { // closed with the host
		b.Fatal(err)
	}
	e := libvirt.Endpoint{Transport: libvirt.TransportUnix, Sockets: []string{path}}
	o := &onSocket{sim: sim, dial: e.Dialer(), prov: libvirt.New(libvirt.Options{
		Link: libvirt.LinkOptions{Host: "sim", Dial: e.Dialer(), Endpoint: e.String()}, AgentTimeout: 2 * time.Second,
	})}
	conn, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	o.bare = golibvirt.NewWithDialer(oneConn{conn})
	if err := o.bare.Connect(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		o.prov.Close()
		_ = conn.Close() // the bare client ends with it
		if err := sim.Close(); err != nil {
			b.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return o
}

type oneConn struct{ c net.Conn }

func (o oneConn) Dial() (net.Conn, error) { return o.c, nil }

// work makes the simulated daemon as slow as a real one, whose cheapest call
// was measured at 108 µs; without it a call takes some 26.
const work = 80 * time.Microsecond

// natHost is a host of n NAT guests that have been up for long.
func natHost(n int) *simhost.Host {
	h := simhost.New(simhost.Options{Name: "sim", Work: work, Networks: []simhost.NetworkSpec{{Name: "default", Gateway: netip.MustParsePrefix("10.64.0.1/10")}}})
	for i := range n {
		h.AddDomain(simhost.DomainSpec{Name: guestName(i), Running: true})
	}
	return h
}

// sample is what a round was like.
type sample struct {
	perSecond float64
	p50, p99  time.Duration
}

// tally is what was done in the turns of a round.
type tally struct {
	took    []time.Duration
	elapsed time.Duration
}

// take lets callers do f for a turn. f gets the caller's number.
func (y *tally) take(b *testing.B, callers int, f func(caller int) error) {
	b.Helper()
	var wg sync.WaitGroup
	took := make([][]time.Duration, callers)
	start := time.Now()
	for c := range callers {
		wg.Go(func() {
			for time.Since(start) < turn {
				t := time.Now()
				if err := f(c); err != nil {
					b.Error(err)
					return
				}
				took[c] = append(took[c], time.Since(t))
			}
		})
	}
	wg.Wait()
	y.elapsed += time.Since(start)
	y.took = append(y.took, slices.Concat(took...)...)
}

func (y *tally) sample(b *testing.B) sample {
	b.Helper()
	all := slices.Sorted(slices.Values(y.took))
	if len(all) == 0 {
		b.Fatal("nothing was done")
	}
	return sample{float64(len(all)) / y.elapsed.Seconds(), all[len(all)/2], all[len(all)*99/100]}
}

// versus lets two ways take turns and returns the samples of each.
func versus(b *testing.B, callers int, one, other func(int) error) (ones, others []sample) {
	b.Helper()
	for range rounds {
		var a, z tally
		for range turns {
			a.take(b, callers, one)
			z.take(b, callers, other)
		}
		ones, others = append(ones, a.sample(b)), append(others, z.sample(b))
	}
	return ones, others
}

// median of what f makes of each pair.
func median(ones, others []sample, f func(one, other sample) float64) float64 {
	var all []float64
	for i := range ones {
		all = append(all, f(ones[i], others[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// BenchmarkLink compares the cheapest call through a link with the same call on
// the bare client library, on the same daemon's unix socket. With 4 callers the
// link must do 0.85 of the bare library's calls at least.
func BenchmarkLink(b *testing.B) {
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			o := newOnSocket(b, natHost(1))
			l := libvirt.NewLink(libvirt.LinkOptions{Host: "sim", Dial: o.dial})
			b.Cleanup(l.Close)
			ratio := o.duel(b, callers,
				func(int) error { return libvirt.LinkCall(context.Background(), l) },
				func(int) error { _, err := o.bare.ConnectGetLibVersion(); return err })
			if callers == 4 && ratio < 0.85 {
				b.Errorf("%.2f of the bare library's calls a second, want at least 0.85", ratio)
			}
		})
	}
}

// BenchmarkGet compares the cheapest read of an address (ARP alone, one call)
// with its one call on the bare client library.
func BenchmarkGet(b *testing.B) {
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			o := newOnSocket(b, natHost(100))
			doms := make([]golibvirt.Domain, callers)
			for c := range callers {
				d, err := o.bare.DomainLookupByName(guestName(c))
				if err != nil {
					b.Fatal(err)
				}
				doms[c] = d
			}
			o.duel(b, callers, func(c int) error {
				_, err := o.prov.Get(context.Background(), provider.GetRequest{Domain: guestName(c), Sources: []model.Source{model.SourceARP}})
				return err
			}, func(c int) error {
				_, err := o.bare.DomainInterfaceAddresses(doms[c], uint32(golibvirt.DomainInterfaceAddressesSrcArp), 0)
				return err
			})
		})
	}
}

// duel lets ours and the bare library's way take turns, reports both, and
// returns the ratio of their calls a second.
func (o *onSocket) duel(b *testing.B, callers int, ours, bare func(int) error) (ratio float64) {
	b.Helper()
	var first tally // the first ones cost more
	first.take(b, callers, ours)
	first.take(b, callers, bare)
	for b.Loop() {
		us, them := versus(b, callers, ours, bare)
		ratio = median(us, them, func(u, t sample) float64 { return u.perSecond / t.perSecond })
		b.ReportMetric(ratio, "ours/bare")
		b.ReportMetric(median(us, them, func(u, _ sample) float64 { return u.perSecond }), "calls/s")
		b.ReportMetric(median(us, them, func(_, t sample) float64 { return t.perSecond }), "bare-calls/s")
		b.ReportMetric(median(us, them, func(u, _ sample) float64 { return micros(u.p50) }), "p50-us")
		b.ReportMetric(median(us, them, func(_, t sample) float64 { return micros(t.p50) }), "bare-p50-us")
		b.ReportMetric(median(us, them, func(u, _ sample) float64 { return micros(u.p99) }), "p99-us")
		b.ReportMetric(median(us, them, func(_, t sample) float64 { return micros(t.p99) }), "bare-p99-us")
	}
	b.ReportMetric(0, "ns/op")
	return ratio
}

// BenchmarkPoll compares a steady poll of a hundred domains with the two bulk
// calls that it cannot do without. It must stay within twice their time.
func BenchmarkPoll(b *testing.B) {
	o := newOnSocket(b, natHost(100))
	for i := range 100 {
		if _, err := o.prov.Get(context.Background(), provider.GetRequest{Domain: guestName(i), Sources: []model.Source{model.SourceLease}}); err != nil {
			b.Fatal(err)
		}
	}
	network, err := o.bare.NetworkLookupByName("default")
	if err != nil {
		b.Fatal(err)
	}
	poll := func(int) error {
		_, err := o.prov.List(context.Background())
		return err
	}
	bulk := func(int) error {
		if _, err := o.bare.ConnectGetAllDomainStats(nil, 1, 0); err != nil {
			return err
		}
		_, _, err := o.bare.NetworkGetDhcpLeases(network, nil, 1, 0)
		return err
	}
	for b.Loop() {
		polls, bulks := versus(b, 1, poll, bulk)
		ratio := median(polls, bulks, func(p, q sample) float64 { return float64(p.p50) / float64(q.p50) })
		b.ReportMetric(ratio, "poll/bulk")
		b.ReportMetric(median(polls, bulks, func(p, _ sample) float64 { return micros(p.p50) }), "poll-p50-us")
		b.ReportMetric(median(polls, bulks, func(_, q sample) float64 { return micros(q.p50) }), "bulk-p50-us")
		if ratio > 2 {
			b.Errorf("a poll takes %.2f of its bulk calls' time, want at most 2", ratio)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkUnaddressed reads a hundred guests whose agents are not up, four at
// a time, and says what that costs each.
func BenchmarkUnaddressed(b *testing.B) {
	const n = 100
	o := newOnSocket(b, unaddressed(n))
	round := func() {
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				for i := c; i < n; i += 4 {
					if _, err := o.prov.Get(context.Background(), provider.GetRequest{Domain: guestName(i), Sources: model.Sources()}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	round() // descriptions are read once
	o.sim.ResetCalls()
	times := 0
	for b.Loop() {
		round()
		times++
	}
	b.ReportMetric(float64(o.sim.Asked()[golibvirt.DomainInterfaceAddressesSrcAgent])/float64(n*times), "agent-calls/guest")
	b.ReportMetric(micros(b.Elapsed())/float64(n*times), "us/guest")
}

// BenchmarkNeighbours compares the reads of a neighbour while as many slow calls
// hang as the slots allow (two agents, one write) with the same reads when all
// is quiet.
func BenchmarkNeighbours(b *testing.B) {
	o := newOnSocket(b, natHost(100))
	read := func(c int) error {
		_, err := o.prov.Get(context.Background(), provider.GetRequest{Domain: guestName(10 + c), Sources: []model.Source{model.SourceARP}})
		return err
	}
	for b.Loop() {
		var quiet, hung []sample
		for range rounds {
			var q, h tally
			for range turns {
				q.take(b, 1, read)
			}
			let := o.hang(b)
			for range turns {
				h.take(b, 1, read)
			}
			let()
			quiet, hung = append(quiet, q.sample(b)), append(hung, h.sample(b))
		}
		b.ReportMetric(median(hung, quiet, func(h, q sample) float64 { return float64(h.p99) / float64(q.p99) }), "hung/quiet-p99")
		b.ReportMetric(median(hung, quiet, func(h, _ sample) float64 { return micros(h.p99) }), "hung-p99-us")
		b.ReportMetric(median(hung, quiet, func(_, q sample) float64 { return micros(q.p99) }), "quiet-p99-us")
	}
	b.ReportMetric(0, "ns/op")
	if g := o.prov.Link().Generation; g != 1 {
		b.Errorf("generation %d, want 1: hung calls cost the link", g)
	}
}

// hang makes two agent calls and a write hang, and returns what ends them.
func (o *onSocket) hang(b *testing.B) (let func()) {
	b.Helper()
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	removes := []func(){cancel}
	for i := range 2 {
		removes = append(removes, o.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Domain: guestName(i), Kind: simhost.FaultHang}))
		wg.Go(func() {
			_, _ = o.prov.Get(ctx, provider.GetRequest{Domain: guestName(i), Sources: []model.Source{model.SourceAgent}}) // it hangs, that is all
		})
	}
	removes = append(removes, o.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainShutdownFlags, Domain: guestName(2), Kind: simhost.FaultHang, Times: 1}))
	wg.Go(func() { _ = o.prov.Stop(ctx, guestName(2)) }) // as above; with the fault removed the caller is gone
	for deadline := time.Now().Add(5 * time.Second); o.prov.Link().InFlight < 3; {
		if time.Now().After(deadline) {
			b.Fatalf("%d calls hang, want 3", o.prov.Link().InFlight)
		}
		runtime.Gosched()
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
		wg.Wait()
		for deadline := time.Now().Add(5 * time.Second); o.prov.Link().InFlight > 0 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if d := o.sim.Domain(guestName(2)); d.ID() < 0 {
			_ = d.Start() // where the shutdown got through
		}
	}
}

// BenchmarkBig lists 5,000 domains through the provider; the simulated daemon
// and the provider are in this process.
func BenchmarkBig(b *testing.B) {
	const n = 5000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o := newOnSocket(b, natHost(n))
	for b.Loop() {
		l, err := o.prov.List(context.Background())
		if err != nil || len(l.Instances) != n {
			b.Fatalf("%d instances, %v", len(l.Instances), err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n/1024, "KiB/domain")
	b.ReportMetric(micros(b.Elapsed())/float64(b.N)/n, "us/domain")
	runtime.KeepAlive(o)
}
