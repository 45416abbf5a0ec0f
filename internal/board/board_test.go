package board

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func plain(seats int) Shape { return Shape{Seats: seats} }

func held(no int32, until int64, holder uint64, epoch int32) News {
	return News{Seats: []Seat{{No: no, Status: Held, Until: until, Holder: holder, Epoch: epoch}}}
}

// C-68: no news, no sweeper.
func TestAHeldSeatIsFreeAgainTheInstantAfterItsEndByItself(t *testing.T) {
	t.Parallel()
	b := New(plain(4), held(2, until(1000), 7, 1), t0)
	for _, c := range []struct {
		ms   int64
		free bool
	}{{0, false}, {999, false}, {1000, false}, {1001, true}, {500, true}} {
		now := at(c.ms)
		b.Advance(now)
		if c.ms == 500 { // a caller that is a little late changes nothing of the picture, but its own instant decides a refusal
			c.free = b.Free(2)
			if gone, _ := b.Refuse([]int32{2}, nil, 0, 0, now); len(gone) != 1 {
				t.Errorf("at 500 of 1000 ms the seat must be refused")
			}
		} else if gone, _ := b.Refuse([]int32{2}, nil, 0, 0, now); (len(gone) == 0) != c.free {
			t.Errorf("at %d ms: gone %v, want free %v", c.ms, gone, c.free)
		}
		if b.Free(2) != c.free {
			t.Errorf("at %d ms: Free = %v, want %v", c.ms, !c.free, c.free)
		}
	}
	if got := b.Snapshot(at(1001)).Status(2); got != Available {
		t.Errorf("shown %v, want available", got)
	}
	if gone, _ := b.Refuse([]int32{2}, nil, 0, 0, at(1000).Add(1)); len(gone) != 0 {
		t.Errorf("a nanosecond after its end the seat is refused")
	}
}

// C-68
func TestUnitsOfAnEndedHoldCountAsFreeOnceNotTwice(t *testing.T) {
	t.Parallel()
	shape := Shape{Pools: []string{"STANDING"}}
	b := New(shape, News{Buckets: []Bucket{{Room: 10}}}, t0)
	place := News{
		Buckets: []Bucket{{Room: 10, Held: 8, Epoch: 1}},
		Claims:  []Claim{{Holder: 1, Until: until(1000), Live: true, Units: []PoolUnits{{0, 8}}}},
	}
	b.Apply(place, t0)
	settle := News{Buckets: []Bucket{{Room: 10, Epoch: 2}}, Claims: []Claim{{Holder: 1}}}
	for _, c := range []struct {
		ms   int64
		news *News
		left int64
	}{{1000, nil, 2}, {1001, nil, 10}, {1500, &settle, 10}, {1600, &place, 10}, {1700, &settle, 10}} {
		if c.news != nil {
			b.Apply(*c.news, at(c.ms))
		}
		if got := b.Remaining(0, at(c.ms)); got != c.left {
			t.Errorf("at %d ms: %d left, want %d", c.ms, got, c.left)
		}
		if _, pools := b.Refuse(nil, []PoolUnits{{0, c.left}}, 0, 0, at(c.ms)); len(pools) != 0 {
			t.Errorf("at %d ms the last %d units are refused", c.ms, c.left)
		}
		if _, pools := b.Refuse(nil, []PoolUnits{{0, c.left + 1}}, 0, 0, at(c.ms)); len(pools) != 1 {
			t.Errorf("at %d ms one unit too many is let through", c.ms)
		}
	}
}

