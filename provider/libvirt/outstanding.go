package libvirt

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// outstanding holds the calls that are waited for, by serial. go-libvirt hands an
// answer to whoever waits for its serial, whatever procedure the answer names,
// and decodes it as that caller's; a second answer to one call can stop it for
// good. So an answer must fit a call: its serial, its procedure, and only once.
//
// A stream may begin before the call that opens it is answered: libvirt sends its
// data from another thread. go-libvirt would take the first of it for the answer
// and the answer for the end, and can be stopped for good by what still comes. So
// it is given an answer of ours first, and the daemon's own is dropped.
//
// A call whose caller has left is waited for like any other: its answer still
// comes. Safe for concurrent use.
type outstanding struct {
	mu    sync.Mutex
	calls map[uint32]waited
}

// waited is a call without its answer, or a stream.
type waited struct {
	proc uint32
	over bool // a stream that has ended; what still comes of it is dropped
	open bool // the call of a stream was answered, and its stream goes on
	owed bool // the stream has begun before that, and the daemon's answer comes yet
}

// verdict is what becomes of a frame.
type verdict int

const (
	drop         verdict = iota
	pass                 // hand it on
	passAnswered         // hand it on after an answer of ours to its call
)

// sent notes a frame that goes out, by its header.
func (o *outstanding) sent(header []byte) {
	word := func(i int) uint32 { return binary.BigEndian.Uint32(header[4*i:]) }
	if word(1) != remoteProgram || word(4) != typeCall {
		return
	}
	o.mu.Lock()
	if o.calls == nil {
		o.calls = map[uint32]waited{}
	}
	o.calls[word(5)] = waited{proc: word(3)}
	o.mu.Unlock()
}

// answered judges a frame of type reply or stream by what is waited for, and
// notes it. An error condemns the connection.
func (o *outstanding) answered(proc, kind, serial, status uint32, empty bool) (verdict, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.calls[serial]
	switch {
	case !ok || kind == typeReply && (w.open || w.over) && !w.owed:
		return drop, fmt.Errorf("an answer to procedure %d with serial %d, which nothing waits for", proc, serial)
	case w.proc != proc:
		return drop, fmt.Errorf("an answer to procedure %d with the serial of a call of procedure %d", proc, w.proc)
	case kind == typeReply && w.owed && status == statusOK:
		w.owed = false
		o.calls[serial] = w
		return drop, nil // it is told already
	case w.over:
		return drop, nil // libvirt itself ignores what comes after the end of a stream
	}
	streams := proc == procUpload || proc == procDownload
	v := pass
	if kind == typeStream && streams && !w.open {
		w.open, w.owed, v = true, true, passAnswered
	}
	switch {
	case kind == typeReply && streams && status == statusOK:
		w.open = true
	case kind == typeStream && status == statusContinue && !empty:
	case kind == typeStream && streams: // its end: the word for it, an error, or nothing more to read
		w.over = true
	default:
		delete(o.calls, serial)
		return v, nil
	}
	o.calls[serial] = w
	return v, nil
}
