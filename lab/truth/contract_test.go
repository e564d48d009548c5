//go:build lab

package truth

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"virdeck/provider/libvirt"
	"virdeck/provider/providertest"
)

// realRecord is what the simulated host is compared with, in its package.
const realRecord = "../../provider/libvirt/testdata/contract-real.json"

var update = flag.Bool("update", false, "record what the real daemon says, in "+realRecord)

// The contract, on real daemons with real guests: over a unix socket to one
// host, over TCP to the other. What their sources say is the same, and is what
// the record says. No read of a sound daemon can be made to fail with a write's
// permanent code, so that one case is for simulated hosts.
func TestContract(t *testing.T) {
	unplayable := []string{"a read that is refused with a write's permanent code is transient"}
	recs := make([]*providertest.Record, 2)
	ok := t.Run("on", func(t *testing.T) {
		for i, tr := range []libvirt.Transport{libvirt.TransportUnix, libvirt.TransportTCP} {
			t.Run(string(tr), func(t *testing.T) {
				t.Parallel()
				recs[i] = providertest.Run(t, hosts[i].rig(tr))
				if !slices.Equal(recs[i].Lacking, unplayable) {
					t.Errorf("cases that did not run: %q, want %q alone", recs[i].Lacking, unplayable)
				}
			})
		}
	})
	daemon, err := hosts[0].daemon()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s said %d things over unix, %d over tcp", daemon, len(recs[0].All()), len(recs[1].All()))
	// One case alone, by -run, sees a part of it.
	if !ok || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return
	}
	for _, line := range providertest.Compare(stands(recs[1].All()), stands(recs[0].All())) {
		t.Errorf("over tcp (simulated) and over unix (real): %s", line)
	}
	if *update {
		if err := recs[0].WriteFile(realRecord, daemon); err != nil {
			t.Fatal(err)
		}
	}
	said, was, err := providertest.ReadFile(realRecord)
	if err != nil {
		t.Fatalf("the record (go test -update writes it): %v", err)
	}
	for _, line := range providertest.Compare(stands(said), stands(recs[0].All())) {
		t.Errorf("the record of %s (simulated) and %s (real): %s", was, daemon, line)
	}
}

// stands keeps the situations that stand still: of one that passes, each look
// sees a part. Whether ARP knows a guest is a matter of luck everywhere.
func stands(all []providertest.Seen) []providertest.Seen {
	return slices.DeleteFunc(slices.Clone(all), func(s providertest.Seen) bool { return s.Passing || s.Source == "arp" && s.Kind != "failed" })
}

// daemon says what is looked at.
func (h *labHost) daemon() (string, error) {
	r, err := h.raw()
	if err != nil {
		return "", err
	}
	defer r.close()
	lib, err := r.ConnectGetLibVersion()
	if err != nil {
		return "", err
	}
	hv, err := r.ConnectGetVersion()
	if err != nil {
		return "", err
	}
	dotted := func(v uint64) string { return fmt.Sprintf("%d.%d.%d", v/1e6, v/1e3%1e3, v%1e3) }
	return fmt.Sprintf("libvirt %s, QEMU %s", dotted(lib), dotted(hv)), nil
}
