//go:build lab

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// holding is what a host has of the fleet, by its own word.
type holding struct {
	domains []string // defined or running
	volumes []string // the base images are none
	bases   []string // base images that were uploaded, and their proofs
}

func (p *pooled) holds(host string) holding {
	p.t.Helper()
	var h holding
	out := ctl(p.t, host, "sh", "bash", "-c", `virsh -q list --all --name; ls /var/lib/libvirt/images`)
	for name := range strings.FieldsSeq(out) {
		switch {
		case strings.HasPrefix(name, "virdeck-base"):
			h.bases = append(h.bases, name)
		case !strings.HasPrefix(name, "made-"):
		case strings.HasSuffix(name, ".qcow2") || strings.HasSuffix(name, ".iso"):
			h.volumes = append(h.volumes, name)
		default:
			h.domains = append(h.domains, name)
		}
	}
	slices.Sort(h.domains)
	slices.Sort(h.volumes)
	return h
}

// vm is a VM of the fleet that runs on this machine, by its process: whatever
// libvirt or virdeck say of it.
type vm struct {
	domain, proxy string
	lost          []string // images that it has open and that have no name any more
}

var vmName = regexp.MustCompile(`^guest=(made-(.+)-[0-9a-f]{6}),`)

// running returns the fleet's VMs on all hosts.
func running() []vm {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		panic(err) // the pattern is good
	}
	var out []vm
	for _, dir := range dirs {
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		for arg := range strings.SplitSeq(string(args), "\x00") {
			if m := vmName.FindStringSubmatch(arg); m != nil {
				out = append(out, vm{m[1], m[2], lostImages(dir)})
			}
		}
	}
	return out
}

func lostImages(proc string) (lost []string) {
	fds, err := filepath.Glob(filepath.Join(proc, "fd", "*"))
	if err != nil {
		panic(err) // the pattern is good
	}
	for _, fd := range fds {
		path, err := os.Readlink(fd)
		if err == nil && strings.Contains(path, "/images/") && strings.HasSuffix(path, " (deleted)") {
			lost = append(lost, path)
		}
	}
	return lost
}

// guard watches the fleet's VMs until the returned function is called, or the
// test ends: of each name there must be one at most, and none may lose a disk
// while it runs.
func guard(t *testing.T) (looks func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	n := 0
	go func() {
		defer close(done)
		told := map[string]bool{}
		tell := func(what string) {
			if !told[what] {
				told[what] = true
				t.Errorf("at %s: %s", time.Now().Format(time.TimeOnly), what)
			}
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; n++ {
			names := map[string]string{}
			for _, v := range running() {
				if other, twice := names[v.proxy]; twice {
					tell(fmt.Sprintf("%s runs twice: %s and %s", v.proxy, other, v.domain))
				}
				names[v.proxy] = v.domain
				for _, image := range v.lost {
					tell(fmt.Sprintf("%s runs, and its disk was removed: %s", v.domain, image))
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	stop := func() int {
		cancel()
		<-done
		return n
	}
	t.Cleanup(func() { stop() })
	return stop
}

// seesLoss takes the name off a running VM's disk for a moment, and wants that to
// be seen: a guard that cannot see it proves nothing.
func seesLoss(t *testing.T, host, domain string) {
	t.Helper()
	lost := func() int {
		for _, v := range running() {
			if v.domain == domain {
				return len(v.lost)
			}
		}
		return -1
	}
	if n := lost(); n != 0 {
		t.Errorf("%s runs and has its disk; lost images %d (-1: it is not seen to run)", domain, n)
	}
	ctl(t, host, "sh", "bash", "-c", fmt.Sprintf("cd /var/lib/libvirt/images && ln %[1]s.qcow2 kept && rm %[1]s.qcow2", domain))
	if n := lost(); n < 1 {
		t.Errorf("%s runs and its disk has no name; lost images %d", domain, n)
	}
	ctl(t, host, "sh", "bash", "-c", fmt.Sprintf("cd /var/lib/libvirt/images && mv kept %s.qcow2", domain))
}
