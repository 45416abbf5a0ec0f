package board

// Status is the state of a seat; the values are the ones on the wire, 2 bits a seat.
type Status uint8

// The statuses of a seat.
const (
	Available Status = 0
	Held      Status = 1
	Sold      Status = 2
	Blocked   Status = 3
)

var statusNames = [...]string{"available", "held", "sold", "blocked"}

func (s Status) String() string { return statusNames[s&3] }

// Shape is what never changes about an event's places while its board lives. A loader may give every board of a layout the same slices.
type Shape struct {
	Seats    int
	RowOf    []int32 // index of the row of each seat; nil means one row
	Rows     int
	SeatPool []int16 // index into Pools of each seat, or -1; nil means no seat belongs to a pool
	Pools    []string
}

// Seat is the row of a seat as the store has it.
type Seat struct {
	No     int32
	Status Status
	Until  int64  // end of its hold when Held, Unix milliseconds
	Holder uint64 // hash of the id of the hold that has it, when Held or Sold
	Epoch  int32  // counts the changes of the row
}

// Bucket is one row of a pool's stock. Held counts the units of holds that are over but not settled, too.
type Bucket struct {
	Pool, Bucket int16
	Room         int64 // capacity + overbooking
	Held, Sold   int64
	Epoch        int64 // counts the changes of the row
}

// PoolUnits are places of a pool.
type PoolUnits struct {
	Pool int16
	N    int64
}

// Claim is a hold that has units of pools. It is Live from being placed until it is settled (released, expired, booked), whatever the time is;
// settled is final. Its end may be raised, never lowered.
type Claim struct {
	Holder uint64
	Until  int64 // Unix milliseconds
	Live   bool
	Units  []PoolUnits // kept by the board: not to be changed afterwards
}

// News is what changed, or (full) all that was ever touched: then Claims has every hold with units whose state is held, also those whose time is over.
type News struct {
	Seats   []Seat
	Buckets []Bucket
	Claims  []Claim
}
