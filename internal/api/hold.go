package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// MaxIdempotencyKey is the length of the longest Idempotency-Key, in bytes.
const MaxIdempotencyKey = 255

// HoldRequest asks for places in one of four forms.
type HoldRequest struct {
	Seats    *[]string    `json:"seats,omitempty" maxItems:"100" doc:"Codes of seats, exactly as the layout spells them. With pool: they must belong to it."`
	Pool     *string      `json:"pool,omitempty" maxLength:"80" doc:"Name of a pool: a standing area, a fare class."`
	Quantity *int64       `json:"quantity,omitempty" maximum:"1000000" minimum:"-1000000" doc:"Units of the pool, from 1 to the policy's maxPlacesPerHold."`
	Best     *BestRequest `json:"best,omitempty" doc:"Let the house choose."`
	Replaces *string      `json:"replaces,omitempty" maxLength:"64" doc:"An own hold of this event: its places count as free, and are given back in the same step."`
}

// BestRequest narrows the choice.
type BestRequest struct {
	Quantity   int64  `json:"quantity" maximum:"1000000" minimum:"-1000000" doc:"How many seats, from 1 to the policy's maxPlacesPerHold."`
	Section    string `json:"section,omitempty" maxLength:"80" doc:"Only in this section."`
	Band       string `json:"band,omitempty" maxLength:"80" doc:"Only of this price band."`
	Pool       string `json:"pool,omitempty" maxLength:"80" doc:"Only of this pool."`
	Wheelchair bool   `json:"wheelchair,omitempty" doc:"With a wheelchair place."`
}

// Hold is places taken for minutes.
type Hold struct {
	HoldID    string      `json:"holdId"`
	EventID   string      `json:"eventId"`
	State     string      `json:"state" enum:"held,booked,released,expired"`
	Seats     []string    `json:"seats"`
	Pools     []PoolUnits `json:"pools" doc:"Units of pools, those that seats take included."`
	Price     Money       `json:"price" doc:"Frozen: what was told is what is paid."`
	ExpiresAt time.Time   `json:"expiresAt" doc:"The places are the customer's until this instant."`
	CeilingAt time.Time   `json:"ceilingAt" doc:"The latest end that more time can reach."`
	BookingID string      `json:"bookingId,omitempty" doc:"Once it is booked."`
	Together  *bool       `json:"together,omitempty" doc:"Of a best choice: all in one row, side by side."`
}

// PoolUnits are places of a pool.
type PoolUnits struct {
	Pool     string `json:"pool"`
	Quantity int64  `json:"quantity"`
}

type placeHoldInput struct {
	Event string `path:"event" doc:"Id or slug."`
	Key   string `header:"Idempotency-Key" doc:"Makes the request safe to repeat: the answer is the first one's. 1 to 255 visible ASCII characters, best random."`
	Body  HoldRequest
}

type placeHoldOutput struct {
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed" doc:"true: the answer of an earlier request with the same Idempotency-Key."`
	Body     Hold
}

type holdInput struct {
	Hold string `path:"hold"`
}

type holdOutput struct{ Body Hold }

func (a *API) holdRoutes() {
	const tag = "Holds"
	register(a, operation{
		id: "place-hold", method: http.MethodPost, path: "/v1/events/{event}/holds", tag: tag, access: customer, status: http.StatusCreated,
		summary: "Hold places, all or none",
		errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity,
			http.StatusTooManyRequests},
		description: "Ask for `seats`, or `pool` and `quantity`, or `pool` and `seats`, or `best`. Lost places are a 409 `places-gone` that names them in `seats` or " +
			"`pools`, with `alternatives` where there are. Refused holds are not counted against the limit of holds per minute; replacing an own hold has a limit of its own.",
	}, a.placeHold)
	register(a, operation{
		id: "get-hold", method: http.MethodGet, path: "/v1/holds/{hold}", tag: tag, access: customer,
		summary: "Look at an own hold", errors: []int{http.StatusNotFound},
	}, a.getHold)
	register(a, operation{
		id: "release-hold", method: http.MethodDelete, path: "/v1/holds/{hold}", tag: tag, access: customer, status: http.StatusNoContent,
		summary: "Give an own hold back at once", errors: []int{http.StatusNotFound, http.StatusConflict},
		description: "Doing it again, or when the hold has ended, is answered the same. A booked hold is a 409: cancel its booking.",
	}, a.releaseHold)
	register(a, operation{
		id: "extend-hold", method: http.MethodPost, path: "/v1/holds/{hold}/extension", tag: tag, access: customer,
		summary: "More time for an own hold", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusGone},
		description: "Adds the policy's extendSeconds, up to the hold's ceiling. The request needs no body.",
	}, a.extendHold)
}

