// Package loadgen drives a server over HTTP: scenarios of a crowd, what they must show, a floor to compare each with, and the audit at the end.
//
// A scenario's load is a closed loop: a fixed number of clients, each of which asks again when it has its answer. The floor is a handler of the same
// program under /bench/floor that authenticates, parses the same request and answers the same bytes, without engine, board or database. Both are measured
// in turn in the same run, round by round, so that whatever else the machine does meets both; the ratio is of neighbours in time.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/api/client"
)

// Limits of a run.
const (
	MaxClients  = 4_096
	MaxRounds   = 1_000
	MaxDuration = 10 * time.Minute // of one side of a round
)

// Config of a run. Zero numbers take the scenario's own.
type Config struct {
	Target   string // the server, such as http://127.0.0.1:8080
	Ops      string // where /metrics is; empty: Target
	Few      string // flights only: a second server that has FlightsFew events, where Target has FlightsMany
	AdminKey string

	Clients  int
	Rounds   int
	Duration time.Duration // of one side of a round
	Seed     uint64

	// Stadium makes a layout's document with exactly so many seats, and a price band "Category 1" and perhaps more.
	Stadium  func(seats int) (document []byte, err error)
	Now      func() time.Time
	Progress *Progress // may be nil
}

// Progress is where a run is, for whoever wants to show it.
type Progress struct{ at atomic.Pointer[Phase] }

// Phase is a part of a run.
type Phase struct {
	What  string
	Done  func() int64
	Total int64 // 0: not known
}

// Phase tells what is being done; the zero Phase before the start.
func (p *Progress) Phase() Phase {
	if at := p.at.Load(); at != nil {
		return *at
	}
	return Phase{Done: func() int64 { return 0 }}
}

// Scenario is a load and what it must show.
type Scenario struct {
	Name, Short, Goal string

	clients, rounds int
	duration        time.Duration
	run             func(context.Context, *run) error
}

// Scenarios lists all.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "holds", Short: "Two seats side by side, each asked for once, from events of 50,000 seats",
			Goal:    "at least 0.5 of the floor with synchronous=FULL, and at most 0.05 commits a hold at 256 clients",
			clients: 256, rounds: 5, duration: 3 * time.Second, run: holds,
		},
		{
			Name: "refusals", Short: "Taken seats of a sold-out event",
			Goal:    "at least 0.9 of the floor, and no database statement for a refusal",
			clients: 64, rounds: 5, duration: 3 * time.Second, run: refusals,
		},
		{
			Name: "seatmap", Short: "The availability of 50,000 seats, compressed, while a trickle of holds changes it",
			Goal:    "at least 0.9 of the floor",
			clients: 64, rounds: 5, duration: 3 * time.Second, run: seatmap,
		},
		{
			Name: "lastseat", Short: "All clients ask for the same seat at the same instant, a new seat every round",
			Goal:    "each round one 201, and 409 for everyone else",
			clients: 500, rounds: 50, run: lastseat,
		},
		{
			Name: "sellout", Short: "50,000 seats to 100,000 customers who abandon, release, fail to pay, pay late, twice, or are never told of",
			Goal:    "within 10 minutes: every seat sold once, every payment ends in one booking or one refund",
			clients: 512, rounds: 1, run: sellout,
		},
		{
			Name: "flights", Short: "Search by origin, destination and date, no query twice within the memory of results, among 1,000 and 100,000 flights",
			Goal:    "at least 0.3 of the floor, and among 100,000 at least 0.8 of among 1,000",
			clients: 64, rounds: 5, duration: 3 * time.Second, run: flights,
		},
	}
}

// Errors of what is asked for.
var (
	ErrScenario = errors.New("no such scenario")
	ErrConfig   = errors.New("such a run can't be made")
)

// Find gives a scenario by name; ErrScenario.
func Find(name string) (Scenario, error) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("%w: %q", ErrScenario, name)
}

// run is one scenario on its way.
type run struct {
	cfg    Config
	report *Report
	host   string // of the target, with its port
	http   *http.Client
	api    *client.Client
	admin  client.Admin
	tag    string // makes the slugs of this run unlike those of others
	events []string
	floor  bool // the target has floors
	odd    atomic.Pointer[oddAnswer]
	mu     sync.Mutex // of the report's failures
}

// Check says what is wrong with a configuration, before a server is started for it; an empty target is left out. Error: ErrConfig.
func (s Scenario) Check(cfg Config) error {
	switch {
	case cfg.Clients < 0 || cfg.Clients > MaxClients:
		return fmt.Errorf("%w: clients are 1 to %d", ErrConfig, MaxClients)
	case cfg.Rounds < 0 || cfg.Rounds > MaxRounds:
		return fmt.Errorf("%w: rounds are 1 to %d", ErrConfig, MaxRounds)
	case cfg.Duration < 0 || cfg.Duration > MaxDuration:
		return fmt.Errorf("%w: a side of a round lasts at most %v", ErrConfig, MaxDuration)
	case cfg.Target == "":
		return nil
	case s.Name == "flights" && cfg.Few == "":
		return fmt.Errorf("%w: flights needs two servers that were filled for it; leave the target out", ErrConfig)
	}
	_, err := hostOf(cfg.Target)
	return err
}

