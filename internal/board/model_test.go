package board

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// t0 is when the tests begin; at gives the instant so many milliseconds later.
var t0 = time.Date(2031, 5, 1, 20, 0, 0, 0, time.UTC)

func at(ms int64) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

func until(ms int64) int64 { return at(ms).UnixMilli() }

// truth is the store as a model: rows, holds, and the obvious way to tell the picture from them.
type truth struct {
	shape   Shape
	seats   map[int32]Seat
	buckets []Bucket
	holds   map[uint64]*modelHold
	last    uint64
}

type modelHold struct {
	id    uint64
	until int64
	seats []int32
	units []Bucket // Pool, Bucket; Held: units
	state string
}

// mixedShape: seats 0-9 in no pool, 10-19 in pool 0 (STALLS, which has fewer units than seats), row 1 is mixed; pool 1 (FIELD) has no seats.
func mixedShape() Shape {
	s := Shape{Seats: 20, Rows: 3, Pools: []string{"STALLS", "FIELD"}}
	for no := range 20 {
		s.RowOf = append(s.RowOf, []int32{0, 1, 1, 2}[no/5])
		s.SeatPool = append(s.SeatPool, int16(-1+no/10))
	}
	return s
}

func newTruth() *truth {
	return &truth{
		shape: mixedShape(), seats: map[int32]Seat{}, holds: map[uint64]*modelHold{},
		buckets: []Bucket{{Pool: 0, Room: 6}, {Pool: 1, Room: 8}, {Pool: 1, Bucket: 1, Room: 8}},
	}
}

func (m *truth) full() (n News) {
	for _, s := range m.seats {
		n.Seats = append(n.Seats, s)
	}
	n.Buckets = slices.Clone(m.buckets)
	for _, h := range m.holds {
		if h.state == "held" && len(h.units) > 0 {
			n.Claims = append(n.Claims, h.claim())
		}
	}
	return n
}

func (h *modelHold) claim() Claim {
	c := Claim{Holder: h.id, Until: h.until, Live: h.state == "held"}
	for _, u := range h.units {
		c.Units = append(c.Units, PoolUnits{u.Pool, u.Held})
	}
	return c
}

func (m *truth) setSeat(n *News, no int32, s Seat) {
	s.No, s.Epoch = no, m.seats[no].Epoch+1
	m.seats[no] = s
	n.Seats = append(n.Seats, s)
}

func (m *truth) addUnits(n *News, h *modelHold, held, sold int64) {
	for _, u := range h.units {
		for i := range m.buckets {
			if b := &m.buckets[i]; b.Pool == u.Pool && b.Bucket == u.Bucket {
				b.Held += held * u.Held
				b.Sold += sold * u.Held
				b.Epoch++
				n.Buckets = append(n.Buckets, *b)
			}
		}
	}
}

func (m *truth) free(no int32, ms int64) bool {
	s := m.seats[no]
	return s.Status == Available || s.Status == Held && ms > s.Until
}

// left counts with holds over as the store would after settling them.
func (m *truth) left(pool int16, ms int64) int64 {
	var n int64
	for _, b := range m.buckets {
		if b.Pool == pool {
			n += b.Room - b.Held - b.Sold
		}
	}
	for _, h := range m.holds {
		for _, u := range h.units {
			if h.state == "held" && ms > h.until && u.Pool == pool {
				n += u.Held
			}
		}
	}
	return n
}

func (m *truth) shown(no int32, ms int64) Status {
	switch p := m.shape.SeatPool[no]; {
	case !m.free(no, ms):
		return m.seats[no].Status
	case p >= 0 && m.left(p, ms) <= 0:
		return Blocked
	default:
		return Available
	}
}

