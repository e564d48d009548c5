//go:build lab

package e2e

import (
	"testing"
	"time"
)

// TestConsole has the console in two real terminals at once, each with an engine
// of its own, and shows both the same faults.
func TestConsole(t *testing.T) {
	terms := []*terminal{newTerminal(t, 80, 24), newTerminal(t, 160, 50)}
	var engines []*engine
	for _, term := range terms {
		config, begin := configure(t, settings{more: lateProxy()}), time.Now()
		term.run(binary() + " -c " + config)
		engines = append(engines, watch(t, config, begin))
	}
	// both sees within a time what every engine knows and every screen must show
	both := func(within time.Duration, patterns ...string) {
		t.Helper()
		for _, term := range terms {
			term.await(within, patterns...)
			term.frame()
		}
	}
	keys := func(names ...string) {
		t.Helper()
		for _, term := range terms {
			term.keys(names...)
		}
	}
	// back waits, since a key right behind escape is one with alt
	back := func() {
		t.Helper()
		keys("Escape")
		both(3*time.Second, `HOST +LINK`, `r reconcile`)
	}
	for _, e := range engines {
		e.ready(all()...)
	}
	both(3*time.Second, `lab`, `6 ready`, `h1 +up`, `h2 +up`)
	keys("2")
	both(3*time.Second, `● ready`, `lan-1`, `lan-2`, `lan-3`)

	ctl(t, "h2", "agent", "lan-1", "restart", "8")
	both(8*time.Second, `lan-1 +● ready +h `)
	both(25*time.Second, `lan-1 +● ready +[^h ]`)

	mend(t, "h2", "proxy", "lan-3", "ok")
	ctl(t, "h2", "proxy", "lan-3", "off")
	both(10*time.Second, `▼ demoted`, `1 demoted`, `refused`)

	mend(t, "h2", "libvirtd", "restart")
	ctl(t, "h2", "libvirtd", "kill")
	both(8*time.Second, `~ transient`, `3 transient`, `h2 +(?i:down|connecting)`)
	keys("g", "Enter") // detail of the demoted one
	both(3*time.Second, `ADDRESS SOURCES`, `agent +addresses`, `not applicable`, `arp +empty`, `HEALTH`)
	keys("G") // its events, on a small screen below
	both(3*time.Second, `address 10\.79\.[0-9.]+, named by agent`)
	back()
	keys("l")
	both(3*time.Second, `(?i)level`, `lan-3 .*demoted|lan-2 .*transient`)
	back()
	keys("?")
	both(3*time.Second, `c +reconnect`, `r +reconcile`)
	back()
	keys("/")
	keys("lan-2", "Enter")
	both(3*time.Second, `lan-2`, `1 of 4|1/4`)
	back()
	ctl(t, "h2", "libvirtd", "start")
	ctl(t, "h2", "proxy", "lan-3", "ok")
	both(20*time.Second, `6 ready`)

	startLate(t)
	both(10*time.Second, `\+ provision`, `1 provision`)

	// r says what it does
	keys("r")
	both(3*time.Second, `(?i)reconcil`)
	for _, e := range engines {
		e.always(e.start.Add(30*time.Second), "the others", InRotation("nat-1", "nat-2", "nat-3", "lan-1", "lan-2"))
	}
	for _, term := range terms {
		term.quit()
	}
}
