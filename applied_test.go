package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"virdeck/config"
	"virdeck/controller"
)

// inForce is what the parts of the engine are handed of a configuration, as far as
// they take it in while they run.
func inForce(t *testing.T, c *config.Config) string {
	t.Helper()
	d, s := declared(c, false), settings(c)
	s.Fleet, s.Workers = "", 0 // those of the start, whatever Apply is told
	hc, err := healthConfig(c, c.Health.Targets)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []controller.HostSpec
	for _, h := range d.Hosts {
		h.Open = nil
		hosts = append(hosts, h)
	}
	var targets []string
	for _, g := range hc.Targets {
		targets = append(targets, fmt.Sprintf("%s %v %q %v", g.URL, g.Status, g.Body, g.EchoIP))
	}
	hc.Targets = nil
	var proxies []string
	for _, p := range d.Proxies {
		proxies = append(proxies, fmt.Sprintf("%+v, password %q", p, p.Creds.Password)) // which does not print itself
	}
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v", hosts, proxies, d.Managed, d.Pools, d.Templates, d.Budget, s, hc, targets)
}

const everyKey = `
[[health.target]]
url = "http://192.0.2.1/ip"
[[host]]
name = "h"
uri = "qemu:///system"
[[template]]
name = "small"
base_file = "base.img"
base_format = "raw"
[[pool]]
name = "web"
template = "small"
count = 2
port = 3128
[[proxy]]
name = "p"
host = "h"
port = 3128
[[proxy]]
name = "x"
address = "192.0.2.10"
port = 3128
[[proxy]]
name = "solo"
host = "h"
template = "small"
port = 3128
`

// Every setting of the file is either in force after a reload, or said to wait for
// a restart; never both, never neither.
func TestReload_appliesOrSaysThatItDoesNot(t *testing.T) {
	at(t, everyKey)
	if err := os.WriteFile("base.img", []byte("raw"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() *config.Config {
		c, err := config.Load("config.toml", nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// Where a word is one of a few, another of them.
	words := map[string]string{"prefer": "ipv6", "probe": "connect", "type": "qemu", "firmware": "efi", "base_format": "qcow2",
		"uri": "qemu+tcp://192.0.2.7/system", "url": "http://192.0.2.2/", "address": "192.0.2.11"}
	// No file has these, so it does not matter what becomes of them.
	never := []string{"proxy 2: host", "proxy 2: domain", "proxy 3: domain", "proxy 3: address", "proxy 3: user", "proxy 3: password"}
	// These decide nothing: where a text comes from, and what has one value.
	nothing := []string{"password_file", "password_env", "user_data_file", "xml_file", "base_file", "protocol"}
	var walk func(path string, find func(*config.Config) reflect.Value)
	try := func(path, key string, find func(*config.Config) reflect.Value) {
		was, now := load(), load()
		f := find(now)
		switch v := f.Addr().Interface().(type) {
		case *config.Secret:
			*v = config.NewSecret("x")
		case *[]string:
			*v = append(*v, "x")
		case *[]config.Source:
			*v = []config.Source{config.SourceAgent}
		case *[]int:
			*v = []int{204}
		case *map[string]string:
			*v = map[string]string{"x": "y"}
		case *time.Duration:
			*v += time.Second
		default:
			switch f.Kind() { //nolint:exhaustive // no setting is of another kind
			case reflect.String:
				f.SetString(f.String() + "x")
				if w, ok := words[key]; ok {
					f.SetString(w)
				}
			case reflect.Bool:
				f.SetBool(!f.Bool())
			case reflect.Int:
				f.SetInt(f.Int() + 1)
			default:
				t.Fatalf("%s%s: what is a %s?", path, key, f.Kind())
			}
		}
		diff := config.Diff(was, now)
		said := len(diff.All()) - len(diff.Restart)
		applied := inForce(t, config.Applied(was, now)) != inForce(t, was)
		switch {
		case slices.Contains(nothing, key):
			if said > 0 && key != "protocol" {
				t.Errorf("%s%s: said to be applied: %v", path, key, diff.Lines())
			}
		case applied != (said > 0):
			t.Errorf("%s%s: in force after a reload: %v; said to be: %v, %v", path, key, applied, said > 0, diff.Lines())
		case applied == (len(diff.Restart) > 0):
			t.Errorf("%s%s: in force after a reload: %v; waits for a restart: %v", path, key, applied, diff.Restart)
		}
		if left := config.Diff(config.Applied(was, now), now); len(left.All()) != len(left.Restart) {
			t.Errorf("%s%s: not applied, and no word of a restart: %v", path, key, left.Lines())
		}
	}
	walk = func(path string, find func(*config.Config) reflect.Value) {
		v := find(load())
		for i := range v.NumField() {
			key := v.Type().Field(i).Tag.Get("toml")
			field := func(c *config.Config) reflect.Value { return find(c).Field(i) }
			f := v.Field(i)
			switch {
			case key == "" || key == "-":
			case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[config.Secret]():
				walk(path+key+".", field)
			case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
				for n := range f.Len() {
					walk(fmt.Sprintf("%s%s %d: ", path, key, n+1), func(c *config.Config) reflect.Value { return field(c).Index(n) })
				}
			case !slices.Contains(never, path+key):
				try(path, key, field)
			}
		}
	}
	walk("", func(c *config.Config) reflect.Value { return reflect.ValueOf(c).Elem() })
}