// step does one random thing to the store at ms, and gives the news of it.
func (m *truth) step(t *rapid.T, ms int64) (n News) {
	pick := func(state string) *modelHold {
		var all []*modelHold
		for _, h := range m.holds {
			if h.state == state {
				all = append(all, h)
			}
		}
		slices.SortFunc(all, func(a, b *modelHold) int { return int(a.id) - int(b.id) })
		if len(all) == 0 {
			return nil
		}
		return rapid.SampledFrom(all).Draw(t, "hold")
	}
	settle := func(h *modelHold, state string) {
		h.state = state
		for _, no := range h.seats {
			if s := m.seats[no]; s.Holder == h.id && s.Status == Held {
				m.setSeat(&n, no, Seat{})
			}
		}
		m.addUnits(&n, h, -1, 0)
		n.Claims = append(n.Claims, h.claim())
	}
	switch rapid.SampledFrom([]string{"place", "place", "place", "prolong", "settle", "book", "block"}).Draw(t, "step") {
	case "place":
		m.last++
		h := &modelHold{id: m.last, until: until(ms + rapid.Int64Range(0, 1500).Draw(t, "for")), state: "held"}
		now := until(ms)
		if rapid.Bool().Draw(t, "with seats") {
			from := rapid.Int32Range(0, 17).Draw(t, "from")
			for no := from; no < from+3; no++ {
				if p := m.shape.SeatPool[no]; m.free(no, now) && (p < 0 || m.buckets[0].Held+m.buckets[0].Sold+int64(len(h.units)) < m.buckets[0].Room) {
					h.seats = append(h.seats, no)
					if p >= 0 {
						h.units = append(h.units, Bucket{Pool: 0, Held: 1})
					}
				}
			}
		} else if b := m.buckets[rapid.IntRange(1, 2).Draw(t, "bucket")]; b.Held+b.Sold+2 <= b.Room {
			h.units = []Bucket{{Pool: b.Pool, Bucket: b.Bucket, Held: 2}}
		}
		for _, no := range h.seats {
			m.setSeat(&n, no, Seat{Status: Held, Until: h.until, Holder: h.id})
		}
		m.addUnits(&n, h, 1, 0)
		m.holds[h.id] = h
		if len(h.units) > 0 {
			n.Claims = append(n.Claims, h.claim())
		}
	case "prolong":
		if h := pick("held"); h != nil && until(ms) <= h.until {
			h.until += 500
			for _, no := range h.seats {
				m.setSeat(&n, no, Seat{Status: Held, Until: h.until, Holder: h.id})
			}
			n.Claims = append(n.Claims, h.claim())
		}
	case "settle":
		if h := pick("held"); h != nil {
			settle(h, "released")
		}
	case "book":
		if h := pick("held"); h != nil && until(ms) <= h.until {
			h.state = "booked"
			for _, no := range h.seats {
				m.setSeat(&n, no, Seat{Status: Sold, Holder: h.id})
			}
			m.addUnits(&n, h, -1, 1)
			n.Claims = append(n.Claims, h.claim())
		}
	case "block":
		no := rapid.Int32Range(0, 19).Draw(t, "seat")
		switch s := m.seats[no]; {
		case s.Status == Blocked:
			m.setSeat(&n, no, Seat{})
		case m.free(no, until(ms)):
			m.setSeat(&n, no, Seat{Status: Blocked})
		}
	}
	return n
}

