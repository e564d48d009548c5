package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutation is one patch with what it must break.
type mutation struct {
	name string // the file's name without .patch
	path string
	what string // one line
	red  []target
}

// target is a test that must go red.
type target struct{ pkg, test string }

func (t target) String() string { return t.pkg + " " + t.test }

// load reads the patches of a directory that match, by name.
func load(dir string, match *regexp.Regexp) ([]mutation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var ms []mutation
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".patch")
		if !match.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.name, m.path = name, path
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("no patch in %s matches %v: %w", dir, match, fs.ErrNotExist)
	}
	return ms, nil
}

// parse reads a patch's header.
func parse(text string) (mutation, error) {
	var m mutation
	header, _, found := strings.Cut(text, "\n--- ")
	if !found {
		return m, errors.New("no line that begins with ---: not a patch with a header")
	}
	for i, line := range strings.Split(header, "\n") {
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		switch value = strings.TrimSpace(value); {
		case !strings.HasPrefix(line, "#"):
			// git's own lines
		case ok && key == "mutation":
			m.what = value
		case ok && key == "red":
			f := strings.Fields(value)
			if len(f) != 2 || !strings.HasPrefix(f[0], "./") || !strings.HasPrefix(f[1], "Test") {
				return m, fmt.Errorf("line %d: want # red: ./PACKAGE TestNAME", i+1)
			}
			m.red = append(m.red, target{pkg: f[0], test: f[1]})
		default:
			return m, fmt.Errorf("line %d: want a mutation or a red line", i+1)
		}
	}
	if m.what == "" || len(m.red) == 0 {
		return m, errors.New("the header needs one mutation line and at least one red line")
	}
	return m, nil
}
