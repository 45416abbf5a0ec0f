package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// PlaceHold is what a customer asks for: seats by code, or units of a pool, or the best that there is.
type PlaceHold struct {
	Event    *catalog.Event
	Customer identity.CustomerID
	Seats    []string
	Pool     string // with Seats: the pool that they must belong to
	Quantity int    // units of Pool, when there are no Seats
	Best     *Best
	Replaces HoldID
	Key      string // Idempotency-Key; may be empty
}

// Best asks the house to choose.
type Best struct {
	Quantity            int
	Section, Band, Pool string
	Wheelchair          bool
}

// Placed is a hold and how it came about.
type Placed struct {
	Hold     Hold
	Together bool // of a best choice: all seats in one row, side by side
	Replay   bool
}

// maxAlternatives is how many blocks a refusal offers instead.
const maxAlternatives = 3

// PlaceHold holds places, all or none. Errors: *InputError, ErrNotOnSale and its siblings, *GoneError with alternatives, ErrCustomerLimit, ErrOrphan,
// ErrKeyReused; ErrNotFound, ErrHoldEnded or ErrAlreadyBooked for the hold to be replaced; ErrBusy, ErrUnavailable.
func (s *Service) PlaceHold(ctx context.Context, p PlaceHold) (Placed, error) {
	e := p.Event
	// Before the sale nobody can have a hold; after it a repetition under the same key may be about one that there is.
	if err := saleOpen(e, s.Now()); err != nil && (p.Key == "" || errors.Is(err, ErrNotOnSale)) {
		return Placed{}, err
	}
	var layout *venue.Layout
	var err error
	if e.Layout != (catalog.LayoutRef{}) {
		if layout, err = s.catalog.Layout(ctx, e.Layout); err != nil {
			return Placed{}, fmt.Errorf("layout of %v: %w", e.ID, err)
		}
	}
	c := &Place{
		Event: e, Customer: p.Customer, Replaces: p.Replaces, Bucket: s.bucket, Fresh: p.Key == "",
		ID: HoldID(s.id("hold", p.Customer, e.ID, p.Key)),
	}
	if !c.Fresh {
		c.Request = p.hash() // only a repetition is compared with what was asked before
	}
	// Without a board there is no early refusal, and that is fine: reading one for every hold of ten thousand quiet events would cost more than it saves.
	// Only a choice by the house and the rule about single seats can't do without.
	live := s.boards.Lookup(int64(e.ID))
	if live == nil && (p.Best != nil || len(p.Seats) > 0 && e.Policy.Orphans == catalog.OrphansForbid) {
		if live, err = s.boards.Get(ctx, int64(e.ID)); err != nil {
			return Placed{}, fmt.Errorf("board of %v: %w", e.ID, err)
		}
	}
	enter := &entry{command: c, keep: p.Key != "", board: live}
	var placed Placed
	switch {
	case p.Best != nil:
		err = s.best(ctx, p, c, layout, enter, &placed)
	case len(p.Seats) > 0:
		err = c.seats(layout, p.Seats, p.Pool)
	default:
		err = c.units(p.Pool, p.Quantity)
	}
	if err != nil {
		return Placed{}, err
	}
	if p.Best == nil && live != nil {
		if err := s.refuseEarly(p, c, layout, live); err != nil {
			return Placed{}, err
		}
	}
	r, err := s.lane(e.ID).do(ctx, enter)
	if gone, ok := errors.AsType[*GoneError](err); ok {
		if live == nil {
			// Where places are gone more will be asked for: from now on the picture answers.
			if live, err = s.boards.Get(ctx, int64(e.ID)); err != nil {
				return Placed{}, gone
			}
		}
		return Placed{}, s.alternatives(gone, c, layout, live)
	}
	if err != nil {
		return Placed{}, err
	}
	placed.Hold, placed.Replay = r.Hold, r.Replay
	if r.Replay && p.Best != nil {
		placed.Together = s.finders.of(layout).Together(r.Hold.Seats)
	}
	return placed, nil
}