func (a *API) placeHold(ctx context.Context, in *placeHoldInput) (*placeHoldOutput, error) {
	c := callOf(ctx)
	key, err := idempotencyKey(c.r)
	if err != nil {
		return nil, err
	}
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	p, err := in.Body.ask()
	if err != nil {
		return nil, err
	}
	if in.Body.Replaces != nil {
		if p.Replaces, err = booking.ParseHoldID(*in.Body.Replaces); err != nil || p.Replaces.Event != e.ID {
			return nil, httpd.NotFound.Field("#/replaces", "This is not a hold of yours for this event.")
		}
	}
	p.Event, p.Customer, p.Key = e, c.customer, key

	counted, err := a.limits.take(c.w.Header(), buyer{c.customer, e.ID}, &e.Policy, in.Body.Replaces != nil, a.Now())
	if err != nil {
		return nil, err
	}
	placed, err := a.Place(ctx, p)
	// Only what took places counts: a refusal and a repetition do not.
	counted.tell(c.w.Header(), err == nil && !placed.Replay)
	if err != nil {
		return nil, a.named(ctx, e, err)
	}
	hold, err := a.hold(ctx, e, &placed.Hold)
	if err != nil {
		return nil, err
	}
	out := &placeHoldOutput{Location: "/v1/holds/" + hold.HoldID, Body: hold}
	if p.Best != nil {
		out.Body.Together = &placed.Together
	}
	if placed.Replay {
		out.Replayed = "true"
	}
	return out, nil
}

// ask makes the engine's question out of exactly one of the four forms.
func (r *HoldRequest) ask() (booking.PlaceHold, error) {
	var p booking.PlaceHold
	switch {
	case r.Best != nil && (r.Seats != nil || r.Pool != nil || r.Quantity != nil):
		return p, input("validation", "/best", "ask for best alone: its own fields narrow the choice")
	case r.Best != nil:
		b := r.Best
		p.Best = &booking.Best{Quantity: int(b.Quantity), Section: b.Section, Band: b.Band, Pool: b.Pool, Wheelchair: b.Wheelchair}
		return p, nil
	case r.Seats != nil && r.Quantity != nil:
		return p, input("validation", "/quantity", "the seats are the quantity: leave this out")
	case r.Seats != nil && len(*r.Seats) == 0:
		return p, input("nothing-asked", "/seats", "name at least one seat")
	case r.Seats != nil:
		p.Seats = *r.Seats
		if r.Pool != nil {
			p.Pool = *r.Pool
		}
		return p, nil
	case r.Pool == nil && r.Quantity != nil:
		return p, input("validation", "/pool", "say of which pool")
	case r.Pool != nil && r.Quantity == nil:
		return p, input("nothing-asked", "/quantity", "say how many units, or which seats of the pool")
	case r.Pool == nil:
		return p, input("nothing-asked", "", "name seats, or a pool and a quantity, or best")
	}
	p.Pool, p.Quantity = *r.Pool, int(*r.Quantity)
	if p.Pool == "" {
		return p, input("unknown-pool", "/pool", "name a pool of the event")
	}
	return p, nil
}

func input(code, pointer, detail string) error {
	return &booking.InputError{Code: code, Pointer: pointer, Detail: detail}
}

// idempotencyKey reads the key of a request (draft-ietf-httpapi-idempotency-key-header-08); empty: there is none. It is taken as it is, quotes included.
func idempotencyKey(r *http.Request) (string, error) {
	fields, given := r.Header["Idempotency-Key"]
	if !given {
		return "", nil
	}
	key := fields[0]
	if len(fields) != 1 || key == "" || len(key) > MaxIdempotencyKey {
		return "", httpd.IdempotencyKeyInvalid.Problem("")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", httpd.IdempotencyKeyInvalid.Problem("")
		}
	}
	return key, nil
}

// hold writes a hold the way clients see it.
func (a *API) hold(ctx context.Context, e *catalog.Event, h *booking.Hold) (Hold, error) {
	seats, pools, err := a.places(ctx, e, h.Seats, h.Units)
	out := Hold{
		HoldID: h.ID.String(), EventID: e.ID.String(), State: h.Seen(a.Booking.Now()).String(), Seats: seats, Pools: pools,
		Price: amount(h.Price), ExpiresAt: h.Until.UTC(), CeilingAt: h.Ceiling.UTC(),
	}
	if h.State == booking.HoldBooked {
		out.BookingID = booking.BookingID(h.ID).String()
	}
	return out, err
}

