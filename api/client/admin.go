package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Admin makes the calls of staff.
type Admin struct{ c *Client }

// Admin gives the calls that need the admin key.
func (c *Client) Admin(key string) Admin { return Admin{c.WithToken(key)} }

// NewLayout is what adding a layout answered.
type NewLayout struct {
	LayoutID string          `json:"layoutId"`
	Version  int             `json:"version"`
	Seats    int             `json:"seats"`
	Warnings []LayoutWarning `json:"warnings,omitempty"`
}

// LayoutWarning is something in a plan that was left out or changed.
type LayoutWarning struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// AddLayout adds a layout: an own layout JSON or a pretix seating plan.
func (a Admin) AddLayout(ctx context.Context, document []byte) (NewLayout, error) {
	var l NewLayout
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/layouts", body: document, into: &l})
	return l, err
}

// NewEvent is an event to be made.
type NewEvent struct {
	Kind          string           `json:"kind"`
	Slug          string           `json:"slug,omitempty"`
	Title         string           `json:"title"`
	Venue         Venue            `json:"venue"`
	StartsAt      time.Time        `json:"startsAt"`
	SaleOpensAt   time.Time        `json:"saleOpensAt"`
	SaleClosesAt  time.Time        `json:"saleClosesAt"`
	Currency      string           `json:"currency"`
	LayoutID      string           `json:"layoutId,omitempty"`
	LayoutVersion int              `json:"layoutVersion,omitempty"` // 0: the newest
	Prices        map[string]int64 `json:"prices,omitempty"`        // minor units by price band
	Pools         []NewPool        `json:"pools,omitempty"`
	Origin        string           `json:"origin,omitempty"`
	Destination   string           `json:"destination,omitempty"`
	Policy        *PolicyPatch     `json:"policy,omitempty"` // over the preset of the kind
}

// NewPool is a counted stock of an event to be made.
type NewPool struct {
	Pool     string `json:"pool"`
	Capacity int64  `json:"capacity"`
	Overbook int64  `json:"overbook"`
	Buckets  int    `json:"buckets,omitempty"`
	Price    int64  `json:"price"` // minor units
}

// PolicyPatch has the fields of a policy that differ; nil ones stay as they are.
type PolicyPatch struct {
	HoldSeconds          *int              `json:"holdSeconds,omitempty"`
	PaymentSeconds       *int              `json:"paymentSeconds,omitempty"`
	ExtendSeconds        *int              `json:"extendSeconds,omitempty"`
	HoldCeilingSeconds   *int              `json:"holdCeilingSeconds,omitempty"`
	MaxPlacesPerHold     *int              `json:"maxPlacesPerHold,omitempty"`
	MaxPlacesPerCustomer *int              `json:"maxPlacesPerCustomer,omitempty"`
	MaxHoldsPerMinute    *int              `json:"maxHoldsPerMinute,omitempty"`
	WaitingRoom          *WaitingRoomPatch `json:"waitingRoom,omitempty"`
	Cancellation         *[]Cancellation   `json:"cancellation,omitempty"`
	Orphans              *string           `json:"orphans,omitempty"`
}

// WaitingRoomPatch has the fields of a waiting room that differ.
type WaitingRoomPatch struct {
	Enabled            *bool `json:"enabled,omitempty"`
	PerSecond          *int  `json:"perSecond,omitempty"`
	MaxActive          *int  `json:"maxActive,omitempty"`
	PassSeconds        *int  `json:"passSeconds,omitempty"`
	OpensSecondsBefore *int  `json:"opensSecondsBefore,omitempty"`
}

// MadeEvent names a new event.
type MadeEvent struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// CreateEvent makes an event.
func (a Admin) CreateEvent(ctx context.Context, e NewEvent) (MadeEvent, error) {
	var m MadeEvent
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/events", body: e, into: &m})
	return m, err
}

// AdminEvent is an event as staff see it.
type AdminEvent struct {
	Event

	Paused  bool        `json:"paused"`
	Stocks  []AdminPool `json:"stocks"`
	Version int         `json:"version"`

	ETag string `json:"-"` // for EditEvent
}

// AdminPool is a pool with its limits.
type AdminPool struct {
	Pool     string `json:"pool"`
	Capacity int64  `json:"capacity"`
	Overbook int64  `json:"overbook"`
	Buckets  int    `json:"buckets"`
	Price    int64  `json:"price"`
}

// Event reads an event with what only staff see.
func (a Admin) Event(ctx context.Context, event string) (AdminEvent, error) {
	var e AdminEvent
	h, err := a.c.do(ctx, call{method: http.MethodGet, path: "/v1/admin/events/" + seg(event), into: &e})
	e.ETag = h.Get("Etag")
	return e, err
}

// EventEdit has the fields of an event to be changed; nil ones stay as they are.
type EventEdit struct {
	Title        *string          `json:"title,omitempty"`
	StartsAt     *time.Time       `json:"startsAt,omitempty"`
	SaleOpensAt  *time.Time       `json:"saleOpensAt,omitempty"`
	SaleClosesAt *time.Time       `json:"saleClosesAt,omitempty"`
	Prices       map[string]int64 `json:"prices,omitempty"`
	Pools        []PoolEdit       `json:"pools,omitempty"`
	Policy       *PolicyPatch     `json:"policy,omitempty"`
	Paused       *bool            `json:"paused,omitempty"`
}

