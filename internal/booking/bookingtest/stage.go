package bookingtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// stage is a test of the engine as a whole, in a synctest bubble: lanes, boards, a provider that tells back, and a store that can be stopped and broken.
type stage struct {
	testing.TB
	Harness
	shelf                 *Shelf
	gate                  *gate
	boards                *board.Registry
	sim                   *simulator.Simulator
	svc                   *booking.Service
	watch                 *watcher
	cinema, field, flight *catalog.Event
	events                []*catalog.Event
}

type engineTest struct {
	name string
	run  func(s *stage)
}

func newStage(t testing.TB, h Harness) *stage {
	s := &stage{TB: t, Harness: h, shelf: new(Shelf), watch: new(watcher), gate: &gate{Store: h.Store}}
	s.shelf.layouts = map[catalog.LayoutRef]*venue.Layout{hallRef: hall(), cabinRef: cabin()}
	s.cinema, s.field, s.flight = s.add(Cinema()), s.add(Field()), s.add(Flight())
	s.boards = s.newBoards()
	var err error
	if s.sim, err = simulator.New(simulator.Config{
		CallbackURL: func() string { return "http://booking.invalid/callback" }, Secrets: []payment.Secret{payment.NewSecret()}, Now: h.Clock.Now,
		PayURL: func(id string) string { return "https://pay.invalid/" + id }, HTTPClient: &http.Client{Transport: caller{s}},
	}); err != nil {
		t.Fatal(err)
	}
	s.svc = s.newService(func(*booking.Config) {})
	return s
}

// add puts an event on the shelf and into the store.
func (s *stage) add(e *catalog.Event) *catalog.Event {
	s.Helper()
	s.AddEvent(s, e)
	s.shelf.put(e)
	s.events = append(s.events, e)
	return e
}

func (s *stage) newBoards() *board.Registry {
	return board.NewRegistry(board.Config{Now: s.Clock.Now, Load: func(ctx context.Context, event int64) (board.Shape, board.News, error) {
		e, err := s.shelf.Event(ctx, catalog.EventID(event))
		if err != nil {
			return board.Shape{}, board.News{}, err
		}
		news, err := s.Store.Picture(ctx, e.ID)
		return s.shape(e), news, err
	}})
}

func (s *stage) shape(e *catalog.Event) (shape board.Shape) {
	for i := range e.Pools {
		shape.Pools = append(shape.Pools, e.Pools[i].Name)
	}
	l, err := s.shelf.Layout(context.Background(), e.Layout)
	if err != nil {
		return shape // an event of pools
	}
	shape.Seats, shape.RowOf, shape.Rows = len(l.Seats), l.RowOf, len(l.Rows)
	for i := range l.Seats {
		p, _ := e.Pool(l.Seats[i].Pool)
		shape.SeatPool = append(shape.SeatPool, int16(p))
	}
	return shape
}

func derive(purpose string, parts ...[]byte) [16]byte {
	h := sha256.New()
	for _, p := range append([][]byte{[]byte(purpose)}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return [16]byte(h.Sum(nil)[:16])
}

// newService is one process with an engine; edit changes how it is configured.
func (s *stage) newService(edit func(c *booking.Config)) *booking.Service {
	s.Helper()
	c := booking.Config{
		Store: s.gate, Catalog: s.shelf, Boards: s.boards, Providers: []payment.Provider{s.sim}, Derive: derive, Now: s.Clock.Now,
		Logger: slog.New(slog.DiscardHandler), Observer: s.watch, Lanes: 1, ReturnURL: func(id booking.BookingID) string { return "https://holdfast.invalid/" + id.String() },
	}
	edit(&c)
	svc, err := booking.New(c)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(svc.Close)
	return svc
}

// caller takes the provider's callbacks to the service, as a listener would.
type caller struct{ s *stage }

func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	switch err := c.s.svc.Notice(r.Context(), "simulator", r.Header, body); {
	case errors.Is(err, payment.ErrNotAuthentic):
		status = http.StatusUnauthorized
	case err != nil:
		status = http.StatusServiceUnavailable
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: r}, nil
}

// gate is the store as the engine sees it: it can be shut, so that commands gather, and broken.
type gate struct {
	booking.Store
	mu      sync.Mutex
	shut    chan struct{}
	batches [][]booking.Command
	before  func(commands []booking.Command) error // instead of the batch, if not nil
	after   func(commands []booking.Command) error // its answer gets lost
	ended   func() error                           // what EndedHolds fails with
}

