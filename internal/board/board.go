// Package board keeps the live picture of an event: which seats are free, how many units of each pool are left. It serves the maps, feeds the streams and
// refuses what is surely taken, all from memory. It may be late, and then refuses a free place for a moment; it never grants one: the store decides.
package board

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a board.
const (
	// TickEvery is the shortest time between two versions: a change is visible after at most so long.
	TickEvery = 250 * time.Millisecond
	// SettledFor is how long at least a board remembers that a claim was settled, so that older news about it does no harm. Longer than LoadTimeout.
	SettledFor = 30 * time.Second
	// settledMax is how many settled claims it remembers before it forgets sooner.
	settledMax = 1 << 16
	// clockBack is how far an instant may lie before one already seen and still be a late caller; more is a clock that was set back.
	clockBack = 5 * time.Second
)

// seat is 24 bytes: 50,000 of them are the most of a large board.
type seat struct {
	until  int64
	holder uint64
	epoch  int32
	told   uint16 // the generation in which it was last told of
	status Status
	over   bool // held, and its time was over when the board last looked
}

func (s *seat) free() bool { return s.status == Available || s.over }

// cell is the seats of one row that belong to one pool (or to none): what best available counts.
type cell struct {
	pool int16
	free atomic.Int32
}

type bucket struct {
	Bucket
	told uint16
}

type pool struct {
	key     []byte // its name as a JSON key, colon included
	tied    bool   // seats belong to it
	buckets []bucket
	stock   int64        // sum of room - held - sold
	over    int64        // units of claims whose time is over: not settled, yet free
	left    atomic.Int64 // stock + over
}

type claim struct {
	until int64
	units []PoolUnits
	told  uint16
	over  bool
}

// Board is safe for any number of readers and writers. Instants given by different callers may be a little out of order.
type Board struct {
	shape    Shape
	cellOf   []int32 // of each seat
	cells    []cell
	rowCells [][]int32
	poolNo   []int16 // 0, 1, 2…: Refuse lends slices of it

	mu      sync.RWMutex
	seats   []seat
	pools   []pool
	freeOf  []int // free seats of each pool; the last one: of no pool
	claims  map[uint64]*claim
	settled [2]map[uint64]struct{} // by age; the older one is dropped as a whole
	rotated int64
	clock   int64 // latest instant seen, Unix milliseconds, rounded up
	gen     uint16

	seatEnds, claimEnds   ends
	seatsTimed, claimsFor int // entries of them that say the truth

	touched    []int32 // seats that may look different from the last version
	touchedBit []uint64

	freeBits []atomic.Uint64 // written under mu, read without
	nextEnd  atomic.Int64
	dirty    atomic.Bool

	tickMu   sync.Mutex
	lastTick atomic.Int64
	current  atomic.Pointer[Snapshot]
	stream   stream
}

// ceilMillis rounds up, so that ceilMillis(now) > until exactly when now is after until: the one predicate of when a hold is over.
func ceilMillis(t time.Time) int64 {
	return t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
}

// New makes the board of an event from all that was ever touched of it. Its first version is now in milliseconds, so it is above any version before a restart.
func New(shape Shape, full News, now time.Time) *Board {
	return newBoard(shape, full, now, 0)
}

// newBoard is New for a board that takes over from another one, whose versions it must stay above.
func newBoard(shape Shape, full News, now time.Time, above int64) *Board {
	b := &Board{
		shape:      shape,
		seats:      make([]seat, shape.Seats),
		pools:      make([]pool, len(shape.Pools)),
		poolNo:     make([]int16, len(shape.Pools)),
		freeOf:     make([]int, len(shape.Pools)+1),
		claims:     map[uint64]*claim{},
		clock:      ceilMillis(now),
		rotated:    ceilMillis(now),
		touchedBit: make([]uint64, (shape.Seats+63)/64),
		freeBits:   make([]atomic.Uint64, (shape.Seats+63)/64),
	}
	for p, name := range shape.Pools {
		key, _ := json.Marshal(name) // a string always has a JSON form
		key = append(key, ':')
		b.pools[p].key = key
		b.poolNo[p] = int16(p)
	}
	b.makeCells()
	for no := range b.seats {
		b.markFree(int32(no), true)
	}
	for _, s := range full.Seats {
		b.tellSeat(s)
	}
	for _, x := range full.Buckets {
		b.tellBucket(x)
	}
	for _, c := range full.Claims {
		b.tellClaim(c)
	}
	b.endsChanged()
	b.stream.wake = make(chan struct{})
	b.firstSnapshot(max(now.UnixMilli(), above+1))
	b.lastTick.Store(now.UnixMilli())
	return b
}

