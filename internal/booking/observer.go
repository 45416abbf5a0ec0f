package booking

import (
	"errors"
	"time"
)

// Observer is told what happens, for metrics and alerts. Its methods must not block.
type Observer interface {
	Batch(commands int, oldestWaited time.Duration)
	BatchDone(took time.Duration)
	Single(commands int) // a refused batch is tried one by one
	Result(c Command, r Result, took time.Duration)
	RefusedEarly(places int)   // a hold refused from memory
	Notice(kind string)        // applied, repeated, late, unknown, forged
	Asked(status string)       // the reconciler asked the provider
	Refund(result string)      // done, failed, declined
	Alert(kind, detail string) // a person should look
	LoopFailed(loop string, err error)
}

// Nobody observes nothing.
type Nobody struct{}

var _ Observer = Nobody{}

// The methods do nothing.
func (Nobody) Batch(int, time.Duration)              {}
func (Nobody) BatchDone(time.Duration)               {}
func (Nobody) Single(int)                            {}
func (Nobody) Result(Command, Result, time.Duration) {}
func (Nobody) RefusedEarly(int)                      {}
func (Nobody) Notice(string)                         {}
func (Nobody) Asked(string)                          {}
func (Nobody) Refund(string)                         {}
func (Nobody) Alert(string, string)                  {}
func (Nobody) LoopFailed(string, error)              {}

// Outcome is the name of a result in metrics.
func (r Result) Outcome() string {
	switch {
	case r.Err == nil && r.Replay:
		return "replayed"
	case r.Err == nil:
		return "done"
	case errors.Is(r.Err, ErrGone):
		return "gone"
	case errors.Is(r.Err, ErrCustomerLimit):
		return "limit"
	case errors.Is(r.Err, ErrHoldEnded):
		return "ended"
	case errors.Is(r.Err, ErrUnavailable), errors.Is(r.Err, ErrGuard):
		return "failed"
	default:
		return "refused"
	}
}

// CommandName is the name of a command's kind in metrics.
func CommandName(c Command) string {
	switch c.(type) {
	case *Place:
		return "place"
	case *Release:
		return "release"
	case *Expire:
		return "expire"
	case *Extend:
		return "extend"
	case *Checkout:
		return "checkout"
	case *Opened:
		return "opened"
	case *Settle:
		return "settle"
	case *Refunded:
		return "refunded"
	case *QuoteCancellation:
		return "quote"
	case *Cancel:
		return "cancel"
	case *Block:
		return "block"
	case *SetPool:
		return "set-pool"
	default:
		return "other"
	}
}
