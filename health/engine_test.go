package health

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// bench is a fleet of simulated proxies with the real engine on it, all of it in
// memory and in virtual time.
type bench struct {
	*Engine
	t    *testing.T
	sim  *simhost.Host
	doms []*simhost.Domain
	keys []Key

	noWay  atomic.Bool // the direct way to the targets is lost
	noFile atomic.Bool // this machine is out of descriptors
}

// dial fails as a machine without descriptors does, if told so.
func (b *bench) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if b.noFile.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EMFILE}
	}
	return b.sim.DialProxy(ctx, network, address)
}

// direct is the way to the targets without a proxy.
func (b *bench) direct(ctx context.Context, network, address string) (net.Conn, error) {
	if b.noWay.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ETIMEDOUT}
	}
	return b.sim.Origin().Dial(ctx, network, address)
}

// newBench makes n proxies, tracks them, and waits until all are in rotation.
func newBench(t *testing.T, n int, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, sim: simhost.New(simhost.Options{})}
	u, err := ParseTarget(b.sim.Origin().URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/ip"
	cfg := Defaults()
	cfg.Targets = []Target{{URL: u, EchoIP: true}}
	if change != nil {
		change(&cfg)
	}
	b.Engine = New(cfg, Deps{Dial: b.dial, Control: b.direct, Rand: func() float64 { return 0.5 }})
	t.Cleanup(func() {
		b.Close()
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		b.doms = append(b.doms, b.sim.AddDomain(simhost.DomainSpec{Name: fmt.Sprintf("p-%02d", i), Running: true}))
		ap := netip.MustParseAddrPort(b.doms[i].ProxyAddress())
		s := Subject{Proxy: model.ProxyName(fmt.Sprintf("p-%02d", i)), Host: "h", Address: ap.Addr(), Port: ap.Port()}
		b.keys = append(b.keys, s.Key())
		b.Track(s)
		time.Sleep(137 * time.Millisecond) // virtual: spread them
	}
	b.within(5*time.Second, "all in", func() bool { return b.members() == n })
	time.Sleep(7300 * time.Millisecond) // into the settled pace, at no round moment
	return b
}

func (b *bench) members() int {
	n := 0
	for _, k := range b.keys {
		if h, _ := b.Health(k); h.InRotation {
			n++
		}
	}
	return n
}

func (b *bench) in(i int) bool { h, _ := b.Health(b.keys[i]); return h.InRotation }

// within waits for ok at most d, and returns how long it took.
func (b *bench) within(d time.Duration, what string, ok func() bool) time.Duration {
	b.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > d {
			b.t.Fatalf("not %s within %s", what, d)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}

// never watches that bad does not happen for d.
func (b *bench) never(d time.Duration, what string, bad func() bool) {
	b.t.Helper()
	for start := time.Now(); time.Since(start) < d; time.Sleep(100 * time.Millisecond) {
		if bad() {
			b.t.Fatalf("%s after %s", what, time.Since(start))
		}
	}
}

// Each kind of dead proxy is out within its bound, with its reason, and back
// after rise; its neighbours do not move.
func TestEngine_bounds(t *testing.T) {
	for _, kind := range []model.ProbeKind{model.ProbeHTTP, model.ProbeConnect} {
		for _, tt := range []struct {
			name    string
			mode    simhost.Proxy
			bound   time.Duration
			reason  string
			culprit model.Culprit
		}{
			{"refused", simhost.Proxy{Mode: simhost.ProxyOff}, 8 * time.Second, "refused", model.CulpritHop},
			{"407", simhost.Proxy{User: "u", Password: "p"}, 8 * time.Second, "407 credentials", model.CulpritCredentials},
			{"502", simhost.Proxy{Mode: simhost.ProxyBadGateway}, 8 * time.Second, "502 from the proxy", model.CulpritWayOut},
			{"ssh", simhost.Proxy{Mode: simhost.ProxyWrongBanner}, 8 * time.Second, "not an HTTP proxy", model.CulpritAnswer},
			{"a web server", simhost.Proxy{Mode: simhost.ProxyPlainHTTP}, 8 * time.Second, "", model.CulpritAnswer},
			{"hanging", simhost.Proxy{Mode: simhost.ProxyHang}, 14 * time.Second, "timeout after ", model.CulpritWayOut},
			{"dropping", simhost.Proxy{Mode: simhost.ProxyDrop}, 14 * time.Second, "no answer to connect", model.CulpritHop},
			{"silent tunnel", simhost.Proxy{Mode: simhost.ProxySilentTunnel}, 14 * time.Second, "timeout after ", model.CulpritWayOut},
		} {
			t.Run(kind.String()+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 4, nil)
					for i := range b.keys {
						b.mu.Lock()
						b.subs[b.keys[i]].Kind = kind
						b.mu.Unlock()
					}
					time.Sleep(6 * time.Second)
					b.doms[1].SetProxy(tt.mode)
					took := b.within(tt.bound, "out", func() bool { return !b.in(1) })
					t.Logf("out after %s", took)
					h, _ := b.Health(b.keys[1])
					if !h.Demoted || !strings.HasPrefix(h.Reason, tt.reason) || h.Last.Culprit != tt.culprit {
						t.Errorf("demoted %v, reason %q, culprit %v; want %q, %v", h.Demoted, h.Reason, h.Last.Culprit, tt.reason, tt.culprit)
					}
					if len(h.Evidence) < 3 || !strings.HasPrefix(h.Evidence[2], "witness: ") {
						t.Errorf("evidence %q, want a witness in it", h.Evidence)
					}
					for _, i := range []int{0, 2, 3} {
						if h, _ := b.Health(b.keys[i]); !h.InRotation || h.Fails > 0 {
							t.Errorf("neighbour %d: in %v, fails %d", i, h.InRotation, h.Fails)
						}
					}
					b.doms[1].SetProxy(simhost.Proxy{})
					b.within(9*time.Second, "back", func() bool { return b.in(1) })
				})
			})
		}
	}
}

// The target dies: every proxy answers 502 or falls silent, and not one leaves,
// neither while it lasts nor when it comes back.
func TestEngine_deadTargetEmptiesNothing(t *testing.T) {
	for name, mode := range map[string]simhost.OriginMode{"down": simhost.OriginDown, "hanging": simhost.OriginHang} {
		for _, control := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/control=%v", name, control), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 6, func(c *Config) { c.Control = control })
					b.sim.Origin().SetMode(mode)
					b.never(3*time.Minute, "somebody left", func() bool { return b.members() != 6 })
					if f := b.Fleet(); !f.Frozen && !f.BrakeOn {
						t.Errorf("the screen does not say that the rotation is held: %+v", f)
					}
					b.sim.Origin().SetMode(simhost.OriginOK)
					b.never(time.Minute, "somebody left after the target came back", func() bool { return b.members() != 6 })
					if f := b.Fleet(); f.Frozen || f.BrakeOn {
						t.Errorf("still held: %+v", f)
					}
				})
			})
		}
	}
}

// Many die together, while the target lives: the brake asks for a fresh witness,
// and then all of them go.
func TestEngine_brakeDelaysAndNeverKeepsTheDead(t *testing.T) {
	for name, tt := range map[string]struct {
		mode    simhost.ProxyMode
		control bool
		dead    int
		bound   time.Duration
	}{
		"some refused, control":       {simhost.ProxyOff, true, 4, 18 * time.Second},
		"some hang, control":          {simhost.ProxyHang, true, 4, 24 * time.Second},
		"some hang, peers alone":      {simhost.ProxyHang, false, 4, 24 * time.Second},
		"all hang, control":           {simhost.ProxyHang, true, 6, 24 * time.Second},
		"all refused, nobody to ask":  {simhost.ProxyOff, false, 6, 20 * time.Second},
		"some drop, peers alone":      {simhost.ProxyDrop, false, 3, 24 * time.Second},
		"some with 502, peers alone":  {simhost.ProxyBadGateway, false, 3, 18 * time.Second},
		"two hang, too few to brake":  {simhost.ProxyHang, true, 2, 14 * time.Second},
		"two refused, peers as proof": {simhost.ProxyOff, false, 2, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 6, func(c *Config) { c.Control = tt.control })
				for i := range tt.dead {
					b.doms[i].SetProxy(simhost.Proxy{Mode: tt.mode})
				}
				took := b.within(tt.bound, "all out", func() bool { return b.members() == 6-tt.dead })
				t.Logf("out after %s", took)
				for i := tt.dead; i < 6; i++ {
					if !b.in(i) {
						t.Errorf("living proxy %d is out", i)
					}
				}
			})
		})
	}
}

// All fall silent and nobody can be asked: the console cannot know, says so, and
// changes nothing.
func TestEngine_cannotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 6, func(c *Config) { c.Control = false })
		for _, d := range b.doms {
			d.SetProxy(simhost.Proxy{Mode: simhost.ProxyHang})
		}
		b.never(2*time.Minute, "somebody left", func() bool { return b.members() != 6 })
		f := b.Fleet()
		if !f.BrakeOn && !f.Frozen {
			t.Errorf("says nothing: %+v", f)
		}
		h, _ := b.Health(b.keys[0])
		if h.Waiting == "" {
			t.Error("the proxy does not say why its demotion waits")
		}
	})
}

// A flapping proxy, one failure between passes, never leaves.
func TestEngine_flapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, nil)
		stop := time.Now().Add(2 * time.Minute)
		for time.Now().Before(stop) {
			before, _ := b.Health(b.keys[0])
			b.doms[0].SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
			b.within(6*time.Second, "failed once", func() bool { h, _ := b.Health(b.keys[0]); return h.LastFault.After(before.LastFault) })
			b.doms[0].SetProxy(simhost.Proxy{})
			b.within(6*time.Second, "passed", func() bool { h, _ := b.Health(b.keys[0]); return h.Last.Passed })
			if !b.in(0) {
				t.Fatal("left the rotation on single failures")
			}
		}
	})
}

func TestEngine_forgetProxyPrunes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil)
		b.ForgetProxy("p-00")
		if h, ok := b.Health(b.keys[0]); ok || h.InRotation {
			t.Errorf("still known: %+v", h)
		}
		b.Track(Subject{Proxy: "p-00", Address: b.keys[0].Address, Port: 3128})
		if h, ok := b.Health(b.keys[0]); !ok || h.InRotation || h.Passes != 0 || len(h.Samples) != 0 {
			t.Errorf("tracked again, it is not new: %+v", h)
		}
	})
}

// A member from before a restart keeps its place, unverified, until its own
// probes speak; and goes if they say so.
func TestEngine_restored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil)
		b.doms[0].SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
		b.ForgetProxy("p-00")
		b.Track(Subject{Proxy: "p-00", Address: b.keys[0].Address, Port: 3128, Restored: true})
		if h, _ := b.Health(b.keys[0]); !h.InRotation || !h.Unverified {
			t.Errorf("restored: %+v, want in and unverified", h)
		}
		b.within(8*time.Second, "out", func() bool { return !b.in(0) })
	})
}

func TestEngine_exitAddressIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, nil)
		h, _ := b.Health(b.keys[0])
		if h.Last.ExitIP != b.doms[0].Exit() {
			t.Errorf("exit %v, want %v", h.Last.ExitIP, b.doms[0].Exit())
		}
	})
}
