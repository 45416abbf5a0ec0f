package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/api/client"
)

// How many flights the two servers of the scenario have.
const (
	FlightsFew  = 1_000
	FlightsMany = 100_000
)

const (
	flightDays     = 20
	flightsPerDay  = 2 // on each route, so that answers are equally long however many flights there are
	flightAirports = 60
	limits         = 90  // different limits that ask for the same: each is another query to whatever remembers results
	lowestLimit    = 10  // above flightsPerDay
	replayed       = 500 // different queries of the floor, which makes its answers beforehand
)

// Flight is one of the flights that the scenario searches for.
type Flight struct {
	From, To string
	Number   int
	Departs  time.Time // in UTC, which is also its airport's zone
}

// Flights invents n flights in the days after now, always the same. n is a multiple of flights a day and route.
func Flights(n int, now time.Time) []Flight {
	day := now.UTC().Truncate(24 * time.Hour)
	out := make([]Flight, n)
	for i := range out {
		visit := i / flightsPerDay
		route, d := visit/flightDays, visit%flightDays
		from, to := route/(flightAirports-1), route%(flightAirports-1)
		if to >= from {
			to++
		}
		out[i] = Flight{
			From: airport(from), To: airport(to), Number: i,
			Departs: day.AddDate(0, 0, 2+d).Add(time.Duration(6+8*(i%flightsPerDay)) * time.Hour),
		}
	}
	return out
}

func airport(i int) string {
	return string([]byte{'Q', byte('A' + i/26), byte('A' + i%26)}) // no real airport's code begins with Q
}

// search gives the i-th query among n flights: every route and day in turn, in an order that jumps, and each time round with another limit.
func search(flights []Flight, i int64) string {
	visits := int64(len(flights) / flightsPerDay)
	const jump = 7_919 // prime, and no number of visits is a multiple of it
	f := flights[i*jump%visits*flightsPerDay]
	limit := lowestLimit + i/visits%limits
	return fmt.Sprintf("/v1/events?from=%s&to=%s&date=%s&limit=%d", f.From, f.To, f.Departs.Format(time.DateOnly), limit)
}

var errFlights = errors.New("flights are missing")

// flights measures searching, in a small and in a large catalog.
func flights(ctx context.Context, r *run) error {
	few, err := hostOf(r.cfg.Few)
	if err != nil {
		return err
	}
	all, err := r.drivers(ctx, r.host)
	if err != nil {
		return err
	}
	defer hangUp(all)
	small, err := r.drivers(ctx, few)
	if err != nil {
		return err
	}
	defer hangUp(small)
	side := func(n int, prefix string, queries int64) load {
		plan := Flights(n, r.cfg.Now())
		turn := atomic.Int64{}
		return load{
			want: http.StatusOK,
			next: func(d *driver) []byte {
				i := turn.Add(1)
				if queries > 0 {
					i %= queries
				}
				d.request = append(append(append(d.request[:0], "GET "...), prefix...), search(plan, i)...)
				d.request = append(d.request, " HTTP/1.1\r\nHost: bench\r\n\r\n"...)
				return d.request
			},
			check: checkFlights,
		}
	}
	sides := []load{side(FlightsMany, "", 0), side(FlightsFew, "", 0), side(FlightsMany, FloorReplay, replayed)}
	for i := -1; i < r.cfg.Rounds; i++ {
		var round Round
		what, lasts := fmt.Sprintf("round %d of %d", i+1, r.cfg.Rounds), r.cfg.Duration
		if i < 0 {
			what, lasts = "warming up", time.Second // also makes the floor's answers
		}
		done := r.phase(what, 0)
		for k, drivers := range [][]*driver{all, small, all} {
			if k == 2 && !r.floor {
				break
			}
			sides[k].time, sides[k].done = lasts, done
			m, err := r.drive(ctx, drivers, sides[k])
			if err != nil {
				return err
			}
			r.onlyStatus([]string{"the server", "the server with few flights", "the floor"}[k], m, http.StatusOK)
			switch k {
			case 0:
				round.Server = m
			case 1:
				round.Few, round.RatioFew = &m, round.Server.PerSecond/m.PerSecond
			case 2:
				round.Floor, round.Ratio = &m, round.Server.PerSecond/m.PerSecond
			}
		}
		if i >= 0 {
			r.report.Rounds = append(r.report.Rounds, round)
		}
	}
	r.report.ratios()
	if r.report.Ratio != nil {
		r.report.atLeast("searches among 100,000, server by floor (median)", r.report.Ratio.Median, 0.3)
	}
	growth := spread(of(r.report.Rounds, func(x Round) (float64, bool) { return x.RatioFew, x.Few != nil }))
	r.report.atLeast("searches, 100,000 by 1,000 (median)", growth.Median, 0.8)
	r.report.figure("  its minimum over the rounds", growth.Min, "x")
	r.report.figure("  its maximum over the rounds", growth.Max, "x")
	r.report.figure("searches a second among 1,000 (median)", spread(of(r.report.Rounds, func(x Round) (float64, bool) { return x.Few.PerSecond, true })).Median, "/s")
	r.note("no result comes from the memory of results: queries go round over %d and %d different ones, more than are remembered",
		FlightsMany/flightsPerDay*limits, FlightsFew/flightsPerDay*limits)
	return nil
}

// checkFlights looks into some of the answers.
func checkFlights(d *driver, a answer) error {
	const often = 200
	if d.seen.n%often != 1 || a.status != http.StatusOK {
		return nil
	}
	var page client.Page
	if err := json.Unmarshal(a.body, &page); err != nil {
		return fmt.Errorf("search: %w", err)
	}
	if len(page.Items) != flightsPerDay {
		return fmt.Errorf("%w: a search found %d, not %d", errFlights, len(page.Items), flightsPerDay)
	}
	return nil
}