func (b *Board) makeCells() {
	type place struct {
		row  int32
		pool int16
	}
	b.rowCells = make([][]int32, max(b.shape.Rows, 1))
	b.cellOf = make([]int32, b.shape.Seats)
	known := map[place]int32{}
	var pools []int16
	for no := range b.cellOf {
		at := place{pool: -1}
		if b.shape.RowOf != nil {
			at.row = b.shape.RowOf[no]
		}
		if b.shape.SeatPool != nil {
			at.pool = b.shape.SeatPool[no]
		}
		c, ok := known[at]
		if !ok {
			c = int32(len(pools))
			known[at] = c
			pools = append(pools, at.pool)
			b.rowCells[at.row] = append(b.rowCells[at.row], c)
			if at.pool >= 0 {
				b.pools[at.pool].tied = true
			}
		}
		b.cellOf[no] = c
	}
	b.cells = make([]cell, len(pools))
	for c, p := range pools {
		b.cells[c].pool = p
	}
}

func (b *Board) poolOf(no int32) int16 { return b.cells[b.cellOf[no]].pool }

// Apply takes in what changed. For each seat and bucket the higher epoch wins, and settled claims stay settled, so late, reordered and repeated news do no harm.
func (b *Board) Apply(n News, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(ceilMillis(now))
	for _, s := range n.Seats {
		if b.knows(s.No) && s.Epoch > b.seats[s.No].epoch {
			b.tellSeat(s)
		}
	}
	for _, x := range n.Buckets {
		b.tellBucket(x)
	}
	for _, c := range n.Claims {
		b.tellClaim(c)
	}
	b.endsChanged()
}

// Reload is a reading of all rows, begun by BeginReload.
type Reload struct{ gen uint16 }

// BeginReload is called before the rows are read. Only then can the board tell what it heard of since, which the reading may not have, from what it believes wrongly.
func (b *Board) BeginReload() Reload {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gen++
	return Reload{b.gen}
}

// has says whether something was told since the reading began. Generations wrap around, hence the difference.
func (r Reload) has(told uint16) bool { return int16(told-r.gen) >= 0 }

// Reload takes a full reading in: it replaces whatever the board has not been told of since the reading began (a seat that is not in it is available,
// epoch 0), and heals what was lost or wrong. Of what was told since, the higher epoch wins.
func (b *Board) Reload(full News, began Reload, now time.Time) {
	read := make([]uint64, len(b.touchedBit))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(ceilMillis(now))
	for _, s := range full.Seats {
		if !b.knows(s.No) {
			continue
		}
		read[s.No/64] |= 1 << (s.No % 64)
		old := &b.seats[s.No]
		same := s.Epoch == old.epoch && s.Status == old.status && s.Until == old.until && s.Holder == old.holder
		if !same && (s.Epoch > old.epoch || !began.has(old.told)) {
			b.tellSeat(s)
		}
	}
	for no := range b.seats {
		old := &b.seats[no]
		if read[no/64]&(1<<(no%64)) == 0 && (old.epoch != 0 || old.status != Available) && !began.has(old.told) {
			b.tellSeat(Seat{No: int32(no)})
		}
	}
	for _, x := range full.Buckets {
		if at := b.bucket(x.Pool, x.Bucket); at != nil && !began.has(at.told) {
			at.Epoch = math.MinInt64 // the reading wins whatever its epoch is
		}
		b.tellBucket(x)
	}
	live := make(map[uint64]Claim, len(full.Claims))
	for _, c := range full.Claims {
		live[c.Holder] = c
	}
	for holder, c := range b.claims {
		if x, ok := live[holder]; !began.has(c.told) && (!ok || x.Until < c.until) {
			b.dropClaim(holder, c)
		}
	}
	for _, c := range full.Claims {
		b.tellClaim(c)
	}
	b.endsChanged()
}

