package booking

import (
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// Place takes places for minutes, all or none.
type Place struct {
	Event    *catalog.Event
	ID       HoldID
	Customer identity.CustomerID
	Seats    []int32     // numbers, rising, no repetition
	Units    []UnitsWant // per pool, rising; the units that seats take included
	Places   int
	Price    money.Money // frozen: what the buyer was told is what the buyer pays
	Request  [16]byte
	Replaces HoldID // an own hold whose places count as free and are given back in the same step; zero for none
	Bucket   int    // the bucket that this process prefers
	// Fresh: the id was made at random and no store has seen it yet, so there is no repetition to look for.
	Fresh bool
}

// UnitsWant is how many units of a pool a command asks for.
type UnitsWant struct {
	Pool int
	N    int64
}

// EventID of the command.
func (c *Place) EventID() catalog.EventID { return c.ID.Event }

func (c *Place) need(n *Need) {
	if !c.Fresh {
		n.Repeats = append(n.Repeats, c.ID)
	}
	if c.Replaces != (HoldID{}) {
		n.Holds = append(n.Holds, c.Replaces)
	}
	for _, no := range c.Seats {
		n.Seats = append(n.Seats, SeatRef{c.ID.Event, no})
	}
	for _, u := range c.Units {
		n.Pools = append(n.Pools, PoolRef{c.ID.Event, u.Pool})
	}
	n.Allowances = append(n.Allowances, AllowanceRef{c.ID.Event, c.Customer})
}

func (c *Place) decide(s *sheet) Result {
	if h, ok := s.Holds[c.ID]; ok {
		// The id is derived from customer, event and Idempotency-Key, so this is a repetition; or the batch is being repeated whole.
		if h.Request != c.Request || h.Customer != c.Customer {
			return Result{Err: ErrKeyReused}
		}
		return Result{Hold: h, Replay: true}
	}
	if err := saleOpen(c.Event, s.Now); err != nil {
		return Result{Err: err}
	}
	if c.Places == 0 {
		return Result{Err: &GoneError{}} // "best available" found nothing, and this was no repetition
	}
	old, err := c.replaced(s)
	if err != nil {
		return Result{Err: err}
	}
	if gone := c.gone(s, old); gone != nil {
		return Result{Err: gone, Short: len(gone.Pools) > 0 && len(gone.Seats) == 0, pools: gone.Pools}
	}
	has := s.Allowances[AllowanceRef{c.ID.Event, c.Customer}]
	if old != nil {
		has -= old.Places
	}
	limit := c.Event.Policy.MaxPlacesPerCustomer
	if has+c.Places > limit {
		return Result{Err: ErrCustomerLimit, Short: true}
	}

	until, ceiling := s.Now.Add(c.Event.Policy.HoldTTL), s.Now.Add(c.Event.Policy.Ceiling)
	if old != nil {
		s.abandon(*old, HoldReleased)
		ceiling = old.Ceiling // changing one's mind again and again must not hold places for ever
	}
	if until.After(ceiling) {
		until = ceiling
	}
	h := Hold{
		ID: c.ID, Customer: c.Customer, Seats: c.Seats, Places: c.Places, Price: c.Price, State: HoldHeld,
		PlacedAt: s.Now, Until: ms(until), Ceiling: ms(ceiling), Request: c.Request,
	}
	for _, no := range c.Seats {
		s.seat(SeatRef{c.ID.Event, no}, GuardFree, [16]byte{}, Seat{Status: Held, Hold: c.ID.Bits, Until: h.Until})
	}
	for _, u := range c.Units {
		h.Units = s.take(h.Units, PoolRef{c.ID.Event, u.Pool}, u.N, c.Bucket)
	}
	s.allowance(AllowanceRef{c.ID.Event, c.Customer}, c.Places, limit)
	s.hold(h)
	return Result{Hold: h}
}

// saleOpen decides by the database's clock; the service has its own cheaper look before.
func saleOpen(e *catalog.Event, now time.Time) error {
	switch e.Status(now) {
	case catalog.Upcoming:
		return &SaleError{OpensAt: e.SaleOpensAt}
	case catalog.Closed:
		return ErrSaleClosed
	case catalog.Paused:
		return ErrPaused
	case catalog.OnSale:
	}
	return nil
}

// replaced finds the hold whose places count as free for this one; nil for none.
func (c *Place) replaced(s *sheet) (*Hold, error) {
	if c.Replaces == (HoldID{}) {
		return nil, nil
	}
	old, ok := s.Holds[c.Replaces]
	switch {
	case !ok || old.Customer != c.Customer:
		return nil, ErrNotFound
	case old.State == HoldBooked:
		return nil, ErrAlreadyBooked
	case !old.live(s.Now):
		return nil, ErrHoldEnded
	}
	return &old, nil
}

// gone names every place that can't be had, not just the first: the page refreshes all of them at once.
func (c *Place) gone(s *sheet, old *Hold) *GoneError {
	var gone GoneError
	for _, no := range c.Seats {
		seat := s.Seats[SeatRef{c.ID.Event, no}]
		if !seat.free(s.Now) && (old == nil || !seat.ownedBy(old.ID, Held)) {
			gone.Seats = append(gone.Seats, no)
		}
	}
	for _, u := range c.Units {
		room := int64(0)
		for _, b := range s.Pools[PoolRef{c.ID.Event, u.Pool}] {
			room += b.Room()
		}
		if old != nil {
			for _, has := range old.Units {
				if has.Pool == u.Pool {
					room += has.N
				}
			}
		}
		if room < u.N {
			gone.Pools = append(gone.Pools, u.Pool)
		}
	}
	if len(gone.Seats)+len(gone.Pools) == 0 {
		return nil
	}
	return &gone
}

// take takes n units, which are there, from one bucket if one has them (the preferred first), else from several.
func (s *sheet) take(got []Units, ref PoolRef, n int64, prefer int) []Units {
	buckets := s.Pools[ref]
	start := prefer % len(buckets)
	for i := range buckets {
		if b := &buckets[(start+i)%len(buckets)]; b.Room() >= n {
			s.units(ref, b.Bucket, n, 0)
			return append(got, Units{Pool: ref.Pool, Bucket: b.Bucket, N: n})
		}
	}
	for i := range buckets {
		b := &buckets[(start+i)%len(buckets)]
		if part := min(b.Room(), n); part > 0 {
			got = append(got, Units{Pool: ref.Pool, Bucket: b.Bucket, N: part})
			n -= part
			s.units(ref, b.Bucket, part, 0)
		}
	}
	return got
}

// end gives back what a held hold has, settles its count, and puts it into a final state. Seats that someone else took since its time was over are left alone.
func (s *sheet) end(h Hold, state HoldState) Hold {
	for _, no := range h.Seats {
		ref := SeatRef{h.ID.Event, no}
		if s.Seats[ref].ownedBy(h.ID, Held) {
			s.seat(ref, GuardHeld, h.ID.Bits, Seat{})
		}
	}
	for _, u := range h.Units {
		s.units(PoolRef{h.ID.Event, u.Pool}, u.Bucket, -u.N, 0)
	}
	s.allowance(AllowanceRef{h.ID.Event, h.Customer}, -h.Places, 0)
	h.State = state
	s.hold(h)
	return h
}

// abandon is end for a hold that may be in the middle of being paid: its booking fails, and the reconciler is sent to close the payment.
// Money that still arrives goes back.
func (s *sheet) abandon(h Hold, state HoldState) Hold {
	h = s.end(h, state)
	if b, ok := s.Bookings[BookingID(h.ID)]; ok && b.Status == BookingPending {
		s.fail(b, "unpaid")
	}
	for _, id := range s.PaymentsOf[h.ID] {
		if p := s.Payments[id]; p.Status == PaymentPending && p.CheckAt.After(s.Now) {
			p.CheckAt = s.Now
			s.payment(p)
		}
	}
	return h
}

// Release gives a hold back at once. It is idempotent; a booked hold can't be released.
type Release struct {
	ID       HoldID
	Customer identity.CustomerID
}

// EventID of the command.
func (c *Release) EventID() catalog.EventID { return c.ID.Event }
func (c *Release) need(n *Need)             { n.Holds = append(n.Holds, c.ID) }

func (c *Release) decide(s *sheet) Result {
	h, ok := s.Holds[c.ID]
	switch {
	case !ok || h.Customer != c.Customer:
		return Result{Err: ErrNotFound}
	case h.State == HoldBooked:
		return Result{Err: ErrAlreadyBooked, Hold: h}
	case h.State != HoldHeld:
		return Result{Hold: h, Replay: true}
	}
	return Result{Hold: s.abandon(h, HoldReleased)}
}

// Expire settles a hold whose time is over: its row, its units and its allowance. Its seats were free already.
type Expire struct{ ID HoldID }

// EventID of the command.
func (c *Expire) EventID() catalog.EventID { return c.ID.Event }
func (c *Expire) need(n *Need)             { n.Holds = append(n.Holds, c.ID) }

func (c *Expire) decide(s *sheet) Result {
	h, ok := s.Holds[c.ID]
	if !ok {
		return Result{Err: ErrNotFound}
	}
	if h.State != HoldHeld || h.live(s.Now) {
		return Result{Hold: h, Replay: true}
	}
	return Result{Hold: s.abandon(h, HoldExpired)}
}

// Extend gives "more time", up to the hold's ceiling.
type Extend struct {
	Event    *catalog.Event
	ID       HoldID
	Customer identity.CustomerID
}

// EventID of the command.
func (c *Extend) EventID() catalog.EventID { return c.ID.Event }
func (c *Extend) need(n *Need)             { n.Holds = append(n.Holds, c.ID) }

func (c *Extend) decide(s *sheet) Result {
	h, ok := s.Holds[c.ID]
	switch {
	case !ok || h.Customer != c.Customer:
		return Result{Err: ErrNotFound}
	case h.State == HoldBooked:
		return Result{Err: ErrAlreadyBooked, Hold: h}
	case !s.owns(h):
		return Result{Err: ErrHoldEnded, Hold: h}
	}
	until := h.Until.Add(c.Event.Policy.ExtendTTL)
	if until.After(h.Ceiling) {
		until = h.Ceiling
	}
	if !until.After(h.Until) {
		return Result{Err: ErrCeiling, Hold: h}
	}
	return Result{Hold: s.prolong(h, until)}
}

// owns says whether a hold is live and every place of it still carries its id.
func (s *sheet) owns(h Hold) bool {
	if !h.live(s.Now) {
		return false
	}
	for _, no := range h.Seats {
		if !s.Seats[SeatRef{h.ID.Event, no}].ownedBy(h.ID, Held) {
			return false
		}
	}
	return true
}

// prolong moves the end of a live hold, on its row and on all its seats.
func (s *sheet) prolong(h Hold, until time.Time) Hold {
	h.Until = ms(until)
	for _, no := range h.Seats {
		s.seat(SeatRef{h.ID.Event, no}, GuardLive, h.ID.Bits, Seat{Status: Held, Hold: h.ID.Bits, Until: h.Until})
	}
	s.hold(h)
	return h
}
