package booking

import (
	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// news is what a committed batch means for the boards of its events.
func (c *Changes) news() map[catalog.EventID]board.News {
	all := map[catalog.EventID]board.News{}
	for i := range c.Seats {
		s := &c.Seats[i]
		n := all[s.Ref.Event]
		n.Seats = append(n.Seats, BoardSeat(s.Ref.No, s.New))
		all[s.Ref.Event] = n
	}
	for i := range c.Buckets {
		b := &c.Buckets[i]
		n := all[b.Ref.Event]
		n.Buckets = append(n.Buckets, BoardBucket(b.Ref.Pool, b.New))
		all[b.Ref.Event] = n
	}
	for i := range c.Holds {
		if h := &c.Holds[i].New; len(h.Units) > 0 {
			n := all[h.ID.Event]
			n.Claims = append(n.Claims, BoardClaim(h))
			all[h.ID.Event] = n
		}
	}
	return all
}

// BoardSeat, BoardBucket and BoardClaim are rows as boards know them.
func BoardSeat(no int32, s Seat) board.Seat {
	seat := board.Seat{No: no, Status: board.Status(s.Status), Epoch: s.Epoch}
	if s.Status == Held || s.Status == Sold {
		seat.Holder = HoldID{Bits: s.Hold}.Holder()
	}
	if s.Status == Held {
		seat.Until = s.Until.UnixMilli()
	}
	return seat
}

// BoardBucket is a bucket's row.
func BoardBucket(pool int, b Bucket) board.Bucket {
	return board.Bucket{Pool: int16(pool), Bucket: int16(b.Bucket), Room: b.Capacity + b.Overbook, Held: b.Held, Sold: b.Sold, Epoch: b.Epoch}
}

// BoardClaim is a hold with units.
func BoardClaim(h *Hold) board.Claim {
	c := board.Claim{Holder: h.ID.Holder(), Until: h.Until.UnixMilli(), Live: h.State == HoldHeld}
	for _, u := range h.Units {
		c.Units = append(c.Units, board.PoolUnits{Pool: int16(u.Pool), N: u.N})
	}
	return c
}