// PoolEdit has the limits of a pool to be changed.
type PoolEdit struct {
	Pool     string `json:"pool"`
	Capacity *int64 `json:"capacity,omitempty"`
	Overbook *int64 `json:"overbook,omitempty"`
	Price    *int64 `json:"price,omitempty"`
}

// EditEvent changes an event as it was read under etag; somebody else's change in between is a *Problem with status 412.
func (a Admin) EditEvent(ctx context.Context, event, etag string, edit EventEdit) (AdminEvent, error) {
	var e AdminEvent
	h, err := a.c.do(ctx, call{
		method: http.MethodPatch, path: "/v1/admin/events/" + seg(event), body: edit, into: &e, header: http.Header{"If-Match": {etag}},
	})
	e.ETag = h.Get("Etag")
	return e, err
}

// Pause stops the sale of an event; holds and bookings are kept. Resume goes on.
func (a Admin) Pause(ctx context.Context, event string) error {
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/events/" + seg(event) + "/pause", repeatable: true})
	return err
}

// Resume goes on with the sale of an event.
func (a Admin) Resume(ctx context.Context, event string) error {
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/events/" + seg(event) + "/resume", repeatable: true})
	return err
}

type seatList struct {
	Seats []string `json:"seats"`
}

// Block takes free seats off sale, all or none.
func (a Admin) Block(ctx context.Context, event string, seats []string) error {
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/events/" + seg(event) + "/blocks", body: seatList{seats}, repeatable: true})
	return err
}

// Unblock puts blocked seats back on sale.
func (a Admin) Unblock(ctx context.Context, event string, seats []string) error {
	_, err := a.c.do(ctx, call{method: http.MethodDelete, path: "/v1/admin/events/" + seg(event) + "/blocks", body: seatList{seats}, repeatable: true})
	return err
}

// AdminBooking is a booking with its payments.
type AdminBooking struct {
	Booking

	CustomerID string         `json:"customerId"`
	Payments   []AdminPayment `json:"payments"`
}

// AdminPayment is one attempt to take money.
type AdminPayment struct {
	PaymentID string    `json:"paymentId"`
	Provider  string    `json:"provider"`
	Reference string    `json:"reference,omitempty"`
	Status    string    `json:"status"`
	Price     Money     `json:"price"`
	Charged   Money     `json:"charged"`
	Owed      Money     `json:"owed"`     // refunds decided
	Refunded  Money     `json:"refunded"` // refunds done
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// FindBookings finds bookings by the buyer's mail address, or the one of a ticket's code, ticket id or booking id.
func (a Admin) FindBookings(ctx context.Context, email, code string) ([]AdminBooking, error) {
	v := url.Values{}
	if email != "" {
		v.Set("email", email)
	}
	if code != "" {
		v.Set("code", code)
	}
	var list struct {
		Items []AdminBooking `json:"items"`
	}
	_, err := a.c.do(ctx, call{method: http.MethodGet, path: "/v1/admin/bookings", query: v, into: &list})
	return list.Items, err
}

// Booking reads anybody's booking.
func (a Admin) Booking(ctx context.Context, booking string) (AdminBooking, error) {
	var b AdminBooking
	_, err := a.c.do(ctx, call{method: http.MethodGet, path: "/v1/admin/bookings/" + seg(booking), into: &b})
	return b, err
}

// Refund cancels a booking and gives money back: amount in minor units, or all of it when nil.
func (a Admin) Refund(ctx context.Context, booking string, amount *int64, reason string) (AdminBooking, error) {
	var b AdminBooking
	_, err := a.c.do(ctx, call{method: http.MethodPost, path: "/v1/admin/bookings/" + seg(booking) + "/refund", into: &b, body: struct {
		Amount *int64 `json:"amount,omitempty"`
		Reason string `json:"reason"`
	}{amount, reason}})
	return b, err
}

// AuditReport is the promises recomputed from the tables.
type AuditReport struct {
	OK         bool        `json:"ok"`
	Violations []Violation `json:"violations"`
}

// Violation is a broken promise.
type Violation struct {
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

// Audit recomputes an event's promises.
func (a Admin) Audit(ctx context.Context, event string) (AuditReport, error) {
	var r AuditReport
	_, err := a.c.do(ctx, call{method: http.MethodGet, path: "/v1/admin/events/" + seg(event) + "/audit", into: &r})
	return r, err
}

// Stats counts the places of an event.
type Stats struct {
	Version int64        `json:"version"`
	Total   Counts       `json:"total"`
	Bands   []BandCounts `json:"bands"`
	Pools   []PoolCounts `json:"pools"`
}

// Counts of places by state.
type Counts struct {
	Available int64 `json:"available"`
	Held      int64 `json:"held"`
	Sold      int64 `json:"sold"`
	Blocked   int64 `json:"blocked"`
}

// BandCounts counts the seats of a price band.
type BandCounts struct {
	Band string `json:"band"`
	Counts
}

// PoolCounts counts the units of a pool.
type PoolCounts struct {
	Pool      string `json:"pool"`
	Capacity  int64  `json:"capacity"`
	Overbook  int64  `json:"overbook"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Sold      int64  `json:"sold"`
}

// Stats reads the numbers of an event.
func (a Admin) Stats(ctx context.Context, event string) (Stats, error) {
	var s Stats
	_, err := a.c.do(ctx, call{method: http.MethodGet, path: "/v1/admin/events/" + seg(event) + "/stats", into: &s})
	return s, err
}
