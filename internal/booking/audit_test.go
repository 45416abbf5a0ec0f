package booking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// books are of an event in which everything has happened that can: a live hold, one that is being paid, one that is over and not settled, a booking with
// tickets, one whose tickets are on the way, one that was cancelled, one that failed late, and one that was paid twice.
type books struct {
	*booking.Books
	event *catalog.Event
}

func (b *books) key(n byte) booking.Key { return booking.Key{Event: b.event.ID, Bits: [16]byte{n}} }

const (
	liveHold, payingHold, endedHold, ticketed, onTheWay, cancelled, failedLate, paidTwice = 1, 2, 3, 4, 5, 6, 7, 8

	second = 100 // payment of paidTwice
)

func healthy(t *testing.T) *books {
	t.Helper()
	clock := bookingtest.NewClock()
	b := &books{event: bookingtest.Field()}
	tables := bookingtest.NewTables(clock, b.event)
	do := func(c booking.Command) {
		t.Helper()
		a, err := tables.Apply(t.Context(), []booking.Command{c}, booking.Decide)
		if err != nil || a.Results[0].Err != nil {
			t.Fatalf("%T: %v, %+v", c, err, a.Results)
		}
	}
	price := money.Money{Amount: 1000, Currency: "EUR"}
	hold := func(n byte) {
		do(&booking.Place{
			Event: b.event, ID: booking.HoldID(b.key(n)), Customer: identity.CustomerID{n}, Seats: []int32{int32(n)}, Places: 2, Price: price,
			Units: []booking.UnitsWant{{Pool: 0, N: 1}},
		})
	}
	pay := func(hold, as byte) {
		do(&booking.Checkout{
			Event: b.event, Hold: booking.HoldID(b.key(hold)), Customer: identity.CustomerID{hold}, Payment: booking.PaymentID(b.key(as)), Provider: "simulator",
			Times: booking.Times{AskAfter: time.Minute},
		})
	}
	settle := func(n byte, status payment.Status) {
		c := &booking.Settle{Payment: booking.PaymentID(b.key(n)), State: payment.State{Status: status}}
		if status == payment.Succeeded {
			c.State.Charged = price
		}
		do(c)
	}
	hold(endedHold)
	hold(failedLate)
	pay(failedLate, failedLate)
	clock.Add(time.Hour)
	settle(failedLate, payment.Succeeded)
	hold(liveHold)
	hold(payingHold)
	pay(payingHold, payingHold)
	for _, n := range []byte{ticketed, onTheWay, cancelled} {
		hold(n)
		pay(n, n)
		settle(n, payment.Succeeded)
	}
	do(&booking.Cancel{Booking: booking.BookingID(b.key(cancelled)), Staff: &booking.StaffCancel{Refund: 400}})
	hold(paidTwice)
	pay(paidTwice, paidTwice)
	settle(paidTwice, payment.Failed)
	pay(paidTwice, second)
	settle(paidTwice, payment.Succeeded)
	settle(second, payment.Succeeded)
	var err error
	if b.Books, err = tables.Books(t.Context(), b.event.ID); err != nil {
		t.Fatal(err)
	}
	b.Pending = map[booking.BookingID]bool{booking.BookingID(b.key(onTheWay)): true}
	for _, n := range []byte{ticketed, paidTwice} {
		b.Tickets = append(b.Tickets, slices.Repeat([]booking.BookedTicket{{Booking: booking.BookingID(b.key(n))}}, 2)...)
	}
	b.Tickets = append(b.Tickets, slices.Repeat([]booking.BookedTicket{{Booking: booking.BookingID(b.key(cancelled)), Void: true}}, 2)...)
	return b
}

func (b *books) seat(no int32, change func(s *booking.Seat)) {
	s := b.Seats[no]
	change(&s)
	b.Seats[no] = s
}

func (b *books) hold(n byte, change func(h *booking.Hold)) {
	id := booking.HoldID(b.key(n))
	h := b.Holds[id]
	change(&h)
	b.Holds[id] = h
}

func (b *books) booking(n byte, change func(k *booking.Booking)) {
	id := booking.BookingID(b.key(n))
	k := b.Bookings[id]
	change(&k)
	b.Bookings[id] = k
}

func (b *books) payment(n byte) *booking.Payment {
	return &b.Payments[slices.IndexFunc(b.Payments, func(p booking.Payment) bool { return p.ID == booking.PaymentID(b.key(n)) })]
}

func (b *books) refund(n byte) *booking.Refund {
	return &b.Refunds[slices.IndexFunc(b.Refunds, func(r booking.Refund) bool { return r.Payment == booking.PaymentID(b.key(n)) })]
}

