package simhost

import "time"

// ProxyMode says how the proxy in a guest behaves.
type ProxyMode int

// The modes of a proxy.
const (
	// ProxyOK forwards HTTP and CONNECT to the origin.
	ProxyOK ProxyMode = iota
	// ProxyOff is a proxy that does not run: connections are refused, open ones break.
	ProxyOff
	// ProxyHang is a stopped process: connections are accepted, nothing is
	// answered. What was asked meanwhile is answered when the mode changes.
	ProxyHang
	// ProxyDrop drops packets: connecting hangs, open connections fall silent.
	ProxyDrop
	// ProxyBadGateway answers 502 to everything.
	ProxyBadGateway
	// ProxySilentTunnel takes CONNECT with 200 and then says nothing; forwarded
	// requests get no answer either.
	ProxySilentTunnel
	// ProxyWrongBanner is another service on the port: it sends Proxy.Banner and
	// then only reads.
	ProxyWrongBanner
	// ProxyPlainHTTP is a web server on the port: it answers 200 and a page of
	// HTML to whatever is asked, CONNECT included.
	ProxyPlainHTTP
)

// A Proxy is how the forward proxy in a guest behaves. The zero value is an
// open proxy that works.
type Proxy struct {
	Mode ProxyMode
	// User and Password, when User is not empty, are asked for (Basic): without
	// them every request gets 407.
	User, Password string
	// Delay is waited before each answer.
	Delay time.Duration
	// Jitter is how much longer than Delay an answer may take: each one a part of
	// it, evenly spread, by the host's seed.
	Jitter time.Duration
	// Banner is what ProxyWrongBanner sends. Default "SSH-2.0-OpenSSH_9.2\r\n".
	Banner string
}

// SetProxy changes the proxy in the guest from now on. Connections that are
// open are broken by ProxyOff and by a change to or from ProxyWrongBanner and
// ProxyPlainHTTP; else they live on under the new rules.
func (d *Domain) SetProxy(p Proxy) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	old := d.proxy
	d.proxy = p
	if p.Mode == ProxyOff || old.Mode != p.Mode && (speaksOther(old.Mode) || speaksOther(p.Mode)) {
		d.breakConns()
	}
	d.notify()
}

func speaksOther(m ProxyMode) bool { return m == ProxyWrongBanner || m == ProxyPlainHTTP }

// Proxy returns how the proxy in the guest behaves now.
func (d *Domain) Proxy() Proxy {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.proxy
}
