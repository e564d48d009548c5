package simhost

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// A client that asks for keepalive and does not answer is pinged every 5 s and
// cut after 30 s; one that answers is kept, and one that did not ask is left alone.
func TestKeepalive(t *testing.T) {
	ask, err := marshal(int32(featureKeepalive))
	if err != nil {
		t.Fatal(err)
	}
	question := frame(header{prog: progRemote, vers: 1, proc: uint32(ProcConnectSupportsFeature), serial: 1}, ask)
	pong := frame(header{prog: progKeepalive, vers: 1, proc: keepalivePong, typ: typeMessage}, nil)
	for _, c := range []struct {
		name        string
		ask, answer bool
		pings       []int // seconds
		cut         int   // second of the end; 0 means none within a minute
	}{
		{"did not ask", false, false, nil, 0},
		{"does not answer", true, false, []int{5, 10, 15, 20, 25}, 30},
		{"answers", true, true, []int{5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, Options{})
				conn, err := h.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }() // the daemon may have cut it
				begin := time.Now()
				if c.ask {
					for range 2 { // twice is as good as once
						if _, err := conn.Write(question); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := conn.SetReadDeadline(begin.Add(59 * time.Second)); err != nil {
					t.Fatal(err)
				}
				var pings []int
				cut := 0
				for {
					head, _, err := readFrame(conn)
					if err != nil {
						if errors.Is(err, io.EOF) {
							cut = int(time.Since(begin) / time.Second)
						}
						break
					}
					if head.prog != progKeepalive {
						continue
					}
					pings = append(pings, int(time.Since(begin)/time.Second))
					if c.answer {
						if _, err := conn.Write(pong); err != nil {
							t.Fatal(err)
						}
					}
				}
				if !slices.Equal(pings, c.pings) || cut != c.cut {
					t.Errorf("pings at %v, cut at %d; want %v, %d", pings, cut, c.pings, c.cut)
				}
			})
		})
	}
}
