package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/loadgen"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// benchFlags are what a bench is told.
type benchFlags struct {
	scenario, format string
	list             bool
	adminKey, temp   string
	load             loadgen.Config
}

func newBenchCommand() *cobra.Command {
	var b benchFlags
	c := &cobra.Command{
		Use: "bench --scenario NAME [-- SERVER-FLAGS]", Short: "Measure this program against floors of its own, then audit", Args: cobra.ArbitraryArgs,
		Long: benchHelp(),
		Example: "  holdfast bench --scenario holds\n" +
			"  holdfast bench --scenario lastseat --clients 500 --format json\n" +
			"  holdfast bench --scenario holds -- --lanes 4 --sqlite-synchronous normal",
		RunE: b.run,
	}
	f := c.Flags()
	f.StringVar(&b.scenario, "scenario", "", "what to do: see above")
	f.BoolVar(&b.list, "list", false, "list the scenarios")
	f.StringVar(&b.format, "format", "text", "of the report: text or json")
	f.IntVar(&b.load.Clients, "clients", 0, "clients, each with one request on its way at most (default: the scenario's)")
	f.IntVar(&b.load.Rounds, "rounds", 0, "rounds of server and floor (default: the scenario's)")
	f.DurationVar(&b.load.Duration, "duration", 0, "of one side of a round (default: the scenario's)")
	f.Uint64Var(&b.load.Seed, "seed", 0, "of what customers do (default: a new one, which the report names)")
	f.StringVar(&b.load.Target, "target", "", "drive this server instead of an own one, such as http://127.0.0.1:8080; it is filled with events that stay")
	f.StringVar(&b.load.Ops, "ops", "", "where the target shows /metrics, if elsewhere")
	f.StringVar(&b.adminKey, "admin-key", "", "of the target (better: HOLDFAST_ADMIN_KEY, which other users of the machine do not see)")
	f.StringVar(&b.temp, "temp", "", "folder in which the own server's database is made and removed (default: the system's for temporary files)")
	return c
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString("Start a server of this program in a process of its own, with a fresh database, and drive it over HTTP from this one. Most scenarios measure\n" +
		"server and floor in turn: a floor is a handler of the same program that authenticates, parses the same request and answers the same bytes,\n" +
		"without engine or database. A goal that is missed is shown; a promise that is broken, or an audit that finds something, exits 1.\n\nScenarios:\n")
	for _, s := range loadgen.Scenarios() {
		fmt.Fprintf(&b, "  %-9s %s.\n            Goal: %s.\n", s.Name, s.Short, s.Goal)
	}
	b.WriteString("\nWhat stands after -- is given to the own server.")
	return b.String()
}

func (b *benchFlags) run(c *cobra.Command, serverFlags []string) error {
	if b.list {
		for _, s := range loadgen.Scenarios() {
			fmt.Fprintf(c.OutOrStdout(), "%-9s %s. Goal: %s.\n", s.Name, s.Short, s.Goal)
		}
		return nil
	}
	s, err := loadgen.Find(b.scenario)
	switch {
	case err != nil:
		return fmt.Errorf("%w: --scenario: %w; see --list", errUsage, err)
	case b.format != "text" && b.format != "json":
		return fmt.Errorf("%w: --format: give text or json", errUsage)
	case b.load.Target != "" && len(serverFlags) > 0:
		return fmt.Errorf("%w: flags after -- are for an own server, and --target names another", errUsage)
	}
	if err := s.Check(b.load); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cfg := b.load
	cfg.Now, cfg.Stadium, cfg.Progress = httpd.Now, stadium, &loadgen.Progress{}
	cfg.AdminKey = cmp.Or(b.adminKey, os.Getenv("HOLDFAST_ADMIN_KEY"))
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64N(1 << 32)
	}
	environment := here()

	report, err := func() (report *loadgen.Report, err error) {
		defer showProgress(c.Context(), c.ErrOrStderr(), cfg.Progress)()
		if cfg.Target == "" {
			own, err := startOwn(c.Context(), s.Name, b.temp, serverFlags)
			if own != nil {
				defer func() { err = errors.Join(err, own.stop()) }()
			}
			if err != nil {
				return nil, err
			}
			cfg.Target, cfg.Ops, cfg.Few, cfg.AdminKey = own.servers[0].url, own.servers[0].ops, own.few(), own.key
			environment.SyncedWriteMs = own.syncedWriteMs()
		}
		return s.Run(c.Context(), cfg)
	}()
	if err != nil {
		return err
	}
	report.Environment = environment
	if b.format == "json" {
		err = report.WriteJSON(c.OutOrStdout())
	} else {
		err = report.WriteText(c.OutOrStdout())
	}
	if err == nil && !report.OK {
		err = fmt.Errorf("%s: %d promises were broken", s.Name, len(report.Failures))
	}
	return err
}

func stadium(seats int) ([]byte, error) {
	l, err := venue.Stadium(seats)
	if err != nil {
		return nil, err
	}
	return l.Canonical(), nil
}

// here is the machine and the program.
func here() loadgen.Environment {
	e := loadgen.Environment{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS, Commit: commit()}
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only; elsewhere the architecture has to do
	for line := range bytes.Lines(info) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(name) == "model name" {
			e.CPU = strings.TrimSpace(value)
			break
		}
	}
	return e
}

