package simhost

import (
	"context"
	"errors"
	"maps"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// call is one procedure call while it is carried out.
type call struct {
	ctx    context.Context // the daemon's: a call outlives its connection
	h      *Host
	conn   *conn
	proc   Proc
	serial uint32
	last   bool     // the connection ends after the answer
	then   [][]byte // frames that follow the answer
}

// A procedure is one entry of the daemon's table.
type procedure struct {
	// high calls never wait for a guest, and may run on a priority worker.
	high bool
	// write marks what a read-only connection may not do.
	write bool
	// early marks what may be called before ConnectOpen.
	early bool
	// run decodes the arguments, carries the call out and encodes the result.
	run func(c *call, args []byte) ([]byte, error)
}

// void is the arguments or the result of a procedure that has none.
type void struct{}

// typed makes a procedure's run from a function on the library's structs. The
// function returns an error only as *Error.
func typed[A, R any](f func(c *call, a *A) (R, *Error)) func(*call, []byte) ([]byte, error) {
	return func(c *call, args []byte) ([]byte, error) {
		var a A
		if _, err := unmarshal(args, &a); err != nil {
			return nil, fail(fromRPC, libvirt.ErrRPC, "Unable to decode message payload")
		}
		r, e := f(c, &a)
		if e != nil {
			return nil, e
		}
		return marshal(r)
	}
}

// table is a part of the procedure table. Each area of the protocol has its own;
// procedures joins them.
type table map[Proc]procedure

func procedures() table {
	all := table{}
	for _, part := range []table{connectProcs(), domainProcs(), powerProcs(), addressProcs(), networkProcs(), eventProcs(), storageProcs(), defineProcs()} {
		maps.Copy(all, part)
	}
	return all
}

// run carries out one call and queues its answer. It holds the connection's
// slot until the answer is written, and a worker until the work is done.
func (c *conn) run(h header, args []byte) {
	reply := header{prog: h.prog, vers: h.vers, proc: h.proc, typ: typeReply, serial: h.serial}
	done := func() { <-c.slot }
	proc, entry, e := c.lookup(h)
	if e != nil {
		c.send(outgoing{data: errorFrame(reply, e), done: done})
		return
	}
	release, err := c.d.workers.acquire(c.d.ctx, entry.high)
	if err != nil {
		return // the daemon ends; so does the connection
	}
	defer release()
	if c.d.h.frozen.pass(c.d.ctx) != nil {
		return
	}
	k := &call{ctx: c.d.ctx, h: c.d.h, conn: c, proc: proc, serial: h.serial}
	f := k.fault(args)
	if f != nil && !k.before(f, reply, done) {
		return
	}
	spin(c.d.h.opts.Work)
	data, err := entry.run(k, args)
	if k.ctx.Err() != nil {
		return
	}
	if err != nil {
		c.send(outgoing{data: errorFrame(reply, asError(err)), done: done})
		return
	}
	out := frame(reply, data)
	switch {
	case f == nil, f.Kind == FaultDelay, f.Kind == FaultHang:
	case f.Kind == FaultOvertaken:
		n := min(f.Frames, len(k.then))
		for _, b := range k.then[:n] {
			c.send(outgoing{data: b})
		}
		k.then = k.then[n:]
	default:
		c.after(f, reply, out, done)
		return
	}
	c.send(outgoing{data: out, done: done, cut: k.last})
	c.follow(k)
}

// follow sends the frames of a download; a fault of streams cuts them short.
func (c *conn) follow(k *call) {
	if len(k.then) == 0 {
		return
	}
	k.h.mu.Lock()
	f := k.h.fault(k.proc, "", true)
	k.h.mu.Unlock()
	for i, b := range k.then {
		if f != nil && i == len(k.then)/2 {
			c.send(outgoing{data: b[:len(b)/2], cut: true})
			return
		}
		c.send(outgoing{data: b})
	}
}

// spin keeps a processor busy for d. Where time stands still it gives up after
// some milliseconds.
func spin(d time.Duration) {
	if d <= 0 {
		return
	}
	for start, n := time.Now(), 0; time.Since(start) < d && n < 100_000; {
		n++
	}
}

// lookup finds the procedure, counts the call, and checks what a daemon checks
// before it looks at arguments.
func (c *conn) lookup(h header) (Proc, procedure, *Error) {
	host := c.d.h
	proc := Proc(h.proc)
	if h.prog != progRemote && h.prog != progQEMU || h.vers != 1 {
		return proc, procedure{}, fail(fromRPC, libvirt.ErrRPC, "Cannot find program %d version %d", h.prog, h.vers)
	}
	entry, ok := host.procs[proc]
	if !ok || h.prog == progQEMU {
		return proc, procedure{}, fail(fromRPC, libvirt.ErrRPC, "unknown procedure: %d", h.proc)
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	host.calls[proc]++
	switch {
	case !c.opened && !entry.early:
		return proc, entry, fail(fromRPC, libvirt.ErrInternalError, "hypervisor connection not open")
	case entry.write && host.opts.ReadOnly:
		return proc, entry, fail(fromDomain, libvirt.ErrOperationDenied, "read only access prevents vir%s", proc)
	}
	return proc, entry, nil
}

// fault returns what hits this call, if anything.
func (k *call) fault(args []byte) *installed {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	if len(k.h.faults) == 0 {
		return nil
	}
	return k.h.fault(k.proc, k.h.about(k.proc, args), false)
}

// about returns the name of the domain that a call is about, or "". Calls about
// a domain have it first among their arguments, or look it up.
func (h *Host) about(p Proc, args []byte) string {
	switch p {
	case ProcDomainLookupByName:
		var a libvirt.DomainLookupByNameArgs
		if _, err := unmarshal(args, &a); err == nil {
			return a.Name
		}
	case ProcDomainLookupByUUID:
		var a libvirt.DomainLookupByUUIDArgs
		if _, err := unmarshal(args, &a); err == nil && h.byUUID[a.UUID] != nil {
			return h.byUUID[a.UUID].spec.Name
		}
	default:
		var d libvirt.Domain
		if _, err := unmarshal(args, &d); err == nil && h.byUUID[d.UUID] != nil {
			return h.byUUID[d.UUID].spec.Name
		}
	}
	return ""
}

// before applies what a fault does instead of the call, or ahead of it; it says
// whether the call is to be carried out.
func (k *call) before(f *installed, reply header, done func()) bool {
	switch f.Kind {
	case FaultError:
		k.conn.send(outgoing{data: errorFrame(reply, &f.Error), done: done})
		return false
	case FaultHang:
		select {
		case <-f.removed:
			return true
		case <-k.ctx.Done():
			return false
		}
	case FaultDelay:
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-k.ctx.Done():
			return false
		}
	case FaultCutBefore:
		k.conn.close()
		return false
	case FaultCutReply, FaultCutInside, FaultGarbage, FaultNoise, FaultShort, FaultHuge, FaultCutStream, FaultOvertaken:
	}
	return true
}

// after applies what a fault does to the answer.
func (c *conn) after(f *installed, reply header, out []byte, done func()) {
	switch f.Kind {
	case FaultError, FaultHang, FaultDelay, FaultCutBefore, FaultCutStream, FaultOvertaken:
		c.send(outgoing{data: out, done: done})
	case FaultCutReply:
		c.close()
	case FaultCutInside:
		c.send(outgoing{data: out[:len(out)/2+1], done: done, cut: true})
	case FaultGarbage:
		c.send(outgoing{data: frame(reply, c.d.h.noise(61)), done: done})
	case FaultNoise:
		b := c.d.h.noise(96)
		b[0] |= 0x80
		c.send(outgoing{data: b, done: done})
	case FaultShort:
		b := frame(reply, nil)
		copy(b, be32(nil, 12))
		c.send(outgoing{data: b, done: done})
	case FaultHuge:
		b := frame(reply, nil)
		copy(b, be32(nil, 0xfffffff0))
		c.send(outgoing{data: b, done: done})
	}
}

// noise returns n repeatable random bytes.
func (h *Host) noise(n int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(h.rng.Uint32() >> 8)
	}
	return b
}

// errorFrame is the reply that carries an error.
func errorFrame(reply header, e *Error) []byte {
	reply.status = statusError
	data, err := marshal(e.wire())
	if err != nil {
		panic("simhost: an error that cannot be encoded: " + err.Error()) // its type is ours
	}
	return frame(reply, data)
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return fail(fromRPC, libvirt.ErrRPC, "Unable to encode message payload")
}
