//go:build lab

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAllReadyWithTrueAddresses(t *testing.T) {
	e := serve(t, configure(t, settings{}))
	e.ready(all()...)
	truth := trueAddresses(t, all())
	var cs []Condition
	for _, name := range all() {
		cs = append(cs, IP(name, truth[name]), Names(name, "agent", truth[name], e.start), Held(name, false))
	}
	for _, name := range nat() {
		cs = append(cs, Names(name, "lease", truth[name], e.start))
	}
	for _, name := range lan() {
		cs = append(cs, Source(name, "lease", "not_applicable"), Source(name, "arp", "empty"))
	}
	e.await(time.Now(), time.Second, "the true addresses and each source's outcome", All(cs...))
	s := e.Last()
	if s.Fleet != "lab" || s.Counts["ready"] != len(all()) || s.Health.Frozen {
		t.Errorf("fleet %q, counts %v, health %+v", s.Fleet, s.Counts, s.Health)
	}
	// the origin saw NAT guests as their host, LAN guests as themselves
	for i := range s.Proxies {
		p := &s.Proxies[i]
		want := truth[p.Name].String()
		if p.Host == "h1" {
			want = "10.77.1.2"
		}
		if p.Health.ExitIP != want {
			t.Errorf("%s goes out as %q, want %s", p.Name, p.Health.ExitIP, want)
		}
	}
	if s.Health.Control != "passing" {
		t.Errorf("the control probe says %q: the target is reachable from here", s.Health.Control)
	}
}

// late is a bridged VM that is declared but not there, until startLate boots it,
// with an agent that comes 8 s after the rest.
const late = "lan-late"

func lateProxy() string {
	return fmt.Sprintf("[[proxy]]\nname = %q\nhost = \"h2\"\nport = 3128\n", late)
}

func startLate(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if out, err := guestScript("h2", late, "--destroy"); err != nil {
			t.Logf("destroying %s: %v\n%s", late, err, out)
		}
	})
	if out, err := guestScript("h2", late, "--kind", "lan", "--args", "lab.agent=8", "--no-wait"); err != nil {
		t.Fatalf("guest.sh: %v\n%s", err, out)
	}
}

// TestLateAgentIsProvisioning also has two ports that are no proxies beside it:
// harmless, and never in the rotation.
func TestLateAgentIsProvisioning(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	webAddr := netip.MustParseAddrPort(strings.TrimPrefix(web.URL, "http://"))
	e := serve(t, configure(t, settings{more: lateProxy() + fmt.Sprintf(`
[[proxy]]
name = "web"
address = %q
port = %d
[[proxy]]
name = "ssh"
address = "10.77.1.2"
port = 22
`, webAddr.Addr(), webAddr.Port())}))
	e.ready(all()...)

	start := time.Now()
	startLate(t)
	e.await(start, 10*time.Second, "provisioning while it boots", State(late, "provisioning"))
	e.await(start, 45*time.Second, "ready once the agent is up", All(Ready(late), InRotation(late)))
	e.always(start, "a booting VM", State(late, "pending", "provisioning", "unproven", "ready"))
	e.always(start, "its neighbours", InRotation(all()...))
	e.ever(start, "the agent's absence", Code(late, "agent", 86))
	e.await(time.Now(), 5*time.Second, "the true address", IP(late, trueAddress(t, late)))

	e.always(e.start, "a web server and an SSH server", All(OutOfRotation("web"), OutOfRotation("ssh")))
	e.await(time.Now(), time.Second, "both unproven or demoted", All(State("web", "unproven", "demoted"), State("ssh", "unproven", "demoted")))
	if s := e.Last(); len(s.Notices) > 0 {
		t.Logf("notices: %q", s.Notices)
	}
}

