package libvirt

import (
	"math"
	"testing"
	"time"
)

func TestClock_learn(t *testing.T) {
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sec := func(n int) time.Time { return t0.Add(time.Duration(n) * time.Second) }
	// given is a lease that the host gave at t, by a clock that is ahead of ours.
	given := func(addr string, t time.Time, ahead time.Duration) lease {
		return lease{addr: addr, expiry: t.Add(ahead + time.Hour).Unix()}
	}
	old := given("10.0.0.1", sec(-500), 0)
	tests := []struct {
		name          string
		was, is       []lease
		before, after time.Time
		known         bool
		diff          time.Duration
	}{
		{"nothing renewed", []lease{old}, []lease{old}, sec(0), sec(10), false, 0},
		{"the first reading is compared with nothing", nil, []lease{old}, time.Time{}, sec(10), false, 0},
		{"renewed, clocks agree", []lease{old}, []lease{given("10.0.0.1", sec(5), 0)}, sec(0), sec(10), true, 0},
		{"renewed, the host is an hour ahead", []lease{old}, []lease{given("10.0.0.1", sec(5), time.Hour)}, sec(0), sec(10), true, time.Hour},
		{"renewed, the host is behind", []lease{old}, []lease{given("10.0.0.1", sec(5), -90*time.Second)}, sec(0), sec(10), true, -90 * time.Second},
		{"a new guest", []lease{old}, []lease{old, given("10.0.0.2", sec(5), 0)}, sec(0), sec(10), true, 0},
		{"for ever", []lease{old}, []lease{{addr: "10.0.0.3"}}, sec(0), sec(10), false, 0},
		{"a day off", []lease{old}, []lease{given("10.0.0.1", sec(5), 23*time.Hour)}, sec(0), sec(10), true, 23 * time.Hour},
		{"more than a day off is no clock", []lease{old}, []lease{given("10.0.0.1", sec(5), 25*time.Hour)}, sec(0), sec(10), false, 0},
		{"an absurd end", []lease{old}, []lease{{addr: "10.0.0.4", expiry: math.MaxInt64}}, sec(0), sec(10), false, 0},
		{"an end long ago", []lease{old}, []lease{{addr: "10.0.0.4", expiry: 1}}, sec(0), sec(10), false, 0},
		{"an end before all time", []lease{old}, []lease{{addr: "10.0.0.4", expiry: -5}}, sec(0), sec(10), false, 0},
		{"a good one beside an absurd one", []lease{old}, []lease{given("10.0.0.1", sec(5), time.Minute), {addr: "10.0.0.4", expiry: 1}}, sec(0), sec(10), true, time.Minute},
		{"the looks are too far apart", []lease{old}, []lease{given("10.0.0.1", sec(50), 0)}, sec(0), sec(100), false, 0},
	}
	for _, tt := range tests {
		c := clock{}.learn(tt.was, tt.is, time.Hour, tt.before, tt.after)
		if c.known != tt.known || (c.diff-tt.diff).Abs() > time.Second {
			t.Errorf("%s: %+v, want known %v, diff %s", tt.name, c, tt.known, tt.diff)
		}
		if c.known && (c.err < 5*time.Second || c.err > 6*time.Second) {
			t.Errorf("%s: right to %s, want half of ten seconds", tt.name, c.err)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]struct {
		dhcp  bool
		lease time.Duration
	}{
		`<network><ip address='10.0.0.1'><dhcp><range start='10.0.0.2' end='10.0.0.9'/></dhcp></ip></network>`:                                           {true, time.Hour},
		`<network><ip address='10.0.0.1'><dhcp><range start='10.0.0.2' end='10.0.0.9'><lease expiry='2' unit='hours'/></range></dhcp></ip></network>`:    {true, 2 * time.Hour},
		`<network><ip address='10.0.0.1'><dhcp><range start='10.0.0.2' end='10.0.0.9'><lease expiry='90' unit='seconds'/></range></dhcp></ip></network>`: {true, 90 * time.Second},
		`<network><ip address='10.0.0.1'><dhcp><range start='10.0.0.2' end='10.0.0.9'><lease expiry='5'/></range></dhcp></ip></network>`:                 {true, 5 * time.Minute},
		`<network><ip address='10.0.0.1'><dhcp><host mac='52:54:00:00:00:01' ip='10.0.0.5'/></dhcp></ip></network>`:                                      {true, time.Hour},
		`<network><ip address='10.0.0.1'/></network>`:                     {false, time.Hour},
		`<network><forward mode='bridge'/><bridge name='br0'/></network>`: {false, time.Hour},
	} {
		dhcp, l, err := parseNetwork(text)
		if err != nil || dhcp != want.dhcp || l != want.lease {
			t.Errorf("%s: %v %s %v, want %v %s", text, dhcp, l, err, want.dhcp, want.lease)
		}
	}
	if _, _, err := parseNetwork("<network"); err == nil {
		t.Error("bad XML was taken")
	}
}
