package simhost

import libvirt "github.com/digitalocean/go-libvirt"

// Auth is how the daemon wants its clients to prove who they are.
type Auth int

// The ways.
const (
	AuthNone   Auth = iota
	AuthPolkit      // asked for and granted
	AuthDenied      // polkit, which says no (code 94)
	// AuthSASL is a way that the client library does not know: the open call, which
	// it makes all the same, is refused (code 39).
	AuthSASL
)

// SetAuth changes what new connections have to prove.
func (h *Host) SetAuth(a Auth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.auth = a
}

// The daemon's numbers of the ways (remote_auth_type).
const (
	authTypeNone   = 0
	authTypeSASL   = 1
	authTypePolkit = 2
)

func authList(c *call, _ *void) (libvirt.AuthListRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	t := libvirt.AuthType(authTypeNone)
	switch c.h.auth {
	case AuthPolkit, AuthDenied:
		t = authTypePolkit
	case AuthSASL:
		t = authTypeSASL
	case AuthNone:
	}
	return libvirt.AuthListRet{Types: []libvirt.AuthType{t}}, nil
}

func authPolkit(c *call, _ *void) (libvirt.AuthPolkitRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	switch c.h.auth {
	case AuthPolkit:
		c.conn.authed = true
		return libvirt.AuthPolkitRet{Complete: 1}, nil
	case AuthDenied:
		return libvirt.AuthPolkitRet{}, fail(fromPolkit, libvirt.ErrAuthUnavailable, "no polkit agent available to authenticate action 'org.libvirt.unix.manage'")
	case AuthNone, AuthSASL:
	}
	return libvirt.AuthPolkitRet{}, fail(fromRPC, libvirt.ErrAuthFailed, "polkit was not asked for")
}
