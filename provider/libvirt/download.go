package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// stallLimit is how long a transfer may stand still. A daemon that is frozen
// neither takes nor gives a byte, and nothing else would end the wait.
const stallLimit = time.Minute

// newStall returns a timer, not yet running, that ends a transfer with words.
func newStall(cancel context.CancelCauseFunc, what string) *time.Timer {
	t := time.AfterFunc(stallLimit, func() { cancel(fmt.Errorf("%s for %s", what, stallLimit)) })
	t.Stop()
	return t
}

// download reads a volume from its beginning, at most limit bytes of it, on a
// connection of its own: go-libvirt cannot be made to stop reading a stream, and
// one that nobody reads would hold up every other call of that connection.
func (h *Host) download(ctx context.Context, pool, volume string, limit int64, sink *collector) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := newStall(cancel, "nothing came")
	defer stall.Stop()
	sink.beat = func() { stall.Reset(stallLimit) }
	err := h.link.apart(ctx, func(v *golibvirt.Libvirt) error {
		stall.Reset(stallLimit)
		vol, err := findVolume(v, pool, volume)
		if err != nil {
			return err
		}
		return v.StorageVolDownload(vol, sink, 0, uint64(limit), 0) //nolint:gosec // a limit is positive
	})
	if err != nil {
		return fmt.Errorf("read back volume %s/%s: %w", pool, volume, stalled(ctx, err))
	}
	return nil
}

// stalled says why a transfer was ended, when it was not its caller.
func stalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return err
}

// collector takes what a download brings: its hash, its length, and its bytes if
// they are wanted. It never fails: go-libvirt cannot bear that. It outlives a
// download that was given up, and so has a lock.
type collector struct {
	keep bool
	beat func() // set by download
	tell func(int64)

	mu   sync.Mutex
	n    int64
	data []byte
	sum  hash.Hash
}

func newCollector(keep bool) *collector { return &collector{keep: keep, sum: sha256.New()} }

// Write implements io.Writer.
func (c *collector) Write(p []byte) (int, error) {
	c.beat()
	c.mu.Lock()
	c.n += int64(len(p))
	n := c.n
	if c.keep {
		c.data = append(c.data, p...)
	}
	_, _ = c.sum.Write(p) // a hash never fails to write
	c.mu.Unlock()
	if c.tell != nil {
		c.tell(n)
	}
	return len(p), nil
}

// got returns length and SHA-256 of what came.
func (c *collector) got() (int64, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, hex.EncodeToString(c.sum.Sum(nil))
}

func findVolume(v *golibvirt.Libvirt, pool, volume string) (golibvirt.StorageVol, error) {
	p, err := v.StoragePoolLookupByName(pool)
	if err != nil {
		return golibvirt.StorageVol{}, err
	}
	return v.StorageVolLookupByName(p, volume)
}
