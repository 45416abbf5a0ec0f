package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// counters are the server's counts at an instant, as /metrics shows them (the text format of Prometheus, version 0.0.4).
type counters map[string]float64

// Names of the metrics that are looked at.
const (
	metricCommits    = "holdfast_db_commits_total"
	metricStatements = "holdfast_db_statements_total"
	metricBatches    = "holdfast_batch_commands_count"
	metricBatched    = "holdfast_batch_commands_sum"
	metricEarly      = "holdfast_early_refusals_total"
	metricNotices    = "holdfast_payment_notices_total"
	metricExpired    = "holdfast_holds_expired_total"
)

const maxMetrics = 4 << 20 // bytes of an answer of /metrics

func (r *run) counters(ctx context.Context) (counters, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.Ops+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	w, err := r.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, maxMetrics))
	if err != nil {
		return nil, err
	}
	if w.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics is answered %s", w.Status)
	}
	return parseCounters(text), nil
}

// parseCounters keeps every sample under its name and labels as they are written, and adds samples that differ only in labels under the bare name.
func parseCounters(text []byte) counters {
	all := counters{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ') // no timestamps are written
		if at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			continue
		}
		sample := line[:at]
		if name, _, labelled := strings.Cut(sample, "{"); labelled {
			all[name] += value
		}
		all[sample] += value
	}
	return all
}

// labelled lists the samples of a metric by the value of its only label.
func (c counters) labelled(name string) map[string]float64 {
	out := map[string]float64{}
	for sample, value := range c {
		rest, ok := strings.CutPrefix(sample, name+"{")
		if !ok {
			continue
		}
		_, label, _ := strings.Cut(rest, `="`)
		label, _, _ = strings.Cut(label, `"`)
		out[label] += value
	}
	return out
}

// since is what a counter grew by.
func (c counters) since(before counters, name string) float64 { return c[name] - before[name] }

// idle is what the server's background loops do by themselves, a second.
type idle struct {
	Commits    float64 `json:"commitsPerSecond"`
	Statements float64 `json:"statementsPerSecond"`
	Seconds    float64 `json:"seconds"` // how long it was watched
}

// idleWindow is long enough to see every loop that runs more often than every five seconds.
const idleWindow = 5 * time.Second

// watchIdle measures the background while nothing is asked.
func (r *run) watchIdle(ctx context.Context) error {
	before, err := r.counters(ctx)
	if err != nil {
		r.note("the server's counters are not shown (%v): no figures per commit and statement", err)
		return nil
	}
	started := r.cfg.Now()
	r.phase("watching the idle server", 0)
	if err := pause(ctx, idleWindow); err != nil {
		return err
	}
	after, err := r.counters(ctx)
	if err != nil {
		return err
	}
	seconds := r.cfg.Now().Sub(started).Seconds()
	r.report.Idle = &idle{
		Commits: after.since(before, metricCommits) / seconds, Statements: after.since(before, metricStatements) / seconds, Seconds: seconds,
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
