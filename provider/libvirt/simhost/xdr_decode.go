package simhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

var errShort = errors.New("xdr: the data ends too early")

// unmarshal reads *v, a pointer, from data and returns how many bytes it took.
// It never reads past data, and makes nothing larger than data can fill: every
// count is checked against what is left first.
func unmarshal(data []byte, v any) (int, error) {
	d := decoder{data: data}
	if err := d.value(reflect.ValueOf(v).Elem()); err != nil {
		return d.off, err
	}
	return d.off, nil
}

type decoder struct {
	data []byte
	off  int
}

func (d *decoder) left() int { return len(d.data) - d.off }

func (d *decoder) u32() (uint32, error) {
	if d.left() < 4 {
		return 0, errShort
	}
	v := binary.BigEndian.Uint32(d.data[d.off:])
	d.off += 4
	return v, nil
}

func (d *decoder) u64() (uint64, error) {
	if d.left() < 8 {
		return 0, errShort
	}
	v := binary.BigEndian.Uint64(d.data[d.off:])
	d.off += 8
	return v, nil
}

// opaque takes n bytes and their padding.
func (d *decoder) opaque(n int) ([]byte, error) {
	if n > d.left() {
		return nil, errShort
	}
	padded := (n + 3) &^ 3
	if padded > d.left() {
		return nil, errShort
	}
	b := d.data[d.off : d.off+n]
	d.off += padded
	return b, nil
}

// count reads the count of a slice whose elements take at least size bytes each.
func (d *decoder) count(size int) (int, error) {
	n, err := d.u32()
	if err != nil {
		return 0, err
	}
	if uint64(n)*uint64(size) > uint64(d.left()) {
		return 0, errShort
	}
	return int(n), nil
}

func (d *decoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		n, err := d.u32()
		if err != nil {
			return err
		}
		if v.OverflowInt(int64(int32(n))) {
			return fmt.Errorf("xdr: %d does not fit a %s", int32(n), v.Kind())
		}
		v.SetInt(int64(int32(n)))
		return nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		n, err := d.u32()
		if err != nil {
			return err
		}
		if v.OverflowUint(uint64(n)) {
			return fmt.Errorf("xdr: %d does not fit a %s", n, v.Kind())
		}
		v.SetUint(uint64(n))
		return nil
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		return d.wide(v)
	case reflect.Bool:
		n, err := d.u32()
		if err != nil {
			return err
		}
		v.SetBool(n != 0)
		return nil
	case reflect.String:
		b, err := d.counted()
		if err != nil {
			return err
		}
		v.SetString(string(b))
		return nil
	case reflect.Slice:
		return d.slice(v)
	case reflect.Array:
		return d.array(v)
	case reflect.Pointer:
		return d.pointer(v)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[libvirt.TypedParamValue]() {
			return d.param(v)
		}
		for _, field := range v.Fields() {
			if err := d.value(field); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("xdr: a %s cannot be decoded", v.Kind())
	}
}

func (d *decoder) wide(v reflect.Value) error {
	n, err := d.u64()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint64:
		v.SetUint(n)
	default:
		v.SetFloat(math.Float64frombits(n))
	}
	return nil
}

func (d *decoder) counted() ([]byte, error) {
	n, err := d.count(1)
	if err != nil {
		return nil, err
	}
	return d.opaque(n)
}

func (d *decoder) slice(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b, err := d.counted()
		if err != nil {
			return err
		}
		v.SetBytes(append([]byte{}, b...))
		return nil
	}
	n, err := d.elements(v.Type())
	if err != nil {
		return err
	}
	s := reflect.MakeSlice(v.Type(), 0, min(n, 64))
	for range n {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(e); err != nil {
			return err
		}
		s = reflect.Append(s, e)
	}
	v.Set(s)
	return nil
}

// elements reads how many elements a slice has. The library's Opt types are
// optional data: any word but zero says that one value follows, as with the XDR
// library of real daemons, and the client library does send 0x01000000.
func (d *decoder) elements(t reflect.Type) (int, error) {
	if strings.HasPrefix(t.Name(), "Opt") {
		n, err := d.u32()
		return int(min(n, 1)), err
	}
	return d.count(4) // everything but opaque data takes 4 bytes or more
}

func (d *decoder) array(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b, err := d.opaque(v.Len())
		if err != nil {
			return err
		}
		reflect.Copy(v, reflect.ValueOf(b))
		return nil
	}
	for i := range v.Len() {
		if err := d.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) pointer(v reflect.Value) error {
	n, err := d.u32()
	switch {
	case err != nil:
		return err
	case n == 0:
		v.SetZero()
		return nil
	}
	e := reflect.New(v.Type().Elem())
	if err := d.value(e.Elem()); err != nil {
		return err
	}
	v.Set(e)
	return nil
}

func (d *decoder) param(v reflect.Value) error {
	kind, err := d.u32()
	if err != nil {
		return err
	}
	var target reflect.Value
	switch kind {
	case paramInt, paramBool:
		target = reflect.New(reflect.TypeFor[int32]())
	case paramUint:
		target = reflect.New(reflect.TypeFor[uint32]())
	case paramLlong:
		target = reflect.New(reflect.TypeFor[int64]())
	case paramUllong:
		target = reflect.New(reflect.TypeFor[uint64]())
	case paramDouble:
		target = reflect.New(reflect.TypeFor[float64]())
	case paramString:
		target = reflect.New(reflect.TypeFor[string]())
	default:
		return fmt.Errorf("xdr: typed parameter of kind %d", kind)
	}
	if err := d.value(target.Elem()); err != nil {
		return err
	}
	v.Set(reflect.ValueOf(libvirt.TypedParamValue{D: kind, I: target.Elem().Interface()}))
	return nil
}
