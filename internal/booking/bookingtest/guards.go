package bookingtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// Guards tries the store with deciders that lie: whatever is decided, the conditions in the writes themselves are the last to judge.
func Guards(t *testing.T, open func(t *testing.T) Harness) {
	for _, g := range GuardCases() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			if err := g.Try(t.Context(), t, open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// GuardCase is one lie, and beside it the change that only differs from it by being true: the store has to refuse the one and to take the other.
type GuardCase struct {
	Name       string
	lie, truth func(x *liar) booking.Changes
	between    time.Duration       // the clock moves so far after the lie
	step       func(x *liar) error // instead of lie and truth
}

// Try runs the case on a fresh store. A nil error says that the guard holds; a store whose guards were taken away must give one for some case.
func (g GuardCase) Try(ctx context.Context, t testing.TB, h Harness) error {
	x := &liar{Harness: h, ctx: ctx, event: Flight(), twin: Flight()}
	for _, e := range []*catalog.Event{x.event, x.twin} {
		e.Pools = append(e.Pools, e.Pools[0]) // a second one with the same buckets
		h.AddEvent(t, e)
	}
	if err := errors.Join(x.history(x.event), x.history(x.twin)); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if g.step != nil {
		return g.step(x)
	}
	before, twin, err := x.state()
	if err != nil {
		return err
	}
	switch err := x.tell(g.lie(x)); {
	case err == nil:
		return errors.New("the lie was taken")
	case !errors.Is(err, booking.ErrGuard):
		return fmt.Errorf("the lie is not refused with ErrGuard: %w", err)
	}
	after, _, err := x.state()
	if err != nil {
		return err
	}
	if d := diff(before, after); d != "" {
		return fmt.Errorf("the refused batch changed (-before +after):\n%s", d)
	}
	h.Clock.Add(g.between)
	if err := x.tell(g.truth(x)); err != nil {
		return fmt.Errorf("the truth: %w", err)
	}
	after, other, err := x.state()
	if err != nil {
		return err
	}
	if after.books.Seats[witness].Status != booking.Held {
		return errors.New("the truth was taken and its other changes are not there")
	}
	if d := diff(twin, other); d != "" {
		return fmt.Errorf("a change of one event changed another (-before +after):\n%s", d)
	}
	return nil
}

// liar has two events in which the same has happened, with the same ids but for the event.
type liar struct {
	Harness
	ctx         context.Context
	event, twin *catalog.Event
}

// The places of the history, and a free seat by which it is seen that a batch was written.
const (
	liveSeat, endedSeat, soldSeat, payingSeat, blockedSeat, releasedSeat = 1, 3, 5, 7, 9, 10

	untouched = 90
	witness   = 100
)

func bits(label string) [16]byte {
	h := sha256.Sum256([]byte(label))
	return [16]byte(h[:16])
}

func keyOf(e *catalog.Event, label string) booking.Key {
	return booking.Key{Event: e.ID, Bits: bits(label)}
}

func (x *liar) key(label string) booking.Key { return keyOf(x.event, label) }

var liarCustomer = identity.CustomerID(bits("customer"))

// history makes holds, payments, bookings, refunds and tickets in every state.
func (x *liar) history(e *catalog.Event) error {
	var failed error
	do := func(c booking.Command) {
		if failed != nil {
			return
		}
		a, err := x.Store.Apply(x.ctx, []booking.Command{c}, booking.Decide)
		if err == nil {
			err = a.Results[0].Err
		}
		if err != nil {
			failed = fmt.Errorf("%T: %w", c, err)
		}
	}
	place := func(label string, seats ...int32) {
		do(&booking.Place{
			Event: e, ID: booking.HoldID(keyOf(e, label)), Customer: liarCustomer, Seats: seats, Units: []booking.UnitsWant{{N: int64(len(seats))}},
			Places: len(seats), Price: e.Price(1000),
		})
	}
	pay := func(label string) booking.PaymentID {
		id := booking.PaymentID(keyOf(e, label))
		do(&booking.Checkout{
			Event: e, Hold: booking.HoldID(keyOf(e, label)), Customer: liarCustomer, Payment: id, Provider: "simulator", Times: testTimes,
			Buyer: booking.Buyer{Email: "ada@example.org", Passengers: []string{"Ada"}},
		})
		do(&booking.Opened{Payment: id, Reference: label + e.ID.String(), URL: "https://pay.example"})
		return id
	}
	sell := func(label string, seat int32) {
		place(label, seat)
		do(&booking.Settle{
			Payment: pay(label), Notice: booking.NoticeRef{Provider: "simulator", ID: label + e.ID.String()}, Times: testTimes,
			State: payment.State{Status: payment.Succeeded, Reference: label + e.ID.String(), Charged: e.Price(1000)},
		})
	}
	cancel := func(label string) {
		id := booking.BookingID(keyOf(e, label))
		do(&booking.QuoteCancellation{Event: e, ID: booking.QuoteID(keyOf(e, label)), Booking: id, Customer: liarCustomer})
		do(&booking.Cancel{Booking: id, Customer: liarCustomer, Quote: booking.QuoteID(keyOf(e, label))})
	}
	x.Clock.Set(Start)
	place("ended", endedSeat)
	x.Clock.Add(11 * time.Minute)
	place("live", liveSeat, liveSeat+1)
	sell("sold", soldSeat)
	sell("sold too", soldSeat+1)
	place("paying", payingSeat)
	pay("paying")
	do(&booking.Block{Event: e.ID, Seats: []int32{blockedSeat, blockedSeat + 1}})
	do(&booking.Block{Event: e.ID, Seats: []int32{releasedSeat}, Unblock: true})
	place("released", releasedSeat)
	do(&booking.Release{ID: booking.HoldID(keyOf(e, "released")), Customer: liarCustomer})
	sell("owed", 20)
	cancel("owed")
	sell("owed too", 21)
	cancel("owed too")
	sell("given back", 22)
	cancel("given back")
	if failed != nil {
		return failed
	}
	due, err := x.Store.ClaimRefunds(x.ctx, 10, time.Hour)
	if err != nil {
		return err
	}
	for _, r := range due {
		if r.Payment == booking.PaymentID(keyOf(e, "given back")) {
			do(&booking.Refunded{Refund: r.ID, Payment: r.Payment})
		}
	}
	return errors.Join(failed, x.Tickets.Issue(x.ctx, booking.BookingID(keyOf(e, "sold")), x.tickets(e, "sold", 0), []byte("{}")))
}

func (x *liar) tickets(e *catalog.Event, booked string, ordinals ...int) (all []ticket.Ticket) {
	for i, n := range ordinals {
		id := keyOf(e, fmt.Sprint("ticket", i))
		all = append(all, ticket.Ticket{ID: booking.TicketID(id), Booking: booking.BookingID(keyOf(e, booked)), Ordinal: n, Seat: "1A", Code: fmt.Sprint(i), IssuedAt: Start})
	}
	return all
}

// everything of an event that a batch can write.
type everything struct {
	books    *booking.Books
	messages []string
}

func (x *liar) state() (event, twin everything, err error) {
	const enough = 1000
	messages, err := x.Outbox.Take(x.ctx, x.Clock.Now().Add(time.Hour), enough)
	if err != nil {
		return event, twin, err
	}
	read := func(e *catalog.Event) (s everything, err error) {
		s.books, err = x.Store.Books(x.ctx, e.ID)
		if err != nil {
			return s, err
		}
		s.books.Now = time.Time{}
		for _, m := range messages {
			if id, err := booking.ParseBookingID(m.Key); err == nil && id.Event == e.ID {
				s.messages = append(s.messages, m.MessageID)
			}
		}
		return s, nil
	}
	if event, err = read(x.event); err != nil {
		return event, twin, err
	}
	twin, err = read(x.twin)
	return event, twin, err
}

func diff(a, b everything) string {
	byID := func(a, b booking.Key) bool { return bytes.Compare(a.Bits[:], b.Bits[:]) < 0 }
	return cmp.Diff(a, b, cmp.AllowUnexported(everything{}), cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0),
		cmpopts.SortSlices(func(a, b booking.Payment) bool { return byID(booking.Key(a.ID), booking.Key(b.ID)) }),
		cmpopts.SortSlices(func(a, b booking.Refund) bool { return byID(booking.Key(a.ID), booking.Key(b.ID)) }))
}

// tell makes the store write changes, and some more that are true: a part of a refused batch must not stay, whichever table it is for.
func (x *liar) tell(c booking.Changes) error {
	id := x.key("witness")
	c.Seats = append(c.Seats, booking.SeatChange{Ref: booking.SeatRef{Event: x.event.ID, No: witness}, Guard: booking.GuardFree, New: x.heldBy("witness")})
	c.Holds = append(c.Holds, booking.HoldChange{Insert: true, New: booking.Hold{ID: booking.HoldID(id), Customer: liarCustomer, Seats: []int32{witness}, Price: eur(1), Until: x.Clock.Now(), Ceiling: x.Clock.Now(), PlacedAt: x.Clock.Now()}})
	c.Messages = append(c.Messages, booking.MessageChange{Booking: booking.BookingID(id), Type: "witness", Sequence: 1, Payload: []byte("{}")})
	c.Notices = append(c.Notices, booking.NoticeRef{Provider: "simulator", ID: "witness"})
	_, err := x.Store.Apply(x.ctx, []booking.Command{&booking.SetPool{Event: x.event.ID}}, func(*booking.Rows, []booking.Command) (*booking.Changes, []booking.Result) {
		return &c, []booking.Result{{}}
	})
	return err
}

func (x *liar) heldBy(label string) booking.Seat {
	return booking.Seat{Status: booking.Held, Hold: bits(label), Until: x.Clock.Now().Add(time.Minute), Epoch: 9}
}

func (x *liar) seat(no int32, guard booking.SeatGuard, owner string, next booking.Seat) booking.SeatChange {
	c := booking.SeatChange{Ref: booking.SeatRef{Event: x.event.ID, No: no}, Guard: guard, New: next}
	if owner != "" {
		c.Owner = bits(owner)
	}
	return c
}

func soldTo(label string) booking.Seat {
	return booking.Seat{Status: booking.Sold, Hold: bits(label), Epoch: 9}
}

var freed = booking.Seat{Epoch: 9}

// seats is a lie or truth about one seat, or some.
func seats(list ...func(x *liar) booking.SeatChange) func(x *liar) booking.Changes {
	return func(x *liar) (c booking.Changes) {
		for _, f := range list {
			c.Seats = append(c.Seats, f(x))
		}
		return c
	}
}

func take(no int32) func(x *liar) booking.SeatChange {
	return func(x *liar) booking.SeatChange { return x.seat(no, booking.GuardFree, "", x.heldBy("new")) }
}

func change(no int32, guard booking.SeatGuard, owner string, next booking.Seat) func(x *liar) booking.SeatChange {
	return func(x *liar) booking.SeatChange { return x.seat(no, guard, owner, next) }
}

func bucket(n int, held, sold int64) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Buckets: []booking.BucketChange{{Ref: booking.PoolRef{Event: x.event.ID}, Bucket: n, Held: held, Sold: sold}}}
	}
}

