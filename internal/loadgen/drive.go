package loadgen

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// driver is one client of a closed loop, with a connection of its own.
type driver struct {
	conn    *conn
	request []byte // reused
	seen    latencies
	status  map[int]int64
	bytes   int64
}

// drivers connects all clients to a server.
func (r *run) drivers(ctx context.Context, host string) ([]*driver, error) {
	all := make([]*driver, r.cfg.Clients)
	for i := range all {
		c, err := dial(ctx, host, r.cfg.Now)
		if err != nil {
			hangUp(all[:i])
			return nil, err
		}
		all[i] = &driver{conn: c, status: map[int]int64{}}
	}
	return all, nil
}

func hangUp(all []*driver) {
	for _, d := range all {
		_ = d.conn.Close() // nothing is in flight
	}
}

// get writes a GET request; more are header lines.
func get(target, more string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: bench\r\n" + more + "\r\n")
}

// ask writes a request of a customer for two seats.
func (d *driver) ask(prefix, event, token string, seats [2]string) []byte {
	const left, middle, right = `{"seats":["`, `","`, `"]}`
	b := d.request[:0]
	b = append(b, "POST "...)
	b = append(append(append(append(b, prefix...), "/v1/events/"...), event...), "/holds HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "...)
	b = append(append(b, token...), "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(left)+len(seats[0])+len(middle)+len(seats[1])+len(right)), 10)
	b = append(append(append(b, "\r\n\r\n"...), left...), seats[0]...)
	b = append(append(append(b, middle...), seats[1]...), right...)
	d.request = b
	return b
}

// load is one side of a round.
type load struct {
	next  func(*driver) []byte        // the next request; nil: nothing is left to ask for
	check func(*driver, answer) error // an error ends the run; may be nil
	want  int                         // status that is good
	time  time.Duration
	done  *atomic.Int64
}

// drive runs a closed loop and measures it.
func (r *run) drive(ctx context.Context, all []*driver, l load) (Measure, error) {
	for _, d := range all {
		d.seen, d.bytes = latencies{}, 0
		clear(d.status)
	}
	g, ctx := errgroup.WithContext(ctx)
	started := r.cfg.Now()
	end := started.Add(l.time)
	for _, d := range all {
		g.Go(func() error {
			at := r.cfg.Now()
			for at.Before(end) {
				request := l.next(d)
				if request == nil {
					return nil
				}
				a, err := d.conn.do(ctx, request)
				if err != nil {
					return err
				}
				now := r.cfg.Now()
				d.seen.add(now.Sub(at))
				d.status[a.status]++
				d.bytes += int64(len(a.body))
				if a.status != l.want && d.status[a.status] == 1 {
					r.odd.CompareAndSwap(nil, &oddAnswer{a.status, string(a.body[:min(len(a.body), 500)])})
				}
				if l.check != nil {
					if err := l.check(d, a); err != nil {
						return err
					}
				}
				l.done.Add(1)
				at = now
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Measure{}, err
	}
	return measured(all, r.cfg.Now().Sub(started)), nil
}

// oddAnswer is one that a scenario does not expect, kept to be shown.
type oddAnswer struct {
	status int
	body   string
}

func measured(all []*driver, took time.Duration) Measure {
	var seen latencies
	m := Measure{Seconds: took.Seconds(), Statuses: map[string]int64{}}
	for _, d := range all {
		seen.merge(&d.seen)
		m.Bytes += d.bytes
		for status, n := range d.status {
			m.Statuses[strconv.Itoa(status)] += n
		}
	}
	m.Requests = int64(seen.n)
	m.PerSecond = float64(m.Requests) / m.Seconds
	m.P50Ms, m.P99Ms, m.MaxMs = millis(seen.quantile(0.5)), millis(seen.quantile(0.99)), millis(seen.most)
	return m
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// compare measures server and floor in turn, for as many rounds as were asked for, after a warm-up that does not count.
func (r *run) compare(ctx context.Context, all []*driver, server, floor load, before func(ctx context.Context, round int) error) error {
	const warm = 500 * time.Millisecond
	for i := -1; i < r.cfg.Rounds; i++ {
		if err := before(ctx, i); err != nil {
			return err
		}
		what := fmt.Sprintf("round %d of %d", i+1, r.cfg.Rounds)
		server.time, floor.time = r.cfg.Duration, r.cfg.Duration
		if i < 0 {
			what, server.time, floor.time = "warming up", min(warm, r.cfg.Duration), min(warm, r.cfg.Duration)
		}
		done := r.phase(what, 0)
		server.done, floor.done = done, done
		from, err := r.countersIf(ctx)
		if err != nil {
			return err
		}
		var round Round
		if round.Server, err = r.drive(ctx, all, server); err != nil {
			return err
		}
		to, err := r.countersIf(ctx)
		if err != nil {
			return err
		}
		r.count(&round, from, to)
		if r.floor {
			m, err := r.drive(ctx, all, floor)
			if err != nil {
				return err
			}
			round.Floor = &m
			round.Ratio = round.Server.PerSecond / m.PerSecond
			r.onlyStatus("the floor", m, floor.want)
		}
		r.onlyStatus("the server", round.Server, server.want)
		if i >= 0 {
			r.report.Rounds = append(r.report.Rounds, round)
		}
	}
	return nil
}

func (r *run) countersIf(ctx context.Context) (counters, error) {
	if r.report.Idle == nil {
		return counters{}, nil
	}
	return r.counters(ctx)
}

// count works out what the server's database did for a round, less what it does anyway.
func (r *run) count(round *Round, from, to counters) {
	if r.report.Idle == nil {
		return
	}
	idle := r.report.Idle
	d := &Database{
		Commits: to.since(from, metricCommits), Statements: to.since(from, metricStatements),
		IdleCommits: idle.Commits * round.Server.Seconds, IdleStatements: idle.Statements * round.Server.Seconds,
		EarlyRefusals: to.since(from, metricEarly),
	}
	if n := float64(round.Server.Requests); n > 0 {
		d.CommitsPerRequest = max(0, d.Commits-d.IdleCommits) / n
		d.StatementsPerRequest = max(0, d.Statements-d.IdleStatements) / n
	}
	if n := to.since(from, metricBatches); n > 0 {
		d.BatchMean = to.since(from, metricBatched) / n
	}
	round.Database = d
}

func (r *run) onlyStatus(who string, m Measure, want int) {
	for status, n := range m.Statuses {
		if status == strconv.Itoa(want) {
			continue
		}
		text := ""
		if odd := r.odd.Load(); odd != nil {
			text = ", such as " + strconv.Itoa(odd.status) + " " + odd.body
		}
		r.fail("%s answered %d times %s instead of %d%s", who, n, status, want, text)
	}
}
