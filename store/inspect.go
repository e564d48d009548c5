package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The format of a bbolt file, as far as it is read here. All numbers are in the
// byte order of the machine.
const (
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	headerSize   = 16 // id 8, flags 2, count 2, overflow 4
	elementSize  = 16 // leaf: flags 4, pos 4, ksize 4, vsize 4; branch: pos 4, ksize 4, page 8
	metaSize     = 64 // magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8, high water 8, txid 8, checksum 8
	bucketHeader = 16 // root page 8, sequence 8; with root 0 a page follows
	minPageSize  = 1 << 10
	maxPageSize  = 1 << 24

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf element
)

// errNotBolt means: neither a bbolt file nor the remains of one.
var errNotBolt = errors.New("not a bbolt file")

// inspect reads a bbolt file of a given size without bbolt, trusting nothing in
// it, and returns its records. What it accepts bbolt can open, read and write
// without a fault: both meta pages are good, every page below the high water
// mark is either free or in use once, all elements lie within their pages, and
// keys are in order over the whole of each tree. It never panics.
func inspect(r io.ReaderAt, size int64) (records, error) {
	in := inspector{r: r, size: size, out: records{}}
	m, err := in.metas()
	if err != nil {
		return nil, err
	}
	in.pageSize, in.highWater = int64(m.pageSize), m.highWater
	if m.highWater < 4 || m.highWater > uint64(size/in.pageSize) {
		return nil, fmt.Errorf("%d pages of %d bytes in a file of %d bytes", m.highWater, m.pageSize, size)
	}
	in.used = make([]use, m.highWater)
	in.used[0], in.used[1] = inUse, inUse
	if err := in.freelist(m.freelist); err != nil {
		return nil, err
	}
	if err := in.tree(m.root, bounds{}, true, in.bucket); err != nil {
		return nil, err
	}
	for id, u := range in.used {
		if u == unseen {
			return nil, fmt.Errorf("page %d: neither in use nor free", id)
		}
	}
	return in.out, nil
}

type use byte

const (
	unseen use = iota
	inUse
	free
)

type inspector struct {
	r         io.ReaderAt
	size      int64
	pageSize  int64
	highWater uint64
	used      []use
	out       records
}

type metaPage struct {
	pageSize                        uint32
	root, freelist, highWater, txid uint64
}

// metas returns the newer of the two meta pages.
func (in *inspector) metas() (metaPage, error) {
	var buf [headerSize + metaSize]byte
	if n, err := in.r.ReadAt(buf[:], 0); n < len(buf) {
		if err != nil && !errors.Is(err, io.EOF) {
			return metaPage{}, fmt.Errorf("read: %w", err)
		}
		return metaPage{}, errNotBolt
	}
	if binary.NativeEndian.Uint32(buf[headerSize:]) != boltMagic {
		return metaPage{}, errNotBolt
	}
	m0, err := parseMeta(buf[:], 0)
	if err != nil {
		return metaPage{}, fmt.Errorf("meta page 0: %w", err)
	}
	if n, err := in.r.ReadAt(buf[:], int64(m0.pageSize)); n < len(buf) {
		return metaPage{}, fmt.Errorf("meta page 1: %w", err)
	}
	m1, err := parseMeta(buf[:], 1)
	if err != nil {
		return metaPage{}, fmt.Errorf("meta page 1: %w", err)
	}
	if m0.pageSize != m1.pageSize {
		return metaPage{}, fmt.Errorf("meta pages: page sizes %d and %d", m0.pageSize, m1.pageSize)
	}
	if m1.txid > m0.txid {
		return m1, nil
	}
	return m0, nil
}

func parseMeta(buf []byte, id uint64) (metaPage, error) {
	h, b := parseHeader(buf), buf[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8]) // a hash never fails
	m := metaPage{
		pageSize: binary.NativeEndian.Uint32(b[8:]), root: binary.NativeEndian.Uint64(b[16:]),
		freelist: binary.NativeEndian.Uint64(b[32:]), highWater: binary.NativeEndian.Uint64(b[40:]),
		txid: binary.NativeEndian.Uint64(b[48:]),
	}
	switch {
	case binary.NativeEndian.Uint32(b) != boltMagic:
		return m, errors.New("no magic number")
	case binary.NativeEndian.Uint64(b[56:]) != sum.Sum64():
		return m, errors.New("wrong checksum")
	case binary.NativeEndian.Uint32(b[4:]) != boltVersion:
		return m, fmt.Errorf("bbolt format %d", binary.NativeEndian.Uint32(b[4:]))
	case h.id != id || h.flags != flagMeta:
		return m, errors.New("wrong page header")
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0:
		return m, fmt.Errorf("page size %d", m.pageSize)
	}
	return m, nil
}

type header struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

func parseHeader(b []byte) header {
	return header{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint16(b[8:]),
		binary.NativeEndian.Uint16(b[10:]), binary.NativeEndian.Uint32(b[12:])}
}

