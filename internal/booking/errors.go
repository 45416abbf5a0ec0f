package booking

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the engine. Each is made once, here; httpd has the one table that turns them into answers.
var (
	ErrNotFound        = errors.New("no such hold, booking or payment of this customer")
	ErrGone            = errors.New("places are gone")
	ErrCustomerLimit   = errors.New("the customer has as many places of this event as the event allows")
	ErrNotOnSale       = errors.New("the sale has not opened yet")
	ErrPaused          = errors.New("the sale is paused")
	ErrSaleClosed      = errors.New("the sale is closed")
	ErrHoldEnded       = errors.New("the hold has ended")
	ErrAlreadyBooked   = errors.New("the hold is already a booking")
	ErrCeiling         = errors.New("the hold can't be prolonged any further")
	ErrTooLateToPay    = errors.New("too little time is left to pay")
	ErrKeyReused       = errors.New("the Idempotency-Key was used for a different request")
	ErrKeyInProgress   = errors.New("a request with this Idempotency-Key is still running")
	ErrNotCancellable  = errors.New("the booking can't be cancelled")
	ErrQuoteOver       = errors.New("the quote has expired")
	ErrLimitBelowTaken = errors.New("the limit is lower than what is held and sold")
	ErrSeatsTaken      = errors.New("seats are held, sold or blocked")
	ErrOrphan          = errors.New("the choice would leave a single seat alone")
	ErrNoProvider      = errors.New("no payment provider is configured")
	ErrProvider        = errors.New("the payment provider can't be reached")
	// ErrBusy: the lane is full; nothing was done, try again shortly.
	ErrBusy = errors.New("too many commands are waiting")
	// ErrGuard: a store refused a write because a row was not as Decide saw it. The lane handles it; nobody else sees it.
	ErrGuard = errors.New("a row changed under the batch")
	// ErrUnavailable: the store can't be reached or broke; whether the command was done is not known.
	ErrUnavailable = errors.New("the database is not available")
)

// GoneError is ErrGone with the places that are gone, and what could be taken instead.
type GoneError struct {
	Seats        []int32
	Pools        []int
	Alternatives [][]int32
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: %d seats, %d pools", ErrGone, len(e.Seats), len(e.Pools))
}
func (e *GoneError) Unwrap() error { return ErrGone }

// SaleError is ErrNotOnSale with the instant at which the sale opens.
type SaleError struct{ OpensAt time.Time }

func (e *SaleError) Error() string { return fmt.Sprintf("%v: it opens at %v", ErrNotOnSale, e.OpensAt) }
func (e *SaleError) Unwrap() error { return ErrNotOnSale }

// SeatsError is ErrSeatsTaken or ErrOrphan with the seats that it is about.
type SeatsError struct {
	Err   error
	Seats []int32
}

func (e *SeatsError) Error() string { return fmt.Sprintf("%v: %d", e.Err, len(e.Seats)) }
func (e *SeatsError) Unwrap() error { return e.Err }

// InputError says which field of a request is wrong and what to do about it.
type InputError struct {
	Code    string // of the problem type, such as unknown-seat
	Pointer string // JSON pointer into the request's body
	Detail  string // names the remedy
}

func (e *InputError) Error() string { return e.Pointer + ": " + e.Detail }
