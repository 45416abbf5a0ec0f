package booking

import (
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// SeatStatus is the state of a seat row; the values are the ones on the wire.
type SeatStatus uint8

// The statuses of a seat.
const (
	Available SeatStatus = 0
	Held      SeatStatus = 1
	Sold      SeatStatus = 2
	Blocked   SeatStatus = 3
)

// SeatRef names a seat: its number is its place in the order of the event's layout.
type SeatRef struct {
	Event catalog.EventID
	No    int32
}

// Seat is the row of a seat. A seat without a row was never touched: it is the zero value, available.
type Seat struct {
	Status SeatStatus
	Hold   [16]byte  // bits of the hold that has it, when held or sold
	Until  time.Time // end of that hold, when held
	Epoch  int32     // counts the changes of the row
}

// Live is the one predicate for "this hold still counts": until its very end, and not after.
func Live(until, now time.Time) bool { return !now.After(until) }

// free says whether the next hold may take the seat: a held seat whose time is over is free, no job is needed for that.
func (s Seat) free(now time.Time) bool {
	return s.Status == Available || s.Status == Held && !Live(s.Until, now)
}

func (s Seat) ownedBy(id HoldID, status SeatStatus) bool {
	return s.Status == status && s.Hold == id.Bits
}

// PoolRef names a pool by its index in the event's pools.
type PoolRef struct {
	Event catalog.EventID
	Pool  int
}

// Bucket is one row of a pool's stock.
type Bucket struct {
	Bucket             int
	Capacity, Overbook int64
	Held, Sold         int64
	Epoch              int64
}

// Room is how many units the bucket can still give.
func (b Bucket) Room() int64 { return b.Capacity + b.Overbook - b.Held - b.Sold }

// Units are places of a pool taken from one of its buckets.
type Units struct {
	Pool   int   `json:"p"`
	Bucket int   `json:"b"`
	N      int64 `json:"n"`
}

// AllowanceRef names how many places a customer has of an event, held or booked.
type AllowanceRef struct {
	Event    catalog.EventID
	Customer identity.CustomerID
}

// HoldState is the state of a hold; all but HoldHeld are final.
type HoldState uint8

// The states of a hold.
const (
	HoldHeld     HoldState = 0
	HoldBooked   HoldState = 1
	HoldReleased HoldState = 2
	HoldExpired  HoldState = 3
)

func (s HoldState) String() string { return [...]string{"held", "booked", "released", "expired"}[s] }

// Hold is places taken for minutes, all or none.
type Hold struct {
	ID       HoldID
	Customer identity.CustomerID
	Seats    []int32 // numbers, rising
	Units    []Units // every unit it has, those of its seats included
	Places   int     // what it takes of its customer's allowance: its seats, and its units beyond those
	Price    money.Money
	State    HoldState
	PlacedAt time.Time
	Until    time.Time
	// Ceiling is the latest end that prolonging may reach; a replacing hold inherits its first hold's.
	Ceiling   time.Time
	Prolonged bool // the one prolongation at checkout was used
	// Request is a hash of what was asked, so that a repetition under the same Idempotency-Key can be told from a different request.
	Request [16]byte
}

// live says whether the hold still has its places.
func (h *Hold) live(now time.Time) bool { return h.State == HoldHeld && Live(h.Until, now) }

// Seen is the state that people are told: a hold whose time is over is expired, whether or not a sweeper came by.
func (h *Hold) Seen(now time.Time) HoldState {
	if h.State == HoldHeld && !Live(h.Until, now) {
		return HoldExpired
	}
	return h.State
}

// PaymentStatus is the state of one attempt to take money for a hold.
type PaymentStatus uint8

// The statuses of a payment. Money that arrives after PaymentFailed or PaymentExpired still makes it succeeded; from there it never goes back.
const (
	PaymentPending        PaymentStatus = 0
	PaymentSucceeded      PaymentStatus = 1
	PaymentFailed         PaymentStatus = 2
	PaymentExpired        PaymentStatus = 3
	PaymentRefundDue      PaymentStatus = 4
	PaymentPartlyRefunded PaymentStatus = 5
	PaymentRefunded       PaymentStatus = 6
)

func (s PaymentStatus) String() string {
	return [...]string{"pending", "succeeded", "failed", "expired", "refund_due", "partly_refunded", "refunded"}[s]
}

// paid says whether money was taken at some time.
func (s PaymentStatus) paid() bool {
	return s != PaymentPending && s != PaymentFailed && s != PaymentExpired
}

// Payment is one attempt to take money for a hold, at a provider.
type Payment struct {
	ID        PaymentID
	Hold      HoldID
	Provider  string
	Reference string // the provider's id of it; empty until the provider answered
	URL       string // where the buyer pays
	Price     money.Money
	Status    PaymentStatus
	Charged   money.Money // what the provider says it took; a wrong one is refunded whole
	Owed      int64       // sum of the refunds that were decided
	Refunded  int64       // sum of the refunds that the provider has done
	CreatedAt time.Time
	ExpiresAt time.Time // end of the payment session
	CheckAt   time.Time // when the reconciler asks the provider next, while pending
	Checks    int       // how often it asked in vain since the hold ended
	Request   [16]byte
}

// RefundCause says why money goes back; a payment has at most one refund of a cause.
type RefundCause string

// The causes.
const (
	CauseLate      RefundCause = "late"      // the money came after the hold had ended
	CauseDuplicate RefundCause = "duplicate" // another payment had already paid for the hold
	CauseWrong     RefundCause = "wrong"     // amount or currency were not the price
	CauseCancelled RefundCause = "cancelled" // the booking was cancelled
)

// Refund is money on its way back.
type Refund struct {
	ID        RefundID
	Payment   PaymentID
	Reference string // the provider's id of the payment
	Provider  string
	Cause     RefundCause
	Amount    money.Money
	Done      bool
	Attempts  int
	NextAt    time.Time
	CreatedAt time.Time
}

// BookingStatus is the state of a booking.
type BookingStatus uint8

// The statuses of a booking.
const (
	BookingPending   BookingStatus = 0
	BookingConfirmed BookingStatus = 1
	BookingFailed    BookingStatus = 2
	BookingCancelled BookingStatus = 3
)

func (s BookingStatus) String() string {
	return [...]string{"pending", "confirmed", "failed", "cancelled"}[s]
}

// Buyer is who a booking is for, as typed at checkout.
type Buyer struct {
	Email      string   `json:"email"`
	Name       string   `json:"name"`
	Language   string   `json:"language,omitempty"` // BCP 47
	Passengers []string `json:"passengers,omitempty"`
}

// Booking is what a hold becomes: made at checkout, confirmed by the money.
type Booking struct {
	ID          BookingID
	Customer    identity.CustomerID
	Status      BookingStatus
	Price       money.Money
	Buyer       Buyer
	Seats       []int32
	Units       []Units
	Places      int
	Refund      int64     // what a cancellation or a failure gives back, minor units of Price
	Reason      string    // why it failed or was cancelled: a RefundCause, "unpaid", or staff's words
	CancelledBy QuoteID   // the quote that cancelled it, so that a repetition is answered the same
	Sequence    int64     // of its last message
	CreatedAt   time.Time // checkout
	ChangedAt   time.Time
}

// Hold is the hold that it was made from.
func (b *Booking) Hold() HoldID { return HoldID(b.ID) }

// Quote is what a cancellation would give back, promised until it expires.
type Quote struct {
	ID        QuoteID
	Booking   BookingID
	Refund    money.Money
	ExpiresAt time.Time
}
