package libvirt

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"
)

// domainInfo is what the address rule needs from a domain's XML. It is read
// once an incarnation.
type domainInfo struct {
	uuid  string
	nics  []nic
	agent bool // has a guest agent channel
}

// nic is one network interface of a domain.
type nic struct {
	mac     net.HardwareAddr // 6 bytes
	network string           // libvirt network; empty for bridge, user and others
	hostDev string           // name of the interface on the host; empty if it has none
}

const agentChannel = "org.qemu.guest_agent.0"

// parseDomain reads a domain's XML. A NIC whose MAC cannot be read is left out:
// no source could be matched to it.
func parseDomain(text string) (domainInfo, error) {
	var d libvirtxml.Domain
	if err := d.Unmarshal(text); err != nil {
		return domainInfo{}, fmt.Errorf("domain xml: %w", err)
	}
	info := domainInfo{uuid: strings.ToLower(d.UUID)}
	if d.Devices == nil {
		return info, nil
	}
	for _, i := range d.Devices.Interfaces {
		if i.MAC == nil {
			continue
		}
		mac, ok := parseMAC(i.MAC.Address)
		if !ok {
			continue
		}
		n := nic{mac: mac}
		if i.Source != nil && i.Source.Network != nil {
			n.network = i.Source.Network.Network
		}
		if i.Target != nil {
			n.hostDev = i.Target.Dev
		}
		info.nics = append(info.nics, n)
	}
	for _, c := range d.Devices.Channels {
		if c.Target != nil && c.Target.VirtIO != nil && c.Target.VirtIO.Name == agentChannel {
			info.agent = true
		}
	}
	return info, nil
}

// parseMAC reads the ways in which hosts and guests write the same six bytes:
// with colons, with dashes, bare, in either case. MACs are compared as bytes,
// never as text.
func parseMAC(s string) (net.HardwareAddr, bool) {
	s = strings.TrimSpace(s)
	if len(s) == 12 {
		b, err := hex.DecodeString(s)
		return b, err == nil
	}
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != 6 {
		return nil, false
	}
	return m, true
}

func (d domainInfo) owns(mac net.HardwareAddr) bool {
	for _, n := range d.nics {
		if bytes.Equal(n.mac, mac) {
			return true
		}
	}
	return false
}

// networks returns the libvirt networks that the domain is on, each once.
func (d domainInfo) networks() []string {
	var out []string
	for _, n := range d.nics {
		if n.network != "" && !slices.Contains(out, n.network) {
			out = append(out, n.network)
		}
	}
	return out
}

// parseNetwork reports whether libvirt itself gives out leases on a network, and
// how long they run. On one that does not, the lease source always answers with
// nothing, which must not count as an answer.
func parseNetwork(text string) (dhcp bool, leaseTime time.Duration, err error) {
	var n libvirtxml.Network
	if err := n.Unmarshal(text); err != nil {
		return false, 0, fmt.Errorf("network xml: %w", err)
	}
	leaseTime = defaultLease
	for _, ip := range n.IPs {
		if ip.DHCP == nil || len(ip.DHCP.Ranges)+len(ip.DHCP.Hosts) == 0 {
			continue
		}
		dhcp = true
		for _, r := range ip.DHCP.Ranges {
			leaseTime = leaseOf(r.Lease, leaseTime)
		}
	}
	return dhcp, leaseTime, nil
}

// leaseOf reads <lease expiry='2' unit='hours'/>; minutes without a unit, and 0
// for ever.
func leaseOf(l *libvirtxml.NetworkDHCPLease, otherwise time.Duration) time.Duration {
	if l == nil {
		return otherwise
	}
	unit := time.Minute
	switch l.Unit {
	case "seconds":
		unit = time.Second
	case "hours":
		unit = time.Hour
	}
	return time.Duration(l.Expiry) * unit
}

// hostUUID reads the host's UUID from its capabilities.
func hostUUID(text string) (string, error) {
	var c libvirtxml.Caps
	if err := c.Unmarshal(text); err != nil {
		return "", fmt.Errorf("capabilities xml: %w", err)
	}
	return strings.ToLower(c.Host.UUID), nil
}