func TestRefuseNamesExactlyWhatIsSurelyTaken(t *testing.T) {
	t.Parallel()
	shape := Shape{Seats: 8, Pools: []string{"A", "B", "C"}}
	b := New(shape, News{
		Seats: []Seat{
			{No: 1, Status: Held, Until: until(1000), Holder: 11, Epoch: 1},
			{No: 2, Status: Sold, Holder: 12, Epoch: 1},
			{No: 3, Status: Blocked, Epoch: 1},
			{No: 4, Status: Held, Until: until(-1), Holder: 14, Epoch: 1},
			{No: 6, Status: Sold, Epoch: 1},
			{No: 7, Status: Held, Until: until(1000), Epoch: 1},
		},
		Buckets: []Bucket{{Pool: 0, Room: 3, Held: 2}, {Pool: 0, Bucket: 1, Room: 2, Sold: 1}, {Pool: 1, Room: 5, Sold: 4, Held: 1}},
		Claims: []Claim{
			{Holder: 11, Until: until(1000), Live: true, Units: []PoolUnits{{0, 2}}},
			{Holder: 15, Until: until(-1), Live: true, Units: []PoolUnits{{1, 1}}},
		},
	}, t0)
	for name, c := range map[string]struct {
		seats          []int32
		units          []PoolUnits
		mine, replaces uint64
		gone           []int32
		pools          []int16
	}{
		"nothing":                        {seats: []int32{0, 4, 5}, units: []PoolUnits{{0, 2}}},
		"one":                            {seats: []int32{0, 1, 4}, gone: []int32{1}},
		"side by side":                   {seats: []int32{0, 1, 2, 3, 4}, gone: []int32{1, 2, 3}},
		"apart":                          {seats: []int32{1, 0, 2, 4, 3}, gone: []int32{1, 2, 3}},
		"apart, then side by side":       {seats: []int32{1, 0, 2, 3}, gone: []int32{1, 2, 3}},
		"its own":                        {seats: []int32{1, 2}, mine: 11, gone: []int32{2}},
		"sold to the repetition":         {seats: []int32{1, 2}, mine: 12, gone: []int32{1}},
		"taken by nobody known":          {seats: []int32{6, 7}, gone: []int32{6, 7}},
		"being replaced":                 {seats: []int32{1, 2}, replaces: 11, gone: []int32{2}},
		"sold to the one being replaced": {seats: []int32{2}, replaces: 12, gone: []int32{2}},
		"not of this layout":             {seats: []int32{-1, 8}, gone: []int32{-1, 8}},
		"too many units":                 {units: []PoolUnits{{0, 3}}, pools: []int16{0}},
		"too many units in two parts":    {units: []PoolUnits{{0, 1}, {0, 2}}, pools: []int16{0}},
		"units of the one replaced":      {units: []PoolUnits{{0, 4}}, replaces: 11},
		"more than with those":           {units: []PoolUnits{{0, 5}}, replaces: 11, mine: 11, pools: []int16{0}},
		"units of one that is over":      {units: []PoolUnits{{1, 1}}, mine: 15},
		"those are free only once":       {units: []PoolUnits{{1, 2}}, mine: 15, pools: []int16{1}},
		"several pools":                  {units: []PoolUnits{{2, 1}, {0, 1}, {1, 2}, {9, 1}}, pools: []int16{2, 1, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]int32(nil), c.seats...)
			gone, pools := b.Refuse(c.seats, c.units, c.mine, c.replaces, t0)
			if diff := cmp.Diff(c.gone, gone) + cmp.Diff(c.pools, pools) + cmp.Diff(before, c.seats); diff != "" {
				t.Errorf("gone, pools, or the question changed (-want +got):\n%s", diff)
			}
			_ = append(gone, 99)
			if diff := cmp.Diff(before, c.seats); diff != "" {
				t.Errorf("appending to the answer changed the question:\n%s", diff)
			}
		})
	}
}

