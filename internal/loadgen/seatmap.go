package loadgen

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-project/holdfast/api/client"
)

// trickleEvery is how often two seats are taken while maps are read: the picture changes as often as it can.
const trickleEvery = 50 * time.Millisecond

// seatmap measures what everybody looks at all the time.
func seatmap(ctx context.Context, r *run) error {
	hall, err := r.buildHall(ctx, stadiumSeats)
	if err != nil {
		return err
	}
	h, err := r.open(ctx, hall, priceCents, wide())
	if err != nil {
		return err
	}
	if err := r.prefill(ctx, h); err != nil {
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
	look := func(prefix string) load {
		request := get(prefix+"/v1/events/"+h.id+"/availability", "Accept-Encoding: gzip\r\n")
		return load{
			want: http.StatusOK, next: func(*driver) []byte { return request },
			check: func(d *driver, a answer) error {
				const often = 500 // looking into every answer would cost what the server needs
				if d.seen.n%often == 1 && a.status == http.StatusOK {
					return checkMap(a, len(h.seats))
				}
				return nil
			},
		}
	}
	g, background := errgroup.WithContext(ctx)
	background, stop := context.WithCancel(background)
	defer stop()
	var held atomic.Int64
	g.Go(func() error { return r.trickle(background, h, &held) })
	err = r.compare(ctx, all, look(""), look(FloorReplay), func(context.Context, int) error { return nil })
	stop()
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	r.report.ratios()
	if r.report.Ratio != nil {
		r.report.atLeast("seat maps, server by floor (median)", r.report.Ratio.Median, 0.9)
	}
	body := spread(of(r.report.Rounds, func(x Round) (float64, bool) {
		return float64(x.Server.Bytes) / float64(x.Server.Requests), x.Server.Requests > 0
	}))
	r.report.figure("bytes of a map, compressed (median)", body.Median, "B")
	r.report.figure("holds placed meanwhile", float64(held.Load()), "")
	if r.report.Idle != nil {
		r.report.figure("database statements per map, the holds' included", r.median(func(d *Database) float64 { return d.StatementsPerRequest }), "")
	}
	return nil
}

// prefill takes a third of the seats here and there, as in a sale: an empty map is compressed to nothing.
func (r *run) prefill(ctx context.Context, h *house) error {
	s, err := r.api.NewSession(ctx)
	if err != nil {
		return err
	}
	me := r.api.As(s)
	want := len(h.pairs) / 3
	order := rand.New(rand.NewPCG(r.cfg.Seed, 0)).Perm(len(h.pairs))
	done := r.phase("filling the house", int64(want))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range want / 4 {
		if i%1_000 == 999 { // places of one customer are limited
			if s, err = r.api.NewSession(ctx); err != nil {
				return err
			}
			me = r.api.As(s)
		}
		g.Go(func() error {
			var seats []string
			for k := range 4 {
				pair := h.pairs[order[i*4+k]]
				seats = append(seats, pair[:]...)
			}
			_, err := me.PlaceHold(ctx, h.id, client.HoldRequest{Seats: seats})
			done.Add(4)
			return err
		})
	}
	return g.Wait()
}

func (r *run) trickle(ctx context.Context, h *house, held *atomic.Int64) error {
	s, err := r.api.NewSession(ctx)
	if err != nil {
		return err
	}
	me := r.api.As(s)
	tick := time.NewTicker(trickleEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, err := me.PlaceHold(ctx, h.id, client.HoldRequest{Best: &client.Best{Quantity: 2}})
		switch {
		case err == nil:
			held.Add(1)
		case ctx.Err() != nil:
			return nil
		default:
			return err
		}
	}
}

// checkMap unpacks a map as a browser does.
func checkMap(a answer, seats int) error {
	if !a.gzip {
		return fmt.Errorf("the map came without compression")
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxAnswer))
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	var m client.Availability
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	_, err = m.States(seats)
	return err
}
