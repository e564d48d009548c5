package model

import (
	"strings"
	"time"
)

// Length writes a length of time that somebody has set: exactly, and without the
// zeros at its end, such as 1m and 1h30m.
func Length(d time.Duration) string {
	s := d.String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}
