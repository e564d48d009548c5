package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings; it returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(errOut)
	match := flags.String("run", "", "only patches whose name matches this regular expression")
	tree := flags.String("tree", ".", "the source tree")
	patches := flags.String("patches", "", "the directory of patches (default TREE/testdata/mutations)")
	timeout := flags.Duration("timeout", time.Minute, "for one test")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	re, err := regexp.Compile(*match)
	if err != nil || flags.NArg() > 0 {
		_, _ = fmt.Fprintln(errOut, "mutate: bad usage:", err, flags.Args())
		return 2
	}
	if *patches == "" {
		*patches = filepath.Join(*tree, "testdata", "mutations")
	}
	bad, err := mutate(ctx, *tree, *patches, re, *timeout, out)
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "mutate:", err)
		return 1
	case bad > 0:
		return 1
	}
	return 0
}

// mutate runs every patch and reports; it returns how many tests were not red.
func mutate(ctx context.Context, tree, patches string, match *regexp.Regexp, timeout time.Duration, out io.Writer) (int, error) {
	patches, err := filepath.Abs(patches) // git runs in the copy
	if err != nil {
		return 0, err
	}
	ms, err := load(patches, match)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing hangs on it
	if err := copyTree(tree, dir); err != nil {
		return 0, fmt.Errorf("copying the tree: %w", err)
	}
	r := &runner{dir: dir, timeout: timeout, before: map[target]verdict{}}
	total, bad := 0, 0
	for _, m := range ms {
		results, err := r.try(ctx, m)
		if err != nil {
			return bad, err
		}
		for _, res := range results {
			total++
			_, _ = fmt.Fprintf(out, "%-14s %5.1fs  %-42s %s\n", res.verdict, res.took.Seconds(), m.name, res.target)
			if res.verdict != red {
				bad++
				_, _ = fmt.Fprintf(out, "    %s\n%s\n", m.what, tail(res.output, 2000))
			}
		}
	}
	_, _ = fmt.Fprintf(out, "%d mutations, %d tests to go red, %d not as they must be\n", len(ms), total, bad)
	return bad, nil
}

// tail is the end of a long output.
func tail(s string, most int) string { return s[max(0, len(s)-most):] }
