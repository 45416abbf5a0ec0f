package loadgen

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what a run measured and found. Its JSON names stay as they are.
type Report struct {
	Scenario    string      `json:"scenario"`
	Goal        string      `json:"goal"`
	OK          bool        `json:"ok"`
	StartedAt   time.Time   `json:"startedAt"`
	Seconds     float64     `json:"seconds"`
	Environment Environment `json:"environment"`
	Settings    Settings    `json:"settings"`

	Rounds []Round  `json:"rounds,omitempty"`
	Server *Summary `json:"server,omitempty"`
	Floor  *Summary `json:"floor,omitempty"`
	Ratio  *Spread  `json:"ratio,omitempty"` // server by floor, of each round
	Idle   *idle    `json:"idle,omitempty"`

	Figures  []Figure      `json:"figures"`
	Audits   []AuditResult `json:"audits"`
	Failures []string      `json:"failures"` // promises that were broken
	Notes    []string      `json:"notes"`
}

// Environment is what the figures were measured on.
type Environment struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Go     string `json:"go"`
	System string `json:"system"`
	Commit string `json:"commit"`
	// SyncedWriteMs is how long the disk of an own server's database takes to keep 4 kB; 0: not measured.
	SyncedWriteMs float64 `json:"syncedWriteMs"`
}

// Settings of a run.
type Settings struct {
	Target          string  `json:"target"`
	Clients         int     `json:"clients"`
	Rounds          int     `json:"rounds"`
	DurationSeconds float64 `json:"durationSeconds"`
	Seed            uint64  `json:"seed"`
}

// Round is one measurement of the server and, right after it, of its floor.
type Round struct {
	Server   Measure   `json:"server"`
	Floor    *Measure  `json:"floor,omitempty"`
	Few      *Measure  `json:"few,omitempty"` // flights: the server that has few events
	Ratio    float64   `json:"ratio,omitempty"`
	RatioFew float64   `json:"ratioFew,omitempty"` // server by few
	Database *Database `json:"database,omitempty"`
}

// Measure is one side of a round.
type Measure struct {
	Seconds   float64          `json:"seconds"`
	Requests  int64            `json:"requests"`
	PerSecond float64          `json:"perSecond"`
	P50Ms     float64          `json:"p50Ms"`
	P99Ms     float64          `json:"p99Ms"`
	MaxMs     float64          `json:"maxMs"`
	Bytes     int64            `json:"bytes"` // of bodies, as they travelled
	Statuses  map[string]int64 `json:"statuses"`
}

// Database is what the server's database did while the server was measured, by the server's own counters.
type Database struct {
	Commits              float64 `json:"commits"`
	Statements           float64 `json:"statements"`
	IdleCommits          float64 `json:"idleCommits"` // what background loops do in that time
	IdleStatements       float64 `json:"idleStatements"`
	CommitsPerRequest    float64 `json:"commitsPerRequest"` // without those
	StatementsPerRequest float64 `json:"statementsPerRequest"`
	BatchMean            float64 `json:"batchMean"` // commands in a batch
	EarlyRefusals        float64 `json:"earlyRefusals"`
}

// Spread of a figure over rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Summary is a side of all rounds.
type Summary struct {
	PerSecond Spread `json:"perSecond"`
	P50Ms     Spread `json:"p50Ms"`
	P99Ms     Spread `json:"p99Ms"`
}

// Figure is anything else that was counted.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Goal  string  `json:"goal,omitempty"`
	Met   *bool   `json:"met,omitempty"`
}

// AuditResult of one event.
type AuditResult struct {
	Event      string `json:"event"`
	OK         bool   `json:"ok"`
	Violations int    `json:"violations"`
}

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Min: v[0], Median: (v[(n-1)/2] + v[n/2]) / 2, Max: v[n-1]}
}

func of[T any](all []T, value func(T) (float64, bool)) []float64 {
	var out []float64
	for _, one := range all {
		if v, ok := value(one); ok {
			out = append(out, v)
		}
	}
	return out
}

func summary(measures []Measure) *Summary {
	if len(measures) == 0 {
		return nil
	}
	by := func(value func(Measure) float64) Spread {
		return spread(of(measures, func(m Measure) (float64, bool) { return value(m), true }))
	}
	return &Summary{
		PerSecond: by(func(m Measure) float64 { return m.PerSecond }),
		P50Ms:     by(func(m Measure) float64 { return m.P50Ms }), P99Ms: by(func(m Measure) float64 { return m.P99Ms }),
	}
}

