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

// shutdownGrace is how long a guest may take to shut down when asked before it
// is switched off.
const shutdownGrace = 10 * time.Second

// Start implements provider.Host. A domain that runs already is a success.
func (h *Host) Start(ctx context.Context, domain string) error {
	in, dom, err := h.find(ctx, domain, time.Now())
	if err != nil {
		return h.writeErr("start", domain, err)
	}
	if in.State != model.InstanceStopped {
		return nil
	}
	err = h.write(ctx, "start", dom, func(v *golibvirt.Libvirt) error { return v.DomainCreate(dom) })
	if code(err) == provider.CodeOperationInvalid {
		err = nil // somebody else was quicker
	}
	return h.writeErr("start", domain, err)
}

// Stop implements provider.Host: it asks the guest to shut down, and switches
// the domain off if it still runs after a grace of 10 s. The domain stays
// defined. A domain that does not run is a success.
func (h *Host) Stop(ctx context.Context, domain string) error {
	return h.writeErr("stop", domain, h.stop(ctx, domain))
}

// Restart implements provider.Host: Stop, then Start.
func (h *Host) Restart(ctx context.Context, domain string) error {
	if err := h.stop(ctx, domain); err != nil {
		return h.writeErr("restart", domain, err)
	}
	return h.Start(ctx, domain)
}

func (h *Host) stop(ctx context.Context, domain string) error {
	in, dom, err := h.find(ctx, domain, time.Now())
	if err != nil || in.State == model.InstanceStopped {
		return err
	}
	err = h.write(ctx, "shut down", dom, func(v *golibvirt.Libvirt) error { return v.DomainShutdownFlags(dom, 0) })
	switch {
	case code(err) == provider.CodeOperationInvalid: // paused, or gone by itself
	case err != nil && provider.Classify(err) == provider.ClassTransient && code(err) == 0:
		return err // the link or a slot: nothing was asked of the guest
	case err == nil:
		off, err := h.waitOff(ctx, domain)
		if off || err != nil {
			return err
		}
	}
	err = h.write(ctx, "switch off", dom, func(v *golibvirt.Libvirt) error { return v.DomainDestroyFlags(dom, 0) })
	if code(err) == provider.CodeOperationInvalid {
		return nil
	}
	return err
}

// waitOff reports whether the domain stopped within the grace.
func (h *Host) waitOff(ctx context.Context, domain string) (bool, error) {
	end := time.NewTimer(shutdownGrace)
	defer end.Stop()
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-end.C:
			return false, nil
		case <-t.C:
		}
		in, _, err := h.find(ctx, domain, time.Now())
		if err != nil {
			return false, err
		}
		if in.State == model.InstanceStopped {
			return true, nil
		}
	}
}

func (h *Host) write(ctx context.Context, what string, dom golibvirt.Domain, fn func(*golibvirt.Libvirt) error) error {
	defer h.listing.invalidate() // whatever it did, older looks are void
	_, _, err := do(ctx, h.link, call{Class: ClassWrite, What: what, Domain: dom.Name},
		func(v *golibvirt.Libvirt) (struct{}, error) { return struct{}{}, fn(v) })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// code returns libvirt's code in err, or 0.
func code(err error) int {
	if ce, ok := errors.AsType[*provider.CodedError](err); ok {
		return ce.Code
	}
	return 0
}

func (h *Host) writeErr(verb, domain string, err error) error {
	if err == nil {
		return nil
	}
	return h.wrap(fmt.Errorf("%s of domain %s: %w", verb, domain, err))
}
