package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

var searchNow = time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)

// perRoute is how many flights searchable makes for a route and day.
const perRoute = 15

// searchable opens a catalog with n flights, perRoute on every route and day: with n routes and days grow, what one search finds does not. It gives a query
// for each route and day.
func searchable(tb testing.TB, n int) (*Catalog, []catalog.Query) {
	tb.Helper()
	db, err := Open(tb.Context(), tb.TempDir(), Options{Now: func() time.Time { return searchNow }, Relaxed: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	zone, err := time.LoadLocation("Asia/Ho_Chi_Minh")
	if err != nil {
		tb.Fatal(err)
	}
	c := NewCatalog(db)
	code := func(i int) string { return string([]byte{byte('A' + i/26%26), byte('A' + i%26), 'X'}) }
	const days, origins = 30, 40
	var queries []catalog.Query
	var events []*catalog.Event
	for i := range n {
		day, route := i/perRoute%days, i/perRoute/days
		from, to := code(route%origins), code(origins+route/origins)
		starts := time.Date(2030, 6, 1+day, 5+i%perRoute, 30, 0, 0, zone)
		if i%perRoute == 0 {
			queries = append(queries, catalog.Query{Origin: from, Destination: to, Date: starts.Format(time.DateOnly), Limit: 20, Now: searchNow})
		}
		events = append(events, &catalog.Event{
			ID: catalog.NewEventID(), Slug: fmt.Sprintf("hf-%d", i), Kind: catalog.Flight, Title: fmt.Sprintf("%s–%s HF%d", from, to, i),
			Venue:    catalog.Venue{Name: "Tan Son Nhat International Airport", City: "Ho Chi Minh City", Country: "Vietnam", TimeZone: zone.String()},
			StartsAt: starts.UTC(), SaleOpensAt: searchNow, SaleClosesAt: starts.UTC(), Currency: "EUR", Origin: from, Destination: to,
			Pools:  []catalog.Pool{{Name: "ECONOMY", Capacity: 180, Overbook: 3, Buckets: 1, Price: 9900}},
			Policy: catalog.Preset(catalog.Flight), Places: 183, Version: 1, CreatedAt: searchNow,
		})
		if len(events) == 1000 || i == n-1 {
			if _, err := c.CreateEvents(tb.Context(), events); err != nil {
				tb.Fatal(err)
			}
			events = events[:0]
		}
	}
	return c, queries
}

// Which index a search takes, and that nothing is sorted: then its cost follows from what it finds, not from how much there is.
func TestEverySearchWalksTheIndexOfItsOrder(t *testing.T) {
	t.Parallel()
	c, _ := searchable(t, 3*perRoute)
	after := catalog.Position{StartsAt: searchNow, ID: 1}
	for _, test := range []struct {
		q     catalog.Query
		index string
		sorts bool
	}{
		{catalog.Query{Origin: "AAX", Destination: "BOX", Date: "2030-06-01"}, "event_route (origin=? AND destination=? AND local_date=? AND list_order>? AND list_order<?)", false},
		{catalog.Query{Origin: "AAX", Destination: "BOX", Date: "2030-06-01", Kind: catalog.Flight, After: after}, "event_route (origin=? AND destination=? AND local_date=?", false},
		{catalog.Query{Origin: "AAX", Destination: "BOX"}, "event_route (origin=? AND destination=? AND local_date>?)", true}, // the flights of one route, from today on
		{catalog.Query{Origin: "AAX", Destination: "BOX", DateFrom: "2030-06-01", DateTo: "2030-06-03"}, "event_route (origin=? AND destination=? AND local_date>? AND local_date<?)", true},
		{catalog.Query{Origin: "AAX"}, "event_departure (origin=? AND list_order>?)", false},
		{catalog.Query{Origin: "AAX", Date: "2030-06-01"}, "event_departure (origin=? AND list_order>? AND list_order<?)", false},
		{catalog.Query{Destination: "AAX", After: after}, "event_arrival (destination=? AND list_order>?)", false},
		{catalog.Query{Destination: "AAX", DateFrom: "2030-06-01", DateTo: "2030-06-03"}, "event_arrival (destination=? AND list_order>? AND list_order<?)", false},
		{catalog.Query{Date: "2030-06-01"}, "event_date (local_date=? AND list_order>? AND list_order<?)", false},
		{catalog.Query{Date: "2030-06-01", Kind: catalog.Flight, After: after}, "event_date (local_date=? AND list_order>?", false},
		{catalog.Query{DateFrom: "2030-06-01", DateTo: "2030-06-03"}, "event_days (list_order>? AND list_order<?)", false},
		{catalog.Query{DateTo: "2030-06-03"}, "event_days (list_order<?)", false},
		{catalog.Query{Kind: catalog.Flight}, "event_kind (kind=? AND list_order>?)", false},
		{catalog.Query{Kind: catalog.Flight, DateFrom: "2030-06-01"}, "event_kind (kind=? AND list_order>?)", false},
		{catalog.Query{}, "event_list (list_order>?)", false},
		{catalog.Query{After: after}, "event_list (list_order>?)", false},
		{catalog.Query{Text: "airport"}, "event_list (list_order=?)", false},
		{catalog.Query{Text: "airport", Place: "ho", Date: "2030-06-01", Kind: catalog.Flight, Origin: "AAX", Destination: "BOX", After: after}, "event_list (list_order=?)", false},
	} {
		test.q.Limit, test.q.Now = 20, searchNow
		query, args, ok := searchOf(&test.q)
		if !ok {
			t.Errorf("%+v matches nothing", test.q)
			continue
		}
		plan := planOf(t, c, query, args)
		sorts := slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, "TEMP B-TREE") })
		if !slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, test.index) }) || sorts != test.sorts {
			t.Errorf("%s\n%s\nwant index %s, sorting %v", query, strings.Join(plan, "\n"), test.index, test.sorts)
		}
	}
}

