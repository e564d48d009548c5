package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// Class says how long a call may block in the daemon, and so which slots it may
// take: one slot is always kept for reads; an agent call may wait for ever, a
// write for the domain's job lock, up to 30 s (virdomainjob.c).
type Class = model.CallClass

// The classes by short names.
const (
	ClassRead  = model.CallRead
	ClassAgent = model.CallAgent
	ClassWrite = model.CallWrite
)

// call describes a call for locks, counters and the operator.
type call struct {
	Class  Class
	What   string // "list domains", "agent addresses"
	Domain string // empty if it is about the host
}

func (c call) text() string {
	if c.Domain == "" {
		return c.What
	}
	return c.What + " of " + c.Domain
}

// do runs one RPC on the link's present generation and returns its result.
//
// The caller's context ends the caller's wait and nothing else: the RPC keeps
// its slot, and its domain's lock, until the daemon answers or the generation
// dies. Errors: the context's own; provider.ErrNotAsked when no slot came free
// within the link's slot wait, the domain has such a call under way, or the same
// read of an earlier caller, who has left, does not return within the slot wait;
// provider.ErrLinkDown; else a *provider.CodedError from the host. The caller
// names the call in them.
func do[T any](ctx context.Context, l *Link, c call, fn func(*golibvirt.Libvirt) (T, error)) (T, uint64, error) {
	var zero T
	s, err := l.session(ctx)
	if err != nil {
		l.count(c.Class, unsent(err))
		return zero, 0, err
	}
	v, err := onSession(ctx, l, s, c, fn)
	return v, s.gen, err
}

func onSession[T any](ctx context.Context, l *Link, s *session, c call, fn func(*golibvirt.Libvirt) (T, error)) (T, error) {
	var zero T
	release, err := s.acquire(ctx, c, l.opts.SlotWait)
	if err != nil {
		l.count(c.Class, unsent(err))
		return zero, err
	}
	id, err := s.begin(c)
	if err != nil {
		release()
		l.count(c.Class, err)
		return zero, err
	}
	type result struct {
		v   T
		err error
	}
	ch := make(chan result, 1) // buffered: the caller may have left
	go func() {
		v, err := fn(s.lv)
		err = convert(s, err)
		s.end(id, c)
		release()
		ch <- result{v, err}
	}()
	select {
	case r := <-ch:
		l.count(c.Class, r.err)
		return r.v, r.err
	case <-ctx.Done():
		s.abandon(id)
		l.count(c.Class, ctx.Err())
		return zero, ctx.Err()
	case <-s.dead():
		l.count(c.Class, provider.ErrLinkDown)
		return zero, s.downErr()
	}
}

// unsent is how a call counts that never left: one whose caller's time was over
// before was not asked.
func unsent(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return provider.ErrNotAsked
	}
	return err
}

// convert is the one place where go-libvirt's errors become ours. What is
// neither an answer of the daemon nor "unknown procedure" is a failure of this
// generation's transport, whatever its type: interrupted, EINVAL, EPIPE, an
// undecodable reply. Such a generation cannot be trusted with another call.
func convert(s *session, err error) error {
	if err == nil {
		return nil
	}
	var le golibvirt.Error
	var own *classed
	switch {
	case errors.As(err, &own): // a verdict of ours on what the daemon said
		return err
	case errors.As(err, &le):
		return &provider.CodedError{Code: int(le.Code), Message: le.Message}
	case errors.Is(err, golibvirt.ErrUnsupported):
		return fmt.Errorf("%w: %w", provider.ErrUnsupported, err)
	}
	s.kill(err)
	return s.downErr()
}

// acquire takes the slots that a call needs, in a fixed order. Slow classes share
// all slots but one, so that a read always finds one; agent calls share half, so
// that writes find one too. A read first waits for its abandoned twin.
func (s *session) acquire(ctx context.Context, c call, patience time.Duration) (release func(), err error) {
	var need []chan struct{}
	switch c.Class {
	case ClassAgent:
		need = []chan struct{}{s.agent, s.slow, s.all}
	case ClassWrite:
		need = []chan struct{}{s.slow, s.all}
	case ClassRead:
		need = []chan struct{}{s.all}
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	for twin := s.twin(c); twin != nil; twin = s.twin(c) {
		select {
		case <-twin:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.dead():
			return nil, s.downErr()
		case <-t.C:
			return nil, fmt.Errorf("%w: the same call, %s, is under way for a caller who has left", provider.ErrNotAsked, c.text())
		}
	}
	held := 0
	release = func() {
		for i := held - 1; i >= 0; i-- {
			<-need[i]
		}
	}
	for _, ch := range need {
		select {
		case ch <- struct{}{}:
			held++
			continue
		default:
		}
		select {
		case ch <- struct{}{}:
			held++
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		case <-s.dead():
			release()
			return nil, s.downErr()
		case <-t.C:
			release()
			return nil, fmt.Errorf("%w: no free slot for a call of class %s within %s", provider.ErrNotAsked, c.Class, patience)
		}
	}
	return release, nil
}