// check compares everything the board says at ms with the model.
func (m *truth) check(t interface {
	Helper()
	Fatalf(string, ...any)
}, b *Board, ms int64) {
	t.Helper()
	b.lastTick.Store(0) // a tick is due, however short the time since the last
	now, abs := at(ms), until(ms)
	snap := b.Snapshot(now)
	want := make([]Status, m.shape.Seats)
	inRow := make([]int, m.shape.Rows)
	freeOf := []int{0, 0}
	for no := range want {
		want[no] = m.shown(int32(no), abs)
		if got := b.Free(int32(no)); got != (want[no] == Available) {
			t.Fatalf("Free(%d) = %v, shown %v", no, got, want[no])
		}
		if want[no] == Available {
			inRow[m.shape.RowOf[no]]++
		}
		if m.free(int32(no), abs) {
			freeOf[m.shape.SeatPool[no]+1]++
		}
	}
	if diff := cmp.Diff(want, snap.States()); diff != "" {
		t.Fatalf("states at %d (-want +got):\n%s", ms, diff)
	}
	left := []int64{m.left(0, abs), m.left(1, abs)}
	if diff := cmp.Diff(left, snap.Pools); diff != "" {
		t.Fatalf("pools at %d (-want +got):\n%s", ms, diff)
	}
	if want, got := freeOf[0]+min(freeOf[1], int(left[0]))+int(left[1]), b.Available(); got != want {
		t.Fatalf("Available() = %d, want %d", got, want)
	}
	for row, n := range inRow {
		if got := b.FreeInRow(int32(row)); got != n {
			t.Fatalf("FreeInRow(%d) = %d, want %d", row, got, n)
		}
	}
	for no := range int32(m.shape.Seats) {
		s := m.seats[no]
		gone, _ := b.Refuse([]int32{no}, nil, 0, 0, now)
		if refused := len(gone) > 0; refused != (s.Status == Sold || s.Status == Blocked || s.Status == Held && abs <= s.Until) {
			t.Fatalf("Refuse(%d) = %v at %d, row %+v", no, refused, abs, s)
		}
	}
	for p, n := range left {
		if _, pools := b.Refuse(nil, []PoolUnits{{int16(p), n}}, 0, 0, now); len(pools) > 0 && n >= 0 {
			t.Fatalf("pool %d refuses its last %d units", p, n)
		}
		if _, pools := b.Refuse(nil, []PoolUnits{{int16(p), n + 1}}, 0, 0, now); len(pools) == 0 {
			t.Fatalf("pool %d lets through one more than its %d units", p, n)
		}
	}
}

// Whatever the order in which news arrive and however often, the picture is that of the store, at every later instant. C-68: also of its pools.
func TestAnyOrderAndRepetitionOfNewsEndsInTheStoresPicture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newTruth()
		empty := m.full()
		var all []News
		var ms int64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			ms += rapid.Int64Range(0, 400).Draw(t, "passes")
			all = append(all, m.step(t, ms))
		}
		inOrder, anyOrder := New(m.shape, empty, t0), New(m.shape, empty, t0)
		for _, n := range all {
			inOrder.Apply(n, t0)
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 30).Draw(t, "repeated") {
			anyOrder.Apply(all[i], at(rapid.Int64Range(0, ms).Draw(t, "when")))
		}
		for _, i := range rapid.Permutation(slices.Collect(indices(all))).Draw(t, "order") {
			anyOrder.Apply(all[i], at(ms))
		}
		for range 4 {
			m.check(t, inOrder, ms)
			m.check(t, anyOrder, ms)
			ms += rapid.Int64Range(0, 900).Draw(t, "later")
		}
	})
}

func indices[T any](s []T) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range s {
			if !yield(i) {
				return
			}
		}
	}
}

// Losing any news is healed by one reload, whatever is told while the rows are being read.
func TestAReloadHealsWhatWasLostAndKeepsWhatIsNewer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newTruth()
		b := New(m.shape, m.full(), t0)
		var ms int64
		run := func(lose bool) {
			for range rapid.IntRange(0, 15).Draw(t, "steps") {
				ms += rapid.Int64Range(0, 400).Draw(t, "passes")
				n := m.step(t, ms)
				if !lose || rapid.Bool().Draw(t, "told") {
					b.Apply(n, at(ms))
				}
			}
		}
		run(true)
		began := b.BeginReload()
		run(false)
		read := m.full()
		run(false)
		b.Reload(read, began, at(ms))
		m.check(t, b, ms)
		run(false)
		m.check(t, b, ms+rapid.Int64Range(0, 2000).Draw(t, "later"))
	})
}
