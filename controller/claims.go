package controller

import (
	"net/netip"
	"sync"

	"virdeck/model"
)

// claim is one address with the port on it: what a client would dial.
type claim struct {
	addr netip.Addr
	port uint16
}

// claims knows over all hosts which proxy has which address, so that two never
// serve under one. The incumbent stays; a claimant waits until it has gone.
type claims struct {
	mu   sync.Mutex
	by   map[claim]model.ProxyName
	have map[model.ProxyName]claim
	// released gets a value when an address has become free; capacity 1.
	released chan struct{}
}

func newClaims() claims {
	return claims{by: map[claim]model.ProxyName{}, have: map[model.ProxyName]claim{}, released: make(chan struct{}, 1)}
}

// take makes addr the one address that p claims; an invalid one releases what it
// had. It returns the incumbent, if another proxy has the address; p then keeps
// nothing.
func (c *claims) take(p model.ProxyName, addr netip.Addr, port uint16) (rival model.ProxyName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := claim{addr, port}
	if old, ok := c.have[p]; ok {
		if old == k {
			return ""
		}
		delete(c.by, old)
		delete(c.have, p)
		select {
		case c.released <- struct{}{}:
		default:
		}
	}
	if !addr.IsValid() {
		return ""
	}
	if by, taken := c.by[k]; taken {
		return by
	}
	c.by[k], c.have[p] = p, k
	return ""
}

// holder returns who has an address, unless it is p or nobody.
func (c *claims) holder(p model.ProxyName, addr netip.Addr, port uint16) model.ProxyName {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by := c.by[claim{addr, port}]; by != p {
		return by
	}
	return ""
}