func planOf(t *testing.T, c *Catalog, query string, args []any) (steps []string) {
	t.Helper()
	rows, err := c.query(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// BenchmarkSearch is the cost of a first page by what is asked and how many events there are. route is the one that the issue sets a goal for.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		c, routes := searchable(b, n)
		run := func(name string, queries []catalog.Query) {
			b.Run(fmt.Sprintf("%s/events=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				items := 0
				for i := 0; b.Loop(); i++ {
					found, err := c.Search(b.Context(), &queries[i*7919%len(queries)])
					if err != nil {
						b.Fatal(err)
					}
					items += len(found)
				}
				b.ReportMetric(float64(items)/float64(b.N), "items/op")
			})
		}
		run("route", routes)
		memory := catalog.New(c, func() time.Time { return searchNow })
		b.Run(fmt.Sprintf("route in memory/events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := memory.Search(b.Context(), routes[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
		// A clock that runs away: nothing that is kept is ever fresh.
		now := searchNow
		forgetful := catalog.New(c, func() time.Time { now = now.Add(time.Minute); return now })
		b.Run(fmt.Sprintf("route through the catalog/events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := forgetful.Search(b.Context(), routes[i*7919%len(routes)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, q := range []struct {
			name string
			q    catalog.Query
		}{
			{"everything", catalog.Query{}}, {"kind", catalog.Query{Kind: catalog.Flight}}, {"date", catalog.Query{Date: "2030-06-10"}},
			{"dates", catalog.Query{DateFrom: "2030-06-10", DateTo: "2030-06-12"}}, {"from", catalog.Query{Origin: "AAX"}},
			{"from and date", catalog.Query{Origin: "AAX", Date: "2030-06-10"}}, {"to and date", catalog.Query{Destination: "BOX", Date: "2030-06-10"}},
			{"from and to", catalog.Query{Origin: "AAX", Destination: "BOX"}}, {"rare word", catalog.Query{Text: "hf777"}},
			{"word of all", catalog.Query{Text: "airport"}}, {"word of all and date", catalog.Query{Text: "airport", Date: "2030-06-10"}},
			{"place of all", catalog.Query{Place: "ho chi"}},
		} {
			q.q.Limit, q.q.Now = 20, searchNow
			run(q.name, []catalog.Query{q.q})
		}
	}
}
