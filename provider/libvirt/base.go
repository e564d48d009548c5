package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// A base image that is uploaded is used only with a proof beside it: a small
// volume that is made after all of the image has been read back and found to be
// what was meant. libvirt takes a short upload for a success, so without it a
// crash in the middle would leave half an image under a good name.
const (
	proofEnd  = ".ok"
	proofSize = 512
)

// baseFlight is the making of one base volume. Whoever needs it waits; it ends
// early when nobody does any more.
type baseFlight struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done

	mu      sync.Mutex
	waiting int
	tell    map[int]teller
	next    int
}

// ensureBase returns when the template's base volume is there and whole. worked
// says that it took more than a look.
func (h *Host) ensureBase(ctx context.Context, t model.Template, tell teller) (worked bool, err error) {
	name := t.Base.VolumeName()
	tell.step("look for base image " + name)
	have, err := step(ctx, h, call{Class: ClassRead, What: "look up the base image"}, func(v *golibvirt.Libvirt) (bool, error) {
		if _, err := findVolume(v, t.Storage, name); err != nil {
			if t.Base.File != "" && isCode(err, codeNoVolume) {
				return false, nil
			}
			return false, err
		}
		if t.Base.File == "" {
			return true, nil
		}
		_, err := findVolume(v, t.Storage, name+proofEnd)
		if isCode(err, codeNoVolume) {
			return false, nil
		}
		return err == nil, err
	})
	if have || err != nil {
		return false, err
	}
	return true, h.awaitBase(ctx, t, tell)
}

// awaitBase joins the flight of a base volume, or begins it.
func (h *Host) awaitBase(ctx context.Context, t model.Template, tell teller) error {
	key := t.Storage + "/" + t.Base.VolumeName()
	h.mu.Lock()
	f := h.bases[key]
	if f == nil {
		fctx, cancel := context.WithCancel(context.Background())
		f = &baseFlight{cancel: cancel, done: make(chan struct{}), tell: map[int]teller{}}
		h.bases[key] = f
		go func() {
			f.err = h.fillBase(fctx, t, f.progress)
			cancel()
			h.mu.Lock()
			if h.bases[key] == f {
				delete(h.bases, key)
			}
			h.mu.Unlock()
			close(f.done)
		}()
	}
	leave := f.join(tell)
	h.mu.Unlock()
	select {
	case <-f.done:
		leave()
		return f.err
	case <-ctx.Done():
		h.mu.Lock()
		if leave() == 0 && h.bases[key] == f { // the next one must not join what ends
			delete(h.bases, key)
			f.cancel()
		}
		h.mu.Unlock()
		return ctx.Err()
	}
}

// join adds one that waits; the function that it returns takes it away and says
// how many are left.
func (f *baseFlight) join(tell teller) (leave func() int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	f.waiting++
	f.tell[id] = tell
	return func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
		delete(f.tell, id)
		return f.waiting
	}
}

func (f *baseFlight) progress(p model.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tell {
		if t != nil {
			t(p)
		}
	}
}

