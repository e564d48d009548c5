package health

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// A failing target is asked no faster than the fast pace, however many proxies
// fail with it: a storm of probes would be one more fault, and ours.
func TestEngine_noProbeStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 20, nil)
		b.sim.Origin().SetMode(simhost.OriginError)
		time.Sleep(5 * time.Second)
		before := b.sim.Origin().Served()
		time.Sleep(20 * time.Second)
		if r := float64(b.sim.Origin().Served()-before) / 20; r > 25 {
			t.Errorf("%.0f requests a second for 20 proxies and a fast pace of 1 s", r)
		}
	})
}

// One of two targets is down: proxies are judged by the other one, and enter.
func TestEngine_oneOfTwoTargetsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, func(c *Config) {
			sick := *c.Targets[0].URL
			sick.Path = "/status/503"
			c.Targets = append(c.Targets, Target{URL: &sick})
		})
		b.ForgetProxy("p-01")
		b.Track(Subject{Proxy: "p-01", Host: "h", Address: b.keys[1].Address, Port: 3128})
		b.within(10*time.Second, "in again", func() bool { return b.in(1) })
		b.never(2*time.Minute, "somebody left", func() bool { return b.members() != 3 })
		b.doms[1].SetProxy(simhost.Proxy{Mode: simhost.ProxyHang})
		b.within(14*time.Second, "the dead one out", func() bool { return !b.in(1) })
	})
}

// Our own way to the target is lost for good, and proxies still reach it: they
// convict the dead one among them.
func TestEngine_ownWayLostPeersConvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 5, nil)
		b.noWay.Store(true)
		b.never(time.Minute, "somebody left", func() bool { return b.members() != 5 })
		if b.Fleet().Frozen {
			t.Error("held, although proxies reach the target")
		}
		b.doms[0].SetProxy(simhost.Proxy{Mode: simhost.ProxyHang})
		b.within(24*time.Second, "the dead one out", func() bool { return !b.in(0) })
		b.never(time.Minute, "another one left", func() bool { return b.members() != 4 })
		// And if the target dies then, nobody goes.
		b.sim.Origin().SetMode(simhost.OriginDown)
		b.never(2*time.Minute, "somebody left", func() bool { return b.members() != 4 })
	})
}

// This machine cannot probe: nothing is concluded, and each result says whose
// fault it is.
func TestEngine_ourFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil)
		b.noFile.Store(true)
		b.doms[0].SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
		b.never(5*time.Minute, "somebody left", func() bool { return b.members() != 2 })
		h, _ := b.Health(b.keys[0])
		if h.Last.Passed || h.Last.Culprit.String() != "us" || h.Last.Reason != "this machine is out of descriptors or memory" {
			t.Errorf("last: %+v", h.Last)
		}
		b.noFile.Store(false)
		b.within(8*time.Second, "the dead one out", func() bool { return !b.in(0) })
	})
}

// All are dead and nobody can tell: after the brake's limit the screen says that
// the rotation is held, in large letters.
func TestEngine_cannotKnowIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 6, func(c *Config) { c.Control = false })
		for _, d := range b.doms {
			d.SetProxy(simhost.Proxy{Mode: simhost.ProxyHang})
		}
		b.within(30*time.Second, "frozen", func() bool { return b.Fleet().Frozen })
		b.never(time.Minute, "not said any more, or somebody left", func() bool { return !b.Fleet().Frozen || b.members() != 6 })
	})
}
