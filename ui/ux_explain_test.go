package ui

import (
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// failing puts a proxy out on its last probe.
func failing(p *model.ProxyView, c model.Culprit, reason string) {
	p.State, p.Domain = model.StateDemoted, model.DomainRunning
	h := &p.Health
	h.InRotation, h.Demoted, h.Passes, h.Fails = false, true, 0, 3
	h.Last.Passed, h.Last.Culprit, h.Last.Reason, h.Last.Started = false, c, reason, ago(time.Second)
}

func without(p *model.ProxyView, st model.State, d model.DomainState) {
	p.State, p.Domain, p.IP = st, d, model.ProxyView{}.IP
	p.Health = model.Health{PassPercent: -1, Reason: "no address"} // as of one that is not probed
}

// The page says what is, what virdeck did, and which key helps, from what is
// known and not from how a reason is worded.
func TestUX10_explainTellsEachPlight(t *testing.T) {
	tests := []struct {
		name   string
		change func(*model.Snapshot, *model.ProxyView)
		want   []string
		never  []string
	}{
		{"shut off", func(_ *model.Snapshot, p *model.ProxyView) { without(p, model.StateDemoted, model.DomainShutoff) },
			[]string{"Its VM is shut off: nothing serves.", "virdeck starts no VM by itself", "S starts it, after a question", "it enters the rotation when its probes pass"},
			[]string{"by its own fault", "after 0 passes"}},
		{"crashed", func(_ *model.Snapshot, p *model.ProxyView) { without(p, model.StatePending, model.DomainCrashed) },
			[]string{"Its VM is crashed: nothing serves.", "S starts it, after a question"}, []string{"own fault"}},
		{"missing", func(_ *model.Snapshot, p *model.ProxyView) { without(p, model.StatePending, model.DomainMissing) },
			[]string{"No domain p-04 is defined on beelink.", "correct domain or host in the configuration", "enter on the host lists what it has"}, []string{"S starts it"}},
		{"missing and serving", func(_ *model.Snapshot, p *model.ProxyView) {
			p.Domain, p.State, p.Health.InRotation = model.DomainMissing, model.StateReady, true
		}, []string{"stays in the rotation: it may have moved"}, []string{"was taken out"}},
		{"credentials", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritCredentials, "whatever") },
			[]string{"refuses the user and the password that are configured", "fault of the configuration", "Nothing is restarted or replaced", "Correct user and password in the configuration"},
			[]string{"x restarts"}},
		{"credentials missing", func(_ *model.Snapshot, p *model.ProxyView) {
			failing(p, model.CulpritCredentials, "whatever")
			p.Spec.Creds = model.Credentials{}
		}, []string{"wants a user and a password, and none are configured"}, nil},
		{"hop", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritHop, "whatever") },
			[]string{"Nobody answers as a proxy at 10.0.0.24:3128", "It was taken out of the rotation; nothing was done to its VM", "x restarts the VM", "after 2 passes in a row"}, nil},
		{"hop of an external", func(_ *model.Snapshot, p *model.ProxyView) {
			failing(p, model.CulpritHop, "whatever")
			p.Spec.Backing, p.Spec.Address = model.BackingExternal, p.IP
		}, []string{"See to the service on port 3128"}, []string{"x restarts"}},
		{"hop of a paused one", func(_ *model.Snapshot, p *model.ProxyView) {
			failing(p, model.CulpritHop, "whatever")
			p.Domain = model.DomainPaused
		}, []string{"Its VM is paused: resume it on its host."}, []string{"x restarts"}},
		{"way out", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritWayOut, "whatever") },
			[]string{"its own way out is broken"}, nil},
		{"slow", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritSlow, "whatever") },
			[]string{"The proxy answers too late (2.0s)"}, nil},
		{"answer", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritAnswer, "whatever") },
			[]string{"Something answers at 10.0.0.24:3128, and not as this proxy does"}, nil},
		{"still in", func(_ *model.Snapshot, p *model.ProxyView) {
			failing(p, model.CulpritHop, "whatever")
			p.State, p.Health.InRotation, p.Health.Demoted, p.Health.Fails = model.StateReady, true, false, 1
		}, []string{"It is still in the rotation: 1 of 3 failures in a row that take it out."}, []string{"was taken out"}},
		{"target", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritTarget, "whatever") },
			[]string{"a fault of the target, not its own", "counts against no proxy"}, []string{"x restarts"}},
		{"us", func(_ *model.Snapshot, p *model.ProxyView) { failing(p, model.CulpritUs, "whatever") },
			[]string{"a fault of this machine, not its own"}, nil},
		{"proving again", func(_ *model.Snapshot, p *model.ProxyView) {
			failing(p, model.CulpritNone, "")
			p.Health.Last.Passed, p.Health.Passes = true, 1
		}, []string{"its probes pass again", "after 2 passes in a row, 1 so far"}, nil},
		{"link down", func(s *model.Snapshot, p *model.ProxyView) {
			p.State, p.Health.InRotation, p.Health.Last.Passed, p.Health.Last.Culprit = model.StateTransient, true, true, model.CulpritNone
			s.Hosts[0].Link.State, s.Hosts[0].Link.NextRetry = model.LinkDown, clock().Add(3*time.Second)
		}, []string{"The link of beelink is down", "c reconnects beelink now (down, dialled again in 2s)"}, []string{"x restarts"}},
		{"drained", func(_ *model.Snapshot, p *model.ProxyView) { p.State = model.StateDrained },
			[]string{"An operator took it out.", "D puts it back."}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, fleet(), 240, 50)
			c.eng.publish(func(s *model.Snapshot) { tt.change(s, s.Hosts[0].Proxies[3]) })
			c.pass(time.Second)
			c.press("e")
			s := strings.Join(strings.Fields(c.screen(t)), " ")
			for _, w := range tt.want {
				if !strings.Contains(s, w) {
					t.Errorf("no %q in\n%s", w, c.screen(t))
				}
			}
			for _, w := range tt.never {
				if strings.Contains(s, w) {
					t.Errorf("%q in\n%s", w, c.screen(t))
				}
			}
		})
	}
}

// A countdown is never above what it is.
func TestUX08_countdownIsNeverAboveWhatItIs(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	for _, tt := range []struct {
		now, in time.Duration
		want    string
	}{
		{0, 3 * time.Second, "3s"}, {0, 3900 * time.Millisecond, "3s"}, {750 * time.Millisecond, 3100 * time.Millisecond, "2s"},
		{0, 200 * time.Millisecond, "1s"}, {0, 0, ""}, {0, -time.Second, ""}, {0, 61 * time.Second, "1m"},
	} {
		c.now = clock().Add(tt.now)
		if got := c.until(clock().Add(tt.in)); got != tt.want {
			t.Errorf("%s before %s: %q, want %q", tt.now, tt.in, got, tt.want)
		}
	}
}
