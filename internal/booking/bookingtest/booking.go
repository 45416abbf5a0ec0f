package bookingtest

import (
	"errors"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
)

func (w *world) quote(b booking.Booking) booking.Quote {
	w.Helper()
	return w.ok(&booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: b.ID, Customer: b.Customer}).Quote
}

var cancelRules = []rule{
	{"cancelling gives back places, units, allowance and money in one step", func(w *world) {
		c := w.seats(w.flight, newCustomer(), 1, 2)
		b := w.sold(c).Booking
		q := w.ok(&booking.QuoteCancellation{Event: w.flight, ID: booking.QuoteID(newKey(w.flight.ID)), Booking: b.ID, Customer: c.Customer}).Quote
		same(w, "promised", eur(2*stallsPrice), q.Refund)
		same(w, "until", w.Clock.Now().Add(10*time.Minute), q.ExpiresAt)
		cancel := &booking.Cancel{Booking: b.ID, Customer: c.Customer, Quote: q.ID}
		got := w.ok(cancel).Booking
		same(w, "status", booking.BookingCancelled, got.Status)
		same(w, "booking in the store", got, w.booking(c.ID))
		books := w.books(w.flight)
		same(w, "seats", []booking.SeatStatus{0, 0}, []booking.SeatStatus{books.Seats[1].Status, books.Seats[2].Status})
		held, sold := w.taken(w.flight, 0)
		same(w, "units", []int64{0, 0}, []int64{held, sold})
		same(w, "allowances", map[identity.CustomerID]int{}, books.Allowances)
		same(w, "repeated", got, w.replay(cancel).Booking)
		next := w.seats(w.flight, newCustomer(), 1)
		w.sold(next)
		w.replay(cancel)
		same(w, "owner", next.ID.Bits, w.books(w.flight).Seats[1].Hold)
		same(w, "refunded", 1, w.refunds())
	}},
	{"the refund follows the rules to the instant, and a quote keeps its word until it expires", func(w *world) {
		starts := w.cinema.StartsAt
		for i, test := range []struct {
			at   time.Time
			want int64
		}{
			{starts.Add(-24 * time.Hour), stallsPrice}, {starts.Add(-24*time.Hour + time.Millisecond), stallsPrice / 2},
			{starts.Add(-2 * time.Hour), stallsPrice / 2}, {starts.Add(-2*time.Hour + time.Millisecond), 0}, {starts.Add(-time.Millisecond), 0},
		} {
			w.Clock.Set(Start)
			b := w.sold(w.seats(w.cinema, newCustomer(), int32(i))).Booking
			w.Clock.Set(test.at)
			q := w.quote(b)
			same(w, "refund", eur(test.want), q.Refund)
			w.Clock.Set(q.ExpiresAt) // over the boundary of the next rule, and yet as promised
			got := w.ok(&booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: q.ID})
			same(w, "refund of the booking", test.want, got.Booking.Refund)
			same(w, "owed", test.want, got.Payment.Owed)
		}
		w.Clock.Set(Start)
		b := w.sold(w.seats(w.cinema, newCustomer(), 9)).Booking
		w.Clock.Set(starts)
		w.no(booking.ErrNotCancellable, &booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: b.ID, Customer: b.Customer})
	}},
	{"an expired quote cancels nothing", func(w *world) {
		b := w.sold(w.seats(w.cinema, newCustomer(), 1)).Booking
		q := w.quote(b)
		w.Clock.Set(q.ExpiresAt.Add(time.Millisecond))
		w.no(booking.ErrQuoteOver, &booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: q.ID})
		fresh := w.quote(b)
		w.ok(&booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: fresh.ID})
		w.Clock.Set(fresh.ExpiresAt.Add(time.Hour))
		w.replay(&booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: fresh.ID}) // it did its work: a repetition is answered for ever
	}},
	{"a quote is answered again under its id, and is of one booking", func(w *world) { // C-26, C-27
		who := newCustomer()
		b, other := w.sold(w.seats(w.cinema, who, 1)).Booking, w.sold(w.seats(w.cinema, who, 2)).Booking
		ask := &booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: b.ID, Customer: who}
		q := w.ok(ask).Quote
		w.Clock.Add(time.Minute)
		same(w, "again", q, w.replay(ask).Quote)
		elsewhere := *ask
		elsewhere.Booking = other.ID
		w.no(booking.ErrKeyReused, &elsewhere)
		w.no(booking.ErrNotFound, &booking.Cancel{Booking: other.ID, Customer: who, Quote: q.ID})
		w.no(booking.ErrNotFound, &booking.Cancel{Booking: b.ID, Customer: who, Quote: booking.QuoteID(newKey(w.cinema.ID))})
	}},
	{"nobody can quote or cancel somebody else's booking", func(w *world) { // C-13
		b := w.sold(w.seats(w.cinema, newCustomer(), 1)).Booking
		w.no(booking.ErrNotFound, &booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: b.ID, Customer: newCustomer()})
		w.no(booking.ErrNotFound, &booking.Cancel{Booking: b.ID, Customer: newCustomer(), Quote: w.quote(b).ID})
		same(w, "status", booking.BookingConfirmed, w.booking(b.Hold()).Status)
	}},
	{"only a confirmed booking can be cancelled, once", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		id := w.ok(w.checkout(c)).Booking.ID
		w.no(booking.ErrNotCancellable, &booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: id, Customer: c.Customer})
		w.no(booking.ErrNotCancellable, &booking.Cancel{Booking: id, Staff: &booking.StaffCancel{Refund: -1}})
		b := w.sold(w.seats(w.cinema, newCustomer(), 2)).Booking
		first, second := w.quote(b), w.quote(b)
		w.ok(&booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: first.ID})
		w.no(booking.ErrNotCancellable, &booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: second.ID})
		w.no(booking.ErrNotCancellable, &booking.Cancel{Booking: b.ID, Staff: &booking.StaffCancel{Refund: -1}})
		same(w, "refunds", 1, len(w.books(w.cinema).Refunds))
		two := w.sold(w.seats(w.cinema, newCustomer(), 3)).Booking
		a, z := w.quote(two), w.quote(two)
		r := w.apply(&booking.Cancel{Booking: two.ID, Customer: two.Customer, Quote: a.ID}, &booking.Cancel{Booking: two.ID, Customer: two.Customer, Quote: z.ID})
		if r[0].Err != nil || !errors.Is(r[1].Err, booking.ErrNotCancellable) {
			w.Errorf("two cancellations in one batch: %v, %v", r[0].Err, r[1].Err)
		}
	}},
	{"staff cancel with a refund and a reason of their choice, at most what was charged", func(w *world) {
		for i, test := range []struct {
			refund, want int64
			status       booking.PaymentStatus
		}{{-1, stallsPrice, booking.PaymentRefunded}, {300, 300, booking.PaymentPartlyRefunded}, {0, 0, booking.PaymentSucceeded}} {
			b := w.sold(w.seats(w.cinema, newCustomer(), int32(i))).Booking
			r := w.ok(&booking.Cancel{Booking: b.ID, Staff: &booking.StaffCancel{Refund: test.refund, Reason: "the film tore"}})
			same(w, "refund", test.want, r.Booking.Refund)
			same(w, "reason", "the film tore", w.booking(b.Hold()).Reason)
			w.refunds()
			same(w, "payment", test.status, w.payment(r.Payment.ID).Status)
		}
		b := w.sold(w.seats(w.cinema, newCustomer(), 9)).Booking
		r := w.apply(&booking.Cancel{Booking: b.ID, Staff: &booking.StaffCancel{Refund: stallsPrice + 1}})[0]
		if input, ok := errors.AsType[*booking.InputError](r.Err); !ok || input.Pointer != "/amount" {
			w.Errorf("refund above the charge: %v", r.Err)
		}
		w.no(booking.ErrNotFound, &booking.Cancel{Booking: booking.BookingID(newKey(w.cinema.ID)), Staff: &booking.StaffCancel{}})
	}},
	{"cancelling gives back the payment that paid, not the one that was too many", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		first := w.ok(w.checkout(c)).Payment.ID
		w.ok(w.settle(first, payment.Failed))
		second := w.ok(w.checkout(c)).Payment.ID
		w.ok(w.settle(first, payment.Succeeded))
		w.ok(w.settle(second, payment.Succeeded))
		w.refunds()
		b := w.booking(c.ID)
		r := w.ok(&booking.Cancel{Booking: b.ID, Customer: b.Customer, Quote: w.quote(b).ID})
		same(w, "payment", first, r.Payment.ID)
		w.refunds()
		same(w, "both", []booking.PaymentStatus{booking.PaymentRefunded, booking.PaymentRefunded},
			[]booking.PaymentStatus{w.payment(first).Status, w.payment(second).Status})
	}},
	{"money that comes twice after a cancellation goes back", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		first := w.ok(w.checkout(c)).Payment.ID
		w.ok(w.settle(first, payment.Failed))
		w.ok(w.settle(w.ok(w.checkout(c)).Payment.ID, payment.Succeeded))
		w.ok(&booking.Cancel{Booking: booking.BookingID(c.ID), Staff: &booking.StaffCancel{Refund: -1}})
		w.ok(w.settle(first, payment.Succeeded))
		same(w, "refunded", 2, w.refunds())
	}},
}

