package config

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"virdeck/model"
)

// testSources is root's, with two variables and some password files.
func testSources() Sources {
	files := fstest.MapFS{
		"etc/virdeck/good.password":  {Data: []byte("from a file\nsecond line\n"), Mode: 0o600},
		"etc/virdeck/crlf.password":  {Data: []byte("from windows\r\n"), Mode: 0o400},
		"etc/virdeck/open.password":  {Data: []byte("known to all\n"), Mode: 0o644},
		"etc/virdeck/empty.password": {Data: []byte("\n"), Mode: 0o600},
		"etc/virdeck/bell.password":  {Data: []byte("a\ab\n"), Mode: 0o600},
		"etc/virdeck/directory/file": {Data: []byte("x"), Mode: 0o600},
		"etc/virdeck/huge.password":  {Data: make([]byte, maxSecret+1), Mode: 0o600},
		"etc/virdeck/good.qcow2":     {Data: qcow2(0, 3<<30), ModTime: time.Unix(1, 0)},
		"etc/virdeck/backed.qcow2":   {Data: qcow2(104, 3<<30)},
		"etc/virdeck/cut.qcow2":      {Data: qcow2(0, 3<<30)[:20]},
		"etc/virdeck/empty.img":      {},
		"etc/virdeck/base.img":       {Data: []byte("raw")},
		"etc/virdeck/x.xml":          {Data: []byte("<memoryBacking/>\n")},
		"etc/virdeck/huge.yaml":      {Data: make([]byte, maxText+1)},
		"etc/virdeck/bad.yaml":       {Data: []byte("#cloud-config\nrefuse\n")},
		"etc/virdeck/user.yaml":      {Data: []byte("#cloud-config\n")},
		"root":                       {Mode: fs.ModeDir | 0o700},
	}
	return Sources{
		Env: func(key string) string {
			return map[string]string{"HOME": "/root", "PROXY_PASSWORD": "from the environment"}[key]
		},
		Root: true,
		Dir:  "/etc/virdeck",
		Mode: 0o600,
		Open: func(path string) (fs.File, error) {
			if path == "/" {
				path = "/."
			}
			return files.Open(strings.TrimPrefix(path, "/"))
		},
		CheckTexts: func(t model.Template) (out []model.TextProblem) {
			for _, text := range []struct{ setting, text string }{{"user_data", t.UserData}, {"xml", t.XML}} {
				for i, line := range strings.Split(text.text, "\n") {
					if strings.HasPrefix(line, "refuse") {
						out = append(out, model.TextProblem{Setting: text.setting, Line: i + 1, Msg: line + "d:\nbad"})
					}
				}
			}
			return out
		},
	}
}

// qcow2 is the head of an image, with a place for a backing file's name.
func qcow2(backing, size uint64) []byte {
	head := append([]byte("QFI\xfb"), 0, 0, 0, 3)
	head = binary.BigEndian.AppendUint64(head, backing)
	head = append(head, 0, 0, 0, 0, 0, 0, 0, 16)
	head = binary.BigEndian.AppendUint64(head, size)
	return append(head, "and the rest"...)
}

// TestParse_bad reads testdata/bad/*.toml: each ends in lines "#! ..." that are
// exactly the problems that it must have.
func TestParse_bad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files in testdata/bad, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				if w, ok := strings.CutPrefix(line, "#! "); ok {
					want = append(want, strings.TrimSuffix(w, "\n"))
				}
			}
			c, err := Parse("config.toml", data, testSources())
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a message tells the password: %v", err)
			}
			var problems Problems
			if !errors.As(err, &problems) || c != nil {
				t.Fatalf("Parse() = %v, %v; want Problems", c, err)
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), problems.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s\ngot, to copy:\n#! %s", diff, strings.ReplaceAll(problems.Error(), "\n", "\n#! "))
			}
		})
	}
}

const small = `
[[health.target]]
url = "http://192.0.2.1/ip"
`

// adopt is a small configuration with one host and one proxy that ends in lines.
func adopt(lines string) string {
	return small + `
[[host]]
name = "h"
uri = "qemu:///system"
[[proxy]]
name = "p"
host = "h"
port = 3128
` + lines
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("config.toml", []byte(text), testSources())
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

func TestParse_emptyIsDefault(t *testing.T) {
	want := Default()
	want.File, want.Fleet.StateDir = "config.toml", "/var/lib/virdeck"
	got := mustParse(t, "")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("(-default +empty file):\n%s", diff)
	}
}

