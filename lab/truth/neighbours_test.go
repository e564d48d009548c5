//go:build lab

package truth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/providertest"
)

// The neighbour, whose reads need no agent, and those whose calls hang.
const neighbour = providertest.NAT

// fleet brings all guests of a host up for one test.
func (h *labHost) fleet(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := h.switchOff(); err != nil {
			t.Errorf("switching %s off: %v", domain(providertest.Off), err)
		}
	})
	if err := h.behind(providertest.Off, (*golibvirt.Libvirt).DomainCreate); err != nil {
		t.Fatal(err)
	}
	for _, g := range []guest{providertest.NAT, providertest.Bridged, providertest.Off} {
		if err := h.responds(g, 40*time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// patient makes libvirt wait for a guest's agent without a limit, as it does by
// default; seconds of -2 is VIR_DOMAIN_AGENT_RESPONSE_TIMEOUT_BLOCK.
func (h *labHost) patient(t *testing.T, g guest) {
	t.Helper()
	set := func(seconds int32) error {
		return h.behind(g, func(l *golibvirt.Libvirt, d golibvirt.Domain) error {
			_, err := l.DomainAgentSetResponseTimeout(d, seconds, 0)
			return err
		})
	}
	t.Cleanup(func() {
		if err := set(2); err != nil {
			t.Errorf("agent timeout of %s: %v", domain(g), err)
		}
	})
	if err := set(-2); err != nil {
		t.Fatal(err)
	}
}

// halt stops a guest's QEMU itself, found by the file that libvirt keeps: the
// machine and its monitor hang, and whoever waits for them.
func (h *labHost) halt(t *testing.T, gs ...guest) (thaw func()) {
	t.Helper()
	signal := func(sig string) {
		for _, g := range gs {
			out, err := h.ctl("sh", "sh", "-c", "kill -"+sig+" $(cat /run/libvirt/qemu/"+domain(g)+".pid)")
			if err != nil {
				t.Errorf("kill -%s of the QEMU of %s: %v\n%s", sig, domain(g), err, out)
			}
		}
	}
	thaw = sync.OnceFunc(func() { signal("CONT") })
	t.Cleanup(thaw)
	signal("STOP")
	return thaw
}

// hostSide asks about the neighbour what its host knows, without its agent.
func hostSide() provider.GetRequest {
	return provider.GetRequest{Domain: domain(neighbour), Sources: []model.Source{model.SourceLease, model.SourceARP}, Fresh: true}
}

// hang starts calls that will not be answered, and waits until they hold n
// slots. They are left by leave, which waits for their callers.
func hang(t *testing.T, p *libvirt.Host, n int, calls ...func(context.Context) error) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var wg sync.WaitGroup
	for _, call := range calls {
		wg.Go(func() { _ = call(ctx) }) // it holds a slot, that is all
	}
	leave = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(leave)
	// Long enough for all that precedes what hangs.
	still := time.Now()
	await(t, 10*time.Second, fmt.Sprint(n, " calls hang"), func() bool {
		if p.Link().InFlight != n {
			still = time.Now()
		}
		return time.Since(still) > 300*time.Millisecond
	})
	return leave
}

// thousand reads the neighbour a thousand times. It returns how long that took,
// and the latencies that half, 99 in 100 and all of them kept.
func thousand(t *testing.T, p *libvirt.Host) string {
	t.Helper()
	st := p.Link()
	var lat []time.Duration
	begin := time.Now()
	for i := range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		start := time.Now()
		in, err := p.Get(ctx, hostSide())
		lat = append(lat, time.Since(start))
		cancel()
		if err != nil || in.State != model.InstanceRunning {
			t.Fatalf("neighbour's read %d: %v, %v; link %+v", i, in.State, err, p.Link())
		}
	}
	took := time.Since(begin)
	now := p.Link()
	if now.Generation != st.Generation || now.State != model.LinkUp || now.InFlight != st.InFlight {
		t.Errorf("generation %d, %v, %d in flight; want %d, up, %d: the calls that hang are to hang all the while",
			now.Generation, now.State, now.InFlight, st.Generation, st.InFlight)
	}
	slices.Sort(lat)
	return fmt.Sprintf("1000 reads in %6.0f ms, 50%% in %.2f ms, 99%% in %.2f ms, slowest %.2f ms; generation %d, %d calls hang",
		took.Seconds()*1e3, ms(lat[500]), ms(lat[990]), ms(lat[999]), now.Generation, now.InFlight)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// While as many calls hang as the slow classes have slots, a neighbour's reads
// all succeed, on the same connection.
func TestNeighbours(t *testing.T) {
	h := hosts[0]
	h.fleet(t)
	var table strings.Builder
	open := func(t *testing.T, agent time.Duration) *libvirt.Host {
		p := h.open(t, libvirt.TransportUnix, func(o *libvirt.Options) { o.AgentTimeout = agent })
		up(t, p, 10*time.Second)
		for _, g := range providertest.Guests() {
			if _, err := p.Get(t.Context(), provider.GetRequest{Domain: domain(g), Sources: model.Sources(), Fresh: true}); err != nil {
				t.Fatalf("%s before anything is done: %v", domain(g), err)
			}
		}
		return p
	}
	agent := func(p *libvirt.Host, g guest) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := p.Get(ctx, provider.GetRequest{Domain: domain(g), Sources: []model.Source{model.SourceAgent}, Fresh: true})
			return err
		}
	}
	t.Run("quiet", func(t *testing.T) {
		fmt.Fprintf(&table, "%-46s %s\n", "nothing hangs", thousand(t, open(t, 0)))
	})
	t.Run("halted machines", func(t *testing.T) {
		h.patient(t, providertest.Bridged)
		h.patient(t, providertest.Off)
		p := open(t, 0)
		thaw := h.halt(t, providertest.Bridged, providertest.Off, providertest.NoAgent)
		// Two agents, and a shutdown that waits for the monitor.
		leave := hang(t, p, 3, agent(p, providertest.Bridged), agent(p, providertest.Off),
			func(ctx context.Context) error { return p.Stop(ctx, domain(providertest.NoAgent)) })
		fmt.Fprintf(&table, "%-46s %s\n", "three halted machines", thousand(t, p))
		leave() // before the thaw, or the stop would go on to switch the machine off
		thaw()
		await(t, 10*time.Second, "the calls return after the thaw", func() bool { return p.Link().InFlight == 0 })
	})
	t.Run("frozen agents", func(t *testing.T) { frozenAgents(t, h, open(t, 0), agent, &table) })
	t.Run("workers eaten", func(t *testing.T) { eaten(t, h, open(t, 2*time.Second), &table) })
	t.Logf("on %s\n%s", h.name, table.String())
}

