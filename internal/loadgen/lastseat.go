package loadgen

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"
)

// lastseat lets everybody ask for the same seat at the same instant, one seat a round.
func lastseat(ctx context.Context, r *run) error {
	hall, err := r.buildHall(ctx, max(soldOutSeats, r.cfg.Rounds))
	if err != nil {
		return err
	}
	h, err := r.open(ctx, hall, priceCents, wide())
	if err != nil {
		return err
	}
	tokens, err := r.sessions(ctx, r.cfg.Clients)
	if err != nil {
		return err
	}
	all, err := r.drivers(ctx, r.host)
	if err != nil {
		return err
	}
	defer hangUp(all)
	done := r.phase("rounds", int64(r.cfg.Rounds))
	for i := range r.cfg.Rounds {
		seat := h.seats[i]
		m, err := r.burst(ctx, all, func(d *driver, no int) []byte { return askOne(d, "", h.id, tokens[no], seat) })
		if err != nil {
			return err
		}
		round := Round{Server: m}
		if won, lost := m.Statuses["201"], m.Statuses["409"]; won != 1 || lost != int64(r.cfg.Clients-1) {
			r.fail("seat %s: %v instead of one 201 and %d times 409", seat, m.Statuses, r.cfg.Clients-1)
		}
		if r.floor {
			m, err := r.burst(ctx, all, func(d *driver, no int) []byte { return askOne(d, FloorRefuse, h.id, tokens[no], seat) })
			if err != nil {
				return err
			}
			round.Floor, round.Ratio = &m, round.Server.PerSecond/m.PerSecond
			r.onlyStatus("the floor", m, http.StatusConflict)
		}
		r.report.Rounds = append(r.report.Rounds, round)
		done.Add(1)
	}
	stats, err := r.admin.Stats(ctx, h.id)
	if err != nil {
		return err
	}
	if stats.Total.Held != int64(r.cfg.Rounds) {
		r.fail("%d seats are held after %d rounds", stats.Total.Held, r.cfg.Rounds)
	}
	r.report.figure("rounds with exactly one winner", float64(r.cfg.Rounds-len(r.report.Failures)), fmt.Sprintf("of %d", r.cfg.Rounds))
	return nil
}

// burst lets every client send one request at the same instant.
func (r *run) burst(ctx context.Context, all []*driver, ask func(d *driver, no int) []byte) (Measure, error) {
	gate := make(chan struct{})
	var ready sync.WaitGroup
	g, ctx := errgroup.WithContext(ctx)
	for no, d := range all {
		d.seen, d.bytes = latencies{}, 0
		clear(d.status)
		ready.Add(1)
		g.Go(func() error {
			request := ask(d, no)
			ready.Done()
			<-gate
			at := r.cfg.Now()
			a, err := d.conn.do(ctx, request)
			if err != nil {
				return err
			}
			d.seen.add(r.cfg.Now().Sub(at))
			d.status[a.status]++
			d.bytes += int64(len(a.body))
			return nil
		})
	}
	ready.Wait()
	started := r.cfg.Now()
	close(gate)
	if err := g.Wait(); err != nil {
		return Measure{}, err
	}
	return measured(all, r.cfg.Now().Sub(started)), nil
}

func askOne(d *driver, prefix, event, token, seat string) []byte {
	body := `{"seats":["` + seat + `"]}`
	d.request = fmt.Appendf(d.request[:0],
		"POST %s/v1/events/%s/holds HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		prefix, event, token, len(body), body)
	return d.request
}
