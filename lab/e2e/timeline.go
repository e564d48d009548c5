package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"virdeck/model"
)

// Blind is the longest stretch without a sample that may still be called
// watched: what was not looked at was not seen to hold.
const Blind = 2 * time.Second

// Sample is one look at a running virdeck.
type Sample struct {
	// At is when the answer was there, by the watcher's clock.
	At time.Time
	// Status is nil when there was no answer; Err says why.
	Status *model.Status
	Err    error
}

// Timeline is what was seen of one virdeck, oldest first.
type Timeline struct {
	mu      sync.Mutex
	samples []Sample
	more    chan struct{} // closed and replaced by each Add
}

// NewTimeline is an empty timeline.
func NewTimeline() *Timeline { return &Timeline{more: make(chan struct{})} }

// Add appends a sample, which must not be older than the last.
func (t *Timeline) Add(s Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples = append(t.samples, s)
	close(t.more)
	t.more = make(chan struct{})
}

// Between returns the samples from the first instant to the second, both
// included.
func (t *Timeline) Between(from, to time.Time) []Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.samples), func(s Sample) bool {
		return s.At.Before(from) || s.At.After(to)
	})
}

// Last returns the newest sample that has a status, or nil.
func (t *Timeline) Last() *model.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range slices.Backward(t.samples) {
		if s.Status != nil {
			return s.Status
		}
	}
	return nil
}

// Always is nil when the condition held in every sample between the two
// instants and none of it went unwatched.
func (t *Timeline) Always(from, to time.Time, c Condition) error {
	last := from
	for _, s := range t.Between(from, to) {
		if s.Status == nil {
			continue
		}
		if gap := s.At.Sub(last); gap > Blind {
			return fmt.Errorf("not watched for %v before %s", gap.Round(time.Millisecond), since(from, s.At))
		}
		last = s.At
		if not := c(s.Status); not != "" {
			return fmt.Errorf("at %s: %s", since(from, s.At), not)
		}
	}
	if gap := to.Sub(last); gap > Blind {
		return fmt.Errorf("not watched for %v before %s", gap.Round(time.Millisecond), since(from, to))
	}
	return nil
}

// Ever returns when the condition first held between the two instants; the error
// says what stood against it last.
func (t *Timeline) Ever(from, to time.Time, c Condition) (time.Time, error) {
	not := "no sample"
	for _, s := range t.Between(from, to) {
		if s.Status == nil {
			not = s.Err.Error()
		} else if not = c(s.Status); not == "" {
			return s.At, nil
		}
	}
	return time.Time{}, fmt.Errorf("never between +0s and %s; last: %s", since(from, to), not)
}

// Await waits until the condition holds in a sample of from or later, and until
// from+within at most.
func (t *Timeline) Await(ctx context.Context, from time.Time, within time.Duration, c Condition) (time.Time, error) {
	// a sample that is on its way at the end still counts
	timer := time.NewTimer(time.Until(from.Add(within)) + time.Second)
	defer timer.Stop()
	for {
		t.mu.Lock()
		more := t.more
		t.mu.Unlock()
		at, err := t.Ever(from, from.Add(within), c)
		if err == nil {
			return at, nil
		}
		select {
		case <-more:
			if time.Now().After(from.Add(within + time.Second)) {
				return time.Time{}, err
			}
		case <-timer.C:
			return time.Time{}, err
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Story tells the changes of state, membership, marks and links in the timeline,
// one a line, with times from the given instant on: what a failed test prints.
func (t *Timeline) Story(from time.Time) string {
	t.mu.Lock()
	samples := slices.Clone(t.samples)
	t.mu.Unlock()
	var out strings.Builder
	seen := map[string]string{}
	tell := func(at time.Time, who, what string) {
		if seen[who] != what {
			seen[who] = what
			fmt.Fprintf(&out, "%9s  %-8s %s\n", since(from, at), who, what)
		}
	}
	for _, s := range samples {
		if s.Status == nil {
			tell(s.At, "status", s.Err.Error())
			continue
		}
		tell(s.At, "status", "answers")
		tell(s.At, "health", healthLine(&s.Status.Health))
		for i := range s.Status.Hosts {
			tell(s.At, s.Status.Hosts[i].Name, hostLine(&s.Status.Hosts[i]))
		}
		for i := range s.Status.Proxies {
			tell(s.At, s.Status.Proxies[i].Name, proxyLine(&s.Status.Proxies[i]))
		}
	}
	return out.String()
}

func healthLine(h *model.FleetStatus) string {
	line := "control " + h.Control
	if h.Brake {
		line += ", brake"
	}
	if h.Frozen {
		line += ", frozen: " + h.Why
	}
	return line
}

func hostLine(h *model.HostStatus) string {
	if h.Link == nil {
		return "no link"
	}
	line := fmt.Sprintf("link %s gen %d", h.Link.State, h.Link.Generation)
	if h.Link.Phase != "" {
		line += " " + h.Link.Phase
	}
	if h.Link.Error != "" {
		line += " (" + h.Link.Error + ")"
	}
	return line
}

func proxyLine(p *model.ProxyStatus) string {
	words := []string{p.State, "out"}
	if p.Rotation.In {
		words[1] = "in"
	}
	if p.IP != "" {
		words = append(words, p.IP)
	}
	words = append(words, p.Marks...)
	if p.Hold != nil {
		words = append(words, fmt.Sprintf("hold %d/%d", p.Hold.Polls, p.Hold.Of))
	}
	for _, s := range p.Sources {
		word := s.Source + "=" + s.Kind
		if s.Code != 0 {
			word += fmt.Sprintf("(%d)", s.Code)
		}
		words = append(words, word)
	}
	line := strings.Join(words, " ")
	if p.State != "ready" {
		line += ": " + p.Reason
	}
	return line
}

func since(from, at time.Time) string {
	return fmt.Sprintf("%+.1fs", at.Sub(from).Seconds())
}
