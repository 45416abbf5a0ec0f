package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// place holds a seat of an event for a customer of its own.
func place(e *catalog.Event, seat int32) *booking.Place {
	return &booking.Place{
		Event: e, ID: booking.HoldID{Event: e.ID, Bits: [16]byte{byte(seat >> 8), byte(seat), 1}}, Customer: identity.CustomerID{byte(seat >> 8), byte(seat)},
		Seats: []int32{seat}, Places: 1, Price: money.Money{Amount: 100, Currency: "EUR"},
	}
}

func mustHold(t *testing.T, s booking.Store, e *catalog.Event, seat int32) {
	t.Helper()
	a, err := s.Apply(context.WithoutCancel(t.Context()), []booking.Command{place(e, seat)}, booking.Decide)
	if err != nil || a.Results[0].Err != nil {
		t.Errorf("seat %d: %v, %+v", seat, err, a.Results)
	}
}

// copied copies the database's file and then its log, as a backup that knows nothing of databases would, or as a disk keeps them when the power goes.
// The file first: a log that is younger than its file is what SQLite recovers from; the other way round pages would be missing.
func copied(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	for _, name := range []string{"holdfast.db", "holdfast.db-wal"} {
		in, err := os.Open(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.Copy(out, in); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(in.Close(), out.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// C-60, C-41
func TestCopyInTheMiddleOfAStormHasWhatWasAcknowledgedAndPassesTheAudit(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 40
	dir, clock := t.TempDir(), bookingtest.NewClock()
	h := harnessOn(openIn(t, dir, Options{Now: clock.Now}), clock)
	e := bookingtest.Cinema()
	h.AddEvent(t, e)
	var acknowledged [writers * each]atomic.Bool
	var storm sync.WaitGroup
	started := make(chan struct{}, writers*each)
	for w := range writers {
		storm.Go(func() {
			for i := range each {
				no := int32(w*each + i)
				mustHold(t, h.Store, e, no)
				acknowledged[no].Store(true)
				started <- struct{}{}
			}
		})
	}
	for n := range 3 {
		for range writers * each / 4 {
			<-started
		}
		var before [len(acknowledged)]bool
		for i := range before {
			before[i] = acknowledged[i].Load()
		}
		left := harnessOn(openIn(t, copied(t, dir), Options{Now: clock.Now}), clock)
		b, err := left.Store.Books(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		for no, was := range before {
			if _, there := b.Seats[int32(no)]; was && !there {
				t.Errorf("copy %d: the acknowledged hold of seat %d is gone", n, no)
			}
		}
		bookingtest.Audited(t, left, e)
		mustHold(t, left.Store, e, 199) // life goes on there
	}
	storm.Wait()
	bookingtest.Audited(t, h, e)
}

// C-60
func TestLongReaderNeitherBlocksWritersNorSeesThem(t *testing.T) {
	t.Parallel()
	h := harness(t)
	e := bookingtest.Cinema()
	mustHold(t, h.Store, e, 0)
	store := h.Store.(*Store)
	count := func(each func(string, func(*sql.Rows) error, ...any) error) (n int) {
		t.Helper()
		if err := each(`SELECT 1 FROM seat WHERE event_id = ?`, func(*sql.Rows) error { n++; return nil }, int64(e.ID)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := store.snapshot(t.Context(), func(each func(string, func(*sql.Rows) error, ...any) error) error {
		before := count(each)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 10 {
					mustHold(t, h.Store, e, int32(1+w*10+i))
				}
			})
		}
		wg.Wait()
		if after := count(each); before != 1 || after != before {
			t.Errorf("a snapshot showed %d seats, then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := h.Store.Books(t.Context(), e.ID); err != nil || len(b.Seats) != 41 {
		t.Errorf("%d seats, %v", len(b.Seats), err)
	}
}

// C-60
func TestLogIsCutBack(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), bookingtest.NewClock()
	db := openIn(t, dir, Options{Now: clock.Now, Relaxed: true})
	blob := make([]byte, 1<<20)
	for i := range 3 * checkpointPages * 4096 >> 20 {
		err := db.update(t.Context(), func(t *tx) error {
			_, err := t.exec(`INSERT INTO signing_key VALUES ('ballast', ?, ?, 0, NULL)`, i, blob)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "holdfast.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(2 * checkpointPages * 4096); info.Size() > limit {
		t.Errorf("the log has %d bytes, more than %d", info.Size(), limit)
	}
}

func TestCommitsAndStatementsAreCounted(t *testing.T) {
	t.Parallel()
	h := harness(t)
	db := h.Store.(*Store).DB
	e := bookingtest.Cinema()
	mustHold(t, h.Store, e, 1)
	commits, statements := db.Commits(), db.Statements()
	refused := []booking.Command{&booking.Release{ID: booking.HoldID{Event: e.ID}}}
	if _, err := h.Store.Apply(t.Context(), refused, booking.Decide); err != nil {
		t.Fatal(err)
	}
	if db.Commits() != commits || db.Statements() == statements {
		t.Errorf("%d commits for a batch that wrote nothing, %d statements", db.Commits()-commits, db.Statements()-statements)
	}
	batch := []booking.Command{place(e, 2), place(e, 3), place(e, 4)}
	if _, err := h.Store.Apply(t.Context(), batch, booking.Decide); err != nil {
		t.Fatal(err)
	}
	if n := db.Commits() - commits; n != 1 {
		t.Errorf("%d commits for a batch", n)
	}
}

// C-21
func TestWhoseTimeIsOverBeforeItsTurnWritesNothing(t *testing.T) {
	t.Parallel()
	h := harness(t)
	e := bookingtest.Cinema()
	db := h.Store.(*Store).DB
	w := <-db.writer // somebody else is writing
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := h.Store.Apply(ctx, []booking.Command{place(e, 1)}, booking.Decide)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	db.writer <- w
	mustHold(t, h.Store, e, 1)
}

// A batch carries other people's commands: nobody's patience ends it once it runs.
func TestBatchUnderWayIsFinished(t *testing.T) {
	t.Parallel()
	h := harness(t)
	e := bookingtest.Cinema()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := h.Store.Apply(ctx, []booking.Command{place(e, 1)}, func(r *booking.Rows, c []booking.Command) (*booking.Changes, []booking.Result) {
		cancel()
		return booking.Decide(r, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Store.Hold(t.Context(), place(e, 1).ID); err != nil {
		t.Error(err)
	}
}

// C-18: the connection comes back clean whatever a batch does.
func TestPanicInABatchLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	h := harness(t)
	e := bookingtest.Cinema()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = h.Store.Apply(t.Context(), []booking.Command{place(e, 1)}, func(*booking.Rows, []booking.Command) (*booking.Changes, []booking.Result) { panic("a fault of ours") })
	}()
	mustHold(t, h.Store, e, 1)
	bookingtest.Audited(t, h, e)
}

func TestReopeningFindsEverything(t *testing.T) { // C-19
	t.Parallel()
	dir, clock := t.TempDir(), bookingtest.NewClock()
	e := bookingtest.Cinema()
	db, err := Open(t.Context(), dir, Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, NewStore(db), e, 1)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := harnessOn(openIn(t, dir, Options{Now: clock.Now}), clock)
	if _, err := again.Store.Hold(t.Context(), place(e, 1).ID); err != nil {
		t.Error(err)
	}
	bookingtest.Audited(t, again, e)
}
