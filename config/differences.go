package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"virdeck/internal/problem"

	"virdeck/model"
)

// onlyPlaces are settings that say where something is read from. What is read is
// compared; where from makes no difference.
func onlyPlaces() []string {
	return []string{"password_file", "password_env", "user_data_file", "xml_file", "base_file"}
}

func every(string) bool { return true }

// differences returns the settings, of those that are asked for, in which two tables
// differ, and those in words. Tables of tables are for others to compare.
func differences[T any](a, b T, of func(key string) bool) (keys []string, text string) {
	var words []string
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		f := va.Type().Field(i)
		key := f.Tag.Get("toml")
		tables := f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct
		if key == "" || key == "-" || tables || slices.Contains(onlyPlaces(), key) || !of(key) {
			continue
		}
		x, y := va.Field(i).Interface(), vb.Field(i).Interface()
		if same(x, y) {
			continue
		}
		keys = append(keys, key)
		if o, n, ok := shown(key, x, y); ok {
			words = append(words, fmt.Sprintf("%s %s -> %s", key, o, n))
		} else {
			words = append(words, key+" changed")
		}
	}
	return keys, strings.Join(words, ", ")
}

func same(x, y any) bool {
	switch a := x.(type) {
	case Secret:
		return a.Equal(y.(Secret))
	case map[string]string:
		return maps.Equal(a, y.(map[string]string))
	}
	return reflect.DeepEqual(x, y)
}

// shown returns both values as an operator reads them; not ok for those that are
// secret, or longer than a line.
func shown(key string, x, y any) (o, n string, ok bool) {
	switch key {
	case "user_data", "xml", "labels":
		return "", "", false
	}
	if _, secret := x.(Secret); secret {
		return "", "", false
	}
	if key == "base_sha256" {
		return value(start(x)), value(start(y)), true
	}
	return value(x), value(y), true
}

// start is enough of a hash to tell it from another.
func start(x any) string {
	s := fmt.Sprint(x)
	return s[:min(12, len(s))]
}

func value(x any) string {
	switch v := x.(type) {
	case time.Duration:
		return model.Length(v)
	case Size:
		if v == 0 {
			return "as the base"
		}
		return v.String()
	case []string:
		return problem.Listed(v)
	case []Source:
		return problem.Listed(v)
	}
	if v := reflect.ValueOf(x); v.Kind() == reflect.String {
		if v.String() == "" {
			return "none"
		}
		return clip(oneLine(v.String()))
	}
	return fmt.Sprint(x)
}
