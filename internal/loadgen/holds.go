package loadgen

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-project/holdfast/api/client"
)

const (
	stadiumSeats = 50_000
	// fewestCustomers so that no customer reaches placesPerCustomer, however few clients there are.
	fewestCustomers = 64
	firstRate       = 20_000 // holds a second that the first round prepares for
)

// stock gives every pair of seats out once, one event after the other, so that all clients are at the same event: a rush.
type stock struct {
	houses []*house
	next   atomic.Int64
}

func (s *stock) left() int64 {
	return int64(len(s.houses)*len(s.houses[0].pairs)) - s.next.Load()
}

func (s *stock) take() (i int64, event string, pair [2]string, ok bool) {
	i = s.next.Add(1) - 1
	per := int64(len(s.houses[0].pairs))
	if i >= per*int64(len(s.houses)) {
		return i, "", pair, false
	}
	h := s.houses[i/per]
	return i, h.id, h.pairs[i%per], true
}

// holds measures what the engine is for: two seats held, durably, as fast as can be.
func holds(ctx context.Context, r *run) error {
	hall, err := r.buildHall(ctx, stadiumSeats)
	if err != nil {
		return err
	}
	first, err := r.open(ctx, hall, priceCents, wide())
	if err != nil {
		return err
	}
	s := &stock{houses: []*house{first}}
	tokens, err := r.sessions(ctx, max(r.cfg.Clients, fewestCustomers))
	if err != nil {
		return err
	}
	if err := r.watchIdle(ctx); err != nil {
		return err
	}
	all, err := r.drivers(ctx, r.host)
	if err != nil {
		return err
	}
	defer hangUp(all)
	placed := atomic.Int64{}
	server := load{
		want: http.StatusCreated,
		next: func(d *driver) []byte {
			i, event, pair, ok := s.take()
			if !ok {
				return nil
			}
			return d.ask("", event, tokens[i%int64(len(tokens))], pair)
		},
		check: func(_ *driver, a answer) error {
			if a.status == http.StatusCreated {
				placed.Add(1)
			}
			return nil
		},
	}
	turn := atomic.Int64{}
	floor := load{
		want: http.StatusCreated,
		next: func(d *driver) []byte {
			i := turn.Add(1)
			return d.ask(FloorPlace, first.id, tokens[i%int64(len(tokens))], first.pairs[i%int64(len(first.pairs))])
		},
	}
	rate := float64(firstRate)
	err = r.compare(ctx, all, server, floor, func(ctx context.Context, _ int) error {
		for _, done := range r.report.Rounds {
			rate = max(rate, done.Server.PerSecond)
		}
		need := int64(1.5 * rate * r.cfg.Duration.Seconds())
		for s.left() < need {
			r.phase(fmt.Sprintf("making event %d", len(s.houses)+1), 0)
			h, err := r.open(ctx, hall, priceCents, wide())
			if err != nil {
				return err
			}
			s.houses = append(s.houses, h)
			// Nobody's first look at an event is measured: its picture is made at the first question.
			if _, _, err := r.api.Availability(ctx, h.id, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.left() < 0 {
		r.note("the seats did not last: the last clients of a round had nothing left to ask for")
	}
	held := int64(0)
	for _, h := range s.houses {
		stats, err := r.admin.Stats(ctx, h.id)
		if err != nil {
			return err
		}
		held += stats.Total.Held
	}
	if held != 2*placed.Load() {
		r.fail("%d holds of two seats were answered 201, and %d seats are held", placed.Load(), held)
	}
	r.report.ratios()
	if r.report.Ratio != nil {
		r.report.atLeast("holds, server by floor (median)", r.report.Ratio.Median, 0.5)
	}
	if r.report.Idle != nil {
		r.report.atMost("commits per hold (median)", r.median(func(d *Database) float64 { return d.CommitsPerRequest }), 0.05, "")
		r.report.figure("statements per hold (median)", r.median(func(d *Database) float64 { return d.StatementsPerRequest }), "")
		r.report.figure("commands per batch (median of means)", r.median(func(d *Database) float64 { return d.BatchMean }), "")
	}
	return nil
}

func (r *run) median(value func(*Database) float64) float64 {
	return spread(of(r.report.Rounds, func(x Round) (float64, bool) {
		if x.Database == nil {
			return 0, false
		}
		return value(x.Database), true
	})).Median
}

const soldOutSeats = 200

// refusals measures the cheapest and most frequent answer of a sale: gone.
func refusals(ctx context.Context, r *run) error {
	hall, err := r.buildHall(ctx, soldOutSeats)
	if err != nil {
		return err
	}
	h, err := r.open(ctx, hall, 0, wide()) // for nothing: no provider is needed to sell it
	if err != nil {
		return err
	}
	if err := r.sellAll(ctx, h); err != nil {
		return err
	}
	tokens, err := r.sessions(ctx, max(r.cfg.Clients, fewestCustomers))
	if err != nil {
		return err
	}
	if err := r.watchIdle(ctx); err != nil {
		return err
	}
	all, err := r.drivers(ctx, r.host)
	if err != nil {
		return err
	}
	defer hangUp(all)
	turn := atomic.Int64{}
	ask := func(prefix string) load {
		return load{want: http.StatusConflict, next: func(d *driver) []byte {
			i := turn.Add(1)
			return d.ask(prefix, h.id, tokens[i%int64(len(tokens))], h.pairs[i%int64(len(h.pairs))])
		}}
	}
	if err := r.compare(ctx, all, ask(""), ask(FloorRefuse), func(context.Context, int) error { return nil }); err != nil {
		return err
	}
	r.report.ratios()
	if r.report.Ratio != nil {
		r.report.atLeast("refusals, server by floor (median)", r.report.Ratio.Median, 0.9)
	}
	if r.report.Idle == nil {
		return nil
	}
	// A loop that runs every few seconds may fall into a round and not into the idle window: that is told from a statement a refusal by its size.
	const noise = 0.001
	statements := r.median(func(d *Database) float64 { return d.StatementsPerRequest })
	r.report.atMost("database statements per refusal (median)", statements, noise, "")
	if statements > noise {
		r.fail("a refusal costs %.4f database statements", statements)
	}
	r.report.figure("refused from memory (all rounds)", sum(r.report.Rounds, func(x Round) float64 { return x.Database.EarlyRefusals }), "")
	return nil
}

func sum[T any](all []T, value func(T) float64) float64 {
	total := 0.0
	for _, x := range all {
		total += value(x)
	}
	return total
}

// sellAll books every seat of a house.
func (r *run) sellAll(ctx context.Context, h *house) error {
	const perHold = 8
	s, err := r.api.NewSession(ctx)
	if err != nil {
		return err
	}
	me := r.api.As(s)
	done := r.phase("selling out", int64(len(h.seats)))
	for at := 0; at < len(h.seats); at += perHold {
		hold, err := me.PlaceHold(ctx, h.id, client.HoldRequest{Seats: h.seats[at:min(at+perHold, len(h.seats))]})
		if err != nil {
			return err
		}
		p, err := me.Checkout(ctx, hold.HoldID, client.CheckoutRequest{Email: "bench@example.org", Name: "Bench"})
		if err != nil {
			return err
		}
		if p.Status != "succeeded" {
			return fmt.Errorf("seats that cost nothing are not booked at once: the payment is %s", p.Status)
		}
		done.Add(perHold)
	}
	return nil
}
