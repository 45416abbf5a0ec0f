package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
)

const tagStaff = "Staff"

// NewEvent is an event to be made.
type NewEvent struct {
	Kind          string           `json:"kind" enum:"cinema,concert,flight" doc:"Chooses the preset of the policy."`
	Slug          string           `json:"slug,omitempty" maxLength:"80" doc:"Made from the title when left out."`
	Title         string           `json:"title" maxLength:"200"`
	Venue         Venue            `json:"venue"`
	StartsAt      time.Time        `json:"startsAt"`
	SaleOpensAt   *time.Time       `json:"saleOpensAt,omitempty" doc:"Now when left out."`
	SaleClosesAt  *time.Time       `json:"saleClosesAt,omitempty" doc:"The start when left out."`
	Currency      string           `json:"currency" maxLength:"3" doc:"ISO 4217 code."`
	LayoutID      string           `json:"layoutId,omitempty" maxLength:"128" doc:"The newest version of the layout is taken. Without one the event has pools only."`
	LayoutVersion int              `json:"layoutVersion,omitempty" minimum:"0" doc:"Instead of the newest."`
	Prices        map[string]int64 `json:"prices,omitempty" doc:"Minor units by price band of the layout."`
	Pools         []NewPool        `json:"pools,omitempty" maxItems:"64"`
	Origin        string           `json:"origin,omitempty" maxLength:"3" doc:"IATA code; flights need it."`
	Destination   string           `json:"destination,omitempty" maxLength:"3" doc:"IATA code; flights need it."`
	Policy        *PolicyChange    `json:"policy,omitempty" doc:"What differs from the preset of the kind."`
}

// NewPool is a counted stock to be made.
type NewPool struct {
	Pool     string `json:"pool" maxLength:"80"`
	Capacity int64  `json:"capacity" minimum:"0" maximum:"10000000" doc:"Units. A standing area of the layout that has a price and no pool gets one by itself."`
	Overbook int64  `json:"overbook,omitempty" minimum:"0" maximum:"10000000" doc:"Units sold beyond the capacity."`
	Buckets  *int   `json:"buckets,omitempty" minimum:"1" maximum:"64" doc:"Rows that the stock is split into; chosen by the size when left out."`
	Price    *int64 `json:"price,omitempty" minimum:"0" doc:"Minor units, for a unit without a seat or a seat whose band has no price; left out, that of the pool's name in prices."`
}

// PolicyChange has the fields of a policy that differ.
type PolicyChange struct {
	HoldSeconds          *int64             `json:"holdSeconds,omitempty"`
	PaymentSeconds       *int64             `json:"paymentSeconds,omitempty"`
	ExtendSeconds        *int64             `json:"extendSeconds,omitempty"`
	HoldCeilingSeconds   *int64             `json:"holdCeilingSeconds,omitempty"`
	MaxPlacesPerHold     *int               `json:"maxPlacesPerHold,omitempty"`
	MaxPlacesPerCustomer *int               `json:"maxPlacesPerCustomer,omitempty"`
	MaxHoldsPerMinute    *int               `json:"maxHoldsPerMinute,omitempty"`
	WaitingRoom          *WaitingRoomChange `json:"waitingRoom,omitempty"`
	Cancellation         *[]Cancellation    `json:"cancellation,omitempty" maxItems:"20"`
	Orphans              *string            `json:"orphans,omitempty" enum:"allow,avoid,forbid"`
}

// WaitingRoomChange has the fields of a waiting room that differ.
type WaitingRoomChange struct {
	Enabled            *bool  `json:"enabled,omitempty"`
	PerSecond          *int   `json:"perSecond,omitempty"`
	MaxActive          *int   `json:"maxActive,omitempty"`
	PassSeconds        *int64 `json:"passSeconds,omitempty"`
	OpensSecondsBefore *int64 `json:"opensSecondsBefore,omitempty"`
}

