package ui

import (
	"fmt"
	"time"
)

// age writes how long ago t was, in steps that grow, so that an old age costs no
// redrawing: 1s to 59s, 1m to 59m, 1h to 47h, then days. Empty for the zero time.
func age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t))
}

// span writes a length of time in the same steps. A negative one, from clocks
// that differ, is 0s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d/time.Hour))
	default:
		return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
	}
}

// took writes how long something took: three figures at most.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return span(d)
	}
}

// offset writes a clock difference with its sign.
func offset(d time.Duration) string {
	abs := d.Abs()
	switch {
	case abs < time.Minute:
		return fmt.Sprintf("%+.1fs", d.Seconds())
	case d < 0:
		return "-" + span(abs)
	default:
		return "+" + span(abs)
	}
}

// until writes how long it is till t, never more than it is and never 0s; empty
// if t is zero or past. While the view is paused, so is the countdown.
func (m *Model) until(t time.Time) string {
	now := m.at
	if m.pausedAt.IsZero() {
		now = m.opts.Now() // m.at is a whole second, and up to one too early
	}
	if t.IsZero() || !t.After(now) {
		return ""
	}
	return span(max(t.Sub(now), time.Second))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
