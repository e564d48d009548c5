package libvirt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// go-libvirt's decoder trusts the counts and lengths inside a reply: sixty bytes
// of noise that announce a billion domains make it allocate for a billion, and a
// process that is out of memory cannot recover. So a reply is walked here by the
// form that its procedure has (remote_protocol.x), before the decoder sees it:
// nothing is announced that the frame does not hold.

// The message types and statuses of virnetprotocol.x.
const (
	remoteProgram = 0x20008086
	typeCall      = 0
	typeReply     = 1
	typeMessage   = 2
	typeStream    = 3
	statusOK      = 0
	statusError   = 1

	statusContinue = 2
)

// The procedures with a stream that virdeck calls.
const (
	procUpload   = 208
	procDownload = 209
)

// procOpen opens the daemon's driver; procAuthList asks which ways of authentication the daemon has; authSASL is one
// (remote_auth_type).
const (
	procOpen     = 1
	procAuthList = 66
	authSASL     = 1
)

// walk goes over a payload in XDR (RFC 4506).
type walk struct{ rest []byte }

// shape reports whether what follows has a form, and moves over it.
type shape func(*walk) bool

func (w *walk) skip(n int) bool {
	if n > len(w.rest) {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

func (w *walk) word() (uint32, bool) {
	if len(w.rest) < 4 {
		return 0, false
	}
	v := binary.BigEndian.Uint32(w.rest)
	w.rest = w.rest[4:]
	return v, true
}

// The forms. A word is an int, an unsigned, an enum or a bool.
func word(w *walk) bool  { return w.skip(4) }
func hyper(w *walk) bool { return w.skip(8) }
func uuid(w *walk) bool  { return w.skip(16) }

// text is a string or variable opaque, padded to four bytes.
func text(w *walk) bool {
	n, ok := w.word()
	return ok && uint64(n) <= uint64(len(w.rest)) && w.skip((int(n)+3)&^3)
}

func seq(shapes ...shape) shape {
	return func(w *walk) bool {
		for _, s := range shapes {
			if !s(w) {
				return false
			}
		}
		return true
	}
}

// list is a counted array; an optional value is one of none or one. No element
// is shorter than a word, which bounds the count.
func list(s shape) shape {
	return func(w *walk) bool {
		n, ok := w.word()
		if !ok || uint64(n)*4 > uint64(len(w.rest)) {
			return false
		}
		for range n {
			if !s(w) {
				return false
			}
		}
		return true
	}
}

// param is a typed parameter: a name, and a union told by its type
// (virTypedParameterType).
func param(w *walk) bool {
	if !text(w) {
		return false
	}
	kind, ok := w.word()
	if !ok {
		return false
	}
	switch kind {
	case 1, 2, 6: // int, unsigned, bool
		return word(w)
	case 3, 4, 5: // long, unsigned long, double
		return hyper(w)
	case 7:
		return text(w)
	}
	return false
}

func domain(w *walk) bool  { return seq(text, uuid, word)(w) }
func network(w *walk) bool { return seq(text, uuid)(w) }
func nothing(*walk) bool   { return true }

// replyShape returns the form of the reply to a procedure that virdeck calls.
func replyShape(proc uint32) (shape, bool) {
	switch proc {
	case procOpen, 2, // open, close
		12, 33, 234, 258, 317, // destroy, shutdown, destroy and shutdown with flags, deregister
		29, 94, 231, 264, // set autostart, delete a volume, undefine with flags, set metadata
		procUpload, procDownload: // the stream follows
		return nothing, true
	case 23, 24, 350: // look up a domain by name and by UUID, define one
		return domain, true
	case 15: // autostart
		return word, true
	case 100, 265: // a volume's path, a domain's metadata
		return text, true
	case 93: // create a volume: pool, name, key
		return seq(text, text, text), true
	case 98: // a volume's type, capacity and allocation
		return seq(word, hyper, hyper), true
	case 9: // start a domain: nothing, in this version of the protocol
		return nothing, true
	case procAuthList:
		return list(word), true
	case 70: // authentication by polkit: whether it is complete
		return word, true
	case 157: // library version
		return hyper, true
	case 7, 14, 43, 59: // capabilities, domain and network XML, host name
		return text, true
	case 46: // look up a network
		return network, true
	case 84: // look up a storage pool
		return network, true
	case 95: // look up a volume: pool, name, key
		return seq(text, text, text), true
	case 316, 420: // register for events, set the agent's timeout
		return word, true
	case 341: // DHCP leases
		lease := seq(text, hyper, word, list(text), list(text), text, word, list(text), list(text))
		return seq(list(lease), word), true
	case 344: // statistics of all domains
		return list(seq(domain, list(param))), true
	case 353: // interface addresses
		return list(seq(text, list(text), list(seq(word, text, word)))), true
	}
	return nil, false
}

// eventShape returns the form of an event that virdeck subscribes to.
func eventShape(proc uint32) (shape, bool) {
	switch proc {
	case 318: // lifecycle
		return seq(word, domain, word, word), true
	case 348: // agent lifecycle
		return seq(word, domain, word, word), true
	case 379: // a change of metadata
		return seq(word, domain, word, list(text)), true
	}
	return nil, false
}

// errorShape is how a daemon's error begins, in the way that go-libvirt reads
// it: code, domain, the flag of the message, which it takes as given, the
// message, and the level.
func errorShape(w *walk) bool { return seq(word, word, word, text, word)(w) }

// inspect judges whether a whole frame of the remote program may be handed to the
// decoder: it is an answer that a call waits for, or an event, and has the
// form of it. A message that nobody subscribed to is dropped without an error.
//
// Events come as messages alone: go-libvirt tells them by their procedure, but
// no call has such a procedure, so that no answer can pass for one.
func (o *outstanding) inspect(frame []byte) (verdict, error) {
	proc, kind, status := binary.BigEndian.Uint32(frame[12:]), binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[24:])
	if p := binary.BigEndian.Uint32(frame[4:]); p != remoteProgram {
		return drop, fmt.Errorf("a frame of program %#x, which was never asked for", p)
	}
	var s shape
	var known bool
	switch {
	case kind == typeMessage:
		if s, known = eventShape(proc); !known {
			return drop, nil
		}
	case kind == typeStream && (status == statusOK || status == statusContinue) && (proc == procUpload || proc == procDownload): // data, or the end
		s, known = nothing, true
	case (kind == typeReply || kind == typeStream) && status == statusError:
		s, known = errorShape, true
	case kind == typeReply && status == statusOK:
		s, known = replyShape(proc)
	}
	if !known {
		return drop, fmt.Errorf("a frame of type %d and status %d for procedure %d, which was never asked for", kind, status, proc)
	}
	v := pass
	if kind != typeMessage {
		serial := binary.BigEndian.Uint32(frame[20:])
		var err error
		if v, err = o.answered(proc, kind, serial, status, len(frame) == frameHeader); v == drop {
			return drop, err
		}
	}
	if !s(&walk{frame[frameHeader:]}) {
		return drop, fmt.Errorf("the answer to procedure %d is garbled: it announces more than it holds", proc)
	}
	return v, nil
}

// answerBefore is the answer that opens the stream which a frame belongs to.
func answerBefore(frame []byte) []byte {
	b := bytes.Clone(frame[:frameHeader])
	for at, w := range map[int]uint32{0: frameHeader, 16: typeReply, 24: statusOK} {
		binary.BigEndian.PutUint32(b[at:], w)
	}
	return b
}