// ratios sums the rounds up.
func (r *Report) ratios() {
	var server, floor []Measure
	for _, round := range r.Rounds {
		server = append(server, round.Server)
		if round.Floor != nil {
			floor = append(floor, *round.Floor)
		}
	}
	r.Server, r.Floor = summary(server), summary(floor)
	if len(floor) > 0 {
		s := spread(of(r.Rounds, func(x Round) (float64, bool) { return x.Ratio, x.Floor != nil }))
		r.Ratio = &s
	}
}

// atLeast and atMost add a figure with its goal; what must be at least something is always a ratio. A goal that is missed is shown and fails nothing: how fast a machine is, is no promise.
func (r *Report) atLeast(name string, value, goal float64) {
	met := value >= goal
	r.Figures = append(r.Figures, Figure{Name: name, Value: value, Unit: "x", Goal: fmt.Sprintf(">= %g", goal), Met: &met})
}

func (r *Report) atMost(name string, value, goal float64, unit string) {
	met := value <= goal
	r.Figures = append(r.Figures, Figure{Name: name, Value: value, Unit: unit, Goal: fmt.Sprintf("<= %g", goal), Met: &met})
}

func (r *Report) figure(name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{Name: name, Value: value, Unit: unit})
}

func (r *Report) finish() {
	r.ratios()
	if r.Figures == nil {
		r.Figures = []Figure{}
	}
	r.OK = len(r.Failures) == 0
}

// WriteJSON writes the report.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Scenario, r.Goal)
	fmt.Fprintf(&b, "  %d clients, seed %d, %.1f s; %s, %d cores, %s, %s, commit %s\n",
		r.Settings.Clients, r.Settings.Seed, r.Seconds, r.Environment.CPU, r.Environment.Cores, r.Environment.System, r.Environment.Go, r.Environment.Commit)
	if ms := r.Environment.SyncedWriteMs; ms > 0 {
		fmt.Fprintf(&b, "  a synced write of 4 kB to the database's disk takes %.3f ms\n", ms)
	}
	if r.Server != nil {
		b.WriteString("\n               per second                       p50 ms    p99 ms   (min / median / max over the rounds)\n")
		for _, side := range []struct {
			name string
			s    *Summary
		}{{"server", r.Server}, {"floor", r.Floor}} {
			if side.s != nil {
				p := side.s.PerSecond
				fmt.Fprintf(&b, "  %-9s %9.0f / %9.0f / %9.0f %9.2f %9.2f\n", side.name, p.Min, p.Median, p.Max, side.s.P50Ms.Median, side.s.P99Ms.Median)
			}
		}
		if r.Ratio != nil {
			fmt.Fprintf(&b, "  ratio     %9.3f / %9.3f / %9.3f\n", r.Ratio.Min, r.Ratio.Median, r.Ratio.Max)
		}
	}
	if len(r.Figures) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "  %-38s %14s %s", f.Name, number(f.Value), f.Unit)
		if f.Met != nil {
			fmt.Fprintf(&b, "  (goal %s: %s)", f.Goal, map[bool]string{true: "met", false: "NOT met"}[*f.Met])
		}
		b.WriteByte('\n')
	}
	if statuses := r.statuses(); len(statuses) > 0 {
		b.WriteString("  answers:")
		for _, status := range slices.Sorted(maps.Keys(statuses)) {
			fmt.Fprintf(&b, " %s x %d", status, statuses[status])
		}
		b.WriteByte('\n')
	}
	if r.Idle != nil {
		fmt.Fprintf(&b, "  background while idle: %.2f commits/s, %.2f statements/s (watched %.0f s, subtracted)\n", r.Idle.Commits, r.Idle.Statements, r.Idle.Seconds)
	}
	bad := 0
	for _, a := range r.Audits {
		if !a.OK {
			bad++
		}
	}
	fmt.Fprintf(&b, "  audit of %d events: %d with violations\n", len(r.Audits), bad)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "  BROKEN: %s\n", f)
	}
	b.WriteString(map[bool]string{true: "ok\n", false: "FAILED\n"}[r.OK])
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) statuses() map[string]int64 {
	all := map[string]int64{}
	for _, round := range r.Rounds {
		for status, n := range round.Server.Statuses {
			all[status] += n
		}
	}
	return all
}

// number shows a figure with the digits that mean something.
func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v < 1:
		return fmt.Sprintf("%.5f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
