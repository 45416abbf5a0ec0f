package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// Books is everything that a store has of an event, read in one snapshot.
type Books struct {
	Now        time.Time
	Event      catalog.EventID
	Seats      map[int32]Seat
	Pools      map[int][]Bucket
	Holds      map[HoldID]Hold
	Bookings   map[BookingID]Booking
	Payments   []Payment
	Refunds    []Refund
	Allowances map[identity.CustomerID]int
	Tickets    []BookedTicket
	Pending    map[BookingID]bool // bookings with a message in the outbox that is still to be relayed
}

// BookedTicket is what the audit needs to know of a ticket.
type BookedTicket struct {
	Booking BookingID
	Void    bool
}

// Violation is a broken promise. There should never be one; if there is, its text must be enough to find the rows.
type Violation struct {
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

// ticketGrace is how long after its confirmation a booking may be without tickets and without a message: longer means that one was lost.
const ticketGrace = time.Minute

// Audit recomputes the promises from the tables: every place has at most one owner, counts agree with the holds and bookings that they count,
// and every payment ended in one booking or one refund.
func (s *Service) Audit(ctx context.Context, event catalog.EventID) ([]Violation, error) {
	b, err := s.store.Books(ctx, event)
	if err != nil {
		return nil, err
	}
	found := Audit(b)
	e, _, err := s.eventOf(ctx, event)
	if err != nil {
		return nil, err
	}
	for i, p := range e.Pools {
		capacity, overbook := int64(0), int64(0)
		for _, k := range b.Pools[i] {
			capacity, overbook = capacity+k.Capacity, overbook+k.Overbook
		}
		if capacity+overbook != p.Capacity+p.Overbook {
			found = append(found, Violation{"pool-limit", fmt.Sprintf("pool %s sells %d + %d units, the event says %d + %d", p.Name, capacity, overbook, p.Capacity, p.Overbook)})
		}
	}
	return found, nil
}

// Audit is the pure part of Service.Audit.
func Audit(b *Books) []Violation {
	a := auditor{Books: b}
	a.places()
	a.counts()
	a.bookings()
	a.money()
	return a.found
}

type auditor struct {
	*Books
	found []Violation
}

func (a *auditor) add(rule, format string, args ...any) {
	const enough = 1000 // of violations; the rest would say the same
	if len(a.found) < enough {
		a.found = append(a.found, Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)})
	}
}

// places: whoever should own a seat owns it, and nobody else does.
func (a *auditor) places() {
	owner := map[int32]HoldID{}
	claim := func(h Hold, status SeatStatus) {
		for _, no := range h.Seats {
			if other, taken := owner[no]; taken {
				a.add("one-owner", "seat %d belongs to %v and to %v", no, other, h.ID)
			}
			owner[no] = h.ID
			switch seat := a.Seats[no]; {
			case !seat.ownedBy(h.ID, status):
				a.add("owner-has-seat", "seat %d of %v (%v) is in state %d of hold %x", no, h.ID, h.State, seat.Status, seat.Hold)
			case status == Held && !seat.Until.Equal(h.Until):
				a.add("seat-ends-with-hold", "seat %d ends at %v, its hold %v at %v", no, seat.Until, h.ID, h.Until)
			}
		}
	}
	for _, h := range a.Holds {
		switch {
		case h.live(a.Now):
			claim(h, Held)
		case h.State == HoldBooked && a.Bookings[BookingID(h.ID)].Status == BookingConfirmed:
			claim(h, Sold)
		}
	}
	for no, seat := range a.Seats {
		id := HoldID{Event: a.Event, Bits: seat.Hold}
		switch {
		case seat.Status == Sold && owner[no] != id:
			a.add("sold-has-booking", "seat %d is sold to %v, which has no confirmed booking over it", no, id)
		case seat.Status == Held && Live(seat.Until, a.Now) && owner[no] != id:
			a.add("held-has-hold", "seat %d is held until %v by %v, which is not a live hold over it", no, seat.Until, id)
		}
	}
}

// counts: units and allowances are exactly what unsettled holds and confirmed bookings add up to, and never above the limit.
func (a *auditor) counts() {
	type key struct{ pool, bucket int }
	held, sold := map[key]int64{}, map[key]int64{}
	has := map[identity.CustomerID]int{}
	for _, h := range a.Holds {
		confirmed := h.State == HoldBooked && a.Bookings[BookingID(h.ID)].Status == BookingConfirmed
		for _, u := range h.Units {
			if h.State == HoldHeld {
				held[key{u.Pool, u.Bucket}] += u.N
			} else if confirmed {
				sold[key{u.Pool, u.Bucket}] += u.N
			}
		}
		if h.State == HoldHeld || confirmed {
			has[h.Customer] += h.Places
		}
	}
	for pool, buckets := range a.Pools {
		for _, b := range buckets {
			k := key{pool, b.Bucket}
			if b.Held != held[k] || b.Sold != sold[k] {
				a.add("pool-count", "pool %d bucket %d counts %d held and %d sold; holds and bookings have %d and %d", pool, b.Bucket, b.Held, b.Sold, held[k], sold[k])
			}
			if b.Held < 0 || b.Sold < 0 || b.Room() < 0 {
				a.add("pool-limit", "pool %d bucket %d: %d held + %d sold of %d + %d", pool, b.Bucket, b.Held, b.Sold, b.Capacity, b.Overbook)
			}
			delete(held, k)
			delete(sold, k)
		}
	}
	for k, n := range held {
		a.add("pool-count", "pool %d has no bucket %d, but %d units are held of it", k.pool, k.bucket, n)
	}
	for k, n := range sold {
		a.add("pool-count", "pool %d has no bucket %d, but %d units are sold of it", k.pool, k.bucket, n)
	}
	for customer, n := range a.Allowances {
		if n != has[customer] {
			a.add("allowance", "customer %v is counted with %d places and has %d", customer, n, has[customer])
		}
		delete(has, customer)
	}
	for customer, n := range has {
		if n != 0 {
			a.add("allowance", "customer %v is not counted and has %d places", customer, n)
		}
	}
}

