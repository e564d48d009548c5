package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// span is a duration, or "never".
type span struct {
	d     time.Duration
	never bool
}

// stage is the span as a Boot has it: zero is the default, negative is never.
func (s span) stage() time.Duration {
	if s.never {
		return -1
	}
	return s.d
}

// words is a text or a list of texts.
type words []string

// longest bounds every duration, so that no sum of them overflows.
const longest = 8760 * time.Hour

func tooLong(in any) string {
	return fmt.Sprintf("%s is out of range; allowed: up to \"8760h\", a year", shown(in))
}

// document is a file being read.
type document struct {
	file     string
	lines    map[place]int
	actions  map[string][]action
	problems Problems
	rooms    map[string]*room // of the networks with DHCP, by host and name
}

func (d *document) problem(at place, format string, args ...any) {
	key := at.key
	if at.table != "" {
		key = fmt.Sprintf("%s %d", at.table, at.n+1)
		if at.key != "" {
			key += ": " + at.key
		}
	}
	line, ok := d.lines[at]
	if !ok {
		line = d.lines[place{table: at.table, n: at.n}]
	}
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// entry is one table of the file: what it has, and where.
type entry struct {
	at  place
	has map[string]any
}

func (e entry) key(k string) place { return place{table: e.at.table, n: e.at.n, key: k} }

// gives reports whether the file says something for a key.
func (e entry) gives(k string) bool { _, ok := e.has[k]; return ok }

// tables returns the tables of an array of tables.
func (d *document) tables(name string, in any) []entry {
	list, ok := in.([]map[string]any)
	if !ok {
		d.problem(place{table: name}, "want [[%s]], once for each, not %s", name, kindOf(in))
		return nil
	}
	out := make([]entry, len(list))
	for i, t := range list {
		out[i] = entry{at: place{table: name, n: i}, has: t}
	}
	return out
}

// fill puts a table's values into the fields of a struct that are tagged so.
func (d *document) fill(e entry, out any) {
	fields := fieldsOf(out)
	known := slices.Sorted(maps.Keys(fields))
	keys := slices.SortedFunc(maps.Keys(e.has), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.lines[e.key(a)], d.lines[e.key(b)]), cmp.Compare(a, b))
	})
	for _, k := range keys {
		f, ok := fields[k]
		if !ok {
			d.problem(e.key(k), "%s", unknown("key", k, known))
			continue
		}
		if want := set(f, e.has[k]); want != "" {
			d.problem(e.key(k), "%s", want)
		}
	}
}

// fieldsOf returns the fields of a struct that a file may give, by key.
func fieldsOf(out any) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(out).Elem()
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("toml"); key != "" {
			fields[key] = v.Field(i)
		}
	}
	return fields
}

// set puts a value into a field, or says what is wrong with it.
func set(f reflect.Value, in any) string {
	text, isText := in.(string)
	number, isNumber := in.(int64)
	switch p := f.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if !isText || err != nil {
			return fmt.Sprintf("want a duration in quotes such as \"10s\" or \"1m30s\", not %s", shown(in))
		}
		*p = d
		if d.Abs() > longest {
			return tooLong(in)
		}
	case *span:
		if p.never = text == "never"; p.never {
			return ""
		}
		d, err := time.ParseDuration(text)
		if !isText || err != nil || d <= 0 {
			return fmt.Sprintf("want a duration above zero in quotes such as \"3s\", or \"never\", not %s", shown(in))
		}
		if d > longest {
			return tooLong(in)
		}
		p.d = d
	case *simhost.Proc:
		proc, ok := simhost.ParseProc(text)
		if !ok {
			var names []string
			for _, q := range simhost.Procs() {
				names = append(names, q.String())
			}
			return unknown("procedure", text, names)
		}
		*p = proc
	case *words:
		list, ok := texts(in)
		if !ok {
			return fmt.Sprintf("want a text or a list of texts, not %s", shown(in))
		}
		*p = list
	case *[]netip.Prefix:
		list, ok := texts(in)
		if !ok {
			return fmt.Sprintf("want an address such as \"10.0.0.21/24\", or a list of such, not %s", shown(in))
		}
		for _, t := range list {
			pre, err := netip.ParsePrefix(t)
			if err != nil {
				return fmt.Sprintf("%q is not an address with its prefix length, such as \"10.0.0.21/24\"", t)
			}
			*p = append(*p, pre)
		}
	case *string:
		if !isText {
			return fmt.Sprintf("want a text in quotes, not %s", shown(in))
		}
		*p = text
	case *int:
		if !isNumber || number < 0 || number > 1<<31-1 {
			return fmt.Sprintf("want a whole number from 0 on, not %s", shown(in))
		}
		*p = int(number)
	case *bool:
		b, ok := in.(bool)
		if !ok {
			return fmt.Sprintf("want true or false, not %s", shown(in))
		}
		*p = b
	default:
		panic("scenario: a field of a type that nothing is put into: " + f.Type().String()) // ours
	}
	return ""
}

func texts(in any) ([]string, bool) {
	switch v := in.(type) {
	case string:
		return []string{v}, true
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			t, ok := e.(string)
			if !ok {
				return nil, false
			}
			out = append(out, t)
		}
		return out, true
	}
	return nil, false
}

// shown is a value for a message.
func shown(in any) string {
	switch v := in.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	return kindOf(in)
}

func kindOf(in any) string {
	switch in.(type) {
	case string:
		return "a text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "tables"
	case []any:
		return "a list"
	}
	return "something else"
}

// oneLine keeps a message of others on one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
