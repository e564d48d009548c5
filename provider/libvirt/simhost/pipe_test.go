package simhost

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func testPipe() (a, b *pipeConn) { return newPipe("unix", simAddr("a"), simAddr("b")) }

func TestPipeCarriesBytes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := testPipe()
		sent := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
		go func() {
			if n, err := a.Write(sent); n != len(sent) || err != nil {
				t.Errorf("write %d, %v", n, err)
			}
			if err := a.CloseWrite(); err != nil {
				t.Error(err)
			}
		}()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		// The other direction is still open.
		if _, err := b.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if n, err := a.Read(make([]byte, 9)); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		if a.LocalAddr().String() != "a" || a.RemoteAddr().String() != "b" || b.LocalAddr().Network() != "sim" {
			t.Errorf("addresses %v %v", a.LocalAddr(), a.RemoteAddr())
		}
	})
}

// A full buffer makes the writer wait, for the reader, its deadline or the end.
func TestPipeFull(t *testing.T) {
	for _, c := range []struct {
		name string
		free func(a, b *pipeConn) error
		n    int
		want error
	}{
		{"deadline", func(a, _ *pipeConn) error { return a.SetWriteDeadline(time.Now().Add(time.Second)) }, pipeBuffer, os.ErrDeadlineExceeded},
		{"own close", func(a, _ *pipeConn) error { return a.Close() }, pipeBuffer, net.ErrClosed},
		{"other's close", func(_, b *pipeConn) error { return b.Close() }, pipeBuffer, syscall.EPIPE},
		{"read", func(_, b *pipeConn) error { _, err := io.ReadFull(b, make([]byte, 1)); return err }, pipeBuffer + 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, b := testPipe()
				type result struct {
					n   int
					err error
				}
				done := make(chan result, 1)
				go func() {
					n, err := a.Write(make([]byte, pipeBuffer+1))
					done <- result{n, err}
				}()
				synctest.Wait()
				if len(done) != 0 {
					t.Fatal("the writer did not wait")
				}
				if err := c.free(a, b); err != nil {
					t.Fatal(err)
				}
				if r := <-done; r.n != c.n || !errors.Is(r.err, c.want) {
					t.Errorf("wrote %d, %v; want %d, %v", r.n, r.err, c.n, c.want)
				}
			})
		})
	}
}

func TestPipeEnds(t *testing.T) {
	read := func(c *pipeConn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c *pipeConn) error { _, err := c.Write([]byte("y")); return err }
	for _, c := range []struct {
		name string
		do   func(a, b *pipeConn) error // one byte is on its way to b
		text string
		want error
	}{
		{"what was written is read first", func(a, b *pipeConn) error { return errors.Join(a.Close(), read(b)) }, "", nil},
		{"then the end", func(a, b *pipeConn) error { return errors.Join(a.Close(), read(b), read(b)) }, "EOF", io.EOF},
		{"write to one that is gone", func(a, b *pipeConn) error { return errors.Join(b.Close(), write(a)) }, "write unix a->b: broken pipe", syscall.EPIPE},
		{"read at a closed end", func(_, b *pipeConn) error { return errors.Join(b.Close(), read(b)) }, "read unix b->a: use of closed network connection", net.ErrClosed},
		{"write at a closed end", func(a, _ *pipeConn) error { return errors.Join(a.Close(), write(a)) }, "write unix a->b: use of closed network connection", net.ErrClosed},
		{"close twice", func(a, _ *pipeConn) error { return errors.Join(a.Close(), a.Close()) }, "close unix a->b: use of closed network connection", net.ErrClosed},
		{"reset", func(a, b *pipeConn) error { a.reset(); return read(b) }, "read unix b->a: connection reset by peer", syscall.ECONNRESET},
		{"a deadline that is past", func(_, b *pipeConn) error { return errors.Join(b.SetReadDeadline(time.Now()), read(b)) }, "read unix b->a: i/o timeout", os.ErrDeadlineExceeded},
		{"a deadline that is lifted", func(_, b *pipeConn) error {
			return errors.Join(b.SetReadDeadline(time.Now()), b.SetReadDeadline(time.Time{}), read(b))
		}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, b := testPipe()
				if err := write(a); err != nil {
					t.Fatal(err)
				}
				err := c.do(a, b)
				if c.want == nil {
					if err != nil {
						t.Errorf("error %v", err)
					}
					return
				}
				if !errors.Is(err, c.want) || err.Error() != c.text {
					t.Errorf("error %v, want %q", err, c.text)
				}
			})
		})
	}
}

// A read waits until its deadline, to the moment, and can go on with a new one.
func TestPipeReadDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := testPipe()
		begin := time.Now()
		if err := b.SetDeadline(begin.Add(1500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := b.Read(make([]byte, 1))
		var n net.Error
		if !errors.As(err, &n) || !n.Timeout() || time.Since(begin) != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := b.SetDeadline(begin.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _, _ = a.Write([]byte("z")) })
		if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
	})
}
