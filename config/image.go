package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// Hashes remembers the hashes of base images, so that reading a configuration
// again does not read gigabytes again. A file counts as the same while its path,
// length and time of change are; whoever uploads it hashes it once more and
// compares. The zero value is ready; a nil one remembers nothing. It is safe for
// concurrent use.
type Hashes struct {
	mu    sync.Mutex
	known map[imageID]string
}

type imageID struct {
	path string
	size int64
	mod  time.Time
}

func (h *Hashes) get(id imageID) (string, bool) {
	if h == nil {
		return "", false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	sum, ok := h.known[id]
	return sum, ok
}

func (h *Hashes) put(id imageID, sum string) {
	const most = 256 // images that are named in one life of the process
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= most {
		h.known = map[imageID]string{}
	}
	h.known[id] = sum
}

// image is what a base file shows of itself.
type image struct {
	size    int64 // bytes
	virtual int64 // bytes of the disk in it
	sha256  string
}

// image looks at a base file. declared is its hash if the configuration names it:
// then no more than its head is read.
func (s *Sources) image(path string, format Format, declared string) (image, error) {
	if s.Open == nil {
		return image{}, errors.New("cannot be read here")
	}
	f, err := s.Open(path)
	if err != nil {
		return image{}, fmt.Errorf("cannot be read: %w", cause(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return image{}, fmt.Errorf("cannot be read: %w", cause(err))
	case info.IsDir():
		return image{}, errors.New("is a directory; allowed: an image")
	case !info.Mode().IsRegular():
		return image{}, errors.New("is not a regular file; allowed: an image")
	case info.Size() == 0:
		return image{}, errors.New("is empty; allowed: an image")
	}
	head := make([]byte, 32)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return image{}, fmt.Errorf("cannot be read: %w", cause(err))
	}
	im := image{size: info.Size(), sha256: declared}
	if im.virtual, err = virtualSize(head[:n], info.Size(), format); err != nil || declared != "" {
		return im, err
	}
	im.sha256, err = s.hash(f, path, info, head[:n])
	return im, err
}

// hash returns the hash of a file whose head has been read.
func (s *Sources) hash(f fs.File, path string, before fs.FileInfo, head []byte) (string, error) {
	id := imageID{path, before.Size(), before.ModTime()}
	if sum, ok := s.Hashes.get(id); ok {
		return sum, nil
	}
	h := sha256.New()
	_, _ = h.Write(head) // a hash takes everything
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot be read: %w", cause(err))
	}
	after, err := f.Stat()
	if err != nil || after.Size() != id.size || !after.ModTime().Equal(id.mod) {
		return "", errors.New("changed while it was read; allowed: an image that is complete")
	}
	sum := hex.EncodeToString(h.Sum(nil))
	s.Hashes.put(id, sum)
	return sum, nil
}

// virtualSize holds the head of an image against its format, and returns the size
// of the disk in it. A wrong format makes a VM that does not boot, and no error
// anywhere else.
func virtualSize(head []byte, size int64, format Format) (int64, error) {
	qcow2 := len(head) >= 4 && string(head[:4]) == "QFI\xfb"
	switch {
	case format == FormatRaw && qcow2:
		return 0, errors.New("is a qcow2 image, and base_format is \"raw\"; allowed: base_format = \"qcow2\"")
	case format == FormatRaw:
		return size, nil
	case !qcow2:
		return 0, errors.New("is not a qcow2 image; allowed: one, or base_format = \"raw\"")
	case len(head) < 32:
		return 0, errors.New("is a qcow2 image that was cut; allowed: one that is complete")
	case binary.BigEndian.Uint64(head[8:]) != 0: // its backing file is not uploaded with it
		return 0, errors.New("is a qcow2 image on a backing file; allowed: one that stands alone")
	}
	v := binary.BigEndian.Uint64(head[24:])
	if v > 1<<60 {
		return 0, errors.New("is a qcow2 image with a senseless size; allowed: one that is complete")
	}
	return int64(v), nil
}
