package libvirt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// frame builds one message.
func frame(program, procedure uint32, payload []byte) []byte {
	b := make([]byte, 0, frameHeader+len(payload))
	for _, w := range []uint32{uint32(frameHeader + len(payload)), program, 1, procedure, 1, 7, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, payload...)
}

const someProgram = 0x20008086

// pipeConn is a frameConn with its far end, and what it said of its death.
type pipeConn struct {
	*frameConn
	far  net.Conn
	mu   sync.Mutex
	died []error
}

func newPipeConn(t *testing.T) *pipeConn {
	t.Helper()
	near, far := net.Pipe()
	p := &pipeConn{far: far}
	p.frameConn = newFrameConn(near, func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.died = append(p.died, err)
	})
	t.Cleanup(func() {
		_ = p.Close()
		_ = far.Close()
	})
	return p
}

func TestFrameConn_refusesLengths(t *testing.T) {
	for name, tt := range map[string]struct {
		length uint32
		want   string
	}{
		"zero":     {0, "frame of 0 bytes, allowed are 28 to 33554436: the stream is out of step"},
		"short":    {27, "frame of 27 bytes, allowed are 28 to 33554436: the stream is out of step"},
		"too long": {frameMax + 1, "frame of 33554437 bytes, allowed are 28 to 33554436: the stream is out of step"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipeConn(t)
			f := frame(someProgram, 1, nil)
			binary.BigEndian.PutUint32(f, tt.length)
			go func() { _, _ = p.far.Write(f) }()
			// who takes the length for good waits for the rest of the frame
			if err := p.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err := p.Read(make([]byte, 4))
			if err == nil || err.Error() != tt.want {
				t.Fatalf("Read: %v, want %q", err, tt.want)
			}
			if _, err := p.Conn.Read(make([]byte, 1)); err == nil {
				t.Error("the connection is still open")
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.died) != 1 {
				t.Errorf("told of its death %d times, want once: %v", len(p.died), p.died)
			}
		})
	}
}

func TestFrameConn_namesAnotherProtocol(t *testing.T) {
	for greeting, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n":        `what answers there does not speak libvirt's protocol: it says "SSH-2.0-OpenSSH_9.2p1 Debian"`,
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n": `what answers there does not speak libvirt's protocol: it says "HTTP/1.1 400 Bad Request"`,
	} {
		p := newPipeConn(t)
		go func() { _, _ = p.far.Write([]byte(greeting)) }()
		if _, err := p.Read(make([]byte, 4)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Keepalive is taken out of the stream, whatever pieces it is read in, and a
// PING is answered.
func TestFrameConn_keepalive(t *testing.T) {
	p := newPipeConn(t)
	ping := frame(keepaliveProgram, keepalivePing, nil)
	data := frame(someProgram, 9, []byte("payload that is longer than a header"))
	second := bytes.Clone(data)
	second[23] = 8 // its serial
	p.asked.sent(header(typeCall, 9, 7))
	p.asked.sent(header(typeCall, 9, 8))
	go func() {
		_, _ = p.far.Write(bytes.Join([][]byte{ping, data, ping, second}, nil))
	}()
	pongs := make(chan []byte, 2)
	go func() {
		for range 2 {
			b := make([]byte, frameHeader)
			if _, err := io.ReadFull(p.far, b); err != nil {
				return
			}
			pongs <- b
		}
	}()
	got := make([]byte, 2*len(data))
	for n := 0; n < len(got); {
		k, err := p.Read(got[n:min(n+5, len(got))])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if want := append(bytes.Clone(data), second...); !bytes.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	b := <-pongs
	if binary.BigEndian.Uint32(b[4:]) != keepaliveProgram || binary.BigEndian.Uint32(b[12:]) != keepalivePong {
		t.Errorf("answered with %x, want a PONG", b)
	}
}

// A ping never goes out inside another frame.
func TestFrameConn_pingsBetweenFrames(t *testing.T) {
	p := newPipeConn(t)
	out := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(p.far)
		out <- b
	}()
	data := frame(someProgram, 9, []byte("abc"))
	for _, piece := range [][]byte{data[:2], data[2:10], data[10:30]} {
		if _, err := p.Write(piece); err != nil {
			t.Fatal(err)
		}
		p.ping() // a frame is half out: nothing may be sent
	}
	if _, err := p.Write(data[30:]); err != nil {
		t.Fatal(err)
	}
	p.ping()
	_ = p.Close()
	b := <-out
	if !bytes.HasPrefix(b, data) || len(b) != len(data)+2*frameHeader {
		t.Fatalf("sent %x, want the frame whole, the ping that was due, and another", b)
	}
	if binary.BigEndian.Uint32(b[len(data)+12:]) != keepalivePing {
		t.Errorf("after the frame: %x, want a PING", b[len(data):])
	}
}

// A writer that makes no progress closes the connection: half a frame can never
// be continued.
func TestFrameConn_stuckWriterCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeConn(t)
		start := time.Now()
		_, err := p.Write(frame(someProgram, 9, nil)) // nobody reads
		if err == nil || time.Since(start) != writePatience {
			t.Errorf("Write: %v after %s, want an error after %s", err, time.Since(start), writePatience)
		}
		if _, err := p.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Read: %v, want a closed pipe", err)
		}
	})
}

// Whatever comes in, nothing panics, no more is handed on than came in, and what
// is handed on begins with a length that libvirt allows.
func FuzzFrameConn_Read(f *testing.F) {
	f.Add(frame(someProgram, 9, []byte("abc")))
	f.Add(frame(keepaliveProgram, keepalivePing, nil))
	f.Add(frame(keepaliveProgram, 77, []byte("x")))
	f.Add([]byte("SSH-2.0-OpenSSH_9.2\r\n and then some more bytes"))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Add(frame(someProgram, 9, nil)[:13])
	f.Fuzz(func(t *testing.T, in []byte) {
		c := newFrameConn(readOnly{bytes.NewReader(in)}, func(error) {})
		c.asked.sent(header(typeCall, 9, 7))
		out, err := io.ReadAll(io.LimitReader(c, int64(len(in))+1))
		if err == nil && len(in) > 0 && len(out) > len(in) {
			t.Fatalf("%d bytes from %d", len(out), len(in))
		}
		for rest := out; len(rest) >= 4; {
			n := binary.BigEndian.Uint32(rest)
			if n < frameHeader || n > frameMax {
				t.Fatalf("handed on a frame of %d bytes", n)
			}
			if int(n) > len(rest) {
				break // cut off by the end of the input
			}
			rest = rest[n:]
		}
	})
}

// readOnly is a connection that gives what a reader has, and swallows writes.
type readOnly struct{ io.Reader }

func (readOnly) Write(p []byte) (int, error)      { return len(p), nil }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return nil }
func (readOnly) RemoteAddr() net.Addr             { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

func TestEndpointString_hasNoSecrets(t *testing.T) {
	e := Endpoint{Transport: TransportSSH, Address: "h:22", User: "root", KeyFile: "/secret/key"}
	if s := e.String(); s != "ssh root@h:22" || strings.Contains(s, "secret") {
		t.Errorf("String() = %q", s)
	}
}
