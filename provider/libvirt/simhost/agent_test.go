package simhost

import (
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// asked is an agent read that runs on its own.
type asked struct {
	took time.Duration
	err  error
}

func askAgent(l *libvirt.Libvirt, d *Domain) <-chan asked {
	out := make(chan asked, 1)
	begin := time.Now()
	go func() {
		_, err := l.DomainInterfaceAddresses(ref(d), srcAgent, 0)
		out <- asked{time.Since(begin), err}
	}()
	return out
}

// pending fails when the read has ended already.
func pending(t *testing.T, what string, c <-chan asked) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		t.Fatalf("%s: ended after %v: %v", what, a.took, a.err)
	default:
	}
}

func TestAgentRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l := connect(t, h)
		up := read(l, d, srcAgent)
		d.AgentRestart(8 * time.Second)
		time.Sleep(7900 * time.Millisecond)
		if got := read(l, d, srcAgent); got != "error: "+notConnected {
			t.Errorf("in the gap: %q", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := read(l, d, srcAgent); got != up {
			t.Errorf("after it: %q, want %q", got, up)
		}
	})
}

// A hung agent blocks without limit; other calls on the domain go on; one more
// agent call gives up after 30 s; the first is answered when the agent thaws.
func TestAgentHangBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l := connect(t, h)
		d.AgentHang()
		first := askAgent(l, d)
		pending(t, "first", first)
		second := <-askAgent(l, d)
		wantError(t, second.err, libvirt.ErrOperationTimeout, "Timed out during operation: cannot acquire state change lock "+
			"(held by agent=remoteDispatchDomainInterfaceAddresses)")
		if second.took != 30*time.Second {
			t.Errorf("the second gave up after %v, want 30s", second.took)
		}
		if _, _, err := l.DomainGetState(ref(d), 0); err != nil {
			t.Errorf("state: %v", err)
		}
		time.Sleep(24 * time.Hour)
		pending(t, "first, a day later", first)
		d.AgentThaw()
		if a := <-first; a.err != nil || a.took < 24*time.Hour {
			t.Errorf("thawed: %v after %v", a.err, a.took)
		}
	})
}

func TestAgentResponseTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l := connect(t, h)
		if r, err := l.DomainAgentSetResponseTimeout(ref(d), 2, 0); err != nil || r != 0 {
			t.Fatalf("set: %d, %v", r, err)
		}
		d.AgentHang()
		a := <-askAgent(l, d)
		wantError(t, a.err, libvirt.ErrAgentUnresponsive, notNow)
		if a.took != 2*time.Second {
			t.Errorf("took %v, want 2s", a.took)
		}
		d.AgentThaw()
		if a := <-askAgent(l, d); a.err != nil {
			t.Errorf("after the thaw: %v", a.err)
		}
		// It goes with the domain's process, and is not asked back by the daemon's.
		h.Kill()
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		l = connect(t, h)
		d.AgentHang()
		if a := <-askAgent(l, d); a.took != 2*time.Second {
			t.Errorf("after the daemon's restart: took %v, want 2s", a.took)
		}
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if a := <-askAgent(l, d); a.err != nil {
			t.Fatalf("talk to the new agent: %v", a.err)
		}
		d.AgentHang()
		blocked := askAgent(l, d)
		time.Sleep(time.Hour)
		pending(t, "after a new start", blocked)
		d.AgentStop()
		wantError(t, (<-blocked).err, libvirt.ErrAgentUnresponsive, "Guest agent is not responding: Guest agent disappeared while executing command")

		_, err := l.DomainAgentSetResponseTimeout(ref(d), -3, 0)
		wantError(t, err, libvirt.ErrInvalidArg, "invalid argument: guest agent timeout '-3' is less than the minimum '-2'")
	})
}

// An agent that the daemon has not talked to yet gets 5 s for the first exchange.
func TestAgentHangBeforeFirstTalk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d"})
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		l := connect(t, h)
		d.AgentHang()
		a := <-askAgent(l, d)
		wantError(t, a.err, libvirt.ErrAgentUnresponsive, notNow)
		if a.took != 5*time.Second {
			t.Errorf("took %v, want 5s", a.took)
		}
	})
}

// Five calls in flight on a connection: nothing further is read from it, pings
// included, while another connection is answered at once.
func TestFiveStuckCallsFreezeTheirConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l, conn := connectConn(t, h)
		other := connect(t, h)
		h.ResetCalls()
		d.AgentHang()
		var stuck []<-chan asked
		ping := frame(header{prog: progKeepalive, vers: 1, proc: keepalivePing, typ: typeMessage}, nil)
		write := func() {
			t.Helper()
			if _, err := conn.Write(ping); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range 4 {
			stuck = append(stuck, askAgent(l, d))
			synctest.Wait()
		}
		write()
		if n := h.Pings(); n != 1 {
			t.Errorf("with four stuck calls %d pings were read, want 1", n)
		}
		stuck = append(stuck, askAgent(l, d))
		synctest.Wait()
		write()
		if n := h.Pings(); n != 1 {
			t.Errorf("with five stuck calls %d pings were read, want still 1", n)
		}
		if _, err := other.ConnectGetHostname(); err != nil {
			t.Errorf("another connection: %v", err)
		}
		if n := h.Calls()[ProcDomainInterfaceAddresses]; n != 5 {
			t.Errorf("%d agent calls, want 5", n)
		}
		// Four waited for the first one's job; they give up after 30 s.
		for _, c := range stuck[1:] {
			if a := <-c; a.took != 30*time.Second {
				t.Errorf("a waiter ended after %v, want 30s", a.took)
			}
		}
		synctest.Wait()
		if n := h.Pings(); n != 2 {
			t.Errorf("with one stuck call left %d pings were read, want 2", n)
		}
		d.AgentThaw()
		if a := <-stuck[0]; a.err != nil {
			t.Errorf("first: %v", a.err)
		}
	})
}

// Stuck calls hold the daemon's workers even when their connections are gone:
// fresh connections get no answer to normal calls until the 30 s are over,
// while calls of high priority go on.
func TestStuckCallsExhaustTheWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		d.AgentHang()
		for range 5 {
			l, conn := connectConn(t, h)
			for range 4 {
				askAgent(l, d)
			}
			synctest.Wait()
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
		fresh := connect(t, h) // open is of high priority
		begin := time.Now()
		if _, _, err := fresh.ConnectListAllDomains(1, 0); err != nil || time.Since(begin) != 0 {
			t.Errorf("high priority: %v after %v", err, time.Since(begin))
		}
		if _, err := fresh.ConnectGetAllDomainStats(nil, 1, 0); err != nil || time.Since(begin) != 30*time.Second {
			t.Errorf("normal priority: %v after %v, want 30s", err, time.Since(begin))
		}
		d.AgentThaw()
	})
}
