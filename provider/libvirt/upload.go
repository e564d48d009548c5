package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// Upload fills a volume from r, which must hold size bytes: a short or a long
// upload is reported as a success by the daemon, so the bytes are counted here.
//
// It uses a connection of its own, made for it and closed after it: stream
// packets take the daemon's request slots, and go-libvirt sends them in pieces of
// 4 MiB under the lock that every other call on that connection needs. progress,
// if not nil, is told of the bytes sent so far, from the uploading goroutine.
//
// Errors: the context's own; ErrLinkDown if no connection can be made or it dies;
// a transfer that stands still for a minute; else the host's. A failed upload leaves the volume with whatever has arrived.
func (h *Host) Upload(ctx context.Context, pool, volume string, r io.Reader, size int64, progress func(int64)) error {
	if err := h.upload(ctx, pool, volume, r, size, progress, nil); err != nil {
		return h.wrap(err)
	}
	return nil
}

// upload is Upload, with a last look at whether it may be, on the same connection.
func (h *Host) upload(ctx context.Context, pool, volume string, r io.Reader, size int64, progress func(int64), may func(*golibvirt.Libvirt) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := newStall(cancel, "nothing could be sent")
	defer stall.Stop()
	told := func(n int64) {
		stall.Reset(stallLimit)
		if progress != nil {
			progress(n)
		}
	}
	err := h.link.apart(ctx, func(v *golibvirt.Libvirt) error {
		stall.Reset(stallLimit)
		vol, err := findVolume(v, pool, volume)
		if err != nil {
			return err
		}
		if may != nil {
			if err := may(v); err != nil {
				return err
			}
		}
		c := &counter{r: io.LimitReader(r, size+1), told: told}
		if err := v.StorageVolUpload(vol, c, 0, uint64(size), 0); err != nil { //nolint:gosec // a size is not negative
			return errors.Join(c.err, err)
		}
		if n := c.n.Load(); n != size {
			return fmt.Errorf("%d bytes were there to send, %d were announced", n, size)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("upload to volume %s/%s: %w", pool, volume, stalled(ctx, err))
	}
	return nil
}

// counter counts what is read through it.
type counter struct {
	r    io.Reader
	n    atomic.Int64
	told func(int64)
	err  error // of r, but for its end
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	total := c.n.Add(int64(n))
	if n > 0 {
		c.told(total)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// maxApart is how many connections for transfers there are at a time: with the
// link's own and those that it drains, still fewer than the daemon's 20 workers.
const maxApart = 4

// apart runs fn on a connection that is nobody else's. The end of ctx, and that of
// the link, end it in every phase.
func (l *Link) apart(ctx context.Context, fn func(*golibvirt.Libvirt) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	closed := fmt.Errorf("%w: %w", provider.ErrLinkDown, errClosed)
	select {
	case l.transfers <- struct{}{}:
		defer func() { <-l.transfers }()
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return closed
	}
	s, err := l.dialOnce(ctx, l.opts.DialTimeout, false)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %s", provider.ErrLinkDown, err.Error()) // a dial's deadline is not ctx's
	}
	defer s.kill(errClosed)
	done := make(chan error, 1)
	go func() { done <- convert(s, fn(s.lv)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return closed
	case <-s.dead():
		return s.downErr()
	}
}
