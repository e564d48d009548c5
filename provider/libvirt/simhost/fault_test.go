package simhost

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// rawCall sends one call on a fresh connection that is open, and reads what
// comes for it, however it looks, until nothing more comes.
func rawCall(t *testing.T, h *Host, p Proc) (got []byte, end error) {
	t.Helper()
	c, err := h.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // the daemon may have closed it
	open, err := marshal(libvirt.ConnectOpenArgs{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range [][]byte{
		frame(header{prog: progRemote, vers: 1, proc: uint32(ProcConnectOpen), serial: 1}, open),
		frame(header{prog: progRemote, vers: 1, proc: uint32(p), serial: 2}, nil),
	} {
		if _, err := c.Write(f); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, _, err := readFrame(c); err != nil {
				t.Fatalf("open: %v", err)
			}
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, c)
	return b.Bytes(), err
}

// Every kind of fault, as the bytes that it leaves on the wire.
func TestFaultsOnTheWire(t *testing.T) {
	good := func(name string) []byte {
		data, err := marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return frame(header{prog: progRemote, vers: 1, proc: uint32(ProcConnectGetHostname), typ: typeReply, serial: 2}, data)
	}("sim")
	for _, c := range []struct {
		name  string
		fault Fault
		check func(got []byte) bool
		cut   bool // the connection ends
	}{
		{"none", Fault{Proc: ProcConnectClose}, func(b []byte) bool { return bytes.Equal(b, good) }, false},
		{"hang", Fault{Kind: FaultHang}, func(b []byte) bool { return len(b) == 0 }, false},
		{"short delay", Fault{Kind: FaultDelay, Delay: 900 * time.Millisecond}, func(b []byte) bool { return bytes.Equal(b, good) }, false},
		{"long delay", Fault{Kind: FaultDelay, Delay: 1100 * time.Millisecond}, func(b []byte) bool { return len(b) == 0 }, false},
		{"cut before", Fault{Kind: FaultCutBefore}, func(b []byte) bool { return len(b) == 0 }, true},
		{"cut reply", Fault{Kind: FaultCutReply}, func(b []byte) bool { return len(b) == 0 }, true},
		{"cut inside", Fault{Kind: FaultCutInside}, func(b []byte) bool { return bytes.Equal(b, good[:len(good)/2+1]) }, true},
		{"garbage", Fault{Kind: FaultGarbage}, func(b []byte) bool {
			return len(b) == headerLen+61 && bytes.Equal(b[4:headerLen], good[4:headerLen])
		}, false},
		{"noise", Fault{Kind: FaultNoise}, func(b []byte) bool { return len(b) == 96 && b[0]&0x80 != 0 }, false},
		{"short", Fault{Kind: FaultShort}, func(b []byte) bool { return binary.BigEndian.Uint32(b) == 12 }, false},
		{"huge", Fault{Kind: FaultHuge}, func(b []byte) bool { return binary.BigEndian.Uint32(b) == 0xfffffff0 }, false},
		{"error", Fault{Kind: FaultError, Error: Error{Code: 38, Domain: 7, Level: 1, Message: "no"}}, func(b []byte) bool {
			want, err := marshal([]uint32{
				38, 7, 1, 2, 0x6e6f0000, 1, 0, // code, domain, message "no", level, no domain
				1, 2, 0x25730000, 1, 2, 0x6e6f0000, 0, 0xffffffff, 0xffffffff, 0, // "%s", "no", nothing; no numbers, no network
			})
			return err == nil && bytes.Equal(b[headerLen:], want[4:]) && b[headerLen-1] == statusError
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, Options{})
				f := c.fault
				if f.Proc == 0 {
					f.Proc = ProcConnectGetHostname
				}
				defer h.Inject(f)()
				got, end := rawCall(t, h, ProcConnectGetHostname)
				if !c.check(got) {
					t.Errorf("on the wire: % x", got)
				}
				if cut := !errors.Is(end, os.ErrDeadlineExceeded); cut != c.cut {
					t.Errorf("the connection ended: %v (%v), want %v", cut, end, c.cut)
				}
			})
		})
	}
}

