package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"virdeck/internal/problem"
)

// Transport is a way to reach a libvirt daemon.
type Transport string

// The transports.
const (
	TransportUnix Transport = "unix"
	TransportTCP  Transport = "tcp"
	TransportTLS  Transport = "tls"
	TransportSSH  Transport = "ssh"
)

// Endpoint is where a libvirt daemon is, as a host's URI says it.
type Endpoint struct {
	Transport Transport
	// Host is a name or an IP address without brackets; empty for unix.
	Host string
	// Port is 16509 for tcp, 16514 for tls and 22 for ssh, if the URI gives
	// none; 0 for unix.
	Port int
	// User for ssh; empty: whoever runs the program.
	User string
	// Socket is the path of libvirt's socket, on the far side for ssh; empty:
	// the usual ones.
	Socket string
	// KeyFile is the private key for ssh; empty: the agent and the usual ones.
	KeyFile string
	// KnownHosts is the file of host keys for ssh; empty: the user's.
	KnownHosts string
	// PKIPath is the directory of cacert.pem, clientcert.pem and clientkey.pem
	// for tls; empty: libvirt's usual files under /etc/pki.
	PKIPath string
	// NoVerify accepts any host key or certificate.
	NoVerify bool
}

const uriForms = "qemu:///system, qemu+unix:///system, qemu+tcp://HOST[:PORT]/system, qemu+tls://HOST[:PORT]/system, qemu+ssh://[USER@]HOST[:PORT]/system"

// scheme is what a URI scheme allows.
type scheme struct {
	transport Transport
	port      int
	query     []string
}

func schemeOf(name string) (scheme, bool) {
	switch name {
	case "qemu", "qemu+unix":
		return scheme{TransportUnix, 0, []string{"socket"}}, true
	case "qemu+tcp":
		return scheme{TransportTCP, 16509, nil}, true
	case "qemu+tls":
		return scheme{TransportTLS, 16514, []string{"pkipath", "no_verify"}}, true
	case "qemu+ssh":
		return scheme{TransportSSH, 22, []string{"keyfile", "known_hosts", "no_verify", "socket"}}, true
	}
	return scheme{}, false
}

// parseURI reads a host's URI. resolve makes a local path absolute. Errors name
// what is allowed and quote no user information.
func parseURI(text string, resolve func(string) string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil { // which quotes what may be a password, so it is not told
		return Endpoint{}, fmt.Errorf("not a URI; allowed: %s", uriForms)
	}
	s, ok := schemeOf(u.Scheme)
	if !ok {
		return Endpoint{}, fmt.Errorf("scheme %q is not known; allowed: %s", u.Scheme, uriForms)
	}
	e := Endpoint{Transport: s.transport}
	switch {
	case strings.Contains(u.Opaque+u.Path, "@"): // a password with a slash in it
		return e, fmt.Errorf("the @ stands behind the path's slash; allowed: %s", uriForms)
	case u.Opaque != "" || u.Path != "/system":
		return e, fmt.Errorf("path %q is not known; allowed: /system", u.Opaque+u.Path)
	case u.Fragment != "":
		return e, fmt.Errorf("%q after # means nothing here; allowed: no #", u.Fragment)
	}
	if err := e.authority(u, s); err != nil {
		return e, err
	}
	return e, e.query(u.RawQuery, u.Scheme, s, resolve)
}

// authority reads USER@HOST:PORT.
func (e *Endpoint) authority(u *url.URL, s scheme) error {
	if s.transport == TransportUnix {
		if u.Host != "" || u.User != nil {
			return fmt.Errorf("%s is on this machine and takes no host; allowed: %s:///system, or qemu+tcp, qemu+tls and qemu+ssh for another machine", u.Scheme, u.Scheme)
		}
		return nil
	}
	e.Host, e.Port = u.Hostname(), s.port
	if err := checkHost(e.Host); err != nil {
		return err
	}
	if p := u.Port(); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %s is out of range; allowed: 1 to 65535", p)
		}
		e.Port = n
	}
	if u.User == nil {
		return nil
	}
	if s.transport != TransportSSH {
		return fmt.Errorf("%s takes no user; allowed: %s://HOST[:PORT]/system", u.Scheme, u.Scheme)
	}
	if _, has := u.User.Password(); has {
		return errors.New("a password cannot stand here; allowed: a key, by ?keyfile= or the SSH agent")
	}
	if e.User = u.User.Username(); e.User == "" {
		return errors.New("the user before @ is empty; allowed: a name, or no @")
	}
	return nil
}

// checkHost accepts host names and IP addresses.
func checkHost(host string) error {
	if host == "" {
		return fmt.Errorf("the host is missing; allowed: %s", uriForms)
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Errorf("%q is not an IPv6 address; allowed: a host name or an IP address", host)
		}
		return nil
	}
	for _, r := range host {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r) {
			return fmt.Errorf("%q is not a host name; allowed: letters, digits, -, _ and dots, or an IP address", host)
		}
	}
	return nil
}

// query reads ?KEY=VALUE&...
func (e *Endpoint) query(raw, schemeName string, s scheme, resolve func(string) string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("what follows ? cannot be read (%w); allowed: %s", err, parameters(s.query))
	}
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !slices.Contains(s.query, k) {
			return fmt.Errorf("parameter %q is not known%s allowed for %s: %s", k, orSemicolon(problem.Suggest(k, s.query)), schemeName, parameters(s.query))
		}
		if len(values[k]) > 1 {
			return fmt.Errorf("parameter %q is given twice; allowed: once", k)
		}
		v := values.Get(k)
		switch k {
		case "no_verify":
			if v != "0" && v != "1" {
				return fmt.Errorf("no_verify=%q; allowed: 1 or 0", v)
			}
			e.NoVerify = v == "1"
			continue
		case "socket":
			// the far side's path with ssh, so nothing of here resolves it
			if !strings.HasPrefix(v, "/") {
				return fmt.Errorf("socket=%q; allowed: an absolute path", v)
			}
			e.Socket = v
			continue
		}
		if v == "" {
			return fmt.Errorf("parameter %q is empty; allowed: a path", k)
		}
		switch k {
		case "keyfile":
			e.KeyFile = resolve(v)
		case "pkipath":
			e.PKIPath = resolve(v)
		default:
			e.KnownHosts = resolve(v)
		}
	}
	return nil
}

func parameters(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return problem.Listed(names)
}