// hash is of the request as it was asked, not of what was found for it.
func (p *PlaceHold) hash() [16]byte {
	r := newRequest().add(strconv.Itoa(len(p.Seats))).add(p.Seats...).add(p.Pool, strconv.Itoa(p.Quantity), p.Replaces.String())
	if b := p.Best; b != nil {
		r.add("best", strconv.Itoa(b.Quantity), b.Section, b.Band, b.Pool, strconv.FormatBool(b.Wheelchair))
	}
	return r.sum()
}

// seats fills in a choice by code.
func (c *Place) seats(layout *venue.Layout, codes []string, pool string) error {
	if layout == nil {
		return &InputError{Code: "unknown-seat", Pointer: "/seats", Detail: "this event has no seats; ask for units of one of its pools"}
	}
	if n := c.Event.Policy.MaxPlacesPerHold; len(codes) > n {
		return tooMany("/seats", n)
	}
	numbers := make([]int32, len(codes))
	for i, code := range codes {
		no, ok := layout.SeatByCode(code)
		if !ok {
			return &InputError{Code: "unknown-seat", Pointer: fmt.Sprintf("/seats/%d", i), Detail: fmt.Sprintf("the event has no seat %q; see its layout", code)}
		}
		if slices.Contains(numbers[:i], no) {
			return &InputError{Code: "duplicate-seat", Pointer: fmt.Sprintf("/seats/%d", i), Detail: fmt.Sprintf("seat %q is named twice; name it once", code)}
		}
		if of := layout.Seats[no].Pool; pool != "" && of != pool {
			return &InputError{Code: "pool-mismatch", Pointer: "/pool", Detail: fmt.Sprintf("seat %q belongs to the pool %q; leave pool out or name that one", code, of)}
		}
		numbers[i] = no
	}
	slices.Sort(numbers)
	return c.take(layout, numbers)
}

// take fills in seats by number: their price, and a unit of each one's pool.
func (c *Place) take(layout *venue.Layout, numbers []int32) error {
	c.Seats, c.Units, c.Places = numbers, nil, len(numbers)
	total := c.Event.Price(0)
	for _, no := range numbers {
		seat := &layout.Seats[no]
		price, ok := c.Event.Prices[seat.Band]
		if seat.Pool != "" {
			i, known := c.Event.Pool(seat.Pool)
			if !known {
				return fmt.Errorf("seat %s of %v: the event has no pool %q", seat.Code, c.Event.ID, seat.Pool)
			}
			c.addUnits(i, 1)
			if !ok {
				price, ok = c.Event.Pools[i].Price, true
			}
		}
		if !ok {
			return fmt.Errorf("seat %s of %v: no price for the band %q", seat.Code, c.Event.ID, seat.Band)
		}
		var err error
		if total, err = total.Add(c.Event.Price(price)); err != nil {
			return err
		}
	}
	c.Price = total
	return nil
}

func (c *Place) addUnits(pool int, n int64) {
	i, ok := slices.BinarySearchFunc(c.Units, pool, func(u UnitsWant, p int) int { return u.Pool - p })
	if !ok {
		c.Units = slices.Insert(c.Units, i, UnitsWant{Pool: pool})
	}
	c.Units[i].N += n
}

// units fills in units of a pool without seats.
func (c *Place) units(pool string, quantity int) error {
	i, ok := c.Event.Pool(pool)
	switch {
	case !ok && pool == "":
		return &InputError{Code: "nothing-asked", Pointer: "", Detail: "name seats, or a pool and a quantity, or best"}
	case !ok:
		return &InputError{Code: "unknown-pool", Pointer: "/pool", Detail: fmt.Sprintf("the event has no pool %q", pool)}
	case quantity < 1:
		return &InputError{Code: "nothing-asked", Pointer: "/quantity", Detail: "ask for at least 1"}
	case quantity > c.Event.Policy.MaxPlacesPerHold:
		return tooMany("/quantity", c.Event.Policy.MaxPlacesPerHold)
	}
	c.Units, c.Places = []UnitsWant{{Pool: i, N: int64(quantity)}}, quantity
	c.Price = c.Event.Price(c.Event.Pools[i].Price * int64(quantity))
	return nil
}

