package bookingtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// Engine is the part of a store that a history needs.
type Engine interface {
	Apply(ctx context.Context, commands []booking.Command, decide booking.Decider) (booking.Applied, error)
	EndedHolds(ctx context.Context, q booking.EndedHolds) ([]booking.HoldID, error)
	Books(ctx context.Context, event catalog.EventID) (*booking.Books, error)
}

// Tables are rows in memory without a database: the decisions alone, quick enough for a hundred thousand histories. After each batch they compare the
// changes, applied to the rows, with what the decider itself believed at the end. Not safe for concurrent use.
type Tables struct {
	clock *Clock
	rows  *booking.Rows
}

var _ Engine = (*Tables)(nil)

// NewTables makes empty ones, but for the buckets of an event.
func NewTables(clock *Clock, e *catalog.Event) *Tables {
	t := &Tables{clock: clock, rows: booking.NewRows()}
	_ = AddPools(e, func(pool, bucket int, capacity, overbook int64) error { // this insert has no error
		ref := booking.PoolRef{Event: e.ID, Pool: pool}
		t.rows.Pools[ref] = append(t.rows.Pools[ref], booking.Bucket{Bucket: bucket, Capacity: capacity, Overbook: overbook})
		return nil
	})
	return t
}

func pick[K comparable, V any](from, to map[K]V, keys []K) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}

// load is what a store reads for a batch.
func (t *Tables) load(n booking.Need) *booking.Rows {
	r := booking.NewRows()
	r.Now = t.clock.Now()
	pick(t.rows.Payments, r.Payments, n.Payments)
	for _, p := range r.Payments {
		n.Holds = append(n.Holds, p.Hold)
	}
	pick(t.rows.Holds, r.Holds, n.Repeats)
	for _, id := range n.Holds {
		h, ok := t.rows.Holds[id]
		if !ok {
			continue
		}
		r.Holds[id] = h
		n.AddHold(&h)
		pick(t.rows.Bookings, r.Bookings, []booking.BookingID{booking.BookingID(id)})
		if pays := t.rows.PaymentsOf[id]; len(pays) > 0 {
			r.PaymentsOf[id] = slices.Clone(pays)
			pick(t.rows.Payments, r.Payments, pays)
		}
	}
	pick(t.rows.Notices, r.Notices, n.Notices)
	pick(t.rows.Quotes, r.Quotes, n.Quotes)
	pick(t.rows.Refunds, r.Refunds, n.Refunds)
	pick(t.rows.Seats, r.Seats, n.Seats)
	pick(t.rows.Allowances, r.Allowances, n.Allowances)
	for _, ref := range n.Pools {
		if b, ok := t.rows.Pools[ref]; ok {
			r.Pools[ref] = slices.Clone(b)
		}
	}
	return r
}

// Apply runs a batch.
func (t *Tables) Apply(_ context.Context, commands []booking.Command, decide booking.Decider) (booking.Applied, error) {
	read := t.load(booking.NeedOf(commands))
	now := read.Now
	changes, results := decide(read, commands)
	if err := t.write(changes, now); err != nil {
		return booking.Applied{}, err
	}
	if err := t.agree(read); err != nil {
		return booking.Applied{}, err
	}
	return booking.Applied{Now: now, Results: results, Changes: changes}, nil
}

func guard(ok bool, what string, c any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s: %+v", booking.ErrGuard, what, c)
}

