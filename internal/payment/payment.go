// Package payment says what Holdfast asks of those who move money, and how their notices (webhooks) are proved authentic.
//
// A provider is the only judge of what was charged. The engine never trusts that a call failed because it timed out: every call is safe to repeat
// (Open by payment, Refund by refund), and Look tells what really happened.
package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
)

// Errors of providers; everything else that a provider returns is to be read as ErrUnavailable.
var (
	// ErrNotAuthentic: a notice whose signature, time or shape does not hold. Answered 401; nothing of it may be believed or logged.
	ErrNotAuthentic = errors.New("the notice is not authentic")
	// ErrDeclined: a final no. Repeating the same call gives the same answer.
	ErrDeclined = errors.New("the payment provider declined")
	// ErrUnknownPayment: the provider has never heard of the payment that the call is about.
	ErrUnknownPayment = errors.New("the payment provider does not know this payment")
	// ErrUnavailable: the outcome is not known, the work may have been done. Try again with the same ids.
	ErrUnavailable = errors.New("the payment provider is not available")
)

// Status is what the provider knows of a payment session.
type Status string

// The statuses. A provider's answer can only go from pending to one of the others; money that arrives after Failed or Expired makes it Succeeded.
const (
	Pending   Status = "pending"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Expired   Status = "expired"
	// Unknown: the provider has never heard of the payment.
	Unknown Status = "unknown"
)

// OpenRequest asks for a page on which a customer can pay.
type OpenRequest struct {
	PaymentID   string      // the engine's id; the idempotency key of the call
	Price       money.Money // more than zero
	ExpiresAt   time.Time   // after this instant the session can no longer be paid; must not be over yet
	ReturnURL   string      // where the buyer's browser goes afterwards
	Description string      // one line that the buyer reads on the provider's page
	Email       string
	Language    string // BCP 47, may be empty
}

// Session is an open page to pay on.
type Session struct {
	Reference string // the provider's own id of it, unique per provider
	URL       string
	ExpiresAt time.Time
}

// State is what a provider knows of a payment. While nothing was charged both amounts are zero; a payment that it does not know has no currency either.
type State struct {
	Status    Status
	Reference string
	Charged   money.Money // may differ from the price that was asked, in amount and in currency
	Refunded  money.Money // sum of all refunds
}

// RefundRequest gives money back.
type RefundRequest struct {
	RefundID  string // the engine's id; the idempotency key of the call
	PaymentID string
	Reference string
	Amount    money.Money // more than zero, in the currency of the charge
}

// Notice is a provider's callback after its authenticity was proved. It may come twice, late, out of order or never.
type Notice struct {
	ID        string // unique per provider; the same when the same notice is delivered again
	PaymentID string
	Reference string
	Status    Status
	Charged   money.Money // zero unless Succeeded
	At        time.Time   // when it happened, by the provider's clock
}

// Provider moves money. All methods are safe for concurrent use and none may be called while a database transaction is open.
type Provider interface {
	// Name is the part of the callback's path: lower case, no slash.
	Name() string
	// Open is idempotent by PaymentID: a repetition answers the same session, never makes a second one. Another price under the same id is ErrDeclined.
	Open(ctx context.Context, r OpenRequest) (Session, error)
	// Look asks what became of a payment. One that the provider does not know is Status Unknown without an error.
	Look(ctx context.Context, paymentID string) (State, error)
	// Close ends a session so that it can no longer be paid. If it is already paid, State says so and there is no error.
	Close(ctx context.Context, paymentID string) (State, error)
	// Refund is idempotent by RefundID. More than what was charged and not yet refunded is ErrDeclined.
	Refund(ctx context.Context, r RefundRequest) error
	// ReadNotice proves the signature and the time window over the raw body before it parses a byte of it; ErrNotAuthentic otherwise, and for what
	// no honest provider sends. An authentic notice about something else than a payment's end has Status Unknown: answer 200 and forget it.
	ReadNotice(h http.Header, body []byte, now time.Time) (Notice, error)
}
