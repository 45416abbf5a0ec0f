package bookingtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// noticed is a settle by a notice with an id.
func (w *world) noticed(id booking.PaymentID, notice string, status payment.Status) *booking.Settle {
	w.Helper()
	c := w.settle(id, status)
	c.Notice = booking.NoticeRef{Provider: "simulator", ID: notice}
	return c
}

func (w *world) payment(id booking.PaymentID) booking.Payment {
	w.Helper()
	p, err := w.Store.Payment(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) booking(id booking.HoldID) booking.Booking {
	w.Helper()
	b, err := w.Store.Booking(w.Context(), booking.BookingID(id))
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// refunds runs what is due through: claim, and tell that the provider did it.
func (w *world) refunds() (n int) {
	w.Helper()
	due, err := w.Store.ClaimRefunds(w.Context(), 100, time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range due {
		w.ok(&booking.Refunded{Refund: r.ID, Payment: r.Payment})
	}
	return len(due)
}

var payRules = []rule{
	{"checkout prolongs the hold once, up to its ceiling, and the session ends a buffer before the hold", func(w *world) {
		const m = time.Minute
		for i, test := range []struct {
			at, extended   time.Duration // after the placing; the end after "more time"
			until, session time.Duration
			err            error
		}{
			{0, 0, 10 * m, 8 * m, nil},
			{5 * m, 0, 15 * m, 13 * m, nil},
			{10 * m, 0, 20 * m, 18 * m, nil},
			{10*m + time.Millisecond, 0, 0, 0, booking.ErrHoldEnded},
			{2 * m, 15 * m, 15 * m, 13 * m, nil},
			{14 * m, 15 * m, 20 * m, 18 * m, nil},
			{17 * m, 20 * m, 20 * m, 18 * m, nil}, // 60 s are left to pay
			{17*m + time.Millisecond, 20 * m, 0, 0, booking.ErrTooLateToPay},
			{19 * m, 20 * m, 0, 0, booking.ErrTooLateToPay},
		} {
			begin := w.Clock.Now()
			c := w.seats(w.cinema, newCustomer(), int32(i))
			w.ok(c)
			for w.hold(c.ID).Until.Before(begin.Add(test.extended)) {
				w.ok(&booking.Extend{Event: w.cinema, ID: c.ID, Customer: c.Customer})
			}
			w.Clock.Set(begin.Add(test.at))
			if test.err != nil {
				w.no(test.err, w.checkout(c))
				continue
			}
			r := w.ok(w.checkout(c))
			same(w, fmt.Sprintf("end of hold %d", i), begin.Add(test.until), r.Hold.Until)
			same(w, fmt.Sprintf("end of session %d", i), begin.Add(test.session), r.Payment.ExpiresAt)
			same(w, "hold in the store", r.Hold, w.hold(c.ID))
			same(w, "end of the seat", r.Hold.Until, w.books(w.cinema).Seats[int32(i)].Until)
			if !r.Hold.Prolonged || r.Booking.Status != booking.BookingPending {
				w.Errorf("%d: %+v", i, r)
			}
		}
	}},
	{"a second attempt to pay does not prolong the hold again", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		w.Clock.Add(5 * time.Minute)
		first := w.ok(w.checkout(c))
		w.ok(w.settle(first.Payment.ID, payment.Failed))
		same(w, "booking after a failed attempt", booking.BookingPending, w.booking(c.ID).Status)
		w.Clock.Add(5 * time.Minute)
		second := w.ok(w.checkout(c))
		if second.Payment.ID == first.Payment.ID {
			w.Error("the failed payment is opened again")
		}
		same(w, "end", Start.Add(15*time.Minute), second.Hold.Until)
		same(w, "session", Start.Add(13*time.Minute), second.Payment.ExpiresAt)
		w.ok(w.settle(second.Payment.ID, payment.Succeeded))
	}},
	{"where sessions are shorter than a minute, a whole session must be left", func(w *world) {
		e := Cinema()
		e.Policy.HoldTTL, e.Policy.PaymentTTL, e.Policy.Ceiling = 40*time.Second, 30*time.Second, 60*time.Second
		c := w.seats(e, newCustomer(), 1)
		w.ok(c)
		w.Clock.Add(20 * time.Second)
		w.ok(w.checkout(c))
		late := w.seats(e, newCustomer(), 2)
		w.ok(late)
		w.Clock.Add(20*time.Second + time.Millisecond)
		w.no(booking.ErrTooLateToPay, w.checkout(late)) // its ceiling is 60 s after its placing
		w.Clock.Add(-time.Millisecond)
		w.ok(w.checkout(late))
	}},
	{"a checkout under the same key is answered as before, under another key it is the same payment, with another body it is refused", func(w *world) { // C-26, C-27
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		pay := w.checkout(c)
		pay.Request = [16]byte{1}
		first := w.ok(pay)
		w.ok(&booking.Opened{Payment: pay.Payment, Reference: "sim_1", URL: "https://pay.example/1"})
		again := w.replay(pay)
		same(w, "payment", pay.Payment, again.Payment.ID)
		same(w, "where to pay", "https://pay.example/1", again.Payment.URL)
		w.Clock.Add(time.Minute)
		other := w.checkout(c)
		other.Buyer.Name = "Grace"
		r := w.ok(other)
		if !r.Replay || r.Payment.ID != pay.Payment || r.Hold.Until != first.Hold.Until {
			w.Errorf("a second click: %+v", r)
		}
		same(w, "buyer", "Grace", w.booking(c.ID).Buyer.Name)
		same(w, "payments", 1, len(w.books(w.cinema).Payments))
		different := *pay
		different.Request = [16]byte{2}
		w.no(booking.ErrKeyReused, &different)
		foreign := w.seats(w.cinema, newCustomer(), 2)
		w.ok(foreign)
		elsewhere := *pay
		elsewhere.Hold, elsewhere.Customer = foreign.ID, foreign.Customer
		w.no(booking.ErrKeyReused, &elsewhere)
	}},
	{"two checkouts in one batch are one payment", func(w *world) { // C-26
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		r := w.apply(w.checkout(c), w.checkout(c))
		if r[0].Err != nil || r[1].Err != nil || r[0].Payment.ID != r[1].Payment.ID {
			w.Errorf("%+v", r)
		}
		same(w, "payments", 1, len(w.books(w.cinema).Payments))
	}},
	{"placing, paying and booking may be one batch", func(w *world) {
		c := w.seats(w.flight, newCustomer(), 1, 2)
		pay := w.checkout(c)
		settle := &booking.Settle{Payment: pay.Payment, State: payment.State{Status: payment.Succeeded, Reference: "sim_x", Charged: c.Price}, Times: testTimes}
		r := w.apply(c, pay, settle)
		if r[2].Err != nil || r[2].Booking.Status != booking.BookingConfirmed {
			w.Errorf("%+v", r[2])
		}
		same(w, "hold", r[2].Hold, w.hold(c.ID))
		same(w, "payment", r[2].Payment, w.payment(pay.Payment))
		same(w, "booking", r[2].Booking, w.booking(c.ID))
		held, sold := w.taken(w.flight, 0)
		same(w, "units", []int64{0, 2}, []int64{held, sold})
	}},
	{"a hold that costs nothing is booked at checkout, with or without a provider", func(w *world) {
		for i, provider := range []string{"", "simulator"} {
			c := w.seats(w.cinema, newCustomer(), int32(i))
			c.Price = eur(0)
			w.ok(c)
			pay := w.checkout(c)
			pay.Provider = provider
			r := w.ok(pay)
			if r.Booking.Status != booking.BookingConfirmed || r.Payment.Status != booking.PaymentSucceeded || r.Payment.Provider != booking.FreeProvider {
				w.Errorf("%+v", r)
			}
			w.replay(pay)
			q := w.ok(&booking.QuoteCancellation{Event: w.cinema, ID: booking.QuoteID(newKey(w.cinema.ID)), Booking: r.Booking.ID, Customer: c.Customer}).Quote
			w.ok(&booking.Cancel{Booking: r.Booking.ID, Customer: c.Customer, Quote: q.ID})
			same(w, "refunds", 0, len(w.books(w.cinema).Refunds))
		}
	}},
	{"without a provider nothing that costs can be checked out, and a flight needs a name for every place", func(w *world) {
		c := w.seats(w.flight, newCustomer(), 1, 2)
		w.ok(c)
		pay := w.checkout(c)
		pay.Provider = ""
		w.no(booking.ErrNoProvider, pay)
		for _, names := range [][]string{nil, {"Ada"}, {"Ada", "Grace", "Edsger"}} {
			pay := w.checkout(c)
			pay.Buyer.Passengers = names
			r := w.apply(pay)[0]
			if input, ok := errors.AsType[*booking.InputError](r.Err); !ok || input.Code != "passengers-required" {
				w.Errorf("%d names: %v", len(names), r.Err)
			}
		}
		w.ok(w.checkout(c))
	}},
	{"where the buyer pays is noted once, and a payment that nobody made is not found", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		id := w.ok(w.checkout(c)).Payment.ID
		opened := &booking.Opened{Payment: id, Reference: "sim_1", URL: "https://pay.example"}
		w.ok(opened)
		w.replay(opened)
		w.no(booking.ErrNotFound, &booking.Opened{Payment: booking.PaymentID(newKey(w.cinema.ID))})
		w.no(booking.ErrNotFound, &booking.Settle{Payment: booking.PaymentID(newKey(w.cinema.ID)), State: payment.State{Status: payment.Succeeded}})
		w.no(booking.ErrNotFound, &booking.Settle{
			Payment: booking.PaymentID(newKey(w.cinema.ID)), Notice: booking.NoticeRef{Provider: "simulator", ID: "n"}, State: payment.State{Status: payment.Succeeded},
		})
	}},
	{"a notice is applied once, under one id or under many", func(w *world) { // C-30, C-35, C-37
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		id := w.ok(w.checkout(c)).Payment.ID
		var commands []booking.Command
		for range 20 {
			commands = append(commands, w.noticed(id, "n1", payment.Succeeded))
		}
		for i, r := range w.apply(commands...) {
			if r.Err != nil || r.Replay != (i > 0) {
				w.Errorf("%d: %+v", i, r)
			}
		}
		w.replay(w.noticed(id, "n1", payment.Succeeded))
		w.replay(w.noticed(id, "n2", payment.Succeeded))
		same(w, "refunds", 0, len(w.books(w.cinema).Refunds))
		w.Clock.Add(76 * time.Hour)
		w.replay(w.noticed(id, "n1", payment.Failed))
		n, err := w.Store.ForgetNotices(w.Context(), w.Clock.Now(), 10)
		if n != 2 || err != nil {
			w.Errorf("forgot %d notices, %v", n, err)
		}
		w.replay(w.noticed(id, "n1", payment.Failed)) // the payment itself remembers
		same(w, "payment", booking.PaymentSucceeded, w.payment(id).Status)
	}},
	{"notices in every order end in the same state, in time", func(w *world) { // C-31
		tell := []func(booking.PaymentID) booking.Command{
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"s", payment.Succeeded) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"f", payment.Failed) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"e", payment.Expired) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"d", payment.Succeeded) },
			func(id booking.PaymentID) booking.Command { return w.settle(id, payment.Pending) },
		}
		for i, order := range permutations(len(tell)) {
			c := w.seats(w.cinema, newCustomer(), int32(i))
			w.ok(c)
			id := w.ok(w.checkout(c)).Payment.ID
			for _, n := range order {
				w.ok(tell[n](id))
			}
			if p, b := w.payment(id), w.booking(c.ID); p.Status != booking.PaymentSucceeded || b.Status != booking.BookingConfirmed || p.Owed != 0 {
				w.Errorf("order %v: payment %v, booking %v, %d owed", order, p.Status, b.Status, p.Owed)
			}
		}
	}},
	{"notices in every order end in the same state, after the hold", func(w *world) { // C-31, C-32
		tell := []func(booking.PaymentID) booking.Command{
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"s", payment.Succeeded) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"f", payment.Failed) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"e", payment.Expired) },
			func(id booking.PaymentID) booking.Command { return w.noticed(id, id.String()+"d", payment.Succeeded) },
			nil, // the refunder looks what is due
			func(id booking.PaymentID) booking.Command { return &booking.Expire{ID: w.payment(id).Hold} },
		}
		for i, order := range permutations(len(tell)) {
			if i%6 != 0 { // of 720; whoever changes this knows that the order of the first three is what matters most
				continue
			}
			c := w.seats(w.cinema, newCustomer(), int32(i/6))
			w.ok(c)
			id := w.ok(w.checkout(c)).Payment.ID
			w.Clock.Set(w.hold(c.ID).Until.Add(time.Millisecond))
			for _, n := range order {
				if tell[n] == nil {
					w.refunds()
					continue
				}
				w.ok(tell[n](id))
			}
			w.refunds()
			p, b := w.payment(id), w.booking(c.ID)
			if p.Status != booking.PaymentRefunded || b.Status != booking.BookingFailed || p.Owed != stallsPrice || p.Refunded != stallsPrice || b.Refund != stallsPrice {
				w.Errorf("order %v: payment %v, booking %v, %d owed, %d refunded", order, p.Status, b.Status, p.Owed, p.Refunded)
			}
		}
		same(w, "refunds", 120, len(w.books(w.cinema).Refunds))
	}},
	{"two payments that both succeed are one booking and one refund, in either order", func(w *world) {
		for i := range 2 {
			c := w.seats(w.cinema, newCustomer(), int32(i))
			w.ok(c)
			ids := []booking.PaymentID{w.ok(w.checkout(c)).Payment.ID}
			w.ok(w.settle(ids[0], payment.Failed))
			ids = append(ids, w.ok(w.checkout(c)).Payment.ID)
			w.ok(w.settle(ids[i], payment.Succeeded))
			if other := w.payment(ids[1]); i == 0 && other.CheckAt.After(w.Clock.Now()) {
				w.Error("the other session stays open")
			}
			r := w.ok(w.settle(ids[1-i], payment.Succeeded))
			if !r.Late || r.Booking.Status != booking.BookingConfirmed || r.Payment.Status != booking.PaymentRefundDue {
				w.Errorf("second payment: %+v", r)
			}
			w.replay(w.settle(ids[1-i], payment.Succeeded))
			same(w, "refunded", 1, w.refunds())
			same(w, "the second payment", booking.PaymentRefunded, w.payment(ids[1-i]).Status)
			same(w, "the first payment", booking.PaymentSucceeded, w.payment(ids[i]).Status)
			same(w, "refund of the booking", int64(0), w.booking(c.ID).Refund)
		}
		for _, r := range w.books(w.cinema).Refunds {
			same(w, "cause", booking.CauseDuplicate, r.Cause)
		}
	}},
	{"a booking fails once, however many payments come too late, and each goes back with its own reason told", func(w *world) { // C-32
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		var ids []booking.PaymentID
		for range 2 {
			ids = append(ids, w.ok(w.checkout(c)).Payment.ID)
			w.ok(w.settle(ids[len(ids)-1], payment.Failed))
		}
		w.Clock.Set(w.hold(c.ID).Until.Add(time.Millisecond))
		w.ok(w.settle(ids[0], payment.Succeeded))
		wrong := w.settle(ids[1], payment.Succeeded)
		wrong.State.Charged.Amount = 700
		w.ok(wrong)
		same(w, "refund of the booking", int64(stallsPrice+700), w.booking(c.ID).Refund)
		messages, err := w.Outbox.Take(w.Context(), w.Clock.Now(), 10)
		if err != nil {
			w.Fatal(err)
		}
		var told []string
		for _, m := range messages {
			var fact booking.RefundFact
			if err := json.Unmarshal(m.Payload, &fact); err != nil {
				w.Error(err)
			}
			told = append(told, m.Type+" "+fact.Reason)
		}
		same(w, "messages", []string{"booking.failed late", "booking.refund-due late", "booking.refund-due wrong"}, told)
		same(w, "refunded", 2, w.refunds())
	}},
	{"a wrong amount or currency fails the booking, frees the places and goes back whole", func(w *world) { // C-64
		for i, charged := range []money.Money{eur(stallsPrice - 1), eur(stallsPrice + 1), {Amount: stallsPrice, Currency: "USD"}} {
			c := w.seats(w.cinema, newCustomer(), 1)
			w.ok(c)
			settle := w.settle(w.ok(w.checkout(c)).Payment.ID, payment.Succeeded)
			settle.State.Charged = charged
			r := w.ok(settle)
			if !r.Late || r.Booking.Status != booking.BookingFailed || r.Payment.Status != booking.PaymentRefundDue || r.Hold.State != booking.HoldReleased {
				w.Errorf("%v: %+v", charged, r)
			}
			w.replay(settle)
			same(w, "refunds", i+1, len(w.books(w.cinema).Refunds))
			same(w, "seat", booking.Available, w.books(w.cinema).Seats[1].Status)
		}
		for _, r := range w.books(w.cinema).Refunds {
			if p := w.payment(r.Payment); r.Amount != p.Charged || r.Cause != booking.CauseWrong {
				w.Errorf("refund of %v because of %s; %v were charged", r.Amount, r.Cause, p.Charged)
			}
		}
	}},
	{"a wrong amount for a hold that is over, or booked by another payment, goes back as well", func(w *world) { // C-64
		over := w.seats(w.cinema, newCustomer(), 1)
		w.ok(over)
		late := w.settle(w.ok(w.checkout(over)).Payment.ID, payment.Succeeded)
		late.State.Charged.Amount++
		booked := w.seats(w.cinema, newCustomer(), 2)
		w.ok(booked)
		first := w.ok(w.checkout(booked)).Payment.ID
		w.ok(w.settle(first, payment.Failed))
		w.ok(w.settle(w.ok(w.checkout(booked)).Payment.ID, payment.Succeeded))
		wrong := w.settle(first, payment.Succeeded)
		wrong.State.Charged.Currency = "USD"
		w.ok(wrong)
		w.Clock.Set(w.hold(over.ID).Until.Add(time.Millisecond))
		next := w.seats(w.cinema, newCustomer(), 1)
		w.ok(next)
		w.ok(late)
		same(w, "refunded", 2, w.refunds())
		same(w, "the booked one", booking.BookingConfirmed, w.booking(booked.ID).Status)
		same(w, "the late one", booking.BookingFailed, w.booking(over.ID).Status)
		same(w, "owner", next.ID.Bits, w.books(w.cinema).Seats[1].Hold)
	}},
	{"a success that charged nothing books nothing and owes nothing", func(w *world) { // C-64
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		settle := w.settle(w.ok(w.checkout(c)).Payment.ID, payment.Succeeded)
		settle.State.Charged = money.Money{}
		r := w.ok(settle)
		if r.Booking.Status == booking.BookingConfirmed || r.Payment.Owed != 0 {
			w.Errorf("%+v", r)
		}
		same(w, "refunds", 0, len(w.books(w.cinema).Refunds))
	}},
	{"money after a session that failed or expired still books, as long as the hold lives", func(w *world) {
		for i, status := range []payment.Status{payment.Failed, payment.Expired} {
			c := w.seats(w.cinema, newCustomer(), int32(i))
			w.ok(c)
			id := w.ok(w.checkout(c)).Payment.ID
			w.ok(w.settle(id, status))
			r := w.ok(w.settle(id, payment.Succeeded))
			same(w, "booking", booking.BookingConfirmed, r.Booking.Status)
		}
	}},
	{"a booking fails when its hold ends unpaid or is released, and its session is closed at once", func(w *world) {
		for i, end := range []func(c *booking.Place) booking.Command{
			func(c *booking.Place) booking.Command { return &booking.Release{ID: c.ID, Customer: c.Customer} },
			func(c *booking.Place) booking.Command {
				w.Clock.Set(w.hold(c.ID).Until.Add(time.Millisecond))
				return &booking.Expire{ID: c.ID}
			},
		} {
			c := w.seats(w.cinema, newCustomer(), int32(i))
			w.ok(c)
			id := w.ok(w.checkout(c)).Payment.ID
			w.ok(end(c))
			b := w.booking(c.ID)
			same(w, "booking", booking.BookingFailed, b.Status)
			same(w, "why", "unpaid", b.Reason)
			due, err := w.Store.DuePayments(w.Context(), 10)
			if err != nil || len(due) != 1 || due[0].Payment.ID != id || due[0].Held {
				w.Errorf("due: %+v, %v", due, err)
			}
			closed := w.settle(id, payment.Unknown)
			closed.Closed = true
			same(w, "payment", booking.PaymentExpired, w.ok(closed).Payment.Status)
		}
	}},
	{"the provider is asked before a hold ends, at its end, and then ever more rarely", func(w *world) { // C-34
		c := w.seats(w.cinema, newCustomer(), 1)
		until := w.ok(c).Hold.Until
		p := w.ok(w.checkout(c)).Payment
		same(w, "first look", until.Add(-30*time.Second), p.CheckAt)
		same(w, "not due yet", 0, len(dueAt(w, p.CheckAt.Add(-time.Millisecond))))
		d := dueAt(w, p.CheckAt)
		if len(d) != 1 || !d[0].Held || !d[0].Until.Equal(until) {
			w.Fatalf("due: %+v", d)
		}
		at := w.ok(w.settle(p.ID, payment.Pending)).Payment.CheckAt
		same(w, "second look", until.Add(time.Millisecond), at)
		if d = dueAt(w, at); len(d) != 1 || d[0].Held {
			w.Fatalf("due after the end: %+v", d)
		}
		waits := []time.Duration{}
		for range 14 {
			now := w.Clock.Now()
			w.Clock.Set(w.ok(w.settle(p.ID, payment.Pending)).Payment.CheckAt)
			waits = append(waits, w.Clock.Now().Sub(now))
		}
		for i, wait := range waits {
			same(w, "wait", min(time.Hour, 2*time.Second<<i), wait)
		}
		lag, err := w.Store.Lag(w.Context())
		if err != nil || lag.Reconcile != 0 {
			w.Errorf("lag %v, %v", lag.Reconcile, err)
		}
	}},
	{"refunds are claimed by one, tried again later each time, and done once", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		id := w.ok(w.checkout(c)).Payment.ID
		w.ok(&booking.Release{ID: c.ID, Customer: c.Customer})
		w.ok(w.settle(id, payment.Succeeded))
		claim := func() []booking.Refund {
			due, err := w.Store.ClaimRefunds(w.Context(), 10, time.Minute)
			if err != nil {
				w.Fatal(err)
			}
			return due
		}
		due := claim()
		if len(due) != 1 || due[0].Cause != booking.CauseLate || due[0].Amount != eur(stallsPrice) || due[0].Payment != id {
			w.Fatalf("due: %+v", due)
		}
		r := due[0]
		same(w, "claimed twice", 0, len(claim()))
		w.Clock.Add(time.Minute) // the claimer died
		same(w, "claimed after the lease", 1, len(claim()))
		for i := range 14 {
			w.ok(&booking.Refunded{Refund: r.ID, Payment: id, Failed: true})
			wait := min(time.Hour, 2*time.Second<<i)
			w.Clock.Add(wait - time.Millisecond)
			same(w, "too early", 0, len(claim()))
			w.Clock.Add(time.Millisecond)
			due = claim()
			same(w, "attempts", i+1, due[0].Attempts)
		}
		lag, err := w.Store.Lag(w.Context())
		if err != nil || lag.Refunds != 1 || lag.Refund <= 0 {
			w.Errorf("lag %+v, %v", lag, err)
		}
		done := &booking.Refunded{Refund: r.ID, Payment: id}
		w.ok(done)
		w.replay(done)
		w.replay(&booking.Refunded{Refund: r.ID, Payment: id, Failed: true})
		w.Clock.Add(100 * time.Hour)
		same(w, "due when done", 0, len(claim()))
		same(w, "payment", booking.PaymentRefunded, w.payment(id).Status)
		w.no(booking.ErrNotFound, &booking.Refunded{Refund: booking.RefundID(newKey(w.cinema.ID)), Payment: id})
	}},
	{"the price is the one of the placing", func(w *world) { // C-64
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		dearer := *w.cinema
		dearer.Prices = map[string]int64{"Stalls": 9900, "Premium": 9900}
		pay := w.checkout(c)
		pay.Event = &dearer
		same(w, "price", eur(stallsPrice), w.ok(pay).Payment.Price)
	}},
}

func dueAt(w *world, at time.Time) []booking.DuePayment {
	w.Helper()
	w.Clock.Set(at)
	due, err := w.Store.DuePayments(w.Context(), 10)
	if err != nil {
		w.Fatal(err)
	}
	return due
}