// write applies changes under their guards. A guard that refuses is a fault of Decide: here nobody else writes.
func (t *Tables) write(c *booking.Changes, now time.Time) error {
	for _, x := range c.Payments {
		old, ok := t.rows.Payments[x.New.ID]
		if err := guard(ok != x.Insert && (x.Insert || old.Status == x.From) && x.New.Refunded <= x.New.Owed && x.New.Owed <= x.New.Charged.Amount, "payment", x); err != nil {
			return err
		}
		if x.Insert {
			t.rows.PaymentsOf[x.New.Hold] = append(t.rows.PaymentsOf[x.New.Hold], x.New.ID)
		}
		t.rows.Payments[x.New.ID] = x.New
	}
	for _, x := range c.Bookings {
		old, ok := t.rows.Bookings[x.New.ID]
		if err := guard(ok != x.Insert && (x.Insert || old.Status == x.From), "booking", x); err != nil {
			return err
		}
		t.rows.Bookings[x.New.ID] = x.New
	}
	for _, x := range c.Holds {
		old, ok := t.rows.Holds[x.New.ID]
		if err := guard(ok != x.Insert && (x.Insert || old.State == x.From), "hold", x); err != nil {
			return err
		}
		t.rows.Holds[x.New.ID] = x.New
	}
	for _, x := range c.Seats {
		old := t.rows.Seats[x.Ref]
		ok := false
		switch x.Guard {
		case booking.GuardFree:
			ok = old.Status == booking.Available || old.Status == booking.Held && old.Until.Before(now)
		case booking.GuardHeld:
			ok = old.Status == booking.Held && old.Hold == x.Owner
		case booking.GuardLive:
			ok = old.Status == booking.Held && old.Hold == x.Owner && !old.Until.Before(now)
		case booking.GuardSold:
			ok = old.Status == booking.Sold && old.Hold == x.Owner
		case booking.GuardBlocked:
			ok = old.Status == booking.Blocked
		}
		if err := guard(ok && x.New.Epoch > old.Epoch, "seat", x); err != nil {
			return err
		}
		t.rows.Seats[x.Ref] = x.New
	}
	for _, x := range c.Buckets {
		list := t.rows.Pools[x.Ref]
		i, ok := slices.BinarySearchFunc(list, x.Bucket, func(b booking.Bucket, n int) int { return cmp.Compare(b.Bucket, n) })
		if err := guard(ok, "bucket", x); err != nil {
			return err
		}
		b := &list[i]
		b.Held, b.Sold, b.Epoch = b.Held+x.Held, b.Sold+x.Sold, b.Epoch+1
		if x.Limits {
			b.Capacity, b.Overbook = x.New.Capacity, x.New.Overbook
		}
		if err := guard(b.Held >= 0 && b.Sold >= 0 && b.Capacity >= 0 && b.Overbook >= 0 && b.Room() >= 0, "bucket", *b); err != nil {
			return err
		}
	}
	for _, x := range c.Allowances {
		n := t.rows.Allowances[x.Ref] + x.Delta
		if err := guard(n >= 0 && (x.Delta < 0 || n <= x.Limit), "allowance", x); err != nil {
			return err
		}
		t.rows.Allowances[x.Ref] = n
	}
	for _, x := range c.Notices {
		if err := guard(!t.rows.Notices[x], "notice", x); err != nil {
			return err
		}
		t.rows.Notices[x] = true
	}
	for _, x := range c.Quotes {
		_, known := t.rows.Quotes[x.ID]
		if err := guard(!known, "quote", x); err != nil {
			return err
		}
		t.rows.Quotes[x.ID] = x
	}
	for _, x := range c.Refunds {
		old, ok := t.rows.Refunds[x.New.ID]
		if err := guard(ok != x.Insert && !old.Done, "refund", x); err != nil {
			return err
		}
		t.rows.Refunds[x.New.ID] = x.New
	}
	return nil
}

// agree compares what the decider worked with, as it left it, with the tables.
func (t *Tables) agree(read *booking.Rows) error {
	return cmp.Or(
		agree("seat", read.Seats, t.rows.Seats), agree("pool", read.Pools, t.rows.Pools), agree("hold", read.Holds, t.rows.Holds),
		agree("booking", read.Bookings, t.rows.Bookings), agree("payment", read.Payments, t.rows.Payments),
		agree("payments of", read.PaymentsOf, t.rows.PaymentsOf), agree("notice", read.Notices, t.rows.Notices), agree("quote", read.Quotes, t.rows.Quotes),
		agree("refund", read.Refunds, t.rows.Refunds), agree("allowance", read.Allowances, t.rows.Allowances),
	)
}

func agree[K comparable, V any](what string, believed, is map[K]V) error {
	for k, want := range believed {
		if got := is[k]; !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s %v: the changes made it %+v, the decider left it as %+v", what, k, got, want)
		}
	}
	return nil
}

// EndedHolds names held holds whose time is over.
func (t *Tables) EndedHolds(_ context.Context, q booking.EndedHolds) (ids []booking.HoldID, _ error) {
	now := t.clock.Now()
	for id, h := range t.rows.Holds {
		if h.State != booking.HoldHeld || booking.Live(h.Until, now) {
			continue
		}
		if len(q.Pools)+len(q.Customers) > 0 && !slices.Contains(q.Customers, h.Customer) &&
			!slices.ContainsFunc(h.Units, func(u booking.Units) bool { return slices.Contains(q.Pools, u.Pool) }) {
			continue
		}
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b booking.HoldID) int {
		return cmp.Or(t.rows.Holds[a].Until.Compare(t.rows.Holds[b].Until), slices.Compare(a.Bits[:], b.Bits[:]))
	})
	return ids[:min(len(ids), q.Limit)], nil
}

// Books gives everything of the one event that the tables have.
func (t *Tables) Books(_ context.Context, event catalog.EventID) (*booking.Books, error) {
	b := &booking.Books{
		Now: t.clock.Now(), Event: event, Seats: map[int32]booking.Seat{}, Pools: map[int][]booking.Bucket{}, Holds: t.rows.Holds, Bookings: t.rows.Bookings,
		Payments: slices.Collect(maps.Values(t.rows.Payments)), Refunds: slices.Collect(maps.Values(t.rows.Refunds)),
		Allowances: map[identity.CustomerID]int{}, Pending: map[booking.BookingID]bool{},
	}
	for ref, s := range t.rows.Seats {
		b.Seats[ref.No] = s
	}
	for ref, list := range t.rows.Pools {
		b.Pools[ref.Pool] = list
	}
	for ref, n := range t.rows.Allowances {
		if n != 0 {
			b.Allowances[ref.Customer] = n
		}
	}
	for id := range t.rows.Bookings {
		b.Pending[id] = true // messages are not kept
	}
	return b, nil
}
