package client

import (
	"context"
	"net/http"
	"time"
)

// HoldRequest asks for places: Seats, or Pool with Quantity, or Pool with Seats that belong to it, or Best.
type HoldRequest struct {
	Seats    []string `json:"seats,omitempty"`
	Pool     string   `json:"pool,omitempty"`
	Quantity int      `json:"quantity,omitempty"`
	Best     *Best    `json:"best,omitempty"`
	Replaces string   `json:"replaces,omitempty"` // an own hold that is given back in the same step

	// IdempotencyKey makes the request safe to repeat, and lets this client repeat it.
	IdempotencyKey string `json:"-"`
}

// Best lets the house choose.
type Best struct {
	Quantity   int    `json:"quantity"`
	Section    string `json:"section,omitempty"`
	Band       string `json:"band,omitempty"`
	Pool       string `json:"pool,omitempty"`
	Wheelchair bool   `json:"wheelchair,omitempty"`
}

// Hold is places taken for minutes.
type Hold struct {
	HoldID    string      `json:"holdId"`
	EventID   string      `json:"eventId"`
	State     string      `json:"state"` // held, booked, released or expired
	Seats     []string    `json:"seats"`
	Pools     []PoolUnits `json:"pools"` // units, those of the seats included
	Price     Money       `json:"price"`
	ExpiresAt time.Time   `json:"expiresAt"`
	CeilingAt time.Time   `json:"ceilingAt"` // the latest end that more time can reach
	BookingID string      `json:"bookingId,omitempty"`
	Together  *bool       `json:"together,omitempty"` // of a Best: side by side

	Replayed bool `json:"-"` // the answer to an earlier request with the same key
}

// PoolUnits are places of a pool.
type PoolUnits struct {
	Pool     string `json:"pool"`
	Quantity int64  `json:"quantity"`
}

// PlaceHold takes places, all or none. Lost places are a *Problem with CodePlacesGone.
func (c *Client) PlaceHold(ctx context.Context, event string, r HoldRequest) (Hold, error) {
	var h Hold
	header, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/events/" + seg(event) + "/holds", body: r, key: r.IdempotencyKey, into: &h})
	h.Replayed = header.Get("Idempotent-Replayed") == "true"
	return h, err
}

// Hold looks at an own hold.
func (c *Client) Hold(ctx context.Context, hold string) (Hold, error) {
	var h Hold
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/holds/" + seg(hold), into: &h})
	return h, err
}

// Release gives an own hold back at once; doing so again is no error.
func (c *Client) Release(ctx context.Context, hold string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/v1/holds/" + seg(hold), repeatable: true})
	return err
}

// Extend asks for more time.
func (c *Client) Extend(ctx context.Context, hold string) (Hold, error) {
	var h Hold
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/holds/" + seg(hold) + "/extension", into: &h})
	return h, err
}
