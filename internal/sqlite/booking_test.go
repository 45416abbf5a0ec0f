package sqlite

import (
	"context"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// harness opens a fresh database on a clock of its own.
func harness(t *testing.T) bookingtest.Harness {
	t.Helper()
	dir, clock := t.TempDir(), bookingtest.NewClock()
	h := harnessOn(openIn(t, dir, Options{Now: clock.Now}), clock)
	h.Crash = func(t testing.TB) bookingtest.Harness {
		return harnessOn(openIn(t, copied(t, dir), Options{Now: clock.Now}), clock)
	}
	return h
}

func harnessOn(db *DB, clock *bookingtest.Clock) bookingtest.Harness {
	return bookingtest.Harness{
		Clock: clock, Store: NewStore(db), Tickets: NewTickets(db), Outbox: NewOutbox(db),
		AddEvent: func(t testing.TB, e *catalog.Event) {
			t.Helper()
			err := db.update(context.WithoutCancel(t.Context()), func(tx *tx) error {
				return bookingtest.AddPools(e, func(pool, bucket int, capacity, overbook int64) error {
					_, err := tx.exec(`INSERT INTO pool_bucket (event_id, pool, bucket, capacity, overbook) VALUES (?, ?, ?, ?, ?)`,
						int64(e.ID), pool, bucket, capacity, overbook)
					return err
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	}
}

func openIn(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestStore(t *testing.T) {
	t.Parallel()
	bookingtest.Suite(t, harness)
}