func (p *PolicyChange) draft() *catalog.PolicyDraft {
	if p == nil {
		return nil
	}
	d := &catalog.PolicyDraft{
		HoldSeconds: p.HoldSeconds, PaymentSeconds: p.PaymentSeconds, ExtendSeconds: p.ExtendSeconds, HoldCeilingSeconds: p.HoldCeilingSeconds,
		MaxPlacesPerHold: p.MaxPlacesPerHold, MaxPlacesPerCustomer: p.MaxPlacesPerCustomer, MaxHoldsPerMinute: p.MaxHoldsPerMinute,
		Orphans: (*catalog.Orphans)(p.Orphans),
	}
	if w := p.WaitingRoom; w != nil {
		d.WaitingRoom = &catalog.WaitingRoomDraft{
			Enabled: w.Enabled, PerSecond: w.PerSecond, MaxActive: w.MaxActive, PassSeconds: w.PassSeconds, OpensSecondsBefore: w.OpensSecondsBefore,
		}
	}
	if p.Cancellation != nil {
		d.Cancellation = []catalog.CancellationDraft{} // not nil: no rule at all is a choice too
		for _, r := range *p.Cancellation {
			d.Cancellation = append(d.Cancellation, catalog.CancellationDraft{UntilSecondsBefore: int64(r.UntilSecondsBefore), RefundPercent: r.RefundPercent})
		}
	}
	return d
}

type createEventInput struct{ Body NewEvent }

// MadeEvent names a new event.
type MadeEvent struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

type createEventOutput struct {
	Location string `header:"Location"`
	Body     MadeEvent
}

// StaffEvent is an event with what only staff see.
type StaffEvent struct {
	Event

	Paused  bool    `json:"paused"`
	Stocks  []Stock `json:"stocks" doc:"The pools with their limits."`
	Version int     `json:"version" doc:"Counts edits; the ETag has it."`
}

// Stock is a pool with its limits.
type Stock struct {
	Pool     string `json:"pool"`
	Capacity int64  `json:"capacity"`
	Overbook int64  `json:"overbook"`
	Buckets  int    `json:"buckets"`
	Price    int64  `json:"price" doc:"Minor units."`
}

type staffEventInput struct {
	Event string `path:"event" doc:"Id or slug."`
}

type staffEventOutput struct {
	ETag string `header:"ETag" doc:"For If-Match."`
	Body StaffEvent
}

// EventChange has the fields of an event to be changed; the others stay.
type EventChange struct {
	Title        *string           `json:"title,omitempty" maxLength:"200"`
	StartsAt     *time.Time        `json:"startsAt,omitempty"`
	SaleOpensAt  *time.Time        `json:"saleOpensAt,omitempty"`
	SaleClosesAt *time.Time        `json:"saleClosesAt,omitempty"`
	Prices       *map[string]int64 `json:"prices,omitempty" doc:"Minor units; bands that are not named keep theirs. Holds keep the price that they were told."`
	Pools        []PoolChange      `json:"pools,omitempty" maxItems:"64"`
	Policy       *PolicyChange     `json:"policy,omitempty"`
	Paused       *bool             `json:"paused,omitempty"`
}

// PoolChange has the limits of a pool to be changed.
type PoolChange struct {
	Pool     string `json:"pool" maxLength:"80"`
	Capacity *int64 `json:"capacity,omitempty" minimum:"0" maximum:"10000000" doc:"Never below what is held and sold."`
	Overbook *int64 `json:"overbook,omitempty" minimum:"0" maximum:"10000000"`
	Price    *int64 `json:"price,omitempty" minimum:"0"`
}

type editEventInput struct {
	Event   string `path:"event" doc:"Id or slug."`
	IfMatch string `header:"If-Match" doc:"Required: the ETag of the last read."`
	Body    EventChange
}

// SeatNames names seats.
type SeatNames struct {
	Seats []string `json:"seats" minItems:"1" maxItems:"10000"`
}

type blockInput struct {
	Event string `path:"event" doc:"Id or slug."`
	Body  SeatNames
}

