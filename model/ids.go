package model

// HostName names a libvirt host in the configuration. It is unique in a fleet.
type HostName string

// ProxyName names a proxy in the configuration. It is unique in a fleet, over
// all hosts.
type ProxyName string

// ExternalHost is the name under which proxies without a VM (see
// BackingExternal) are grouped in a Snapshot. No real host can have it: the
// configuration refuses parentheses in names.
const ExternalHost HostName = "(external)"

// Backing says what stands behind a proxy.
type Backing int

const (
	// BackingAdopted is an existing domain: observed and probed, never changed
	// by virdeck of its own accord.
	BackingAdopted Backing = iota
	// BackingManaged is a VM that virdeck creates and deletes.
	BackingManaged
	// BackingExternal is a fixed address without a VM.
	BackingExternal
)

// String returns the word that the configuration and the screens use.
func (b Backing) String() string {
	switch b {
	case BackingAdopted:
		return "adopted"
	case BackingManaged:
		return "managed"
	case BackingExternal:
		return "external"
	}
	return unknown("backing", int(b))
}
