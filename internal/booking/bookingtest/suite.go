package bookingtest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Suite tries everything that the engine needs of a store: its rules through the store, its guards with deciders that lie, and the engine as a whole
// on top of it. open makes a fresh store for each test; it may be called inside a synctest bubble. After every test the audit must find nothing.
func Suite(t *testing.T, open func(t *testing.T) Harness) {
	t.Run("rules", func(t *testing.T) {
		t.Parallel()
		for _, test := range slices.Concat(placeRules, lifeRules, poolRules, payRules, cancelRules, staffRules, readRules) {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, open(t))
				test.run(w)
				w.audit()
			})
		}
	})
	t.Run("guards", func(t *testing.T) {
		t.Parallel()
		Guards(t, open)
	})
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		for _, test := range slices.Concat(crowdTests, laneTests, checkoutTests, moneyTests, loopTests) {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				// In a bubble a test can wait until everybody waits, and no test sleeps.
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t, open(t))
					test.run(s)
					s.finish()
				})
			})
		}
	})
}

// world is a test of rules: commands go straight to the store.
type world struct {
	testing.TB
	Harness
	cinema, field, flight *catalog.Event
}

type rule struct {
	name string
	run  func(w *world)
}

func newWorld(t testing.TB, h Harness) *world {
	w := &world{TB: t, Harness: h, cinema: Cinema(), field: Field(), flight: Flight()}
	for _, e := range []*catalog.Event{w.cinema, w.field, w.flight} {
		h.AddEvent(t, e)
	}
	return w
}

func (w *world) audit() {
	w.Helper()
	Audited(w, w.Harness, w.cinema, w.field, w.flight)
}

// apply runs a batch that the store must take.
func (w *world) apply(commands ...booking.Command) []booking.Result {
	w.Helper()
	a, err := w.Store.Apply(w.Context(), commands, booking.Decide)
	if err != nil {
		w.Fatalf("batch of %d: %v", len(commands), err)
	}
	return a.Results
}

// ok runs a command that must be done, and no run one that must be refused with want and write nothing.
func (w *world) ok(c booking.Command) booking.Result {
	w.Helper()
	r := w.apply(c)[0]
	if r.Err != nil {
		w.Fatalf("%T: %v", c, r.Err)
	}
	return r
}

func (w *world) no(want error, c booking.Command) booking.Result {
	w.Helper()
	a, err := w.Store.Apply(w.Context(), []booking.Command{c}, booking.Decide)
	if err != nil {
		w.Fatalf("%T: %v", c, err)
	}
	r := a.Results[0]
	if !errors.Is(r.Err, want) {
		w.Fatalf("%T: %v, not %v", c, r.Err, want)
	}
	if !a.Changes.Empty() {
		w.Errorf("%T was refused and changes %+v", c, a.Changes)
	}
	return r
}

func (w *world) replay(c booking.Command) booking.Result {
	w.Helper()
	r := w.ok(c)
	if !r.Replay {
		w.Errorf("%T was done again, not replayed", c)
	}
	return r
}

// seats places a hold of seats; of the flight's seats each takes a unit as well.
func (w *world) seats(e *catalog.Event, who identity.CustomerID, numbers ...int32) *booking.Place {
	c := &booking.Place{
		Event: e, ID: booking.HoldID(newKey(e.ID)), Customer: who, Seats: numbers, Places: len(numbers), Price: e.Price(stallsPrice * int64(len(numbers))),
	}
	if e.Kind == catalog.Flight {
		c.Units = []booking.UnitsWant{{Pool: 0, N: int64(len(numbers))}}
	}
	return c
}

func (w *world) units(e *catalog.Event, who identity.CustomerID, pool int, n int64) *booking.Place {
	return &booking.Place{
		Event: e, ID: booking.HoldID(newKey(e.ID)), Customer: who, Units: []booking.UnitsWant{{Pool: pool, N: n}}, Places: int(n),
		Price: e.Price(e.Pools[pool].Price * n),
	}
}

var testTimes = booking.Times{AskBeforeEnd: 30 * time.Second, AskAfter: 15 * time.Minute}

func (w *world) checkout(p *booking.Place) *booking.Checkout {
	c := &booking.Checkout{
		Event: p.Event, Hold: p.ID, Customer: p.Customer, Payment: booking.PaymentID(newKey(p.Event.ID)), Provider: "simulator",
		Buyer: booking.Buyer{Email: "Ada@Example.org", Name: "Ada"}, Times: testTimes,
	}
	for range p.Places {
		if p.Event.Kind == catalog.Flight {
			c.Buyer.Passengers = append(c.Buyer.Passengers, "Ada")
		}
	}
	return c
}

// settle tells what the provider says; a payment that succeeded was charged its price unless charged says otherwise.
func (w *world) settle(id booking.PaymentID, status payment.Status) *booking.Settle {
	w.Helper()
	p, err := w.Store.Payment(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	c := &booking.Settle{Payment: id, State: payment.State{Status: status, Reference: "sim_" + id.String()}, Times: testTimes}
	if status == payment.Succeeded {
		c.State.Charged = p.Price
	}
	return c
}

// sold makes a confirmed booking.
func (w *world) sold(p *booking.Place) booking.Result {
	w.Helper()
	w.ok(p)
	pay := w.ok(w.checkout(p)).Payment
	r := w.ok(w.settle(pay.ID, payment.Succeeded))
	if r.Booking.Status != booking.BookingConfirmed {
		w.Fatalf("booking is %v after its payment", r.Booking.Status)
	}
	return r
}

func (w *world) books(e *catalog.Event) *booking.Books {
	w.Helper()
	b, err := w.Store.Books(w.Context(), e.ID)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func (w *world) hold(id booking.HoldID) booking.Hold {
	w.Helper()
	h, err := w.Store.Hold(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// taken is what the buckets of a pool count.
func (w *world) taken(e *catalog.Event, pool int) (held, sold int64) {
	w.Helper()
	for _, b := range w.books(e).Pools[pool] {
		held, sold = held+b.Held, sold+b.Sold
	}
	return held, sold
}

// same compares; want first.
func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
