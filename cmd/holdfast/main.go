// Command holdfast sells scarce places to a crowd. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // events have zones, and small containers have no zone files

	"github.com/spf13/cobra"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

// Exit codes. Anything else that fails is exitFailed.
const (
	exitFailed  = 1 // also: an audit found a violation
	exitUsage   = 2 // flags, settings or input files are wrong; nothing was done
	exitStopped = 3 // stopped before every request could be answered
)

// errUsage marks errors that are the caller's: they are told in one line.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once: whoever sends it means it.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "holdfast:", err)
	switch {
	case errors.Is(err, errUsage):
		os.Exit(exitUsage)
	case errors.Is(err, httpd.ErrStopForced):
		os.Exit(exitStopped)
	}
	os.Exit(exitFailed)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Sell scarce places to a crowd: each place to exactly one person",
		Long: `Holdfast sells scarce places to a crowd: cinema seats, concert seats and standing room, airline seats.

Every setting is a flag or an environment variable HOLDFAST_… of the same name; the flag wins. "holdfast demo" starts
with something to sell, "holdfast serve" with what is in the data folder.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w; see %q", errUsage, err, c.CommandPath()+" --help")
	})
	root.AddCommand(newServeCommand(), newDemoCommand(), newBenchCommand(), newImportCommand(openCatalog), newAuditCommand(), newVersionCommand())
	badArgsAreUsage(root)
	return root
}

// badArgsAreUsage makes every complaint about arguments, of this command and those below it, one about usage.
func badArgsAreUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w: %w; see %q", errUsage, err, c.CommandPath()+" --help")
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		badArgsAreUsage(sub)
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go release", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), version())
			return err
		},
	}
}

// version is what the Go tool wrote into the program.
func version() string {
	commit, modified := "unknown", ""
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "holdfast (built without module information) " + runtime.Version()
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = " (modified)"
			}
		}
	}
	return fmt.Sprintf("holdfast %s commit %s%s %s", info.Main.Version, commit, modified, runtime.Version())
}
