package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"virdeck/config"
	"virdeck/model"
)

// at runs f with an empty home and working directory, and the given config.
func at(t *testing.T, toml string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "xdg"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("TMPDIR", dir)
	if toml != "" {
		toml = strings.ReplaceAll(toml, "STATE", filepath.Join(dir, "s"))
		if err := os.WriteFile("config.toml", []byte(toml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const good = `
[fleet]
name = "home"
state_dir = "STATE"
[[health.target]]
url = "http://127.0.0.1:9/ip"
[[host]]
name = "beelink"
uri = "qemu+tcp://127.0.0.1:9/system"
[[proxy]]
name = "p-01"
host = "beelink"
port = 3128
user = "u"
password = "hunter2"
[[proxy]]
name = "x-01"
address = "127.0.0.1"
port = 9
`

const badTexts = `
[[template]]
name = "a"
base = "b"
user_data = """
#cloud-config
runcmd: []
runcmd: []
"""
xml = """
<domain>
  <devices>
    <!-- no such thing -->
    <flux/>
  </devices>
</domain>"""
[[template]]
name = "b"
vcpus = 0
xml = "<domain><devices>"
base = "b"
[[template]]
name = "c"
user_data_file = "./c.yaml"
base = "b"
`

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		toml   string
		args   []string
		code   int
		out    []string // in order, in standard output
		errOut string   // whole
	}{
		{name: "version", args: []string{"version"}, code: exitGood, out: []string{"virdeck development\n"}},
		{name: "version as a flag", args: []string{"--version"}, code: exitGood, out: []string{"virdeck development\n"}},
		{name: "version as a flag of a command", args: []string{"status", "--version"}, code: exitUsage, errOut: "virdeck: unknown flag: --version\n"},
		{name: "unknown command", args: []string{"frobnicate"}, code: exitUsage, errOut: "virdeck: unknown command \"frobnicate\" for \"virdeck\"\n"},
		{name: "unknown flag", args: []string{"--frob"}, code: exitUsage, errOut: "virdeck: unknown flag: --frob\n"},
		{name: "too many arguments", args: []string{"check", "x"}, code: exitUsage, errOut: "virdeck: unknown command \"x\" for \"virdeck check\"\n"},
		{name: "a file that is not there", args: []string{"check", "-c", "nothing.toml"}, code: exitUsage,
			errOut: "nothing.toml: cannot be read: no such file or directory\n"},
		{name: "all problems in one go", toml: "[fleet]\nnam = \"x\"\n[[health.target]]\nurl = \"http://h/\"\n[[proxy]]\nname = \"p-01\"\naddress = \"10.0.0.1\"\nport = 70000\n", args: []string{"check"}, code: exitUsage,
			errOut: "config.toml:2: fleet.nam: unknown key; did you mean \"name\"? allowed: name, state_dir\nconfig.toml:8: proxy \"p-01\": port: 70000 is out of range; allowed: 1 to 65535\n"},
		{name: "all problems of all templates", toml: badTexts, args: []string{"check"}, code: exitUsage,
			errOut: `config.toml:5: template "a": user_data: line 3 of it: "runcmd" is given already in line 2; allowed: each once
config.toml:10: template "a": xml: line 4 of it: <domain><devices><flux> is not known here and would be lost; allowed: what libvirt's <domain> has
config.toml:19: template "b": vcpus: 0 is out of range; allowed: 1 to 512
config.toml:20: template "b": xml: not XML: it ends before </devices>; allowed: one <domain> element
config.toml:24: template "c": user_data_file: line 2 of c.yaml: not YAML: did not find expected node content
`},
		{name: "check says what would be managed", toml: good, args: []string{"check"}, code: exitGood,
			out: []string{"config.toml is good: fleet home, 1 host, 2 proxies\n", "host beelink", "tcp 127.0.0.1:9", "p-01", "adopted domain p-01", "port 3128", "credentials u:***", "external", "x-01", "address 127.0.0.1"}},
		{name: "a scenario without the demo", args: []string{"check", "--scenario", "x.toml"}, code: exitUsage, errOut: "virdeck: --scenario goes with --demo\n"},
		{name: "a scenario that is not there", args: []string{"check", "--demo", "--scenario", "x.toml"}, code: exitUsage,
			errOut: "x.toml: cannot be read: no such file or directory\n"},
		{name: "problems of a scenario, one line each", args: []string{"check", "--demo", "--scenario", "config.toml"}, code: exitUsage,
			toml:   "[[step]]\nat = \"1s\"\nwhat = \"freeze\"\nwhom = \"kvm3\"\n[[step]]\nwhat = \"crash\"\nwhom = \"kvm2/p-07\"\n",
			errOut: "config.toml:4: step 1: whom: unknown host \"kvm3\"; did you mean \"kvm2\"?\nconfig.toml:5: step 2: at: is missing; when it happens, such as \"12s\"\n"},
		{name: "a scenario on the demo's hosts", args: []string{"check", "--demo", "--scenario", "config.toml"}, code: exitGood,
			toml: "[[step]]\nat = \"1s\"\nwhat = \"freeze\"\nwhom = \"kvm2\"\n", out: []string{"config.toml is good", "3 hosts, 14 proxies", "host kvm2", "p-07"}},
		{name: "a scenario with hosts of its own", args: []string{"check", "--demo", "--scenario", "config.toml"}, code: exitGood,
			toml: "[[host]]\nname = \"big\"\n[[guest]]\nhost = \"big\"\nname = \"vm\"\ncount = 40\n", out: []string{"1 host, 40 proxies", "vm-40"}},
		{name: "check of the demo", args: []string{"check", "--demo"}, code: exitGood, out: []string{"the demo is good: fleet demo, 3 hosts, 14 proxies", "pool web", "2 proxies of template web", "hosts [kvm2 local]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at(t, tt.toml)
			if err := os.WriteFile("c.yaml", []byte("#cloud-config\na: ["), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errOut bytes.Buffer
			if code := run(tt.args, &out, &errOut); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if errOut.String() != tt.errOut {
				t.Errorf("standard error\n%s\nwant\n%s", errOut.String(), tt.errOut)
			}
			rest := out.String()
			for _, want := range tt.out {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("standard output lacks %q:\n%s", want, out.String())
				}
				rest = after
			}
			if strings.Contains(out.String()+errOut.String(), "hunter2") {
				t.Error("a password was printed")
			}
		})
	}
}

func TestRun_noConfigSaysWhatToDo(t *testing.T) {
	at(t, "")
	for _, args := range [][]string{{"serve"}, {"status"}, {"check"}} {
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
		for _, want := range []string{"no configuration file; looked for config.toml, ", "virdeck --demo", "config.toml.example"} {
			if !strings.Contains(errOut.String(), want) {
				t.Errorf("%v: %q lacks %q", args, errOut.String(), want)
			}
		}
	}
}

// With nothing running, status takes a short look of its own, and writes to no
// host.
func TestStatus_looksForItself(t *testing.T) {
	at(t, "")
	var out, errOut bytes.Buffer
	if code := run([]string{"status", "--demo", "--json"}, &out, &errOut); code != exitGood {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	var st model.Status
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&st); err != nil {
		t.Fatal(err)
	}
	if !st.Observer || !st.Demo || st.Version != model.StatusVersion || len(st.Hosts) != 3 || len(st.Proxies) != 16 {
		t.Errorf("observer %v, demo %v, version %d, %d hosts, %d proxies", st.Observer, st.Demo, st.Version, len(st.Hosts), len(st.Proxies))
	}
	for _, h := range st.Hosts {
		if h.Link == nil || h.Link.State != "up" {
			t.Errorf("host %s: link %+v, want up", h.Name, h.Link)
		}
	}
	if n := st.Counts["ready"]; n < 10 {
		t.Errorf("%d ready, want the long-running ones: %v", n, st.Counts)
	}
}

func TestDeclared(t *testing.T) {
	at(t, good)
	c, err := config.Load("config.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	d := declared(c, false)
	hosts, proxies := d.Hosts, d.Proxies
	if len(hosts) != 1 || hosts[0].Name != "beelink" || hosts[0].URI != "tcp 127.0.0.1:9" || len(hosts[0].Sources) != 3 {
		t.Errorf("hosts %+v", hosts)
	}
	want := []model.ProxySpec{
		{Name: "p-01", Host: "beelink", Domain: "p-01", Port: 3128, Pool: "default", Creds: model.Credentials{User: "u", Password: "hunter2"}},
		{Name: "x-01", Host: model.ExternalHost, Backing: model.BackingExternal, Port: 9, Pool: "default"},
	}
	for i, w := range want {
		got := proxies[i]
		if w.Backing == model.BackingExternal && got.Address.String() != "127.0.0.1" {
			t.Errorf("address %v", got.Address)
		}
		w.Address = got.Address
		if !got.Equal(w) {
			t.Errorf("proxy %d: %+v, want %+v", i, got, w)
		}
	}
}
