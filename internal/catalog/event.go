// Package catalog knows events as people see and search them: titles, places, times, prices, and the policy by which they sell.
package catalog

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
)

// Kind is the trade an event belongs to; it chooses the preset of its policy.
type Kind string

// The kinds.
const (
	Cinema  Kind = "cinema"
	Concert Kind = "concert"
	Flight  Kind = "flight"
)

// LayoutRef names one version of a layout. The zero value is "no layout": an event of pools only.
type LayoutRef struct {
	ID      string
	Version int
}

// Venue is where an event takes place; for a flight, the airport it leaves from.
type Venue struct {
	Name     string `json:"name"`
	City     string `json:"city,omitempty"`
	Country  string `json:"country,omitempty"`
	TimeZone string `json:"timeZone"` // IANA name; dates of the event are in it
}

// Pool is a counted stock of an event. Its JSON is how stores keep it; the wire has a shape of its own.
type Pool struct {
	Name     string `json:"name"`
	Capacity int64  `json:"capacity"`
	Overbook int64  `json:"overbook"` // units sold beyond Capacity
	Buckets  int    `json:"buckets"`  // rows that the stock is split into, so that one row is not the bottleneck
	Price    int64  `json:"price"`    // minor units, for a unit without a seat or a seat whose band has no price
}

// Event is one sellable occurrence: a showtime, a concert evening, a flight on a day. Events that the Catalog hands out are shared: nobody changes them.
type Event struct {
	ID                                  EventID
	Slug                                string
	Kind                                Kind
	Title                               string
	Venue                               Venue
	StartsAt, SaleOpensAt, SaleClosesAt time.Time
	Currency                            string
	Layout                              LayoutRef
	Prices                              map[string]int64 // minor units by price band
	Pools                               []Pool
	Origin, Destination                 string // IATA codes of a flight
	Policy                              Policy
	Places                              int  // that can be sold while nothing is: seats, each only while its pool has a unit for it, and units of pools without seats
	Paused                              bool // staff stopped the sale
	Version                             int  // counts edits, from 1
	CreatedAt                           time.Time
}

// Status of an event's sale at an instant.
type Status string

// The statuses.
const (
	Upcoming Status = "upcoming" // the sale has not opened
	OnSale   Status = "onSale"
	Paused   Status = "paused"
	Closed   Status = "closed"
)

// Status says whether the sale is open at now: from SaleOpensAt on, until before SaleClosesAt.
func (e *Event) Status(now time.Time) Status {
	return statusOf(e.SaleOpensAt, e.SaleClosesAt, e.Paused, now)
}

func statusOf(opens, closes time.Time, paused bool, now time.Time) Status {
	switch {
	case now.Before(opens):
		return Upcoming
	case !now.Before(closes):
		return Closed
	case paused:
		return Paused
	default:
		return OnSale
	}
}

// PriceFrom is the smallest price of the event, in minor units.
func (e *Event) PriceFrom() int64 {
	least := int64(math.MaxInt64)
	for _, p := range e.Prices {
		least = min(least, p)
	}
	for i := range e.Pools {
		least = min(least, e.Pools[i].Price)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// LocalDate is the day of the start (yyyy-mm-dd) where the event takes place.
func (e *Event) LocalDate() (string, error) {
	zone, err := time.LoadLocation(e.Venue.TimeZone)
	if err != nil {
		return "", fmt.Errorf("time zone of %v: %w", e.ID, err)
	}
	return e.StartsAt.In(zone).Format(time.DateOnly), nil
}

// Pool finds a pool by name; its index is how the engine and the board refer to it.
func (e *Event) Pool(name string) (index int, ok bool) {
	for i := range e.Pools {
		if e.Pools[i].Name == name {
			return i, true
		}
	}
	return -1, false
}

// Price makes an amount in the event's currency.
func (e *Event) Price(amount int64) money.Money {
	return money.Money{Amount: amount, Currency: e.Currency}
}
