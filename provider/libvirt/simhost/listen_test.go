package simhost

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	libvirt "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
)

// The real client with its own dialer on a real socket, through kill and start.
func TestListenUnix(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	path := filepath.Join(t.TempDir(), "libvirt-sock")
	closer, err := h.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.ListenUnix(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("listen twice: %v", err)
	}
	dial := func() (*libvirt.Libvirt, error) {
		l := libvirt.NewWithDialer(dialers.NewLocal(dialers.WithSocket(path)))
		return l, l.Connect()
	}
	l, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	if name, err := l.ConnectGetHostname(); err != nil || name != "h" {
		t.Errorf("hostname %q, %v", name, err)
	}
	h.Kill()
	<-l.Disconnected()
	if _, err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial while killed: %v", err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	if l, err = dial(); err != nil {
		t.Fatal(err)
	}
	h.Refuse(true)
	if _, err := dial(); err == nil {
		t.Error("a refusing daemon took a connection")
	}
	h.Refuse(false)
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dial(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dial afterwards: %v", err)
	}
	if _, err := l.ConnectGetHostname(); err != nil {
		t.Errorf("an open connection goes on: %v", err)
	}
	if err := l.Disconnect(); err != nil {
		t.Error(err)
	}
}

func TestListenUnixCannot(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	if _, err := h.ListenUnix(filepath.Join(t.TempDir(), "none", "sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ListenUnix(filepath.Join(t.TempDir(), "sock")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed host: %v", err)
	}
}

func TestListenProxies(t *testing.T) {
	h := newHost(t, Options{})
	up := h.AddDomain(DomainSpec{Name: "up", Running: true})
	h.AddDomain(DomainSpec{Name: "off"})
	list, closer, err := h.ListenProxies()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(i int) string {
		conn, err := net.Dial("tcp", list[i].Address)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, conn: conn, r: bufio.NewReader(conn)}
		defer func() { _ = conn.Close() }() // read what was wanted
		return c.ask(forward)
	}
	if list[0].Domain != up || !strings.HasPrefix(list[0].Address, "127.0.0.1:") {
		t.Errorf("listener %+v", list[0])
	}
	if got := ask(0); got != "200 "+up.Exit().String() {
		t.Errorf("up: %q", got)
	}
	if got := ask(1); got == "" || strings.HasPrefix(got, "200") {
		t.Errorf("off: %q", got)
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", list[0].Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial afterwards: %v", err)
	}
}

// Close ends everything that is open, whatever it waits for.
func TestCloseEndsEverything(t *testing.T) {
	h := New(Options{})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true, Proxy: Proxy{Mode: ProxyHang}})
	l := connect(t, h)
	d.AgentHang()
	stuck := askAgent(l, d)
	for h.Calls()[ProcDomainInterfaceAddresses] == 0 {
		if _, err := l.ConnectGetHostname(); err != nil { // a round trip, so that the other call gets through
			t.Fatal(err)
		}
	}
	p := dialProxy(t, d)
	o, err := h.Origin().Dial(t.Context(), "tcp", "origin.sim:80")
	if err != nil {
		t.Fatal(err)
	}
	h.Freeze()
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if a := <-stuck; !errors.Is(a.err, libvirt.ErrInterrupted) {
		t.Errorf("a call in flight: %v", a.err)
	}
	for what, c := range map[string]net.Conn{"proxy": p.conn, "origin": o} {
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: read %d, %v", what, n, err)
		}
	}
	if _, err := h.DialProxy(t.Context(), "tcp", d.ProxyAddress()); err == nil {
		t.Error("a closed host took a connection")
	}
}
