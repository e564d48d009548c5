package libvirt

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// asked is a call that a fake daemon got.
type asked struct{ proc, serial uint32 }

// answer is a frame for the call; the zero one says OK with a payload.
func (a asked) answer(payload []byte) []byte { return a.as(a.proc, typeReply, statusOK, payload) }

// as is an answer of any kind that bears the call's serial.
func (a asked) as(proc, kind, status uint32, payload []byte) []byte {
	b := reply(proc, kind, status, payload)
	binary.BigEndian.PutUint32(b[20:], a.serial)
	return b
}

// daemonSays is the error that libvirt sends.
func daemonSays(code uint32, message string) []byte {
	text := append([]byte(message), make([]byte, 3-(len(message)+3)%4)...)
	return append(append(words(code, 7, 1, uint32(len(message))), text...), words(2)...)
}

// fakeDaemon is a daemon that a test can make say anything. It opens like any
// other and answers keepalive; say takes a call out of its hands by returning
// true. It reads nothing while say writes, as a daemon that is busy.
func fakeDaemon(say func(net.Conn, asked) bool) DialFunc {
	return func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer func() { _ = far.Close() }()
			for {
				h := make([]byte, frameHeader)
				if _, err := io.ReadFull(far, h); err != nil {
					return
				}
				word := func(i int) uint32 { return binary.BigEndian.Uint32(h[4*i:]) }
				if _, err := io.CopyN(io.Discard, far, int64(word(0))-frameHeader); err != nil {
					return
				}
				a := asked{word(3), word(5)}
				var out []byte
				switch {
				case word(1) == keepaliveProgram:
					out = frame(keepaliveProgram, keepalivePong, nil)
				case say(far, a):
				case a.proc == procAuthList:
					out = a.answer(words(1, 0))
				case a.proc == 157:
					out = a.answer(words(0, 9_000_000))
				default:
					out = a.answer(nil)
				}
				if _, err := far.Write(out); err != nil {
					return
				}
			}
		}()
		return near, nil
	}
}

// fakeLink is a link to one.
func fakeLink(t *testing.T, say func(net.Conn, asked) bool) *Link {
	t.Helper()
	l := NewLink(LinkOptions{Host: "h", Dial: fakeDaemon(say)})
	t.Cleanup(l.Close)
	return l
}

// hostname is a read whose answer a fake daemon usually makes up; statistics is
// one with much to decode.
func hostname(ctx context.Context, l *Link) error {
	_, _, err := do(ctx, l, call{Class: ClassRead, What: "hostname"},
		func(v *golibvirt.Libvirt) (string, error) { return v.ConnectGetHostname() })
	return err
}

func statistics(ctx context.Context, l *Link) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _, err := do(ctx, l, call{Class: ClassRead, What: "statistics"},
		func(v *golibvirt.Libvirt) ([]golibvirt.DomainStatsRecord, error) {
			return v.ConnectGetAllDomainStats(nil, 1, 0)
		})
	return err
}

const (
	procHostname   = 59
	procStatistics = 344
)
