package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// MaxBookingsListed is how many of a customer's bookings are listed, the newest.
const MaxBookingsListed = 50

// Booking is what a paid hold becomes.
type Booking struct {
	BookingID string      `json:"bookingId"`
	HoldID    string      `json:"holdId"`
	EventID   string      `json:"eventId"`
	Status    string      `json:"status" enum:"pending,confirmed,failed,cancelled"`
	Reason    string      `json:"reason,omitempty" doc:"Why it failed (unpaid, late, wrong-amount, …) or was cancelled."`
	Price     Money       `json:"price"`
	Refund    *Money      `json:"refund,omitempty" doc:"What goes back, or went back."`
	Email     string      `json:"email"`
	Name      string      `json:"name"`
	Seats     []string    `json:"seats"`
	Pools     []PoolUnits `json:"pools" doc:"Units of pools, those that seats take included."`
	Tickets   []Ticket    `json:"tickets" doc:"One for each place, a moment after the booking was confirmed."`
	CreatedAt time.Time   `json:"createdAt"`
	Link      string      `json:"link,omitempty" doc:"Reads the booking from any device, without a session."`
}

// Quote is the promise of a refund.
type Quote struct {
	QuoteID   string    `json:"quoteId"`
	Refund    Money     `json:"refund" doc:"By the event's cancellation rules; may be 0."`
	ExpiresAt time.Time `json:"expiresAt"`
}

type bookingInput struct {
	Booking string `path:"booking"`
	Link    string `query:"link" maxLength:"256" doc:"The token of the booking's link, instead of a session."`
}

type bookingOutput struct{ Body Booking }

// BookingList is a list of bookings.
type BookingList struct {
	Items []Booking `json:"items"`
}

type bookingListOutput struct{ Body BookingList }

type quoteInput struct {
	Booking string `path:"booking"`
	Key     string `header:"Idempotency-Key" doc:"With the same key the same quote is answered again."`
}

type quoteOutput struct {
	Location string `header:"Location" doc:"PUT to it to cancel."`
	Body     Quote
}

type cancelInput struct {
	Booking string `path:"booking"`
	Quote   string `path:"quote"`
}

func (a *API) bookingRoutes() {
	const tag = "Bookings"
	register(a, operation{
		id: "list-bookings", method: http.MethodGet, path: "/v1/bookings", tag: tag, access: customer,
		summary: "The own bookings, newest first",
	}, a.listBookings)
	register(a, operation{
		id: "get-booking", method: http.MethodGet, path: "/v1/bookings/{booking}", tag: tag, access: linked,
		summary: "Look at an own booking", errors: []int{http.StatusNotFound},
		description: "While it is pending, the payment provider may be asked, in case its callback is late or lost.",
	}, a.getBooking)
	register(a, operation{
		id: "quote-cancellation", method: http.MethodPost, path: "/v1/bookings/{booking}/cancellation", tag: tag, access: customer, status: http.StatusCreated,
		summary: "What cancelling would give back", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
		description: "Nothing is cancelled yet: PUT to the quote to do it. The request needs no body.",
	}, a.quoteCancellation)
	register(a, operation{
		id: "cancel-booking", method: http.MethodPut, path: "/v1/bookings/{booking}/cancellation/{quote}", tag: tag, access: customer,
		summary: "Cancel at the price of a quote", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusGone},
		description: "Places go back on sale, tickets become void, and the refund is on its way, all in one step. Doing it again is answered the same.",
	}, a.cancelBooking)
}

var noBooking = httpd.NotFound.Problem("This is not a booking of yours.")

// readable finds a booking that the caller may read: an own one, or that of the link.
func (a *API) readable(ctx context.Context, text, link string, who identity.CustomerID) (*catalog.Event, booking.Booking, error) {
	e, id, err := a.bookingID(ctx, text)
	if err != nil {
		return nil, booking.Booking{}, err
	}
	if link == "" {
		b, err := a.Booking.Booking(ctx, id, who)
		return e, b, err
	}
	bits, err := a.Keys.Check(link, identity.BookingLinkToken, int64(id.Event), a.Now())
	if err != nil || bits != id.Bits {
		// What the token was wrong about is nobody's business.
		return nil, booking.Booking{}, noBooking
	}
	b, err := a.Booking.AnyBooking(ctx, id)
	return e, b, err
}

