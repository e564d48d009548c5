package config

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// DefaultStateDir is where state lives when the file does not say: for root
// /var/lib/virdeck, else $XDG_STATE_HOME/virdeck or $HOME/.local/state/virdeck.
func DefaultStateDir(env func(string) string, root bool) (string, error) {
	if root {
		return "/var/lib/virdeck", nil
	}
	// the base directory specification: a relative path there is to be ignored
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "virdeck"), nil
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "virdeck"), nil
	}
	return "", errors.New("neither set nor derivable: $XDG_STATE_HOME and $HOME are not set")
}

// stateDir is the directory that the file names, or the default one.
func (s *Sources) stateDir(named string) (string, error) {
	if named != "" {
		return s.resolve(named), nil
	}
	return DefaultStateDir(s.Env, s.Root)
}

// StateDir returns the state directory of the configuration at path, however bad
// the rest of the file is. The error says why it cannot be known.
func (l *Loader) StateDir(path string) (string, error) {
	data, src, err := l.open(path)
	if err != nil {
		return "", err
	}
	tree, rest := upToMistake(string(data))
	fleet, _ := tree["fleet"].(map[string]any)
	named, ok := fleet["state_dir"].(string)
	if !ok && (fleet["state_dir"] != nil || strings.Contains(rest, "state_dir")) {
		return "", errors.New("the state directory cannot be read from " + oneLine(path))
	}
	return src.stateDir(named)
}

// upToMistake returns what the lines of a file say that stand before a mistake in
// its syntax, and the text from there on. A mistake may begin before the line that
// it is told of: then the whole table goes.
func upToMistake(text string) (tree map[string]any, rest string) {
	good := text
	for try := range 3 {
		line := scan(good).deep
		if line == 0 {
			tree = nil
			_, err := toml.Decode(good, &tree)
			var pe toml.ParseError
			if err == nil {
				return tree, text[len(good):]
			}
			if !errors.As(err, &pe) {
				break
			}
			line = pe.Position.Line
		}
		if good = linesBefore(good, line); try > 0 {
			good = good[:max(0, strings.LastIndex(good, "\n[")+1)]
		}
	}
	return nil, text
}

// linesBefore are those before a line, from 1.
func linesBefore(text string, line int) string {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return text[:at]
}