func (b *Board) knows(no int32) bool { return no >= 0 && int(no) < len(b.seats) }

func (b *Board) tellSeat(s Seat) {
	if !b.knows(s.No) {
		return
	}
	at := &b.seats[s.No]
	was := at.free()
	if at.status == Held && !at.over {
		b.seatsTimed--
	}
	*at = seat{until: s.Until, holder: s.Holder, epoch: s.Epoch, told: b.gen, status: s.Status & 3}
	if at.status == Held {
		b.timeSeat(s.No, at)
	}
	if at.free() != was {
		b.markFree(s.No, !was)
	}
	b.touch(s.No)
}

// timeSeat looks at the end of a held seat.
func (b *Board) timeSeat(no int32, at *seat) {
	at.over = b.clock > at.until
	if !at.over {
		b.seatsTimed++
		b.seatEnds.push(end{at.until, uint64(no)})
	}
}

func (b *Board) markFree(no int32, free bool) {
	n := 1
	if free {
		b.freeBits[no/64].Or(1 << (no % 64))
	} else {
		n = -1
		b.freeBits[no/64].And(^(uint64(1) << (no % 64)))
	}
	c := &b.cells[b.cellOf[no]]
	c.free.Add(int32(n))
	if c.pool >= 0 {
		b.freeOf[c.pool] += n
	} else {
		b.freeOf[len(b.pools)] += n
	}
}

func (b *Board) touch(no int32) {
	if b.touchedBit[no/64]&(1<<(no%64)) == 0 {
		b.touchedBit[no/64] |= 1 << (no % 64)
		b.touched = append(b.touched, no)
	}
	b.dirty.Store(true)
}

// bucket finds a row of a pool, nil if it is not known yet.
func (b *Board) bucket(p, no int16) *bucket {
	if p < 0 || int(p) >= len(b.pools) {
		return nil
	}
	rows := b.pools[p].buckets
	if i := slices.IndexFunc(rows, func(x bucket) bool { return x.Bucket.Bucket == no }); i >= 0 {
		return &rows[i]
	}
	return nil
}

func (b *Board) tellBucket(x Bucket) {
	if x.Pool < 0 || int(x.Pool) >= len(b.pools) {
		return
	}
	p := &b.pools[x.Pool]
	at := b.bucket(x.Pool, x.Bucket)
	if at == nil {
		p.buckets = append(p.buckets, bucket{Bucket: Bucket{Epoch: math.MinInt64}})
		at = &p.buckets[len(p.buckets)-1]
	}
	if x.Epoch <= at.Epoch {
		return
	}
	p.stock += (x.Room - x.Held - x.Sold) - (at.Room - at.Held - at.Sold)
	*at = bucket{x, b.gen}
	b.leftChanged(p)
}

func (b *Board) leftChanged(p *pool) {
	if left := p.stock + p.over; left != p.left.Load() {
		p.left.Store(left)
		b.dirty.Store(true)
	}
}

// remains is how many units a pool can still give; below 0 is possible while news are out of order, and means none.
func (p *pool) remains() int64 { return max(0, p.left.Load()) }

// advance lets what is over at ms be over.
func (b *Board) advance(ms int64) {
	switch {
	case ms > b.clock:
		b.clock = ms
	case ms < b.clock-clockBack.Milliseconds():
		b.rewind(ms)
	}
	for len(b.seatEnds) > 0 && b.seatEnds[0].until < b.clock {
		e := b.seatEnds.pop()
		if s := &b.seats[e.key]; s.status == Held && !s.over && s.until == e.until {
			s.over = true
			b.seatsTimed--
			b.markFree(int32(e.key), true)
			b.touch(int32(e.key))
		}
	}
	for len(b.claimEnds) > 0 && b.claimEnds[0].until < b.clock {
		e := b.claimEnds.pop()
		if c := b.claims[e.key]; c != nil && !c.over && c.until == e.until {
			b.claimsFor--
			b.setOver(c, true)
		}
	}
	if b.clock-b.rotated > SettledFor.Milliseconds() || len(b.settled[0]) >= settledMax {
		b.settled[1], b.settled[0] = b.settled[0], nil
		b.rotated = b.clock
	}
}