// TestAuditFindsEveryBrokenPromise corrupts healthy books in one way each.
func TestAuditFindsEveryBrokenPromise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, rule string
		corrupt    func(b *books)
	}{
		{"a seat of two bookings", "one-owner", func(b *books) {
			b.hold(onTheWay, func(h *booking.Hold) { h.Seats = []int32{ticketed} })
		}},
		{"a seat of a booking and of a live hold", "one-owner", func(b *books) {
			b.hold(liveHold, func(h *booking.Hold) { h.Seats = []int32{liveHold, ticketed} })
		}},
		{"a booking whose seat is free", "owner-has-seat", func(b *books) { b.seat(ticketed, func(s *booking.Seat) { *s = booking.Seat{} }) }},
		{"a booking whose seat is only held", "owner-has-seat", func(b *books) {
			b.seat(ticketed, func(s *booking.Seat) { s.Status, s.Until = booking.Held, b.Now.Add(time.Hour) })
		}},
		{"a live hold whose seat is blocked", "owner-has-seat", func(b *books) { b.seat(liveHold, func(s *booking.Seat) { s.Status = booking.Blocked }) }},
		{"a live hold whose seat was never touched", "owner-has-seat", func(b *books) { delete(b.Seats, liveHold) }},
		{"a seat that is free before its hold is over", "seat-ends-with-hold", func(b *books) {
			b.seat(liveHold, func(s *booking.Seat) { s.Until = s.Until.Add(-time.Millisecond) })
		}},
		{"a seat that is sold to nobody", "sold-has-booking", func(b *books) {
			b.Seats[50] = booking.Seat{Status: booking.Sold, Hold: [16]byte{99}}
		}},
		{"a seat that is sold to a hold that never paid", "sold-has-booking", func(b *books) {
			b.Seats[50] = booking.Seat{Status: booking.Sold, Hold: [16]byte{liveHold}}
		}},
		{"a seat that is sold though its booking was cancelled", "sold-has-booking", func(b *books) {
			b.seat(cancelled, func(s *booking.Seat) { s.Status, s.Hold = booking.Sold, [16]byte{cancelled} })
		}},
		{"a seat that is held by nobody", "held-has-hold", func(b *books) {
			b.Seats[50] = booking.Seat{Status: booking.Held, Hold: [16]byte{99}, Until: b.Now}
		}},
		{"a seat that is held by a hold that is over", "held-has-hold", func(b *books) {
			b.seat(endedHold, func(s *booking.Seat) { s.Until = b.Now })
		}},
		{"more units held than holds have", "pool-count", func(b *books) { b.Pools[0][0].Held++ }},
		{"fewer units sold than bookings have", "pool-count", func(b *books) { b.Pools[0][0].Sold-- }},
		{"units that were given back twice", "pool-count", func(b *books) { b.hold(endedHold, func(h *booking.Hold) { h.State = booking.HoldExpired }) }},
		{"units held of a bucket that is not there", "pool-count", func(b *books) { b.Pools[0] = b.Pools[0][1:] }},
		{"more units than the limit", "pool-limit", func(b *books) { b.Pools[0][0].Capacity = 0 }},
		{"units below nothing", "pool-limit", func(b *books) { b.Pools[1][0].Held = -1 }},
		{"a customer who is counted with too many places", "allowance", func(b *books) { b.Allowances[identity.CustomerID{ticketed}]++ }},
		{"a customer who is counted with too few", "allowance", func(b *books) { b.Allowances[identity.CustomerID{liveHold}]-- }},
		{"a customer who is not counted", "allowance", func(b *books) { delete(b.Allowances, identity.CustomerID{liveHold}) }},
		{"a customer who is counted with places of a booking that was cancelled", "allowance", func(b *books) { b.Allowances[identity.CustomerID{cancelled}] = 2 }},
		{"a booking without a hold", "booking-has-hold", func(b *books) { delete(b.Holds, booking.HoldID(b.key(ticketed))) }},
		{"a confirmed booking whose hold was released", "booking-has-hold", func(b *books) {
			b.hold(ticketed, func(h *booking.Hold) { h.State = booking.HoldReleased })
		}},
		{"a failed booking whose hold is booked", "booking-has-hold", func(b *books) {
			b.hold(failedLate, func(h *booking.Hold) { h.State = booking.HoldBooked })
		}},
		{"a booking of other seats than its hold's", "booking-fits-hold", func(b *books) { b.booking(ticketed, func(k *booking.Booking) { k.Seats = []int32{77} }) }},
		{"a booking of another customer", "booking-fits-hold", func(b *books) { b.booking(ticketed, func(k *booking.Booking) { k.Customer = identity.CustomerID{77} }) }},
		{"a booking of fewer units", "booking-fits-hold", func(b *books) { b.booking(payingHold, func(k *booking.Booking) { k.Units = nil }) }},
		{"a booking that waits for ever", "booking-settled", func(b *books) {
			b.hold(payingHold, func(h *booking.Hold) { h.State = booking.HoldReleased })
		}},
		{"a booking whose message was lost", "booking-has-tickets", func(b *books) {
			b.Pending = nil
			b.Now = b.Now.Add(time.Minute + time.Millisecond)
		}},
		{"a booking with too few tickets", "booking-has-tickets", func(b *books) { b.Tickets = b.Tickets[1:] }},
		{"a booking with too many tickets", "booking-has-tickets", func(b *books) { b.Tickets = append(b.Tickets, b.Tickets[0]) }},
		{"a booking one of whose tickets is void", "booking-has-tickets", func(b *books) { b.Tickets[0].Void = true }},
		{"a valid ticket of a booking that was cancelled", "tickets-void", func(b *books) { b.Tickets[len(b.Tickets)-1].Void = false }},
		{"tickets of nobody", "ticket-has-booking", func(b *books) {
			b.Tickets = append(b.Tickets, booking.BookedTicket{Booking: booking.BookingID(b.key(99))})
		}},
		{"two refunds of one cause", "one-refund", func(b *books) { b.Refunds = append(b.Refunds, *b.refund(cancelled)) }},
		{"a payment for nothing", "payment-has-booking", func(b *books) { delete(b.Bookings, booking.BookingID(b.key(failedLate))) }},
		{"a refund that the payment does not know of", "refund-count", func(b *books) { b.refund(cancelled).Amount.Amount++ }},
		{"a refund that was done and not counted", "refund-count", func(b *books) { b.refund(cancelled).Done = true }},
		{"a cancellation that promised more than it gives", "refund-count", func(b *books) { b.booking(cancelled, func(k *booking.Booking) { k.Refund = 500 }) }},
		{"more given back than was charged", "refund-limit", func(b *books) {
			b.refund(cancelled).Amount.Amount, b.payment(cancelled).Owed = 1001, 1001
		}},
		{"more given back than is owed", "refund-limit", func(b *books) { b.payment(cancelled).Refunded = 401 }},
		{"money of a payment that is pending", "payment-status", func(b *books) { b.payment(payingHold).Charged.Amount = 1 }},
		{"late money of which a part is kept", "refund-whole", func(b *books) {
			b.refund(failedLate).Amount.Amount, b.payment(failedLate).Owed = 999, 999
		}},
		{"late money that is kept", "money-has-booking", func(b *books) {
			b.Refunds = slices.DeleteFunc(b.Refunds, func(r booking.Refund) bool { return r.Payment == booking.PaymentID(b.key(failedLate)) })
			b.payment(failedLate).Owed = 0
		}},
		{"another amount than the price", "money-is-price", func(b *books) { b.payment(ticketed).Charged.Amount = 1001 }},
		{"another currency than the price's", "money-is-price", func(b *books) { b.payment(ticketed).Charged.Currency = "USD" }},
		{"a refund of nothing", "refund-has-payment", func(b *books) {
			b.Refunds = append(b.Refunds, booking.Refund{Payment: booking.PaymentID(b.key(99)), Amount: money.Money{Amount: 1, Currency: "EUR"}})
		}},
		{"a booking that nobody paid", "booking-is-paid", func(b *books) {
			b.Payments = slices.DeleteFunc(b.Payments, func(p booking.Payment) bool { return p.ID == booking.PaymentID(b.key(ticketed)) })
		}},
		{"a booking that was paid twice, both kept", "booking-is-paid", func(b *books) {
			b.Refunds = slices.DeleteFunc(b.Refunds, func(r booking.Refund) bool { return r.Payment == booking.PaymentID(b.key(second)) })
			b.payment(second).Owed = 0
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := healthy(t)
			if found := booking.Audit(b.Books); len(found) != 0 {
				t.Fatalf("in healthy books: %+v", found)
			}
			test.corrupt(b)
			found := booking.Audit(b.Books)
			if !slices.ContainsFunc(found, func(v booking.Violation) bool { return v.Rule == test.rule && v.Detail != "" }) {
				t.Errorf("found %+v, nothing of %s", found, test.rule)
			}
		})
	}
}

// TestAuditGivesTicketsTime: a booking may be without tickets for a moment, while its message travels.
func TestAuditGivesTicketsTime(t *testing.T) {
	t.Parallel()
	b := healthy(t)
	b.Pending = nil
	b.Now = b.Now.Add(time.Minute)
	if found := booking.Audit(b.Books); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}
