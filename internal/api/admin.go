package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/ticket"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// MaxBookingsFound is how many bookings a search of staff lists, the newest.
const MaxBookingsFound = 100

// NewLayout is what adding a layout answers.
type NewLayout struct {
	LayoutID string          `json:"layoutId"`
	Version  int             `json:"version"`
	Seats    int             `json:"seats"`
	Warnings []LayoutWarning `json:"warnings" doc:"What was left out or changed of a pretix plan."`
}

// LayoutWarning is something that its owner may want to know.
type LayoutWarning struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

type addLayoutInput struct {
	RawBody []byte `contentType:"application/octet-stream"`
}

type addLayoutOutput struct {
	Location string `header:"Location"`
	Body     NewLayout
}

// StaffBooking is a booking with its payments.
type StaffBooking struct {
	Booking

	CustomerID string         `json:"customerId"`
	Payments   []StaffPayment `json:"payments"`
}

// StaffPayment is one attempt to take money.
type StaffPayment struct {
	PaymentID string    `json:"paymentId"`
	Provider  string    `json:"provider"`
	Reference string    `json:"reference,omitempty" doc:"The provider's own id."`
	Status    string    `json:"status"`
	Price     Money     `json:"price"`
	Charged   Money     `json:"charged"`
	Owed      Money     `json:"owed" doc:"Refunds that were decided."`
	Refunded  Money     `json:"refunded" doc:"Refunds that the provider has done."`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// StaffBookingList is a list of bookings.
type StaffBookingList struct {
	Items []StaffBooking `json:"items"`
}

type findBookingsInput struct {
	Email string `query:"email" maxLength:"254" doc:"The buyer's mail address, in any case."`
	Code  string `query:"code" maxLength:"512" doc:"A ticket's code, a ticket's id or a booking's id."`
}

type findBookingsOutput struct{ Body StaffBookingList }

type staffBookingInput struct {
	Booking string `path:"booking"`
}

type staffBookingOutput struct{ Body StaffBooking }

// RefundRequest cancels a booking.
type RefundRequest struct {
	Amount *int64 `json:"amount,omitempty" minimum:"0" doc:"Minor units; all that was charged when left out."`
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"The buyer is told."`
}

type refundInput struct {
	Booking string `path:"booking"`
	Body    RefundRequest
}

// AuditReport is the promises recomputed from the tables.
type AuditReport struct {
	OK         bool                `json:"ok"`
	Violations []booking.Violation `json:"violations"`
}

type auditOutput struct{ Body AuditReport }

// Stats counts the places of an event, in one snapshot of the database.
type Stats struct {
	Total Counts       `json:"total" doc:"Seats, and units of pools beyond their seats."`
	Bands []BandCounts `json:"bands" doc:"Seats by price band."`
	Pools []PoolCounts `json:"pools"`
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

type statsOutput struct{ Body Stats }

func (a *API) adminRoutes() {
	register(a, operation{
		id: "add-layout", method: http.MethodPost, path: "/v1/admin/layouts", tag: tagStaff, access: staff, status: http.StatusCreated,
		summary: "Add a layout", errors: []int{http.StatusUnprocessableEntity}, body: httpd.MaxLayoutBody,
		description: "An own layout JSON or a pretix seating plan, told apart by content. The same content again is the version that is there; other content under the same name is its next version.",
	}, a.addLayout)
	a.huma.OpenAPI().Paths["/v1/admin/layouts"].Post.RequestBody = &huma.RequestBody{
		Required: true, Description: "A layout (docs/layouts.md) or a pretix seating plan.",
		Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}},
	}
	a.adminEventRoutes()
	register(a, operation{
		id: "find-bookings", method: http.MethodGet, path: "/v1/admin/bookings", tag: tagStaff, access: staff,
		summary: "Find bookings by mail address or code", errors: []int{http.StatusUnprocessableEntity},
	}, a.findBookings)
	register(a, operation{
		id: "get-staff-booking", method: http.MethodGet, path: "/v1/admin/bookings/{booking}", tag: tagStaff, access: staff,
		summary: "A booking with its payments", errors: []int{http.StatusNotFound},
	}, a.getStaffBooking)
	register(a, operation{
		id: "refund-booking", method: http.MethodPost, path: "/v1/admin/bookings/{booking}/refund", tag: tagStaff, access: staff,
		summary: "Cancel a booking and give money back, whatever its rules say", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, a.refundBooking)
	register(a, operation{
		id: "audit-event", method: http.MethodGet, path: "/v1/admin/events/{event}/audit", tag: tagStaff, access: staff,
		summary: "Recompute the promises from the tables", errors: []int{http.StatusNotFound},
		description: "Every place has at most one owner, counts agree with what they count, every payment ended in one booking or one refund.",
	}, a.audit)
	if a.Picture != nil {
		register(a, operation{
			id: "get-event-stats", method: http.MethodGet, path: "/v1/admin/events/{event}/stats", tag: tagStaff, access: staff,
			summary: "How many places are available, held and sold", errors: []int{http.StatusNotFound},
		}, a.stats)
	}
}

func (a *API) addLayout(ctx context.Context, in *addLayoutInput) (*addLayoutOutput, error) {
	added, err := a.Catalog.AddLayout(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	out := &addLayoutOutput{
		Location: layoutRef(added.Ref).URL,
		Body: NewLayout{
			LayoutID: added.Ref.ID, Version: added.Ref.Version, Seats: len(added.Layout.Seats), Warnings: make([]LayoutWarning, len(added.Warnings)),
		},
	}
	for i, w := range added.Warnings {
		out.Body.Warnings[i] = LayoutWarning(w)
	}
	return out, nil
}

func (a *API) findBookings(ctx context.Context, in *findBookingsInput) (*findBookingsOutput, error) {
	var found []booking.Booking
	switch {
	case (in.Email == "") == (in.Code == ""):
		return nil, httpd.Validation.Field("email", "Send either email or code.")
	case in.Email != "":
		var err error
		if found, err = a.Booking.FindBookings(ctx, in.Email, MaxBookingsFound); err != nil {
			return nil, err
		}
	default:
		b, err := a.bookingByCode(ctx, in.Code)
		if errors.Is(err, booking.ErrNotFound) || errors.Is(err, ticket.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	out := &findBookingsOutput{StaffBookingList{Items: make([]StaffBooking, len(found))}}
	for i := range found {
		var err error
		if out.Body.Items[i], err = a.staffBooking(ctx, &found[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bookingByCode finds the booking of a ticket's code, whatever its key, since staff want to know about void ones too; or of an id.
func (a *API) bookingByCode(ctx context.Context, code string) (booking.Booking, error) {
	if id, err := booking.ParseBookingID(code); err == nil {
		return a.Booking.AnyBooking(ctx, id)
	}
	id, err := booking.ParseTicketID(code)
	if err != nil {
		claims, err := ticket.Verify(a.ticketKey, code, a.Now())
		if err != nil && !errors.Is(err, ticket.ErrCodeExpired) {
			return booking.Booking{}, booking.ErrNotFound
		}
		id = claims.Ticket
	}
	t, err := a.Tickets.Ticket(ctx, id)
	if err != nil {
		return booking.Booking{}, err
	}
	return a.Booking.AnyBooking(ctx, t.Booking)
}

func (a *API) getStaffBooking(ctx context.Context, in *staffBookingInput) (*staffBookingOutput, error) {
	_, id, err := a.bookingID(ctx, in.Booking)
	if err != nil {
		return nil, err
	}
	b, err := a.Booking.AnyBooking(ctx, id)
	if err != nil {
		return nil, err
	}
	out, err := a.staffBooking(ctx, &b)
	return &staffBookingOutput{out}, err
}

func (a *API) refundBooking(ctx context.Context, in *refundInput) (*staffBookingOutput, error) {
	_, id, err := a.bookingID(ctx, in.Booking)
	if err != nil {
		return nil, err
	}
	if err := printable("/reason", in.Body.Reason); err != nil {
		return nil, err
	}
	c := booking.StaffCancel{Refund: -1, Reason: in.Body.Reason}
	if in.Body.Amount != nil {
		c.Refund = *in.Body.Amount
	}
	b, err := a.Booking.CancelByStaff(ctx, id, c)
	if err != nil {
		return nil, err
	}
	out, err := a.staffBooking(ctx, &b)
	return &staffBookingOutput{out}, err
}

func (a *API) staffBooking(ctx context.Context, b *booking.Booking) (StaffBooking, error) {
	e, err := a.Catalog.Event(ctx, b.ID.Event)
	if err != nil {
		return StaffBooking{}, err
	}
	page, err := a.booking(ctx, e, b)
	if err != nil {
		return StaffBooking{}, err
	}
	pays, err := a.Booking.PaymentsOf(ctx, b.ID)
	if err != nil {
		return StaffBooking{}, err
	}
	out := StaffBooking{Booking: page, CustomerID: b.Customer.String(), Payments: make([]StaffPayment, len(pays))}
	for i, p := range pays {
		charged := amount(p.Charged)
		if charged.Currency == "" { // nothing was charged yet
			charged.Currency = p.Price.Currency
		}
		back := func(n int64) Money { return amount(money.Money{Amount: n, Currency: charged.Currency}) }
		out.Payments[i] = StaffPayment{
			PaymentID: p.ID.String(), Provider: p.Provider, Reference: p.Reference, Status: p.Status.String(), Price: amount(p.Price), Charged: charged,
			Owed: back(p.Owed), Refunded: back(p.Refunded), CreatedAt: p.CreatedAt.UTC(), ExpiresAt: p.ExpiresAt.UTC(),
		}
	}
	return out, nil
}

func (a *API) audit(ctx context.Context, in *staffEventInput) (*auditOutput, error) {
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	found, err := a.Booking.Audit(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []booking.Violation{}
	}
	return &auditOutput{AuditReport{OK: len(found) == 0, Violations: found}}, nil
}

func (a *API) stats(ctx context.Context, in *staffEventInput) (*statsOutput, error) {
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	var layout *venue.Layout
	if e.Layout != (catalog.LayoutRef{}) {
		if layout, err = a.layoutOf(ctx, e); err != nil {
			return nil, err
		}
	}
	news, err := a.Picture(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	return &statsOutput{count(e, layout, news, a.Booking.Now())}, nil
}

// count sums a picture up. Holds whose time is over count as available, settled or not.
func count(e *catalog.Event, layout *venue.Layout, news board.News, now time.Time) Stats {
	ms := now.UnixMilli()
	bands := map[string]*Counts{}
	out := Stats{Bands: []BandCounts{}, Pools: make([]PoolCounts, len(e.Pools))}
	seated := make([]Counts, len(e.Pools)) // of the seats that belong to each pool
	if layout != nil {
		states := make([]board.Status, len(layout.Seats))
		for _, s := range news.Seats {
			if s.Status != board.Held || ms <= s.Until {
				states[s.No] = s.Status
			}
		}
		for _, band := range layout.Bands {
			bands[band] = &Counts{}
		}
		for no, s := range states {
			bands[layout.Seats[no].Band].add(s)
			if i, ok := e.Pool(layout.Seats[no].Pool); ok {
				seated[i].add(s)
			}
		}
		for _, band := range layout.Bands {
			out.Bands = append(out.Bands, BandCounts{Band: band, Counts: *bands[band]})
			out.Total.sum(*bands[band])
		}
	}
	over := make([]int64, len(e.Pools))
	for _, c := range news.Claims {
		for _, u := range c.Units {
			if c.Live && ms > c.Until {
				over[u.Pool] += u.N
			}
		}
	}
	for i, p := range e.Pools {
		out.Pools[i] = PoolCounts{Pool: p.Name, Capacity: p.Capacity, Overbook: p.Overbook}
	}
	for _, b := range news.Buckets {
		p := &out.Pools[b.Pool]
		p.Held += b.Held
		p.Sold += b.Sold
		p.Available += b.Room - b.Held - b.Sold
	}
	for i := range out.Pools {
		p := &out.Pools[i]
		p.Held -= over[i]
		p.Available += over[i]
		// The seats of a pool were counted by their band; what is beyond them has no seat.
		s := seated[i]
		out.Total.sum(Counts{
			Available: max(0, p.Available-s.Available), Held: max(0, p.Held-s.Held), Sold: max(0, p.Sold-s.Sold),
		})
	}
	return out
}

func (c *Counts) add(s board.Status) {
	switch s {
	case board.Available:
		c.Available++
	case board.Held:
		c.Held++
	case board.Sold:
		c.Sold++
	case board.Blocked:
		c.Blocked++
	}
}

func (c *Counts) sum(o Counts) {
	c.Available += o.Available
	c.Held += o.Held
	c.Sold += o.Sold
	c.Blocked += o.Blocked
}
