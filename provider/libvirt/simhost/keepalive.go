package simhost

import "time"

// The daemon's keepalive, as it is configured by default: a ping after five
// seconds of silence, and after five of them unanswered the end.
const (
	keepaliveInterval = 5 * time.Second
	keepaliveCount    = 5
)

// startPings makes the daemon ping the client from now on, once.
func (c *conn) startPings() {
	c.d.h.mu.Lock()
	defer c.d.h.mu.Unlock()
	if c.pinged || c.d.h.closed {
		return
	}
	c.pinged = true
	c.heard.Store(time.Now().UnixNano())
	c.d.h.wg.Go(c.pingLoop)
}

// pingLoop pings while nothing comes from the client, and cuts one that has not
// let itself be heard for as long as its pings are counted.
func (c *conn) pingLoop() {
	t := time.NewTicker(keepaliveInterval)
	defer t.Stop()
	unanswered, heard := 0, c.heard.Load()
	for {
		select {
		case <-t.C:
		case <-c.gone:
			return
		}
		if c.d.h.frozen.pass(c.d.ctx) != nil {
			return
		}
		if now := c.heard.Load(); now != heard {
			unanswered, heard = 0, now
		}
		if unanswered == keepaliveCount {
			c.close()
			return
		}
		unanswered++
		c.send(outgoing{data: frame(header{prog: progKeepalive, vers: 1, proc: keepalivePing, typ: typeMessage}, nil)})
	}
}
