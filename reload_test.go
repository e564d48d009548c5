package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"virdeck/config"
	"virdeck/controller"
	"virdeck/health"
	"virdeck/logbuf"
	"virdeck/model"
)

// fakeReloaded is an engine that takes in what it is handed, or does not.
type fakeReloaded struct {
	refuse  error
	applied int
	ports   []uint16 // of the proxies it was handed last
	note    *model.Notice
}

func (f *fakeReloaded) Apply(d controller.Declared, _ controller.Settings) error {
	f.applied++
	f.ports = nil
	for _, p := range d.Proxies {
		f.ports = append(f.ports, p.Port)
	}
	return f.refuse
}

func (f *fakeReloaded) Reconfigure(health.Config)     {}
func (f *fakeReloaded) SetReloadNote(n *model.Notice) { f.note = n }

func (f *fakeReloaded) said() string {
	if f.note == nil {
		return ""
	}
	return f.note.Text
}

// proxyFile is a configuration file with one external proxy.
func proxyFile(t *testing.T, port int) {
	t.Helper()
	text := fmt.Sprintf("[fleet]\nstate_dir = \"s\"\n[[health.target]]\nurl = \"http://127.0.0.1:9/\"\n[[proxy]]\nname = \"x\"\naddress = \"127.0.0.1\"\nport = %d\n", port)
	if err := os.WriteFile("config.toml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newReloader(t *testing.T) (*reloader, *fakeReloaded, *logbuf.Ring) {
	t.Helper()
	at(t, "")
	proxyFile(t, 1)
	c, err := config.Load("config.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, ring := &fakeReloaded{}, logbuf.NewRing(100)
	return &reloader{loader: loader(), path: "config.toml", log: slog.New(logbuf.NewHandler(ring, slog.LevelInfo)), e: f, now: c}, f, ring
}

func TestReloader_whatIsLeftIsTriedAgain(t *testing.T) {
	r, f, _ := newReloader(t)
	expect := func(what, said, wantSaid string, err error, wantErr, note string) {
		t.Helper()
		if said != wantSaid || fmt.Sprint(err) != wantErr || f.said() != note {
			t.Errorf("%s: said %q, %v, and shows %q;\nwant %q, %v, %q", what, said, err, f.said(), wantSaid, wantErr, note)
		}
	}
	said, err := r.reload("test")
	expect("the same file", said, "nothing has changed", err, "<nil>", "")

	proxyFile(t, 2)
	f.refuse = errors.Join(errors.New("host a: did not come to rest"), errors.New("host b: same"))
	const left = "the configuration file is not applied yet: host a: did not come to rest; host b: same; reload again"
	for range 2 {
		said, err = r.reload("test")
		expect("a host is busy", said, "", err, "not all of it is applied, reload again: host a: did not come to rest\nhost b: same", left)
	}
	if f.applied != 3 || f.ports[0] != 2 {
		t.Errorf("applied %d times, port %v", f.applied, f.ports)
	}
	r.look()
	expect("somebody looks", "", "", nil, "<nil>", left)

	if err := os.WriteFile("config.toml", []byte("[fleet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.look()
	if !strings.HasPrefix(f.said(), "the configuration file is not good, and nothing of it is applied: config.toml:") {
		t.Errorf("a bad file: %q", f.said())
	}
	proxyFile(t, 2)
	r.look()
	expect("it is good again", "", "", nil, "<nil>", left)

	f.refuse = nil
	said, err = r.reload("test")
	expect("the host is at rest", said, "applied: what the last reload had left", err, "<nil>", "")
	said, err = r.reload("test")
	expect("once more", said, "nothing has changed", err, "<nil>", "")
}

// A file that is bad, and one that is good again, is news once.
func TestReloader_saysOnceThatAFileIsGoodAgain(t *testing.T) {
	r, _, ring := newReloader(t)
	for range 2 {
		if err := os.WriteFile("config.toml", []byte("[fleet\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.look()
		r.look()
		if _, err := r.reload("test"); err == nil || !strings.HasPrefix(err.Error(), "nothing is changed: config.toml:") {
			t.Errorf("reload: %v", err)
		}
		proxyFile(t, 1)
		r.look()
		r.look()
	}
	var got []string
	for _, rec := range ring.After(0, 100) {
		got = append(got, rec.Message)
	}
	bad := "configuration, not reloaded, nothing is changed, the configuration file is good again"
	if want := bad + ", " + bad; strings.Join(got, ", ") != want {
		t.Errorf("logged %q", got)
	}
}
