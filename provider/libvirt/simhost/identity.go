package simhost

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// derivedUUID makes a UUID that is always the same for the same words.
func derivedUUID(words ...string) [16]byte {
	h := sha1.New()
	for _, w := range words {
		_, _ = fmt.Fprintf(h, "%d:%s", len(w), w) // a hash never fails to write
	}
	var u [16]byte
	copy(u[:], h.Sum(nil))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return u
}

// parseUUID reads a UUID with or without dashes.
func parseUUID(text string) (u [16]byte, ok bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(raw) != len(u) {
		return u, false
	}
	copy(u[:], raw)
	return u, true
}

// numberedMAC is the n-th MAC of an owner, in the range that QEMU uses.
func numberedMAC(owner [16]byte, n uint32) string {
	n += uint32(owner[0]) << 16
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
}

// canonicalMAC spells a MAC as guests and daemons do; what is none stays as it is.
func canonicalMAC(text string) string {
	if m, err := net.ParseMAC(text); err == nil {
		return m.String()
	}
	if len(text) == 12 {
		if n, err := strconv.ParseUint(text, 16, 48); err == nil {
			m := net.HardwareAddr{byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
			return m.String()
		}
	}
	return text
}

func vnetName(n int) string { return "vnet" + strconv.Itoa(n) }

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// simAddr is the address of an end of an in-memory connection.
type simAddr string

func (simAddr) Network() string  { return "sim" }
func (a simAddr) String() string { return string(a) }
