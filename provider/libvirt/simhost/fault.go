package simhost

import (
	"slices"
	"time"
)

// FaultKind says what happens to a call that a [Fault] hits.
type FaultKind int

// The kinds of faults.
const (
	// FaultError answers with Fault.Error; the call is not carried out.
	FaultError FaultKind = iota
	// FaultHang does not answer. The call holds its place on the connection and
	// its worker until the fault is removed (then it is carried out) or the
	// daemon is killed; closing the connection does not free the worker.
	FaultHang
	// FaultDelay carries the call out after Fault.Delay, holding its worker.
	FaultDelay
	// FaultCutBefore closes the connection; the call is not carried out.
	FaultCutBefore
	// FaultCutReply carries the call out and closes the connection unanswered.
	FaultCutReply
	// FaultCutInside carries the call out, sends half of the answer and closes.
	FaultCutInside
	// FaultGarbage answers with a well-formed frame whose payload is noise.
	FaultGarbage
	// FaultNoise puts bytes on the wire that are no frame: their first word, read
	// as a length, is out of all bounds.
	FaultNoise
	// FaultShort answers with a frame whose length is less than a header's.
	FaultShort
	// FaultHuge answers with a frame that announces almost 4 GiB.
	FaultHuge
	// FaultCutStream closes the connection in the middle of a stream: an upload
	// when half of its next packet is written, a download when half is sent. It
	// hits streams alone; Proc may tell which.
	FaultCutStream
	// FaultOvertaken sends the first Fault.Frames packets of a download before the
	// answer to its call, as libvirt does now and then: another thread sends them.
	FaultOvertaken
)

// A Fault is something that goes wrong with calls.
type Fault struct {
	// Proc is the procedure to hit; zero means every one, AuthList and
	// ConnectOpen included.
	Proc Proc
	// Domain limits it to calls about the domain of that name; "" means all.
	Domain string
	Kind   FaultKind
	// Error is what FaultError answers.
	Error Error
	// Delay is how long FaultDelay waits.
	Delay time.Duration
	// Frames is how many packets overtake, the empty one at the end included, for
	// FaultOvertaken.
	Frames int
	// Times is how many calls it hits before it is spent; zero means no limit.
	Times int
	// After is how many calls that fit it lets pass before it hits the first.
	After int
}

// Inject installs a fault. Of several that fit a call the oldest hits. The
// function that it returns removes it, and lets calls that hang in it go on; it
// may be called more than once.
func (h *Host) Inject(f Fault) (remove func()) {
	in := &installed{Fault: f, left: f.Times, removed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, in)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !in.gone {
			in.gone = true
			close(in.removed)
			h.faults = slices.DeleteFunc(h.faults, func(o *installed) bool { return o == in })
		}
	}
}

// installed is a fault in force.
type installed struct {
	Fault
	left    int
	gone    bool
	removed chan struct{}
}

// fault returns the fault that hits a call, or a stream after its call, and
// counts it. The caller holds h.mu.
func (h *Host) fault(p Proc, domain string, stream bool) *installed {
	for i, f := range h.faults {
		if f.Proc != 0 && f.Proc != p || f.Domain != "" && f.Domain != domain || stream != (f.Kind == FaultCutStream) {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			if f.left--; f.left == 0 {
				h.faults = slices.Delete(h.faults, i, i+1)
			}
		}
		return f
	}
	return nil
}