// frozenAgents: libvirt waits for two agents without a limit. Neighbours do not
// notice; and when the connection is replaced, since no agent can be asked on it
// any more, they do not notice either.
func frozenAgents(t *testing.T, h *labHost, p *libvirt.Host, agent func(*libvirt.Host, guest) func(context.Context) error, table *strings.Builder) {
	victims := []guest{providertest.Bridged, providertest.Off}
	for _, g := range victims {
		h.patient(t, g)
		h.mend(t, "agent", domain(g), "thaw")
		h.must(t, "agent", domain(g), "freeze")
	}
	start := time.Now()
	hang(t, p, 2, agent(p, victims[0]), agent(p, victims[1]))
	fmt.Fprintf(table, "%-46s %s\n", "two frozen agents, no response timeout", thousand(t, p))
	if d := time.Since(start); d > 8*time.Second {
		t.Logf("the thousand reads ended %s after the calls: the replacement is near", d)
	}
	reads := 0
	await(t, 20*time.Second, "the connection is replaced", func() bool {
		if in, err := p.Get(t.Context(), hostSide()); err != nil || in.State != model.InstanceRunning {
			t.Errorf("neighbour's read %d around the replacement: %v, %v", reads, in.State, err)
		}
		reads++
		return p.Link().Generation == 2
	})
	fmt.Fprintf(table, "%-46s after %.1f s, %d neighbour's reads without an error\n", "  the connection is replaced", time.Since(start).Seconds(), reads)
}

