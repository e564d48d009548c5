package libvirt

import (
	"os"
	"path/filepath"
	"strings"
)

// Transport is the way to a libvirt daemon.
type Transport string

// The transports that virdeck speaks.
const (
	TransportUnix Transport = "unix"
	TransportTCP  Transport = "tcp"
	TransportTLS  Transport = "tls"
	TransportSSH  Transport = "ssh"
)

// DefaultSockets are the daemon's sockets in the order in which they are tried:
// the one of libvirtd (and of virtproxyd), then that of the modular virtqemud.
func DefaultSockets() []string {
	return []string{"/var/run/libvirt/libvirt-sock", "/var/run/libvirt/virtqemud-sock"}
}

// Endpoint is how to reach a daemon.
type Endpoint struct {
	Transport  Transport
	Address    string   // host:port for tcp, tls and ssh
	Sockets    []string // unix sockets to try in turn: here, or behind ssh
	User       string   // ssh
	KeyFile    string   // ssh; empty: the agent and the usual files
	KnownHosts string   // ssh; empty: ~/.ssh/known_hosts
	PKIPath    string   // tls: directory of the three files; empty: libvirt's usual ones
	NoVerify   bool     // ssh, tls: accept any host key or certificate
}

// String describes the endpoint without secrets.
func (e Endpoint) String() string {
	switch e.Transport {
	case TransportUnix:
		return "unix " + strings.Join(e.Sockets, " or ")
	case TransportTCP, TransportTLS:
		return string(e.Transport) + " " + e.Address
	case TransportSSH:
		return "ssh " + e.User + "@" + e.Address
	}
	return string(e.Transport)
}

func homeFile(parts ...string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, parts...)...)
}
