package logbuf

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of one record, so that a hostile text cannot make the ring large: at
// most maxAttrs attributes, and maxText bytes in each text.
const (
	maxAttrs = 32
	maxText  = 2048
)

// Handler is a slog.Handler that appends to a Ring. It never fails and never
// blocks on I/O.
type Handler struct {
	ring   *Ring
	level  slog.Leveler
	prefix string // of open groups, with the dot
	attrs  []Attr
	host   string
	proxy  string
}

var _ slog.Handler = (*Handler)(nil)

// NewHandler returns a handler that appends records of at least level to ring.
func NewHandler(ring *Ring, level slog.Leveler) *Handler {
	return &Handler{ring: ring, level: level}
}

// Fan returns a handler that gives every record to the ring first and then to
// next, so that the screen does not wait for a slow disk. Only next can fail.
func Fan(ring *Handler, next ...slog.Handler) slog.Handler {
	return slog.NewMultiHandler(append([]slog.Handler{ring}, next...)...)
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler. It returns nil.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	c := h.clone()
	r.Attrs(func(a slog.Attr) bool {
		c.add(c.prefix, a)
		return true
	})
	h.ring.Append(Record{
		At: r.Time, Level: r.Level, Message: bounded(r.Message),
		Host: c.host, Proxy: c.proxy, Attrs: c.attrs,
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := h.clone()
	for _, a := range attrs {
		c.add(c.prefix, a)
	}
	return c
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	c := h.clone()
	if name != "" {
		c.prefix += name + "."
	}
	return c
}

func (h *Handler) clone() *Handler {
	c := *h
	c.attrs = slices.Clone(h.attrs)
	return &c
}

func (h *Handler) add(prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			h.add(prefix, inner)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	text := bounded(valueText(v))
	switch prefix + a.Key {
	case "host":
		h.host = text
	case "proxy":
		h.proxy = text
	default:
		if len(h.attrs) < maxAttrs {
			h.attrs = append(h.attrs, Attr{Key: bounded(prefix + a.Key), Value: text})
		}
	}
}

func valueText(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		switch a := v.Any().(type) {
		case error:
			return errText(a)
		case []string: // evidence: one item after another
			return strings.Join(a, " · ")
		}
		return v.String()
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindString,
		slog.KindUint64, slog.KindGroup, slog.KindLogValuer:
		return v.String()
	}
	return v.String()
}

// errText survives an error whose method panics, as a typed nil does: a log
// line must not end the process.
func errText(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("!panic in Error(): %v", p)
		}
	}()
	return err.Error()
}

// bounded cuts a long text at a rune and says how much is missing.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	var b strings.Builder
	b.WriteString(s[:cut])
	fmt.Fprintf(&b, "… (%d bytes more)", len(s)-cut)
	return b.String()
}
