//go:build lab

package truth

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

	"go.uber.org/goleak"

	"virdeck/lab/lock"
	"virdeck/provider/providertest"
)

// labHost is one of the lab's two hosts. Each has one guest of every kind.
type labHost struct {
	name   string                 // "h1"
	number int                    // 1
	addrs  map[guest]netip.Addr   // of the guests that run, by their own word
	nets   map[guest]netip.Prefix // of the same, with the mask
}

type guest = providertest.Guest

// domain is the name of a guest's domain.
func domain(g guest) string {
	switch g {
	case providertest.NAT:
		return "truth-nat"
	case providertest.Bridged:
		return "truth-lan"
	case providertest.NoAgent:
		return "truth-mute"
	case providertest.Off:
		return "truth-off"
	case providertest.Missing:
	}
	return "nobody"
}

// running are the kinds that run between the tests.
func running() []guest {
	return []guest{providertest.NAT, providertest.Bridged, providertest.NoAgent}
}

// hosts are there from TestMain on, and only read.
var hosts = []*labHost{newLabHost(1), newLabHost(2)}

func newLabHost(n int) *labHost {
	return &labHost{name: fmt.Sprint("h", n), number: n, addrs: map[guest]netip.Addr{}, nets: map[guest]netip.Prefix{}}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(inLab{m}) }

// inLab brings the lab up once for all tests, and takes it down. With LAB_KEEP
// set it uses the lab that is up, and leaves it so.
type inLab struct{ m *testing.M }

// Run implements goleak.TestingM.
func (l inLab) Run() int {
	unlock, err := lock.Take()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer unlock()
	keep := os.Getenv("LAB_KEEP") != ""
	if !keep {
		defer func() {
			if out, err := bounded(script("hosts/down.sh")); err != nil {
				fmt.Fprintf(os.Stderr, "down.sh: %v\n%s", err, out)
			}
		}()
	}
	start := time.Now()
	if err := bringUp(keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("lab: %d hosts with their guests, up after %.0f s\n", len(hosts), time.Since(start).Seconds())
	return l.m.Run()
}

// bringUp starts both hosts and their guests, two at a time.
func bringUp(keep bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	if _, err := os.Stat("/run/vlab/state"); err != nil || !keep {
		if out, err := command(ctx, script("hosts/up.sh"), fmt.Sprint(len(hosts))); err != nil {
			return fmt.Errorf("up.sh: %w\n%s", err, out)
		}
	}
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() {
			for _, g := range providertest.Guests() {
				errs[i] = errors.Join(errs[i], h.boot(ctx, g))
			}
			if errs[i] == nil {
				errs[i] = h.learn()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// boot makes a guest, or finds it made.
func (h *labHost) boot(ctx context.Context, g guest) error {
	out, err := h.ctl("virsh", "domstate", domain(g))
	want := "running"
	if g == providertest.Off {
		want = "shut off"
	}
	if err == nil && strings.HasPrefix(out, want) {
		return nil
	}
	args := []string{h.name, domain(g)}
	switch g {
	case providertest.Bridged:
		args = append(args, "--kind", "lan")
	case providertest.NoAgent:
		args = append(args, "--no-channel")
	case providertest.Off:
		args = append(args, "--no-wait")
	case providertest.NAT, providertest.Missing:
	}
	out, err = command(ctx, script("guest.sh"), args...)
	if err != nil {
		return fmt.Errorf("guest %s of %s: %w\n%s", domain(g), h.name, err, out)
	}
	if g == providertest.Off {
		if out, err := h.ctl("virsh", "destroy", domain(g)); err != nil {
			return fmt.Errorf("guest %s of %s: %w\n%s", domain(g), h.name, err, out)
		}
	}
	return nil
}

var inet = regexp.MustCompile(`inet ([0-9.]+/[0-9]+)`)

// learn asks the guests themselves, by their serial consoles, for their
// addresses.
func (h *labHost) learn() error {
	for _, g := range running() {
		out, err := h.ctl("guest", domain(g), "ip -4 -o addr show dev eth0")
		m := inet.FindStringSubmatch(out)
		if err != nil || m == nil {
			return fmt.Errorf("%s of %s does not tell its address: %w\n%s", domain(g), h.name, err, out)
		}
		p, err := netip.ParsePrefix(m[1])
		if err != nil {
			return err
		}
		h.addrs[g], h.nets[g] = p.Addr(), p
	}
	return nil
}

// script is the path of a script of the lab; the tests run in lab/truth.
func script(path string) string {
	p, err := filepath.Abs(filepath.Join("..", path))
	if err != nil {
		panic(err) // no working directory: nothing can run
	}
	return p
}

// state is the directory of the lab that runs.
func state() string {
	b, err := os.ReadFile("/run/vlab/state")
	if err != nil {
		panic(err) // TestMain has seen it
	}
	return strings.TrimSpace(string(b))
}

// dir is the host's part of the lab's state.
func (h *labHost) dir(parts ...string) string {
	return filepath.Join(append([]string{state(), h.name}, parts...)...)
}

// ctl commands a host of the lab. It is not under a test's context: faults are
// mended after the test has ended.
func (h *labHost) ctl(args ...string) (string, error) {
	return bounded(script("hosts/ctl.sh"), append([]string{h.name}, args...)...)
}

// must is ctl that ends the test when it fails.
func (h *labHost) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.ctl(args...)
	if err != nil {
		t.Fatalf("ctl.sh %s %s: %v\n%s", h.name, strings.Join(args, " "), err, out)
	}
	return out
}

// mend undoes a fault when the test ends, whether or not it got that far.
func (h *labHost) mend(t *testing.T, args ...string) {
	t.Cleanup(func() {
		if out, err := h.ctl(args...); err != nil {
			t.Logf("mending: ctl.sh %s %s: %v\n%s", h.name, strings.Join(args, " "), err, out)
		}
	})
}

func bounded(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return command(ctx, name, args...)
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

// pause lets real time pass in front of real machines.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// await polls until ok, and ends the test when the limit passes first.
func await(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		pause(t, 10*time.Millisecond)
	}
}
