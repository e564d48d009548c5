package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"virdeck/internal/problem"
)

// document is a file being read: where its keys stand, and what is wrong.
type document struct {
	file     string
	pos      *positions
	problems []Problem
	names    map[string]string // id of an array's table to the name it gives itself
	blamed   map[string]bool   // ids that have a problem already
}

func newDocument(file, text string) *document {
	return &document{file: file, pos: scan(text), names: map[string]string{}, blamed: map[string]bool{}}
}

// problem notes one thing wrong with a setting. Only the first counts: what
// follows from a wrong type is not worth a second line.
func (d *document) problem(path keyPath, format string, args ...any) {
	if d.blamed[path.id()] {
		return
	}
	d.blamed[path.id()] = true
	d.problems = append(d.problems, d.at(path, format, args...))
}

func (d *document) at(path keyPath, format string, args ...any) Problem {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = clip(s)
		}
	}
	return Problem{File: d.file, Line: d.pos.of(path), Key: clip(d.label(path)), Msg: fmt.Sprintf(format, args...)}
}

// clip keeps a text of the file to a length that a line can bear.
func clip(s string) string {
	const most = 400 // bytes; longer than any list of what is allowed
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// has tells whether the file gives the setting.
func (d *document) has(path keyPath) bool {
	_, ok := d.pos.line[path.id()]
	return ok
}

// label is the setting as messages call it: `fleet.name`, `proxy "p-01": port`,
// `health.target 2: url`.
func (d *document) label(path keyPath) string {
	var b strings.Builder
	fresh := true // at the start of a dotted name
	for i, p := range path {
		if strings.HasPrefix(p, "[") {
			if name, ok := d.names[path[:i+1].id()]; ok {
				fmt.Fprintf(&b, " %q", name)
			} else {
				var n int
				_, _ = fmt.Sscanf(p, "[%d]", &n) // a quoted key may look like this; then it is 1
				fmt.Fprintf(&b, " %d", n+1)
			}
			fresh = true
			continue
		}
		switch {
		case i > 0 && fresh:
			b.WriteString(": ")
		case i > 0:
			b.WriteString(".")
		}
		fresh = false
		b.WriteString(printable(p))
	}
	return b.String()
}

// printable is a key as it is when it is plain, else in quotes.
func printable(key string) string {
	for _, r := range key {
		if r < '!' || r > '~' || strings.ContainsRune(`."'=[]`, r) {
			return fmt.Sprintf("%q", key)
		}
	}
	return key
}

// table puts the settings of a TOML table into a struct.
func (d *document) table(path keyPath, in map[string]any, out reflect.Value) {
	fields := map[string]reflect.Value{}
	var known []string
	for i := range out.NumField() {
		if key := out.Type().Field(i).Tag.Get("toml"); key != "" && key != "-" {
			fields[key] = out.Field(i)
			known = append(known, key)
		}
	}
	// in the order of the file, or by name where the order is not known
	keys := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.pos.of(path.with(a)), d.pos.of(path.with(b))), strings.Compare(a, b))
	})
	for _, key := range keys {
		at := path.with(key)
		field, ok := fields[key]
		if !ok {
			d.problem(at, "unknown key%s allowed: %s", orSemicolon(problem.Suggest(key, known)), problem.Listed(known))
			continue
		}
		d.value(at, in[key], field)
	}
}

func orSemicolon(suggestion string) string {
	if suggestion == "" {
		return ";"
	}
	return suggestion
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	sizeType     = reflect.TypeFor[Size]()
)