// hostOf is the host of a server's address, with its port.
func hostOf(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return "", fmt.Errorf("%w: the target %q is not http://host:port", ErrConfig, target)
	}
	if u.Port() == "" {
		return u.Host + ":80", nil
	}
	return u.Host, nil
}

// Run drives a scenario and reports. The error is only for what kept it from running; what the scenario found wrong is in the report.
func (s Scenario) Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := s.Check(cfg); err != nil {
		return nil, err
	}
	if cfg.Clients == 0 {
		cfg.Clients = s.clients
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = s.rounds
	}
	if cfg.Duration == 0 {
		cfg.Duration = s.duration
	}
	if cfg.Ops == "" {
		cfg.Ops = cfg.Target
	}
	if cfg.Progress == nil {
		cfg.Progress = &Progress{}
	}
	r, err := newRun(s, cfg)
	if err != nil {
		return nil, err
	}
	defer r.http.CloseIdleConnections()
	started := cfg.Now()
	if r.floor, err = r.hasFloor(ctx); err != nil {
		return nil, fmt.Errorf("the server does not answer: %w", err)
	}
	if !r.floor {
		r.note("the server has no floors (serve --bench-floor): nothing to compare with")
	}
	if err := s.run(ctx, r); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := r.audit(ctx); err != nil {
		return nil, err
	}
	r.report.Seconds = cfg.Now().Sub(started).Seconds()
	r.report.finish()
	return r.report, nil
}

func newRun(s Scenario, cfg Config) (*run, error) {
	host, err := hostOf(cfg.Target)
	if err != nil {
		return nil, err
	}
	r := &run{
		cfg: cfg, host: host, tag: fmt.Sprintf("bench-%s-%d", s.Name, cfg.Now().UnixMilli()),
		http: &http.Client{Timeout: client.DefaultTimeout, Transport: client.NewTransport(cfg.Clients)},
		report: &Report{
			Scenario: s.Name, Goal: s.Goal, StartedAt: cfg.Now().UTC(), Audits: []AuditResult{}, Failures: []string{}, Notes: []string{},
			Settings: Settings{Target: cfg.Target, Clients: cfg.Clients, Rounds: cfg.Rounds, DurationSeconds: cfg.Duration.Seconds(), Seed: cfg.Seed},
		},
	}
	if r.api, err = client.New(cfg.Target, client.WithHTTPClient(r.http), client.WithRetries(0)); err != nil {
		return nil, err
	}
	r.admin = r.api.Admin(cfg.AdminKey)
	return r, nil
}

// FloorPath is under which path the floors are. The rest of the path is the floor's name and the path of the request that it stands for.
const FloorPath = "/bench/floor"

// The floors.
const (
	FloorPlace  = FloorPath + "/place"  // holds are placed, without being kept
	FloorRefuse = FloorPath + "/refuse" // holds are refused: all seats asked for are gone
	FloorReplay = FloorPath + "/replay" // GETs are answered with bytes that were made before
)

func (r *run) hasFloor(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.Target+FloorPath, nil)
	if err != nil {
		return false, err
	}
	w, err := r.http.Do(q)
	if err != nil {
		return false, err
	}
	return w.StatusCode == http.StatusNoContent, w.Body.Close()
}

// phase says what is being done now; done counts it.
func (r *run) phase(what string, total int64) *atomic.Int64 {
	var done atomic.Int64
	r.cfg.Progress.at.Store(&Phase{What: what, Done: done.Load, Total: total})
	return &done
}

func (r *run) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// fail says that a promise was broken. A hundred say enough.
func (r *run) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Failures) < 100 {
		r.report.Failures = append(r.report.Failures, fmt.Sprintf(format, args...))
	}
}

// audit asks the server to recompute the promises of every event that was used.
func (r *run) audit(ctx context.Context) error {
	done := r.phase("audit", int64(len(r.events)))
	for _, event := range r.events {
		a, err := r.admin.Audit(ctx, event)
		if err != nil {
			return fmt.Errorf("audit of %s: %w", event, err)
		}
		result := AuditResult{Event: event, OK: a.OK, Violations: len(a.Violations)}
		for _, v := range a.Violations {
			r.fail("audit of %s: %s: %s", event, v.Rule, v.Detail)
		}
		if !a.OK && len(a.Violations) == 0 {
			r.fail("audit of %s is not ok", event)
		}
		r.report.Audits = append(r.report.Audits, result)
		done.Add(1)
	}
	return nil
}
