package bookingtest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
)

var succeed = simulator.Action{Outcome: simulator.Succeed, Callbacks: 1}

var checkoutTests = []engineTest{
	{"a hold that is paid is a booking, with one message that names its places", func(s *stage) {
		h := s.hold(s.flight, newCustomer(), "12A", "12B")
		p := s.session(h, "pay")
		report, _ := s.sim.Report(p.ID.String())
		same(s, "status at the provider", payment.Pending, report.Status)
		page, _ := s.sim.Page(p.ID.String())
		same(s, "price", h.Price, page.Price)
		same(s, "end of the session", p.ExpiresAt, page.ExpiresAt)
		s.act(p.ID, succeed)
		b := s.expect(h, booking.BookingConfirmed)
		names, err := s.svc.Places(s.Context(), s.flight.ID, b.Seats, b.Units)
		if err != nil {
			s.Fatal(err)
		}
		same(s, "places", []booking.FactPlace{{Seat: "12A", Pool: "ECONOMY"}, {Seat: "12B", Pool: "ECONOMY"}}, names)
		if _, err := s.svc.Booking(s.Context(), b.ID, newCustomer()); !errors.Is(err, booking.ErrNotFound) {
			s.Errorf("somebody else's booking: %v", err)
		}
	}},
	{"clicking pay again and again is one session and one charge", func(s *stage) { // C-26
		h := s.hold(s.cinema, newCustomer(), "B5")
		var running atomic.Int64
		together(40, func(i int) {
			switch _, err := s.pay(h, []string{"a", "b"}[i%2]); {
			case errors.Is(err, booking.ErrKeyInProgress):
				running.Add(1)
			case err != nil:
				s.Error(err)
			}
		})
		same(s, "sessions", 1, s.sim.Totals().Opened)
		same(s, "payments", 1, len(s.books(s.cinema).Payments))
	}},
	{"while a checkout waits for the provider its repetition is told so", func(s *stage) { // C-26
		h := s.hold(s.cinema, newCustomer(), "B5")
		s.sim.Break(simulator.CallOpen, simulator.Fault{Times: 1, Delay: 5 * time.Second})
		var wg sync.WaitGroup
		wg.Go(func() { s.session(h, "k") })
		synctest.Wait()
		if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrKeyInProgress) {
			s.Error(err)
		}
		wg.Wait()
		s.session(h, "k")
	}},
	{"a key of a checkout with another body is refused", func(s *stage) { // C-27
		h := s.hold(s.cinema, newCustomer(), "B5")
		s.session(h, "k")
		_, err := s.svc.Checkout(s.Context(), booking.Pay{Hold: h.ID, Customer: h.Customer, Key: "k", Buyer: booking.Buyer{Email: "other@example.org"}})
		if !errors.Is(err, booking.ErrKeyReused) {
			s.Error(err)
		}
	}},
	{"when the provider's answer is lost, the same key finds the same session", func(s *stage) { // C-39
		for i, fault := range []simulator.Fault{{Times: 1, Lose: true}, {Times: 1, Refuse: true}} {
			h := s.hold(s.cinema, newCustomer(), code(s.cinema, 30+i))
			s.sim.Break(simulator.CallOpen, fault)
			if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrProvider) {
				s.Error(err)
			}
			s.act(s.session(h, "k").ID, succeed)
			s.expect(h, booking.BookingConfirmed)
			same(s, "sessions", i+1, s.sim.Totals().Opened)
		}
	}},
	{"a crash between the provider's charge and the note of its session loses nobody's money", func(s *stage) { // C-40
		h, late := s.hold(s.cinema, newCustomer(), "B5"), s.hold(s.cinema, newCustomer(), "B6")
		s.sim.Break(simulator.CallOpen, simulator.Fault{Times: 2, Lose: true})
		for _, h := range []booking.Hold{h, late} {
			if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrProvider) {
				s.Fatal(err)
			}
		}
		pays, err := s.svc.PaymentsOf(s.Context(), booking.BookingID(h.ID))
		if err != nil || len(pays) != 1 {
			s.Fatal(pays, err)
		}
		s.act(pays[0].ID, succeed)
		s.expect(h, booking.BookingConfirmed)
		pays, err = s.svc.PaymentsOf(s.Context(), booking.BookingID(late.ID))
		if err != nil {
			s.Fatal(err)
		}
		s.act(pays[0].ID, simulator.Action{Outcome: simulator.Succeed}) // and the provider never tells
		s.Clock.Add(11 * time.Minute)
		s.loops()
		s.expect(late, booking.BookingFailed)
		same(s, "payment", booking.PaymentRefunded, s.payment(pays[0].ID).Status)
	}},
	{"no session is opened for a hold that is over", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		s.sim.Break(simulator.CallOpen, simulator.Fault{Times: 1, Refuse: true})
		if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrProvider) {
			s.Fatal(err)
		}
		if _, err := s.svc.Release(s.Context(), h.ID, h.Customer); err != nil {
			s.Fatal(err)
		}
		for range 2 {
			if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrHoldEnded) {
				s.Error(err)
			}
			s.loops()
		}
		same(s, "sessions", 0, s.sim.Totals().Opened)
	}},
	{"a session that is over can be followed by another, as long as the hold lives", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		first := s.session(h, "a")
		s.act(first.ID, simulator.Action{Outcome: simulator.Fail, Callbacks: 1})
		second := s.session(h, "b")
		if second.ID == first.ID {
			s.Error("a failed session is offered again")
		}
		s.act(second.ID, succeed)
		s.expect(h, booking.BookingConfirmed)
	}},
	{"a session that is over is followed by another, though the provider has not said so yet", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		first := s.session(h, "a")
		for range 2 {
			if _, err := s.svc.Extend(s.Context(), h.ID, h.Customer); err != nil {
				s.Fatal(err)
			}
		}
		s.Clock.Set(first.ExpiresAt)
		if again := s.session(h, "b"); again.ID != first.ID {
			s.Error("two sessions are open at once")
		}
		s.Clock.Add(time.Millisecond)
		second := s.session(h, "c")
		if second.ID == first.ID {
			s.Error("the buyer is sent to a session that is over")
		}
		same(s, "end", s.books(s.cinema).Holds[h.ID].Until.Add(-2*time.Minute), second.ExpiresAt)
		s.loops()
		same(s, "the first", booking.PaymentExpired, s.payment(first.ID).Status)
		s.act(second.ID, succeed)
		s.expect(h, booking.BookingConfirmed)
		s.act(first.ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 1, Late: true}) // and yet
		s.loops()
		same(s, "the first", booking.PaymentRefunded, s.payment(first.ID).Status)
	}},
	{"a payment that the provider never heard of waits for its buyer to try again", func(s *stage) { // C-39
		e := Cinema()
		e.Policy.HoldTTL, e.Policy.PaymentTTL, e.Policy.Ceiling = 2*time.Hour, 110*time.Minute, 2*time.Hour
		s.add(e)
		h := s.hold(e, newCustomer(), "B5")
		s.sim.Break(simulator.CallOpen, simulator.Fault{Times: 1, Refuse: true})
		if _, err := s.pay(h, "k"); !errors.Is(err, booking.ErrProvider) {
			s.Fatal(err)
		}
		s.Clock.Add(15 * time.Minute)
		s.loops() // asks, and the provider does not know it
		s.act(s.session(h, "k").ID, succeed)
		s.expect(h, booking.BookingConfirmed)
	}},
	{"a free hold is booked without asking anybody", func(s *stage) {
		e := Cinema()
		e.Prices = map[string]int64{"Stalls": 0, "Premium": 0}
		s.add(e)
		s.svc = s.newService(func(c *booking.Config) { c.Providers = nil })
		if s.svc.TakesPayments() {
			s.Error("payments are taken without a provider")
		}
		h := s.hold(e, newCustomer(), "B5", "B6")
		for range 2 {
			if p, err := s.pay(h, "k"); err != nil || p.Status != booking.PaymentSucceeded {
				s.Errorf("%+v, %v", p, err)
			}
		}
		s.expect(h, booking.BookingConfirmed)
		costs := s.hold(s.cinema, newCustomer(), "B5")
		if _, err := s.pay(costs, "k"); !errors.Is(err, booking.ErrNoProvider) {
			s.Error(err)
		}
		s.svc = s.newService(func(*booking.Config) {})
	}},
	{"more time is given up to the ceiling, and money after the first session's end still books", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "k")
		for _, want := range []error{nil, nil, booking.ErrCeiling} {
			if _, err := s.svc.Extend(s.Context(), h.ID, h.Customer); !errors.Is(err, want) {
				s.Errorf("%v, not %v", err, want)
			}
		}
		s.Clock.Add(19 * time.Minute)
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 1, Late: true})
		s.expect(h, booking.BookingConfirmed)
	}},
	{"cancelling through a quote gives the money back through the provider, and the quote's key repeats it", func(s *stage) { // C-26
		b := s.bought(s.hold(s.cinema, newCustomer(), "B5", "J5"))
		q, err := s.svc.Quote(s.Context(), b.ID, b.Customer, "k")
		if err != nil {
			s.Fatal(err)
		}
		again, err := s.svc.Quote(s.Context(), b.ID, b.Customer, "k")
		if err != nil || again != q || q.Refund != eur(stallsPrice+premiumPrice) {
			s.Errorf("%+v, then %+v, %v", q, again, err)
		}
		if _, err := s.svc.Cancel(s.Context(), b.ID, newCustomer(), q.ID); !errors.Is(err, booking.ErrNotFound) {
			s.Error(err)
		}
		if _, err := s.svc.Quote(s.Context(), b.ID, newCustomer(), "k"); !errors.Is(err, booking.ErrNotFound) {
			s.Error(err)
		}
		together(20, func(int) {
			got, err := s.svc.Cancel(s.Context(), b.ID, b.Customer, q.ID)
			if err != nil || got.Status != booking.BookingCancelled {
				s.Errorf("%+v, %v", got, err)
			}
		})
		s.loops()
		same(s, "given back", map[string]int64{"EUR": stallsPrice + premiumPrice}, s.sim.Totals().Refunded)
		s.hold(s.cinema, newCustomer(), "B5")
	}},
	{"a quote of another event's booking is not found", func(s *stage) {
		b := s.bought(s.hold(s.cinema, newCustomer(), "B5"))
		if _, err := s.svc.Cancel(s.Context(), b.ID, b.Customer, booking.QuoteID(newKey(s.field.ID))); !errors.Is(err, booking.ErrNotFound) {
			s.Error(err)
		}
	}},
	{"staff block, unblock and cancel", func(s *stage) {
		for _, unblock := range []bool{false, true} {
			if err := s.svc.Block(s.Context(), s.cinema, []string{"B6", "B5", "B6"}, unblock); err != nil {
				s.Error(err)
			}
			_, err := s.try(s.cinema, newCustomer(), "B5")
			if unblock != (err == nil) {
				s.Errorf("hold of a seat that is blocked: %v, after unblocking: %v", !unblock, err)
			}
		}
		if err := s.svc.Block(s.Context(), s.cinema, []string{"B5"}, false); !errors.Is(err, booking.ErrSeatsTaken) {
			s.Error(err)
		}
		if _, ok := errors.AsType[*booking.InputError](s.svc.Block(s.Context(), s.cinema, []string{"Z99"}, false)); !ok {
			s.Error("an unknown seat was blocked")
		}
		b := s.bought(s.hold(s.cinema, newCustomer(), "C5"))
		if _, err := s.svc.CancelByStaff(s.Context(), b.ID, booking.StaffCancel{Refund: 500, Reason: "heating"}); err != nil {
			s.Fatal(err)
		}
		s.loops()
		same(s, "given back", map[string]int64{"EUR": 500}, s.sim.Totals().Refunded)
	}},
}

