package booking

import "github.com/holdfast-project/holdfast/internal/catalog"

// Block takes free seats off sale, or puts blocked ones back: all of them or none.
type Block struct {
	Event   catalog.EventID
	Seats   []int32 // numbers, rising
	Unblock bool
}

// EventID of the command.
func (c *Block) EventID() catalog.EventID { return c.Event }
func (c *Block) need(n *Need) {
	for _, no := range c.Seats {
		n.Seats = append(n.Seats, SeatRef{c.Event, no})
	}
}

func (c *Block) decide(s *sheet) Result {
	guard, next := GuardFree, Seat{Status: Blocked}
	if c.Unblock {
		guard, next = GuardBlocked, Seat{}
	}
	var taken []int32
	for _, no := range c.Seats {
		if seat := s.Seats[SeatRef{c.Event, no}]; seat.Status != Blocked && !seat.free(s.Now) {
			taken = append(taken, no)
		}
	}
	if taken != nil {
		return Result{Err: &SeatsError{Err: ErrSeatsTaken, Seats: taken}}
	}
	for _, no := range c.Seats {
		// What is already as asked stays untouched, so that a repetition is harmless.
		if ref := (SeatRef{c.Event, no}); (s.Seats[ref].Status == Blocked) == c.Unblock {
			s.seat(ref, guard, [16]byte{}, next)
		}
	}
	return Result{}
}

// SetPool changes the limits of a pool; never below what is held and sold. Errors: ErrLimitBelowTaken, ErrNotFound, *InputError.
type SetPool struct {
	Event              catalog.EventID
	Pool               int
	Capacity, Overbook int64
}

// EventID of the command.
func (c *SetPool) EventID() catalog.EventID { return c.Event }
func (c *SetPool) need(n *Need)             { n.Pools = append(n.Pools, PoolRef{c.Event, c.Pool}) }

func (c *SetPool) decide(s *sheet) Result {
	ref := PoolRef{c.Event, c.Pool}
	buckets := s.Pools[ref]
	switch {
	case len(buckets) == 0:
		return Result{Err: ErrNotFound}
	case c.Capacity < 0:
		return Result{Err: &InputError{Code: "validation", Pointer: "/capacity", Detail: "a capacity is 0 or more"}}
	case c.Overbook < 0:
		return Result{Err: &InputError{Code: "validation", Pointer: "/overbook", Detail: "overbooking is 0 or more"}}
	}
	taken := int64(0)
	for _, b := range buckets {
		taken += b.Held + b.Sold
	}
	spare := c.Capacity + c.Overbook - taken
	if spare < 0 {
		return Result{Err: ErrLimitBelowTaken, Short: true, pools: []int{c.Pool}}
	}
	s.keepBuckets(ref)
	capacity, n := c.Capacity, int64(len(buckets))
	for i := range buckets {
		// Every bucket keeps what is taken of it and gets an even share of the rest; capacity is filled up before overbooking.
		room := buckets[i].Held + buckets[i].Sold + spare/n
		if int64(i) < spare%n {
			room++
		}
		buckets[i].Capacity = min(room, capacity)
		buckets[i].Overbook = room - buckets[i].Capacity
		capacity -= buckets[i].Capacity
	}
	return Result{}
}