// places names seats, and pools with their units.
func (a *API) places(ctx context.Context, e *catalog.Event, numbers []int32, units []booking.Units) ([]string, []PoolUnits, error) {
	seats, err := a.codes(ctx, e, numbers)
	if err != nil {
		return nil, nil, err
	}
	pools := make([]PoolUnits, 0, len(units))
	for _, u := range units {
		name := e.Pools[u.Pool].Name
		if n := len(pools); n > 0 && pools[n-1].Pool == name { // units of one pool may come from several buckets
			pools[n-1].Quantity += u.N
			continue
		}
		pools = append(pools, PoolUnits{Pool: name, Quantity: u.N})
	}
	return seats, pools, nil
}

func (a *API) codes(ctx context.Context, e *catalog.Event, numbers []int32) ([]string, error) {
	codes := make([]string, len(numbers))
	if len(numbers) == 0 {
		return codes, nil
	}
	layout, err := a.layoutOf(ctx, e)
	if err != nil {
		return nil, err
	}
	for i, no := range numbers {
		codes[i] = layout.Seats[no].Code
	}
	return codes, nil
}

func (a *API) layoutOf(ctx context.Context, e *catalog.Event) (*venue.Layout, error) {
	l, err := a.Catalog.Layout(ctx, e.Layout)
	if err != nil {
		return nil, fmt.Errorf("layout of %v: %w", e.ID, err)
	}
	return l, nil
}

// named completes a refusal with the names of the places that it is about.
func (a *API) named(ctx context.Context, e *catalog.Event, err error) error {
	if gone, ok := errors.AsType[*booking.GoneError](err); ok {
		return a.gone(ctx, e, gone)
	}
	taken, ok := errors.AsType[*booking.SeatsError](err)
	if !ok {
		return err
	}
	p, _ := httpd.Errors.Problem(taken)
	codes, err := a.codes(ctx, e, taken.Seats)
	if err != nil {
		return err
	}
	p.Extra = map[string]any{"seats": codes}
	return p
}

// gone is the most frequent answer of a rush.
func (a *API) gone(ctx context.Context, e *catalog.Event, gone *booking.GoneError) error {
	p := httpd.PlacesGone.Problem("")
	p.Extra = make(map[string]any, 3)
	if len(gone.Seats) > 0 || len(gone.Pools) == 0 {
		seats, err := a.codes(ctx, e, gone.Seats)
		if err != nil {
			return err
		}
		p.Extra["seats"] = seats
	}
	if len(gone.Pools) > 0 {
		pools := make([]string, len(gone.Pools))
		for i, no := range gone.Pools {
			pools[i] = e.Pools[no].Name
		}
		p.Extra["pools"] = pools
	}
	if len(gone.Alternatives) > 0 {
		blocks := make([][]string, len(gone.Alternatives))
		for i, block := range gone.Alternatives {
			codes, err := a.codes(ctx, e, block)
			if err != nil {
				return err
			}
			blocks[i] = codes
		}
		p.Extra["alternatives"] = blocks
	}
	if len(gone.Seats)+len(gone.Pools) == 0 {
		p.Detail = "There are not that many such seats left. Ask for fewer, or for others."
	}
	return p
}

// ownHold finds the event and the id in a path. Whatever is wrong with it, the hold is not there.
func (a *API) ownHold(ctx context.Context, text string) (*catalog.Event, booking.HoldID, error) {
	id, err := booking.ParseHoldID(text)
	if err != nil {
		return nil, id, noHold
	}
	e, err := a.Catalog.Event(ctx, id.Event)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, id, noHold
	}
	return e, id, err
}

var noHold = httpd.NotFound.Problem("This is not a hold of yours.")

func (a *API) getHold(ctx context.Context, in *holdInput) (*holdOutput, error) {
	e, id, err := a.ownHold(ctx, in.Hold)
	if err != nil {
		return nil, err
	}
	h, err := a.Booking.Hold(ctx, id, callOf(ctx).customer)
	if err != nil {
		return nil, err
	}
	out, err := a.hold(ctx, e, &h)
	return &holdOutput{out}, err
}

func (a *API) releaseHold(ctx context.Context, in *holdInput) (*struct{}, error) {
	_, id, err := a.ownHold(ctx, in.Hold)
	if err == nil {
		_, err = a.Booking.Release(ctx, id, callOf(ctx).customer)
	}
	return nil, err
}

func (a *API) extendHold(ctx context.Context, in *holdInput) (*holdOutput, error) {
	e, id, err := a.ownHold(ctx, in.Hold)
	if err != nil {
		return nil, err
	}
	h, err := a.Booking.Extend(ctx, id, callOf(ctx).customer)
	if err != nil {
		return nil, err
	}
	out, err := a.hold(ctx, e, &h)
	return &holdOutput{out}, err
}