var _ booking.Store = (*gate)(nil)

func (g *gate) Apply(ctx context.Context, commands []booking.Command, decide booking.Decider) (booking.Applied, error) {
	g.mu.Lock()
	shut, before, after := g.shut, g.before, g.after
	g.batches = append(g.batches, slices.Clone(commands))
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	if before != nil {
		if err := before(commands); err != nil {
			return booking.Applied{}, err
		}
	}
	a, err := g.Store.Apply(ctx, commands, decide)
	if err == nil && after != nil {
		if err := after(commands); err != nil {
			return booking.Applied{}, err
		}
	}
	return a, err
}

func (g *gate) EndedHolds(ctx context.Context, q booking.EndedHolds) ([]booking.HoldID, error) {
	g.mu.Lock()
	ended := g.ended
	g.mu.Unlock()
	if ended != nil {
		if err := ended(); err != nil {
			return nil, err
		}
	}
	return g.Store.EndedHolds(ctx, q)
}

// close lets nothing through until the returned function is called.
func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := make(chan struct{})
	g.shut, g.batches = c, nil
	return func() {
		g.mu.Lock()
		g.shut = nil
		g.mu.Unlock()
		close(c)
	}
}

func (g *gate) breaks(before, after func([]booking.Command) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

// sizes are those of the batches since the gate was closed last.
func (g *gate) sizes() (n []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.batches {
		n = append(n, len(b))
	}
	return n
}

// watcher counts what the engine tells.
type watcher struct {
	booking.Nobody
	mu     sync.Mutex
	counts map[string]int
}

func (w *watcher) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	w.counts[what]++
}

func (w *watcher) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[what]
}

func (w *watcher) Single(int)                      { w.add("single") }
func (w *watcher) RefusedEarly(int)                { w.add("early") }
func (w *watcher) Notice(kind string)              { w.add("notice " + kind) }
func (w *watcher) Refund(result string)            { w.add("refund " + result) }
func (w *watcher) Alert(kind, _ string)            { w.add("alert " + kind) }
func (w *watcher) LoopFailed(loop string, _ error) { w.add("loop " + loop) }

// What people do.

func (s *stage) try(e *catalog.Event, who identity.CustomerID, codes ...string) (booking.Placed, error) {
	return s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: e, Customer: who, Seats: codes})
}

func (s *stage) tryUnits(who identity.CustomerID, pool string, n int) (booking.Placed, error) {
	return s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.field, Customer: who, Pool: pool, Quantity: n})
}

func (s *stage) hold(e *catalog.Event, who identity.CustomerID, codes ...string) booking.Hold {
	s.Helper()
	p, err := s.try(e, who, codes...)
	if err != nil {
		s.Fatalf("hold of %v: %v", codes, err)
	}
	return p.Hold
}

func (s *stage) pay(h booking.Hold, key string) (booking.Payment, error) {
	p := booking.Pay{Hold: h.ID, Customer: h.Customer, Buyer: booking.Buyer{Email: "ada@example.org", Name: "Ada"}, Key: key}
	if h.ID.Event == s.flight.ID {
		p.Buyer.Passengers = slices.Repeat([]string{"Ada"}, h.Places)
	}
	return s.svc.Checkout(s.Context(), p)
}

func (s *stage) session(h booking.Hold, key string) booking.Payment {
	s.Helper()
	p, err := s.pay(h, key)
	if err != nil {
		s.Fatalf("checkout: %v", err)
	}
	if p.URL == "" || p.Status != booking.PaymentPending {
		s.Fatalf("payment %+v", p)
	}
	return p
}

// act makes the provider do something and tells what it tells at once.
func (s *stage) act(id booking.PaymentID, a simulator.Action) {
	s.Helper()
	if err := s.sim.Act(s.Context(), id.String(), a); err != nil {
		s.Fatal(err)
	}
	s.sim.RunOnce(s.Context())
}

// bought is a hold that was paid for.
func (s *stage) bought(h booking.Hold) booking.Booking {
	s.Helper()
	s.act(s.session(h, "pay").ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 1})
	return s.expect(h, booking.BookingConfirmed)
}