// commit is the one that the program was built from, if the Go tool wrote it down.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " modified"
		}
	}
	return revision + modified
}

// own is what a bench starts and removes.
type own struct {
	dir, key string
	servers  []*child
}

func (o *own) few() string {
	if len(o.servers) < 2 {
		return ""
	}
	return o.servers[1].url
}

// startOwn starts the servers that a scenario needs. What was made before an error is returned with it, to be stopped.
func startOwn(ctx context.Context, scenario, temp string, flags []string) (*own, error) {
	dir, err := os.MkdirTemp(temp, "holdfast-bench-")
	if err != nil {
		return nil, fmt.Errorf("%w: --temp: %w", errUsage, err)
	}
	o := &own{dir: dir, key: identity.NewAdminKey()}
	datas := []string{"data"}
	switch scenario {
	case "sellout":
		// Holds live for seconds here, so what looks after them looks as often.
		flags = append([]string{"--sweep-every", "1s", "--reconcile-after", "5s"}, flags...)
	case "flights":
		datas = []string{"many", "few"}
		for i, n := range []int{loadgen.FlightsMany, loadgen.FlightsFew} {
			if err := fillFlights(ctx, filepath.Join(dir, datas[i]), n, httpd.Now()); err != nil {
				return o, err
			}
		}
	}
	for _, data := range datas {
		s, err := startChild(ctx, childConfig{Dir: dir, Data: data, AdminKey: o.key, Flags: slices.Concat(
			[]string{"--bench-floor", "--payments", "simulator", "--log-level", "warn"}, flags)})
		if s != nil {
			o.servers = append(o.servers, s)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// stop ends the servers and removes their data.
func (o *own) stop() error {
	var err error
	for _, s := range o.servers {
		err = errors.Join(err, s.stop())
	}
	return errors.Join(err, os.RemoveAll(o.dir))
}

// fillFlights makes a database of n flights.
func fillFlights(ctx context.Context, data string, n int, now time.Time) (err error) {
	events, db, err := openCatalog(ctx, Config{Data: data, Synchronous: "normal"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for batch := range slices.Chunk(loadgen.Flights(n, now), catalog.MaxBatch) {
		drafts := make([]catalog.Draft, len(batch))
		one := 1
		for i, f := range batch {
			fare := int64(4_900 + f.Number%400*100)
			drafts[i] = catalog.Draft{
				Kind: catalog.Flight, Slug: fmt.Sprintf("bench-%d", f.Number), Title: fmt.Sprintf("%s–%s HF%d", f.From, f.To, f.Number), Currency: "USD",
				Venue: catalog.Venue{Name: f.From + " airport", City: f.From, Country: "QZ", TimeZone: "UTC"}, StartsAt: f.Departs,
				Origin: f.From, Destination: f.To, Pools: []catalog.PoolDraft{{Pool: flightPool, Capacity: 180, Overbook: 3, Buckets: &one, Price: &fare}},
			}
		}
		taken, err := events.CreateEvents(ctx, drafts)
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			return fmt.Errorf("%d flights are there already", len(taken))
		}
	}
	return nil
}

// syncedWriteMs measures how long the disk takes to keep a page, as a median: durable commits can't be faster, and a folder in memory would flatter them.
// 0: it can't be measured.
func (o *own) syncedWriteMs() float64 {
	f, err := os.CreateTemp(o.dir, "sync-")
	if err != nil {
		return 0
	}
	defer f.Close()
	const tries = 21
	page := make([]byte, 4096)
	var took [tries]time.Duration
	for i := range took {
		started := httpd.Now()
		if _, err := f.Write(page); err != nil {
			return 0
		}
		if err := f.Sync(); err != nil {
			return 0
		}
		took[i] = httpd.Now().Sub(started)
	}
	slices.Sort(took[:])
	return float64(took[tries/2].Microseconds()) / 1000
}

// showProgress writes one line that is kept current on a terminal, else a line every few seconds. The function ends it.
func showProgress(ctx context.Context, w io.Writer, p *loadgen.Progress) func() {
	const onTerminal, elsewhere = 200 * time.Millisecond, 5 * time.Second
	every, terminal := elsewhere, isTerminal(w)
	if terminal {
		every = onTerminal
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		started := httpd.Now()
		for {
			select {
			case <-ctx.Done():
				if terminal {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			line := progressLine(p.Phase(), httpd.Now().Sub(started))
			if terminal {
				fmt.Fprintf(w, "\r\x1b[K%s", line)
			} else {
				fmt.Fprintln(w, line)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func progressLine(at loadgen.Phase, took time.Duration) string {
	what := cmp.Or(at.What, "starting")
	switch n := at.Done(); {
	case at.Total > 0:
		return fmt.Sprintf("%4.0f s  %s: %d of %d (%.0f %%)", took.Seconds(), what, n, at.Total, 100*float64(n)/float64(at.Total))
	case n > 0:
		return fmt.Sprintf("%4.0f s  %s: %d requests", took.Seconds(), what, n)
	default:
		return fmt.Sprintf("%4.0f s  %s", took.Seconds(), what)
	}
}
