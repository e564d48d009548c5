package providertest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// An Option changes how Run runs.
type Option func(*options)

type options struct {
	in func(*testing.T, func(*testing.T))
}

// In makes each case, its rig included, run inside in: synctest.Test puts it
// into virtual time.
func In(in func(*testing.T, func(*testing.T))) Option { return func(o *options) { o.in = in } }

// Run holds an implementation to the contract: one subtest for each case, each
// with a rig of its own from rig. It returns what was seen. A case that the rig
// cannot play is skipped, and named in the record.
func Run(t *testing.T, rig func(t *testing.T) Rig, opts ...Option) *Record {
	t.Helper()
	o := options{in: func(t *testing.T, f func(*testing.T)) { f(t) }}
	for _, opt := range opts {
		opt(&o)
	}
	rec := &Record{}
	for _, tc := range slices.Concat(addressCases(), unaskedCases(), powerCases(), linkCases(), eventCases(), buildCases()) {
		t.Run(tc.name, func(t *testing.T) {
			var lacks error
			o.in(t, func(t *testing.T) {
				c := &suite{T: t, rig: rig(t), rec: rec}
				c.pat, c.host = c.rig.Patience(), c.rig.Host()
				c.await(c.pat.Recover, "the link is up", c.up)
				lacks = c.play(tc)
			})
			if lacks != nil {
				rec.Lacking = append(rec.Lacking, tc.name)
				t.Skip("this rig cannot ", lacks)
			}
		})
	}
	return rec
}

// testCase is one case.
type testCase struct {
	name string
	f    func(*suite)
}

// suite is a case under way.
type suite struct {
	*testing.T
	rig  Rig
	rec  *Record
	pat  Patience
	host provider.Host
}

// lacking carries "the rig cannot do that" out of a case.
type lacking struct{ err error }

// play runs a case; the error is what the rig cannot do.
func (c *suite) play(tc testCase) (lacks error) {
	defer func() {
		if r := recover(); r != nil {
			l, ok := r.(lacking)
			if !ok {
				panic(r)
			}
			lacks = l.err
		}
	}()
	tc.f(c)
	return nil
}

// do commands something; what the rig cannot do at all ends the case. Then it
// waits until no answer from before is shared any more.
func (c *suite) do(f Fault, g Guest) {
	c.Helper()
	err := c.rig.Do(f, g)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		panic(lacking{errors.New(f.String())})
	case err != nil:
		c.Fatalf("the rig could not %s (%s): %v", f, g, err)
	}
	c.pause(c.pat.Shared)
}

// await polls until ok, and fails the case when the limit passes first.
func (c *suite) await(limit time.Duration, what string, ok func() bool) {
	c.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			c.Fatalf("not within %s: %s; link %+v", limit, what, c.host.Link())
		}
		c.pause(c.pat.Interval)
	}
}

func (c *suite) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.Context().Done():
	}
}

func (c *suite) up() bool { return c.host.Link().State == model.LinkUp }

// generation is the link's present generation.
func (c *suite) generation() uint64 { return c.host.Link().Generation }

// ctx ends after d.
func (c *suite) ctx(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), d)
}

// situation says where an outcome was seen.
type situation struct {
	name    string
	passing bool
}

func steady(name string) situation  { return situation{name: name} }
func passing(name string) situation { return situation{name: name, passing: true} }

// get reads a guest with all sources, fresh, within the limit for a hung agent,
// records what the sources said, and holds the answer to the rules.
func (c *suite) get(s situation, g Guest) (model.Instance, error) {
	c.Helper()
	ctx, cancel := c.ctx(c.pat.Agent)
	defer cancel()
	return c.ask(ctx, s, g, provider.GetRequest{Sources: model.Sources(), Fresh: true})
}

func (c *suite) ask(ctx context.Context, s situation, g Guest, req provider.GetRequest) (model.Instance, error) {
	c.Helper()
	req.Domain = c.rig.Name(g)
	start := time.Now()
	in, err := c.host.Get(ctx, req)
	if end, ok := ctx.Deadline(); ok && time.Since(end) > c.pat.AtOnce {
		c.Errorf("%s: Get returned %s after its deadline", s.name, time.Since(end))
	}
	if err == nil && time.Since(start) > c.pat.Agent {
		c.Errorf("%s: Get took %s, more than %s", s.name, time.Since(start), c.pat.Agent)
	}
	c.rec.Add(s.name, s.passing, in.Outcomes)
	c.rules(s.name, g, in, err)
	return in, err
}

// list reads all.
func (c *suite) list() (provider.Listing, error) {
	ctx, cancel := c.ctx(c.pat.Call)
	defer cancel()
	return c.host.List(ctx)
}

// running waits until a guest has an address, and returns the answer.
func (c *suite) running(s situation, g Guest, limit time.Duration) model.Instance {
	c.Helper()
	var in model.Instance
	c.await(limit, "the "+g.String()+" has an address", func() bool {
		var err error
		in, err = c.get(s, g)
		return err == nil && in.State == model.InstanceRunning
	})
	return in
}

// says is what each source may say: alternatives such as "empty", "failed 86",
// by display order of the sources.
type says [3][]string

func word(o model.Outcome) string {
	s := Seen{Kind: o.Kind.String(), Code: o.Code}
	return s.String()[len(": : "):]
}

// expect checks an answer without error.
func (c *suite) expect(in model.Instance, err error, state model.InstanceState, want says) {
	c.Helper()
	if err != nil {
		c.Fatalf("Get: %v, want an instance", err)
	}
	if in.State != state {
		c.Errorf("state %v, want %v", in.State, state)
	}
	c.outcomes(in, want)
}

func (c *suite) outcomes(in model.Instance, want says) {
	c.Helper()
	got := map[model.Source]string{}
	for _, o := range in.Outcomes {
		got[o.Source] = word(o)
	}
	for _, src := range model.Sources() {
		if allowed := want[src]; !slices.Contains(allowed, got[src]) && (len(allowed) > 0 || got[src] != "") {
			c.Errorf("%v says %q, want one of %q", src, got[src], allowed)
		}
	}
}

// isTrue checks an address against the guest's own word, where it is known.
func (c *suite) isTrue(g Guest, a netip.Addr) {
	c.Helper()
	if truth := c.rig.Address(g); truth.IsValid() && a != truth {
		c.Errorf("the %s is at %v, and not at %v", g, truth, a)
	}
}
