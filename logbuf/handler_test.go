package logbuf

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type secret string

func (secret) LogValue() slog.Value { return slog.StringValue("***") }

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestHandlerExtractsObjectAndAttrs(t *testing.T) {
	ring := NewRing(8)
	log := slog.New(NewHandler(ring, slog.LevelInfo))
	log.With("host", "beelink").WithGroup("call").With("host", "inner").Warn("agent not answering",
		"proxy", "in a group", "took", 3*time.Second, "err", errors.New("boom"), "pw", secret("x"),
		slog.Group("g", "n", 1), slog.Group("", "flat", true))
	log.Info("two", "proxy", "p-02", "host", "kvm2")
	log.Debug("not this one")

	got := ring.After(0, 9)
	if len(got) != 2 {
		t.Fatalf("%d records, want 2", len(got))
	}
	want := []Attr{{"call.host", "inner"}, {"call.proxy", "in a group"}, {"call.took", "3s"},
		{"call.err", "boom"}, {"call.pw", "***"}, {"call.g.n", "1"}, {"call.flat", "true"}}
	if got[0].Host != "beelink" || got[0].Proxy != "" || !reflect.DeepEqual(got[0].Attrs, want) {
		t.Errorf("first = %+v", got[0])
	}
	if got[0].Level != slog.LevelWarn || got[0].Message != "agent not answering" || got[0].At.IsZero() {
		t.Errorf("first = %+v", got[0])
	}
	if got[1].Host != "kvm2" || got[1].Proxy != "p-02" || len(got[1].Attrs) != 0 {
		t.Errorf("second = %+v", got[1])
	}
}

func TestHandlerDoesNotShareAttrs(t *testing.T) {
	ring := NewRing(8)
	base := slog.New(NewHandler(ring, slog.LevelInfo)).With("a", 1)
	base.With("b", 2).Info("one")
	base.With("c", 3).Info("two")
	got := ring.After(0, 9)
	if !reflect.DeepEqual(got[0].Attrs, []Attr{{"a", "1"}, {"b", "2"}}) ||
		!reflect.DeepEqual(got[1].Attrs, []Attr{{"a", "1"}, {"c", "3"}}) {
		t.Errorf("attrs mixed: %+v", got)
	}
}

func TestHandlerIsBounded(t *testing.T) {
	ring := NewRing(2)
	args := []any{}
	for range 100 {
		args = append(args, "k", strings.Repeat("ü", 5000))
	}
	slog.New(NewHandler(ring, slog.LevelInfo)).Info(strings.Repeat("x", 1<<20), args...)
	rec := ring.After(0, 1)[0]
	if len(rec.Message) > maxText+40 || !strings.HasSuffix(rec.Message, "bytes more)") {
		t.Errorf("message of %d bytes", len(rec.Message))
	}
	if len(rec.Attrs) != maxAttrs {
		t.Errorf("%d attributes", len(rec.Attrs))
	}
	if v := rec.Attrs[0].Value; len(v) > maxText+40 || !utf8.ValidString(v) {
		t.Errorf("value of %d bytes, valid %v", len(v), utf8.ValidString(v))
	}
}

func TestHandlerSurvivesBrokenError(t *testing.T) {
	ring := NewRing(2)
	var err *brokenError
	slog.New(NewHandler(ring, slog.LevelInfo)).Info("m", "err", err)
	if v := ring.After(0, 1)[0].Attrs[0].Value; !strings.HasPrefix(v, "!panic in Error()") {
		t.Errorf("value %q", v)
	}
}

// The ring gets its record first, and also when the other handler fails; levels
// stay apart.
func TestFan(t *testing.T) {
	ring := NewRing(8)
	var buf bytes.Buffer
	log := slog.New(Fan(NewHandler(ring, slog.LevelInfo),
		slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelWarn}),
		slog.NewTextHandler(failing{}, nil)))
	log.With("host", "kvm2").Warn("link down")
	log.Info("quiet")
	if s := ring.Stats(); s.Len != 2 {
		t.Errorf("ring has %d records, want 2", s.Len)
	}
	if ring.After(0, 1)[0].Host != "kvm2" {
		t.Error("attributes of With did not reach the ring")
	}
	if !strings.Contains(buf.String(), `msg="link down" host=kvm2`) || strings.Contains(buf.String(), "quiet") {
		t.Errorf("file has %q", buf.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }
