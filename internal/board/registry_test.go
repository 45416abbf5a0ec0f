package board

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a store with one row of seats for each event; reading can be made to wait or to fail.
type shelf struct {
	news  map[int64]News
	seats int
	reads atomic.Int64
	err   error
	gate  chan struct{}
}

func (s *shelf) load(ctx context.Context, event int64) (Shape, News, error) {
	s.reads.Add(1)
	err, n, seats := s.err, s.news[event], s.seats
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return Shape{}, News{}, ctx.Err()
		}
	}
	return Shape{Seats: seats}, n, err
}

func (s *shelf) registry(boards int) *Registry {
	return NewRegistry(Config{Load: s.load, Now: time.Now, Boards: boards})
}

func TestABoardIsReadOnceHoweverManyAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{seats: 5, gate: make(chan struct{})}
		r := s.registry(0)
		impatient, cancel := context.WithCancel(t.Context())
		var got, gaveUp atomic.Int64
		for i := range 50 {
			go func() {
				ctx := t.Context()
				if i < 10 {
					ctx = impatient
				}
				switch b, err := r.Get(ctx, 7); {
				case errors.Is(err, context.Canceled):
					gaveUp.Add(1)
				case err == nil && b.Available() == 4:
					got.Add(1)
				default:
					t.Errorf("Get: %v, %v", b, err)
				}
			}()
			synctest.Wait() // an impatient one is the first
		}
		// News told while the rows are being read must not be lost.
		r.Apply(7, News{Seats: []Seat{{No: 3, Status: Sold, Epoch: 1}}}, time.Now())
		cancel()
		synctest.Wait()
		close(s.gate)
		synctest.Wait()
		if s.reads.Load() != 1 || got.Load() != 40 || gaveUp.Load() != 10 {
			t.Errorf("%d reads, %d got it, %d gave up", s.reads.Load(), got.Load(), gaveUp.Load())
		}
		if r.Lookup(7) == nil || r.Lookup(8) != nil {
			t.Error("Lookup must find what is loaded and nothing else")
		}
	})
}

func TestAFailedReadIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	s := &shelf{seats: 5, err: down}
	r := s.registry(0)
	if _, err := r.Get(t.Context(), 1); !errors.Is(err, down) {
		t.Fatalf("Get: %v", err)
	}
	s.err = nil
	if _, err := r.Get(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

func TestAReadThatNeverEndsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{gate: make(chan struct{})}
		if _, err := s.registry(0).Get(t.Context(), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v", err)
		}
	})
}

func TestNewsBeyondWhatIsKeptWhileLoadingAreReadAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{seats: 5, gate: make(chan struct{}), news: map[int64]News{}}
		r := s.registry(0)
		go r.Get(t.Context(), 1)
		synctest.Wait()
		for e := range int32(pendingMax + 1) {
			r.Apply(1, News{Seats: []Seat{{No: e % 5, Status: Blocked, Epoch: e + 1}}}, time.Now())
		}
		last := News{Seats: []Seat{{No: 0, Status: Sold, Epoch: pendingMax + 1}}}
		close(s.gate)
		synctest.Wait()
		s.news[1] = last
		r.RunOnce(t.Context(), time.Now())
		if s.reads.Load() != 2 {
			t.Errorf("%d reads, want a second one at once", s.reads.Load())
		}
		if got := r.Lookup(1).States(time.Now().Add(TickEvery)); got[0] != Sold || got[1] != Available {
			t.Errorf("states %v", got)
		}
	})
}

func TestAReloadHealsEveryFewSecondsAndAFailureLeavesTheBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{seats: 5, news: map[int64]News{}}
		var failed []int64
		r := NewRegistry(Config{Load: s.load, Now: time.Now, OnError: func(event int64, _ error) { failed = append(failed, event) }})
		b, err := r.Get(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.news[1] = News{Seats: []Seat{{No: 0, Status: Sold, Epoch: 1}}}
		r.RunOnce(t.Context(), time.Now().Add(DefaultReloadEvery-time.Millisecond))
		if s.reads.Load() != 1 || b.Available() != 5 {
			t.Errorf("read before its time")
		}
		s.err = errors.New("down")
		r.RunOnce(t.Context(), time.Now().Add(DefaultReloadEvery))
		if diff := cmp.Diff([]int64{1}, failed); diff != "" || b.Available() != 5 || r.Lookup(1) != b {
			t.Errorf("after a failure: %d available, told of %v", b.Available(), failed)
		}
		s.err = nil
		r.RunOnce(t.Context(), time.Now().Add(2*DefaultReloadEvery))
		if s.reads.Load() != 3 || b.Available() != 4 {
			t.Errorf("%d reads, %d available", s.reads.Load(), b.Available())
		}
	})
}

func TestAnEventOfAnotherShapeGetsANewBoardWithHigherVersions(t *testing.T) {
	t.Parallel()
	now := t0
	s := &shelf{seats: 5}
	r := NewRegistry(Config{Load: s.load, Now: func() time.Time { return now }})
	b, err := r.Get(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(1, News{Seats: []Seat{{No: 1, Status: Sold, Epoch: 1}}}, t0)
	before := b.Snapshot(at(60_000)).Version // the clock was ahead
	sub := b.Subscribe(before)
	_, wait, _ := sub.Poll()
	s.seats = 6
	r.RunOnce(t.Context(), at(5000))
	select {
	case <-wait:
	default:
		t.Error("the subscriber is not woken")
	}
	if _, _, err := sub.Poll(); !errors.Is(err, ErrEvicted) {
		t.Errorf("the subscriber of the old board: %v", err)
	}
	next := r.Lookup(1)
	if next == b || next.Available() != 6 || next.Snapshot(now).Version <= before {
		t.Errorf("still the old board, or its versions")
	}
}

func TestIdleBoardsArePutAwayUnlessFollowedOrSelling(t *testing.T) {
	t.Parallel()
	now := t0
	s := &shelf{seats: 5, news: map[int64]News{3: held(0, until(600_000), 1, 1)}}
	r := NewRegistry(Config{Load: s.load, Now: func() time.Time { return now }, ReloadEvery: time.Hour})
	var sub *Subscription
	for event := range int64(4) {
		b, err := r.Get(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		if event == 1 {
			sub = b.Subscribe(0)
		}
	}
	there := func() (all []bool) {
		r.mu.RLock()
		defer r.mu.RUnlock()
		for event := range int64(4) {
			all = append(all, r.boards[event] != nil)
		}
		return all
	}
	idle := IdleFor.Milliseconds()
	for _, c := range []struct {
		ms   int64
		do   func()
		want []bool
	}{
		{idle, func() {}, []bool{true, true, true, true}},
		{idle + 1, func() { r.Apply(2, News{}, now) }, []bool{false, true, true, true}},
		{2*idle + 1, func() {}, []bool{false, true, true, true}},
		{2*idle + 2, sub.Close, []bool{false, false, false, true}},
		{600_001, func() {}, []bool{false, false, false, false}},
	} {
		now = at(c.ms)
		c.do()
		r.RunOnce(t.Context(), now)
		if diff := cmp.Diff(c.want, there()); diff != "" {
			t.Errorf("at %d ms (-want +got):\n%s", c.ms, diff)
		}
	}
}

func TestTheBoardUsedLongestAgoMakesRoom(t *testing.T) {
	t.Parallel()
	now := t0
	s := &shelf{seats: 5}
	r := NewRegistry(Config{Load: s.load, Now: func() time.Time { return now }, Boards: 4})
	var subs []*Subscription
	for event := range int64(10) {
		now = now.Add(2 * time.Second)
		b, err := r.Get(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		if event < 2 {
			subs = append(subs, b.Subscribe(0))
		}
		if event >= 3 {
			now = now.Add(2 * time.Second)
			r.Apply(3, News{}, now)
		}
		if len(r.boards) > 4 {
			t.Fatalf("%d boards", len(r.boards))
		}
	}
	for _, event := range []int64{0, 1, 3, 9} {
		if r.boards[event] == nil {
			t.Errorf("board %d was put away though it is followed, sold from, or the latest", event)
		}
	}
	// A reader that still has a board which was put away is told so when it subscribes.
	evicted, err := r.Get(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	r.Get(t.Context(), 21)
	now = now.Add(2 * time.Second)
	r.Apply(3, News{}, now)
	r.Get(t.Context(), 22)
	late := evicted.Subscribe(evicted.Snapshot(now).Version)
	if _, _, err := late.Poll(); !errors.Is(err, ErrEvicted) {
		t.Errorf("subscribing to a board that was put away: %v", err)
	}
	for _, sub := range subs {
		sub.Close()
	}
}

func TestDirtyNamesEveryChangeOfWhatIsLeftOnce(t *testing.T) {
	t.Parallel()
	now := t0
	s := &shelf{seats: 5, news: map[int64]News{}}
	r := NewRegistry(Config{Load: s.load, Now: func() time.Time { return now }, ReloadEvery: time.Hour, Boards: 4})
	expect := func(what string, want map[int64]int) {
		t.Helper()
		if diff := cmp.Diff(want, r.Dirty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for event := range int64(2) {
		if _, err := r.Get(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	expect("newly loaded", map[int64]int{0: 5, 1: 5})
	expect("nothing changed", map[int64]int{})
	r.Apply(1, held(0, until(1000), 1, 1), now)
	expect("a hold", map[int64]int{1: 4})
	now = at(1001)
	r.Tick(now)
	expect("its end, nobody watching", map[int64]int{1: 5})
	r.Apply(1, News{Seats: []Seat{{No: 0, Status: Sold, Epoch: 2}}}, now)
	now = now.Add(IdleFor + 2*time.Second)
	r.Tick(now)
	if r.Lookup(1) != nil {
		t.Fatal("the idle board is still there")
	}
	expect("put away meanwhile", map[int64]int{1: 4})
	// The sweeper settles a hold of an event that nobody looks at.
	s.news[2] = News{Seats: []Seat{{No: 0, Status: Sold, Epoch: 9}}}
	r.Apply(2, News{Seats: []Seat{{No: 1, Epoch: 3}}}, now)
	r.RunOnce(t.Context(), now)
	expect("sold from without a board", map[int64]int{2: 4})
}

func TestRunFeedsStreamsReloadsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{seats: 5}
		r := s.registry(0)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		b, err := r.Get(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		sub := b.Subscribe(b.Snapshot(time.Now()).Version)
		next := func() time.Duration {
			began := time.Now()
			for {
				f, wait, err := sub.Poll()
				if err != nil {
					t.Fatal(err)
				}
				if wait == nil {
					t.Logf("%s", f.Bytes)
					return time.Since(began)
				}
				<-wait
			}
		}
		end := time.Now().Add(2 * time.Second)
		r.Apply(1, held(2, end.UnixMilli(), 1, 1), time.Now())
		if d := next(); d > TickEvery+lookEvery {
			t.Errorf("a change reached the stream after %v", d)
		}
		next()
		if late := time.Since(end); late <= 0 || late > TickEvery+lookEvery {
			t.Errorf("the hold's end reached the stream %v after it", late)
		}
		sub.Close()
		<-time.After(2 * DefaultReloadEvery)
		if n := s.reads.Load(); n < 2 || n > 4 {
			t.Errorf("%d reads in about 12 s", n)
		}
		cancel()
		<-done
	})
}
