package booking

import (
	"time"
)

// Need names the rows that a batch touches. A store locks them in the order of the fields, and inside each by event and key:
// that is the lock order of the whole house, so no two batches can wait for each other in a circle.
type Need struct {
	Payments []PaymentID // each with everything of its hold, as in Holds
	// Holds brings for each hold its payments, its booking, and then, as far as the hold has them, its seats, pools and allowance.
	Holds      []HoldID
	Repeats    []HoldID // ids about to be given that may have been given before: only the row itself
	Notices    []NoticeRef
	Quotes     []QuoteID
	Refunds    []RefundID
	Seats      []SeatRef
	Pools      []PoolRef // with all their buckets
	Allowances []AllowanceRef
}

// NoticeRef names a provider's notice: the same notice is applied once.
type NoticeRef struct{ Provider, ID string }

// Rows is what a store has read and locked for a batch. An absent seat was never touched, an absent allowance is 0.
type Rows struct {
	Now        time.Time // the database's clock, read after the locks; whole milliseconds
	Seats      map[SeatRef]Seat
	Pools      map[PoolRef][]Bucket
	Holds      map[HoldID]Hold
	Bookings   map[BookingID]Booking
	Payments   map[PaymentID]Payment
	PaymentsOf map[HoldID][]PaymentID
	Notices    map[NoticeRef]bool
	Quotes     map[QuoteID]Quote
	Refunds    map[RefundID]Refund
	Allowances map[AllowanceRef]int
}

// NewRows makes an empty set for a store to fill.
func NewRows() *Rows {
	return &Rows{
		Seats: map[SeatRef]Seat{}, Pools: map[PoolRef][]Bucket{}, Holds: map[HoldID]Hold{}, Bookings: map[BookingID]Booking{},
		Payments: map[PaymentID]Payment{}, PaymentsOf: map[HoldID][]PaymentID{}, Notices: map[NoticeRef]bool{},
		Quotes: map[QuoteID]Quote{}, Refunds: map[RefundID]Refund{}, Allowances: map[AllowanceRef]int{},
	}
}

// SeatGuard is the condition that the database itself checks before it writes a seat, whatever Decide believed.
type SeatGuard uint8

// The guards. Each is a condition on the row as it is before the batch.
const (
	GuardFree    SeatGuard = iota // available, or held by a hold whose time is over
	GuardHeld                     // held by Owner
	GuardLive                     // held by Owner, whose time is not over
	GuardSold                     // sold to Owner
	GuardBlocked                  // blocked by staff
)

// SeatChange writes one seat.
type SeatChange struct {
	Ref   SeatRef
	Guard SeatGuard
	Owner [16]byte
	New   Seat
}

// BucketChange moves units of a bucket, or sets its limits. Guards: no count below 0, held + sold never above capacity + overbook.
type BucketChange struct {
	Ref        PoolRef
	Bucket     int
	Held, Sold int64 // added to what is there
	Limits     bool  // Capacity and Overbook are set as well
	New        Bucket
}

// AllowanceChange moves a customer's count. Guards: never below 0, and never above Limit when it rises.
type AllowanceChange struct {
	Ref   AllowanceRef
	Delta int
	Limit int
}

// HoldChange writes a hold: a new row, or one that is in the state From.
type HoldChange struct {
	Insert bool
	From   HoldState
	New    Hold
}

// PaymentChange writes a payment: a new row, or one that is in the status From.
type PaymentChange struct {
	Insert bool
	From   PaymentStatus
	New    Payment
}

// BookingChange writes a booking: a new row, or one that is in the status From.
type BookingChange struct {
	Insert bool
	From   BookingStatus
	New    Booking
}

// RefundChange writes a refund: a new row, or one that is not done yet.
type RefundChange struct {
	Insert bool
	New    Refund
}

// MessageChange is a row of the outbox.
type MessageChange struct {
	Booking  BookingID
	Type     string
	Sequence int64
	Payload  []byte
}

// Changes is what a batch writes: each row at most once, guarded by its state before the batch.
type Changes struct {
	Payments    []PaymentChange
	Bookings    []BookingChange
	Holds       []HoldChange
	Seats       []SeatChange
	Buckets     []BucketChange
	Allowances  []AllowanceChange
	Notices     []NoticeRef
	Quotes      []Quote
	Refunds     []RefundChange
	VoidTickets []BookingID // their tickets are void from this commit on
	Messages    []MessageChange
}

// Empty says whether there is nothing to write, and so no reason to commit.
func (c *Changes) Empty() bool {
	return len(c.Payments)+len(c.Bookings)+len(c.Holds)+len(c.Seats)+len(c.Buckets)+len(c.Allowances)+
		len(c.Notices)+len(c.Quotes)+len(c.Refunds)+len(c.VoidTickets)+len(c.Messages) == 0
}