// value puts one TOML value into a field; of another type, it says so.
func (d *document) value(path keyPath, in any, out reflect.Value) {
	switch {
	case out.Type() == durationType:
		d.duration(path, in, out)
		return
	case out.Type() == sizeType:
		d.size(path, in, out)
		return
	case out.Type() == secretType:
		if s, ok := in.(string); ok {
			out.Set(reflect.ValueOf(NewSecret(s)))
			return
		}
		d.wrongType(path, in, out)
		return
	}
	switch v := in.(type) {
	case string:
		if out.Kind() == reflect.String {
			out.SetString(v)
			return
		}
	case bool:
		if out.Kind() == reflect.Bool {
			out.SetBool(v)
			return
		}
	case int64:
		if out.Kind() == reflect.Int {
			if out.OverflowInt(v) { // a 32-bit int must not wrap into what is allowed
				v = math.MaxInt32
			}
			out.SetInt(v)
			return
		}
	case map[string]any:
		switch out.Kind() { //nolint:exhaustive // the others are of the wrong type
		case reflect.Struct:
			d.table(path, v, out)
			return
		case reflect.Map:
			d.stringMap(path, v, out)
			return
		}
	case []map[string]any:
		list := make([]any, len(v))
		for i, t := range v {
			list[i] = t
		}
		if out.Kind() == reflect.Slice {
			d.list(path, list, out)
			return
		}
	case []any:
		if out.Kind() == reflect.Slice {
			d.list(path, v, out)
			return
		}
	}
	d.wrongType(path, in, out)
}

func (d *document) duration(path keyPath, in any, out reflect.Value) {
	text, ok := in.(string)
	if !ok {
		d.wrongType(path, in, out)
		return
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		d.problem(path, "%q is not a duration; allowed: numbers with the units ms, s, m or h, such as \"1m30s\"", text)
		return
	}
	out.SetInt(int64(v))
}

func (d *document) stringMap(path keyPath, in map[string]any, out reflect.Value) {
	m := make(map[string]string, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		s, ok := in[key].(string)
		if !ok {
			d.problem(path.with(key), "want a text in quotes, not %s", kindOf(in[key]))
			continue
		}
		m[key] = s
	}
	out.Set(reflect.ValueOf(m))
}

func (d *document) list(path keyPath, in []any, out reflect.Value) {
	list := reflect.MakeSlice(out.Type(), len(in), len(in))
	for i, v := range in {
		at, element := path.with(index(i)), list.Index(i)
		if t, ok := v.(map[string]any); ok {
			if name, ok := t["name"].(string); ok && name != "" {
				d.names[at.id()] = name
			}
		}
		if prepared, ok := elementDefault(element.Type()); ok {
			element.Set(prepared)
		}
		d.value(at, v, element)
	}
	out.Set(list)
}

// elementDefault is what a table of an array holds before the file speaks.
func elementDefault(t reflect.Type) (reflect.Value, bool) {
	switch t {
	case reflect.TypeFor[Host]():
		return reflect.ValueOf(defaultHost()), true
	case reflect.TypeFor[Proxy]():
		return reflect.ValueOf(defaultProxy()), true
	case reflect.TypeFor[Template]():
		return reflect.ValueOf(defaultTemplate()), true
	case reflect.TypeFor[Pool]():
		return reflect.ValueOf(defaultPool()), true
	case reflect.TypeFor[Target]():
		return reflect.ValueOf(defaultTarget()), true
	}
	return reflect.Value{}, false
}

func (d *document) wrongType(path keyPath, in any, out reflect.Value) {
	_, table := in.(map[string]any)
	_, tables := in.([]map[string]any)
	switch {
	case table && out.Kind() == reflect.Slice && out.Type().Elem().Kind() == reflect.Struct:
		d.problem(path, "want [[%[1]s]], once for each, not [%[1]s]", d.label(path))
	case tables && out.Kind() == reflect.Struct:
		d.problem(path, "want [%[1]s], once, not [[%[1]s]]", d.label(path))
	default:
		d.problem(path, "want %s, not %s", wanted(out.Type()), kindOf(in))
	}
}

// wanted says what a field takes.
func wanted(t reflect.Type) string {
	switch t {
	case durationType:
		return `a duration in quotes such as "10s"`
	case secretType:
		return "a text in quotes"
	case sizeType:
		return `a size such as "512MiB", or whole MiB`
	}
	switch t.Kind() { //nolint:exhaustive // no setting is of another kind
	case reflect.String:
		return "a text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Map, reflect.Struct:
		return "a table"
	case reflect.Slice:
		switch t.Elem().Kind() { //nolint:exhaustive // as above
		case reflect.String:
			return `a list of texts such as ["a", "b"]`
		case reflect.Int:
			return "a list of whole numbers such as [200, 204]"
		}
		return "tables"
	}
	return "another type"
}

// kindOf says what the file has, never its value: it may be a secret.
func kindOf(in any) string {
	switch in.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	case []map[string]any:
		return "an array of tables"
	}
	return "something else"
}