// page reads a page with its overflow and marks it as in use.
func (in *inspector) page(id uint64) (header, []byte, error) {
	if id < 2 || id >= in.highWater {
		return header{}, nil, fmt.Errorf("page %d: there are %d", id, in.highWater)
	}
	buf := make([]byte, in.pageSize)
	if _, err := in.r.ReadAt(buf, int64(id)*in.pageSize); err != nil {
		return header{}, nil, fmt.Errorf("page %d: %w", id, err)
	}
	h := parseHeader(buf)
	if h.id != id {
		return h, nil, fmt.Errorf("page %d: says that it is page %d", id, h.id)
	}
	if uint64(h.overflow) >= in.highWater-id {
		return h, nil, fmt.Errorf("page %d: %d pages follow, and there are %d in all", id, h.overflow, in.highWater)
	}
	for i := id; i <= id+uint64(h.overflow); i++ {
		switch in.used[i] {
		case inUse:
			return h, nil, fmt.Errorf("page %d: in use twice", i)
		case free:
			return h, nil, fmt.Errorf("page %d: in use and free", i)
		case unseen:
			in.used[i] = inUse
		}
	}
	if h.overflow > 0 {
		more := make([]byte, int64(h.overflow)*in.pageSize)
		if _, err := in.r.ReadAt(more, int64(id+1)*in.pageSize); err != nil {
			return h, nil, fmt.Errorf("page %d: %w", id, err)
		}
		buf = append(buf, more...)
	}
	return h, buf, nil
}

func (in *inspector) freelist(id uint64) error {
	h, buf, err := in.page(id)
	if err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	if h.flags != flagFreelist {
		return fmt.Errorf("free list: page %d: is none (flags %x)", id, h.flags)
	}
	count, ids := uint64(h.count), buf[headerSize:]
	if count == 0xFFFF { // the number did not fit, and stands in the first place
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("free list: %d entries in %d bytes", count, len(ids))
	}
	for i := range count {
		p := binary.NativeEndian.Uint64(ids[8*i:])
		if p < 2 || p >= in.highWater || in.used[p] != unseen {
			return fmt.Errorf("free list: page %d: cannot be free", p)
		}
		in.used[p] = free
	}
	return nil
}

// bounds are the keys between which those of a page must be: lo included, hi
// not; nil is none.
type bounds struct{ lo, hi []byte }

type visit func(flags uint32, key, value []byte) error

// tree walks the pages under id. It ends, since no page is entered twice.
func (in *inspector) tree(id uint64, b bounds, root bool, leaf visit) error {
	h, buf, err := in.page(id)
	if err != nil {
		return err
	}
	switch {
	case h.flags == flagLeaf && (root || h.count > 0):
		err = leafElements(h.count, buf, b, leaf)
	case h.flags == flagBranch && h.count > 0:
		return in.branch(id, h.count, buf, b, leaf)
	default:
		err = fmt.Errorf("neither leaf nor branch (flags %x, %d elements)", h.flags, h.count)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (in *inspector) branch(id uint64, count uint16, buf []byte, b bounds, leaf visit) error {
	type child struct {
		key  []byte
		page uint64
	}
	children := make([]child, count)
	prev := b.lo
	for i := range children {
		at := headerSize + i*elementSize
		if at+elementSize > len(buf) {
			return fmt.Errorf("page %d: element %d: outside", id, i)
		}
		e := buf[at:]
		key, err := slice(buf, at, int(count), binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), 0)
		if err == nil {
			err = inOrder(prev, key, b.hi, i == 0)
		}
		if err != nil {
			return fmt.Errorf("page %d: element %d: %w", id, i, err)
		}
		children[i], prev = child{key, binary.NativeEndian.Uint64(e[8:])}, key
	}
	for i, c := range children {
		under := bounds{c.key, b.hi}
		if i+1 < len(children) {
			under.hi = children[i+1].key
		}
		if err := in.tree(c.page, under, false, leaf); err != nil {
			return err
		}
	}
	return nil
}

func leafElements(count uint16, buf []byte, b bounds, leaf visit) error {
	prev := b.lo
	for i := range int(count) {
		at := headerSize + i*elementSize
		if at+elementSize > len(buf) {
			return fmt.Errorf("element %d: outside", i)
		}
		e := buf[at:]
		ksize, vsize := binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		kv, err := slice(buf, at, int(count), binary.NativeEndian.Uint32(e[4:]), ksize, vsize)
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		key := kv[:ksize]
		if err := inOrder(prev, key, b.hi, i == 0); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if err := leaf(binary.NativeEndian.Uint32(e), key, kv[ksize:]); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		prev = key
	}
	return nil
}

// slice returns the key and the value of the element at an offset, of which pos
// is counted from there. They lie behind all elements.
func slice(buf []byte, at, count int, pos, ksize, vsize uint32) ([]byte, error) {
	start := int64(at) + int64(pos)
	end := start + int64(ksize) + int64(vsize)
	if start < int64(headerSize+count*elementSize) || end > int64(len(buf)) || ksize == 0 {
		return nil, errors.New("its bytes are outside of the page")
	}
	return buf[start:end:end], nil
}

func inOrder(prev, key, hi []byte, first bool) error {
	c := bytes.Compare(prev, key)
	if prev != nil && (c > 0 || c == 0 && !first) || hi != nil && bytes.Compare(key, hi) >= 0 {
		return errors.New("key is out of order")
	}
	return nil
}

// bucket is an element of the root: every one is a bucket.
func (in *inspector) bucket(flags uint32, key, value []byte) error {
	if flags != flagBucket || len(value) < bucketHeader {
		return fmt.Errorf("%.40q: is no bucket", key)
	}
	name := string(key)
	in.out[name] = map[string][]byte{}
	record := func(flags uint32, key, value []byte) error {
		if flags != 0 {
			return fmt.Errorf("%.40q: is no record (flags %x)", key, flags)
		}
		in.out.put(name, string(key), value)
		return nil
	}
	var err error
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		err = in.tree(root, bounds{}, true, record)
	} else if inline := value[bucketHeader:]; len(inline) < headerSize || parseHeader(inline).flags != flagLeaf {
		err = errors.New("no page")
	} else {
		err = leafElements(parseHeader(inline).count, inline, bounds{}, record)
	}
	if err != nil {
		return fmt.Errorf("bucket %.40q: %w", key, err)
	}
	return nil
}
