package api

import (
	"context"
	"fmt"
	"net/http"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// CheckoutRequest says who buys.
type CheckoutRequest struct {
	Email      string      `json:"email" maxLength:"254" doc:"Where the tickets go." example:"ada@example.org"`
	Name       string      `json:"name" minLength:"1" maxLength:"200" example:"Ada Lovelace"`
	Language   string      `json:"language,omitempty" maxLength:"35" pattern:"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$" doc:"BCP 47, of messages to the buyer." example:"en"`
	Passengers []Passenger `json:"passengers,omitempty" maxItems:"100" doc:"One for each place; required for flights."`
}

// Passenger is who travels.
type Passenger struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
}

// Payment is a session to pay in.
type Payment struct {
	PaymentID string    `json:"paymentId"`
	BookingID string    `json:"bookingId"`
	Provider  string    `json:"provider" doc:"none: there is nothing to pay, and the booking is confirmed."`
	Status    string    `json:"status" enum:"pending,succeeded,failed,expired,refund_due,partly_refunded,refunded"`
	URL       string    `json:"url" doc:"Where the buyer pays; empty when there is nothing to pay."`
	ExpiresAt time.Time `json:"expiresAt" doc:"The end of the payment session; the hold lives a little longer."`
	Price     Money     `json:"price"`
	Link      string    `json:"link" doc:"Reads the booking from any device, without a session."`
}

type checkoutInput struct {
	Hold string `path:"hold"`
	Key  string `header:"Idempotency-Key" doc:"Required. The same key with the same body is answered the same, and never charged twice; with another body it is refused."`
	Body CheckoutRequest
}

type checkoutOutput struct {
	Location string `header:"Location" doc:"The booking."`
	Body     Payment
}

func (a *API) checkoutRoutes() {
	register(a, operation{
		id: "checkout", method: http.MethodPost, path: "/v1/holds/{hold}/checkout", tag: "Bookings", access: customer, status: http.StatusCreated,
		summary: "Start to pay for an own hold",
		errors:  []int{http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity},
		description: "Makes the booking (pending) and a payment session; the hold may be prolonged once. A second click is shown the payment that is open. " +
			"When the buyer has paid, the booking is confirmed by the provider's callback.",
	}, a.checkout)
}

func (a *API) checkout(ctx context.Context, in *checkoutInput) (*checkoutOutput, error) {
	c := callOf(ctx)
	key, err := idempotencyKey(c.r)
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return nil, httpd.IdempotencyKeyMissing.Problem("")
	}
	e, id, err := a.ownHold(ctx, in.Hold)
	if err != nil {
		return nil, err
	}
	buyer, err := in.Body.buyer()
	if err != nil {
		return nil, err
	}
	p, err := a.Booking.Checkout(ctx, booking.Pay{Hold: id, Customer: c.customer, Buyer: buyer, Key: key})
	if err != nil {
		return nil, err
	}
	bid := booking.BookingID(p.Hold)
	return &checkoutOutput{
		Location: bookingPath(bid),
		Body: Payment{
			PaymentID: p.ID.String(), BookingID: bid.String(), Provider: p.Provider, Status: p.Status.String(), URL: p.URL,
			ExpiresAt: p.ExpiresAt.UTC(), Price: amount(p.Price), Link: a.link(e, bid),
		},
	}, nil
}

// buyer checks what a schema cannot say.
func (r *CheckoutRequest) buyer() (booking.Buyer, error) {
	b := booking.Buyer{Email: r.Email, Name: r.Name, Language: r.Language}
	address, err := mail.ParseAddress(r.Email)
	if err != nil || address.Address != r.Email || !strings.Contains(r.Email[strings.LastIndexByte(r.Email, '@'):], ".") {
		return b, input("validation", "/email", "this is not a mail address; write it like ada@example.org")
	}
	if err := printable("/name", r.Name); err != nil {
		return b, err
	}
	for i, p := range r.Passengers {
		if err := printable(fmt.Sprintf("/passengers/%d/name", i), p.Name); err != nil {
			return b, err
		}
		b.Passengers = append(b.Passengers, p.Name)
	}
	return b, nil
}

// printable refuses names that would break a ticket, a log line or a mail header.
func printable(pointer, name string) error {
	if strings.TrimSpace(name) == "" {
		return input("validation", pointer, "write a name")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return input("validation", pointer, "leave out control characters and line ends")
		}
	}
	return nil
}

// LinkTTL is how long after the start of an event the link of a booking works.
const LinkTTL = 30 * 24 * time.Hour

// link leads to a booking without a session, for reading only.
func (a *API) link(e *catalog.Event, id booking.BookingID) string {
	token := a.Keys.Issue(identity.BookingLinkToken, int64(id.Event), id.Bits, e.StartsAt.Add(LinkTTL))
	return a.PublicURL() + bookingPath(id) + "?link=" + token
}

func bookingPath(id booking.BookingID) string { return "/v1/bookings/" + id.String() }
