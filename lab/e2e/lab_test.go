//go:build lab

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"virdeck/lab/lock"
)

// target is the origin's address that is the same from everywhere.
const target = "http://10.77.0.1:8000/ip"

// nat and lan are the VMs behind the two hosts: h1 gives its guests addresses
// and can tell them; h2 has its guests bridged past it and hears nothing.
func nat() []string { return []string{"nat-1", "nat-2", "nat-3"} }
func lan() []string { return []string{"lan-1", "lan-2", "lan-3"} }
func all() []string { return append(nat(), lan()...) }

func hostOf(name string) string {
	if strings.HasPrefix(name, "nat-") {
		return "h1"
	}
	return "h2"
}

// root is the source tree; the tests run in lab/e2e.
func root() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err) // no working directory: nothing can run
	}
	return dir
}

func script(path string) string { return filepath.Join(root(), "lab", path) }

// binary is what is tested: bin/virdeck, or what VIRDECK_BIN names.
func binary() string {
	if path := os.Getenv("VIRDECK_BIN"); path != "" {
		return path
	}
	return filepath.Join(root(), "bin", "virdeck")
}

// TestMain brings the lab up once for all tests, and takes it down. With
// LAB_KEEP set it uses the lab that is up, and leaves it so.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	keep := os.Getenv("LAB_KEEP") != ""
	if _, err := os.Stat(binary()); err != nil {
		fmt.Fprintf(os.Stderr, "%v: run make build\n", err)
		return 1
	}
	unlock, err := lock.Take()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer unlock()
	if !keep {
		defer func() {
			if out, err := command(context.Background(), script("hosts/down.sh")); err != nil {
				fmt.Fprintf(os.Stderr, "down.sh: %v\n%s", err, out)
			}
		}()
	}
	start := time.Now()
	if err := bringUp(keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("lab: 2 hosts, %d VMs, up after %.0f s\n", len(all()), time.Since(start).Seconds())
	return m.Run()
}

// bringUp starts both hosts and their guests, two at a time.
func bringUp(keep bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	if _, err := os.Stat("/run/vlab/state"); err != nil || !keep {
		if out, err := command(ctx, script("hosts/up.sh"), "2"); err != nil {
			return fmt.Errorf("up.sh: %w\n%s", err, out)
		}
	}
	slots, errs := make(chan struct{}, 2), make(chan error)
	for _, name := range all() {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs <- bootGuest(ctx, name)
		}()
	}
	var failed []error
	for range all() {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

func bootGuest(ctx context.Context, name string) error {
	if out, err := command(ctx, script("hosts/ctl.sh"), hostOf(name), "virsh", "domstate", name); err == nil && strings.HasPrefix(out, "running") {
		return nil
	}
	out, err := command(ctx, script("guest.sh"), hostOf(name), name, "--kind", name[:3])
	if err != nil || !strings.HasSuffix(strings.TrimSpace(out), " ready") {
		return fmt.Errorf("guest %s: %w\n%s", name, err, out)
	}
	return nil
}

// command runs a program and returns what it wrote.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.String(), err
}

// ctl commands a host of the lab, and ends the test when it fails.
func ctl(t *testing.T, host string, args ...string) string {
	t.Helper()
	out, err := tryCtl(append([]string{host}, args...)...)
	if err != nil {
		t.Fatalf("ctl.sh %s %s: %v\n%s", host, strings.Join(args, " "), err, out)
	}
	return out
}

func tryCtl(args ...string) (string, error) { return bounded(script("hosts/ctl.sh"), args...) }

func guestScript(args ...string) (string, error) { return bounded(script("guest.sh"), args...) }

// bounded is not under the test's context: faults are mended after it has ended.
func bounded(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return command(ctx, name, args...)
}

// mend undoes a fault when the test ends, whether or not it got that far.
func mend(t *testing.T, host string, args ...string) {
	t.Cleanup(func() {
		if out, err := tryCtl(append([]string{host}, args...)...); err != nil {
			t.Logf("mending: ctl.sh %s %s: %v\n%s", host, strings.Join(args, " "), err, out)
		}
	})
}

// together runs what waits for others at the same time.
func together(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(f)
	}
	wg.Wait()
}

// trueAddress asks the VM itself, by its serial console.
func trueAddress(t *testing.T, name string) netip.Addr {
	t.Helper()
	out := ctl(t, hostOf(name), "guest", name, "ip -4 -o addr show dev eth0")
	m := regexp.MustCompile(`inet ([0-9.]+)/`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%s does not tell its address:\n%s", name, out)
	}
	return netip.MustParseAddr(m[1])
}

func trueAddresses(t *testing.T, names []string) map[string]netip.Addr {
	t.Helper()
	var mu sync.Mutex
	addrs := map[string]netip.Addr{}
	fs := make([]func(), 0, len(names))
	for _, name := range names {
		fs = append(fs, func() {
			a := trueAddress(t, name)
			mu.Lock()
			defer mu.Unlock()
			addrs[name] = a
		})
	}
	together(fs...)
	return addrs
}

// shortDir is a directory whose path leaves room for a unix socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestLab holds the lab itself to what the other tests take for granted.
func TestLab(t *testing.T) {
	addrs := trueAddresses(t, all())
	seen := map[netip.Addr]string{}
	for name, a := range addrs {
		if other, again := seen[a]; again {
			t.Errorf("%s and %s both have %v", name, other, a)
		}
		seen[a] = name
		if !serves(a.String() + ":3128") {
			t.Errorf("the proxy of %s does not serve %s", name, target)
		}
	}
	term := newTerminal(t, 80, 24)
	term.run(`printf '\e[?1049h%s %s' full screen; read -rsn1; printf '\e[?1049l'`)
	term.await(5*time.Second, `^full screen$`)
	if term.mode("alternate_on") != "1" {
		t.Error("the terminal does not tell its modes: what they are after q proves nothing")
	}
	term.quit()
}

// pause lets real time pass in front of real machines.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