func limits(capacity, overbook int64) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Buckets: []booking.BucketChange{{
			Ref: booking.PoolRef{Event: x.event.ID}, Limits: true, New: booking.Bucket{Capacity: capacity, Overbook: overbook},
		}}}
	}
}

func allowance(customer identity.CustomerID, delta, limit int) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Allowances: []booking.AllowanceChange{{Ref: booking.AllowanceRef{Event: x.event.ID, Customer: customer}, Delta: delta, Limit: limit}}}
	}
}

func hold(label string, insert bool, from booking.HoldState, edit func(h *booking.Hold)) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		h := booking.Hold{ID: booking.HoldID(x.key(label)), Customer: liarCustomer, Price: eur(1), PlacedAt: Start, Until: Start, Ceiling: Start}
		edit(&h)
		return booking.Changes{Holds: []booking.HoldChange{{Insert: insert, From: from, New: h}}}
	}
}

func to(state booking.HoldState) func(h *booking.Hold) {
	return func(h *booking.Hold) { h.State = state }
}

func pay(label string, insert bool, from booking.PaymentStatus, edit func(p *booking.Payment)) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		p := booking.Payment{
			ID: booking.PaymentID(x.key(label)), Hold: booking.HoldID(x.key(label)), Provider: "simulator", Reference: label + x.event.ID.String(), Price: eur(1000),
			CreatedAt: Start, ExpiresAt: Start, CheckAt: Start,
		}
		edit(&p)
		return booking.Changes{Payments: []booking.PaymentChange{{Insert: insert, From: from, New: p}}}
	}
}

func money3(charged, owed, refunded int64) func(p *booking.Payment) {
	return func(p *booking.Payment) {
		p.Status, p.Charged, p.Owed, p.Refunded = booking.PaymentRefundDue, eur(charged), owed, refunded
	}
}

func book(label string, insert bool, from, to booking.BookingStatus, amount int64) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		b := booking.Booking{ID: booking.BookingID(x.key(label)), Customer: liarCustomer, Status: to, Price: eur(amount), CreatedAt: Start, ChangedAt: Start, Sequence: 1}
		return booking.Changes{Bookings: []booking.BookingChange{{Insert: insert, From: from, New: b}}}
	}
}

func refund(label, of string, insert bool, cause booking.RefundCause, amount int64) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		r := booking.Refund{
			ID: booking.RefundID(x.key(label)), Payment: booking.PaymentID(x.key(of)), Provider: "simulator", Reference: "r", Cause: cause, Amount: eur(amount),
			NextAt: Start, CreatedAt: Start,
		}
		if !insert {
			r = x.refundOf(of)
			r.Attempts++
		}
		return booking.Changes{Refunds: []booking.RefundChange{{Insert: insert, New: r}}}
	}
}

func (x *liar) refundOf(label string) booking.Refund {
	b, err := x.Store.Books(x.ctx, x.event.ID)
	if err == nil {
		for _, r := range b.Refunds {
			if r.Payment == booking.PaymentID(x.key(label)) {
				return r
			}
		}
	}
	return booking.Refund{Amount: money.Money{}} // no row has this id: the change is refused
}

func notice(id string) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Notices: []booking.NoticeRef{{Provider: "simulator", ID: id + x.event.ID.String()}}}
	}
}

func quote(label string) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Quotes: []booking.Quote{{ID: booking.QuoteID(x.key(label)), Booking: booking.BookingID(x.key("sold")), Refund: eur(1), ExpiresAt: Start}}}
	}
}

func message(label string, sequence int64) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		return booking.Changes{Messages: []booking.MessageChange{{Booking: booking.BookingID(x.key(label)), Type: "lie", Sequence: sequence, Payload: []byte("{}")}}}
	}
}

var liarAlone = identity.CustomerID(bits("nobody yet"))

// GuardCases are all lies.
func GuardCases() []GuardCase {
	const (
		freeGuard, heldGuard, liveGuard, soldGuard, blockedGuard = booking.GuardFree, booking.GuardHeld, booking.GuardLive, booking.GuardSold, booking.GuardBlocked

		held, booked, released, expired = booking.HoldHeld, booking.HoldBooked, booking.HoldReleased, booking.HoldExpired
		pending, confirmed, failed      = booking.BookingPending, booking.BookingConfirmed, booking.BookingFailed
	)
	same := func(*booking.Hold) {}
	status := func(s booking.PaymentStatus) func(p *booking.Payment) {
		return func(p *booking.Payment) { p.Status = s }
	}
	return []GuardCase{
		{Name: "seat: take one that is held", lie: seats(take(liveSeat)), truth: seats(take(untouched))},
		{Name: "seat: take one in the last instant of its hold, and after it", lie: seats(take(liveSeat)), truth: seats(take(liveSeat)), between: 10*time.Minute + time.Millisecond},
		{Name: "seat: take one that is sold", lie: seats(take(soldSeat)), truth: seats(take(endedSeat))},
		{Name: "seat: take one that is blocked", lie: seats(take(blockedSeat)), truth: seats(take(releasedSeat))},
		{Name: "seat: take free ones with one that is held", lie: seats(take(untouched), take(liveSeat), take(untouched+1)), truth: seats(take(untouched), take(untouched+1))},
		{Name: "seat: block one that is held", lie: seats(change(liveSeat, freeGuard, "", booking.Seat{Status: booking.Blocked})), truth: seats(change(releasedSeat, freeGuard, "", booking.Seat{Status: booking.Blocked}))},
		{Name: "seat: free another hold's", lie: seats(change(liveSeat, heldGuard, "paying", freed)), truth: seats(change(liveSeat, heldGuard, "live", freed))},
		{Name: "seat: free one that is sold", lie: seats(change(soldSeat, heldGuard, "sold", freed)), truth: seats(change(endedSeat, heldGuard, "ended", freed))},
		{Name: "seat: free one that is free", lie: seats(change(releasedSeat, heldGuard, "released", freed)), truth: seats(change(payingSeat, heldGuard, "paying", freed))},
		{Name: "seat: free one that was never touched", lie: seats(change(untouched, heldGuard, "live", freed)), truth: seats(change(liveSeat, heldGuard, "live", freed), change(liveSeat+1, heldGuard, "live", freed))},
		{Name: "seat: sell one whose hold is over", lie: seats(change(endedSeat, liveGuard, "ended", soldTo("ended"))), truth: seats(change(payingSeat, liveGuard, "paying", soldTo("paying")))},
		{Name: "seat: sell another hold's", lie: seats(change(liveSeat, liveGuard, "paying", soldTo("paying"))), truth: seats(change(liveSeat, liveGuard, "live", soldTo("live")))},
		{Name: "seat: sell one that is sold", lie: seats(change(soldSeat, liveGuard, "sold", soldTo("sold"))), truth: seats(change(liveSeat, liveGuard, "live", soldTo("live")))},
		{Name: "seat: sell all places of a hold but for one that it lost", lie: seats(change(liveSeat, liveGuard, "live", soldTo("live")), change(payingSeat, liveGuard, "live", soldTo("live"))), truth: seats(change(liveSeat, liveGuard, "live", soldTo("live")))},
		{Name: "seat: give back another booking's", lie: seats(change(soldSeat, soldGuard, "sold too", freed)), truth: seats(change(soldSeat, soldGuard, "sold", freed))},
		{Name: "seat: give back one that is held", lie: seats(change(liveSeat, soldGuard, "live", freed)), truth: seats(change(soldSeat, soldGuard, "sold", freed))},
		{Name: "seat: unblock one that is free", lie: seats(change(releasedSeat, blockedGuard, "", freed)), truth: seats(change(blockedSeat, blockedGuard, "", freed))},
		{Name: "seat: unblock one that is held", lie: seats(change(liveSeat, blockedGuard, "", freed)), truth: seats(change(blockedSeat, blockedGuard, "", freed))},
		{Name: "seat: a status that there is not", lie: seats(change(untouched, freeGuard, "", booking.Seat{Status: 7})), truth: seats(change(untouched, freeGuard, "", booking.Seat{Status: 3}))},

		// The history holds 4 units of the first bucket (90 + 1 or 2 of overbooking) and has sold 2.
		{Name: "pool: more than capacity and overbooking", lie: bucket(0, 86, 0), truth: bucket(0, 85, 0)},
		{Name: "pool: more sold than capacity and overbooking", lie: bucket(0, 0, 86), truth: bucket(0, 0, 85)},
		{Name: "pool: held below nothing", lie: bucket(0, -5, 0), truth: bucket(0, -4, 0)},
		{Name: "pool: sold below nothing", lie: bucket(0, 0, -3), truth: bucket(0, 0, -2)},
		{Name: "pool: more sold than was held", lie: bucket(0, -5, 5), truth: bucket(0, -4, 4)},
		{Name: "pool: a bucket that is not there", lie: bucket(2, 1, 0), truth: bucket(1, 1, 0)},
		{Name: "pool: limits below what is taken", lie: limits(3, 2), truth: limits(3, 3)},
		{Name: "pool: a capacity below nothing", lie: limits(-1, 50), truth: limits(0, 50)},
		{Name: "pool: overbooking below nothing", lie: limits(50, -1), truth: limits(50, 0)},

		{Name: "allowance: a first count above the limit", lie: allowance(liarAlone, 3, 2), truth: allowance(liarAlone, 2, 2)},
		{Name: "allowance: raised above the limit", lie: allowance(liarCustomer, 3, 8), truth: allowance(liarCustomer, 2, 8)},
		{Name: "allowance: below nothing", lie: allowance(liarCustomer, -7, 8), truth: allowance(liarCustomer, -6, 8)},
		{Name: "allowance: lowered where there is none", lie: allowance(liarAlone, -1, 8), truth: allowance(liarAlone, 1, 8)},

		{Name: "hold: expire one that was released", lie: hold("released", false, held, to(expired)), truth: hold("live", false, held, to(expired))},
		{Name: "hold: book one that is booked", lie: hold("sold", false, held, to(booked)), truth: hold("paying", false, held, to(booked))},
		{Name: "hold: one that is not there", lie: hold("nobody's", false, held, to(released)), truth: hold("ended", false, held, to(released))},
		{Name: "hold: the same id again", lie: hold("ended", true, held, same), truth: hold("new", true, held, same)},
		{Name: "hold: a state that there is not", lie: hold("live", false, held, to(4)), truth: hold("live", false, held, to(3))},
		{Name: "hold: a price below nothing", lie: hold("new", true, held, func(h *booking.Hold) { h.Price = eur(-1) }), truth: hold("new", true, held, func(h *booking.Hold) { h.Price = eur(0) })},

		{Name: "payment: settle one that is settled", lie: pay("sold", false, booking.PaymentPending, money3(1000, 0, 0)), truth: pay("paying", false, booking.PaymentPending, money3(1000, 0, 0))},
		{Name: "payment: one that is not there", lie: pay("nobody's", false, booking.PaymentPending, status(booking.PaymentFailed)), truth: pay("paying", false, booking.PaymentPending, status(booking.PaymentFailed))},
		{Name: "payment: the same id again", lie: pay("paying", true, 0, func(p *booking.Payment) { p.Reference = "" }), truth: pay("new", true, 0, func(p *booking.Payment) { p.Reference = "" })},
		{Name: "payment: a reference that another has, from the start", lie: pay("new", true, 0, func(p *booking.Payment) { p.Reference = "sold" + p.ID.Event.String() }), truth: pay("new", true, 0, status(booking.PaymentPending))},
		{Name: "payment: a reference that another has, later", lie: pay("paying", false, booking.PaymentPending, func(p *booking.Payment) { p.Reference = "sold" + p.ID.Event.String() }), truth: pay("paying", false, booking.PaymentPending, status(booking.PaymentPending))},
		{Name: "payment: more owed than charged", lie: pay("sold", false, booking.PaymentSucceeded, money3(1000, 1001, 0)), truth: pay("sold", false, booking.PaymentSucceeded, money3(1000, 1000, 0))},
		{Name: "payment: more refunded than owed", lie: pay("sold", false, booking.PaymentSucceeded, money3(1000, 500, 501)), truth: pay("sold", false, booking.PaymentSucceeded, money3(1000, 500, 500))},
		{Name: "payment: a status that there is not", lie: pay("paying", false, booking.PaymentPending, status(7)), truth: pay("paying", false, booking.PaymentPending, status(6))},

		{Name: "booking: confirm one that is cancelled", lie: book("owed", false, pending, confirmed, 1), truth: book("paying", false, pending, confirmed, 1)},
		{Name: "booking: one that is not there", lie: book("live", false, pending, failed, 1), truth: book("paying", false, pending, failed, 1)},
		{Name: "booking: the same id again", lie: book("sold", true, 0, pending, 1), truth: book("live", true, 0, pending, 1)},
		{Name: "booking: a status that there is not", lie: book("paying", false, pending, 4, 1), truth: book("paying", false, pending, 3, 1)},
		{Name: "booking: a price below nothing", lie: book("live", true, 0, pending, -1), truth: book("live", true, 0, pending, 0)},

		{Name: "refund: change one that is done", lie: refund("", "given back", false, "", 0), truth: refund("", "owed", false, "", 0)},
		{Name: "refund: one that is not there", lie: refund("", "paying", false, "", 0), truth: refund("", "owed too", false, "", 0)},
		{Name: "refund: the same cause again", lie: refund("new", "owed", true, booking.CauseCancelled, 1), truth: refund("new", "owed", true, booking.CauseLate, 1)},
		{Name: "refund: the same id again", lie: refundAgain("owed"), truth: refundAgain("")},
		{Name: "refund: claim what is due and not done", step: claimDue},
		{Name: "refund: of nothing", lie: refund("new", "sold", true, booking.CauseLate, 0), truth: refund("new", "sold", true, booking.CauseLate, 1)},

		{Name: "notice: the same again", lie: notice("sold"), truth: notice("new")},
		{Name: "quote: the same id again", lie: quote("owed"), truth: quote("new")},
		{Name: "message: the same of a booking again", lie: message("sold", 1), truth: message("sold", 2)},

		{Name: "tickets: void those of one booking only", step: voidOne},
		{Name: "tickets: only of a confirmed booking, and once", step: issueRightly},
		{Name: "tickets: one of an ordinal", step: oneOrdinal},
	}
}

