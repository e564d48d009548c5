package libvirt

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// drip answers the first call for the host name with a frame of total bytes, of
// which it sends some each second; nothing else passes meanwhile.
func drip(total uint32, rate int) func(net.Conn, asked) bool {
	var first atomic.Bool
	return func(c net.Conn, a asked) bool {
		if a.proc != procHostname || first.Swap(true) {
			return false
		}
		b := a.answer(nil)
		binary.BigEndian.PutUint32(b, total)
		go func() { _, _ = io.Copy(io.Discard, c) }() // it takes calls, and answers none
		if _, err := c.Write(b); err != nil {
			return true
		}
		for sent := 0; sent < int(total)-frameHeader; sent += rate {
			time.Sleep(time.Second)
			if _, err := c.Write(make([]byte, min(rate, int(total)-frameHeader-sent))); err != nil {
				break
			}
		}
		return true
	}
}

// A daemon that drips is silent: a frame must move, or a PONG must come. One that
// moves, and keeps the PONG waiting behind it, is neither.
func TestLink_drip(t *testing.T) {
	const replaced = "link down (generation 1: replaced by a newer generation)"
	for name, tt := range map[string]struct {
		total           uint32
		rate            int
		atLeast, atMost time.Duration // the call takes so long
		want            string
	}{
		// A replaced generation may drain for a minute.
		"a byte a second":           {frameMax, 1, time.Minute, 70 * time.Second, replaced},
		"too slow for a line":       {frameMax, minRate - 1000, time.Minute, 70 * time.Second, replaced},
		"moves, but takes too long": {frameMax, 2 * minRate, 34 * time.Minute, 37 * time.Minute, replaced},
		"slow, and comes":           {frameHeader + 100*minRate, 2 * minRate, 50 * time.Second, 50 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fakeLink(t, drip(tt.total, tt.rate))
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err := hostname(t.Context(), l) // a patient caller
				if errText(err) != tt.want {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if took := time.Since(start); took < tt.atLeast || took > tt.atMost {
					t.Errorf("after %s, want %s to %s", took, tt.atLeast, tt.atMost)
				}
				l.Close()
				time.Sleep(2 * time.Second) // the daemon notices
			})
		})
	}
}

// Events alone are no life either: a daemon that tells and takes no calls.
func TestLink_eventsAreNoLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Bool
		event := reply(318, typeMessage, statusOK, append(append(words(7, 3), 'v', 'm', '1', 0), append(make([]byte, 16), words(1, 2, 0)...)...))
		l := fakeLink(t, func(c net.Conn, a asked) bool {
			if a.proc != procHostname || first.Swap(true) {
				return false
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			for {
				if _, err := c.Write(event); err != nil {
					return true
				}
				time.Sleep(500 * time.Millisecond)
			}
		})
		go func() { _ = hostname(t.Context(), l) }() // ends with its generation
		time.Sleep(8 * time.Second)
		if g := l.Status().Generation; g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
		l.Close()
		time.Sleep(2 * time.Second) // the daemon notices
	})
}

// The round trip is from a ping to its own PONG, however many are under way; a
// PONG that nothing asked for says nothing.
func TestFrameConn_roundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeConn(t)
		go func() { _, _ = io.Copy(io.Discard, p.far) }()
		go func() { _, _ = p.Read(make([]byte, 1)) }()
		pong := frame(keepaliveProgram, keepalivePong, nil)
		born := p.mark()
		time.Sleep(time.Second)
		answer := func(wait, want time.Duration) {
			t.Helper()
			time.Sleep(wait)
			if _, err := p.far.Write(pong); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := time.Duration(p.roundTrip.Load()); got != want {
				t.Errorf("round trip %s, want %s", got, want)
			}
		}
		before := p.mark()
		answer(0, 0)
		if !p.livedSince(born) || p.livedSince(before) {
			t.Error("a PONG that nothing asked for is life")
		}
		p.ping()
		time.Sleep(2 * time.Second)
		p.ping()
		answer(500*time.Millisecond, 2500*time.Millisecond)
		answer(100*time.Millisecond, 600*time.Millisecond)
		answer(time.Second, 600*time.Millisecond)
	})
}

// A ping that meets a writer goes out after it, and is no sign of silence.
func TestFrameConn_pingMeetsAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeConn(t)
		wrote := make(chan error, 1)
		go func() {
			_, err := p.Write(frame(someProgram, 9, make([]byte, 1000))) // nobody reads yet
			wrote <- err
		}()
		synctest.Wait()
		p.ping()
		b := make([]byte, frameHeader+1000+frameHeader)
		if _, err := io.ReadFull(p.far, b); err != nil {
			t.Fatal(err)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		if b := b[frameHeader+1000:]; binary.BigEndian.Uint32(b[4:]) != keepaliveProgram || binary.BigEndian.Uint32(b[12:]) != keepalivePing {
			t.Errorf("after the frame: %x, want a PING", b)
		}
	})
}
