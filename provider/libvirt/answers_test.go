package libvirt

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/provider"
)

// An answer that fits no call ends the generation before anything is allocated
// for it: go-libvirt goes by the serial, and would decode it as whatever its
// caller waits for.
func TestLink_answersThatFitNoCall(t *testing.T) {
	billions := append(words(30_000_000), make([]byte, 64)...)
	for name, tt := range map[string]struct {
		answer func(asked) []byte
		want   string
	}{
		"another procedure": {func(a asked) []byte { return a.as(1, typeReply, statusOK, billions) },
			"an answer to procedure 1 with the serial of a call of procedure 344"},
		"an error of another procedure": {func(a asked) []byte { return a.as(14, typeReply, statusError, daemonSays(1, "x")) },
			"an answer to procedure 14 with the serial of a call of procedure 344"},
		"an error of an event": {func(a asked) []byte { return a.as(318, typeReply, statusError, words(1, 1_000_000_000, 0, 0, 0)) },
			"an answer to procedure 318 with the serial of a call of procedure 344"},
		"an event as an answer": {func(a asked) []byte { return a.as(318, typeReply, statusOK, words(1, 1_000_000_000)) },
			"a frame of type 1 and status 0 for procedure 318, which was never asked for"},
		"a stream of another procedure": {func(a asked) []byte { return a.as(procDownload, typeStream, statusContinue, billions) },
			"an answer to procedure 209 with the serial of a call of procedure 344"},
		"a serial of the future": {func(a asked) []byte { a.serial += 5; return a.answer(words(0)) },
			"an answer to procedure 344 with serial 10, which nothing waits for"},
		"twice": {func(a asked) []byte { return bytes.Repeat(a.answer(words(0)), 2) },
			"an answer to procedure 344 with serial 5, which nothing waits for"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var once sync.Once
				l := fakeLink(t, func(c net.Conn, a asked) bool {
					if a.proc != procStatistics {
						return false
					}
					out := a.answer(words(0))
					once.Do(func() { out = tt.answer(a) })
					_, _ = c.Write(out)
					return true
				})
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := statistics(t.Context(), l)
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
					t.Errorf("%d bytes allocated for an answer of some dozens", n)
				}
				if name != "twice" && !errors.Is(err, provider.ErrLinkDown) {
					t.Errorf("%v, want ErrLinkDown", err)
				}
				synctest.Wait()
				if got := l.Status().LastError; got != tt.want {
					t.Errorf("the link says %q, want %q", got, tt.want)
				}
				time.Sleep(time.Second)
				if err := statistics(t.Context(), l); err != nil {
					t.Errorf("after the redial: %v", err)
				}
				if g := l.Status().Generation; g != 2 {
					t.Errorf("generation %d, want 2", g)
				}
			})
		})
	}
}

// A second answer to one call would stop go-libvirt for good, whoever is waiting
// then; goleak looks for what it would leave.
func TestLink_duplicateAnswersUnderLoad(t *testing.T) {
	l := NewLink(LinkOptions{Host: "h", BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Dial: fakeDaemon(func(c net.Conn, a asked) bool {
		if a.proc != procHostname {
			return false
		}
		_, _ = c.Write(bytes.Repeat(a.answer(append(words(1), 'x', 0, 0, 0)), 2))
		return true
	})})
	defer l.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for l.Status().Generation < 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				err := hostname(ctx, l)
				cancel()
				if err != nil && !errors.Is(err, provider.ErrLinkDown) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The answer to a call whose caller has left is waited for like any other.
func TestLink_lateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fakeLink(t, func(c net.Conn, a asked) bool {
			if a.proc != procHostname {
				return false
			}
			go func() {
				time.Sleep(time.Second)
				_, _ = c.Write(a.answer(append(words(1), 'x', 0, 0, 0)))
			}()
			return true
		})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := hostname(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the caller's deadline", err)
		}
		time.Sleep(time.Second)
		st := l.Status()
		if st.Generation != 1 || st.InFlight != 0 || st.LastError != "" {
			t.Errorf("generation %d, %d in flight, %q; want 1, 0, none", st.Generation, st.InFlight, st.LastError)
		}
	})
}

// What is waited for, frame by frame.
func TestOutstanding(t *testing.T) {
	type came struct {
		kind, status uint32
		empty        bool
		want         string // "pass", "drop", "answer, pass", or the error
	}
	const gone = "an answer to procedure 209 with serial 3, which nothing waits for"
	for name, tt := range map[string]struct {
		proc   uint32
		frames []came
	}{
		"a call": {209 - 1, []came{{typeReply, statusError, false, "pass"}, {typeReply, statusOK, false, strings.Replace(gone, "209", "208", 1)}}},
		"a download": {procDownload, []came{
			{typeReply, statusOK, true, "pass"}, {typeStream, statusContinue, false, "pass"}, {typeStream, statusContinue, false, "pass"},
			{typeStream, statusContinue, true, "pass"}, {typeStream, statusOK, true, "drop"}, {typeReply, statusOK, true, gone}}},
		"a download that fails": {procDownload, []came{
			{typeReply, statusOK, true, "pass"}, {typeStream, statusContinue, false, "pass"}, {typeStream, statusError, false, "pass"}, {typeStream, statusContinue, false, "drop"}}},
		"a download that is refused": {procDownload, []came{{typeReply, statusError, false, "pass"}, {typeStream, statusContinue, false, gone}}},
		"a download that overtakes its answer": {procDownload, []came{
			{typeStream, statusContinue, false, "answer, pass"}, {typeStream, statusContinue, false, "pass"}, {typeReply, statusOK, true, "drop"},
			{typeStream, statusContinue, false, "pass"}, {typeStream, statusContinue, true, "pass"}, {typeReply, statusOK, true, gone}}},
		"a download that is over before its answer": {procDownload, []came{
			{typeStream, statusContinue, false, "answer, pass"}, {typeStream, statusContinue, true, "pass"}, {typeReply, statusOK, true, "drop"},
			{typeStream, statusOK, true, "drop"}, {typeReply, statusOK, true, gone}}},
		"an upload that fails before its answer": {procUpload, []came{
			{typeStream, statusError, false, "answer, pass"}, {typeReply, statusOK, true, "drop"}, {typeStream, statusOK, true, "drop"}}},
		"a download that is refused after all": {procDownload, []came{
			{typeStream, statusContinue, false, "answer, pass"}, {typeReply, statusError, false, "pass"}, {typeStream, statusContinue, false, gone}}},
		"answered twice": {procDownload, []came{{typeReply, statusOK, true, "pass"}, {typeReply, statusOK, true, gone}}},
	} {
		var o outstanding
		o.sent(header(typeCall, tt.proc, 3))
		o.sent(header(typeStream, tt.proc, 4)) // data that goes out is no call
		if _, err := o.answered(tt.proc, typeReply, 4, statusOK, true); err == nil {
			t.Errorf("%s: a frame of a stream was taken for a call", name)
		}
		for i, f := range tt.frames {
			v, err := o.answered(tt.proc, f.kind, 3, f.status, f.empty)
			got := map[verdict]string{drop: "drop", pass: "pass", passAnswered: "answer, pass"}[v]
			if err != nil {
				got = err.Error()
			}
			if got != f.want {
				t.Errorf("%s, frame %d: %s, want %s", name, i, got, f.want)
			}
		}
	}
}