// fillBase makes the base volume from the template's file. It may begin wherever
// an earlier run has stopped, and beside another process that does the same: the
// name is made of the content, so both write the same bytes.
func (h *Host) fillBase(ctx context.Context, t model.Template, tell teller) error {
	name, size := t.Base.VolumeName(), t.Base.Size
	if err := checkImage(t.Base, t.DiskMB); err != nil {
		return err
	}
	usize := uint64(size) //nolint:gosec // a size is not negative
	var none uint64
	// Raw whatever it is: the file is then as long as the image, to the byte, and
	// whoever rests on it says the format himself.
	text, err := volumeXML(name, "raw", &usize, &none, "", "")
	if err != nil {
		return err
	}
	tell.step("create base volume " + name)
	// The volume's name is the lock here: what an earlier caller has left half done
	// goes on until its last call, and must not act on what it saw before this.
	existed, err := step(ctx, h, call{Class: ClassWrite, What: "create the base volume", Domain: name}, func(v *golibvirt.Libvirt) (bool, error) {
		p, err := v.StoragePoolLookupByName(t.Storage)
		if err != nil {
			return false, err
		}
		if _, err := v.StorageVolLookupByName(p, name); !isCode(err, codeNoVolume) {
			return err == nil, err
		}
		// A proof of what is not there proves nothing about what comes.
		if err := deleteVolume(v, p, name+proofEnd); err != nil {
			return false, err
		}
		_, err = v.StorageVolCreateXML(p, text, 0)
		if isCode(err, codeVolumeExists) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	// One that was there may be whole, and running VMs may rest on it: look
	// before anything is written to it.
	if existed {
		if same, err := h.baseIs(ctx, t, tell); err != nil {
			return err
		} else if same {
			return h.proveBase(ctx, t)
		}
	}
	if err := h.sendBase(ctx, t, tell); err != nil {
		return err
	}
	same, err := h.baseIs(ctx, t, tell)
	if err != nil {
		return err
	}
	if !same {
		return provider.Transient(fmt.Sprintf("base volume %s/%s does not hold what was sent to it", t.Storage, name), nil)
	}
	return h.proveBase(ctx, t)
}

// sendBase uploads the file.
func (h *Host) sendBase(ctx context.Context, t model.Template, tell teller) error {
	file, err := os.Open(t.Base.File)
	if err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	defer func() { _ = file.Close() }() // it was read
	sum := sha256.New()
	what := "upload base image to " + t.Base.VolumeName()
	err = h.upload(ctx, t.Storage, t.Base.VolumeName(), io.TeeReader(file, sum), t.Base.Size,
		func(n int64) { tell.bytes(what, n, t.Base.Size) }, nil)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != t.Base.SHA256 {
		return permanent("base image %s has changed: its SHA-256 is %s, it was %s", t.Base.File, got, t.Base.SHA256)
	}
	return nil
}

// baseIs reads the volume back and says whether it is the image.
func (h *Host) baseIs(ctx context.Context, t model.Template, tell teller) (bool, error) {
	c := newCollector(false)
	what := "verify base image " + t.Base.VolumeName()
	c.tell = func(n int64) { tell.bytes(what, n, t.Base.Size) }
	if err := h.download(ctx, t.Storage, t.Base.VolumeName(), t.Base.Size+1, c); err != nil {
		return false, err
	}
	n, sum := c.got()
	if n > t.Base.Size {
		return false, conflict("base volume %s/%s is longer than the image %s (%d bytes): it is not virdeck's; remove it by hand",
			t.Storage, t.Base.VolumeName(), t.Base.File, t.Base.Size)
	}
	return n == t.Base.Size && sum == t.Base.SHA256, nil
}

func (h *Host) proveBase(ctx context.Context, t model.Template) error {
	size := uint64(proofSize)
	text, err := volumeXML(t.Base.VolumeName()+proofEnd, "raw", &size, nil, "", "")
	if err != nil {
		return err
	}
	_, err = step(ctx, h, call{Class: ClassWrite, What: "prove the base volume", Domain: t.Base.VolumeName()}, func(v *golibvirt.Libvirt) (struct{}, error) {
		p, err := v.StoragePoolLookupByName(t.Storage)
		if err != nil {
			return struct{}{}, err
		}
		if _, err = v.StorageVolCreateXML(p, text, 0); isCode(err, codeVolumeExists) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// checkImage looks at the local file before anything is made for it.
func checkImage(b model.BaseImage, diskMB int) error {
	f, err := os.Open(b.File)
	if err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	defer func() { _ = f.Close() }() // it was read
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	if st.Size() != b.Size {
		return permanent("base image %s has changed: it has %d bytes, it had %d", b.File, st.Size(), b.Size)
	}
	head := make([]byte, 32)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("base image: %w", err)
	}
	qcow2 := n == len(head) && string(head[:4]) == "QFI\xfb"
	guest := uint64(b.Size) //nolint:gosec // a size is not negative
	switch {
	case b.Format == "qcow2" && !qcow2:
		return permanent("base image %s is no qcow2 image", b.File)
	case b.Format == "raw" && qcow2:
		return permanent("base image %s is a qcow2 image, and not a raw one", b.File)
	case qcow2 && binary.BigEndian.Uint64(head[8:]) != 0:
		return permanent("base image %s rests on another file, which the host does not have", b.File)
	case qcow2:
		guest = binary.BigEndian.Uint64(head[24:])
	}
	if disk := uint64(diskMB) << 20; disk != 0 && disk < guest { //nolint:gosec // checked to be positive
		return permanent("disk of %d MiB is smaller than the base image %s (%d MiB)", diskMB, b.File, (guest+(1<<20-1))>>20)
	}
	return nil
}

func permanent(format string, args ...any) error {
	return &classed{fmt.Sprintf(format, args...), provider.ErrPermanent}
}

// deleteVolume counts "there is none" as done.
func deleteVolume(v *golibvirt.Libvirt, p golibvirt.StoragePool, name string) error {
	vol, err := v.StorageVolLookupByName(p, name)
	if err == nil {
		err = v.StorageVolDelete(vol, 0)
	}
	if isCode(err, codeNoVolume) {
		return nil
	}
	return err
}

// isCode is for errors that have not passed the link yet.
func isCode(err error, code int) bool {
	le, ok := errors.AsType[golibvirt.Error](err)
	return ok && int(le.Code) == code
}
