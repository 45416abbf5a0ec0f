package simulator

import (
	"maps"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Report is what the provider's own books say of a payment.
type Report struct {
	Status        payment.Status
	Charged       money.Money
	Refunded      money.Money
	CallbacksSent int // those that were answered 2xx
}

// Report tells of one payment; false if there is none.
func (s *Simulator) Report(paymentID string) (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.sessions[paymentID]
	if !known {
		return Report{}, false
	}
	state := s.state(paymentID)
	return Report{Status: state.Status, Charged: state.Charged, Refunded: state.Refunded, CallbacksSent: p.told}, true
}

// Each calls f for every payment, in no order. The lock is not held while f runs, so f may call the simulator; payments opened meanwhile may be missing.
func (s *Simulator) Each(f func(paymentID string, r Report)) {
	s.mu.Lock()
	ids := make([]string, 0, len(s.sessions))
	for id := range s.sessions {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		if r, known := s.Report(id); known {
			f(id, r)
		}
	}
}

// Totals sums the books; amounts are minor units by currency.
type Totals struct {
	Opened, Paid      int
	Charged, Refunded map[string]int64
}

// Totals of all payments since the ledger began.
func (s *Simulator) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.totals
	t.Charged, t.Refunded = maps.Clone(t.Charged), maps.Clone(t.Refunded)
	return t
}

// Page is what the customer sees of a payment on the provider's page.
type Page struct {
	Price                            money.Money
	ExpiresAt                        time.Time
	ReturnURL, Description, Language string
	Status                           payment.Status
	Payable                          bool // Act can still succeed without Late
}

// Page tells what to show; false if there is no such payment.
func (s *Simulator) Page(paymentID string) (Page, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.sessions[paymentID]
	if !known {
		return Page{}, false
	}
	return Page{
		Price: p.price, ExpiresAt: p.expiresAt, ReturnURL: p.page, Description: p.description, Language: p.language,
		Status: s.state(paymentID).Status, Payable: p.status != payment.Succeeded && !s.over(p),
	}, true
}