// eaten: a second client takes all of the daemon's workers, with shutdowns of a
// halted machine that wait for each other, and the link's own calls hang with
// them, in every slot. The daemon still opens connections and tells its version,
// for which it keeps other workers, so the link is replaced in time; no
// connection can serve a neighbour while no worker is free. What it is told
// meanwhile is that nothing was learned, and it is served again as soon as the
// workers are free.
func eaten(t *testing.T, h *labHost, p *libvirt.Host, table *strings.Builder) {
	const (
		budget  = 2 * time.Second       // of a caller
		clogged = 5 * time.Second       // all slots abandoned for so long
		opinion = (2 + 2) * time.Second // a ping round, and the second opinion
		notice  = budget + clogged + opinion + 2*time.Second
		regain  = opinion // the dial under way, or a backoff and another one
	)
	thaw := h.halt(t, providertest.NoAgent)
	// Who may use a listing that is young asks the ARP table at once: one slot a
	// caller, where a new listing is one slot for all.
	fromARP := provider.GetRequest{Domain: domain(neighbour), Sources: []model.Source{model.SourceARP}}
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.eatWorkers(t, providertest.NoAgent)
	begin := time.Now()
	var told tally
	over := make(chan struct{})
	var callers sync.WaitGroup
	stop := sync.OnceFunc(func() { close(over); callers.Wait() })
	t.Cleanup(stop)
	for range 6 {
		callers.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
				ctx, cancel := context.WithTimeout(context.Background(), budget)
				start := time.Now()
				_, err := p.Get(ctx, fromARP)
				told.note(p.Link().State, time.Since(start), err)
				cancel()
			}
		})
	}
	await(t, notice, "the link is replaced", func() bool { return p.Link().Generation > 1 })
	replaced := time.Since(begin)
	pause(t, 3*time.Second)
	told.mu.Lock()
	during := fmt.Sprint(told.words)
	told.mu.Unlock()
	thaw()
	free := time.Now()
	await(t, regain, "the neighbour is served again", func() bool {
		_, err := p.Get(t.Context(), hostSide())
		return err == nil
	})
	regained := time.Since(free)
	stop()
	for _, err := range told.wrong {
		t.Errorf("a neighbour was told: %v", err)
	}
	if told.slowest > budget+atOnce {
		t.Errorf("a neighbour waited %s, with a budget of %s", told.slowest, budget)
	}
	fmt.Fprintf(table, "%-46s replaced after %.1f s; told meanwhile: %s\n", "all workers of the daemon eaten by another",
		replaced.Seconds(), during)
	fmt.Fprintf(table, "%-46s %.2f s after the workers are free, generation %d\n", "  served again", regained.Seconds(), p.Link().Generation)
}

// tally counts what callers were told.
type tally struct {
	mu      sync.Mutex
	words   map[string]int
	slowest time.Duration
	wrong   []error
}

func (c *tally) note(state model.LinkState, took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.words == nil {
		c.words = map[string]int{}
	}
	c.slowest = max(c.slowest, took)
	switch {
	case err == nil:
		c.words["answered"]++
	case errors.Is(err, provider.ErrNotAsked):
		c.words["not asked"]++
	case errors.Is(err, provider.ErrLinkDown):
		c.words["link down"]++
	case errors.Is(err, context.DeadlineExceeded):
		c.words["own deadline"]++
	case errors.Is(err, provider.ErrTransient):
		c.words["transient"]++
	default:
		c.wrong = append(c.wrong, fmt.Errorf("with the link %v: %w", state, err))
	}
}

// eatWorkers makes clients of their own take every worker of a daemon that may
// wait: each has as many requests as the daemon reads from one client, for a
// machine that is halted. They end with the thaw.
func (h *labHost) eatWorkers(t *testing.T, g guest) {
	t.Helper()
	const acpi, workers, perClient = 1, 20, 5
	var calls sync.WaitGroup
	t.Cleanup(calls.Wait)
	for range workers/perClient + 1 {
		r, err := h.raw()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.close)
		d, err := r.DomainLookupByName(domain(g))
		if err != nil {
			t.Fatal(err)
		}
		for range perClient {
			calls.Go(func() { _ = r.DomainShutdownFlags(d, acpi) }) // it holds a worker, that is all
		}
	}
}
