package booking

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/money"
)

// owe decides a refund: the payment owes it from this commit on, and the refunder pays it. Its id follows from payment and cause,
// so deciding it again can't make a second one.
func (s *sheet) owe(p Payment, cause RefundCause, amount int64) Payment {
	if amount <= 0 {
		p.Status = PaymentSucceeded
		s.payment(p)
		return p
	}
	hash := sha256.Sum256(slices.Concat(p.ID.Bits[:], []byte(cause)))
	r := Refund{
		ID: RefundID{Event: p.ID.Event, Bits: [16]byte(hash[:16])}, Payment: p.ID, Reference: p.Reference, Provider: p.Provider, Cause: cause,
		Amount: money.Money{Amount: amount, Currency: p.Charged.Currency}, NextAt: s.Now, CreatedAt: s.Now,
	}
	p.Owed += amount
	p.Status = PaymentRefundDue
	s.payment(p)
	s.refund(r)
	return p
}

// Back-off of a refund that the provider did not take.
const (
	refundRetryFirst = 2 * time.Second
	refundRetryLast  = time.Hour
)

// Refunded notes the provider's answer to a refund.
type Refunded struct {
	Refund  RefundID
	Payment PaymentID
	Failed  bool // not done: to be tried again later
}

// EventID of the command.
func (c *Refunded) EventID() catalog.EventID { return c.Refund.Event }
func (c *Refunded) need(n *Need) {
	n.Payments = append(n.Payments, c.Payment)
	n.Refunds = append(n.Refunds, c.Refund)
}

func (c *Refunded) decide(s *sheet) Result {
	r, ok := s.Refunds[c.Refund]
	p, paid := s.Payments[c.Payment]
	if !ok || !paid || r.Payment != c.Payment {
		return Result{Err: ErrNotFound}
	}
	if r.Done {
		return Result{Payment: p, Replay: true}
	}
	if c.Failed {
		r.Attempts++
		r.NextAt = ms(s.Now.Add(min(refundRetryLast, refundRetryFirst<<min(r.Attempts-1, 11))))
		s.refund(r)
		return Result{Payment: p}
	}
	r.Done = true
	p.Refunded += r.Amount.Amount
	switch {
	case p.Refunded < p.Owed:
		p.Status = PaymentRefundDue
	case p.Refunded < p.Charged.Amount:
		p.Status = PaymentPartlyRefunded
	default:
		p.Status = PaymentRefunded
	}
	s.refund(r)
	s.payment(p)
	return Result{Payment: p}
}
