package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoConfig says that no configuration file is at any of the usual places.
var ErrNoConfig = errors.New("no configuration file found")

// Find tells which configuration file to read: flag if it is given, else the
// first that is there of ./config.toml, $XDG_CONFIG_HOME/virdeck/config.toml
// (without that variable $HOME/.config/...) and /etc/virdeck/config.toml. A file
// that is there and cannot be looked at counts as there: its error comes from
// [Load], instead of a silent fall to the next. With none it returns
// [ErrNoConfig]. env and stat are os.Getenv and os.Stat when nil.
func Find(flag string, env func(string) string, stat func(string) (fs.FileInfo, error)) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if env == nil {
		env = os.Getenv
	}
	if stat == nil {
		stat = os.Stat
	}
	for _, path := range Places(env) {
		if _, err := stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
	}
	return "", ErrNoConfig
}

// Places are the usual places of the configuration file, the first one first.
func Places(env func(string) string) []string {
	places := []string{"config.toml"}
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		places = append(places, filepath.Join(dir, "virdeck", "config.toml"))
	} else if home := env("HOME"); home != "" {
		places = append(places, filepath.Join(home, ".config", "virdeck", "config.toml"))
	}
	return append(places, "/etc/virdeck/config.toml")
}
