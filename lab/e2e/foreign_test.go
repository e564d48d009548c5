//go:build lab

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"virdeck/model"
)

// TestForeign has two VMs of somebody else's stand where virdeck means to make
// its own: one has the very name, with volumes of the very names, the other the
// very UUID under another name, and both have an open proxy on the pool's port.
// Neither is touched, nor ever served; the conflict is shown, tried again slowly,
// and over when their owner has removed them.
func TestForeign(t *testing.T) {
	p := newPooled(t, poolConfig{count: 4, memory: 128})
	// A dry run gives the members their identities and makes nothing.
	p.begin("--dry-run")
	p.await(p.start, 10*time.Second, "four members are laid out", func(s *model.Status) string {
		if n := len(s.Proxies); n != 4 {
			return fmt.Sprintf("%d proxies", n)
		}
		return ""
	})
	on := map[string]*model.ProxyStatus{} // one member of each host, and the rest
	var rest []string
	for _, q := range p.look().Proxies {
		if on[q.Host] != nil {
			rest = append(rest, q.Name)
			continue
		}
		on[q.Host] = &q
	}
	p.end()
	for _, h := range []string{"h1", "h2"} {
		if left := p.holds(h); on[h] == nil || len(left.domains)+len(left.volumes)+len(left.bases) > 0 {
			t.Fatalf("the dry run has made %+v on %s, member there: %v", left, h, on[h] != nil)
		}
	}
	named, same := on["h1"], on["h2"]
	var removeNamed, removeSame func()
	together(
		func() { removeNamed = foreign(t, "h1", named.Managed.Domain) },
		func() { removeSame = foreign(t, "h2", "somebodys", "--uuid", vmUUID("made", same.Managed.UID)) },
	)
	before := map[string]string{"h1": portrait(t, "h1", named.Managed.Domain), "h2": portrait(t, "h2", "somebodys")}

	p.begin()
	said := p.await(p.start, 60*time.Second, "both conflicts are told", All(
		told(named.Name, "a domain of its name is there, without virdeck's mark: it is left alone"),
		told(same.Name, "domain somebodys has this proxy's UUID, and is not ours: it has no mark")))
	first := p.managed(same.Name)
	if first.RetryAt == nil || first.Latched {
		t.Fatalf("the UUID's conflict is not tried again: %+v", first)
	}
	if soon := first.RetryAt.Sub(said); soon < 45*time.Second {
		t.Errorf("the UUID's conflict is tried again %v after it was told", soon)
	}
	p.await(p.start, 60*time.Second, "the rest is ready", All(Ready(rest...), InRotation(rest...)))
	quiet := first.RetryAt.Add(-5 * time.Second)
	pause(t, time.Until(quiet))
	if err := p.Always(said, quiet, func(s *model.Status) string {
		for _, q := range s.Proxies {
			if q.Managed.Fails > 1 || q.Managed.Built && (q.Name == named.Name || q.Name == same.Name) {
				return fmt.Sprintf("%s: %d tries have failed, built %v", q.Name, q.Managed.Fails, q.Managed.Built)
			}
		}
		return ""
	}); err != nil {
		t.Errorf("no further try: %v", err)
	}
	p.always(p.start, "what is not ours is not served", All(OutOfRotation(named.Name), OutOfRotation(same.Name)))
	log := p.read("virdeck.log")
	for _, words := range []string{"a domain of its name is there, without virdeck's mark", "has this proxy's UUID, and is not ours"} {
		if !strings.Contains(log, words) {
			t.Errorf("the log does not say %q", words)
		}
	}
	for h, name := range map[string]string{"h1": named.Managed.Domain, "h2": "somebodys"} {
		if now := portrait(t, h, name); now != before[h] {
			t.Errorf("the foreign VM on %s is not what it was. Before:\n%s\nNow:\n%s", h, before[h], now)
		}
	}

	gone := time.Now()
	together(removeNamed, removeSame)
	p.await(gone, 40*time.Second, "the name's member is made, ready", All(Ready(named.Name), InRotation(named.Name)))
	p.await(gone, 90*time.Second, "the UUID's member is made, ready", settled(4))
	for _, q := range []*model.ProxyStatus{named, same} {
		if now := p.managed(q.Name); now.Domain != q.Managed.Domain || now.UID != q.Managed.UID {
			t.Errorf("%s is %s, uid %s; it was to be %s, uid %s: there was no collision", q.Name, now.Domain, now.UID, q.Managed.Domain, q.Managed.UID)
		}
		if got, want := strings.TrimSpace(ctl(t, q.Host, "virsh", "domuuid", q.Managed.Domain)), vmUUID("made", q.Managed.UID); got != want {
			t.Errorf("the VM of %s has UUID %s, not %s: there was no collision", q.Name, got, want)
		}
	}
}

// vmUUID is the UUID that the VM of a uid has: version 5, of fleet and uid.
func vmUUID(fleet, uid string) string {
	return uuid.NewSHA1(uuid.MustParse("6f1c1d0b-8c44-4e0e-9d0f-5a1f3c552107"), []byte(fleet+"\x00"+uid)).String()
}

// foreign boots a guest of somebody else's, with a disk and a seed. Its owner
// removes it once, when the test ends at the latest.
func foreign(t *testing.T, host, name string, more ...string) (remove func()) {
	t.Helper()
	remove = sync.OnceFunc(func() {
		if out, err := guestScript(host, name, "--destroy"); err != nil {
			t.Errorf("%s on %s: %v\n%s", name, host, err, out)
		}
	})
	t.Cleanup(remove)
	ctl(t, host, "virsh", "vol-create-as", "default", name+"-seed.iso", "64K", "--format", "raw")
	out, err := guestScript(append([]string{host, name, "--disk", "overlay", "--args", "lab.port=8080"}, more...)...)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(out), " ready") {
		t.Errorf("a foreign guest on %s: %v\n%s", host, err, out)
	}
	return remove
}

// portrait is all that must stay as it is of a foreign VM: what libvirt says of
// it, with its id, and its volumes, by inode.
func portrait(t *testing.T, host, name string) string {
	t.Helper()
	return ctl(t, host, "sh", "bash", "-c", fmt.Sprintf(
		`n=%q; virsh domid $n; virsh domstate $n --reason; virsh dominfo $n | grep -v '^CPU time'
virsh dumpxml $n | sed "s/ state='\(dis\)\?connected'//"; virsh dumpxml $n --inactive
cd /var/lib/libvirt/images && stat -c '%%n %%i' $n.qcow2 $n-seed.iso && sha256sum $n-seed.iso`, name))
}

// told holds when the proxy and the plan both give the words as the reason why
// its VM is not made.
func told(name, words string) Condition {
	return func(s *model.Status) string {
		for _, it := range s.Plan {
			if it.Proxy == name && strings.Contains(it.Wait, words) {
				return Reason(name, words)(s)
			}
		}
		return fmt.Sprintf("no plan for %s waits because %q: %+v", name, words, s.Plan)
	}
}