// What the client library makes of faults.
func TestFaultsSeenByTheClient(t *testing.T) {
	h := newHost(t, Options{})
	a := h.AddDomain(DomainSpec{Name: "a", Running: true})
	b := h.AddDomain(DomainSpec{Name: "b", Running: true})
	l := connect(t, h)

	remove := h.Inject(Fault{
		Proc: ProcDomainInterfaceAddresses, Domain: "a",
		Error: Error{Code: libvirt.ErrInvalidArg, Message: "invalid argument: so it is told"},
	})
	_, err := l.DomainInterfaceAddresses(ref(a), srcARP, 0)
	wantError(t, err, libvirt.ErrInvalidArg, "invalid argument: so it is told")
	if _, err := l.DomainInterfaceAddresses(ref(b), srcARP, 0); err != nil {
		t.Errorf("another domain: %v", err)
	}
	if _, _, err := l.DomainGetState(ref(a), 0); err != nil {
		t.Errorf("another call: %v", err)
	}
	remove()
	remove()
	if _, err := l.DomainInterfaceAddresses(ref(a), srcARP, 0); err != nil {
		t.Errorf("after the fault: %v", err)
	}

	h.Inject(Fault{Proc: ProcConnectGetHostname, Kind: FaultError, Error: Error{Code: libvirt.ErrSystemError, Message: "twice"}, Times: 2})
	for i := range 3 {
		if _, err := l.ConnectGetHostname(); (err != nil) != (i < 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for _, lookup := range []struct {
		proc Proc
		call func() error
	}{
		{ProcDomainLookupByName, func() error { _, err := l.DomainLookupByName("b"); return err }},
		{ProcDomainLookupByUUID, func() error { _, err := l.DomainLookupByUUID(b.UUID()); return err }},
	} {
		remove := h.Inject(Fault{Domain: "b", Error: Error{Code: libvirt.ErrNoDomain, Message: "hidden"}})
		wantError(t, lookup.call(), libvirt.ErrNoDomain, "hidden")
		remove()
		if err := lookup.call(); err != nil {
			t.Errorf("%v: %v", lookup.proc, err)
		}
	}
	h.Inject(Fault{Proc: ProcConnectGetType, Kind: FaultCutInside})
	if _, err := l.ConnectGetType(); !errors.Is(err, libvirt.ErrInterrupted) {
		t.Errorf("cut inside: %v, want %v", err, libvirt.ErrInterrupted)
	}
	// Error code 0 means no error to the library, which then has an empty result.
	l = connect(t, h)
	h.Inject(Fault{Proc: ProcConnectGetURI, Error: Error{Code: libvirt.ErrOk, Message: "ok"}})
	if uri, err := l.ConnectGetUri(); err == nil && uri != "" {
		t.Errorf("code 0: %q, %v", uri, err)
	}
}

// A hang ends with its fault, and the call is carried out then.
func TestHangIsCarriedOutAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d"})
		l := connect(t, h)
		remove := h.Inject(Fault{Proc: ProcDomainCreate, Kind: FaultHang})
		done := make(chan error, 1)
		go func() { done <- l.DomainCreate(ref(d)) }()
		time.Sleep(time.Hour)
		if d.ID() != -1 {
			t.Error("the domain runs although the call hangs")
		}
		remove()
		if err := <-done; err != nil || d.ID() != 1 {
			t.Errorf("%v, id %d", err, d.ID())
		}
	})
}

func TestKillAndStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{Name: "h"})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l := connect(t, h)
		d.AgentHang()
		stuck := askAgent(l, d)
		synctest.Wait()
		h.Kill()
		if a := <-stuck; !errors.Is(a.err, libvirt.ErrInterrupted) {
			t.Errorf("a call in flight: %v", a.err)
		}
		synctest.Wait()
		if _, err := l.ConnectGetHostname(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a call afterwards: %v", err)
		}
		_, err := h.Dial(t.Context())
		var op *net.OpError
		if !errors.As(err, &op) || !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != "dial unix h: connection refused" {
			t.Errorf("dial: %v", err)
		}
		h.Kill() // twice is harmless
		if n := h.Conns(); n != 0 {
			t.Errorf("%d connections", n)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		l = connect(t, h)
		got, err := l.DomainLookupByName("d")
		if err != nil || got.ID != 1 {
			t.Errorf("the guest went on: %v, %v", got, err)
		}
		if n := h.Conns(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

// A frozen daemon accepts connections and stays silent; the thaw answers all.
func TestFreezeAndThaw(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		l, conn := connectConn(t, h)
		h.ResetCalls()
		h.Freeze()
		type result struct {
			what string
			at   time.Duration
			err  error
		}
		results := make(chan result, 2)
		begin := time.Now()
		go func() {
			_, err := l.ConnectGetHostname()
			results <- result{"call", time.Since(begin), err}
		}()
		fresh := &dialer{t: t, h: h}
		go func() {
			err := libvirt.NewWithDialer(fresh).Connect()
			results <- result{"connect", time.Since(begin), err}
		}()
		if _, err := conn.Write(frame(header{prog: progKeepalive, vers: 1, proc: keepalivePing, typ: typeMessage}, nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.Dials() != 1 || h.Pings() != 0 || len(h.Calls()) != 0 || len(results) != 0 {
			t.Errorf("frozen: %d dials, %d pings, calls %v, %d results", h.Dials(), h.Pings(), h.Calls(), len(results))
		}
		h.Thaw()
		for range 2 {
			if r := <-results; r.err != nil || r.at != time.Minute {
				t.Errorf("%s: %v after %v", r.what, r.err, r.at)
			}
		}
		synctest.Wait()
		if h.Pings() != 1 {
			t.Errorf("%d pings, want 1", h.Pings())
		}
		if err := fresh.conn.Close(); err != nil {
			t.Error(err)
		}
		// Closing the connection frees the callers of a frozen daemon.
		h.Freeze()
		go func() { results <- result{"freed", 0, l.Disconnect()} }()
		synctest.Wait()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if r := <-results; !errors.Is(r.err, libvirt.ErrInterrupted) {
			t.Errorf("%s: %v", r.what, r.err)
		}
	})
}

func TestRefuse(t *testing.T) {
	h := newHost(t, Options{})
	l := connect(t, h)
	h.Refuse(true)
	if _, err := h.Dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
	if _, err := l.ConnectGetHostname(); err != nil {
		t.Errorf("an open connection: %v", err)
	}
	h.Refuse(false)
	connect(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("dial with an ended context: %v", err)
	}
}

func TestCallsAreCounted(t *testing.T) {
	h := newHost(t, Options{})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true})
	l := connect(t, h)
	if n := h.Calls()[ProcConnectOpen]; n != 1 {
		t.Errorf("%d opens, want 1", n)
	}
	h.ResetCalls()
	for range 3 {
		if _, _, err := l.DomainGetState(ref(d), 0); err != nil {
			t.Fatal(err)
		}
	}
	h.Inject(Fault{Proc: ProcDomainGetState, Error: Error{Code: 1, Message: "m"}})
	if _, _, err := l.DomainGetState(ref(d), 0); err == nil {
		t.Error("no error")
	}
	if c := h.Calls(); c[ProcDomainGetState] != 4 || len(c) != 1 {
		t.Errorf("calls %v, want DomainGetState: 4", c)
	}
}

// Calls out of order, and frames that are none.
func TestProtocolErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		reply := func(t *testing.T, send ...[]byte) (header, string, error) {
			t.Helper()
			c, err := h.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // may be closed
			for _, s := range send {
				if _, err := c.Write(s); err != nil {
					t.Fatal(err)
				}
			}
			head, body, err := readFrame(c)
			if err != nil {
				return head, "", err
			}
			var e wireError
			if head.status == statusError {
				if _, err := unmarshal(body, &e); err != nil {
					t.Fatal(err)
				}
				return head, *e.Message, nil
			}
			return head, "", nil
		}
		call := func(prog, vers, proc uint32, body []byte) []byte {
			return frame(header{prog: prog, vers: vers, proc: proc, serial: 7}, body)
		}
		for _, c := range []struct {
			name string
			send []byte
			want string
		}{
			{"not open", call(progRemote, 1, uint32(ProcConnectGetHostname), nil), "internal error: hypervisor connection not open"},
			{"unknown procedure", call(progRemote, 1, 9999, nil), "unknown procedure: 9999"},
			{"qemu program", call(progQEMU, 1, 1, nil), "unknown procedure: 1"},
			{"unknown program", call(77, 1, 1, nil), "Cannot find program 77 version 1"},
			{"unknown version", call(progRemote, 3, 1, nil), "Cannot find program 536903814 version 3"},
			{"arguments cut short", call(progRemote, 1, uint32(ProcConnectOpen), []byte{0, 0}), "Unable to decode message payload"},
		} {
			head, got, err := reply(t, c.send)
			if err != nil || got != c.want || head.serial != 7 || head.typ != typeReply {
				t.Errorf("%s: %q %+v, %v; want %q", c.name, got, head, err, c.want)
			}
		}
		for _, c := range []struct {
			name string
			send []byte
		}{
			{"short length", be32(nil, 27)},
			{"long length", be32(nil, frameMax+1)},
			{"a reply", frame(header{prog: progRemote, vers: 1, typ: typeReply}, nil)},
		} {
			if _, _, err := reply(t, append(c.send, make([]byte, headerLen)...)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v, want the connection to end", c.name, err)
			}
		}
		// Data of no stream and a stray pong are passed over.
		stray := frame(header{prog: progRemote, vers: 1, typ: typeStream}, []byte("data"))
		pong := frame(header{prog: progKeepalive, vers: 1, proc: keepalivePong, typ: typeMessage}, nil)
		if head, _, err := reply(t, stray, pong, call(progRemote, 1, uint32(ProcAuthList), nil)); err != nil || head.status != statusOK {
			t.Errorf("after strays: %+v, %v", head, err)
		}
	})
}