func (a *API) adminEventRoutes() {
	register(a, operation{
		id: "create-event", method: http.MethodPost, path: "/v1/admin/events", tag: tagStaff, access: staff, status: http.StatusCreated,
		summary: "Make an event", errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, a.createEvent)
	register(a, operation{
		id: "get-staff-event", method: http.MethodGet, path: "/v1/admin/events/{event}", tag: tagStaff, access: staff,
		summary: "An event with what only staff see", errors: []int{http.StatusNotFound},
	}, a.getStaffEvent)
	register(a, operation{
		id: "edit-event", method: http.MethodPatch, path: "/v1/admin/events/{event}", tag: tagStaff, access: staff,
		summary: "Change an event",
		errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired,
			http.StatusUnprocessableEntity},
		description: "Fields that are left out stay. A pool's limit cannot be lowered below what is held and sold.",
	}, a.editEvent)
	for _, p := range []struct {
		verb, summary string
		paused        bool
	}{{"pause", "Stop the sale; holds and bookings are kept", true}, {"resume", "Go on with the sale", false}} {
		register(a, operation{
			id: p.verb + "-event", method: http.MethodPost, path: "/v1/admin/events/{event}/" + p.verb, tag: tagStaff, access: staff,
			summary: p.summary, errors: []int{http.StatusNotFound, http.StatusPreconditionFailed}, description: "Doing it again changes nothing. The request needs no body.",
		}, func(ctx context.Context, in *staffEventInput) (*staffEventOutput, error) {
			return a.setPaused(ctx, in.Event, p.paused)
		})
	}
	for _, b := range []struct {
		id, method, summary string
		unblock             bool
	}{
		{"block-seats", http.MethodPost, "Take free seats off sale, all or none", false},
		{"unblock-seats", http.MethodDelete, "Put blocked seats back on sale", true},
	} {
		register(a, operation{
			id: b.id, method: b.method, path: "/v1/admin/events/{event}/blocks", tag: tagStaff, access: staff, status: http.StatusNoContent,
			summary: b.summary, errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
			body: maxBlockBody, description: "Seats that are so already stay so.",
		}, func(ctx context.Context, in *blockInput) (*struct{}, error) { return nil, a.block(ctx, in, b.unblock) })
	}
}

// maxBlockBody fits 10,000 seat codes.
const maxBlockBody = 1 << 20

func (a *API) createEvent(ctx context.Context, in *createEventInput) (*createEventOutput, error) {
	b := &in.Body
	d := catalog.Draft{
		Kind: catalog.Kind(b.Kind), Slug: b.Slug, Title: b.Title, Venue: catalog.Venue(b.Venue), StartsAt: b.StartsAt, Currency: b.Currency,
		LayoutID: b.LayoutID, LayoutVersion: b.LayoutVersion, Prices: b.Prices, Origin: b.Origin, Destination: b.Destination, Policy: b.Policy.draft(),
	}
	if b.SaleOpensAt != nil {
		d.SaleOpensAt = *b.SaleOpensAt
	}
	if b.SaleClosesAt != nil {
		d.SaleClosesAt = *b.SaleClosesAt
	}
	for _, p := range b.Pools {
		d.Pools = append(d.Pools, catalog.PoolDraft{Pool: p.Pool, Capacity: p.Capacity, Overbook: p.Overbook, Buckets: p.Buckets, Price: p.Price})
	}
	e, err := a.Catalog.CreateEvent(ctx, d)
	if err != nil {
		return nil, err
	}
	return &createEventOutput{
		Location: "/v1/admin/events/" + e.ID.String(), Body: MadeEvent{ID: e.ID.String(), Slug: e.Slug},
	}, nil
}

func (a *API) getStaffEvent(ctx context.Context, in *staffEventInput) (*staffEventOutput, error) {
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	return a.staffEvent(ctx, e)
}