var moneyTests = []engineTest{
	{"a callback that comes twenty times at once is one booking, and every one is answered", func(s *stage) { // C-30, C-35
		for i, distinct := range []bool{false, true} {
			h := s.hold(s.cinema, newCustomer(), code(s.cinema, 30+i))
			p := s.session(h, "pay")
			s.act(p.ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 20, DistinctIDs: distinct})
			s.expect(h, booking.BookingConfirmed)
			report, _ := s.sim.Report(p.ID.String())
			same(s, "callbacks answered", 20, report.CallbacksSent)
		}
		same(s, "repeated", 38, s.watch.count("notice repeated"))
	}},
	{"a stale failure after the success changes nothing", func(s *stage) { // C-31
		h := s.hold(s.cinema, newCustomer(), "B5")
		s.act(s.session(h, "pay").ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 2, OutOfOrder: true})
		s.Clock.Add(simulator.OutOfOrderLag)
		same(s, "told", 1, s.sim.RunOnce(s.Context()))
		s.expect(h, booking.BookingConfirmed)
	}},
	{"money that comes after the hold goes back once, whether its place is free or resold", func(s *stage) { // C-32, C-33
		for i, resold := range []bool{false, true} {
			h := s.hold(s.cinema, newCustomer(), "B5")
			p := s.session(h, "pay")
			s.Clock.Add(11 * time.Minute)
			next := h
			if resold {
				next = s.hold(s.cinema, newCustomer(), "B5")
			}
			s.act(p.ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 20, DistinctIDs: true, Late: true})
			same(s, "refund of the booking", int64(stallsPrice), s.expect(h, booking.BookingFailed).Refund)
			s.loops()
			same(s, "payment", booking.PaymentRefunded, s.payment(p.ID).Status)
			same(s, "alerts", i+1, s.watch.count("alert refund"))
			if resold {
				s.bought(next)
			}
			same(s, "late notices", i+1, s.watch.count("notice late"))
		}
		same(s, "given back", map[string]int64{"EUR": 2 * stallsPrice}, s.sim.Totals().Refunded)
	}},
	{"a callback that never comes costs nobody the place: the provider is asked before the hold ends", func(s *stage) { // C-34
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed})
		s.loops()
		s.expect(h, booking.BookingPending)
		s.Clock.Set(h.Until.Add(-30 * time.Second))
		s.loops()
		s.expect(h, booking.BookingConfirmed)
	}},
	{"every payment that is pending for fifteen minutes is asked about, however long its hold is", func(s *stage) { // C-34
		e := Cinema()
		e.Policy.HoldTTL, e.Policy.PaymentTTL, e.Policy.Ceiling = 2*time.Hour, 110*time.Minute, 2*time.Hour
		s.add(e)
		h := s.hold(e, newCustomer(), "B5")
		s.act(s.session(h, "pay").ID, simulator.Action{Outcome: simulator.Succeed})
		s.Clock.Add(15*time.Minute - time.Millisecond)
		s.loops()
		s.expect(h, booking.BookingPending)
		s.Clock.Add(time.Millisecond)
		s.loops()
		s.expect(h, booking.BookingConfirmed)
	}},
	{"a buyer who comes back sooner than the callback is asked for at the provider, at a bounded rate", func(s *stage) { // C-34
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		look := func(want booking.BookingStatus) {
			s.Helper()
			b, err := s.svc.LookAgain(s.Context(), s.expect(h, booking.BookingPending))
			if err != nil || b.Status != want {
				s.Errorf("%v, %v", b.Status, err)
			}
		}
		look(booking.BookingPending)
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed})
		look(booking.BookingPending) // asked a moment ago
		s.Clock.Add(2 * time.Second)
		look(booking.BookingConfirmed)
	}},
	{"a hold that ends unpaid has its session closed, so that nobody pays for nothing", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		if _, err := s.svc.Release(s.Context(), h.ID, h.Customer); err != nil {
			s.Fatal(err)
		}
		s.loops()
		if err := s.sim.Act(s.Context(), p.ID.String(), succeed); !errors.Is(err, payment.ErrDeclined) {
			s.Errorf("paid for a hold that was released: %v", err)
		}
		same(s, "payment", booking.PaymentExpired, s.payment(p.ID).Status)
		s.expect(h, booking.BookingFailed)
		// Paid after all: it was on its way while the session was closed.
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed, Callbacks: 1, Late: true})
		s.loops()
		same(s, "payment", booking.PaymentRefunded, s.payment(p.ID).Status)
	}},
	{"what was paid while the provider could not be reached is found out when it can", func(s *stage) { // C-34, C-39
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed})
		s.sim.Break(simulator.CallLook, simulator.Fault{Times: -1, Refuse: true})
		s.sim.Break(simulator.CallClose, simulator.Fault{Times: -1, Lose: true})
		for range 12 {
			s.Clock.Add(2 * time.Minute)
			if n, err := s.svc.ReconcileOnce(s.Context()); n > 0 && err == nil {
				s.Error("nobody is told that the provider can't be reached")
			}
		}
		s.expect(h, booking.BookingPending)
		if _, err := s.svc.SweepOnce(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.expect(h, booking.BookingFailed)
		s.sim.Repair()
		s.Clock.Add(time.Hour)
		s.loops()
		same(s, "payment", booking.PaymentRefunded, s.payment(p.ID).Status)
	}},
	{"two payments for one hold that both succeed are one booking and one refund", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		first := s.session(h, "a")
		s.act(first.ID, simulator.Action{Outcome: simulator.Fail, Callbacks: 1})
		second := s.session(h, "b")
		for _, id := range []booking.PaymentID{first.ID, second.ID} {
			if err := s.sim.Act(s.Context(), id.String(), simulator.Action{Outcome: simulator.Succeed, Callbacks: 3, DistinctIDs: true}); err != nil {
				s.Fatal(err)
			}
		}
		s.sim.RunOnce(s.Context())
		s.expect(h, booking.BookingConfirmed)
		s.loops()
		same(s, "given back", map[string]int64{"EUR": stallsPrice}, s.sim.Totals().Refunded)
	}},
	{"when one payment booked, the other session is closed", func(s *stage) {
		h := s.hold(s.cinema, newCustomer(), "B5")
		first := s.session(h, "a")
		s.act(first.ID, simulator.Action{Outcome: simulator.Fail, Callbacks: 1})
		second := s.session(h, "b")
		s.act(first.ID, succeed)
		s.expect(h, booking.BookingConfirmed)
		s.loops()
		if err := s.sim.Act(s.Context(), second.ID.String(), succeed); !errors.Is(err, payment.ErrDeclined) {
			s.Errorf("paid twice: %v", err)
		}
	}},
	{"a wrong amount or currency is refused, refunded whole and told", func(s *stage) { // C-64
		for i, a := range []simulator.Action{
			{Amount: stallsPrice - 1}, {Amount: stallsPrice + 1}, {Amount: stallsPrice, Currency: "USD"},
		} {
			a.Outcome, a.Callbacks = simulator.Succeed, 2
			h := s.hold(s.cinema, newCustomer(), "B5") // free again each time
			p := s.session(h, "pay")
			s.act(p.ID, a)
			s.expect(h, booking.BookingFailed)
			s.loops()
			same(s, "payment", booking.PaymentRefunded, s.payment(p.ID).Status)
			same(s, "alerts", i+1, s.watch.count("alert refund"))
		}
	}},
	{"a refund that the provider does not take is tried again until it is done, and done once", func(s *stage) {
		b := s.bought(s.hold(s.cinema, newCustomer(), "B5"))
		if _, err := s.svc.CancelByStaff(s.Context(), b.ID, booking.StaffCancel{Refund: -1}); err != nil {
			s.Fatal(err)
		}
		s.sim.Break(simulator.CallRefund, simulator.Fault{Times: 3, Refuse: true})
		s.sim.Break(simulator.CallRefund, simulator.Fault{Times: 3, Lose: true}) // done, but nobody hears of it
		for range 20 {
			if _, err := s.svc.RefundOnce(s.Context()); err != nil {
				s.Fatal(err)
			}
			s.Clock.Add(time.Minute)
		}
		same(s, "failed", 6, s.watch.count("refund failed"))
		same(s, "done", 1, s.watch.count("refund done"))
		same(s, "given back", map[string]int64{"EUR": stallsPrice}, s.sim.Totals().Refunded)
	}},
	{"two processes give a refund back once", func(s *stage) {
		other := s.newService(func(*booking.Config) {})
		for i := range 10 {
			b := s.bought(s.hold(s.cinema, newCustomer(), code(s.cinema, 30+i)))
			if _, err := s.svc.CancelByStaff(s.Context(), b.ID, booking.StaffCancel{Refund: -1}); err != nil {
				s.Fatal(err)
			}
		}
		together(8, func(i int) {
			if _, err := []*booking.Service{s.svc, other}[i%2].RefundOnce(s.Context()); err != nil {
				s.Error(err)
			}
		})
		same(s, "done", 10, s.watch.count("refund done"))
		same(s, "given back", map[string]int64{"EUR": 10 * stallsPrice}, s.sim.Totals().Refunded)
	}},
	{"a callback that can't be taken now is told again, and then taken", func(s *stage) { // C-21
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		s.gate.breaks(func([]booking.Command) error { return booking.ErrUnavailable }, nil)
		s.act(p.ID, succeed)
		s.gate.breaks(nil, nil)
		s.expect(h, booking.BookingPending)
		s.Clock.Add(time.Second)
		same(s, "told", 1, s.sim.RunOnce(s.Context()))
		s.expect(h, booking.BookingConfirmed)
	}},
	{"a forged, stale or foreign callback changes nothing", func(s *stage) { // C-36, C-37
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		before := s.books(s.cinema)
		mine := payment.NewSecret()
		say := func(secret payment.Secret, id string, at time.Time) error {
			header, body := http.Header{}, []byte(`{"type":"payment.succeeded","timestamp":"2026-03-29T01:00:00Z","data":{"payment":"`+id+
				`","reference":"sim_x","charged":{"amount":1200,"currency":"EUR"}}}`)
			payment.Sign(header, []payment.Secret{secret}, "ntc_1", at, body)
			return s.svc.Notice(s.Context(), "simulator", header, body)
		}
		if err := say(mine, p.ID.String(), s.Clock.Now()); !errors.Is(err, payment.ErrNotAuthentic) {
			s.Errorf("signed by somebody else: %v", err)
		}
		if err := s.svc.Notice(s.Context(), "nobody", nil, nil); !errors.Is(err, booking.ErrNoProvider) {
			s.Errorf("of a provider that there is not: %v", err)
		}
		same(s, "books", before, s.books(s.cinema))
		same(s, "forged", 1, s.watch.count("notice forged"))
	}},
	{"a provider is never called while a batch is running", func(s *stage) {
		// The gate is shut: a checkout that has not come back from the store must not have reached the provider.
		h := s.hold(s.cinema, newCustomer(), "B5")
		open := s.gate.close()
		var wg sync.WaitGroup
		wg.Go(func() { s.session(h, "k") })
		synctest.Wait()
		same(s, "sessions", 0, s.sim.Totals().Opened)
		open()
		wg.Wait()
	}},
	{"the price is the one of the placing, whatever it is by the time of paying", func(s *stage) { // C-64
		h := s.hold(s.cinema, newCustomer(), "B5")
		dearer := *s.cinema
		dearer.Prices = map[string]int64{"Stalls": 9900, "Premium": 9900}
		s.shelf.put(&dearer)
		p := s.session(h, "pay")
		same(s, "price", eur(stallsPrice), p.Price)
		s.act(p.ID, succeed)
		same(s, "booking", eur(stallsPrice), s.expect(h, booking.BookingConfirmed).Price)
	}},
}

