package providertest

import (
	"context"
	"errors"
	"slices"

	"virdeck/model"
	"virdeck/provider"
)

// rules holds any answer of Get to what is true of every one.
func (c *suite) rules(where string, g Guest, in model.Instance, err error) {
	c.Helper()
	bad := func(format string, args ...any) {
		c.Helper()
		c.Errorf(where+": "+format, args...)
	}
	own := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if class := provider.Classify(err); err != nil && !own && class != provider.ClassTransient && class != provider.ClassNotFound {
		bad("a read gave an error of class %v: %v", class, err)
	}
	if err != nil && (in.State == model.InstanceRunning || in.State == model.InstanceProvisioning || in.Address.IsValid()) {
		bad("state %v and address %v beside the error %v", in.State, in.Address, err)
	}
	if errors.Is(err, provider.ErrNotFound) && in.Domain != model.DomainMissing {
		bad("not found, and the domain is %v", in.Domain)
	}
	if in.Name != c.rig.Name(g) {
		bad("asked for %q, answered about %q", c.rig.Name(g), in.Name)
	}
	var empty, notAsked bool
	last := model.Source(-1)
	for _, o := range in.Outcomes {
		if o.Source <= last {
			bad("source %v after source %v", o.Source, last)
		}
		last = o.Source
		empty = empty || o.Kind == model.OutcomeEmpty
		notAsked = notAsked || o.Kind == model.OutcomeNotAsked
		c.outcomeRules(where, o)
	}
	switch in.State {
	case model.InstanceRunning:
		i := slices.IndexFunc(in.Outcomes, func(o model.Outcome) bool { return o.Source == in.Won })
		if i < 0 || !slices.Contains(in.Outcomes[i].Addresses, in.Address) || !slices.Contains(in.Candidates, in.Address) {
			bad("address %v is not what %v said, or no candidate", in.Address, in.Won)
		}
		c.isTrue(g, in.Address)
	case model.InstanceProvisioning:
		if in.Address.IsValid() || !empty || notAsked {
			bad("provisioning with address %v; a source answered with nothing: %v; one was not asked: %v", in.Address, empty, notAsked)
		}
	case model.InstanceStopped:
		if in.Incarnation != "" || in.Address.IsValid() {
			bad("stopped, with incarnation %q and address %v", in.Incarnation, in.Address)
		}
	case model.InstancePaused, model.InstanceUnknown:
		if in.Address.IsValid() {
			bad("state %v with address %v", in.State, in.Address)
		}
	}
	if err == nil && in.State != model.InstanceStopped && in.Incarnation == "" {
		bad("state %v without an incarnation", in.State)
	}
	if err == nil && (in.State == model.InstanceUnknown || in.Generation == 0 || in.UUID == "" || in.At.IsZero()) {
		bad("no error, and state %v, generation %d, UUID %q, at %v", in.State, in.Generation, in.UUID, in.At)
	}
}

func (c *suite) outcomeRules(where string, o model.Outcome) {
	c.Helper()
	switch o.Kind {
	case model.OutcomeAddresses:
		for _, a := range o.Addresses {
			if !a.IsValid() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
				c.Errorf("%s: %v names %v, which nobody can use", where, o.Source, a)
			}
		}
		if len(o.Addresses) == 0 {
			c.Errorf("%s: %v names addresses, and none", where, o.Source)
		}
		return
	case model.OutcomeFailed, model.OutcomeNotAsked, model.OutcomeNotApplicable:
		if o.Message == "" {
			c.Errorf("%s: %v is %v and does not say why", where, o.Source, o.Kind)
		}
	case model.OutcomeEmpty:
	case model.OutcomeNone:
		c.Errorf("%s: %v is listed, and has no outcome", where, o.Source)
	}
	if len(o.Addresses) > 0 {
		c.Errorf("%s: %v is %v with addresses %v", where, o.Source, o.Kind, o.Addresses)
	}
}
