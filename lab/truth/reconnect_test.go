//go:build lab

package truth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
)

// A reconnect that an operator asks for works on a daemon that is frozen and on
// a link that is half open, over every transport: the old connection is closed
// and its callers are freed at once, the redial runs, each time it is asked for;
// and the link is up soon after the fault has ended.
func TestReconnectAlways(t *testing.T) {
	h := hosts[1]
	base := h.base(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-18s %-4s | %8s %8s %8s %8s | %8s\n", "fault", "over", "closed", "freed", "redialled", "answered", "up again")
	for _, f := range []struct {
		name         string
		over         []libvirt.Transport
		strike, heal []string
	}{
		{"frozen", transports(), []string{"libvirtd", "freeze"}, []string{"libvirtd", "thaw"}},
		{"half open, drop", transports()[1:], []string{"part", "drop"}, []string{"part", "off"}},
		{"half open, link", transports()[1:], []string{"part", "link"}, []string{"part", "off"}},
	} {
		for _, tr := range f.over {
			t.Run(f.name+", "+string(tr), func(t *testing.T) {
				h.mend(t, f.heal...)
				d := &dials{dial: h.endpoint(tr).Dialer()}
				p := h.open(t, tr, func(o *libvirt.Options) { o.Link.Dial = d.open })
				up(t, p, 10*time.Second)
				h.must(t, f.strike...)
				// Two who wait for the daemon. With the table of domains unknown
				// they wait for the same call.
				freed := make(chan error, 2)
				for range cap(freed) {
					go func() {
						ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
						defer cancel()
						_, err := p.List(ctx)
						freed <- err
					}()
				}
				await(t, time.Second, "a call is under way", func() bool { return p.Link().InFlight > 0 })
				first := force(t, p, d, freed)
				if len(first.rep.Interrupted) == 0 || first.rep.From != 1 {
					t.Errorf("the report does not name what it interrupted: %+v", first.rep)
				}
				// Again, into the dial that hangs now; then after the end.
				second := force(t, p, d, nil)
				if second.rep.To != 0 {
					t.Errorf("up through a %s host: %+v", f.name, second.rep)
				}
				h.must(t, f.heal...)
				healed := time.Now()
				force(t, p, d, nil)
				up(t, p, forced)
				again := time.Since(healed)
				if st := p.Link(); st.Generation < 2 {
					t.Errorf("generation %d after the reconnect", st.Generation)
				}
				p.Close()
				if n := d.left(); n != 0 {
					t.Errorf("%d connections are left open", n)
				}
				fmt.Fprintf(&table, "%-18s %-4s | %8.3f %8.3f %8.3f %8.3f | %8.3f\n", f.name, tr,
					first.closed.Seconds(), first.freed.Seconds(), max(first.redialled, second.redialled).Seconds(),
					max(first.answered, second.answered).Seconds(), again.Seconds())
				if left := backTo(t, base); left.goroutines > 0 || left.files > 0 {
					t.Errorf("left behind: %s", left)
				}
			})
		}
	}
	t.Logf("on %s, in seconds\n%s", h.name, table.String())
}

// forcing is what one forced reconnect did, and when.
type forcing struct {
	rep                                provider.ReconnectReport
	closed, freed, redialled, answered time.Duration
}

// force asks for a reconnect and holds it to its promise. freed, if not nil,
// yields the errors of the callers under way.
func force(t *testing.T, p *libvirt.Host, d *dials, freed chan error) forcing {
	t.Helper()
	var f forcing
	open, begun := d.left(), d.begun()
	ctx, cancel := context.WithTimeout(t.Context(), forced)
	defer cancel()
	phases := map[string]bool{}
	start := time.Now()
	answered := make(chan error, 1)
	go func() {
		var err error
		f.rep, err = p.Reconnect(ctx)
		answered <- err
	}()
	var err error
	var told []error
	for waiting := true; waiting || f.redialled == 0 || len(told) < cap(freed); {
		if f.redialled == 0 && d.begun() > begun {
			f.redialled = time.Since(start)
		}
		if f.closed == 0 && open > 0 && d.closedSince(start) {
			f.closed = time.Since(start)
		}
		phases[p.Link().Phase] = true
		if time.Since(start) > forced+atOnce {
			t.Fatalf("%s after the wish for a reconnect: answered %v, redialled %v; link %+v", forced+atOnce, !waiting, f.redialled > 0, p.Link())
		}
		select {
		case err = <-answered:
			waiting, f.answered = false, time.Since(start)
		case cause := <-freed:
			told, f.freed = append(told, cause), time.Since(start)
		case <-time.After(time.Millisecond):
		}
	}
	delete(phases, "")
	if len(phases) == 0 {
		t.Error("no phase was shown")
	}
	if err == nil && p.Link().State != model.LinkUp || err != nil && f.rep.To != 0 {
		t.Errorf("reconnect: %v, report %+v, link %v", err, f.rep, p.Link().State)
	}
	if freed == nil {
		return f
	}
	if f.closed == 0 || f.closed > atOnce || f.freed > atOnce {
		t.Errorf("the old connection was closed after %s (0: not at all), its callers were freed after %s", f.closed, f.freed)
	}
	for _, cause := range told {
		if !errors.Is(cause, provider.ErrLinkDown) {
			t.Errorf("a caller was freed with %v, want ErrLinkDown", cause)
		}
	}
	return f
}

// dials counts the connections of a link.
type dials struct {
	dial libvirt.DialFunc
	n    atomic.Int32

	mu     sync.Mutex
	live   int
	closed time.Time // the last close
}

func (d *dials) open(ctx context.Context) (net.Conn, error) {
	d.n.Add(1)
	c, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live++
	return &counted{Conn: c, d: d}, nil
}

// begun is how many dials have begun.
func (d *dials) begun() int { return int(d.n.Load()) }

// left is how many connections are open.
func (d *dials) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live
}

// closedSince reports whether a connection has been closed, to the end, since.
func (d *dials) closedSince(t time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed.After(t)
}

// counted is a connection that says when it has been closed.
type counted struct {
	net.Conn
	d    *dials
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		c.d.live--
		c.d.closed = time.Now()
	})
	return err
}
