package model

import (
	"strconv"
	"strings"
	"time"
)

// PoolSpec declares a number of managed proxies that are all alike. It is
// immutable once it is in a Fleet.
type PoolSpec struct {
	Name     string
	Template string // name of a Template
	Count    int
	Hosts    []HostName // where members may be, the preferred first
	Port     uint16
	Probe    ProbeKind
	Surge    int // members beyond Count while members are replaced; 0: replaced in place
	// MinAvailable is how many are left in rotation, at least, by everything
	// that is done of one's own accord.
	MinAvailable int
	MaxAge       time.Duration // of a member; 0: no limit
	DrainTime    time.Duration // at most, from out of the rotation to removed
	// Failover has stand-ins made elsewhere for members that are out of the
	// rotation and whose host has not answered for FailoverAfter.
	Failover      bool
	FailoverAfter time.Duration
	Labels        map[string]string
}

// Member returns the name of a member. Ordinals count from 1 and are not
// padded: scaling from 9 to 10 renames nobody.
func (p PoolSpec) Member(ordinal int) ProxyName {
	return ProxyName(p.Name + "-" + strconv.Itoa(ordinal))
}

// Ordinal returns the ordinal in a member's name, and whether it is a name that
// a member of this pool can have.
func (p PoolSpec) Ordinal(name ProxyName) (int, bool) {
	digits, ok := strings.CutPrefix(string(name), p.Name+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && strconv.Itoa(n) == digits
}

// ManagedSpec declares a single managed proxy, outside of any pool.
type ManagedSpec struct {
	ProxySpec        // Backing is BackingManaged; Creds are empty: they are made with the VM
	Template  string // name of a Template
}