var staffRules = []rule{
	{"blocking takes free seats off sale, all or none, and unblocking puts them back", func(w *world) {
		block := &booking.Block{Event: w.cinema.ID, Seats: []int32{1, 2, 3}}
		w.ok(block)
		w.ok(block) // already so: harmless
		goneSeats(w, w.no(booking.ErrGone, w.seats(w.cinema, newCustomer(), 2)), 2)
		w.ok(w.seats(w.cinema, newCustomer(), 5))
		taken := w.no(booking.ErrSeatsTaken, &booking.Block{Event: w.cinema.ID, Seats: []int32{4, 5}})
		if e, ok := errors.AsType[*booking.SeatsError](taken.Err); !ok || len(e.Seats) != 1 || e.Seats[0] != 5 {
			w.Errorf("refused with %v", taken.Err)
		}
		unblock := &booking.Block{Event: w.cinema.ID, Seats: []int32{1, 2, 3}, Unblock: true}
		w.ok(unblock)
		w.ok(unblock)
		w.sold(w.seats(w.cinema, newCustomer(), 2))
		w.no(booking.ErrSeatsTaken, &booking.Block{Event: w.cinema.ID, Seats: []int32{1, 2}})
		w.no(booking.ErrSeatsTaken, &booking.Block{Event: w.cinema.ID, Seats: []int32{1, 2}, Unblock: true})
	}},
	{"a seat of a hold that is over can be blocked, and its old hold does not free it", func(w *world) { // C-14
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		w.Clock.Add(11 * time.Minute)
		w.ok(&booking.Block{Event: w.cinema.ID, Seats: []int32{1}})
		w.ok(&booking.Expire{ID: c.ID})
		same(w, "seat", booking.Blocked, w.books(w.cinema).Seats[1].Status)
	}},
	{"a pool's limits can be changed, never below what is held and sold", func(w *world) {
		set := func(capacity, overbook int64) *booking.SetPool {
			return &booking.SetPool{Event: w.field.ID, Pool: 0, Capacity: capacity, Overbook: overbook}
		}
		for range 3 {
			w.ok(w.units(w.field, newCustomer(), 0, 4))
		}
		w.sold(w.units(w.field, newCustomer(), 0, 2))
		if r := w.no(booking.ErrLimitBelowTaken, set(13, 0)); !r.Short {
			w.Error("ended holds may be in the way, yet the lane is not told")
		}
		for _, limit := range [][2]int64{{14, 0}, {10, 4}, {30, 7}, {14, 1}, {100, 0}} {
			w.ok(set(limit[0], limit[1]))
			var got [2]int64
			for _, b := range w.books(w.field).Pools[0] {
				got[0], got[1] = got[0]+b.Capacity, got[1]+b.Overbook
			}
			same(w, "limits", limit, got)
			w.audit()
		}
		w.ok(set(16, 0))
		w.ok(w.units(w.field, newCustomer(), 0, 2))
		gonePools(w, w.no(booking.ErrGone, w.units(w.field, newCustomer(), 0, 1)), 0)
	}},
	{"lowering a limit and taking units in one batch keep to the limit", func(w *world) {
		r := w.apply(w.units(w.field, newCustomer(), 0, 4), &booking.SetPool{Event: w.field.ID, Pool: 0, Capacity: 5}, w.units(w.field, newCustomer(), 0, 2),
			w.units(w.field, newCustomer(), 0, 1))
		for i, want := range []error{nil, nil, booking.ErrGone, nil} {
			if !errors.Is(r[i].Err, want) {
				w.Errorf("command %d: %v, not %v", i, r[i].Err, want)
			}
		}
	}},
	{"limits of a pool that is not there, or below zero, are refused", func(w *world) {
		for _, c := range []booking.SetPool{
			{Event: w.field.ID, Pool: 7, Capacity: 10}, {Event: w.field.ID, Pool: 0, Capacity: -1, Overbook: 30}, {Event: w.field.ID, Pool: 0, Capacity: 30, Overbook: -1},
		} {
			before := w.books(w.field)
			a, err := w.Store.Apply(w.Context(), []booking.Command{&c}, booking.Decide)
			if err != nil || a.Results[0].Err == nil {
				w.Errorf("%+v: %v", c, err)
			}
			same(w, "books", before, w.books(w.field))
		}
	}},
}
