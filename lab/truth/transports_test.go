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

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
)

// outage is a way to lose a daemon, and to get it back.
type outage struct {
	name    string
	over    []libvirt.Transport // the transports that it cuts
	strike  []string            // for ctl.sh
	heal    []string            // none: the strike itself ends with the daemon's return
	noticed time.Duration       // ceiling
}

func outages() []outage {
	network := []libvirt.Transport{libvirt.TransportTCP, libvirt.TransportSSH}
	return []outage{
		{"killed", transports(), []string{"libvirtd", "kill"}, []string{"libvirtd", "start"}, 2 * time.Second},
		{"restarted", transports(), []string{"libvirtd", "restart"}, nil, 2 * time.Second},
		{"frozen", transports(), []string{"libvirtd", "freeze"}, []string{"libvirtd", "thaw"}, 6 * time.Second},
		{"partition, drop", network, []string{"part", "drop"}, []string{"part", "off"}, 12 * time.Second},
		{"partition, reject", network, []string{"part", "reject"}, []string{"part", "off"}, 6 * time.Second},
	}
}

// Ceilings that hold for every outage.
const (
	atOnce   = 250 * time.Millisecond // a caller of a link that is down
	forced   = 2 * time.Second        // up after the return, when an operator asks
	byItself = 8 * time.Second        // else: the backoff of the first minute, and a dial
)

// For each transport and each way to lose a daemon: how soon it is noticed, that
// callers do not wait while the link is down, how soon it is up after the
// return, and that nothing is left behind. The transports that an outage does
// not touch do not notice it.
func TestTransports(t *testing.T) {
	h := hosts[1]
	base := h.base(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-18s %-4s | %8s %8s %8s | %8s %8s | %s\n", "outage", "over",
		"noticed", "in call", "at once", "up again", "by force", "its last error")
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) { lose(t, h, o, base, &table) })
	}
	t.Logf("on %s, in seconds\n%s", h.name, table.String())
}

// lose plays one outage for all transports at once, two links each: one comes
// up again by itself, one is reconnected.
func lose(t *testing.T, h *labHost, o outage, base footprint, table *strings.Builder) {
	var watches []*watch
	for _, tr := range transports() {
		for range 2 {
			watches = append(watches, h.watch(t, tr))
		}
	}
	touched := func(w *watch) bool { return slices.Contains(o.over, w.over) }
	heal := sync.OnceFunc(func() { // once: a daemon is not to be started twice
		if o.heal == nil {
			return
		}
		if out, err := h.ctl(o.heal...); err != nil {
			t.Errorf("%s: ctl.sh %s %s: %v\n%s", o.name, h.name, strings.Join(o.heal, " "), err, out)
		}
	})
	t.Cleanup(heal)
	struck := time.Now()
	h.must(t, o.strike...)
	back := time.Now()
	if o.heal != nil {
		await(t, o.noticed+time.Second, "every link that is cut is called down", func() bool {
			for _, w := range watches {
				if touched(w) && w.lost(struck).IsZero() {
					return false
				}
			}
			return true
		})
		pause(t, 2*time.Second) // callers go on, and are told at once
		heal()
		back = time.Now()
	}
	var wg sync.WaitGroup
	took := make([]time.Duration, len(watches))
	for i, w := range watches {
		if i%2 == 1 && touched(w) {
			wg.Go(func() { took[i] = w.force(back) })
		}
	}
	wg.Wait()
	for i, w := range watches {
		if touched(w) {
			if i%2 == 0 {
				took[i] = w.risen(back, byItself)
			}
			continue
		}
		if st := w.prov.Link(); st.Generation != 1 || st.State != model.LinkUp || !w.lost(struck).IsZero() {
			t.Errorf("%s: the link over %s, which it does not touch, is %v, generation %d", o.name, w.over, st.State, st.Generation)
		}
	}
	for _, w := range watches {
		w.end()
	}
	for i := 0; i < len(watches); i += 2 {
		if touched(watches[i]) {
			report(t, o, watches[i:i+2], struck, took[i:i+2], table)
		}
	}
	if left := backTo(t, base); left.goroutines > 0 || left.files > 0 {
		t.Errorf("%s: left behind: %s", o.name, left)
	}
}

