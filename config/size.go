package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Size is an amount of memory or disk in MiB. In the file it is a text such as
// "512MiB" or "1.5GiB", or a whole number of MiB.
type Size int

// maxSize is far beyond any disk, and does not overflow in bytes.
const maxSize = 1 << 40

// sizes are the units in MiB. One letter is what qemu-img takes it for.
func sizes() map[string]float64 {
	const gib, tib = 1 << 10, 1 << 20
	return map[string]float64{"MiB": 1, "GiB": gib, "TiB": tib, "M": 1, "G": gib, "T": tib}
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)$`)

// String is the size in the largest unit that gives a whole number.
func (s Size) String() string {
	switch {
	case s != 0 && s%(1<<20) == 0:
		return fmt.Sprintf("%dTiB", int(s)>>20)
	case s != 0 && s%(1<<10) == 0:
		return fmt.Sprintf("%dGiB", int(s)>>10)
	}
	return fmt.Sprintf("%dMiB", int(s))
}

// parseSize reads a size; the error says what is wrong and what is allowed.
func parseSize(text string) (Size, error) {
	const allowed = `allowed: whole MiB with a unit, such as "512MiB", "1.5GiB" or "1TiB"`
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; %s", clip(text), allowed)
	}
	unit, ok := sizes()[m[2]]
	if !ok {
		hint := ""
		switch m[2] {
		case "MB", "GB", "TB", "mb", "gb", "tb", "m", "g", "t", "mib", "gib", "tib":
			hint = fmt.Sprintf("; did you mean %q?", m[1]+string(m[2][0]&^0x20)+"iB")
		case "":
			hint = fmt.Sprintf("; did you mean %q?", m[1]+"MiB")
		}
		return 0, fmt.Errorf("%q is not a size%s %s", text, orSemicolon(hint), allowed)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n*unit > maxSize || n*unit != math.Trunc(n*unit) {
		return 0, fmt.Errorf("%q is not a whole number of MiB, or too large; %s", text, allowed)
	}
	return Size(n * unit), nil
}

func (d *document) size(path keyPath, in any, out interface{ SetInt(int64) }) {
	switch v := in.(type) {
	case int64:
		out.SetInt(max(-1, min(v, maxSize))) // out of range is for the checks to say
	case string:
		s, err := parseSize(v)
		if err != nil {
			d.problem(path, "%v", err)
			return
		}
		out.SetInt(int64(s))
	default:
		d.problem(path, "want %s, not %s", wanted(sizeType), kindOf(in))
	}
}