// refundAgain has a cause of its own, so that only the id is the same as that of another refund.
func refundAgain(of string) func(x *liar) booking.Changes {
	return func(x *liar) booking.Changes {
		c := refund("new", "sold", true, "another", 1)(x)
		if of != "" {
			c.Refunds[0].New.ID = x.refundOf(of).ID
		}
		return c
	}
}

func (x *liar) valid(e *catalog.Event, label string) (n int, err error) {
	list, err := x.Tickets.Tickets(x.ctx, booking.BookingID(keyOf(e, label)))
	for _, t := range list {
		if t.Status == ticket.Valid {
			n++
		}
	}
	return n, err
}

func claimDue(x *liar) error {
	if err := x.tell(refund("new", "sold", true, booking.CauseLate, 1)(x)); err != nil {
		return err
	}
	due, err := x.Store.ClaimRefunds(x.ctx, 100, time.Hour)
	if err != nil || len(due) != 1 || due[0].ID != booking.RefundID(x.key("new")) {
		return errors.Join(fmt.Errorf("claimed %d for 1 that is due", len(due)), err)
	}
	x.Clock.Add(2 * time.Hour)
	// Of each event three were decided and one is done.
	if due, err = x.Store.ClaimRefunds(x.ctx, 100, time.Hour); err != nil || len(due) != 5 {
		return errors.Join(fmt.Errorf("claimed %d for 5 whose lease is over", len(due)), err)
	}
	return nil
}