// expect looks the booking of a hold up.
func (s *stage) expect(h booking.Hold, want booking.BookingStatus) booking.Booking {
	s.Helper()
	b, err := s.svc.Booking(s.Context(), booking.BookingID(h.ID), h.Customer)
	if err != nil {
		s.Fatal(err)
	}
	if b.Status != want {
		s.Errorf("booking is %v (%s), not %v", b.Status, b.Reason, want)
	}
	return b
}

func (s *stage) payment(id booking.PaymentID) booking.Payment {
	s.Helper()
	p, err := s.Store.Payment(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *stage) books(e *catalog.Event) *booking.Books {
	s.Helper()
	b, err := s.Store.Books(context.WithoutCancel(s.Context()), e.ID)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// loops runs every background job once, to its end.
func (s *stage) loops() {
	s.Helper()
	ctx := context.WithoutCancel(s.Context())
	s.sim.RunOnce(ctx)
	for _, l := range s.svc.BackgroundLoops() {
		for n, err := l.RunOnce(ctx); n > 0 || err != nil; n, err = l.RunOnce(ctx) {
			if err != nil {
				s.Fatalf("loop %s: %v", l.Name, err)
			}
		}
	}
}

// finish lets time pass until nothing is under way any more, and then audits: every place has one owner or none, every payment ended in one booking or one
// refund, and the provider's books say the same.
func (s *stage) finish() {
	s.Helper()
	Audited(s, s.Harness, s.events...)
	s.sim.Repair()
	s.gate.breaks(nil, nil)
	for range 6 {
		s.Clock.Add(20 * time.Minute)
		s.loops()
	}
	Audited(s, s.Harness, s.events...)
	for _, e := range s.events {
		s.ledger(e)
		s.boardAgrees(e)
	}
}

func (s *stage) ledger(e *catalog.Event) {
	s.Helper()
	b := s.books(e)
	for _, h := range b.Holds {
		if h.State == booking.HoldHeld && !booking.Live(h.Until, b.Now) {
			s.Errorf("hold %v was never settled", h.ID)
		}
	}
	for _, p := range b.Payments {
		if p.Status == booking.PaymentPending || p.Status == booking.PaymentRefundDue || p.Refunded != p.Owed {
			s.Errorf("payment %v is %v at the end, %d of %d refunded", p.ID, p.Status, p.Refunded, p.Owed)
		}
		if p.Provider == booking.FreeProvider {
			continue
		}
		r, known := s.sim.Report(p.ID.String())
		if known && (r.Charged.Amount != p.Charged.Amount || r.Refunded.Amount != p.Refunded) {
			s.Errorf("payment %v: %v charged and %d refunded here, %v and %v at the provider", p.ID, p.Charged, p.Refunded, r.Charged, r.Refunded)
		}
		if !known && p.Charged.Amount != 0 {
			s.Errorf("payment %v took %v, and the provider does not know it", p.ID, p.Charged)
		}
	}
}

// boardAgrees compares what the board shows with what the store has. C-57, C-58
func (s *stage) boardAgrees(e *catalog.Event) {
	s.Helper()
	live := s.boards.Lookup(int64(e.ID))
	if live == nil {
		return
	}
	b, now := s.books(e), s.Clock.Now()
	live.Advance(now)
	left := make([]int64, len(e.Pools))
	for p, buckets := range b.Pools {
		for _, k := range buckets {
			left[p] += k.Room()
		}
	}
	for _, h := range b.Holds {
		for _, u := range h.Units {
			if h.State == booking.HoldHeld && !booking.Live(h.Until, now) {
				left[u.Pool] += u.N
			}
		}
	}
	for p, want := range left {
		if got := live.Remaining(int16(p), now); got != want {
			s.Errorf("the board shows %d units of pool %d, the store has %d", got, p, want)
		}
	}
	shape := s.shape(e)
	for no := range int32(shape.Seats) {
		seat := b.Seats[no]
		free := seat.Status == booking.Available || seat.Status == booking.Held && !booking.Live(seat.Until, now)
		if shape.SeatPool[no] >= 0 {
			free = free && left[shape.SeatPool[no]] > 0
		}
		if live.Free(no) != free {
			s.Errorf("the board shows seat %d free: %v; the store has %+v", no, live.Free(no), seat)
		}
	}
}
