package sqlite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/catalog/catalogtest"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	catalogtest.Suite(t, func(t *testing.T, clock *catalogtest.Clock) catalog.Store {
		return NewCatalog(openIn(t, t.TempDir(), Options{Now: clock.Now, Relaxed: true}))
	})
}

// C-55: the stock of a pool is split over its buckets, and none is lost.
func TestTheStockOfAPoolIsSplitEvenly(t *testing.T) {
	t.Parallel()
	clock := catalogtest.NewClock()
	c := NewCatalog(openIn(t, t.TempDir(), Options{Now: clock.Now, Relaxed: true}))
	e := &catalog.Event{
		ID: catalog.NewEventID(), Slug: "one", Venue: catalog.Venue{TimeZone: "UTC"}, StartsAt: catalogtest.Start, Pools: []catalog.Pool{
			{Name: "even", Capacity: 10, Buckets: 5}, {Name: "odd", Capacity: 11, Overbook: 3, Buckets: 4}, {Name: "few", Capacity: 2, Buckets: 3}, {Name: "one", Capacity: 183, Buckets: 1},
		},
	}
	if _, err := c.CreateEvents(t.Context(), []*catalog.Event{e}); err != nil {
		t.Fatal(err)
	}
	rows, err := c.query(t.Context(), `SELECT pool, capacity, overbook FROM pool_bucket WHERE event_id = ? ORDER BY pool, bucket`, int64(e.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[int][][2]int64{}
	for rows.Next() {
		var pool int
		var units [2]int64
		if err := rows.Scan(&pool, &units[0], &units[1]); err != nil {
			t.Fatal(err)
		}
		got[pool] = append(got[pool], units)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[int][][2]int64{
		0: {{2, 0}, {2, 0}, {2, 0}, {2, 0}, {2, 0}}, 1: {{3, 1}, {3, 1}, {3, 1}, {2, 0}}, 2: {{1, 0}, {1, 0}, {0, 0}}, 3: {{183, 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A database that somebody else wrote into is told, not shown as something it is not.
func TestAnItemThatWasNotWrittenByUsIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1", "x" + string(make([]byte, 0)) + "\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f"} {
		if item, err := itemOf(text); err == nil {
			t.Errorf("%q is %+v", text, item)
		}
	}
}
