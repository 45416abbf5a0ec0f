package loadgen

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-project/holdfast/api/client"
)

// Limits that no scenario but the sellout is about: as large as the server allows.
const (
	placesPerCustomer = 10_000
	holdsPerMinute    = 1_000_000
	holdSeconds       = 3_600
)

const priceCents = 2_500

// house is an event that was made for the run.
type house struct {
	id    string
	seats []string
	pairs [][2]string // neighbours; no seat is in two
}

// hall is a layout on the server, and what its events have in common.
type hall struct {
	layout string
	seats  []string
	rows   [][]int32 // numbers of the seats of each row
	pairs  [][2]string
	bands  []string
}

// buildHall adds a layout and learns its seats from the server's own list: the load generator knows no more than any client does.
func (r *run) buildHall(ctx context.Context, seats int) (*hall, error) {
	document, err := r.cfg.Stadium(seats)
	if err != nil {
		return nil, err
	}
	made, err := r.admin.AddLayout(ctx, document)
	if err != nil {
		return nil, fmt.Errorf("adding a layout: %w", err)
	}
	if made.Seats != seats {
		return nil, fmt.Errorf("the layout has %d seats, not %d", made.Seats, seats)
	}
	return &hall{layout: made.LayoutID, bands: []string{"Category 1", "Category 2", "Category 3", "Category 4"}}, nil
}

// learn reads the seats of the hall's first event.
func (h *hall) learn(list []client.Seat) {
	var row string
	for i, s := range list {
		if at := s.Section + "\x00" + s.Row; at != row || i == 0 {
			h.rows = append(h.rows, nil)
			row = at
		}
		last := len(h.rows) - 1
		h.rows[last] = append(h.rows[last], int32(i))
		h.seats = append(h.seats, s.Seat)
	}
	for _, row := range h.rows {
		for i := 0; i+1 < len(row); i += 2 {
			h.pairs = append(h.pairs, [2]string{h.seats[row[i]], h.seats[row[i+1]]})
		}
	}
}

// open makes an event in the hall. Its sale is open and there is no waiting room.
func (r *run) open(ctx context.Context, h *hall, price int64, policy client.PolicyPatch) (*house, error) {
	now, off, orphans := r.cfg.Now().UTC().Truncate(time.Second), false, "allow"
	policy.WaitingRoom = &client.WaitingRoomPatch{Enabled: &off}
	if policy.Orphans == nil {
		policy.Orphans = &orphans
	}
	slug := r.tag + "-" + strconv.Itoa(len(r.events))
	e := client.NewEvent{
		Kind: "concert", Slug: slug, Title: "Load of " + slug, Currency: "EUR", LayoutID: h.layout,
		Venue:    client.Venue{Name: "Load stadium", City: "Berlin", Country: "DE", TimeZone: "Europe/Berlin"},
		StartsAt: now.Add(30 * 24 * time.Hour), SaleOpensAt: now.Add(-time.Minute), SaleClosesAt: now.Add(29 * 24 * time.Hour),
		Prices: map[string]int64{}, Policy: &policy,
	}
	for i, band := range h.bands {
		e.Prices[band] = price * int64(len(h.bands)-i)
	}
	made, err := r.admin.CreateEvent(ctx, e)
	for err != nil && len(h.bands) > 1 && isUnknownBand(err) {
		// Smaller stadiums have fewer tiers, and a price for a band that is not there is refused.
		h.bands = h.bands[:len(h.bands)-1]
		delete(e.Prices, "Category "+strconv.Itoa(len(h.bands)+1))
		made, err = r.admin.CreateEvent(ctx, e)
	}
	if err != nil {
		return nil, fmt.Errorf("making an event: %w", err)
	}
	r.events = append(r.events, made.ID)
	if h.seats == nil {
		list, err := r.api.Seats(ctx, made.ID)
		if err != nil {
			return nil, err
		}
		h.learn(list.Seats)
	}
	return &house{id: made.ID, seats: h.seats, pairs: h.pairs}, nil
}

func isUnknownBand(err error) bool {
	p, ok := asProblem(err)
	return ok && p.Code == client.CodeValidation
}

// wide is a policy whose limits nothing reaches.
func wide() client.PolicyPatch {
	hold, pay, ceiling := holdSeconds, holdSeconds*4/5, holdSeconds
	perHold, perCustomer, perMinute := 8, placesPerCustomer, holdsPerMinute
	return client.PolicyPatch{
		HoldSeconds: &hold, PaymentSeconds: &pay, HoldCeilingSeconds: &ceiling,
		MaxPlacesPerHold: &perHold, MaxPlacesPerCustomer: &perCustomer, MaxHoldsPerMinute: &perMinute,
	}
}

// sessions makes n customers.
func (r *run) sessions(ctx context.Context, n int) ([]string, error) {
	tokens := make([]string, n)
	done := r.phase("making customers", int64(n))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(64, r.cfg.Clients))
	for i := range tokens {
		g.Go(func() error {
			s, err := r.api.NewSession(ctx)
			tokens[i] = s.Token
			done.Add(1)
			return err
		})
	}
	return tokens, g.Wait()
}
