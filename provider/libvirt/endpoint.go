package libvirt

import (
	"fmt"
	"net"
	"net/url"
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
	TransportSSH  Transport = "ssh"
)

// Default ports and sockets, as libvirt's remote driver has them.
const (
	portTCP         = "16509"
	portSSH         = "22"
	socketLibvirtd  = "/var/run/libvirt/libvirt-sock"
	socketVirtqemud = "/var/run/libvirt/virtqemud-sock" // modular daemons
)

// Endpoint is a parsed libvirt URI: how to reach a daemon and what to ask it to
// open.
type Endpoint struct {
	Transport  Transport
	Address    string   // host:port for tcp and ssh
	Sockets    []string // unix sockets to try in turn: here, or behind ssh
	User       string   // ssh
	KeyFile    string   // ssh; empty: the agent and the usual files
	KnownHosts string   // ssh
	NoVerify   bool     // ssh: accept any host key
	Open       string   // the URI given to the daemon, "qemu:///system"
}

// String describes the endpoint without secrets.
func (e Endpoint) String() string {
	switch e.Transport {
	case TransportUnix:
		return "unix " + strings.Join(e.Sockets, " or ")
	case TransportTCP:
		return "tcp " + e.Address
	case TransportSSH:
		return "ssh " + e.User + "@" + e.Address
	}
	return string(e.Transport)
}

const uriForms = "qemu:///system[?socket=PATH], qemu+tcp://HOST[:PORT]/system, " +
	"qemu+ssh://[USER@]HOST[:PORT]/system[?socket=PATH&keyfile=PATH&known_hosts=PATH&no_verify=1]"

// ParseURI reads a libvirt URI. Its errors are one line and say what is allowed.
func ParseURI(s string) (Endpoint, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Endpoint{}, fmt.Errorf("uri %q cannot be read; allowed: %s", s, uriForms)
	}
	bad := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("uri %q: %s; allowed: %s", s, why, uriForms)
	}
	driver, transport, _ := strings.Cut(u.Scheme, "+")
	if driver != "qemu" {
		return bad("the driver must be qemu")
	}
	if u.Path != "/system" && u.Path != "/session" {
		return bad("the path must be /system or /session")
	}
	q := u.Query()
	for k := range q {
		switch k {
		case "socket", "keyfile", "known_hosts", "no_verify":
		default:
			return bad("unknown parameter " + k)
		}
	}
	e := Endpoint{Open: "qemu://" + u.Path, Sockets: []string{socketLibvirtd, socketVirtqemud}}
	if p := q.Get("socket"); p != "" {
		e.Sockets = []string{p}
	}
	switch transport {
	case "", "unix":
		if u.Host != "" {
			return bad("a host needs a transport, tcp or ssh")
		}
		e.Transport = TransportUnix
	case "tcp":
		if u.Hostname() == "" {
			return bad("the host is missing")
		}
		e.Transport, e.Address = TransportTCP, hostPort(u, portTCP)
	case "ssh":
		if u.Hostname() == "" {
			return bad("the host is missing")
		}
		e.Transport, e.Address = TransportSSH, hostPort(u, portSSH)
		e.User, e.KeyFile, e.KnownHosts = u.User.Username(), q.Get("keyfile"), q.Get("known_hosts")
		if e.User == "" {
			e.User = "root"
		}
		switch q.Get("no_verify") {
		case "", "0":
		case "1":
			e.NoVerify = true
		default:
			return bad("no_verify is 0 or 1")
		}
		if e.KnownHosts == "" {
			e.KnownHosts = homeFile(".ssh", "known_hosts")
		}
	default:
		return bad("unknown transport " + transport)
	}
	return e, nil
}

func hostPort(u *url.URL, port string) string {
	if p := u.Port(); p != "" {
		port = p
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func homeFile(parts ...string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, parts...)...)
}