func TestRefuseDoesNotAllocateWhenNothingOrOneIsGone(t *testing.T) {
	b := New(Shape{Seats: 8, Pools: []string{"A"}}, News{Seats: []Seat{{No: 1, Status: Sold, Epoch: 1}}, Buckets: []Bucket{{Room: 1}}}, t0)
	seats, units := []int32{0, 1, 2}, []PoolUnits{{0, 2}}
	if n := testing.AllocsPerRun(100, func() {
		if gone, pools := b.Refuse(seats, units, 5, 6, t0); len(gone) != 1 || len(pools) != 1 {
			t.Error("refused wrongly")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFreeSeatsOfAFullPoolAreNotForSale(t *testing.T) {
	t.Parallel()
	// 4 seats, 3 units: an aircraft whose other unit was sold without a seat.
	shape := Shape{Seats: 5, Rows: 1, RowOf: make([]int32, 5), SeatPool: []int16{0, 0, 0, 0, -1}, Pools: []string{"ECONOMY"}}
	b := New(shape, News{Buckets: []Bucket{{Room: 3, Sold: 2}}}, t0)
	expect := func(ms int64, want []Status, available, inRow int) {
		t.Helper()
		if diff := cmp.Diff(want, b.States(at(ms))); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", ms, diff)
		}
		if b.Available() != available || b.FreeInRow(0) != inRow {
			t.Errorf("at %d: Available %d, FreeInRow %d, want %d, %d", ms, b.Available(), b.FreeInRow(0), available, inRow)
		}
	}
	expect(0, []Status{0, 0, 0, 0, 0}, 2, 5)
	n := held(1, until(2000), 9, 1)
	n.Buckets = []Bucket{{Room: 3, Sold: 2, Held: 1, Epoch: 1}}
	n.Claims = []Claim{{Holder: 9, Until: until(2000), Live: true, Units: []PoolUnits{{0, 1}}}}
	b.Apply(n, at(300))
	if b.Free(0) || !b.Free(4) {
		t.Errorf("Free(0) = %v, Free(4) = %v", b.Free(0), b.Free(4))
	}
	expect(300, []Status{Blocked, Held, Blocked, Blocked, 0}, 1, 1)
	expect(2001, []Status{0, 0, 0, 0, 0}, 2, 5)
}

// C-16
func TestAClockSetBackDoesNotLeaveHeldSeatsShownFree(t *testing.T) {
	t.Parallel()
	n := held(0, until(1000), 1, 1)
	n.Buckets = []Bucket{{Room: 2, Held: 2}}
	n.Claims = []Claim{{Holder: 1, Until: until(1000), Live: true, Units: []PoolUnits{{0, 2}}}}
	b := New(Shape{Seats: 2, Pools: []string{"P"}}, n, t0)
	b.Advance(at(3_600_000))
	if !b.Free(0) || b.Remaining(0, at(3_600_000)) != 2 {
		t.Fatal("the hold is not over an hour later")
	}
	b.Apply(News{}, at(500))
	if b.Free(0) || b.Remaining(0, at(500)) != 0 {
		t.Error("the hold has time left again, but its places are shown free")
	}
	b.Advance(at(1001))
	if !b.Free(0) || b.Remaining(0, at(1001)) != 2 {
		t.Error("the hold does not end any more")
	}
}

// A database restored from a backup is behind its boards: the reading wins over what was told before it began.
func TestAReloadAlsoTakesBackWhatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	b := New(Shape{Seats: 3, Pools: []string{"P"}}, News{}, t0)
	b.Apply(News{
		Seats:   []Seat{{No: 0, Status: Sold, Epoch: 9}, {No: 1, Status: Sold, Epoch: 9}},
		Buckets: []Bucket{{Room: 5, Held: 2, Sold: 3, Epoch: 9}},
		Claims:  []Claim{{Holder: 1, Until: until(-1), Live: true, Units: []PoolUnits{{0, 2}}}},
	}, t0)
	b.Reload(News{
		Seats:   []Seat{{No: 0, Status: Held, Until: until(500), Epoch: 3}},
		Buckets: []Bucket{{Room: 5, Sold: 1, Epoch: 4}},
	}, b.BeginReload(), t0)
	if diff := cmp.Diff([]Status{Held, Available, Available}, b.States(at(300))); diff != "" || b.Remaining(0, at(300)) != 4 {
		t.Errorf("%d units left, states (-want +got):\n%s", b.Remaining(0, at(300)), diff)
	}
}

func TestHoldingAndReleasingForEverDoesNotGrowTheListsOfEnds(t *testing.T) {
	t.Parallel()
	b := New(Shape{Seats: 10, Pools: []string{"P"}}, News{Buckets: []Bucket{{Room: 100, Held: 10}}}, t0)
	live := News{Claims: []Claim{{Holder: 1, Until: until(10_000), Live: true, Units: []PoolUnits{{0, 1}}}}}
	for e := int32(1); e < 2000; e += 2 {
		b.Apply(held(3, until(10_000), 1, e), t0)
		b.Apply(News{Seats: []Seat{{No: 3, Epoch: e + 1}}}, t0)
		b.Apply(held(4, until(10_000), 1, e), t0)
		b.Reload(News{Seats: []Seat{{No: 4, Status: Held, Until: until(10_000), Epoch: e}}}, b.BeginReload(), t0)
		b.Apply(live, t0)
		if len(b.seatEnds) > 2+pruneSlack || len(b.claimEnds) > 2+pruneSlack {
			t.Fatalf("after %d news: %d and %d ends", e, len(b.seatEnds), len(b.claimEnds))
		}
	}
	if b.Free(4) || b.Remaining(0, t0) != 90 {
		t.Error("a hold with time left was let go")
	}
	if b.Advance(at(10_001)); !b.Free(4) || b.Remaining(0, at(10_001)) != 91 {
		t.Error("a hold's end was forgotten")
	}
}

func TestEndsComeInOrderWhateverWasPruned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h ends
		var want []int64
		for _, u := range rapid.SliceOfN(rapid.Int64Range(0, 1000), rapid.SampledFrom([]int{0, 100}).Draw(t, "at least"), 300).Draw(t, "untils") {
			h.push(end{until: u})
			want = append(want, u)
		}
		if odd := func(u int64) bool { return u%2 == 1 }; len(h) > pruneSlack {
			h.prune(0, func(e end) bool { return odd(e.until) })
			want = slices.DeleteFunc(want, func(u int64) bool { return !odd(u) })
		}
		slices.Sort(want)
		for _, u := range want {
			if e := h.pop(); e.until != u {
				t.Fatalf("%d before %d", e.until, u)
			}
		}
		if len(h) != 0 {
			t.Fatalf("%d too many", len(h))
		}
	})
}

