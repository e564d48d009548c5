package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	type edit struct{ old, now string }
	for _, tt := range []struct {
		name  string
		edits []edit
		more  string // put at the end
		want  string
	}{
		{name: "the same"},
		{name: "order and spelling", edits: []edit{
			{"[[host]]\nname = \"kvm1\"\nuri = \"qemu+ssh://kvm1/system\"\n", ""}, {"port = 3128\n[[pool]]", "port = 0xc38\nhosts = [\"kvm1\", \"kvm2\"]\nmin_available = 2\n[[pool]]"},
			{"memory = 2048", "memory = \"2GiB\""},
		}, more: "[[host]]\nuri = \"qemu+ssh://kvm1/system\"\nname = \"kvm1\"\n"},
		{name: "a text comes from elsewhere", edits: []edit{{`user_data_file = "user.yaml"`, `user_data = "#cloud-config\n"`}, {"base.img", "/etc/virdeck/../virdeck/base.img"}}},
		{name: "hosts", edits: []edit{{"qemu+ssh://kvm1/", "qemu+ssh://root@kvm1/"}}, more: "[[host]]\nname = \"kvm10\"\nuri = \"qemu:///system\"\nsources = [\"agent\"]\n", want: `
host kvm1: uri qemu+ssh://kvm1/system -> qemu+ssh://root@kvm1/system
host kvm10: added: qemu:///system
pool web: hosts kvm1, kvm2 -> kvm1, kvm2, kvm10`},
		{name: "a host less", edits: []edit{{"[[host]]\nname = \"kvm2\"\nuri = \"qemu+ssh://kvm2/system\"\n", ""}, {`hosts = ["kvm2"]`, ""}}, want: `
host kvm2: removed: not connected to any more
pool api: hosts kvm2 -> kvm1: members on kvm2 are replaced elsewhere, at most 2 at once
pool web: hosts kvm1, kvm2 -> kvm1: members on kvm2 are replaced elsewhere, at most 1 at once`},
		{name: "a template", edits: []edit{{`base = "base.qcow2"`, "base = \"base-2.qcow2\"\nuser_data = \"#cloud-config\"\ndisk = \"8GiB\""}, {"surge = 2", "surge = 0\n#"}, {"min_available = 4", ""}}, want: `
template small: disk as the base -> 8GiB, base base.qcow2 -> base-2.qcow2, user_data changed: the members of pool web are replaced, at most 1 at once; the VM of proxy solo is replaced
pool api: surge 2 -> 0, min_available 4 -> 3`},
		{name: "the content of a base file", edits: []edit{{"base.img", "good.qcow2"}, {`base_format = "raw"`, ""}}, want: `
template large: base_sha256 d7439bee2477 -> 27372bb0321d, base_format raw -> qcow2: the members of pool api are replaced, at most 2 at once`},
		{name: "templates come and go", edits: []edit{{"template = \"large\"", "template = \"tiny\""}, {"name = \"large\"", "name = \"tiny\""}, {"vcpus = 4", "vcpus = 2"}}, want: `
template large: removed
template tiny: added
pool api: template large -> tiny: members are replaced, at most 2 at once`},
		{name: "a template is renamed", edits: []edit{{"template = \"large\"", "template = \"big\""}, {"name = \"large\"", "name = \"big\""}}, want: `
template big: added
template large: removed
pool api: template large -> big`},
		{name: "scaled", edits: []edit{{"count = 3", "count = 5"}, {"count = 4", "count = 1"}, {"min_available = 4", "min_available = 1"}}, want: `
pool api: count 4 -> 1, min_available 4 -> 1: 3 members fewer, the highest first: they drain and are deleted
pool web: count 3 -> 5, min_available 2 -> 4: 2 members more`},
		{name: "a pool's settings", edits: []edit{{"port = 8080", "port = 8081"}, {"max_age = \"720h\"", ""}, {"failover = true", ""}, {`labels = { zone = "north" }`, ""}, {"probe = \"connect\"\nhosts", "hosts"}}, want: `
pool api: port 8080 -> 8081, probe connect -> none, max_age 720h -> 0s, failover true -> false, labels changed: members are replaced, at most 2 at once`},
		{name: "pools come and go", edits: []edit{{`name = "web"`, `name = "www"`}}, want: `
pool web: removed: its 3 members drain and are deleted
pool www: added: 3 members of template small on kvm1, kvm2`},
		{name: "proxies", edits: []edit{{"192.0.2.10", "192.0.2.11"}, {"port = 3129", "port = 3130"}}, more: "[[proxy]]\nname = \"p-10\"\naddress = \"192.0.2.3\"\nport = 1\n[[proxy]]\nname = \"p-9\"\nhost = \"kvm1\"\nport = 1\n[[proxy]]\nname = \"q\"\nhost = \"kvm1\"\ntemplate = \"small\"\nport = 1\n", want: `
proxy p: address 192.0.2.10 -> 192.0.2.11
proxy p-9: added: domain p-9 on host kvm1 is observed
proxy p-10: added: address 192.0.2.3
proxy q: added: a VM of template small is made on host kvm1
proxy solo: port 3129 -> 3130: its VM is replaced`},
		{name: "proxies of another kind", edits: []edit{{"host = \"kvm1\"\ntemplate = \"small\"\nport = 3129", "host = \"kvm1\"\nport = 3129"}, {`address = "192.0.2.10"`, "host = \"kvm2\"\ntemplate = \"small\""}}, want: `
proxy p: host none -> kvm2, template none -> small, address 192.0.2.10 -> none: was external, is managed
proxy solo: domain none -> solo, template small -> none: was managed, is adopted`},
		{name: "a managed proxy is an address", edits: []edit{{"host = \"kvm1\"\ntemplate = \"small\"\nport = 3129", "address = \"192.0.2.7\"\nport = 3129"}}, want: `
proxy solo: host kvm1 -> none, template small -> none, address none -> 192.0.2.7: was managed, is external; its VM is deleted`},
		{name: "a managed proxy moves", edits: []edit{{"host = \"kvm1\"\ntemplate", "host = \"kvm2\"\ntemplate"}}, want: `
proxy solo: host kvm1 -> kvm2: its VM is deleted there, and made here`},
		{name: "health", edits: []edit{{"http://192.0.2.1/ip", "http://192.0.2.2/ip"}}, more: "[health]\nrise = 5\nslow = \"1m\"\n[controller]\npoll = \"20s\"\nworkers_per_host = 3\n[budget]\nper_pool = 9\n", want: `
health: slow 30s -> 1m, rise 2 -> 5
health.target http://192.0.2.1/ip: removed
health.target http://192.0.2.2/ip: added
controller: poll 10s -> 20s
budget: per_pool 5 -> 9
controller: workers_per_host 2 -> 3: takes a restart`},
		{name: "restart", more: "[fleet]\nname = \"b\"\nstate_dir = \"/s\"\n[link]\nslots = 3\n[ui]\nascii = true\n[log]\nfile = \"/l\"\n", want: `
fleet: name home -> b, state_dir /var/lib/virdeck -> /s: takes a restart
link: slots 4 -> 3: takes a restart
ui: ascii false -> true: takes a restart
log: file none -> /l: takes a restart`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := managed
			for _, e := range tt.edits {
				if !strings.Contains(text, e.old) {
					t.Fatalf("nothing to edit: %q", e.old)
				}
				text = strings.Replace(text, e.old, e.now, 1)
			}
			a, b := mustParse(t, managed), mustParse(t, text+tt.more)
			d := Diff(a, b)
			got := strings.Join(d.Lines(), "\n")
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Empty() != (tt.want == "") {
				t.Errorf("Empty() is %v", d.Empty())
			}
		})
	}
}

