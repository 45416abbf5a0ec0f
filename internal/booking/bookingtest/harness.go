// Package bookingtest is the contract that every booking.Store passes, with the events, the clock and the model that its tests are written with.
package bookingtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/ticket"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Start is when tests begin: 200 ms before the clocks of Europe go forward, so that nothing here may depend on a local time.
var Start = time.Date(2026, 3, 29, 0, 59, 59, 800_000_000, time.UTC)

// Clock is a time that stands still until it is moved. Safe for concurrent use.
type Clock struct{ ms atomic.Int64 }

// NewClock makes one at Start.
func NewClock() *Clock {
	c := new(Clock)
	c.Set(Start)
	return c
}

// Now is the time, in whole milliseconds.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// Set moves it to t.
func (c *Clock) Set(t time.Time) { c.ms.Store(t.UnixMilli()) }

// Add moves it by d.
func (c *Clock) Add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// Harness is a fresh store and what tests need around it. All of it is closed by the test's cleanup.
type Harness struct {
	Clock   *Clock // the store's time
	Store   booking.Store
	Tickets ticket.Store
	Outbox  outbox.Store
	// AddEvent makes the rows that an event has from its beginning: those of its pools.
	AddEvent func(t testing.TB, e *catalog.Event)
	// Crash opens, beside this store, what would be left if the process or the machine died at this instant. Nil: the store can't tell.
	Crash func(t testing.TB) Harness
}

