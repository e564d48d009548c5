package model

import "strings"

// The longest parts of the name of a managed VM's domain. Its files must fit a
// file system with what libvirt and QEMU put around the name, the whole also a
// host name.
const (
	maxFleetPart = 20
	maxProxyPart = 32
)

// DomainName returns what the domain of a managed proxy is called. tail, a dash and
// six hex digits, tells it from those made before under the same name.
func DomainName(fleet string, proxy ProxyName, tail string) string {
	return namePart(fleet, maxFleetPart) + "-" + namePart(string(proxy), maxProxyPart) + tail
}

// MadeFor returns the name of the proxy for which this fleet has made a domain, or
// may have, by the domain's name; a long one is cut. Whose it is in truth, its
// mark tells.
func MadeFor(fleet, domain string) (proxy ProxyName, ok bool) {
	rest, ours := strings.CutPrefix(domain, namePart(fleet, maxFleetPart)+"-")
	at := len(rest) - len("-0a1b2c")
	if !ours || at < 1 || rest[at] != '-' || strings.Trim(rest[at+1:], "0123456789abcdef") != "" {
		return "", false
	}
	return ProxyName(rest[:at]), true
}

// namePart keeps what is safe in a domain's name, a file's and a shell's line.
func namePart(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.' && b.Len() > 0, r == '_', r == '-' && b.Len() > 0:
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
		if b.Len() == most {
			break
		}
	}
	if b.Len() == 0 {
		return "x"
	}
	return b.String()
}