func tooMany(pointer string, n int) error {
	return &InputError{Code: "too-many-places", Pointer: pointer, Detail: fmt.Sprintf("a hold of this event has at most %d places", n)}
}

// best prepares a choice that is made when the batch is formed: only then it is known what those before it in the lane ask for.
func (s *Service) best(ctx context.Context, p PlaceHold, c *Place, layout *venue.Layout, enter *entry, placed *Placed) error {
	b := p.Best
	switch {
	case layout == nil:
		return &InputError{Code: "validation", Pointer: "/best", Detail: "this event has no seats to choose from; ask for units of one of its pools"}
	case b.Quantity < 1:
		return &InputError{Code: "nothing-asked", Pointer: "/best/quantity", Detail: "ask for at least 1"}
	case b.Quantity > c.Event.Policy.MaxPlacesPerHold:
		return tooMany("/best/quantity", c.Event.Policy.MaxPlacesPerHold)
	}
	if b.Pool != "" {
		if _, ok := c.Event.Pool(b.Pool); !ok {
			return &InputError{Code: "unknown-pool", Pointer: "/best/pool", Detail: fmt.Sprintf("the event has no pool %q", b.Pool)}
		}
	}
	if b.Section != "" && !slices.ContainsFunc(layout.Sections, func(sec venue.Section) bool { return sec.Name == b.Section }) {
		return &InputError{Code: "validation", Pointer: "/best/section", Detail: fmt.Sprintf("the layout has no section %q", b.Section)}
	}
	var own []int32
	if p.Replaces != (HoldID{}) {
		// The old places count as free for the new choice, or looking again would only ever find worse ones.
		if old, err := s.store.Hold(ctx, p.Replaces); err == nil && old.Customer == p.Customer && old.live(s.Now()) {
			own = old.Seats
		}
	}
	finder := s.finders.of(layout)
	want := Want{Quantity: b.Quantity, Section: b.Section, Band: b.Band, Pool: b.Pool, Wheelchair: b.Wheelchair}
	enter.choose = func(pic *board.Overlay) error {
		seats, side, ok := finder.Best(want, withOwn{pic, own, layout})
		if !ok {
			c.Seats, c.Units, c.Places = nil, nil, 0
			return &GoneError{}
		}
		slices.Sort(seats)
		placed.Together = side
		return c.take(layout, seats)
	}
	return nil
}

// refuseEarly answers from memory what is surely taken: it costs no database anything.
func (s *Service) refuseEarly(p PlaceHold, c *Place, layout *venue.Layout, live *board.Board) error {
	var units [4]board.PoolUnits
	want := boardUnits(units[:0], c.Units)
	var replaces uint64
	if p.Replaces != (HoldID{}) {
		replaces = p.Replaces.Holder()
	}
	seats, pools := live.Refuse(c.Seats, want, c.ID.Holder(), replaces, s.Now())
	if len(seats)+len(pools) > 0 {
		s.watch.RefusedEarly(c.Places)
		gone := &GoneError{Seats: seats}
		for _, p := range pools {
			gone.Pools = append(gone.Pools, int(p))
		}
		return s.alternatives(gone, c, layout, live)
	}
	if layout != nil && len(c.Seats) > 0 && c.Event.Policy.Orphans == catalog.OrphansForbid {
		if alone := s.finders.of(layout).LeavesOrphan(c.Seats, live); len(alone) > 0 {
			return &SeatsError{Err: ErrOrphan, Seats: alone}
		}
	}
	return nil
}