// rewind follows a clock that was set back: holds that looked over have time left again.
func (b *Board) rewind(ms int64) {
	b.clock, b.rotated = ms, ms
	for no := range b.seats {
		if s := &b.seats[no]; s.status == Held && s.over && s.until >= ms {
			b.timeSeat(int32(no), s)
			b.markFree(int32(no), false)
			b.touch(int32(no))
		}
	}
	for holder, c := range b.claims {
		if c.over && c.until >= ms {
			b.setOver(c, false)
			b.claimsFor++
			b.claimEnds.push(end{c.until, holder})
		}
	}
}

// catchUp lets what is over at now be over, if anything is.
func (b *Board) catchUp(now time.Time) {
	if ms := ceilMillis(now); ms > b.nextEnd.Load() {
		b.mu.Lock()
		b.advance(ms)
		b.endsChanged()
		b.mu.Unlock()
	}
}

// endsChanged closes every change made under mu: it bounds the heaps and says when to look next.
func (b *Board) endsChanged() {
	before := len(b.seatEnds)
	b.seatEnds.prune(b.seatsTimed, func(e end) bool {
		// over is not set while an end is pending, so it can mark what was kept already: the same end may have been pushed twice.
		s := &b.seats[e.key]
		if s.status != Held || s.over || s.until != e.until {
			return false
		}
		s.over = true
		return true
	})
	if len(b.seatEnds) != before {
		for _, e := range b.seatEnds {
			b.seats[e.key].over = false
		}
	}
	b.claimEnds.prune(b.claimsFor, func(e end) bool {
		c := b.claims[e.key]
		return c != nil && !c.over && c.until == e.until
	})
	next := int64(math.MaxInt64)
	if len(b.seatEnds) > 0 {
		next = b.seatEnds[0].until
	}
	if len(b.claimEnds) > 0 {
		next = min(next, b.claimEnds[0].until)
	}
	b.nextEnd.Store(next)
}

// Free says whether a seat can be had as far as the board knew when it last looked at the time (Apply, Advance, Snapshot, NewOverlay): a seat of a pool that
// has nothing left cannot.
func (b *Board) Free(no int32) bool {
	if !b.knows(no) || b.freeBits[no/64].Load()&(1<<(no%64)) == 0 {
		return false
	}
	p := b.poolOf(no)
	return p < 0 || b.pools[p].left.Load() > 0
}

// FreeInRow counts the seats of a row that Free says yes to.
func (b *Board) FreeInRow(row int32) int {
	n := 0
	if row < 0 || int(row) >= len(b.rowCells) {
		return 0
	}
	for _, c := range b.rowCells[row] {
		if p := b.cells[c].pool; p < 0 || b.pools[p].left.Load() > 0 {
			n += int(b.cells[c].free.Load())
		}
	}
	return n
}

// Advance lets the board look at the time without any news: what is over is shown free.
func (b *Board) Advance(now time.Time) { b.catchUp(now) }

// Available counts the places left: free seats, each only while its pool has a unit for it, and units of pools that no seat belongs to.
func (b *Board) Available() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := b.freeOf[len(b.pools)]
	for p := range b.pools {
		left := int(b.pools[p].remains())
		if b.pools[p].tied {
			left = min(left, b.freeOf[p])
		}
		n += left
	}
	return n
}

// Remaining is how many units of a pool can be had at now; 0 for a pool that is not there.
func (b *Board) Remaining(p int16, now time.Time) int64 {
	if p < 0 || int(p) >= len(b.pools) {
		return 0
	}
	b.catchUp(now)
	return b.pools[p].remains()
}

// holding says whether holds are known that are not settled yet: their end will change what is available.
func (b *Board) holding() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.seatsTimed > 0 || b.claimsFor > 0
}

// sameShape says whether a board of one shape can go on with another.
func sameShape(a, b Shape) bool {
	return a.Seats == b.Seats && a.Rows == b.Rows && slices.Equal(a.Pools, b.Pools) &&
		slices.Equal(a.RowOf, b.RowOf) && slices.Equal(a.SeatPool, b.SeatPool)
}
