package config

import (
	"reflect"
	"slices"
)

// atStart are the settings that are read when the program starts and not again, by
// section; none: all of its.
func atStart() map[string][]string {
	return map[string][]string{"fleet": nil, "link": nil, "ui": nil, "log": nil, "controller": {"workers_per_host"}}
}

// waits tells whether a setting takes effect at the next start only.
func waits(section, key string) bool {
	keys, ok := atStart()[section]
	return ok && (keys == nil || slices.Contains(keys, key))
}

// Applied returns what is in force when b has been applied where a was: b, but for
// what takes a restart, which is as in a.
func Applied(a, b *Config) *Config {
	out := *b
	from, to := reflect.ValueOf(a).Elem(), reflect.ValueOf(&out).Elem()
	for i := range to.NumField() {
		section := to.Type().Field(i).Tag.Get("toml")
		if _, ok := atStart()[section]; !ok {
			continue
		}
		for j := range to.Field(i).NumField() {
			if waits(section, to.Field(i).Type().Field(j).Tag.Get("toml")) {
				to.Field(i).Field(j).Set(from.Field(i).Field(j))
			}
		}
	}
	return &out
}
