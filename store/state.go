package store

import (
	"net/netip"
	"time"

	"virdeck/model"
)

// Schema is the version of the records that this package writes.
const Schema = 3

// MaxEvents is how many events a Proxy keeps: the newest.
const MaxEvents = 50

// State is everything in a store. It belongs to whoever loaded it. Its maps are
// never nil.
type State struct {
	Schema     int
	Fleet      string
	Controller string                    // random UUID, as old as the store
	SavedAt    time.Time                 // last heartbeat, UTC; zero before the first
	Hosts      map[model.HostName]string // libvirt UUID that is pinned for a host
	Proxies    map[model.ProxyName]Proxy
	Adopted    map[model.ProxyName]Adopted
	Budget     map[BudgetKey][]time.Time // recent counted actions, as they were given
}

// Wish is what is to become of a proxy, whatever a crash interrupts.
type Wish string

// The wishes. The empty one is stored as WishPresent.
const (
	WishPresent    Wish = "present"
	WishStopping   Wish = "stopping"   // an operator has asked for it, and it is not off yet
	WishStarting   Wish = "starting"   // an operator has asked for it, and it does not run yet
	WishRestarting Wish = "restarting" // an operator has asked for another run than Incarnation
	WishStopped    Wish = "stopped"    // by an operator; not started again
	WishRecreating Wish = "recreating" // its VM is being removed, for another one
	WishRemoved    Wish = "removed"    // its VM was removed by an operator; it stays declared
	WishDeleting   Wish = "deleting"   // being removed; the record goes last
)

// Known reports whether w is a wish.
func (w Wish) Known() bool {
	switch w {
	case WishPresent, WishStarting, WishRestarting, WishStopping, WishStopped, WishRecreating, WishRemoved, WishDeleting:
		return true
	}
	return false
}

// Proxy is what must survive of one proxy.
type Proxy struct {
	Name        model.ProxyName
	UID         string
	CreatedAt   time.Time
	Backing     model.Backing
	Host        model.HostName
	Pool        string
	Template    string
	SpecHash    string // of the model.BuildSpec that its VM was made from
	Port        uint16 // where that VM serves; 0: not known
	Domain      string // name of the libvirt domain
	UUID        string // of the domain
	MAC         string
	IP          netip.Addr // last known; invalid if none
	Incarnation model.Incarnation
	InRotation  bool
	Drained     bool
	Released    bool // given back: its VM is no longer virdeck's to change
	Wish        Wish
	Creds       model.Credentials // of a managed proxy, made by virdeck; known nowhere else
	Events      []model.Event     // oldest first; of more than MaxEvents the newest are kept
}

// Adopted is a proxy that an operator made of an existing domain at the
// console: it is declared here and not in the configuration.
type Adopted struct {
	Name   model.ProxyName
	Host   model.HostName
	Domain string
	Port   uint16
	Probe  model.ProbeKind
	Pool   string
	Labels map[string]string
	Creds  model.Credentials
}

// BudgetKey says whose budget is meant.
type BudgetKey string

// HostBudget is the key of a host's budget.
func HostBudget(h model.HostName) BudgetKey { return BudgetKey("host/" + h) }

// PoolBudget is the key of a pool's budget.
func PoolBudget(pool string) BudgetKey { return BudgetKey("pool/" + pool) }
