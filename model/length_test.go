package model

import (
	"testing"
	"time"
)

func TestLength(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 30 * time.Second: "30s", 10 * time.Minute: "10m", 24 * time.Hour: "24h",
		time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m", 1500 * time.Millisecond: "1.5s", 0: "0s",
	} {
		if got := Length(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