func TestParse_full(t *testing.T) {
	got := mustParse(t, `
[fleet]
name = "attic"
state_dir = "state"
[health]
interval = "10s"
control = false
[[health.target]]
url = "https://192.0.2.1/ip"
status = [200, 204]
body = "."
echo_ip = true
[[host]]
name = "beelink"
uri = "qemu+ssh://root@beelink:2222/system?keyfile=~/.ssh/id&known_hosts=kh&socket=/run/s"
sources = ["agent"]
prefer = "ipv6"
set_agent_timeout = false
[[proxy]]
name = "p-01"
host = "beelink"
port = 1
user = "u"
password = "inline"
[proxy.labels]
zone = "north"
[[proxy]]
name = "p-02"
address = "::ffff:192.0.2.9"
port = 65_535
probe = "connect"
pool = "spare"
[log]
level = "warn"
file = "~/virdeck.log"
`)
	if diff := cmp.Diff([]Host{{
		Name: "beelink",
		URI:  "qemu+ssh://root@beelink:2222/system?keyfile=~/.ssh/id&known_hosts=kh&socket=/run/s",
		Endpoint: Endpoint{
			Transport: TransportSSH, Host: "beelink", Port: 2222, User: "root",
			Socket: "/run/s", KeyFile: "/root/.ssh/id", KnownHosts: "/etc/virdeck/kh",
		},
		Sources: []Source{SourceAgent}, Prefer: IPv6,
	}}, got.Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Proxy{
		{
			Name: "p-01", Host: "beelink", Domain: "p-01", Port: 1, Protocol: ProtocolHTTP, Pool: "default",
			User: "u", Password: NewSecret("inline"), Labels: map[string]string{"zone": "north"},
		},
		{Name: "p-02", Address: "192.0.2.9", Port: 65535, Protocol: ProtocolHTTP, Probe: ProbeConnect, Pool: "spare"},
	}, got.Proxies); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
	if got.Proxies[0].External() || !got.Proxies[1].External() {
		t.Error("External() is wrong")
	}
	if diff := cmp.Diff([]Target{{URL: "https://192.0.2.1/ip", Status: []int{200, 204}, Body: ".", EchoIP: true}}, got.Health.Targets); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if got.Fleet.StateDir != "/etc/virdeck/state" || got.Log.File != "/root/virdeck.log" || got.Log.SlogLevel().String() != "WARN" {
		t.Errorf("fleet %+v, log %+v", got.Fleet, got.Log)
	}
}

func TestParse_otherSpellings(t *testing.T) {
	want := mustParse(t, adopt("labels = { a = \"b\" }"))
	got := mustParse(t, `
health = { target = [ { url = "http://192.0.2.1/ip" } ] }
host = [ { name = "h", uri = "qemu:///system" } ]
proxy = [ { name = "p", host = "h", port = 0xc38, labels.a = 'b' } ]
`)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("(-tables +inline):\n%s", diff)
	}
}

// TestExample holds config.toml.example to its promise: it parses, and every
// setting is in it (or commented out, where it has no default) with its default.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("../config.toml.example")
	if err != nil {
		t.Fatal(err)
	}
	got := mustParse(t, string(data))
	if ws := got.Warnings(); len(ws) > 0 {
		t.Errorf("warnings: %v", ws)
	}
	var tree map[string]any
	if _, err := toml.Decode(string(data), &tree); err != nil {
		t.Fatal(err)
	}

	var walk func(path string, fields reflect.Value, in map[string]any, defaults reflect.Value)
	walk = func(path string, fields reflect.Value, in map[string]any, defaults reflect.Value) {
		for i := range fields.NumField() {
			key := fields.Type().Field(i).Tag.Get("toml")
			if key == "" || key == "-" {
				continue
			}
			value, given := in[key]
			if fields.Field(i).Kind() == reflect.Struct && fields.Field(i).Type() != secretType {
				table, ok := value.(map[string]any)
				if !ok {
					t.Errorf("%s%s: no table", path, key)
					continue
				}
				walk(path+key+".", fields.Field(i), table, defaults.Field(i))
				continue
			}
			if list, ok := value.([]map[string]any); ok {
				element := fields.Field(i).Index(0)
				prepared, _ := elementDefault(element.Type())
				walk(path+key+".", element, list[0], prepared)
				continue
			}
			commented := regexp.MustCompile(`(?m)^# ` + key + ` = `).Match(data)
			switch required := slices.Contains([]string{"host.", "template.", "pool.", "proxy.", "health.target."}, path); {
			case !given && !commented:
				if path+key != "proxy.address" && path+key != "proxy.template" { // the next two proxies have them
					t.Errorf("%s%s is not in config.toml.example", path, key)
				}
			case given && (!required || !defaults.Field(i).IsZero()) && !reflect.DeepEqual(defaults.Field(i).Interface(), fields.Field(i).Interface()):
				t.Errorf("%s%s = %v in config.toml.example, the default is %v", path, key, fields.Field(i), defaults.Field(i))
			}
		}
	}
	walk("", reflect.ValueOf(got).Elem(), tree, reflect.ValueOf(Default()).Elem())
	if got.Proxies[1].Address == "" || !got.Proxies[2].Managed() {
		t.Error("the second proxy shows no address, or the third no template")
	}
}

func TestDurationRules_coverAndAdmitDefaults(t *testing.T) {
	c := Default()
	k := &checker{document: newDocument("f", ""), c: c, src: testSources()}
	rules := map[string]bool{}
	for _, r := range k.durations() {
		rules[r.section+"."+r.key] = true
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Struct {
			continue
		}
		for j := range v.Field(i).NumField() {
			if f := v.Field(i).Type().Field(j); f.Type == durationType {
				if name := v.Type().Field(i).Tag.Get("toml") + "." + f.Tag.Get("toml"); !rules[name] {
					t.Errorf("%s has no bounds", name)
				}
			}
		}
	}
	k.all()
	if len(k.problems) > 0 {
		t.Errorf("the defaults have problems: %v", k.problems)
	}
}
