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

// A file that has become bad takes nobody's sight of the engine that runs.
func TestStatus_asksTheRunningOneThoughTheFileIsBad(t *testing.T) {
	at(t, managedConfig)
	e, _ := runEngine(t)
	eventually(t, "a first look", func() bool { return e.Snapshot().Pools != nil })
	for _, tt := range []struct{ name, file, problem string }{
		{"a bad setting", strings.Replace(managedConfig, "count = 2", "count = -2", 1), "config.toml:18: pool \"web\": count: -2 is out of range; allowed: 0 to 10000\n"},
		{"no TOML after its state_dir", managedConfig + "[[pool\n", "config.toml:21: not TOML:"},
		{"a state_dir of another type elsewhere", managedConfig + "[link]\nstate_dir = 1\n", "config.toml:21: link.state_dir: unknown key;"},
	} {
		if err := os.WriteFile("config.toml", []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]string{"status": "fleet home", "plan": "pool web", "status --json": `"fleet": "home"`} {
			var out, errOut bytes.Buffer
			if code := run(append(strings.Fields(args), "-c", "config.toml"), &out, &errOut); code != exitGood {
				t.Errorf("%s: %s: exit %d: %s", tt.name, args, code, errOut.String())
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %s: %s", tt.name, args, out.String())
			}
			if !strings.HasPrefix(errOut.String(), "virdeck: this is what the running virdeck says; the configuration file is not good:\n"+tt.problem) {
				t.Errorf("%s: %s: said %q", tt.name, args, errOut.String())
			}
		}
	}
	if err := os.WriteFile("config.toml", []byte(managedConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := run([]string{"status"}, &out, &errOut); code != exitGood || errOut.Len() > 0 {
		t.Errorf("a good file: exit %d, %s", code, errOut.String())
	}
	out.Reset()
	if err := os.WriteFile("config.toml", []byte("[fleet]\nstate_dir = \"elsewhere\"\nname = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"status"}, &out, &errOut); code != exitUsage || out.Len() > 0 || !strings.HasPrefix(errOut.String(), "config.toml:3: fleet.name:") {
		t.Errorf("none runs there: exit %d: %s%s", code, out.String(), errOut.String())
	}
}
