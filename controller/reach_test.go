package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// held is a host whose domain starts take as long as the test wants.
type held struct {
	provider.Host
	start chan struct{}
}

func (h held) Start(ctx context.Context, _ string) error {
	select {
	case <-h.start:
		return errors.New("released by the test")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// result waits for a command's end, and returns how it ended.
func (f *fleet) result(id model.OpID) (result string) {
	f.t.Helper()
	f.within(powerLimit+time.Second, "the command has ended", func() bool {
		for _, o := range f.Snapshot().Ops {
			if o.ID == id && !o.Ended.IsZero() {
				result = o.Result
				return true
			}
		}
		return false
	})
	return result
}

// A reload that changes how a host is reached waits for what an operator has
// asked of it; what comes later goes the new way, to the same host.
func TestReach_changesBetweenWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("h1")
		f.bridged("h1", "p1", "10.1.0.11")
		start := make(chan struct{})
		open := f.specs[0].Open
		f.specs[0].Open = func(ev func(provider.Event), ls func(model.LinkStatus)) provider.Host {
			return held{open(ev, ls), start}
		}
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p1") })
		h, p := f.Controller.host("h1"), f.Controller.host("h1").proxy("p1")
		op, err := f.Submit(model.Command{Verb: model.VerbStart, Host: "h1", Proxy: "p1", By: "t"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		other := f.specs[0]
		other.Key, other.Open = "another way", open
		applied := make(chan error, 1)
		go func() {
			applied <- f.Apply(Declared{Hosts: []HostSpec{other}, Proxies: f.decl}, f.set)
		}()
		f.during(5*time.Second, "the reload waits for the start", func() bool { return len(applied) == 0 && h.via().spec.Key == "" })
		stop, err := f.Submit(model.Command{Verb: model.VerbStop, Host: "h1", Proxy: "p1", By: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := f.result(stop), "the settings of h1 are being changed: try again"; got != want {
			t.Errorf("a stop meanwhile ends with %q, want %q", got, want)
		}
		close(start)
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		if now := f.Controller.host("h1"); now != h || now.proxy("p1") != p || now.via().spec.Key != "another way" {
			t.Error("not the same host, reached another way")
		}
		if got := f.result(op); got != "released by the test" {
			t.Errorf("the start ends with %q", got)
		}
		f.within(10*time.Second, "the host is looked at the new way", func() bool {
			return f.Snapshot().Hosts[0].Link.State == model.LinkUp && f.ready("p1")
		})
		f.during(30*time.Second, "in rotation", func() bool { return f.ready("p1") })
	})
}

// What is left under way after the limit keeps the old way, and says so.
func TestReach_staysWhileAWriteHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("h1")
		f.bridged("h1", "p1", "10.1.0.11")
		open := f.specs[0].Open
		f.specs[0].Open = func(ev func(provider.Event), ls func(model.LinkStatus)) provider.Host {
			return held{open(ev, ls), nil}
		}
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p1") })
		if _, err := f.Submit(model.Command{Verb: model.VerbStart, Host: "h1", Proxy: "p1", By: "t"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		other := f.specs[0]
		other.Key, other.Open = "another way", open
		next := Declared{Hosts: []HostSpec{other}, Proxies: f.decl}
		err := f.Apply(next, f.set)
		if want := "host h1: 1 writes are still under way: its settings are not applied yet; reload again"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		f.result(f.Snapshot().Ops[0].ID)
		if err := f.Apply(next, f.set); err != nil { // the same fleet again: what was left is applied
			t.Fatal(err)
		}
		if got := f.Controller.host("h1").via().spec.Key; got != "another way" {
			t.Errorf("key %q after the second reload", got)
		}
		f.within(10*time.Second, "ready", func() bool { return f.ready("p1") })
	})
}
