package e2e

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

func status(state string, in bool) *model.Status {
	return &model.Status{
		Hosts: []model.HostStatus{{
			Name: "h1", Link: &model.LinkJSON{State: "up", Generation: 2},
			Events: []model.EventStatus{{At: time.Unix(50, 0), What: "link up"}},
		}, {Name: "external"}},
		Proxies: []model.ProxyStatus{{
			Name: "p", Host: "h1", State: state, Reason: "because", IP: "10.0.0.1", Marks: []string{},
			Rotation: model.RotationStatus{In: in, Reason: "probes"},
			Sources:  []model.SourceStatus{{Source: "agent", Kind: "failed", Code: 86, Message: "not up"}},
			Events:   []model.EventStatus{{At: time.Unix(60, 0), To: "ready", What: "ready", Evidence: []string{"2 passes"}}},
		}},
	}
}

// timeline has a sample each second from 0; nil stands for no answer.
func timeline(samples ...*model.Status) *Timeline {
	t := NewTimeline()
	for i, s := range samples {
		sample := Sample{At: time.Unix(int64(i), 0), Status: s}
		if s == nil {
			sample.Err = errors.New("no answer")
		}
		t.Add(sample)
	}
	return t
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestTimeline_Always(t *testing.T) {
	r, out := status("ready", true), status("demoted", false)
	for _, tt := range []struct {
		name     string
		timeline *Timeline
		from, to int64
		want     string
	}{
		{"holds", timeline(r, r, r, r), 0, 3, ""},
		{"a missing sample is no gap yet", timeline(r, nil, r, r), 0, 3, ""},
		{"one sample breaks it", timeline(r, r, out, r), 0, 3, `at +2.0s: p is out of the rotation (probes): demoted out 10.0.0.1 agent=failed(86): because`},
		{"before and after do not count", timeline(out, r, r, out), 1, 2, ""},
		{"blind in the middle", timeline(r, nil, nil, nil, r), 0, 4, "not watched for 4s before +4.0s"},
		{"blind at the end", timeline(r, r, nil, nil, nil), 0, 4, "not watched for 3s before +4.0s"},
		{"blind at the start", timeline(nil, nil, nil, r), 0, 3, "not watched for 3s before +3.0s"},
		{"never watched", timeline(), 0, 3, "not watched for 3s before +3.0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.timeline.Always(time.Unix(tt.from, 0), time.Unix(tt.to, 0), InRotation("p"))
			if message(err) != tt.want {
				t.Errorf("Always() = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestTimeline_Ever(t *testing.T) {
	tl := timeline(nil, status("unproven", false), status("ready", true), status("ready", true))
	if at, err := tl.Ever(time.Unix(0, 0), time.Unix(3, 0), Ready("p")); err != nil || at.Unix() != 2 {
		t.Errorf("Ever() = %v, %v", at, err)
	}
	for to, want := range map[int64]string{
		0: "never between +0s and +0.0s; last: no answer",
		1: "never between +0s and +1.0s; last: p is unproven out 10.0.0.1 agent=failed(86): because",
	} {
		if _, err := tl.Ever(time.Unix(0, 0), time.Unix(to, 0), Ready("p")); message(err) != want {
			t.Errorf("Ever() to %d = %v, want %s", to, err, want)
		}
	}
	if last := tl.Last(); last == nil || last.Proxies[0].State != "ready" {
		t.Errorf("Last() = %v", last)
	}
	if NewTimeline().Last() != nil {
		t.Error("an empty timeline has a last status")
	}
}

func TestTimeline_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl, start := NewTimeline(), time.Now()
		go func() {
			for i := range 20 {
				s := status("unproven", false)
				if i >= 10 {
					s = status("ready", true)
				}
				tl.Add(Sample{At: time.Now(), Status: s})
				<-time.After(200 * time.Millisecond)
			}
		}()
		at, err := tl.Await(t.Context(), start, 5*time.Second, Ready("p"))
		if err != nil || at.Sub(start) != 2*time.Second || time.Since(start) != 2*time.Second {
			t.Errorf("Await() = %v after %v, %v", at.Sub(start), time.Since(start), err)
		}
		again := time.Now()
		_, err = tl.Await(t.Context(), start, 1900*time.Millisecond, Ready("p"))
		if err == nil || time.Since(again) > time.Second {
			t.Errorf("Await() within 1.9 s = %v after %v", err, time.Since(again))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = tl.Await(ctx, time.Now(), time.Hour, State("p", "failed")); !errors.Is(err, context.Canceled) {
			t.Errorf("Await() = %v, want cancelled", err)
		}
		if _, err = tl.Await(t.Context(), time.Now(), 10*time.Second, State("p", "failed")); err == nil {
			t.Error("Await() saw a state that never was")
		}
	})
}

func TestConditions(t *testing.T) {
	held := status("ready", true)
	held.Proxies[0].Marks = []string{"held"}
	held.Proxies[0].Hold = &model.HoldStatus{Polls: 1, Of: 3}
	asked := time.Unix(70, 0)
	named := status("ready", true)
	named.Proxies[0].Sources = []model.SourceStatus{{Source: "agent", Kind: "addresses", Addresses: []string{"10.0.0.1"}, At: &asked}}
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	r := status("ready", true)
	for _, tt := range []struct {
		name string
		c    Condition
		s    *model.Status
		want string
	}{
		{"state", State("p", "ready", "unproven"), r, ""},
		{"state, another", State("p", "failed"), r, "p is ready in 10.0.0.1 agent=failed(86)"},
		{"state, no such proxy", State("q", "ready"), r, "there is no proxy q"},
		{"ready", Ready("p"), status("unproven", false), "p is unproven out 10.0.0.1 agent=failed(86): because"},
		{"out", OutOfRotation("p"), status("demoted", false), ""},
		{"out, but in", OutOfRotation("p"), r, "p is in the rotation: ready in 10.0.0.1 agent=failed(86)"},
		{"ip", IP("p", one), r, ""},
		{"ip, another", IP("p", two), r, `p has address "10.0.0.1", not 10.0.0.2`},
		{"held", Held("p", true), held, ""},
		{"held, not", Held("p", true), r, "p has mark held false, hold false, not true"},
		{"not held, but", Held("p", false), held, "p has mark held true, hold true, not false"},
		{"source", Source("p", "agent", "failed", "empty"), r, ""},
		{"source, other kind", Source("p", "agent", "empty"), r, "p agent says failed (86 not up), not empty"},
		{"source, none", Source("p", "arp", "empty"), r, "p has no source arp"},
		{"code", Code("p", "agent", 86), r, ""},
		{"code, another", Code("p", "agent", 1), r, "p agent says failed (86 not up), not failed with 1"},
		{"names", Names("p", "agent", one, asked), named, ""},
		{"names, another", Names("p", "agent", two, asked), named, "p agent says addresses [10.0.0.1] (0 ), not 10.0.0.2"},
		{"names, stale", Names("p", "agent", one, asked.Add(1)), named, "p agent has not been asked since"},
		{"reason", Reason("p", "BECAUSE"), r, ""},
		{"reason, another", Reason("p", "refused"), r, `p gives no reason with "refused": because / probes / `},
		{"link", Link("h1", "down"), r, "h1 has link up gen 2"},
		{"link, none", Link("external", "up"), r, "there is no host external with a link"},
		{"generation", Generation("h1", 2), r, ""},
		{"generation, another", Generation("h1", 1), r, "h1 has link up gen 2, not up gen 1"},
		{"no events", NoEvents("h1", time.Unix(61, 0)), r, ""},
		{"events of the proxy", NoEvents("h1", time.Unix(60, 0)), r, `p has the event "ready" ( to ready)`},
		{"events of the host", NoEvents("h1", time.Unix(50, 0)), r, `h1 has the event "link up" ( to )`},
		{"event", HasEvent("p", "ready", time.Unix(60, 0)), r, ""},
		{"event, older", HasEvent("p", "ready", time.Unix(61, 0)), r, "p has no event to ready with evidence"},
		{"all", All(Ready("p"), Link("h1", "up")), r, ""},
		{"all, one not", All(Ready("p"), Link("h1", "down")), r, "h1 has link up gen 2"},
	} {
		if got := tt.c(tt.s); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestTimeline_Story(t *testing.T) {
	got := timeline(nil, status("unproven", false), status("unproven", false), status("ready", true)).Story(time.Unix(1, 0))
	want := `    -1.0s  status   no answer
    +0.0s  status   answers
    +0.0s  health   control 
    +0.0s  h1       link up gen 2
    +0.0s  external no link
    +0.0s  p        unproven out 10.0.0.1 agent=failed(86): because
    +2.0s  p        ready in 10.0.0.1 agent=failed(86)
`
	if got != want {
		t.Errorf("Story():\n%s\nwant:\n%s", strings.ReplaceAll(got, " ", "·"), want)
	}
}
