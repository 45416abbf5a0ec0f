// Package catalog knows events as people see and search them: titles, places, times, prices, and the policy by which they sell.
package catalog

import (
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
	Name, City, Country string
	TimeZone            string // IANA name; dates of the event are in it
}

// Pool is a counted stock of an event.
type Pool struct {
	Name     string
	Capacity int64
	Overbook int64 // units sold beyond Capacity
	Buckets  int   // rows that the stock is split into, so that one row is not the bottleneck
	Price    int64 // minor units, for a unit without a seat or a seat whose band has no price
}

// Event is one sellable occurrence: a showtime, a concert evening, a flight on a day.
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
	Paused                              bool // staff stopped the sale
	Version                             int  // counts edits
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
	switch {
	case now.Before(e.SaleOpensAt):
		return Upcoming
	case !now.Before(e.SaleClosesAt):
		return Closed
	case e.Paused:
		return Paused
	default:
		return OnSale
	}
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
