package simhost

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	libvirt "github.com/digitalocean/go-libvirt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialer gives the client library a connection and keeps it, to be closed.
type dialer struct {
	t    testing.TB
	h    *Host
	conn net.Conn
}

func (d *dialer) Dial() (net.Conn, error) {
	c, err := d.h.Dial(context.Background())
	d.conn = c
	return c, err
}

// connect opens a client on a host; both end with the test.
func connect(t testing.TB, h *Host) *libvirt.Libvirt {
	t.Helper()
	l, _ := connectConn(t, h)
	return l
}

func connectConn(t testing.TB, h *Host) (*libvirt.Libvirt, net.Conn) {
	t.Helper()
	d := &dialer{t: t, h: h}
	l := libvirt.NewWithDialer(d)
	if err := l.Connect(); err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = d.conn.Close() })
	return l, d.conn
}

// newHost makes a host that is closed with the test.
func newHost(t testing.TB, opts Options) *Host {
	t.Helper()
	h := New(opts)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close host: %v", err)
		}
	})
	return h
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// ref is how a client names the domain.
func ref(d *Domain) libvirt.Domain {
	return libvirt.Domain{Name: d.Name(), UUID: d.UUID(), ID: d.ID()}
}
