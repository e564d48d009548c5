package model

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"time"
)

// Credentials are the user and password with which a client uses a proxy. They
// are never printed: every way that fmt, slog and encoding have of showing a
// value gives the user name at most.
type Credentials struct {
	User     string
	Password string
}

// Empty reports whether there is nothing to present.
func (c Credentials) Empty() bool { return c.User == "" && c.Password == "" }

// String hides the password.
func (c Credentials) String() string {
	if c.Empty() {
		return "none"
	}
	return c.User + ":***"
}

// GoString hides the password from %#v.
func (c Credentials) GoString() string { return c.String() }

// Format hides the password from every other verb: %d and its like print the
// fields of a struct one by one.
func (c Credentials) Format(s fmt.State, verb rune) {
	if strings.ContainsRune("sqvxX", verb) && (verb != 'v' || !s.Flag('#')) {
		_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.String()) // fmt has no use for the error
		return
	}
	_, _ = io.WriteString(s, c.String())
}

// LogValue hides the password from slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText hides the password from every text encoder, JSON included.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ProbeKind is the way in which a proxy is asked to prove itself.
type ProbeKind int

const (
	// ProbeHTTP sends an absolute-form GET, as a client of a forward proxy does.
	ProbeHTTP ProbeKind = iota
	// ProbeConnect opens a tunnel with CONNECT and asks through it.
	ProbeConnect
)

// String returns the word used in the configuration.
func (k ProbeKind) String() string {
	switch k {
	case ProbeHTTP:
		return "http"
	case ProbeConnect:
		return "connect"
	}
	return unknown("probe", int(k))
}

// ProxySpec is what the operator declared.
type ProxySpec struct {
	Name    ProxyName
	Host    HostName // ExternalHost for external ones
	Backing Backing
	Domain  string     // adopted: name of the domain
	Address netip.Addr // external: fixed address
	Port    uint16
	Probe   ProbeKind
	Creds   Credentials
	Pool    string
	Labels  map[string]string
}

// Equal reports whether two specs ask for the same thing.
func (s ProxySpec) Equal(o ProxySpec) bool {
	a, b := s, o
	a.Labels, b.Labels = nil, nil
	return maps.Equal(s.Labels, o.Labels) &&
		a.Name == b.Name && a.Host == b.Host && a.Backing == b.Backing && a.Domain == b.Domain &&
		a.Address == b.Address && a.Port == b.Port && a.Probe == b.Probe && a.Creds == b.Creds &&
		a.Pool == b.Pool
}

// EffectiveHost returns the address that health and rotation use: the fixed one
// of an external proxy, else ip. An invalid address means that there is nothing
// to probe.
func (s ProxySpec) EffectiveHost(ip netip.Addr) netip.Addr {
	if s.Backing == BackingExternal {
		return s.Address
	}
	return ip
}

// ConditionType names a condition.
type ConditionType string

// The conditions of a proxy.
const (
	CondProvisioned     ConditionType = "Provisioned"
	CondAddressKnown    ConditionType = "AddressKnown"
	CondHealthy         ConditionType = "Healthy"
	CondInRotation      ConditionType = "InRotation"
	CondReconciled      ConditionType = "Reconciled"
	CondAddressConflict ConditionType = "AddressConflict"
)

// ConditionStatus is true, false, or honestly unknown.
type ConditionStatus string

// The condition statuses.
const (
	CondTrue    ConditionStatus = "True"
	CondFalse   ConditionStatus = "False"
	CondUnknown ConditionStatus = "Unknown"
)

// Condition is one aspect of a proxy with the reason for it.
type Condition struct {
	Type    ConditionType
	Status  ConditionStatus
	Reason  string // CamelCase
	Message string
	Since   time.Time // of the last change of Status
}

// SetCondition returns conds with c set, keeping Since when Status is as it
// was. It never changes the slice it was given.
func SetCondition(conds []Condition, c Condition) []Condition {
	out := make([]Condition, len(conds), len(conds)+1)
	copy(out, conds)
	for i := range out {
		if out[i].Type == c.Type {
			if out[i].Status == c.Status {
				c.Since = out[i].Since
			}
			out[i] = c
			return out
		}
	}
	return append(out, c)
}

// GetCondition returns the condition of a type, and whether there is one.
func GetCondition(conds []Condition, t ConditionType) (Condition, bool) {
	for _, c := range conds {
		if c.Type == t {
			return c, true
		}
	}
	return Condition{}, false
}