func TestAgentStopped(t *testing.T) {
	e := serve(t, configure(t, settings{}))
	e.ready(all()...)
	addrs := trueAddresses(t, []string{"lan-1", "nat-1"})
	start := time.Now()
	// it is stopped when the command returns, and started again after 8 s
	together(
		func() { ctl(t, "h2", "agent", "lan-1", "restart", "8") },
		func() { ctl(t, "h1", "agent", "nat-1", "restart", "8") },
	)
	e.await(start, 8*time.Second, "bridged: the address is held", All(Held("lan-1", true), Code("lan-1", "agent", 86), IP("lan-1", addrs["lan-1"])))
	e.await(start, 8*time.Second, "NAT: the agent's outcome shows the gap", Code("nat-1", "agent", 86))
	e.await(start, 25*time.Second, "bridged: the address is confirmed",
		All(Held("lan-1", false), Names("lan-1", "agent", addrs["lan-1"], start.Add(8*time.Second)), IP("lan-1", addrs["lan-1"])))
	e.await(start, 25*time.Second, "NAT: the agent is back", Names("nat-1", "agent", addrs["nat-1"], start.Add(8*time.Second)))
	e.always(start, "the whole fleet", All(InRotation(all()...), Ready(all()...)))
	e.always(start, "NAT: the lease goes on answering, nothing is held", All(
		Names("nat-1", "lease", addrs["nat-1"], time.Time{}), Held("nat-1", false), IP("nat-1", addrs["nat-1"])))
	e.always(start, "the others' addresses are not held", All(Held("lan-2", false), Held("lan-3", false), Held("nat-2", false)))
}

// TestAgentsHang asks for addresses far more often than by default, so that the
// hung agents are asked again and again: what was not asked proves nothing.
func TestAgentsHang(t *testing.T) {
	e := serve(t, configure(t, settings{more: "[controller]\naddress_refresh = \"10s\"\n"}))
	e.ready(all()...)
	gen := e.Last().Hosts[1].Link.Generation
	start := time.Now()
	for _, name := range []string{"lan-1", "lan-2"} {
		mend(t, "h2", "agent", name, "thaw")
	}
	together(
		func() { ctl(t, "h2", "agent", "lan-1", "freeze") },
		func() { ctl(t, "h2", "agent", "lan-2", "freeze") },
	)
	pause(t, 20*time.Second)
	third := time.Now()
	ctl(t, "h2", "agent", "lan-3", "restart", "8")
	away := e.await(third, 8*time.Second, "the third's agent is away", All(Code("lan-3", "agent", 86), Held("lan-3", true)))
	e.await(away, 25*time.Second, "the third's address is confirmed", Held("lan-3", false))
	pause(t, time.Until(start.Add(60*time.Second)))
	e.always(start, "no proxy leaves the rotation", InRotation(all()...))
	e.always(start, "the link stays as it is", Generation("h2", gen))
	for _, name := range []string{"lan-1", "lan-2"} {
		e.ever(start, "the hung agent shows", All(Source(name, "agent", "failed", "not_asked"), Held(name, true)))
	}
	thaw := time.Now()
	together(
		func() { ctl(t, "h2", "agent", "lan-1", "thaw") },
		func() { ctl(t, "h2", "agent", "lan-2", "thaw") },
	)
	e.await(thaw, 25*time.Second, "all confirmed after the thaw", All(
		Ready(all()...), Held("lan-1", false), Held("lan-2", false),
		Source("lan-1", "agent", "addresses"), Source("lan-2", "agent", "addresses")))
	e.always(start, "no proxy has left the rotation", InRotation(all()...))
}

// TestOverrunBudget takes away the agent's response timeout, so that a hung
// agent's call never comes back: the reconcile overruns its budget.
func TestOverrunBudget(t *testing.T) {
	e := serve(t, configure(t, settings{
		h2:   "set_agent_timeout = false",
		more: "[controller]\naddress_refresh = \"3s\"\nreconcile_budget = \"1s\"\n",
	}))
	e.ready(all()...)
	gen := e.Last().Hosts[1].Link.Generation
	ctl(t, "h2", "virsh", "guest-agent-timeout", "lan-1", "--timeout", "-2")
	mend(t, "h2", "virsh", "guest-agent-timeout", "lan-1", "--timeout", "2")
	mend(t, "h2", "agent", "lan-1", "thaw")
	start := time.Now()
	ctl(t, "h2", "agent", "lan-1", "freeze")
	e.await(start, 15*time.Second, "the reconcile overruns", State("lan-1", "transient"))
	pause(t, 10*time.Second)
	neighbours := []string{"lan-2", "lan-3", "nat-1", "nat-2", "nat-3"}
	e.always(start, "the link is the same", Generation("h2", gen))
	e.always(start, "its neighbours", All(Ready(neighbours...), InRotation(neighbours...)))
	e.always(start, "the proxy itself", InRotation("lan-1"))
	thaw := time.Now()
	ctl(t, "h2", "agent", "lan-1", "thaw")
	e.await(thaw, 20*time.Second, "ready after the thaw", Ready(all()...))
	e.always(start, "the link is still the same", Generation("h2", gen))
}
