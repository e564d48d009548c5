package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The state directory is known as long as what the file says of it can be read.
func TestLoader_StateDir(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	l := Loader{Env: env("HOME", dir, "XDG_STATE_HOME", dir)}
	usual, err := DefaultStateDir(l.Env, os.Geteuid() == 0)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "s")
	const named = "[fleet]\nstate_dir = \"s\"\n"
	for _, tt := range []struct{ name, text, want string }{
		{"named", named, own},
		{"not named", "[fleet]\nname = \"x\"\n", usual},
		{"nothing", "", usual},
		{"bad settings", named + "colour = 1\n[health]\nrise = \"x\"\n", own},
		{"a mistake after it", named + "[pool\nname = 1\n", own},
		{"a mistake after it, and a text without end", named + "[log]\nfile = \"\"\"\nx\n\n", own},
		{"a mistake beside it", named + "name = x\n", own},
		{"a mistake, and it is not named", "[health]\nrise = = 2\n", usual},
		{"a mistake before it", "rise = = 2\n" + named, ""},
		{"deep after it", named + "[log]\nfile = " + strings.Repeat("[", 20) + "\n", own},
		{"deep before it", "a = " + strings.Repeat("[", 1<<20) + "\n" + named, ""},
		{"another type", "[fleet]\nstate_dir = 1\n", ""},
		{"a fleet of another type", "fleet = 1\n", usual},
	} {
		write(t, path, tt.text, 0o600)
		if got, err := l.StateDir(path); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if got, err := l.StateDir(filepath.Join(dir, "none.toml")); got != "" || err == nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
}
