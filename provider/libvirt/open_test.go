package libvirt

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"virdeck/provider"
)

// A daemon that wants polkit, as every libvirtd does of a user who is not root,
// is asked for it once.
func TestOpen_polkit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polkit := make(chan struct{}, 10)
		l := fakeLink(t, func(c net.Conn, a asked) bool {
			switch a.proc {
			case procAuthList:
				_, _ = c.Write(a.answer(words(1, 2)))
			case 70:
				polkit <- struct{}{}
				_, _ = c.Write(a.answer(words(1)))
			default:
				return false
			}
			return true
		})
		if err := version(t.Context(), l); err != nil {
			t.Error(err)
		}
		if len(polkit) != 1 {
			t.Errorf("asked %d times", len(polkit))
		}
	})
}

// The reason of a refusal is what the daemon said, or what it asks of us.
func TestOpen_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		auth   []uint32
		proc   uint32 // refused
		answer []byte
		want   string
	}{
		"authentication": {[]uint32{1, 0}, procAuthList, daemonSays(45, "authentication failed: no permission for kvm"), "code 45: authentication failed: no permission for kvm"},
		"open":           {[]uint32{1, 0}, 1, daemonSays(45, "authentication failed: no permission for kvm"), "code 45: authentication failed: no permission for kvm"},
		"first call":     {[]uint32{1, 0}, 157, daemonSays(88, "access denied"), "code 88: access denied"},
		"polkit":         {[]uint32{1, 2}, 70, daemonSays(79, "polkit: no agent is available to authenticate"), "code 79: polkit: no agent is available to authenticate"},
		"sasl":           {[]uint32{1, 1}, 1, daemonSays(45, "authentication required"), "the daemon asks for SASL authentication, which virdeck does not speak: code 45: authentication required"},
		"sasl or none":   {[]uint32{2, 1, 0}, 1, daemonSays(45, "authentication required"), "code 45: authentication required"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fakeLink(t, func(c net.Conn, a asked) bool {
					switch a.proc {
					case tt.proc:
						_, _ = c.Write(a.as(a.proc, typeReply, statusError, tt.answer))
					case procAuthList:
						_, _ = c.Write(a.answer(words(tt.auth...)))
					default:
						return false
					}
					return true
				})
				err := version(t.Context(), l)
				if err == nil || err.Error() != "link down: "+tt.want || !errors.Is(err, provider.ErrTransient) {
					t.Errorf("%v, want link down: %s", err, tt.want)
				}
				if got := l.Status().LastError; got != tt.want {
					t.Errorf("the link says %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A connection that ends just when it is opened: go-libvirt's watcher of it must
// not meet its Connect. Nothing but the race detector sees the difference.
func TestOpen_endsAtOnce(t *testing.T) {
	for range 100 {
		c, err := fakeDaemon(func(c net.Conn, a asked) bool {
			if a.proc != procOpen {
				return false
			}
			_, _ = c.Write(a.answer(nil))
			_ = c.Close()
			return true
		})(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(c, 4)
		if err := s.open(t.Context(), "x", func(string) {}); err == nil {
			t.Fatal("a connection that has ended is open")
		}
		s.kill(errClosed)
	}
}
