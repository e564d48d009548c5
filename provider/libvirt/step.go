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

// The codes of objects other than domains that the making of a VM meets.
const (
	codeNoVolume     = 50
	codeNoMetadata   = 80
	codeVolumeExists = 90
)

// notAskedPause is how long a step waits before it asks for a slot again.
const notAskedPause = 200 * time.Millisecond

// step makes one call of a longer piece of work. A call that finds no slot, or
// its domain busy with an earlier one, waits for as long as its caller does: the
// work as a whole has no reason to begin anew because the host is busy.
//
// Writes are of one domain's lock, those on its volumes too: a call that an
// earlier caller gave up, and that is still under way on this link, is over
// before the next one begins.
func step[T any](ctx context.Context, h *Host, c call, fn func(*golibvirt.Libvirt) (T, error)) (T, error) {
	for {
		v, _, err := do(ctx, h.link, c, fn)
		if !errors.Is(err, provider.ErrNotAsked) {
			if err != nil {
				err = fmt.Errorf("%s: %w", c.What, err)
			}
			return v, err
		}
		t := time.NewTimer(notAskedPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return v, fmt.Errorf("%s: %w, waiting: %w", c.What, ctx.Err(), err)
		}
	}
}

// act is step without a result, of class write.
func (h *Host) act(ctx context.Context, what, domain string, fn func(*golibvirt.Libvirt) error) error {
	defer h.listing.invalidate() // whatever it did, older looks are void
	_, err := step(ctx, h, call{Class: ClassWrite, What: what, Domain: domain},
		func(v *golibvirt.Libvirt) (struct{}, error) { return struct{}{}, fn(v) })
	return err
}

// buildErr is the error of a lifecycle call. A domain that vanishes under the
// work is nothing to conclude from: the same call begins anew.
func (h *Host) buildErr(verb, domain string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case provider.Classify(err) == provider.ClassNotFound && !errors.Is(err, provider.ErrNotFound): // by its code
		err = provider.Transient("it vanished meanwhile", err)
	}
	return h.wrap(fmt.Errorf("%s of domain %s: %w", verb, domain, err))
}

// conflict is an error of that class.
func conflict(format string, args ...any) error {
	return &classed{fmt.Sprintf(format, args...), provider.ErrConflict}
}

// classed is an error of a class whose text does not repeat it.
type classed struct {
	text  string
	class error
}

func (c *classed) Error() string { return c.text }
func (c *classed) Unwrap() error { return c.class }

// alone waits until no other lifecycle call of this host is about the same VM.
func (h *Host) alone(ctx context.Context, key golibvirt.UUID) (release func(), err error) {
	for {
		h.mu.Lock()
		busy, is := h.busy[key]
		if !is {
			done := make(chan struct{})
			h.busy[key] = done
			h.mu.Unlock()
			return func() {
				h.mu.Lock()
				delete(h.busy, key)
				h.mu.Unlock()
				close(done)
			}, nil
		}
		h.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// teller calls progress, which may be nil.
type teller func(model.Progress)

func (t teller) step(text string) {
	if t != nil {
		t(model.Progress{Step: text})
	}
}

func (t teller) bytes(text string, done, total int64) {
	if t != nil {
		t(model.Progress{Step: text, Done: done, Total: total})
	}
}
