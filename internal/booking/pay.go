package booking

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Pay is a customer's wish to pay for a hold.
type Pay struct {
	Hold     HoldID
	Customer identity.CustomerID
	Buyer    Buyer
	Key      string // Idempotency-Key, required
}

// Checkout starts paying: one payment session however often it is asked for. Errors: ErrNotFound, ErrHoldEnded, ErrAlreadyBooked, ErrTooLateToPay,
// *InputError (passengers), ErrKeyReused, ErrKeyInProgress, ErrNoProvider, ErrProvider (try again with the same key).
func (s *Service) Checkout(ctx context.Context, p Pay) (Payment, error) {
	e, names, err := s.eventOf(ctx, p.Hold.Event)
	if err != nil {
		return Payment{}, err
	}
	c := &Checkout{
		Event: e, Hold: p.Hold, Customer: p.Customer, Buyer: p.Buyer, Times: s.loops.Times, Places: names,
		Payment: PaymentID(s.id("checkout", p.Customer, e.ID, p.Key)),
		Request: newRequest().add(p.Hold.String(), p.Buyer.Email, p.Buyer.Name, p.Buyer.Language).add(p.Buyer.Passengers...).sum(),
	}
	if s.taking != nil {
		c.Provider = s.taking.Name()
	}
	// One call to the provider per key at a time. Two processes may each make one: the provider's own idempotency makes them one session.
	if _, busy := s.running.LoadOrStore(c.Payment, true); busy {
		return Payment{}, ErrKeyInProgress
	}
	defer s.running.Delete(c.Payment)
	r, err := s.do(ctx, c)
	if err != nil {
		return Payment{}, err
	}
	if r.Payment.URL != "" || r.Payment.Status != PaymentPending {
		return r.Payment, nil
	}
	return s.open(ctx, r.Payment, r.Booking, e.Title)
}

