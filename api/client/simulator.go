package client

import (
	"context"
	"net/http"
)

// SimulatorAction is what the payment simulator does next with a payment.
type SimulatorAction struct {
	Outcome      string `json:"outcome"`             // succeed or fail
	Callbacks    *int   `json:"callbacks,omitempty"` // how often it tells; nil: once, 0: never
	DelaySeconds int    `json:"delaySeconds,omitempty"`
	Amount       int64  `json:"amount,omitempty"`   // charged instead of the price
	Currency     string `json:"currency,omitempty"` // charged instead of the price's
	OutOfOrder   bool   `json:"outOfOrder,omitempty"`
	DistinctIDs  bool   `json:"distinctIds,omitempty"`
	Late         bool   `json:"late,omitempty"` // the buyer pays although the session is over
}

// SimulatorPayment is what the simulator's own books say of a payment.
type SimulatorPayment struct {
	Status        string `json:"status"`
	Charged       *Money `json:"charged"`
	Refunded      *Money `json:"refunded"`
	CallbacksSent int    `json:"callbacksSent"`
}

// Simulate tells the simulator what becomes of a payment.
func (c *Client) Simulate(ctx context.Context, payment string, a SimulatorAction) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/simulator/payments/" + seg(payment), body: a})
	return err
}

// Simulated reads the simulator's books.
func (c *Client) Simulated(ctx context.Context, payment string) (SimulatorPayment, error) {
	var p SimulatorPayment
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/simulator/payments/" + seg(payment), into: &p})
	return p, err
}
