// Command virdeck is a terminal operator console for a fleet of forward proxies
// that run as virtual machines on libvirt/KVM hosts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"virdeck/config"
	"virdeck/provider/libvirt/simhost/scenario"
)

// version is set by the linker.
var version = "development"

// The exit codes.
const (
	exitGood   = 0
	exitFailed = 1
	exitUsage  = 2 // bad usage or configuration
)

// usageError is a mistake of the user's, in words for them.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without its process.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends the process, whatever it hangs in
	root := commands(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var ps config.Problems
	var ss scenario.Problems
	var ue usageError
	switch {
	case err == nil:
		return exitGood
	case errors.As(err, &ps):
		say(stderr, ps) // one line each, with file and line
		return exitUsage
	case errors.As(err, &ss):
		say(stderr, ss)
		return exitUsage
	case errors.As(err, &ue):
		say(stderr, "virdeck:", err)
		return exitUsage
	}
	say(stderr, "virdeck:", err)
	return exitFailed
}

// say prints the last words of the program; where they cannot be printed, the
// exit code has to do.
func say(w io.Writer, words ...any) { _, _ = fmt.Fprintln(w, words...) }

// flags are those that go with every command.
type flags struct {
	config   string
	demo     bool
	scenario string // of the demo; empty: its own story
	takeover bool
	dryRun   bool
}

func commands(stdout, stderr io.Writer) *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:   "virdeck",
		Short: "The console of a fleet of proxies on libvirt hosts",
		Long: "virdeck shows, per libvirt host, every proxy with what each address source last said,\n" +
			"probes all of them, and keeps the good ones in rotation. Without a command it opens\n" +
			"the console, with the engine in the same process.",
		Args:          usage(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return console(c.Context(), f) },
	}
	root.Version = version
	root.SetVersionTemplate("virdeck {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVarP(&f.config, "config", "c", "", "configuration `FILE` (default: "+placesText()+")")
	root.PersistentFlags().BoolVar(&f.demo, "demo", false, "simulated hosts inside this process instead of a configuration")
	root.PersistentFlags().StringVar(&f.scenario, "scenario", "", "with --demo: play the scenario in `FILE` on the demo's hosts, or on its own")

	root.PersistentFlags().BoolVar(&f.takeover, "takeover", false, "make VMs that another controller of this fleet has marked our own; for when that one is gone for good")
	root.PersistentFlags().BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and write to no host")

	root.AddCommand(&cobra.Command{
		Use: "serve", Short: "Run the engine without a terminal", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return serve(c.Context(), f, stderr) },
	})
	root.AddCommand(&cobra.Command{
		Use: "check", Short: "Check the configuration and say what would be managed", Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return check(f, stdout) },
	})
	var asJSON bool
	status := &cobra.Command{
		Use: "status", Short: "One look at the running virdeck, or with none running at the hosts themselves",
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return status(c.Context(), f, asJSON, stdout, stderr) },
	}
	status.Flags().BoolVar(&asJSON, "json", false, "as JSON, schema version 1")
	root.AddCommand(status)
	root.AddCommand(&cobra.Command{
		Use: "plan", Short: "What virdeck would do to the hosts, and why", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return plan(c.Context(), f, stdout, stderr) },
	})
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, "virdeck", version)
			return err
		},
	})
	return root
}

// usage makes a wrong argument a mistake of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
