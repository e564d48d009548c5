package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// readChunk is how much of the log is read at a time, from its end.
const readChunk = 64 << 10

// ReadAudit returns the newest n entries of an audit log, oldest first. It
// needs no owner: it may be read while another process writes. A log that is
// not there has no entries. It reads no more of the file than it needs, but a
// single line of any length.
func ReadAudit(path string, n int) ([]Entry, error) {
	if n <= 0 {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // only read
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", path, err)
	}
	var out []Entry // newest first
	var tail []byte // the end of a line that begins before it
	for at := fi.Size(); at > 0 && len(out) < n; {
		size := min(at, readChunk)
		at -= size
		buf := make([]byte, size, size+int64(len(tail)))
		if _, err := f.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("audit %s: %w", path, err)
		}
		lines := bytes.Split(append(buf, tail...), []byte{'\n'})
		if at > 0 {
			tail, lines = lines[0], lines[1:]
		}
		for _, line := range slices.Backward(lines) {
			if len(line) > 0 && len(out) < n {
				out = append(out, readEntry(line))
			}
		}
	}
	slices.Reverse(out)
	return out, nil
}

func readEntry(line []byte) Entry {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{Phase: PhaseUnreadable, Result: cut(string(line), maxResult)}
	}
	return e
}
