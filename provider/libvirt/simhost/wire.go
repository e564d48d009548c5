package simhost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Programs on the wire, all of version 1.
const (
	progRemote    = 0x20008086
	progQEMU      = 0x20008087
	progKeepalive = 0x6b656570
)

// Message types and statuses of the RPC header.
const (
	typeCall    = 0
	typeReply   = 1
	typeMessage = 2
	typeStream  = 3

	statusOK    = 0
	statusError = 1
)

// The two procedures of the keepalive program.
const (
	keepalivePing = 1
	keepalivePong = 2
)

const (
	headerLen = 28               // the length word and six words of header
	frameMax  = 32 * 1024 * 1024 // VIR_NET_MESSAGE_MAX
)

// header is the head of a frame, without its length.
type header struct {
	prog, vers, proc, typ uint32
	serial                uint32
	status                uint32
}

var errFrame = errors.New("frame length out of bounds")

// readFrame reads one frame. The payload's memory grows with what arrives, so
// that an announced length alone costs nothing.
func readFrame(r io.Reader) (header, []byte, error) {
	var raw [headerLen]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return header{}, nil, fmt.Errorf("read frame: %w", err)
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(raw[4*i:]) }
	n := word(0)
	if n < headerLen || n > frameMax {
		return header{}, nil, errFrame
	}
	h := header{prog: word(1), vers: word(2), proc: word(3), typ: word(4), serial: word(5), status: word(6)}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(n-headerLen)); err != nil {
		return header{}, nil, fmt.Errorf("read frame: %w", err)
	}
	return h, body.Bytes(), nil
}

// frame puts a frame together.
func frame(h header, payload []byte) []byte {
	b := make([]byte, 0, headerLen+len(payload))
	for _, w := range []uint32{
		uint32(headerLen + len(payload)),
		h.prog, h.vers, h.proc, h.typ, h.serial, h.status,
	} {
		b = be32(b, w)
	}
	return append(b, payload...)
}