// report judges the two links over one transport and adds a line to the table.
func report(t *testing.T, o outage, ws []*watch, struck time.Time, took []time.Duration, table *strings.Builder) {
	var noticed, inCall, refused time.Duration
	for _, w := range ws {
		noticed = max(noticed, w.lost(struck).Sub(struck))
		inCall, refused = max(inCall, w.inCall), max(refused, w.refused)
		for _, err := range w.wrong {
			t.Errorf("%s over %s: a caller was told %v", o.name, w.over, err)
		}
		if w.calls == 0 || o.heal != nil && w.refusals == 0 {
			t.Errorf("%s over %s: %d calls, %d refused: nothing was seen", o.name, w.over, w.calls, w.refusals)
		}
	}
	sec := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	fmt.Fprintf(table, "%-18s %-4s | %8s %8s %8s | %8s %8s | %s\n", o.name, ws[0].over,
		sec(noticed), sec(inCall), sec(refused), sec(took[0]), sec(took[1]), ws[0].why)
	for what, d := range map[string][2]time.Duration{
		"noticed after": {noticed, o.noticed}, "a call under way lasted": {inCall, o.noticed + atOnce},
		"a caller of the link that was down waited": {refused, atOnce},
		"up by itself after":                        {took[0], byItself}, "up by force after": {took[1], forced},
	} {
		if d[0] < 0 || d[0] > d[1] {
			t.Errorf("%s over %s: %s %s, want %s at most", o.name, ws[0].over, what, d[0], d[1])
		}
	}
}

// watch is a link under observation, with a caller that never rests.
type watch struct {
	t    *testing.T
	over libvirt.Transport
	prov *libvirt.Host
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	states []change

	// Of the caller; to be read after end.
	calls, refusals int
	inCall          time.Duration // the longest call that was under way when the link went down
	refused         time.Duration // the longest wait of a caller while it was down
	wrong           []error
	why             string // the link's last error while it was down
}

// change is a state of the link from an instant on.
type change struct {
	at    time.Time
	state model.LinkState
}

func (h *labHost) watch(t *testing.T, tr libvirt.Transport) *watch {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &watch{t: t, over: tr, stop: stop, done: make(chan struct{})}
	w.prov = h.open(t, tr, func(o *libvirt.Options) {
		o.Link.OnChange = func(st model.LinkStatus) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states = append(w.states, change{time.Now(), st.State})
		}
	})
	up(t, w.prov, 10*time.Second)
	go w.call(ctx)
	t.Cleanup(w.end)
	return w
}

// call lists the host's domains, over and over.
func (w *watch) call(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		before := w.prov.Link()
		start := time.Now()
		_, err := w.prov.List(ctx)
		took := time.Since(start)
		w.calls++
		switch {
		case err == nil, ctx.Err() != nil:
		case provider.Classify(err) != provider.ClassTransient:
			w.wrong = append(w.wrong, err)
		case before.State == model.LinkUp:
			w.inCall = max(w.inCall, took)
		case errors.Is(err, provider.ErrLinkDown):
			w.refusals++
			w.refused = max(w.refused, took)
			w.why = before.LastError
		default:
			w.wrong = append(w.wrong, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// end closes the link and waits for its caller.
func (w *watch) end() {
	w.stop()
	<-w.done
	w.prov.Close()
}

// lost is when the link was first not up after an instant; zero: it is up.
func (w *watch) lost(after time.Time) time.Time {
	return w.first(after, func(s model.LinkState) bool { return s != model.LinkUp })
}

func (w *watch) first(after time.Time, ok func(model.LinkState) bool) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.states {
		if c.at.After(after) && ok(c.state) {
			return c.at
		}
	}
	return time.Time{}
}

// risen waits until the link is up, and says how long after the return; 0 if it
// was before.
func (w *watch) risen(back time.Time, limit time.Duration) time.Duration {
	w.t.Helper()
	await(w.t, limit, "the link is up by itself", func() bool { return w.prov.Link().State == model.LinkUp })
	return max(0, w.prov.Link().Since.Sub(back))
}

// force reconnects, and says how long after the return the link was up; -1 when
// it was not.
func (w *watch) force(back time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), forced)
	defer cancel()
	rep, err := w.prov.Reconnect(ctx)
	if err != nil || rep.To == 0 {
		w.t.Errorf("reconnect over %s after the daemon's return: %v, report %+v", w.over, err, rep)
		return -1
	}
	return time.Since(back)
}