func voidOne(x *liar) error {
	id := booking.BookingID(x.key("sold"))
	if err := x.Tickets.Issue(x.ctx, booking.BookingID(x.key("sold too")), func() []ticket.Ticket {
		all := x.tickets(x.event, "sold too", 0)
		all[0].ID = booking.TicketID(x.key("another"))
		return all
	}(), []byte("{}")); err != nil {
		return err
	}
	if err := x.tell(booking.Changes{VoidTickets: []booking.BookingID{id}}); err != nil {
		return err
	}
	void, err1 := x.valid(x.event, "sold")
	other, err2 := x.valid(x.event, "sold too")
	twin, err3 := x.valid(x.twin, "sold")
	if void != 0 || other != 1 || twin != 1 {
		return errors.Join(fmt.Errorf("%d valid of the void ones, %d of another booking, %d of another event", void, other, twin), err1, err2, err3)
	}
	return nil
}

func issueRightly(x *liar) error {
	for _, label := range []string{"sold", "paying", "owed", "live"} { // has some, pending, cancelled, no booking
		before, _, err := x.state()
		if err != nil {
			return err
		}
		all := x.tickets(x.event, label, 7)
		all[0].ID = booking.TicketID(x.key("another"))
		if err := x.Tickets.Issue(x.ctx, all[0].Booking, all, []byte("{}")); err != nil {
			return fmt.Errorf("tickets of %q: %w", label, err)
		}
		after, _, err := x.state()
		if err != nil {
			return err
		}
		if d := diff(before, after); d != "" {
			return fmt.Errorf("tickets of %q (-before +after):\n%s", label, d)
		}
	}
	return nil
}

func oneOrdinal(x *liar) error {
	all := x.tickets(x.event, "sold too", 0, 1, 1)
	for i := range all {
		all[i].ID = booking.TicketID(x.key(fmt.Sprint("other", i)))
	}
	id := booking.BookingID(x.key("sold too"))
	if err := x.Tickets.Issue(x.ctx, id, all, []byte("{}")); err == nil {
		return errors.New("two tickets of one place were issued")
	}
	if n, err := x.valid(x.event, "sold too"); n != 0 || err != nil {
		return errors.Join(fmt.Errorf("%d tickets of a refused issue", n), err)
	}
	all[2].Ordinal = 2
	if err := x.Tickets.Issue(x.ctx, id, all, []byte("{}")); err != nil {
		return err
	}
	n, err := x.valid(x.event, "sold too")
	if err == nil && n != 3 {
		err = fmt.Errorf("%d of 3 tickets", n)
	}
	return err
}
