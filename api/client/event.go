package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Money is an amount in minor units of a currency: 1200 EUR are 12 euros.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Venue is where an event takes place; for a flight the airport it leaves from.
type Venue struct {
	Name     string `json:"name"`
	City     string `json:"city"`
	Country  string `json:"country,omitempty"`
	TimeZone string `json:"timeZone"` // IANA name
}

// EventSummary is an event in a list.
type EventSummary struct {
	ID           string    `json:"id"`
	Slug         string    `json:"slug"`
	Kind         string    `json:"kind"` // cinema, concert or flight
	Title        string    `json:"title"`
	Venue        Venue     `json:"venue"`
	StartsAt     time.Time `json:"startsAt"`
	SaleOpensAt  time.Time `json:"saleOpensAt"`
	SaleClosesAt time.Time `json:"saleClosesAt"`
	Status       string    `json:"status"` // upcoming, onSale, paused or closed
	PriceFrom    *Money    `json:"priceFrom"`
	Available    int       `json:"available"`
	Origin       string    `json:"origin,omitempty"`
	Destination  string    `json:"destination,omitempty"`
}

// Event is an event with everything that a buyer may want to know.
type Event struct {
	EventSummary

	Currency string           `json:"currency"`
	Layout   *LayoutRef       `json:"layout,omitempty"`
	Prices   map[string]Money `json:"prices"` // by price band
	Pools    []Pool           `json:"pools"`
	Policy   Policy           `json:"policy"`
}

// LayoutRef names a version of a layout and where it is.
type LayoutRef struct {
	LayoutID string `json:"layoutId"`
	Version  int    `json:"version"`
	URL      string `json:"url"`
}

// Pool is a counted stock, such as a standing area or a fare class.
type Pool struct {
	Pool      string `json:"pool"`
	Available int64  `json:"available"`
	Price     Money  `json:"price"`
}

// Policy is how an event sells.
type Policy struct {
	HoldSeconds          int            `json:"holdSeconds"`
	PaymentSeconds       int            `json:"paymentSeconds"`
	ExtendSeconds        int            `json:"extendSeconds"`
	HoldCeilingSeconds   int            `json:"holdCeilingSeconds"`
	MaxPlacesPerHold     int            `json:"maxPlacesPerHold"`
	MaxPlacesPerCustomer int            `json:"maxPlacesPerCustomer"`
	MaxHoldsPerMinute    int            `json:"maxHoldsPerMinute"`
	WaitingRoom          WaitingRoom    `json:"waitingRoom"`
	Cancellation         []Cancellation `json:"cancellation"`
	Orphans              string         `json:"orphans"` // allow, avoid or forbid
}

// WaitingRoom is the pace at which an event lets people in.
type WaitingRoom struct {
	Enabled            bool `json:"enabled"`
	PerSecond          int  `json:"perSecond"`
	MaxActive          int  `json:"maxActive"`
	PassSeconds        int  `json:"passSeconds"`
	OpensSecondsBefore int  `json:"opensSecondsBefore"`
}

// Cancellation refunds a part of the price when the event starts at least so much later.
type Cancellation struct {
	UntilSecondsBefore int `json:"untilSecondsBefore"`
	RefundPercent      int `json:"refundPercent"`
}

// SearchQuery narrows a search; empty fields do not. Dates are YYYY-MM-DD in each event's own zone.
type SearchQuery struct {
	Text, Kind, From, To, Date, DateFrom, DateTo, Place string
	Limit                                               int
	Cursor                                              string // Next of the page before
}

// Page is a part of a list; Next is empty at its end.
type Page struct {
	Items []EventSummary `json:"items"`
	Next  string         `json:"next"`
}

// Search finds events.
func (c *Client) Search(ctx context.Context, q SearchQuery) (Page, error) {
	v := url.Values{}
	for name, value := range map[string]string{
		"q": q.Text, "kind": q.Kind, "from": q.From, "to": q.To, "date": q.Date, "dateFrom": q.DateFrom, "dateTo": q.DateTo, "place": q.Place, "cursor": q.Cursor,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var p Page
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/events", query: v, into: &p})
	return p, err
}

// Event reads one; here as everywhere event is an id or a slug.
func (c *Client) Event(ctx context.Context, event string) (Event, error) {
	var e Event
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/events/" + seg(event), into: &e})
	return e, err
}

// Seat is a seat as the simple list shows it.
type Seat struct {
	Seat    string `json:"seat"`
	Section string `json:"section"`
	Row     string `json:"row"`
	Status  string `json:"status"` // available, held, sold or blocked
	Price   Money  `json:"price"`
	Pool    string `json:"pool,omitempty"`
}

// Seats is the state of every place of an event.
type Seats struct {
	Version int64  `json:"version"`
	Seats   []Seat `json:"seats"`
	Pools   []Pool `json:"pools"`
}

// Seats lists every place. For large events Layout once and Availability often are far less to carry.
func (c *Client) Seats(ctx context.Context, event string) (Seats, error) {
	var s Seats
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/events/" + seg(event) + "/seats", into: &s})
	return s, err
}

// Layout reads the fixed part of the seat map, as JSON (docs/layouts.md). It never changes under its own address.
func (c *Client) Layout(ctx context.Context, event string) ([]byte, error) {
	var b []byte
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/events/" + seg(event) + "/layout", into: &b})
	return b, err
}

// SeatState is two bits of Availability.Packed.
type SeatState uint8

// The states of a seat.
const (
	SeatAvailable SeatState = 0
	SeatHeld      SeatState = 1
	SeatSold      SeatState = 2
	SeatBlocked   SeatState = 3
)

// Availability is the changing part of the seat map.
type Availability struct {
	Version int64            `json:"version"`
	Packed  string           `json:"seats"` // base64, two bits a seat in layout order, low bits first
	Pools   map[string]int64 `json:"pools"` // units left

	ETag string `json:"-"`
}

// States unpacks the states of the first n seats in layout order.
func (a *Availability) States(n int) ([]SeatState, error) {
	raw, err := base64.StdEncoding.DecodeString(a.Packed)
	if err != nil {
		return nil, fmt.Errorf("availability: %w", err)
	}
	if len(raw) < (n+3)/4 {
		return nil, fmt.Errorf("availability: states of %d seats, not of %d", 4*len(raw), n)
	}
	out := make([]SeatState, n)
	for i := range out {
		out[i] = SeatState(raw[i/4]>>(i%4*2)) & 3
	}
	return out, nil
}

// Availability reads the picture. With the ETag of an older one, fresh is false when nothing has changed, and the answer has nothing else.
func (c *Client) Availability(ctx context.Context, event, etag string) (a Availability, fresh bool, err error) {
	in := call{method: http.MethodGet, path: "/v1/events/" + seg(event) + "/availability", into: &a}
	if etag != "" {
		in.header = http.Header{"If-None-Match": {etag}}
	}
	h, err := c.do(ctx, in)
	if err != nil {
		return Availability{}, false, err
	}
	a.ETag = h.Get("Etag")
	return a, a.Version != 0, nil
}
