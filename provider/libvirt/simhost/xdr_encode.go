package simhost

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	libvirt "github.com/digitalocean/go-libvirt"
)

// The XDR codec (RFC 4506) for the client library's argument and result
// structs: fields in order; integers up to 32 bits, and bools, in 4 bytes,
// 64-bit ones in 8; strings and byte slices with a length and padding; byte
// arrays as fixed opaque data, other arrays element by element; slices with a
// count (the library's Opt types, whose count is 0 or 1, included); pointers as
// optional data; typed parameters as the union they are.

// marshal returns the XDR form of v.
func marshal(v any) ([]byte, error) {
	return encodeValue(nil, reflect.ValueOf(v))
}

func encodeValue(buf []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return be32(buf, uint32(int32(v.Int()))), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return be32(buf, uint32(v.Uint())), nil
	case reflect.Int64:
		return be64(buf, uint64(v.Int())), nil
	case reflect.Uint64:
		return be64(buf, v.Uint()), nil
	case reflect.Float64:
		return be64(buf, math.Float64bits(v.Float())), nil
	case reflect.Bool:
		if v.Bool() {
			return be32(buf, 1), nil
		}
		return be32(buf, 0), nil
	case reflect.String:
		return encodeOpaque(be32(buf, uint32(v.Len())), v.String()), nil
	case reflect.Slice:
		return encodeSlice(buf, v)
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return encodeBytes(buf, v), nil
		}
		return encodeElems(buf, v)
	case reflect.Pointer:
		if v.IsNil() {
			return be32(buf, 0), nil
		}
		return encodeValue(be32(buf, 1), v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[libvirt.TypedParamValue]() {
			return encodeParam(buf, v.Interface().(libvirt.TypedParamValue))
		}
		return encodeFields(buf, v)
	default:
		return nil, fmt.Errorf("xdr: a %s cannot be encoded", v.Kind())
	}
}

func encodeFields(buf []byte, v reflect.Value) ([]byte, error) {
	var err error
	n := v.NumField() // not Fields, whose iterator describes each field anew
	for i := range n {
		if buf, err = encodeValue(buf, v.Field(i)); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func encodeSlice(buf []byte, v reflect.Value) ([]byte, error) {
	buf = be32(buf, uint32(v.Len()))
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return encodeBytes(buf, v), nil
	}
	return encodeElems(buf, v)
}

func encodeElems(buf []byte, v reflect.Value) ([]byte, error) {
	var err error
	for i := range v.Len() {
		if buf, err = encodeValue(buf, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func encodeBytes(buf []byte, v reflect.Value) []byte {
	n := v.Len()
	buf = slices.Grow(buf, n+3)
	reflect.Copy(reflect.ValueOf(buf[len(buf):len(buf)+n]), v)
	return pad(buf[:len(buf)+n], n)
}

func encodeOpaque(buf []byte, s string) []byte { return pad(append(buf, s...), len(s)) }

// encodeParam writes the union of a typed parameter: its kind, then the value.
func encodeParam(buf []byte, p libvirt.TypedParamValue) ([]byte, error) {
	ok := false
	switch p.D {
	case paramInt, paramBool:
		_, ok = p.I.(int32)
	case paramUint:
		_, ok = p.I.(uint32)
	case paramLlong:
		_, ok = p.I.(int64)
	case paramUllong:
		_, ok = p.I.(uint64)
	case paramDouble:
		_, ok = p.I.(float64)
	case paramString:
		_, ok = p.I.(string)
	}
	if !ok {
		return nil, fmt.Errorf("xdr: typed parameter of kind %d with a %T", p.D, p.I)
	}
	return encodeValue(be32(buf, p.D), reflect.ValueOf(p.I))
}

// The kinds of typed parameters (virTypedParameterType).
const (
	paramInt    = 1
	paramUint   = 2
	paramLlong  = 3
	paramUllong = 4
	paramDouble = 5
	paramBool   = 6
	paramString = 7
)

// pad fills up to a multiple of four what n bytes were written for.
func pad(buf []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		buf = append(buf, 0)
	}
	return buf
}

func be32(buf []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(buf, v) }

func be64(buf []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(buf, v) }
