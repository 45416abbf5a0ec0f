package booking

import (
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// minPaymentTime is what must be left to pay when a payment session starts, unless the policy's sessions are shorter anyway.
const minPaymentTime = time.Minute

// FreeProvider is the provider of payments over nothing: they succeed at checkout, nobody is asked.
const FreeProvider = "none"

// Times of the reconciler, per payment.
type Times struct {
	AskBeforeEnd time.Duration // ask the provider so long before a hold with a pending payment ends
	AskAfter     time.Duration // ask about every payment that is pending for so long
}

// next is when the provider is asked about a pending payment: before its hold ends, and at the latest AskAfter from now.
func (t Times) next(now, until time.Time) time.Time {
	at, before := now.Add(t.AskAfter), until.Add(-t.AskBeforeEnd)
	// A hold shorter than AskBeforeEnd would have its payment asked about before the buyer saw the page.
	if half := now.Add(until.Sub(now) / 2); before.Before(half) {
		before = half
	}
	if before.Before(at) {
		at = before
	}
	return ms(at)
}

// Checkout starts paying for a hold: it prolongs the hold once, makes the booking (pending) and the payment. The provider is called after the commit.
type Checkout struct {
	Event    *catalog.Event
	Hold     HoldID
	Customer identity.CustomerID
	Payment  PaymentID // derived from customer, event and Idempotency-Key
	Provider string    // empty: only a hold that costs nothing can be checked out
	Buyer    Buyer
	Request  [16]byte
	Times    Times
	Places   Naming
}

// EventID of the command.
func (c *Checkout) EventID() catalog.EventID { return c.Hold.Event }
func (c *Checkout) need(n *Need) {
	n.Payments = append(n.Payments, c.Payment)
	n.Holds = append(n.Holds, c.Hold)
}

func (c *Checkout) decide(s *sheet) Result {
	if p, ok := s.Payments[c.Payment]; ok {
		if p.Request != c.Request || p.Hold != c.Hold {
			return Result{Err: ErrKeyReused}
		}
		h := s.Holds[p.Hold]
		if p.URL == "" && !p.Status.paid() && !h.live(s.Now) {
			return Result{Err: ErrHoldEnded, Hold: h} // the buyer never saw where to pay, and nothing is left to pay for: no session is opened now
		}
		return Result{Payment: p, Hold: h, Booking: s.Bookings[BookingID(p.Hold)], Replay: true}
	}
	h, ok := s.Holds[c.Hold]
	switch {
	case !ok || h.Customer != c.Customer:
		return Result{Err: ErrNotFound}
	case h.State == HoldBooked:
		return Result{Err: ErrAlreadyBooked, Hold: h}
	case !s.owns(h):
		return Result{Err: ErrHoldEnded, Hold: h}
	case len(c.Buyer.Passengers) != h.Places && (c.Event.Kind == catalog.Flight || len(c.Buyer.Passengers) > 0):
		// Elsewhere than on a flight names are not asked for, but those that are given must not be lost or end on another's ticket.
		return Result{Err: &InputError{
			Code: "passengers-required", Pointer: "/passengers",
			Detail: fmt.Sprintf("name one passenger for each of the %d places of the hold", h.Places),
		}}
	case c.Provider == "" && !h.Price.IsZero():
		return Result{Err: ErrNoProvider}
	}
	b, known := s.Bookings[BookingID(h.ID)]
	if !known {
		b = Booking{
			ID: BookingID(h.ID), Customer: h.Customer, Status: BookingPending, Price: h.Price,
			Seats: h.Seats, Units: h.Units, Places: h.Places, CreatedAt: s.Now,
		}
	}
	b.Buyer = c.Buyer
	// A second click under another key must not become a second charge: it is shown the payment that is open.
	for _, id := range s.PaymentsOf[h.ID] {
		if p := s.Payments[id]; p.Status == PaymentPending && Live(p.ExpiresAt, s.Now) {
			s.booking(b)
			return Result{Payment: p, Hold: h, Booking: b, Replay: true}
		}
	}

	policy := c.Event.Policy
	until := h.Until
	if want := s.Now.Add(policy.PaymentTTL + policy.Buffer()); !h.Prolonged && want.After(until) {
		until = want
		if until.After(h.Ceiling) {
			until = h.Ceiling
		}
	}
	ends := until.Add(-policy.Buffer())
	if !h.Price.IsZero() && ends.Sub(s.Now) < min(minPaymentTime, policy.PaymentTTL) {
		return Result{Err: ErrTooLateToPay, Hold: h}
	}
	h.Prolonged = true
	if until.After(h.Until) {
		h = s.prolong(h, until)
	} else {
		s.hold(h)
	}
	p := Payment{
		ID: c.Payment, Hold: h.ID, Provider: c.Provider, Price: h.Price, Status: PaymentPending,
		CreatedAt: s.Now, ExpiresAt: ms(ends), CheckAt: c.Times.next(s.Now, h.Until), Request: c.Request,
	}
	if h.Price.IsZero() {
		p.Provider, p.Charged, p.ExpiresAt = FreeProvider, h.Price, s.Now
		h, b, p = s.confirm(h, b, p, c.Places)
		return Result{Payment: p, Hold: h, Booking: b}
	}
	s.closeOthers(p)
	s.booking(b)
	s.payment(p)
	return Result{Payment: p, Hold: h, Booking: b}
}

// Opened notes the provider's answer: where the buyer pays.
type Opened struct {
	Payment        PaymentID
	Reference, URL string
}

// EventID of the command.
func (c *Opened) EventID() catalog.EventID { return c.Payment.Event }
func (c *Opened) need(n *Need)             { n.Payments = append(n.Payments, c.Payment) }

func (c *Opened) decide(s *sheet) Result {
	p, ok := s.Payments[c.Payment]
	if !ok {
		return Result{Err: ErrNotFound}
	}
	if p.Reference == c.Reference && p.URL == c.URL {
		return Result{Payment: p, Replay: true}
	}
	p.Reference, p.URL = c.Reference, c.URL
	s.payment(p)
	return Result{Payment: p, Hold: s.Holds[p.Hold], Booking: s.Bookings[BookingID(p.Hold)]}
}

// Settle applies what a provider says of a payment: by a notice, or because the reconciler asked.
type Settle struct {
	Payment PaymentID
	Notice  NoticeRef // zero when the provider was asked
	State   payment.State
	Places  Naming
	Times   Times
	Closed  bool // the provider was told to close the session, and this is its answer
}

// EventID of the command.
func (c *Settle) EventID() catalog.EventID { return c.Payment.Event }
func (c *Settle) need(n *Need) {
	n.Payments = append(n.Payments, c.Payment)
	if c.Notice != (NoticeRef{}) {
		n.Notices = append(n.Notices, c.Notice)
	}
}

func (c *Settle) decide(s *sheet) Result {
	p, ok := s.Payments[c.Payment]
	if !ok {
		return Result{Err: ErrNotFound}
	}
	h, b := s.Holds[p.Hold], s.Bookings[BookingID(p.Hold)]
	if c.Notice != (NoticeRef{}) {
		if s.Notices[c.Notice] {
			return Result{Payment: p, Hold: h, Booking: b, Replay: true}
		}
		s.notice(c.Notice)
	}
	if p.Status.paid() {
		// What comes after the money (failed, expired, the same again under another id) can't take it back.
		return Result{Payment: p, Hold: h, Booking: b, Replay: true}
	}
	switch c.State.Status {
	case payment.Succeeded:
		return c.paid(s, p, h, b)
	case payment.Failed, payment.Expired:
		if p.Status != PaymentPending {
			return Result{Payment: p, Hold: h, Booking: b, Replay: true}
		}
		p.Status = PaymentFailed
		if c.State.Status == payment.Expired {
			p.Status = PaymentExpired
		}
		s.payment(p)
	case payment.Pending, payment.Unknown:
		if p.Status != PaymentPending {
			return Result{Payment: p, Hold: h, Booking: b, Replay: true}
		}
		if c.State.Status == payment.Unknown && c.Closed {
			// The provider never opened it, and the hold is over: nobody can pay it any more.
			p.Status = PaymentExpired
		} else {
			p = c.later(s, p, h)
		}
		s.payment(p)
	}
	return Result{Payment: p, Hold: h, Booking: b}
}

// later sets when the provider is asked again. After the hold's end it doubles, up to an hour: the money, if any, is refunded then, whenever it is.
func (c *Settle) later(s *sheet, p Payment, h Hold) Payment {
	const first, last = 2 * time.Second, time.Hour
	if h.live(s.Now) {
		at := c.Times.next(s.Now, h.Until)
		if before := h.Until.Add(-c.Times.AskBeforeEnd); !s.Now.Before(before) || !at.After(s.Now) {
			at = h.Until.Add(time.Millisecond) // asked already: the next look closes the session
		}
		p.CheckAt = ms(at)
		return p
	}
	wait := last
	if p.Checks < 11 {
		wait = min(last, first<<p.Checks)
	}
	p.Checks++
	p.CheckAt = ms(s.Now.Add(wait))
	return p
}

// paid is the heart of the money: a payment ends in exactly one booking or exactly one refund.
func (c *Settle) paid(s *sheet, p Payment, h Hold, b Booking) Result {
	p.Charged = c.State.Charged
	if p.Reference == "" {
		p.Reference = c.State.Reference
	}
	if p.Charged == p.Price && s.owns(h) {
		h, b, p = s.confirm(h, b, p, c.Places)
		return Result{Payment: p, Hold: h, Booking: b}
	}
	cause := CauseLate
	switch {
	case p.Charged != p.Price:
		cause = CauseWrong
	case h.State == HoldBooked:
		cause = CauseDuplicate
	}
	if b.Status == BookingPending {
		b = s.fail(b, string(cause))
	}
	if cause == CauseWrong && h.State == HoldHeld {
		h = s.abandon(h, HoldReleased)
	}
	p = s.owe(p, cause, p.Charged.Amount)
	if b.Status == BookingFailed && p.Charged.Currency == b.Price.Currency {
		b.Refund += p.Owed
	}
	b = s.tell(b, MessageRefundDue, refundFact(b, p, cause))
	s.booking(b)
	s.payment(p)
	return Result{Payment: p, Hold: h, Booking: b, Late: true}
}

// confirm turns a live, owned hold into a booking: seats and units are sold, the message that brings the tickets is written in the same step.
func (s *sheet) confirm(h Hold, b Booking, p Payment, places Naming) (Hold, Booking, Payment) {
	for _, no := range h.Seats {
		s.seat(SeatRef{h.ID.Event, no}, GuardLive, h.ID.Bits, Seat{Status: Sold, Hold: h.ID.Bits})
	}
	for _, u := range h.Units {
		s.units(PoolRef{h.ID.Event, u.Pool}, u.Bucket, -u.N, u.N)
	}
	h.State = HoldBooked
	s.hold(h)
	p.Status = PaymentSucceeded
	s.payment(p)
	b.Status = BookingConfirmed
	b = s.tell(b, MessageConfirmed, bookingFact(b, places))
	s.booking(b)
	s.closeOthers(p)
	return h, b, p
}

// closeOthers sends the reconciler to the other open payments of a hold: nobody shall pay twice.
func (s *sheet) closeOthers(p Payment) {
	for _, id := range s.PaymentsOf[p.Hold] {
		if other := s.Payments[id]; id != p.ID && other.Status == PaymentPending && other.CheckAt.After(s.Now) {
			other.CheckAt = s.Now
			s.payment(other)
		}
	}
}

func (s *sheet) fail(b Booking, reason string) Booking {
	b.Status, b.Reason = BookingFailed, reason
	b = s.tell(b, MessageFailed, bookingFact(b, Naming{}))
	s.booking(b)
	return b
}