func boardUnits(to []board.PoolUnits, units []UnitsWant) []board.PoolUnits {
	for _, u := range units {
		to = append(to, board.PoolUnits{Pool: int16(u.Pool), N: u.N})
	}
	return to
}

// alternatives adds to a refusal what could be taken instead, as far as the picture knows.
func (s *Service) alternatives(gone *GoneError, c *Place, layout *venue.Layout, live *board.Board) *GoneError {
	if layout != nil && len(gone.Seats) > 0 && len(gone.Pools) == 0 && live.Available() >= len(c.Seats) {
		gone.Alternatives = s.finders.of(layout).Alternatives(c.Seats, len(c.Seats), live, maxAlternatives)
	}
	return gone
}

// maxFinders bounds the finders kept: one for each layout version in use.
const maxFinders = 256

// finders keeps what was worked out about layouts. Layouts never change, so nothing in it goes stale.
type finders struct {
	mu  sync.Mutex
	all map[*venue.Layout]*Finder
}

func (f *finders) of(l *venue.Layout) *Finder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.all[l]; got != nil {
		return got
	}
	if f.all == nil || len(f.all) >= maxFinders {
		f.all = map[*venue.Layout]*Finder{}
	}
	got := NewFinder(l)
	f.all[l] = got
	return got
}

// Release gives a hold back at once; idempotent. Errors: ErrNotFound, ErrAlreadyBooked.
func (s *Service) Release(ctx context.Context, id HoldID, customer identity.CustomerID) (Hold, error) {
	r, err := s.do(ctx, &Release{ID: id, Customer: customer})
	return r.Hold, err
}

// Extend gives more time. Errors: ErrNotFound, ErrHoldEnded, ErrAlreadyBooked, ErrCeiling.
func (s *Service) Extend(ctx context.Context, id HoldID, customer identity.CustomerID) (Hold, error) {
	e, _, err := s.eventOf(ctx, id.Event)
	if err != nil {
		return Hold{}, err
	}
	r, err := s.do(ctx, &Extend{Event: e, ID: id, Customer: customer})
	return r.Hold, err
}

// Hold looks at a customer's hold; anyone else's is ErrNotFound.
func (s *Service) Hold(ctx context.Context, id HoldID, customer identity.CustomerID) (Hold, error) {
	h, err := s.store.Hold(ctx, id)
	if err == nil && h.Customer != customer {
		return Hold{}, ErrNotFound
	}
	return h, err
}

// Places names the places of a hold or booking.
func (s *Service) Places(ctx context.Context, event catalog.EventID, seats []int32, units []Units) ([]FactPlace, error) {
	_, n, err := s.eventOf(ctx, event)
	if err != nil {
		return nil, err
	}
	return n.places(seats, units), nil
}

// Block takes free seats off sale, or puts blocked ones back. Errors: *InputError, *SeatsError.
func (s *Service) Block(ctx context.Context, e *catalog.Event, codes []string, unblock bool) error {
	_, n, err := s.eventOf(ctx, e.ID)
	if err != nil {
		return err
	}
	c := &Block{Event: e.ID, Unblock: unblock}
	for i, code := range codes {
		no, ok := int32(0), false
		if n.Layout != nil {
			no, ok = n.Layout.SeatByCode(code)
		}
		if !ok {
			return &InputError{Code: "unknown-seat", Pointer: fmt.Sprintf("/seats/%d", i), Detail: fmt.Sprintf("the event has no seat %q; see its layout", code)}
		}
		c.Seats = append(c.Seats, no)
	}
	slices.Sort(c.Seats)
	c.Seats = slices.Compact(c.Seats)
	_, err = s.do(ctx, c)
	return err
}

// SetPool changes a pool's limits. Error: ErrLimitBelowTaken.
func (s *Service) SetPool(ctx context.Context, c SetPool) error {
	_, err := s.do(ctx, &c)
	return err
}