func (a *API) staffEvent(ctx context.Context, e *catalog.Event) (*staffEventOutput, error) {
	page, _, err := a.eventPage(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &staffEventOutput{ETag: eventTag(e.Version), Body: StaffEvent{Event: page, Paused: e.Paused, Stocks: make([]Stock, len(e.Pools)), Version: e.Version}}
	for i, p := range e.Pools {
		out.Body.Stocks[i] = Stock{Pool: p.Name, Capacity: p.Capacity, Overbook: p.Overbook, Buckets: p.Buckets, Price: p.Price}
	}
	return out, nil
}

func eventTag(version int) string { return fmt.Sprintf(`"%d"`, version) }

// matched reads If-Match. Only the current version can be edited, so the tag is compared with that of what is known, and by the store once more.
func matched(field string, e *catalog.Event) (version int, err error) {
	switch field = strings.TrimSpace(field); {
	case field == "":
		return 0, httpd.PreconditionRequired.Problem("")
	case field == "*" || slices.ContainsFunc(strings.Split(field, ","), func(tag string) bool { return strings.TrimSpace(tag) == eventTag(e.Version) }):
		return e.Version, nil
	}
	return 0, httpd.PreconditionFailed.Problem("")
}

func (a *API) editEvent(ctx context.Context, in *editEventInput) (*staffEventOutput, error) {
	a.edits.Lock()
	defer a.edits.Unlock()
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	version, err := matched(in.IfMatch, e)
	if err != nil {
		return nil, err
	}
	undo, err := a.setPools(ctx, e, in.Body.Pools)
	if err == nil {
		e, err = a.Catalog.EditEvent(ctx, e.ID, in.Body.edit(version))
	}
	if err != nil {
		// The limits are the engine's rows, the rest is the catalog's: when the second is refused the first goes back.
		for _, u := range undo {
			if back := a.Booking.SetPool(ctx, u); back != nil {
				err = errors.Join(err, fmt.Errorf("limits of pool %d of %v: %w", u.Pool, u.Event, back))
			}
		}
		return nil, err
	}
	return a.staffEvent(ctx, e)
}

// setPools changes limits, and gives what takes the changes back. One that is as the catalog has it already is set all the same: after a crash in the
// middle of an edit that is how staff put the engine right.
func (a *API) setPools(ctx context.Context, e *catalog.Event, changes []PoolChange) (undo []booking.SetPool, err error) {
	for i, p := range changes {
		no, ok := e.Pool(p.Pool)
		if !ok {
			return undo, input("unknown-pool", fmt.Sprintf("/pools/%d/pool", i), "pools can be changed, not added; name one of the event")
		}
		before := booking.SetPool{Event: e.ID, Pool: no, Capacity: e.Pools[no].Capacity, Overbook: e.Pools[no].Overbook}
		after := before
		set(&after.Capacity, p.Capacity)
		set(&after.Overbook, p.Overbook)
		if err := a.Booking.SetPool(ctx, after); err != nil {
			return undo, err
		}
		undo = append(undo, before)
	}
	return undo, nil
}

// edit is the change as the catalog takes it.
func (c *EventChange) edit(version int) catalog.Edit {
	x := catalog.Edit{
		Version: version, Title: c.Title, StartsAt: c.StartsAt, SaleOpensAt: c.SaleOpensAt, SaleClosesAt: c.SaleClosesAt, Paused: c.Paused,
		Policy: c.Policy.draft(),
	}
	if c.Prices != nil {
		x.Prices = *c.Prices
	}
	for _, p := range c.Pools {
		x.Pools = append(x.Pools, catalog.PoolEdit{Pool: p.Pool, Capacity: p.Capacity, Overbook: p.Overbook, Price: p.Price})
	}
	return x
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (a *API) setPaused(ctx context.Context, event string, paused bool) (*staffEventOutput, error) {
	e, err := a.event(ctx, event)
	if err != nil {
		return nil, err
	}
	if e.Paused != paused {
		e, err = a.Catalog.EditEvent(ctx, e.ID, catalog.Edit{Paused: &paused})
		if err != nil {
			return nil, err
		}
	}
	return a.staffEvent(ctx, e)
}

func (a *API) block(ctx context.Context, in *blockInput, unblock bool) error {
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return err
	}
	if err := a.Booking.Block(ctx, e, in.Body.Seats, unblock); err != nil {
		return a.named(ctx, e, err)
	}
	return nil
}
