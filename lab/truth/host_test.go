//go:build lab

package truth

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider/libvirt"
)

// transports are those that the lab's daemons listen on.
func transports() []libvirt.Transport {
	return []libvirt.Transport{libvirt.TransportUnix, libvirt.TransportTCP, libvirt.TransportSSH}
}

// endpoint is the way to a host's daemon.
func (h *labHost) endpoint(tr libvirt.Transport) libvirt.Endpoint {
	e := libvirt.Endpoint{Transport: tr}
	ip := fmt.Sprintf("10.77.%d.2", h.number)
	switch tr {
	case libvirt.TransportUnix:
		e.Sockets = []string{h.socket()}
	case libvirt.TransportTCP:
		e.Address = net.JoinHostPort(ip, "16509")
	case libvirt.TransportSSH:
		e.Address, e.User, e.Sockets = net.JoinHostPort(ip, "22"), "root", libvirt.DefaultSockets()
		e.KeyFile = filepath.Join(state(), "ssh", "id_ed25519")
		e.KnownHosts = filepath.Join(state(), "ssh", "known_hosts")
	case libvirt.TransportTLS: // the lab has none
	}
	return e
}

func (h *labHost) socket() string { return h.dir("run", "libvirt-sock") }

// open starts the provider for a host, with virdeck's own settings but for what
// change alters. It is closed when the test ends, or before.
func (h *labHost) open(t *testing.T, tr libvirt.Transport, change func(*libvirt.Options)) *libvirt.Host {
	t.Helper()
	ep := h.endpoint(tr)
	o := libvirt.Options{
		Link:         libvirt.LinkOptions{Host: model.HostName(h.name), Dial: ep.Dialer(), Endpoint: ep.String()},
		AgentTimeout: 2 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	p := libvirt.New(o)
	t.Cleanup(p.Close)
	return p
}

// up waits until a link is up.
func up(t *testing.T, p *libvirt.Host, limit time.Duration) {
	t.Helper()
	await(t, limit, "the link is up", func() bool { return p.Link().State == model.LinkUp })
}

// raw is a client beside the provider: go-libvirt on a connection of its own.
type raw struct {
	*golibvirt.Libvirt
	conn net.Conn
}

// Dial implements go-libvirt's dialer.
func (r *raw) Dial() (net.Conn, error) { return r.conn, nil }

// close leaves without asking the daemon, which may be frozen.
func (r *raw) close() { _ = r.conn.Close() }

func (h *labHost) raw() (*raw, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := d.DialContext(ctx, "unix", h.socket())
	if err != nil {
		return nil, err
	}
	r := &raw{conn: c}
	r.Libvirt = golibvirt.NewWithDialer(r)
	if err := r.Connect(); err != nil {
		r.close()
		return nil, fmt.Errorf("connect to %s: %w", h.name, err)
	}
	return r, nil
}

// behind does something to a guest's domain behind the provider's back.
func (h *labHost) behind(g guest, f func(*golibvirt.Libvirt, golibvirt.Domain) error) error {
	r, err := h.raw()
	if err != nil {
		return err
	}
	defer r.close()
	d, err := r.DomainLookupByName(domain(g))
	if err != nil {
		return err
	}
	return f(r.Libvirt, d)
}

// responds waits until a guest's agent answers.
func (h *labHost) responds(g guest, limit time.Duration) error {
	start := time.Now()
	for {
		err := h.behind(g, func(l *golibvirt.Libvirt, d golibvirt.Domain) error {
			if _, err := l.DomainAgentSetResponseTimeout(d, 2, 0); err != nil {
				return err
			}
			_, err := l.DomainInterfaceAddresses(d, 1, 0)
			return err
		})
		if err == nil {
			return nil
		}
		if time.Since(start) > limit {
			return fmt.Errorf("the agent of %s on %s does not answer: %w", domain(g), h.name, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// footprint is what a process holds.
type footprint struct{ goroutines, files int }

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors", f.goroutines, f.files)
}

func measure(t *testing.T) footprint {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	// Each subtest is a goroutine of its own.
	return footprint{runtime.NumGoroutine() - strings.Count(t.Name(), "/"), len(fds)}
}

// base is the footprint before a test's links, with everything made that is
// made once.
func (h *labHost) base(t *testing.T) footprint {
	t.Helper()
	for _, tr := range transports() {
		p := h.open(t, tr, nil)
		up(t, p, 10*time.Second)
		p.Close()
	}
	h.must(t, "libvirtd", "pid")
	f := measure(t)
	for range 20 { // until what was closed has gone
		pause(t, 100*time.Millisecond)
		now := measure(t)
		f.goroutines, f.files = min(f.goroutines, now.goroutines), min(f.files, now.files)
	}
	return f
}

// backTo holds a test to leaving nothing behind. It returns what is left.
func backTo(t *testing.T, base footprint) footprint {
	t.Helper()
	var now footprint
	await(t, 10*time.Second, "all goroutines and descriptors are given back", func() bool {
		now = measure(t)
		return now.goroutines <= base.goroutines && now.files <= base.files
	})
	return footprint{now.goroutines - base.goroutines, now.files - base.files}
}