// bookingID reads the id in a path and finds its event. Whatever is wrong with it, the booking is not there.
func (a *API) bookingID(ctx context.Context, text string) (*catalog.Event, booking.BookingID, error) {
	id, err := booking.ParseBookingID(text)
	if err != nil {
		return nil, id, noBooking
	}
	e, err := a.Catalog.Event(ctx, id.Event)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, id, noBooking
	}
	return e, id, err
}

func (a *API) getBooking(ctx context.Context, in *bookingInput) (*bookingOutput, error) {
	e, b, err := a.readable(ctx, in.Booking, in.Link, callOf(ctx).customer)
	if err != nil {
		return nil, err
	}
	if b, err = a.Booking.LookAgain(ctx, b); err != nil {
		return nil, err
	}
	out, err := a.booking(ctx, e, &b)
	return &bookingOutput{out}, err
}

func (a *API) listBookings(ctx context.Context, _ *struct{}) (*bookingListOutput, error) {
	list, err := a.Booking.BookingsOf(ctx, callOf(ctx).customer, MaxBookingsListed)
	if err != nil {
		return nil, err
	}
	out := &bookingListOutput{BookingList{Items: make([]Booking, len(list))}}
	for i := range list {
		e, err := a.Catalog.Event(ctx, list[i].ID.Event)
		if err != nil {
			return nil, err
		}
		if out.Body.Items[i], err = a.booking(ctx, e, &list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// booking writes a booking the way its buyer sees it.
func (a *API) booking(ctx context.Context, e *catalog.Event, b *booking.Booking) (Booking, error) {
	seats, pools, err := a.places(ctx, e, b.Seats, b.Units)
	if err != nil {
		return Booking{}, err
	}
	out := Booking{
		BookingID: b.ID.String(), HoldID: b.Hold().String(), EventID: e.ID.String(), Status: b.Status.String(), Reason: b.Reason,
		Price: amount(b.Price), Email: b.Buyer.Email, Name: b.Buyer.Name, Seats: seats, Pools: pools,
		CreatedAt: b.CreatedAt.UTC(), Link: a.link(e, b.ID),
	}
	if b.Status == booking.BookingCancelled || b.Refund > 0 {
		refund := amount(money.Money{Amount: b.Refund, Currency: b.Price.Currency})
		out.Refund = &refund
	}
	out.Tickets, err = a.tickets(ctx, b.ID)
	return out, err
}

func (a *API) quoteCancellation(ctx context.Context, in *quoteInput) (*quoteOutput, error) {
	c := callOf(ctx)
	key, err := idempotencyKey(c.r)
	if err != nil {
		return nil, err
	}
	_, id, err := a.bookingID(ctx, in.Booking)
	if err != nil {
		return nil, err
	}
	q, err := a.Booking.Quote(ctx, id, c.customer, key)
	if err != nil {
		return nil, err
	}
	return &quoteOutput{
		Location: bookingPath(id) + "/cancellation/" + q.ID.String(),
		Body:     Quote{QuoteID: q.ID.String(), Refund: amount(q.Refund), ExpiresAt: q.ExpiresAt.UTC()},
	}, nil
}

func (a *API) cancelBooking(ctx context.Context, in *cancelInput) (*bookingOutput, error) {
	e, id, err := a.bookingID(ctx, in.Booking)
	if err != nil {
		return nil, err
	}
	quote, err := booking.ParseQuoteID(in.Quote)
	if err != nil {
		return nil, httpd.NotFound.Problem("There is no such quote of this booking.")
	}
	b, err := a.Booking.Cancel(ctx, id, callOf(ctx).customer, quote)
	if err != nil {
		return nil, err
	}
	out, err := a.booking(ctx, e, &b)
	return &bookingOutput{out}, err
}
