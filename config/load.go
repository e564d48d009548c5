package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"virdeck/internal/problem"
	"virdeck/model"
)

// Bounds on what is read, so that a device or a wrong file cannot fill memory.
const (
	maxConfig = 4 << 20
	maxSecret = 64 << 10
)

// Sources are what a configuration may draw on beside its own text. [Load] fills
// them in; tests give their own.
type Sources struct {
	// Env looks up an environment variable; nil: none is set.
	Env func(string) string
	// Root is true when the program runs as root.
	Root bool
	// Dir is what relative paths in the file are relative to.
	Dir string
	// Mode is the file's mode; with a password in it, group and others must
	// have no part in it.
	Mode fs.FileMode
	// Open opens a file that the configuration names; nil: there is none.
	Open func(path string) (fs.File, error)
	// Hashes remembers those of base images; nil: they are found out each time.
	Hashes *Hashes
	// CheckTexts says what is wrong with the user-data and the XML of a template,
	// whatever else of it is; nil: nobody does.
	CheckTexts func(model.Template) []model.TextProblem
}

// Loader reads configurations, one after another. It keeps nothing but the hashes
// of base images. The zero value is ready; fields are not to be changed while it
// is in use, by as many goroutines as like to.
type Loader struct {
	// Env looks up environment variables; nil takes the process's own.
	Env func(string) string
	// CheckTexts is as in [Sources].
	CheckTexts func(model.Template) []model.TextProblem

	hashes Hashes
}

// Load reads and checks the configuration at path. It returns [Problems], all
// there are, or another error never. A base image without a declared hash is read
// from end to end, which takes about a second for each GiB, unless this Loader has
// read it before.
func (l *Loader) Load(path string) (*Config, error) {
	data, src, err := l.open(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, src)
}

// open reads the file, and says what it may draw on. Its error is [Problems].
func (l *Loader) open(path string) ([]byte, Sources, error) {
	data, mode, err := readFile(openOS, path, maxConfig)
	if err != nil {
		return nil, Sources{}, Problems{{File: path, Msg: "cannot be read: " + err.Error()}}
	}
	env := l.Env
	if env == nil {
		env = os.Getenv
	}
	return data, Sources{
		Env:        env,
		Root:       os.Geteuid() == 0,
		Dir:        filepath.Dir(path),
		Mode:       mode,
		Open:       openOS,
		Hashes:     &l.hashes,
		CheckTexts: l.CheckTexts,
	}, nil
}

// Load is [Loader.Load] of a Loader that is used once.
func Load(path string, env func(string) string) (*Config, error) {
	l := Loader{Env: env}
	return l.Load(path)
}

// openOS does not wait for the other end of a pipe, so that it can be refused.
func openOS(path string) (fs.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Parse checks the configuration in data; name is the file's name in messages.
// The error, if any, is [Problems].
func Parse(name string, data []byte, src Sources) (*Config, error) {
	if src.Env == nil {
		src.Env = func(string) string { return "" }
	}
	d := newDocument(name, string(data))
	if d.pos.deep > 0 {
		return nil, Problems{{File: name, Line: d.pos.deep, Msg: fmt.Sprintf("nested too deep; allowed: %d levels", maxDepth)}}
	}
	var tree map[string]any
	if _, err := toml.Decode(string(data), &tree); err != nil {
		return nil, Problems{syntaxProblem(name, err)}
	}
	c := Default()
	c.File = name
	d.table(nil, tree, reflect.ValueOf(c).Elem())
	k := &checker{document: d, c: c, src: src}
	k.all()
	if len(d.problems) > 0 {
		return nil, problem.Sorted(d.problems)
	}
	c.warnings = problem.Sorted(k.suspicions())
	return c, nil
}

// syntaxProblem turns the TOML library's error into a line. What the file has
// there is not quoted where it may be a password that lacks its quotes.
func syntaxProblem(name string, err error) Problem {
	p := Problem{File: name, Msg: "not TOML: " + oneLine(strings.TrimPrefix(err.Error(), "toml: "))}
	var pe toml.ParseError
	if !errors.As(err, &pe) {
		return p
	}
	p.Line = pe.Position.Line
	p.Msg = "not TOML: " + oneLine(pe.Message)
	if strings.HasSuffix(pe.LastKey, "password") {
		p.Msg = "not TOML: near a password; allowed: a text in quotes"
	}
	return p
}

// oneLine keeps a message of others printable and on one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, s)
}

// resolve makes a path of the file absolute, or relative to the working
// directory as the file's own path is. "~/" is $HOME.
func (s *Sources) resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home := s.Env("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) || s.Dir == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// secret reads the first line of a password file that only its owner may read.
func (s *Sources) secret(path string) (Secret, error) {
	shown := oneLine(path)
	if s.Open == nil {
		return Secret{}, fmt.Errorf("%s cannot be read here", shown)
	}
	data, mode, err := readFile(s.Open, path, maxSecret)
	if err != nil {
		return Secret{}, fmt.Errorf("%s cannot be read: %w; allowed: a file with mode 0600", shown, err)
	}
	if mode&0o077 != 0 {
		return Secret{}, fmt.Errorf("others may read %s (mode %04o); allowed: mode 0600", shown, mode.Perm())
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	secret := NewSecret(strings.TrimSuffix(string(line), "\r"))
	if !secret.IsSet() {
		return Secret{}, fmt.Errorf("the first line of %s is empty; allowed: the password", shown)
	}
	return secret, nil
}

// isDir tells whether a path is a directory.
func (s *Sources) isDir(path string) (bool, error) {
	if s.Open == nil {
		return false, errors.New("cannot be looked at here")
	}
	f, err := s.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only looked at
	info, err := f.Stat()
	return err == nil && info.IsDir(), err
}

// readFile reads a whole file and its mode from one handle, so that both belong
// to the same file. Its errors do not repeat the path.
func readFile(open func(string) (fs.File, error), path string, most int64) (data []byte, mode fs.FileMode, err error) {
	f, err := open(path)
	if err != nil {
		return nil, 0, cause(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, 0, cause(err)
	}
	switch {
	case info.IsDir():
		return nil, 0, errors.New("it is a directory")
	case !info.Mode().IsRegular(): // its mode would say nothing of who can read it
		return nil, 0, errors.New("it is not a regular file")
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, 0, cause(err)
	case int64(len(data)) > most:
		return nil, 0, fmt.Errorf("it is longer than %d KiB", most>>10)
	}
	return data, info.Mode(), nil
}

// cause takes the path out of an error of package os.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