// AddPools is for AddEvent: it calls insert for every bucket of an event, its stock split evenly.
func AddPools(e *catalog.Event, insert func(pool, bucket int, capacity, overbook int64) error) error {
	for p := range e.Pools {
		pool := &e.Pools[p]
		n := int64(max(1, pool.Buckets))
		part := func(all, i int64) int64 { return all*(i+1)/n - all*i/n }
		for i := range n {
			if err := insert(p, int(i), part(pool.Capacity, i), part(pool.Overbook, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Shelf is a small catalog in memory.
type Shelf struct {
	mu      sync.RWMutex
	events  map[catalog.EventID]*catalog.Event
	layouts map[catalog.LayoutRef]*venue.Layout
}

var _ booking.Catalog = (*Shelf)(nil)

// Event finds an event; what it returns is never changed.
func (s *Shelf) Event(_ context.Context, id catalog.EventID) (*catalog.Event, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e := s.events[id]; e != nil {
		return e, nil
	}
	return nil, catalog.ErrNotFound
}

// Layout finds a layout.
func (s *Shelf) Layout(_ context.Context, ref catalog.LayoutRef) (*venue.Layout, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l := s.layouts[ref]; l != nil {
		return l, nil
	}
	return nil, catalog.ErrNotFound
}

func (s *Shelf) put(e *catalog.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = map[catalog.EventID]*catalog.Event{}
	}
	s.events[e.ID] = e
}

// The layouts of the tests. Parsing them once is enough: they never change.
var (
	hall  = sync.OnceValue(func() *venue.Layout { return must(venue.Cinema(10, 20)) })
	cabin = sync.OnceValue(func() *venue.Layout { return must(venue.Cabin(30, "ABC DEF", "ECONOMY")) })
)

// Cabin is the layout of Flight.
func Cabin() *venue.Layout { return cabin() }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a fixture that can't be made is a broken test, not a failing one
	}
	return v
}

var (
	hallRef  = catalog.LayoutRef{ID: "hall", Version: 1}
	cabinRef = catalog.LayoutRef{ID: "cabin", Version: 1}
)

// Prices of the events.
const (
	stallsPrice   = 1200
	premiumPrice  = 1500
	standingPrice = 4500
	vipPrice      = 9000
	economyPrice  = 7900
)

func newEvent(kind catalog.Kind) *catalog.Event {
	e := &catalog.Event{
		ID: catalog.NewEventID(), Kind: kind, Title: "An evening", Currency: "EUR", Policy: catalog.Preset(kind),
		SaleOpensAt: Start.Add(-time.Hour), SaleClosesAt: Start.Add(72 * time.Hour), StartsAt: Start.Add(73 * time.Hour), CreatedAt: Start.Add(-2 * time.Hour),
	}
	e.Policy.WaitingRoom.Enabled = false
	e.Slug = e.ID.String()
	return e
}

// Cinema is a showtime in a hall of 200 seats.
func Cinema() *catalog.Event {
	e := newEvent(catalog.Cinema)
	e.Layout, e.Prices = hallRef, map[string]int64{"Stalls": stallsPrice, "Premium": premiumPrice}
	return e
}

// Field is standing room: STANDING has 20 units in 4 buckets, VIP 6 in one.
func Field() *catalog.Event {
	e := newEvent(catalog.Concert)
	e.Pools = []catalog.Pool{
		{Name: "STANDING", Capacity: 20, Buckets: 4, Price: standingPrice},
		{Name: "VIP", Capacity: 6, Buckets: 1, Price: vipPrice},
	}
	return e
}

// Flight has 180 seats of ECONOMY, of which 183 units are sold.
func Flight() *catalog.Event {
	e := newEvent(catalog.Flight)
	e.Layout, e.Prices = cabinRef, map[string]int64{"Standard": economyPrice, "Extra legroom": economyPrice + 2000}
	e.Pools = []catalog.Pool{{Name: "ECONOMY", Capacity: 180, Overbook: 3, Buckets: 2, Price: economyPrice}}
	e.Origin, e.Destination = "SGN", "HAN"
	return e
}

var counter atomic.Uint64

// newKey makes an id that no other of the process has; a counter, so that a failing test reads the same the next time.
func newKey(event catalog.EventID) booking.Key {
	k := booking.Key{Event: event}
	binary.BigEndian.PutUint64(k.Bits[:], counter.Add(1)) // first half: boards tell holders apart by it
	return k
}

func newCustomer() identity.CustomerID {
	var c identity.CustomerID
	copy(c[:], "customer")
	binary.BigEndian.PutUint64(c[8:], counter.Add(1))
	return c
}

func eur(amount int64) money.Money { return money.Money{Amount: amount, Currency: "EUR"} }

// Audited fails the test unless the events keep every promise: those that booking.Audit recomputes, and those of the messages.
func Audited(t testing.TB, h Harness, events ...*catalog.Event) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, e := range events {
		books, err := h.Store.Books(ctx, e.ID)
		if err != nil {
			t.Errorf("books of %v: %v", e.ID, err)
			continue
		}
		for _, v := range booking.Audit(books) {
			t.Errorf("audit: %s: %s", v.Rule, v.Detail)
		}
		if h.Outbox != nil {
			auditMessages(t, h, books)
		}
	}
}

// auditMessages expects the outbox whole: tests that relay it do so without an audit of messages.
func auditMessages(t testing.TB, h Harness, books *booking.Books) {
	t.Helper()
	const enough = 1_000_000
	messages, err := h.Outbox.Take(context.WithoutCancel(t.Context()), h.Clock.Now().Add(1000*time.Hour), enough)
	if err != nil {
		t.Errorf("outbox: %v", err)
		return
	}
	sequence, kinds := map[booking.BookingID]int64{}, map[booking.BookingID]map[string]int{}
	for _, m := range messages {
		id, err := booking.ParseBookingID(m.Key)
		if err != nil {
			t.Errorf("message %s: %v", m.MessageID, err)
			continue
		}
		if id.Event != books.Event || m.Topic != outbox.TopicBookings {
			continue
		}
		sequence[id]++
		if m.Sequence != sequence[id] {
			t.Errorf("message %s: sequence %d where %d was due", m.MessageID, m.Sequence, sequence[id])
		}
		if kinds[id] == nil {
			kinds[id] = map[string]int{}
		}
		kinds[id][m.Type]++
	}
	for id, b := range books.Bookings {
		want := map[string]int{}
		switch b.Status {
		case booking.BookingConfirmed:
			want[booking.MessageConfirmed] = 1
		case booking.BookingCancelled:
			want[booking.MessageConfirmed], want[booking.MessageCancelled] = 1, 1
		case booking.BookingFailed:
			want[booking.MessageFailed] = 1
		case booking.BookingPending:
		}
		got := kinds[id]
		for _, kind := range []string{booking.MessageConfirmed, booking.MessageCancelled, booking.MessageFailed} {
			if got[kind] != want[kind] {
				t.Errorf("booking %v is %v and has %d messages %s", id, b.Status, got[kind], kind)
			}
		}
		if sequence[id] != b.Sequence {
			t.Errorf("booking %v says %d messages, the outbox has %d", id, b.Sequence, sequence[id])
		}
	}
}

func seatNo(l *venue.Layout, code string) int32 {
	no, ok := l.SeatByCode(code)
	if !ok {
		panic(fmt.Sprintf("no seat %q", code))
	}
	return no
}