var loopTests = []engineTest{
	{"the loops run by themselves, and report what fails", func(s *stage) {
		ctx, stop := context.WithCancel(s.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.svc.Run(ctx) })
		h := s.hold(s.cinema, newCustomer(), "B5")
		p := s.session(h, "pay")
		s.act(p.ID, simulator.Action{Outcome: simulator.Succeed})
		s.Clock.Add(11 * time.Minute)
		s.gate.mu.Lock()
		s.gate.ended = func() error { return errLost }
		s.gate.mu.Unlock()
		time.Sleep(15 * time.Second) // of the bubble
		synctest.Wait()
		if n := s.watch.count("loop sweep"); n == 0 {
			s.Error("the failing loop told nobody")
		}
		same(s, "payment", booking.PaymentRefunded, s.payment(p.ID).Status)
		s.gate.mu.Lock()
		s.gate.ended = nil
		s.gate.mu.Unlock()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		got, err := s.svc.Hold(s.Context(), h.ID, h.Customer)
		if err != nil || got.State != booking.HoldExpired {
			s.Errorf("%v, %v", got.State, err)
		}
		stop()
		wg.Wait()
	}},
	{"a sweep settles a batch at a time, all of it in the end", func(s *stage) { // C-66
		s.svc = s.newService(func(c *booking.Config) { c.Loops.SweepBatch = 7 })
		for i := range 20 {
			s.hold(s.cinema, newCustomer(), code(s.cinema, 30+i))
		}
		s.Clock.Add(11 * time.Minute)
		for _, want := range []int{7, 7, 6, 0} {
			n, err := s.svc.SweepOnce(s.Context())
			if n != want || err != nil {
				s.Errorf("%d, not %d; %v", n, want, err)
			}
		}
		lag, err := s.svc.Lag(s.Context())
		if err != nil || lag.Sweep != 0 {
			s.Errorf("%+v, %v", lag, err)
		}
	}},
	{"two sweepers at once settle everything once", func(s *stage) { // C-66
		other := s.newService(func(*booking.Config) {})
		for range 4 {
			if _, err := s.tryUnits(newCustomer(), "STANDING", 4); err != nil {
				s.Fatal(err)
			}
		}
		s.Clock.Add(6 * time.Minute)
		together(8, func(i int) {
			if _, err := []*booking.Service{s.svc, other}[i%2].SweepOnce(s.Context()); err != nil {
				s.Error(err)
			}
		})
		for _, b := range s.books(s.field).Pools[0] {
			same(s, "held", int64(0), b.Held)
		}
	}},
	{"a process that starts after a crash goes on where the other stopped", func(s *stage) { // C-17, C-40
		if s.Crash == nil {
			s.Skip("this store can't tell what a crash leaves")
		}
		h := s.hold(s.cinema, newCustomer(), "B5", "B6")
		p := s.session(h, "pay")
		sold := s.bought(s.hold(s.cinema, newCustomer(), "C5"))
		left := s.Crash(s)
		Audited(s, left, s.events...)
		s.gate.Store, s.Store, s.Outbox = left.Store, left.Store, left.Outbox
		s.boards = s.newBoards()
		s.svc = s.newService(func(*booking.Config) {})
		s.expect(h, booking.BookingPending)
		s.act(p.ID, succeed)
		s.expect(h, booking.BookingConfirmed)
		if _, err := s.try(s.cinema, newCustomer(), "C5"); !errors.Is(err, booking.ErrGone) {
			s.Errorf("the seat of %v: %v", sold.ID, err)
		}
	}},
}
