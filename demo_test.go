package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

// A newcomer sees VMs made, made anew and adopted, with the demo's story going on
// around them.
func TestDemo_makesAndAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := load(flags{demo: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		log := slog.New(slog.DiscardHandler)
		k, err := openKept(ctx, c, flags{demo: true}, log)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEngine(ctx, c, flags{demo: true}, log, k, false)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			e.run(ctx)
			close(done)
		}()
		defer func() {
			cancel()
			<-done
		}()
		serves := func(name model.ProxyName) bool {
			p, _ := e.Snapshot().Proxy(name)
			return p != nil && p.Health.InRotation
		}
		within := func(limit time.Duration, what string, ok func() bool) {
			t.Helper()
			for end := time.Now().Add(limit); !ok(); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not within %s: %s", limit, what)
				}
			}
		}
		submit := func(cmd model.Command) {
			t.Helper()
			cmd.By = "newcomer"
			if _, err := e.Submit(cmd); err != nil {
				t.Fatal(err)
			}
		}
		within(15*time.Second, "the pool serves", func() bool { return serves("web-1") && serves("web-2") })
		h := e.Snapshot().Host("beelink")
		if len(h.Undeclared) != 1 || h.Undeclared[0] != "attic" {
			t.Fatalf("undeclared %v", h.Undeclared)
		}
		submit(model.Command{Verb: model.VerbAdopt, Host: "beelink", Adopt: &model.ProxySpec{
			Name: "attic", Host: "beelink", Backing: model.BackingAdopted, Domain: "attic", Port: 3128, Pool: "default",
		}})
		within(20*time.Second, "the adopted one serves", func() bool { return serves("attic") })
		p, _ := e.Snapshot().Proxy("web-2")
		uid := p.Managed.UID
		submit(model.Command{Verb: model.VerbRecreate, Host: p.Spec.Host, Proxy: "web-2"})
		within(time.Minute, "another VM serves", func() bool {
			p, _ := e.Snapshot().Proxy("web-2")
			return p != nil && p.Managed != nil && p.Managed.UID != uid && serves("web-2")
		})
	})
}

// A scenario is not played beside a demo that runs, and that is said.
func TestStatus_saysThatAScenarioIsNotPlayed(t *testing.T) {
	at(t, "")
	const story = "[[host]]\nname = \"big\"\n[[guest]]\nhost = \"big\"\nname = \"vm\"\ncount = 3\n"
	if err := os.WriteFile("story.toml", []byte(story), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func() (out, errOut bytes.Buffer) {
		t.Helper()
		if code := run([]string{"status", "--demo", "--scenario", "story.toml"}, &out, &errOut); code != exitGood {
			t.Errorf("exit %d: %s", code, errOut.String())
		}
		return out, errOut
	}
	if out, errOut := status(); !strings.Contains(out.String(), "1 host, 3 proxies") || errOut.Len() > 0 {
		t.Errorf("alone: %s%s", out.String(), errOut.String())
	}
	c, err := load(flags{demo: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := withEngine(t.Context(), c, flags{demo: true}, slog.New(slog.DiscardHandler), func(context.Context, *engine) error {
		out, errOut := status()
		if !strings.Contains(out.String(), "3 hosts") || errOut.String() != "virdeck: this is what the running demo says; story.toml is not played\n" {
			t.Errorf("beside a demo: %s%s", out.String(), errOut.String())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
