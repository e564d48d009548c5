package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"virdeck/config"
	"virdeck/model"
)

// managedConfig declares a pool on a host that nobody can reach.
const managedConfig = `
[fleet]
name = "home"
state_dir = "state"
[[health.target]]
url = "http://127.0.0.1:9/"
[[host]]
name = "beelink"
uri = "qemu+tcp://127.0.0.1:9/system"
[[template]]
name = "small"
vcpus = 1
memory = "128MiB"
base = "base.qcow2"
[[pool]]
name = "web"
template = "small"
count = 2
port = 3128
`

func TestPlan_saysWhatWaitsAndWhy(t *testing.T) {
	at(t, managedConfig)
	var out, errOut bytes.Buffer
	if code := run([]string{"plan", "-c", "config.toml"}, &out, &errOut); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	for _, want := range []string{"pool web", "0 of 2 there, 0 in rotation", "waits"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if _, err := os.Stat("state"); err == nil {
		t.Error("plan has made a state directory")
	}
}

// runEngine runs the engine of a configuration until the test ends.
func runEngine(t *testing.T) (*engine, *config.Config) {
	t.Helper()
	c, err := load(flags{config: "config.toml"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan *engine), make(chan error, 1)
	go func() {
		ended <- withEngine(ctx, c, flags{}, slog.New(slog.DiscardHandler), func(ctx context.Context, e *engine) error {
			started <- e
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case e := <-started:
		return e, c
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return nil, nil
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestEngine_reload(t *testing.T) {
	at(t, managedConfig)
	e, c := runEngine(t)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("config.toml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notice := func() string {
		for _, n := range e.Snapshot().Notices {
			if strings.Contains(n.Text, "configuration file") {
				return n.Text
			}
		}
		return ""
	}
	write(managedConfig + "[[proxy]]\nname = \"x-01\"\naddress = \"127.0.0.1\"\nport = 9\n")
	eventually(t, "a changed file is announced", func() bool {
		return strings.Contains(notice(), "1 change that is not applied") && strings.Contains(notice(), "reload to apply")
	})
	if p, _ := e.Snapshot().Proxy("x-01"); p != nil {
		t.Error("a changed file was applied by itself")
	}
	if _, err := e.Submit(model.Command{Verb: model.VerbReload, By: "test"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is applied, and the notice is gone", func() bool {
		p, _ := e.Snapshot().Proxy("x-01")
		return p != nil && notice() == ""
	})
	write("[fleet\n")
	eventually(t, "a bad file is told of", func() bool {
		return strings.Contains(notice(), "is not good, and nothing of it is applied: config.toml:")
	})
	if _, err := e.Submit(model.Command{Verb: model.VerbReload, By: "test"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its reload fails", func() bool {
		ops := e.Snapshot().Ops
		return len(ops) == 2 && ops[1].State == model.OpFailed && strings.HasPrefix(ops[1].Result, "nothing is changed: config.toml:")
	})
	if p, _ := e.Snapshot().Proxy("x-01"); p == nil {
		t.Error("a bad file has changed something")
	}
	audit, err := os.ReadFile(filepath.Join(c.Fleet.StateDir, auditFile))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(audit), `"verb":"reload"`); n != 4 {
		t.Errorf("%d lines of two reloads in the audit log, want 4:\n%s", n, audit)
	}
}

func TestEngine_aSecondOneSaysWhoHasTheFleet(t *testing.T) {
	at(t, managedConfig)
	_, _ = runEngine(t)
	var out, errOut bytes.Buffer
	code := run([]string{"serve", "-c", "config.toml"}, &out, &errOut)
	if code != exitFailed || !strings.Contains(errOut.String(), "another virdeck (pid ") || !strings.Contains(errOut.String(), "virdeck status") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

func TestEngine_refusesADamagedStoreAndLeavesIt(t *testing.T) {
	at(t, managedConfig)
	if err := os.MkdirAll("state", 0o700); err != nil {
		t.Fatal(err)
	}
	junk := []byte("this is no store")
	if err := os.WriteFile("state/virdeck.db", junk, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := run([]string{"serve", "-c", "config.toml"}, &out, &errOut)
	if code != exitFailed || !strings.Contains(errOut.String(), "state/virdeck.db") || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	if now, err := os.ReadFile("state/virdeck.db"); err != nil || !bytes.Equal(now, junk) {
		t.Errorf("the file is %q, %v", now, err)
	}
}
