// Package catalogtest is the contract that every catalog.Store passes, and what a Catalog promises on top of one.
package catalogtest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Start is when tests begin.
var Start = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// Clock stands still until it is moved. Safe for concurrent use.
type Clock struct{ ns atomic.Int64 }

// NewClock makes one at Start.
func NewClock() *Clock {
	c := &Clock{}
	c.ns.Store(Start.UnixNano())
	return c
}

// Now is the time.
func (c *Clock) Now() time.Time { return time.Unix(0, c.ns.Load()).UTC() }

// Add moves it.
func (c *Clock) Add(d time.Duration) { c.ns.Add(int64(d)) }

// Suite tries what the catalog needs of a store. open gives a fresh, empty one each time, on that clock.
func Suite(t *testing.T, open func(t *testing.T, clock *Clock) catalog.Store) {
	for _, test := range slices.Concat(storeTests, searchTests, catalogTests) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			clock := NewClock()
			test.run(&world{T: t, clock: clock, store: open(t, clock)})
		})
	}
}

type contract struct {
	name string
	run  func(w *world)
}

type world struct {
	*testing.T
	clock *Clock
	store catalog.Store
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// event makes a valid event, changed by change.
func (w *world) event(slug string, change ...func(*catalog.Draft)) *catalog.Event {
	w.Helper()
	d := draft(slug, "Night of the Bells")
	for _, f := range change {
		f(&d)
	}
	e, err := catalog.NewEvent(&d, catalog.Seating{}, w.clock.Now())
	w.ok(err)
	return e
}

func draft(slug, title string) catalog.Draft {
	price := int64(2500)
	return catalog.Draft{
		Kind: catalog.Concert, Slug: slug, Title: title,
		Venue:    catalog.Venue{Name: "Old Mill", City: "Gent", Country: "BE", TimeZone: "Europe/Brussels"},
		StartsAt: time.Date(2030, 6, 1, 18, 0, 0, 0, time.UTC), Currency: "EUR",
		Pools: []catalog.PoolDraft{{Pool: "STANDING", Capacity: 300, Price: &price}},
	}
}

// add stores events and fails when one of their slugs is taken.
func (w *world) add(events ...*catalog.Event) {
	w.Helper()
	taken, err := w.store.CreateEvents(w.Context(), events)
	w.ok(err)
	if len(taken) > 0 {
		w.Fatalf("slugs %v are taken", taken)
	}
}

// search runs a query to its end in pages of the query's limit, and gives the slugs.
func (w *world) search(q catalog.Query) []string {
	w.Helper()
	if q.Now.IsZero() {
		q.Now = w.clock.Now()
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	slugs := []string{}
	for page := 0; ; page++ {
		items, err := w.store.Search(w.Context(), &q)
		if err != nil {
			w.Fatalf("search of %+v: %v", q, err)
		}
		if len(items) > q.Limit+1 {
			w.Fatalf("%d items, at most %d were asked for", len(items), q.Limit+1)
		}
		for _, i := range items[:min(len(items), q.Limit)] {
			slugs = append(slugs, i.Slug)
		}
		if len(items) <= q.Limit {
			return slugs
		}
		last := items[q.Limit-1]
		q.After = catalog.Position{StartsAt: last.StartsAt, ID: last.ID}
		if page > 1000 {
			w.Fatal("the pages have no end")
		}
	}
}

func (w *world) finds(q catalog.Query, want ...string) {
	w.Helper()
	if diff := cmp.Diff(append([]string{}, want...), w.search(q)); diff != "" {
		w.Errorf("search of %s: %s", describe(q), diff)
	}
}

func describe(q catalog.Query) string {
	return strings.TrimSpace(fmt.Sprintf("q=%q place=%q kind=%s from=%s to=%s date=%s dateFrom=%s dateTo=%s", q.Text, q.Place, q.Kind, q.Origin, q.Destination, q.Date, q.DateFrom, q.DateTo))
}
