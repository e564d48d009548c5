package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdict is what became of a test under a mutation.
type verdict int

const (
	red       verdict = iota // the test failed, as it must
	green                    // it passed: it does not guard this
	unbuilt                  // the code does not build: it proves nothing
	unapplied                // the patch does not apply: the code has moved on
	redBefore                // the test fails without the mutation too
	absent                   // there is no such test
)

func (v verdict) String() string {
	switch v {
	case red:
		return "red"
	case green:
		return "STAYS GREEN"
	case unbuilt:
		return "DOES NOT BUILD"
	case unapplied:
		return "DOES NOT APPLY"
	case redBefore:
		return "RED WITHOUT IT"
	case absent:
		return "NO SUCH TEST"
	}
	return fmt.Sprintf("verdict %d", int(v))
}

// result is one line of the report.
type result struct {
	mutation mutation
	target   target
	verdict  verdict
	took     time.Duration
	output   string // what explains a verdict other than red
}

// runner works in a copy of the tree.
type runner struct {
	dir     string
	timeout time.Duration      // for one test
	before  map[target]verdict // tests that were run on the tree as it is
}

// copyTree copies a source tree without version control and built programs.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		out := filepath.Join(to, rel)
		switch {
		case e.IsDir() && (e.Name() == ".git" || rel == "bin"):
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(out, 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(out, data, info.Mode().Perm())
	})
}

// try applies a mutation, runs its tests and takes it back.
func (r *runner) try(ctx context.Context, m mutation) ([]result, error) {
	var results []result
	for _, t := range m.red {
		if _, done := r.before[t]; !done {
			v, _, err := r.test(ctx, t)
			if err != nil {
				return nil, err
			}
			r.before[t] = v
		}
	}
	if out, err := r.patch(ctx, m.path); err != nil {
		for _, t := range m.red {
			results = append(results, result{mutation: m, target: t, verdict: unapplied, output: out})
		}
		return results, nil
	}
	for _, t := range m.red {
		start := time.Now()
		v, out, err := r.test(ctx, t)
		if err != nil {
			return nil, err
		}
		if r.before[t] != green { // then red says nothing
			v = r.before[t]
			if v == red {
				v = redBefore
			}
		}
		results = append(results, result{mutation: m, target: t, verdict: v, took: time.Since(start), output: out})
	}
	if out, err := r.patch(ctx, m.path, "--reverse"); err != nil {
		return nil, fmt.Errorf("taking back %s: %w\n%s", m.name, err, out)
	}
	return results, nil
}

// patch applies a patch with no fuzz.
func (r *runner) patch(ctx context.Context, path string, flags ...string) (string, error) {
	args := append([]string{"apply", "--whitespace=nowarn"}, flags...)
	return r.command(ctx, "git", append(args, path)...)
}

// test runs one test. Its error says that the test could not be run at all.
func (r *runner) test(ctx context.Context, t target) (verdict, string, error) {
	out, err := r.command(ctx, "go", "test", "-trimpath", "-count=1", "-vet=off", "-v",
		"-timeout", r.timeout.String(), "-run", "^"+t.test+"$", t.pkg)
	if ctx.Err() != nil {
		return 0, out, ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		return 0, out, err
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return unbuilt, out, nil
	case !strings.Contains(out, "=== RUN   "+t.test+"\n"):
		return absent, out, nil
	case err != nil:
		return red, out, nil
	}
	return green, out, nil
}

func (r *runner) command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	// git must not take the copy for a part of a repository around it
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.dir), "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