// bookings: each fits its hold, and a confirmed one has its tickets or a message on the way.
func (a *auditor) bookings() {
	valid, all := map[BookingID]int{}, map[BookingID]int{}
	for _, t := range a.Tickets {
		all[t.Booking]++
		if !t.Void {
			valid[t.Booking]++
		}
	}
	for id, b := range a.Bookings {
		h, ok := a.Holds[b.Hold()]
		switch {
		case !ok:
			a.add("booking-has-hold", "booking %v has no hold", id)
		case (b.Status == BookingConfirmed || b.Status == BookingCancelled) != (h.State == HoldBooked):
			a.add("booking-has-hold", "booking %v is %v and its hold %v", id, b.Status, h.State)
		case !slices.Equal(b.Seats, h.Seats) || !slices.Equal(b.Units, h.Units) || b.Places != h.Places || b.Customer != h.Customer || b.Price != h.Price:
			a.add("booking-fits-hold", "booking %v has %v %v at %v, its hold %v %v at %v", id, b.Seats, b.Units, b.Price, h.Seats, h.Units, h.Price)
		case b.Status == BookingPending && h.State != HoldHeld:
			a.add("booking-settled", "booking %v is pending and its hold %v", id, h.State)
		case b.Status == BookingConfirmed && all[id] == 0 && !a.Pending[id] && a.Now.Sub(b.ChangedAt) > ticketGrace:
			a.add("booking-has-tickets", "booking %v was confirmed at %v and has neither tickets nor a message", id, b.ChangedAt)
		case b.Status == BookingConfirmed && all[id] != 0 && valid[id] != b.Places:
			a.add("booking-has-tickets", "booking %v has %d places and %d valid tickets", id, b.Places, valid[id])
		case b.Status != BookingConfirmed && valid[id] != 0:
			a.add("tickets-void", "booking %v is %v and has %d valid tickets", id, b.Status, valid[id])
		}
	}
	for id := range all {
		if _, ok := a.Bookings[id]; !ok {
			a.add("ticket-has-booking", "%d tickets of the booking %v, which is not there", all[id], id)
		}
	}
}

// money: what was charged is a booking or goes back, once.
func (a *auditor) money() {
	owed, done := map[PaymentID]int64{}, map[PaymentID]int64{}
	causes := map[PaymentID]map[RefundCause]bool{}
	for _, r := range a.Refunds {
		owed[r.Payment] += r.Amount.Amount
		if r.Done {
			done[r.Payment] += r.Amount.Amount
		}
		if causes[r.Payment] == nil {
			causes[r.Payment] = map[RefundCause]bool{}
		}
		if causes[r.Payment][r.Cause] {
			a.add("one-refund", "payment %v has two refunds because of %s", r.Payment, r.Cause)
		}
		causes[r.Payment][r.Cause] = true
	}
	kept := map[BookingID]int{} // payments that pay for a booking
	for _, p := range a.Payments {
		b, ok := a.Bookings[BookingID(p.Hold)]
		if !ok {
			a.add("payment-has-booking", "payment %v has no booking", p.ID)
			continue
		}
		if p.Owed != owed[p.ID] || p.Refunded != done[p.ID] {
			a.add("refund-count", "payment %v owes %d and gave back %d; its refunds are %d and %d", p.ID, p.Owed, p.Refunded, owed[p.ID], done[p.ID])
		}
		if p.Refunded > p.Owed || p.Owed > p.Charged.Amount {
			a.add("refund-limit", "payment %v: %d given back of %d owed of %d charged", p.ID, p.Refunded, p.Owed, p.Charged.Amount)
		}
		delete(owed, p.ID)
		why := causes[p.ID]
		back := why[CauseLate] || why[CauseDuplicate] || why[CauseWrong]
		switch {
		case !p.Status.paid():
			if p.Charged.Amount != 0 || p.Owed != 0 {
				a.add("payment-status", "payment %v is %v with %d charged and %d owed", p.ID, p.Status, p.Charged.Amount, p.Owed)
			}
		case p.Charged.Amount == 0 && !p.Price.IsZero():
			// The provider says that it succeeded over nothing: there is nothing to book for and nothing to give back.
		case back && p.Owed != p.Charged.Amount:
			a.add("refund-whole", "payment %v is to be refunded whole: %d of %d", p.ID, p.Owed, p.Charged.Amount)
		case !back && b.Status != BookingConfirmed && b.Status != BookingCancelled && p.Charged.Amount > 0:
			a.add("money-has-booking", "payment %v took %v for booking %v, which is %v, and does not go back", p.ID, p.Charged, b.ID, b.Status)
		case !back:
			kept[b.ID]++
			if p.Charged != b.Price {
				a.add("money-is-price", "payment %v took %v for booking %v at %v", p.ID, p.Charged, b.ID, b.Price)
			}
			if b.Status == BookingCancelled && p.Owed != b.Refund {
				a.add("refund-count", "booking %v was cancelled with a refund of %d, its payment owes %d", b.ID, b.Refund, p.Owed)
			}
		}
	}
	for id := range owed {
		a.add("refund-has-payment", "refund of %v, which is not there", id)
	}
	for id, b := range a.Bookings {
		if n := kept[id]; (b.Status == BookingConfirmed || b.Status == BookingCancelled) && n != 1 {
			a.add("booking-is-paid", "booking %v is %v and paid %d times", id, b.Status, n)
		}
	}
}