// open asks the provider for a session; no transaction is open. If the answer is lost, the same key asks again and gets the same session.
func (s *Service) open(ctx context.Context, p Payment, b Booking, title string) (Payment, error) {
	provider := s.pay[p.Provider]
	if provider == nil {
		return Payment{}, fmt.Errorf("%w: payment %v is at %q", ErrNoProvider, p.ID, p.Provider)
	}
	session, err := provider.Open(ctx, payment.OpenRequest{
		PaymentID: p.ID.String(), Price: p.Price, ExpiresAt: p.ExpiresAt, ReturnURL: s.back(b.ID),
		Description: title, Email: b.Buyer.Email, Language: b.Buyer.Language,
	})
	if err != nil {
		return Payment{}, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	r, err := s.do(ctx, &Opened{Payment: p.ID, Reference: session.Reference, URL: session.URL})
	return r.Payment, err
}

// Notice applies a provider's callback. Everything authentic is taken, however late or often it comes: the answer is nil once it is safe with us.
// Errors: payment.ErrNotAuthentic, ErrNoProvider; others mean that the provider must tell again.
func (s *Service) Notice(ctx context.Context, provider string, h http.Header, body []byte) error {
	p := s.pay[provider]
	if p == nil {
		return ErrNoProvider
	}
	n, err := p.ReadNotice(h, body, s.now())
	if err != nil {
		s.watch.Notice("forged")
		return err
	}
	id, err := ParsePaymentID(n.PaymentID)
	if err != nil {
		// Authentic, but about nothing of ours (another shop on the same account): telling again would not help.
		s.watch.Notice("unknown")
		return nil
	}
	r, err := s.settle(ctx, &Settle{
		Payment: id, Notice: NoticeRef{Provider: provider, ID: n.ID},
		State: payment.State{Status: n.Status, Reference: n.Reference, Charged: n.Charged},
	})
	switch {
	case errors.Is(err, ErrNotFound):
		s.watch.Notice("unknown")
		s.watch.Alert("unknown-payment", id.String())
		s.log.Error("notice about an unknown payment", "provider", provider, "payment", id, "notice", n.ID)
		return nil
	case err != nil:
		return err
	case r.Replay:
		s.watch.Notice("repeated")
	case r.Late:
		s.watch.Notice("late")
	default:
		s.watch.Notice("applied")
	}
	return nil
}

// settle applies what the provider says, and raises the alarm where money goes back.
func (s *Service) settle(ctx context.Context, c *Settle) (Result, error) {
	var err error
	if _, c.Places, err = s.eventOf(ctx, c.Payment.Event); err != nil {
		return Result{}, err
	}
	c.Times = s.loops.Times
	r, err := s.do(ctx, c)
	if err == nil && r.Late {
		s.watch.Alert("refund", r.Booking.Reason)
		s.log.Warn("money came that no place waits for; it goes back",
			"payment", r.Payment.ID, "booking", r.Booking.ID, "charged", r.Payment.Charged, "price", r.Payment.Price, "reason", r.Booking.Reason)
	}
	return r, err
}

// Booking looks at a customer's booking; anyone else's is ErrNotFound.
func (s *Service) Booking(ctx context.Context, id BookingID, customer identity.CustomerID) (Booking, error) {
	b, err := s.store.Booking(ctx, id)
	if err != nil {
		return Booking{}, err
	}
	if b.Customer != customer {
		return Booking{}, ErrNotFound
	}
	return b, nil
}

// LookAgain asks the provider about the pending payments of a booking, at most once every lookAgainEvery per payment: the buyer may be back from paying
// sooner than the provider's notice.
func (s *Service) LookAgain(ctx context.Context, b Booking) (Booking, error) {
	if b.Status != BookingPending {
		return b, nil
	}
	pays, err := s.store.PaymentsOf(ctx, b.Hold())
	if err != nil {
		return b, err
	}
	for _, p := range pays {
		if p.Status != PaymentPending || p.Provider == FreeProvider || !s.looks.allow(p.ID, s.now()) {
			continue
		}
		h, err := s.store.Hold(ctx, p.Hold)
		if err != nil {
			return b, err
		}
		if err := s.ask(ctx, DuePayment{Payment: p, Held: h.live(s.Now()), Until: h.Until}); err != nil {
			s.log.Warn("asking the payment provider", "payment", p.ID, "error", err)
		}
	}
	return s.store.Booking(ctx, b.ID)
}

// FindBookings lists the bookings of a mail address, newest first, for staff.
func (s *Service) FindBookings(ctx context.Context, email string, limit int) ([]Booking, error) {
	return s.store.FindBookings(ctx, email, limit)
}

// BookingsOf lists a customer's bookings, newest first.
func (s *Service) BookingsOf(ctx context.Context, customer identity.CustomerID, limit int) ([]Booking, error) {
	return s.store.BookingsOf(ctx, customer, limit)
}

// AnyBooking and PaymentsOf are for staff.
func (s *Service) AnyBooking(ctx context.Context, id BookingID) (Booking, error) {
	return s.store.Booking(ctx, id)
}

// PaymentsOf lists the payments of a booking, oldest first.
func (s *Service) PaymentsOf(ctx context.Context, id BookingID) ([]Payment, error) {
	return s.store.PaymentsOf(ctx, HoldID(id))
}

// Quote promises what a cancellation would give back. With a key the same quote is answered again. Errors: ErrNotFound, ErrNotCancellable, ErrKeyReused.
func (s *Service) Quote(ctx context.Context, id BookingID, customer identity.CustomerID, key string) (Quote, error) {
	e, _, err := s.eventOf(ctx, id.Event)
	if err != nil {
		return Quote{}, err
	}
	r, err := s.do(ctx, &QuoteCancellation{Event: e, ID: QuoteID(s.id("quote", customer, e.ID, key)), Booking: id, Customer: customer})
	return r.Quote, err
}

// Cancel gives a booking back at the price of a quote; repeating it is answered the same. Errors: ErrNotFound, ErrQuoteOver, ErrNotCancellable.
func (s *Service) Cancel(ctx context.Context, id BookingID, customer identity.CustomerID, quote QuoteID) (Booking, error) {
	if quote.Event != id.Event {
		return Booking{}, ErrNotFound
	}
	r, err := s.do(ctx, &Cancel{Booking: id, Customer: customer, Quote: quote})
	return r.Booking, err
}

// CancelByStaff gives a booking back with a refund and a reason of staff's choice. Errors: ErrNotFound, ErrNotCancellable, *InputError.
func (s *Service) CancelByStaff(ctx context.Context, id BookingID, c StaffCancel) (Booking, error) {
	r, err := s.do(ctx, &Cancel{Booking: id, Staff: &c})
	return r.Booking, err
}

// looks bounds how often buyers make us ask a provider.
const (
	lookAgainEvery = 2 * time.Second
	maxLooks       = 4096
)

type looks struct {
	mu   sync.Mutex
	last map[PaymentID]time.Time
}

func (l *looks) allow(id PaymentID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.last[id]) < lookAgainEvery {
		return false
	}
	if len(l.last) >= maxLooks {
		clear(l.last)
	}
	if l.last == nil {
		l.last = map[PaymentID]time.Time{}
	}
	l.last[id] = now
	return true
}
