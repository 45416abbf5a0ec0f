package booking

import (
	"context"
	"time"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// Store keeps the places and the money. What a method writes is one transaction; every store passes the suite in bookingtest.
// A store that can't be reached answers ErrUnavailable; errors that it does not know it passes on.
type Store interface {
	// Apply runs a batch: it locks the rows of NeedOf(commands) in the order of Need's fields, reads its clock after that, calls decide,
	// and writes the changes, each under its guard. If a guard refuses, or a constraint does, nothing of the batch is written and the error is ErrGuard.
	// Running a batch again whose outcome is unknown is safe.
	Apply(ctx context.Context, commands []Command, decide Decider) (Applied, error)

	// Now is the clock by which holds live and end.
	Now(ctx context.Context) (time.Time, error)

	// Hold, Booking, Payment and Quote read one row; ErrNotFound.
	Hold(ctx context.Context, id HoldID) (Hold, error)
	Booking(ctx context.Context, id BookingID) (Booking, error)
	Payment(ctx context.Context, id PaymentID) (Payment, error)
	// PaymentsOf lists a hold's payments, oldest first.
	PaymentsOf(ctx context.Context, id HoldID) ([]Payment, error)
	// BookingsOf lists a customer's newest bookings; FindBookings those of a mail address, whatever its case.
	BookingsOf(ctx context.Context, customer identity.CustomerID, limit int) ([]Booking, error)
	FindBookings(ctx context.Context, email string, limit int) ([]Booking, error)

	// EndedHolds names held holds whose time is over, the longest ended first.
	EndedHolds(ctx context.Context, q EndedHolds) ([]HoldID, error)
	// DuePayments lists pending payments whose time to ask the provider has come, with the end of their holds.
	DuePayments(ctx context.Context, limit int) ([]DuePayment, error)
	// ClaimRefunds lists refunds that are due and makes each due again after lease, so that no other process takes them meanwhile.
	ClaimRefunds(ctx context.Context, limit int, lease time.Duration) ([]Refund, error)
	// ForgetNotices drops notice ids older than before, at most limit of them.
	ForgetNotices(ctx context.Context, before time.Time, limit int) (int, error)
	// Lag says how far the loops are behind.
	Lag(ctx context.Context) (Lag, error)

	// Picture reads an event's whole state for its board, in one snapshot.
	Picture(ctx context.Context, event catalog.EventID) (board.News, error)
	// Books reads everything of an event for the audit, in one snapshot.
	Books(ctx context.Context, event catalog.EventID) (*Books, error)
}

// Applied is what a batch did.
type Applied struct {
	Now     time.Time // the store's clock when it was decided
	Results []Result  // one for each command
	Changes *Changes
}

// EndedHolds asks for held holds whose time is over: of any event when Event is 0, and of an event narrowed to those that use one of Pools or belong
// to one of Customers, when any are named.
type EndedHolds struct {
	Event     catalog.EventID
	Pools     []int
	Customers []identity.CustomerID
	Limit     int
}

// DuePayment is a pending payment that the provider should be asked about.
type DuePayment struct {
	Payment Payment
	Held    bool      // its hold still waits for the money
	Until   time.Time // end of the hold
}

// Lag is how old the oldest work is that each loop has not done.
type Lag struct {
	Sweep, Reconcile, Refund time.Duration
	Refunds                  int // that are due, tried or not
}
