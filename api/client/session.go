package client

import (
	"context"
	"net/http"
	"time"
)

// Session is a guest customer. Whoever has the token is the customer.
type Session struct {
	CustomerID string    `json:"customerId"`
	Token      string    `json:"token"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// NewSession makes a customer.
func (c *Client) NewSession(ctx context.Context) (Session, error) {
	var s Session
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/sessions", into: &s, repeatable: true})
	return s, err
}