func TestDiff_removedProxies(t *testing.T) {
	a := mustParse(t, managed+"[[proxy]]\nname = \"vm\"\nhost = \"kvm1\"\nport = 1\n")
	b := mustParse(t, managed[:strings.Index(managed, "[[proxy]]")])
	want := []Change{
		{Kind: Removed, Name: "p", Text: "proxy p: removed"},
		{Kind: Removed, Name: "solo", Text: "proxy solo: removed: it drains and its VM is deleted"},
		{Kind: Removed, Name: "vm", Text: "proxy vm: removed: domain vm on host kvm1 is left as it is"},
	}
	if diff := cmp.Diff(want, Diff(a, b).Proxies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiff_secrets(t *testing.T) {
	with := func(password string) *Config { return mustParse(t, adopt("user = \"u\"\n"+password)) }
	inline := with(`password = "from a file"`)
	if d := Diff(inline, with(`password_file = "good.password"`)); !d.Empty() {
		t.Errorf("the same password: %v", d.Lines())
	}
	d := Diff(inline, with(`password = "hunter2"`))
	want := []Change{{Kind: Changed, Name: "p", Keys: []string{"password"}, Text: "proxy p: password changed"}}
	if diff := cmp.Diff(want, d.Proxies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDiff_everySetting: no setting may change without a word about it, but for
// those that say where something comes from.
func TestDiff_everySetting(t *testing.T) {
	base := mustParse(t, managed)
	for _, s := range []struct {
		name string
		at   func(*Config) reflect.Value
	}{
		{"fleet", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Fleet) }},
		{"controller", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Controller) }},
		{"budget", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Budget) }},
		{"link", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Link) }},
		{"health", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Health) }},
		{"health.target", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Health.Targets[0]) }},
		{"host", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Hosts[0]) }},
		{"template", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Templates[0]) }},
		{"pool", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Pools[0]) }},
		{"proxy", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Proxies[0]) }},
		{"ui", func(c *Config) reflect.Value { return reflect.ValueOf(&c.UI) }},
		{"log", func(c *Config) reflect.Value { return reflect.ValueOf(&c.Log) }},
	} {
		fields := s.at(base).Elem()
		for i := range fields.NumField() {
			key := fields.Type().Field(i).Tag.Get("toml")
			if key == "-" || key == "target" {
				continue
			}
			other := mustParse(t, managed)
			f := s.at(other).Elem().Field(i)
			switch v := f.Addr().Interface().(type) {
			case *Secret:
				*v = NewSecret("x")
			case *[]string:
				*v = []string{"x"}
			case *[]Source:
				*v = []Source{"x"}
			case *[]int:
				*v = []int{1}
			case *map[string]string:
				*v = map[string]string{"x": "y"}
			default:
				switch f.Kind() { //nolint:exhaustive // no setting is of another kind
				case reflect.String:
					f.SetString("x")
				case reflect.Bool:
					f.SetBool(!f.Bool())
				default:
					f.SetInt(f.Int() + 1)
				}
			}
			if said := !Diff(base, other).Empty(); said == slices.Contains(onlyPlaces(), key) {
				t.Errorf("%s.%s: a change is told: %v", s.name, key, said)
			}
		}
	}
}

func TestChangeKind(t *testing.T) {
	for k, want := range map[ChangeKind]string{Added: "added", Removed: "removed", Changed: "changed", 9: "unknown"} {
		if k.String() != want {
			t.Errorf("%d is %s", k, k)
		}
	}
}
