package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func home(string) string { return "/home/op" }

func TestLoad_passwords(t *testing.T) {
	const inline = "user = \"u\"\npassword = \"hunter2\""
	for _, tt := range []struct {
		name, lines       string
		mode, secretMode  fs.FileMode
		want              string // the password, or
		problem           string // the only problem, with DIR for the directory
		secret            string
		withoutSecretFile bool
	}{
		{name: "inline", lines: inline, mode: 0o600, want: "hunter2"},
		{name: "inline, read only", lines: inline, mode: 0o400, want: "hunter2"},
		{
			name: "inline, group may read", lines: inline, mode: 0o640,
			problem: `DIR/config.toml:13: proxy "p": password: stands in a file that others may read (mode 0640); allowed: mode 0600, or password_file or password_env instead`,
		},
		{
			name: "inline, others may write", lines: inline, mode: 0o602,
			problem: `DIR/config.toml:13: proxy "p": password: stands in a file that others may read (mode 0602); allowed: mode 0600, or password_file or password_env instead`,
		},
		{name: "no password, all may read", mode: 0o644},
		{name: "file beside", lines: "user = \"u\"\npassword_file = \"pw\"", mode: 0o644, secret: "s3\nrest", secretMode: 0o600, want: "s3"},
		{name: "file, crlf", lines: "user = \"u\"\npassword_file = \"pw\"", mode: 0o644, secret: "s3\r\n", secretMode: 0o400, want: "s3"},
		{name: "file, spaces kept", lines: "user = \"u\"\npassword_file = \"pw\"", mode: 0o644, secret: " s 3 ", secretMode: 0o600, want: " s 3 "},
		{
			name: "file, others may read", lines: "user = \"u\"\npassword_file = \"pw\"", mode: 0o600, secret: "s3", secretMode: 0o604,
			problem: `DIR/config.toml:13: proxy "p": password_file: others may read DIR/pw (mode 0604); allowed: mode 0600`,
		},
		{
			name: "file, none", lines: "user = \"u\"\npassword_file = \"pw\"", mode: 0o600, withoutSecretFile: true,
			problem: `DIR/config.toml:13: proxy "p": password_file: DIR/pw cannot be read: no such file or directory; allowed: a file with mode 0600`,
		},
		{name: "env", lines: "user = \"u\"\npassword_env = \"X\"", mode: 0o644, want: "/home/op"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "config.toml")
			write(t, path, adopt(tt.lines), tt.mode)
			if tt.secretMode != 0 {
				write(t, filepath.Join(dir, "pw"), tt.secret, tt.secretMode)
			}
			c, err := Load(path, home)
			if tt.problem != "" {
				if got := strings.ReplaceAll(errText(err), dir, "DIR"); got != tt.problem {
					t.Errorf("problems (-want +got):\n%s", cmp.Diff(tt.problem, got))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Proxies[0].Password.Reveal(); got != tt.want {
				t.Errorf("password %q, want %q", got, tt.want)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLoad_unreadable(t *testing.T) {
	dir := t.TempDir()
	fifo, big := dir+"/fifo", dir+"/big"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, big, strings.Repeat("# long\n", maxConfig/7+1), 0o600)
	for _, tt := range []struct{ path, want string }{
		{dir + "/none.toml", dir + "/none.toml: cannot be read: no such file or directory"},
		{dir, dir + ": cannot be read: it is a directory"},
		{"/dev/zero", "/dev/zero: cannot be read: it is not a regular file"},
		{fifo, fifo + ": cannot be read: it is not a regular file"},
		{big, big + ": cannot be read: it is longer than 4096 KiB"},
	} {
		c, err := Load(tt.path, home)
		var ps Problems
		if c != nil || !errors.As(err, &ps) || err.Error() != tt.want {
			t.Errorf("Load(%s) = %v, %v; want %s", tt.path, c, err, tt.want)
		}
	}
}

func TestParse_noSources(t *testing.T) {
	c, err := Parse("f", []byte(adopt("user = \"u\"\npassword_file = \"pw\"")), Sources{})
	const want = "f: fleet.state_dir: neither set nor derivable: $XDG_STATE_HOME and $HOME are not set; allowed: a directory\n" +
		`f:13: proxy "p": password_file: pw cannot be read here`
	if c != nil || errText(err) != want {
		t.Errorf("Parse() = %v, (-want +got):\n%s", c, cmp.Diff(want, errText(err)))
	}
}

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFind(t *testing.T) {
	denied := errors.New("permission denied")
	for _, tt := range []struct {
		name string
		flag string
		env  func(string) string
		have map[string]error // nil: it is there
		want string
	}{
		{"flag, even if it is not there", "x.toml", env(), nil, "x.toml"},
		{"here", "", env("HOME", "/h"), map[string]error{"config.toml": nil, "/etc/virdeck/config.toml": nil}, "config.toml"},
		{"xdg", "", env("HOME", "/h", "XDG_CONFIG_HOME", "/x"), map[string]error{"/x/virdeck/config.toml": nil, "/h/.config/virdeck/config.toml": nil}, "/x/virdeck/config.toml"},
		{"xdg relative is ignored", "", env("HOME", "/h", "XDG_CONFIG_HOME", "x"), map[string]error{"x/virdeck/config.toml": nil, "/h/.config/virdeck/config.toml": nil}, "/h/.config/virdeck/config.toml"},
		{"home", "", env("HOME", "/h"), map[string]error{"/h/.config/virdeck/config.toml": nil, "/etc/virdeck/config.toml": nil}, "/h/.config/virdeck/config.toml"},
		{"etc", "", env(), map[string]error{"/etc/virdeck/config.toml": nil}, "/etc/virdeck/config.toml"},
		{"denied is there", "", env("HOME", "/h"), map[string]error{"/h/.config/virdeck/config.toml": denied, "/etc/virdeck/config.toml": nil}, "/h/.config/virdeck/config.toml"},
		{"none", "", env("HOME", "/h"), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stat := func(path string) (fs.FileInfo, error) {
				err, ok := tt.have[path]
				if !ok {
					err = &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
				}
				return nil, err
			}
			got, err := Find(tt.flag, tt.env, stat)
			if got != tt.want || errors.Is(err, ErrNoConfig) != (tt.want == "") {
				t.Errorf("Find() = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestDefaultStateDir(t *testing.T) {
	for _, tt := range []struct {
		env  func(string) string
		root bool
		want string
	}{
		{env("HOME", "/root", "XDG_STATE_HOME", "/x"), true, "/var/lib/virdeck"},
		{env("HOME", "/h", "XDG_STATE_HOME", "/x"), false, "/x/virdeck"},
		{env("HOME", "/h", "XDG_STATE_HOME", "x"), false, "/h/.local/state/virdeck"},
		{env("HOME", "/h"), false, "/h/.local/state/virdeck"},
		{env(), false, ""},
	} {
		got, err := DefaultStateDir(tt.env, tt.root)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("DefaultStateDir(root %v) = %q, %v; want %q", tt.root, got, err, tt.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	c := mustParse(t, `
[link]
slots = 5
agent_response_timeout = "0s"
[health]
control = false
[[health.target]]
url = "http://192.0.2.1/"
[[host]]
name = "a"
uri = "qemu+tcp://10.0.0.1/system"
[[host]]
name = "b"
uri = "qemu+ssh://h/system?no_verify=1"
sources = ["arp"]
[[host]]
name = "c"
uri = "qemu+tcp://127.0.0.1/system"
[[proxy]]
name = "p"
host = "a"
port = 1
[[proxy]]
name = "q"
host = "b"
port = 1
`)
	want := strings.Join([]string{
		`config.toml:3: link.slots: libvirtd stops reading a connection at 5 calls in flight, unless max_client_requests is raised on every host`,
		`config.toml:4: link.agent_response_timeout: off: a hung guest agent holds its calls for ever`,
		`config.toml:6: health.control: off: only other proxies can tell a dead proxy from a dead target`,
		`config.toml:11: host "a": uri: qemu+tcp has no encryption and, as used here, no authentication: whoever reaches that port owns the host`,
		`config.toml:14: host "b": uri: no_verify accepts any key or certificate: whoever answers there is taken for the host`,
		`config.toml:15: host "b": sources: ARP alone goes silent for a busy guest and beyond some 50 neighbours`,
		`config.toml:16: host "c": no proxy is on this host`,
	}, "\n")
	if got := Problems(c.Warnings()).Error(); got != want {
		t.Errorf("warnings (-want +got):\n%s", cmp.Diff(want, got))
	}
	if got := Problems(mustParse(t, "").Warnings()).Error(); got != "config.toml: no [[proxy]] and no [[pool]]: there is nothing to manage" {
		t.Errorf("an empty file's warnings: %s", got)
	}
	if w := mustParse(t, adopt("")).Warnings(); len(w) != 0 {
		t.Errorf("a plain file's warnings: %v", w)
	}
}
