package booking

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// sheet is the working copy on which the commands of a batch are decided one after the other. Each sees what those before it did;
// the first state of every row is kept, so that the write is guarded by what the database had.
type sheet struct {
	*Rows
	seats      map[SeatRef]seatMark
	buckets    map[PoolRef][]Bucket // as they were
	allowances map[AllowanceRef]*AllowanceChange
	holds      map[HoldID]*HoldChange
	payments   map[PaymentID]*PaymentChange
	bookings   map[BookingID]*BookingChange
	refunds    map[RefundID]*RefundChange
	rest       Changes
}

type seatMark struct {
	guard SeatGuard
	owner [16]byte
	epoch int32
}

func newSheet(r *Rows) *sheet {
	return &sheet{
		Rows: r, seats: map[SeatRef]seatMark{}, buckets: map[PoolRef][]Bucket{}, allowances: map[AllowanceRef]*AllowanceChange{},
		holds: map[HoldID]*HoldChange{}, payments: map[PaymentID]*PaymentChange{}, bookings: map[BookingID]*BookingChange{},
		refunds: map[RefundID]*RefundChange{},
	}
}

// seat changes a seat. Only the first guard of a row in a batch counts for the database: the later ones were about states that only this sheet has seen.
func (s *sheet) seat(ref SeatRef, guard SeatGuard, owner [16]byte, next Seat) {
	old := s.Seats[ref]
	if _, ok := s.seats[ref]; !ok {
		s.seats[ref] = seatMark{guard: guard, owner: owner, epoch: old.Epoch}
	}
	next.Epoch = old.Epoch + 1
	s.Seats[ref] = next
}

// units moves n units of a bucket: held and sold are added to its counts.
func (s *sheet) units(ref PoolRef, bucket int, held, sold int64) {
	now := s.Pools[ref]
	s.keepBuckets(ref)
	i, ok := slices.BinarySearchFunc(now, bucket, func(b Bucket, n int) int { return cmp.Compare(b.Bucket, n) })
	if !ok {
		panic(fmt.Sprintf("booking: hold names bucket %d of pool %d, which has no row", bucket, ref.Pool))
	}
	now[i].Held += held
	now[i].Sold += sold
}

func (s *sheet) keepBuckets(ref PoolRef) {
	if _, ok := s.buckets[ref]; !ok {
		s.buckets[ref] = slices.Clone(s.Pools[ref])
	}
}

// allowance moves a customer's count. limit is checked by the database when the batch as a whole raises it; lowering has none.
func (s *sheet) allowance(ref AllowanceRef, delta, limit int) {
	c := s.allowances[ref]
	if c == nil {
		c = &AllowanceChange{Ref: ref}
		s.allowances[ref] = c
	}
	c.Delta += delta
	c.Limit = max(c.Limit, limit)
	s.Allowances[ref] += delta
}

func (s *sheet) hold(h Hold) {
	if c := s.holds[h.ID]; c != nil {
		c.New = h
	} else {
		old, ok := s.Holds[h.ID]
		s.holds[h.ID] = &HoldChange{Insert: !ok, From: old.State, New: h}
	}
	s.Holds[h.ID] = h
}

func (s *sheet) payment(p Payment) {
	if c := s.payments[p.ID]; c != nil {
		c.New = p
	} else {
		old, ok := s.Payments[p.ID]
		s.payments[p.ID] = &PaymentChange{Insert: !ok, From: old.Status, New: p}
		if !ok {
			s.PaymentsOf[p.Hold] = append(s.PaymentsOf[p.Hold], p.ID)
		}
	}
	s.Payments[p.ID] = p
}

func (s *sheet) booking(b Booking) {
	b.ChangedAt = s.Now
	if c := s.bookings[b.ID]; c != nil {
		c.New = b
	} else {
		old, ok := s.Bookings[b.ID]
		s.bookings[b.ID] = &BookingChange{Insert: !ok, From: old.Status, New: b}
	}
	s.Bookings[b.ID] = b
}

func (s *sheet) refund(r Refund) {
	if c := s.refunds[r.ID]; c != nil {
		c.New = r
	} else {
		_, ok := s.Refunds[r.ID]
		s.refunds[r.ID] = &RefundChange{Insert: !ok, New: r}
	}
	s.Refunds[r.ID] = r
}

func (s *sheet) notice(n NoticeRef) {
	s.Notices[n] = true
	s.rest.Notices = append(s.rest.Notices, n)
}

// tell appends a message about b, in the order of its booking, and returns b with the new sequence.
func (s *sheet) tell(b Booking, kind string, payload any) Booking {
	b.Sequence++
	body, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("booking: payload of %s: %v", kind, err)) // our own structs of strings and numbers
	}
	s.rest.Messages = append(s.rest.Messages, MessageChange{Booking: b.ID, Type: kind, Sequence: b.Sequence, Payload: body})
	return b
}

// changes collects what differs from what was read, every kind in key order: the order in which rows are locked and written.
func (s *sheet) changes() *Changes {
	c := s.rest
	for ref, m := range s.seats {
		c.Seats = append(c.Seats, SeatChange{Ref: ref, Guard: m.guard, Owner: m.owner, New: s.Seats[ref]})
	}
	slices.SortFunc(c.Seats, func(a, b SeatChange) int {
		return cmp.Or(cmp.Compare(a.Ref.Event, b.Ref.Event), cmp.Compare(a.Ref.No, b.Ref.No))
	})
	for ref, before := range s.buckets {
		for i, now := range s.Pools[ref] {
			if now == before[i] {
				continue
			}
			now.Epoch++
			s.Pools[ref][i] = now
			c.Buckets = append(c.Buckets, BucketChange{
				Ref: ref, Bucket: now.Bucket, Held: now.Held - before[i].Held, Sold: now.Sold - before[i].Sold,
				Limits: now.Capacity != before[i].Capacity || now.Overbook != before[i].Overbook, New: now,
			})
		}
	}
	slices.SortFunc(c.Buckets, func(a, b BucketChange) int {
		return cmp.Or(cmp.Compare(a.Ref.Event, b.Ref.Event), cmp.Compare(a.Ref.Pool, b.Ref.Pool), cmp.Compare(a.Bucket, b.Bucket))
	})
	for _, a := range s.allowances {
		if a.Delta != 0 {
			c.Allowances = append(c.Allowances, *a)
		}
	}
	slices.SortFunc(c.Allowances, func(a, b AllowanceChange) int {
		return cmp.Or(cmp.Compare(a.Ref.Event, b.Ref.Event), slices.Compare(a.Ref.Customer[:], b.Ref.Customer[:]))
	})
	c.Holds = collect(s.holds, func(h HoldChange) Key { return Key(h.New.ID) })
	c.Payments = collect(s.payments, func(p PaymentChange) Key { return Key(p.New.ID) })
	c.Bookings = collect(s.bookings, func(b BookingChange) Key { return Key(b.New.ID) })
	c.Refunds = collect(s.refunds, func(r RefundChange) Key { return Key(r.New.ID) })
	return &c
}

func collect[K comparable, V any](m map[K]*V, key func(V) Key) []V {
	if len(m) == 0 {
		return nil
	}
	all := make([]V, 0, len(m))
	for _, v := range m {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b V) int {
		x, y := key(a), key(b)
		return cmp.Or(cmp.Compare(x.Event, y.Event), slices.Compare(x.Bits[:], y.Bits[:]))
	})
	return all
}

// ms keeps instants on the wire and in the database on whole milliseconds.
func ms(t time.Time) time.Time { return t.Truncate(time.Millisecond).UTC() }
