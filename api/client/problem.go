package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Codes of problems that programs react to. The page at Type explains each, and /problems lists all.
const (
	CodePlacesGone            = "places-gone"
	CodeUnknownSeat           = "unknown-seat"
	CodeTooManyPlaces         = "too-many-places"
	CodeCustomerLimit         = "customer-limit"
	CodeNotOnSale             = "not-on-sale"
	CodeSalePaused            = "sale-paused"
	CodeSaleClosed            = "sale-closed"
	CodeTooManyRequests       = "too-many-requests"
	CodeHoldEnded             = "hold-ended"
	CodeHoldAtCeiling         = "hold-at-ceiling"
	CodeHoldNotLive           = "hold-not-live"
	CodeTooLateToPay          = "too-late-to-pay"
	CodeIdempotencyKeyReused  = "idempotency-key-reused"
	CodeIdempotencyInProgress = "idempotency-in-progress"
	CodeNotCancellable        = "not-cancellable"
	CodeQuoteOver             = "quote-over"
	CodeValidation            = "validation"
	CodeUnauthorized          = "unauthorized"
	CodeNotFound              = "not-found"
	CodeBusy                  = "busy"
	CodeUnavailable           = "unavailable"
)

// Problem is a refusal of the server (RFC 9457).
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      string       `json:"code"`
	Detail    string       `json:"detail"`
	Instance  string       `json:"instance"`
	Retryable bool         `json:"retryable"`
	Errors    []FieldError `json:"errors"`

	Seats        []string   `json:"seats"`        // that are gone, or that would be left alone
	Pools        []string   `json:"pools"`        // that have not enough left
	Alternatives [][]string `json:"alternatives"` // blocks of seats that were free a moment ago
	OpensAt      time.Time  `json:"opensAt"`      // of CodeNotOnSale

	RetryAfter time.Duration `json:"-"` // 0: not said
	RequestID  string        `json:"-"` // under which the server logged it
}

// FieldError names one field of a request that is wrong.
type FieldError struct {
	Pointer string `json:"pointer"` // such as #/seats/0, or the name of a parameter
	Detail  string `json:"detail"`
	Code    string `json:"code"`
}

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, e := range p.Errors {
		text += fmt.Sprintf(" (%s: %s)", e.Pointer, e.Detail)
	}
	return fmt.Sprintf("%d %s: %s", p.Status, p.Code, text)
}

// readProblem takes what is no problem of ours, a proxy's page for example, by its status alone.
func readProblem(w *http.Response, data []byte) *Problem {
	p := &Problem{}
	if err := json.Unmarshal(data, p); err != nil || p.Code == "" {
		*p = Problem{Code: "http", Title: http.StatusText(w.StatusCode), Retryable: w.StatusCode >= http.StatusInternalServerError}
	}
	p.Status = w.StatusCode
	p.RetryAfter = retryAfter(w.Header)
	p.RequestID = w.Header.Get("X-Request-Id")
	return p
}