func TestProlongingForEverDoesNotGrowTheListsOfEnds(t *testing.T) {
	t.Parallel()
	b := New(Shape{Seats: 10, Pools: []string{"P"}}, News{Buckets: []Bucket{{Room: 100, Held: 10}}}, t0)
	for i := range int32(10_000) {
		n := held(i%10, until(10_000+int64(i%3)), uint64(i%10), i+1)
		n.Claims = []Claim{{Holder: uint64(i % 10), Until: until(10_000 + int64(i)), Live: true, Units: []PoolUnits{{0, 1}}}}
		b.Apply(n, t0)
		if len(b.seatEnds) > 2*10+pruneSlack || len(b.claimEnds) > 2*10+pruneSlack {
			t.Fatalf("after %d news: %d and %d ends", i, len(b.seatEnds), len(b.claimEnds))
		}
	}
	if b.Advance(at(30_000)); b.Available() != 10+100 {
		t.Errorf("%d available after all ended, want 110", b.Available())
	}
}

func TestSettledClaimsAreForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	b := New(Shape{Pools: []string{"P"}}, News{Buckets: []Bucket{{Room: 1}}}, t0)
	for i := range uint64(1000) {
		b.Apply(News{Claims: []Claim{{Holder: i}}}, at(int64(i)*1000))
	}
	if n := len(b.settled[0]) + len(b.settled[1]); n > 70 {
		t.Errorf("%d settled claims remembered of 1,000 over 1,000 s", n)
	}
}

func TestAnOverlayHidesWhatIsInFlightAndNothingElse(t *testing.T) {
	t.Parallel()
	b := New(mixedShape(), News{Buckets: []Bucket{{Pool: 0, Room: 3}}, Seats: []Seat{{No: 4, Status: Sold, Epoch: 1}, {No: 11, Status: Held, Until: until(100), Epoch: 1}}}, t0)
	o := NewOverlay(b, at(101))
	if !o.Free(11) {
		t.Error("an ended hold's seat is not free")
	}
	o.Take([]int32{0, 0, 4, 1, 12, 77})
	if o.Free(0) || o.Free(4) || o.Free(12) || !o.Free(2) || !o.Free(11) || !b.Free(0) {
		t.Error("wrong seats hidden")
	}
	if o.FreeInRow(0) != 2 || o.FreeInRow(1) != 9 || o.FreeInRow(2) != 5 || o.FreeInRow(7) != 0 {
		t.Errorf("free in rows: %d %d %d", o.FreeInRow(0), o.FreeInRow(1), o.FreeInRow(2))
	}
	o.TakeUnits([]PoolUnits{{0, 2}, {5, 1}})
	if o.Free(11) || o.FreeInRow(1) != 5 || o.FreeInRow(2) != 0 {
		t.Errorf("with the pool used up: Free(11) %v, rows %d %d", o.Free(11), o.FreeInRow(1), o.FreeInRow(2))
	}
	o.Reset(b, at(102))
	if !o.Free(0) || !o.Free(12) || o.FreeInRow(0) != 4 || o.FreeInRow(1) != 10 {
		t.Error("something stayed hidden after Reset")
	}
}

// Everything at once; the race detector is the judge, and the end must be right.
func TestReadersAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	shape := mixedShape()
	b := New(shape, News{Buckets: []Bucket{{Pool: 0, Room: 20}, {Pool: 1, Room: 20}}}, t0)
	var readers, writers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		readers.Go(func() {
			sub := b.Subscribe(0)
			defer sub.Close()
			for ms := int64(0); ; ms++ {
				select {
				case <-stop:
					return
				default:
				}
				b.Snapshot(at(ms)).JSON()
				b.Refuse([]int32{int32(i), 11}, []PoolUnits{{1, 1}}, 1, 2, at(ms))
				b.Free(3)
				b.FreeInRow(1)
				b.Available()
				if _, _, err := sub.Poll(); err != nil {
					sub.Close()
					sub = b.Subscribe(0)
				}
			}
		})
	}
	for w := range int32(4) {
		writers.Go(func() {
			for e := int32(1); e <= 500; e++ {
				no := w*5 + rand.Int32N(5)
				b.Apply(held(no, until(int64(e)), uint64(e), e), at(int64(e)))
				if e%50 == 0 {
					began := b.BeginReload()
					b.Reload(News{Buckets: []Bucket{{Pool: 0, Room: 20}, {Pool: 1, Room: 20}}}, began, at(int64(e)))
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if b.Advance(at(100_000)); b.Available() != 40 {
		t.Errorf("%d available when all is over, want 40", b.Available())
	}
}
