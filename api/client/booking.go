package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// CheckoutRequest says who buys.
type CheckoutRequest struct {
	Email      string      `json:"email"`
	Name       string      `json:"name"`
	Language   string      `json:"language,omitempty"`   // BCP 47
	Passengers []Passenger `json:"passengers,omitempty"` // one for each place; required for flights

	IdempotencyKey string `json:"-"` // made at random when empty
}

// Passenger is who travels.
type Passenger struct {
	Name string `json:"name"`
}

// Payment is a session to pay in, at URL. Nothing has to be paid when Status is succeeded.
type Payment struct {
	PaymentID string    `json:"paymentId"`
	BookingID string    `json:"bookingId"`
	Provider  string    `json:"provider"`
	Status    string    `json:"status"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
	Price     Money     `json:"price"`
	Link      string    `json:"link"` // leads to the booking from any device
}

// Checkout starts to pay for an own hold.
func (c *Client) Checkout(ctx context.Context, hold string, r CheckoutRequest) (Payment, error) {
	if r.IdempotencyKey == "" {
		r.IdempotencyKey = NewIdempotencyKey()
	}
	var p Payment
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/holds/" + seg(hold) + "/checkout", body: r, key: r.IdempotencyKey, into: &p})
	return p, err
}

// Booking is what a paid hold becomes.
type Booking struct {
	BookingID string      `json:"bookingId"`
	HoldID    string      `json:"holdId"`
	EventID   string      `json:"eventId"`
	Status    string      `json:"status"` // pending, confirmed, failed or cancelled
	Reason    string      `json:"reason,omitempty"`
	Price     Money       `json:"price"`
	Refund    *Money      `json:"refund,omitempty"`
	Email     string      `json:"email"`
	Name      string      `json:"name"`
	Seats     []string    `json:"seats"`
	Pools     []PoolUnits `json:"pools"`
	Tickets   []Ticket    `json:"tickets"`
	CreatedAt time.Time   `json:"createdAt"`
	Link      string      `json:"link,omitempty"`
}

// Ticket is the right to one place. The code is what a gate reads.
type Ticket struct {
	TicketID string `json:"ticketId"`
	Seat     string `json:"seat,omitempty"`
	Pool     string `json:"pool,omitempty"`
	Holder   string `json:"holder,omitempty"`
	Status   string `json:"status"` // valid, used or void
	Code     string `json:"code"`
}

// Booking looks at an own booking. While it is pending the server may ask the payment provider.
func (c *Client) Booking(ctx context.Context, booking string) (Booking, error) {
	var b Booking
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bookings/" + seg(booking), into: &b})
	return b, err
}

// BookingByLink looks at a booking with the token of its link, from any device.
func (c *Client) BookingByLink(ctx context.Context, booking, token string) (Booking, error) {
	var b Booking
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bookings/" + seg(booking), query: url.Values{"link": {token}}, into: &b})
	return b, err
}

// Bookings lists the own bookings, newest first.
func (c *Client) Bookings(ctx context.Context) ([]Booking, error) {
	var list struct {
		Items []Booking `json:"items"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bookings", into: &list})
	return list.Items, err
}

// Tickets lists the tickets of an own booking.
func (c *Client) Tickets(ctx context.Context, booking string) ([]Ticket, error) {
	var list struct {
		Items []Ticket `json:"items"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bookings/" + seg(booking) + "/tickets", into: &list})
	return list.Items, err
}

// TicketPNG draws the QR code of an own ticket.
func (c *Client) TicketPNG(ctx context.Context, booking, ticket string) ([]byte, error) {
	var b []byte
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bookings/" + seg(booking) + "/tickets/" + seg(ticket) + ".png", into: &b})
	return b, err
}

// Quote is what a cancellation gives back, promised until ExpiresAt.
type Quote struct {
	QuoteID   string    `json:"quoteId"`
	Refund    Money     `json:"refund"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// QuoteCancellation asks what cancelling would give back. Nothing is cancelled yet.
func (c *Client) QuoteCancellation(ctx context.Context, booking string) (Quote, error) {
	var q Quote
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/bookings/" + seg(booking) + "/cancellation", key: NewIdempotencyKey(), into: &q})
	return q, err
}

// Cancel gives a booking back at the price of a quote; repeating it is no error.
func (c *Client) Cancel(ctx context.Context, booking, quote string) (Booking, error) {
	var b Booking
	_, err := c.do(ctx, call{method: http.MethodPut, path: "/v1/bookings/" + seg(booking) + "/cancellation/" + seg(quote), into: &b, repeatable: true})
	return b, err
}
