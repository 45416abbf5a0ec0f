package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// demoOpensAfter is when the concert's sale opens after the first start: time enough to see an event that is not on sale yet.
const demoOpensAfter = 20 * time.Second

func newDemoCommand() *cobra.Command {
	var cfg Config
	c := &cobra.Command{
		Use: "demo", Short: "Serve a cinema, a concert of 50,000 seats, a festival and a day of flights", Args: cobra.NoArgs,
		Long: "Serve what demo makes at its first start: demo-cinema (200 seats), demo-concert (50,000 seats; its sale opens 20 s later), demo-festival\n" +
			"(20,000 standing places) and a day of flights. Payments are pretended by the simulator. Later starts find everything as it was left.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg.Payments = "simulator"
			a, err := open(c.Context(), cfg, c.ErrOrStderr())
			if err != nil {
				return err
			}
			made, err := fillDemo(c.Context(), a.catalog, httpd.Now())
			if err != nil {
				return errors.Join(err, a.server.Close(), a.close())
			}
			a.announce()
			a.showDemo(c.OutOrStdout(), made)
			return a.run(c.Context())
		},
	}
	loadConfig(c, &cfg)
	return c
}

// showDemo prints where to look.
func (a *app) showDemo(w io.Writer, made int) {
	url := a.localURL()
	fmt.Fprintf(w, "Holdfast demo at %s", url)
	if made > 0 {
		fmt.Fprintf(w, " (%d events made)", made)
	}
	fmt.Fprintf(w, `

  find events      %[1]s/v1/events?kind=flight&from=SGN&to=HAN
  a cinema hall    %[1]s/v1/events/demo-cinema/seats
  a big concert    %[1]s/v1/events/demo-concert        (sale opens %[2]s after the first start)
  a festival       %[1]s/v1/events/demo-festival
  how to use it    %[1]s/docs
  how it is doing  %[1]s/metrics

Stop with Ctrl-C. Everything is kept in %[3]s.
`, url, demoOpensAfter, a.cfg.Data)
}

// fillDemo makes what is missing of the demo and says how many events that was.
func fillDemo(ctx context.Context, c *catalog.Catalog, now time.Time) (int, error) {
	drafts, err := demoEvents(ctx, c, now)
	if err != nil {
		return 0, err
	}
	taken, err := c.CreateEvents(ctx, drafts)
	return len(drafts) - len(taken), err
}

func demoEvents(ctx context.Context, c *catalog.Catalog, now time.Time) ([]catalog.Draft, error) {
	hall, err1 := venue.Cinema(10, 20)
	stadium, err2 := venue.Stadium(50_000)
	cabin, err3 := venue.Cabin(30, "ABC DEF", "ECONOMY")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	var ids [3]string
	for i, l := range []*venue.Layout{hall, stadium, cabin} {
		added, err := c.AddLayout(ctx, l.Canonical())
		if err != nil {
			return nil, err
		}
		ids[i] = added.Ref.ID
	}
	evening := func(days int, zone string) time.Time {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return now.AddDate(0, 0, days)
		}
		day := now.In(loc).AddDate(0, 0, days)
		return time.Date(day.Year(), day.Month(), day.Day(), 20, 0, 0, 0, loc)
	}
	off, festivalPlaces, festivalPrice := false, 10, int64(55_000)
	drafts := []catalog.Draft{
		{
			Kind: catalog.Cinema, Slug: "demo-cinema", Title: "The Night Train", StartsAt: evening(3, "Europe/Berlin"), Currency: "EUR",
			Venue:    catalog.Venue{Name: "Lichtspiele am Kanal, hall 1", City: "Berlin", Country: "DE", TimeZone: "Europe/Berlin"},
			LayoutID: ids[0], Prices: map[string]int64{"Stalls": 1200, "Premium": 1500},
		},
		{
			Kind: catalog.Concert, Slug: "demo-concert", Title: "Aurora Borealis: the stadium night", StartsAt: evening(60, "Europe/London"), Currency: "GBP",
			SaleOpensAt: now.Add(demoOpensAfter),
			Venue:       catalog.Venue{Name: "Northfield Stadium", City: "Manchester", Country: "GB", TimeZone: "Europe/London"},
			LayoutID:    ids[1], Prices: map[string]int64{"Category 1": 14000, "Category 2": 9500, "Category 3": 6500, "Category 4": 4500},
		},
		{
			Kind: catalog.Concert, Slug: "demo-festival", Title: "Summer on the Meadow", StartsAt: evening(90, "Asia/Seoul"), Currency: "KRW",
			Venue:  catalog.Venue{Name: "Han River Meadow", City: "Seoul", Country: "KR", TimeZone: "Asia/Seoul"},
			Pools:  []catalog.PoolDraft{{Pool: "STANDING", Capacity: 20_000, Price: &festivalPrice}},
			Policy: &catalog.PolicyDraft{WaitingRoom: &catalog.WaitingRoomDraft{Enabled: &off}, MaxPlacesPerHold: &festivalPlaces},
		},
	}
	return append(drafts, demoFlights(ids[2], now)...), nil
}

// demoAirport is an airport of the demo's own little network.
type demoAirport struct{ code, city, country, zone string }

// demoFlights invents a day of flights: from each airport to every other, at local times and fares that follow from a hash of the route.
func demoFlights(cabin string, now time.Time) []catalog.Draft {
	airports := []demoAirport{
		{"SGN", "Ho Chi Minh City", "VN", "Asia/Ho_Chi_Minh"}, {"HAN", "Hanoi", "VN", "Asia/Ho_Chi_Minh"}, {"DAD", "Da Nang", "VN", "Asia/Ho_Chi_Minh"},
		{"ICN", "Seoul", "KR", "Asia/Seoul"}, {"NRT", "Tokyo", "JP", "Asia/Tokyo"}, {"SIN", "Singapore", "SG", "Asia/Singapore"},
		{"FRA", "Frankfurt", "DE", "Europe/Berlin"}, {"CDG", "Paris", "FR", "Europe/Paris"}, {"LHR", "London", "GB", "Europe/London"},
		{"JFK", "New York", "US", "America/New_York"}, {"LAX", "Los Angeles", "US", "America/Los_Angeles"}, {"SYD", "Sydney", "AU", "Australia/Sydney"},
	}
	var drafts []catalog.Draft
	for i, from := range airports {
		zone, err := time.LoadLocation(from.zone)
		if err != nil {
			continue
		}
		day := now.In(zone).AddDate(0, 0, 7)
		for j, to := range airports {
			if i == j {
				continue
			}
			h := fnv.New32a()
			h.Write([]byte(from.code + to.code))
			hash := int(h.Sum32() >> 1)
			fare, one := int64(4_900+hash%400*100), 1
			starts := time.Date(day.Year(), day.Month(), day.Day(), 6+hash%16, hash/16%12*5, 0, 0, zone)
			flight := fmt.Sprintf("HF%d", 100+i*len(airports)+j)
			drafts = append(drafts, catalog.Draft{
				Kind: catalog.Flight, Slug: strings.ToLower(fmt.Sprintf("demo-%s-%s-%s", flight, from.code, to.code)),
				Title: fmt.Sprintf("%s–%s %s", from.code, to.code, flight), StartsAt: starts, Currency: "USD",
				Venue:    catalog.Venue{Name: from.city + " airport", City: from.city, Country: from.country, TimeZone: from.zone},
				LayoutID: cabin, Origin: from.code, Destination: to.code,
				Pools: []catalog.PoolDraft{{Pool: "ECONOMY", Capacity: 180, Overbook: 3, Buckets: &one, Price: &fare}},
			})
		}
	}
	return drafts
}
