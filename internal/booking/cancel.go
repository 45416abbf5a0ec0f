package booking

import (
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// QuoteTTL is how long a cancellation quote is good for: long enough to read it, short enough that a rule's deadline can't be carried far.
const QuoteTTL = 10 * time.Minute

// QuoteCancellation promises a refund by the event's rules.
type QuoteCancellation struct {
	Event    *catalog.Event
	ID       QuoteID // derived from the Idempotency-Key where there is one
	Booking  BookingID
	Customer identity.CustomerID
}

// EventID of the command.
func (c *QuoteCancellation) EventID() catalog.EventID { return c.Booking.Event }
func (c *QuoteCancellation) need(n *Need) {
	n.Holds = append(n.Holds, HoldID(c.Booking))
	n.Quotes = append(n.Quotes, c.ID)
}

func (c *QuoteCancellation) decide(s *sheet) Result {
	b, ok := s.Bookings[c.Booking]
	if !ok || b.Customer != c.Customer {
		return Result{Err: ErrNotFound}
	}
	if q, ok := s.Quotes[c.ID]; ok {
		if q.Booking != c.Booking {
			return Result{Err: ErrKeyReused}
		}
		return Result{Quote: q, Booking: b, Replay: true}
	}
	if b.Status != BookingConfirmed || !s.Now.Before(c.Event.StartsAt) {
		return Result{Err: ErrNotCancellable, Booking: b}
	}
	percent := c.Event.Policy.RefundPercent(c.Event.StartsAt.Sub(s.Now))
	q := Quote{ID: c.ID, Booking: b.ID, Refund: b.Price.Percent(percent), ExpiresAt: ms(s.Now.Add(QuoteTTL))}
	s.Quotes[q.ID] = q
	s.rest.Quotes = append(s.rest.Quotes, q)
	return Result{Quote: q, Booking: b}
}

// Cancel gives a booking back: places, units and allowance return, codes are void, the refund is owed, all in one step.
type Cancel struct {
	Booking  BookingID
	Customer identity.CustomerID // ignored for staff
	Quote    QuoteID             // what the buyer was promised
	Staff    *StaffCancel        // instead of a quote
}

// StaffCancel is a cancellation by staff, with a refund and a reason of their choice.
type StaffCancel struct {
	Refund int64 // minor units, at most what was charged; negative: all of it
	Reason string
}

// EventID of the command.
func (c *Cancel) EventID() catalog.EventID { return c.Booking.Event }
func (c *Cancel) need(n *Need) {
	n.Holds = append(n.Holds, HoldID(c.Booking))
	if c.Staff == nil {
		n.Quotes = append(n.Quotes, c.Quote)
	}
}

func (c *Cancel) decide(s *sheet) Result {
	b, ok := s.Bookings[c.Booking]
	if !ok || (c.Staff == nil && b.Customer != c.Customer) {
		return Result{Err: ErrNotFound}
	}
	h := s.Holds[b.Hold()]
	var p Payment
	for _, id := range s.PaymentsOf[h.ID] {
		// The one that paid: another may have succeeded over nothing, and then nothing is owed of it.
		if paid := s.Payments[id]; paid.Status == PaymentSucceeded && paid.Charged == paid.Price {
			p = paid
		}
	}
	refund, err := c.refund(s, b, p)
	if err != nil {
		return Result{Err: err, Booking: b}
	}
	if b.Status == BookingCancelled && c.Staff == nil && b.CancelledBy == c.Quote {
		return Result{Booking: b, Replay: true}
	}
	if b.Status != BookingConfirmed {
		return Result{Err: ErrNotCancellable, Booking: b}
	}

	for _, no := range b.Seats {
		s.seat(SeatRef{b.ID.Event, no}, GuardSold, h.ID.Bits, Seat{})
	}
	for _, u := range b.Units {
		s.units(PoolRef{b.ID.Event, u.Pool}, u.Bucket, 0, -u.N)
	}
	s.allowance(AllowanceRef{b.ID.Event, b.Customer}, -b.Places, 0)
	s.rest.VoidTickets = append(s.rest.VoidTickets, b.ID)
	b.Status, b.Refund, b.CancelledBy, b.Reason = BookingCancelled, refund, c.Quote, string(CauseCancelled)
	if c.Staff != nil {
		b.Reason = c.Staff.Reason
	}
	if refund > 0 {
		p = s.owe(p, CauseCancelled, refund)
	}
	b = s.tell(b, MessageCancelled, bookingFact(b, Naming{}))
	s.booking(b)
	return Result{Booking: b, Hold: h, Payment: p}
}

func (c *Cancel) refund(s *sheet, b Booking, p Payment) (int64, error) {
	if c.Staff != nil {
		switch {
		case c.Staff.Refund < 0:
			return p.Charged.Amount, nil
		case c.Staff.Refund > p.Charged.Amount:
			return 0, &InputError{Code: "validation", Pointer: "/amount", Detail: "refund at most what was charged: " +
				money.Money{Amount: p.Charged.Amount, Currency: b.Price.Currency}.String()}
		}
		return c.Staff.Refund, nil
	}
	q, ok := s.Quotes[c.Quote]
	switch {
	case !ok || q.Booking != c.Booking:
		return 0, ErrNotFound
	case b.Status == BookingCancelled && b.CancelledBy == c.Quote:
		return b.Refund, nil
	case !Live(q.ExpiresAt, s.Now):
		return 0, ErrQuoteOver
	}
	return q.Refund.Amount, nil
}
