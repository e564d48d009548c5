//go:build lab

package e2e

import (
	"testing"
	"time"
)

func TestLibvirtdKilled(t *testing.T) {
	e := serve(t, configure(t, settings{}))
	e.ready(all()...)
	addrs := trueAddresses(t, lan())
	quiet := time.Now()
	mend(t, "h2", "libvirtd", "restart")
	start := time.Now()
	ctl(t, "h2", "libvirtd", "kill")
	dead := time.Now() // the script ends with the signal
	e.await(dead, 6*time.Second, "its proxies are transient", All(
		State("lan-1", "transient"), State("lan-2", "transient"), State("lan-3", "transient"), Link("h2", "down", "connecting")))
	pause(t, time.Until(dead.Add(10*time.Second)))
	e.always(start, "address and rotation are kept", All(InRotation(all()...),
		IP("lan-1", addrs["lan-1"]), IP("lan-2", addrs["lan-2"]), IP("lan-3", addrs["lan-3"])))
	if h := e.Last().Hosts[1].Link; h.Error == "" {
		t.Errorf("the link is %s and tells no error", h.State)
	}
	ctl(t, "h2", "libvirtd", "start")
	back := time.Now()
	e.await(back, 5*time.Second, "recovered", All(Ready(all()...), Link("h2", "up")))
	pause(t, 2*time.Second)
	e.always(start, "the rotation", InRotation(all()...))
	e.always(quiet, "the other host's events", NoEvents("h1", quiet))
	e.always(start, "the other host's proxies", Ready(nat()...))
}

// TestLibvirtdFrozen drives the console: it presses c on the frozen host.
func TestLibvirtdFrozen(t *testing.T) {
	config := configure(t, settings{})
	term := newTerminal(t, 160, 50)
	begin := time.Now()
	term.run(binary() + " -c " + config)
	e := watch(t, config, begin)
	e.ready(all()...)
	addrs := trueAddresses(t, lan())
	quiet := time.Now()
	mend(t, "h2", "libvirtd", "thaw")
	start := time.Now()
	ctl(t, "h2", "libvirtd", "freeze")
	frozen := time.Now() // the script ends with the signal
	e.await(frozen, 6*time.Second, "its proxies are transient", All(
		State("lan-1", "transient"), State("lan-2", "transient"), State("lan-3", "transient"), Link("h2", "down", "connecting")))
	term.await(2*time.Second, `h2 +DOWN`) // in the table of hosts: the log is quicker

	term.keys("2") // the second host
	term.keys("c")
	term.await(3*time.Second, `(?i)reconnect.*h2|h2.*reconnect`)
	pressed := time.Now()
	pause(t, 5*time.Second)
	e.always(start, "address and rotation are kept", All(InRotation(all()...),
		IP("lan-1", addrs["lan-1"]), IP("lan-2", addrs["lan-2"]), IP("lan-3", addrs["lan-3"])))
	e.always(pressed, "frozen is not up", Link("h2", "down", "connecting"))
	ctl(t, "h2", "libvirtd", "thaw")
	thaw := time.Now()
	e.await(thaw, 2*time.Second, "the link is up after the thaw", Link("h2", "up"))
	e.await(thaw, 5*time.Second, "recovered", Ready(all()...))
	term.await(2*time.Second, `(?i)h2 +up`)
	e.always(quiet, "the other host's events", NoEvents("h1", quiet))
	e.always(start, "the rotation", InRotation(all()...))
	term.quit()
}
