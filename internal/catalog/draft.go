package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// Draft is an event as its organiser describes it; its JSON is an element of an import file and the body of POST /v1/admin/events.
type Draft struct {
	Kind          Kind             `json:"kind"`
	Slug          string           `json:"slug,omitempty"` // "": made from the title
	Title         string           `json:"title"`
	Venue         Venue            `json:"venue"`
	StartsAt      time.Time        `json:"startsAt"`
	SaleOpensAt   time.Time        `json:"saleOpensAt,omitzero"`  // zero: now
	SaleClosesAt  time.Time        `json:"saleClosesAt,omitzero"` // zero: at the start
	Currency      string           `json:"currency"`
	LayoutID      string           `json:"layoutId,omitempty"`
	LayoutVersion int              `json:"layoutVersion,omitempty"` // 0: the newest
	Prices        map[string]int64 `json:"prices,omitempty"`        // minor units by band of the layout, or by pool that has no price of its own
	Pools         []PoolDraft      `json:"pools,omitempty"`
	Origin        string           `json:"origin,omitempty"`
	Destination   string           `json:"destination,omitempty"`
	Policy        *PolicyDraft     `json:"policy,omitempty"`
}

// PoolDraft describes a pool.
type PoolDraft struct {
	Pool     string `json:"pool"`
	Capacity int64  `json:"capacity"`
	Overbook int64  `json:"overbook,omitempty"`
	Buckets  *int   `json:"buckets,omitempty"` // nil: by capacity
	Price    *int64 `json:"price,omitempty"`   // nil: that of the pool's name in Prices
}

// PolicyDraft lies over a preset; nil fields leave it as it is.
type PolicyDraft struct {
	HoldSeconds          *int64              `json:"holdSeconds,omitempty"`
	PaymentSeconds       *int64              `json:"paymentSeconds,omitempty"`
	ExtendSeconds        *int64              `json:"extendSeconds,omitempty"`
	HoldCeilingSeconds   *int64              `json:"holdCeilingSeconds,omitempty"`
	MaxPlacesPerHold     *int                `json:"maxPlacesPerHold,omitempty"`
	MaxPlacesPerCustomer *int                `json:"maxPlacesPerCustomer,omitempty"`
	MaxHoldsPerMinute    *int                `json:"maxHoldsPerMinute,omitempty"`
	WaitingRoom          *WaitingRoomDraft   `json:"waitingRoom,omitempty"`
	Cancellation         []CancellationDraft `json:"cancellation,omitempty"` // nil: the preset's; empty: never refunded
	Orphans              *Orphans            `json:"orphans,omitempty"`
}

// WaitingRoomDraft lies over a preset's room.
type WaitingRoomDraft struct {
	Enabled            *bool  `json:"enabled,omitempty"`
	PerSecond          *int   `json:"perSecond,omitempty"`
	MaxActive          *int   `json:"maxActive,omitempty"`
	PassSeconds        *int64 `json:"passSeconds,omitempty"`
	OpensSecondsBefore *int64 `json:"opensSecondsBefore,omitempty"`
}

// CancellationDraft is one rule.
type CancellationDraft struct {
	UntilSecondsBefore int64 `json:"untilSecondsBefore"`
	RefundPercent      int   `json:"refundPercent"`
}

// Seating is the layout of an event with its name; the zero value is none.
type Seating struct {
	Ref    LayoutRef
	Layout *venue.Layout
}

// A pool of at least manyUnits gets usualBuckets unless its organiser says otherwise.
const (
	manyUnits    = 1000
	usualBuckets = 8
)

// NewEvent makes an event of a draft, with defaults for what the draft leaves out, or FieldErrors with everything that is wrong.
func NewEvent(d *Draft, s Seating, now time.Time) (*Event, error) {
	e := &Event{
		ID: NewEventID(), Slug: d.Slug, Kind: d.Kind, Title: d.Title, Venue: d.Venue,
		StartsAt: second(d.StartsAt), SaleOpensAt: nextSecond(d.SaleOpensAt), SaleClosesAt: second(d.SaleClosesAt),
		Currency: d.Currency, Layout: s.Ref, Origin: d.Origin, Destination: d.Destination, Policy: Preset(d.Kind), Version: 1, CreatedAt: second(now),
	}
	if e.Slug == "" {
		e.Slug = Slug(d.Title)
	}
	if d.SaleOpensAt.IsZero() {
		e.SaleOpensAt = second(now)
	}
	if d.SaleClosesAt.IsZero() {
		e.SaleClosesAt = e.StartsAt
	}
	var c checks
	c.drafted(e, d, s.Layout)
	if d.Policy != nil {
		d.Policy.over(&e.Policy)
	}
	c.event(e, s.Layout)
	return e, c.err()
}

// second: events start and sell at whole seconds, so that stores may pack instants.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// nextSecond is for the opening of a sale, which is never earlier than was said.
func nextSecond(t time.Time) time.Time { return second(t.Add(time.Second - 1)) }

// drafted fills in prices and pools. A price of a pool's name is the pool's; a standing area with a price but no pool gets one.
func (c *checks) drafted(e *Event, d *Draft, l *venue.Layout) {
	u := usesOf(l)
	e.Prices = maps.Clone(d.Prices)
	if e.Prices == nil {
		e.Prices = map[string]int64{}
	}
	for i := range d.Pools {
		p := d.Pools[i]
		at := "/pools/" + strconv.Itoa(i) + "/price"
		price, named := d.Prices[p.Pool]
		_, band := u.bands[p.Pool]
		switch {
		case p.Price != nil && named && !band:
			c.fail(at, "is given here and in prices; leave one out")
		case p.Price != nil:
			price = *p.Price
		case !named:
			c.fail(at, "is missing; give the price of a unit in minor units")
		}
		if !band {
			delete(e.Prices, p.Pool)
		}
		if p.Capacity == 0 {
			p.Capacity = int64(u.areas[p.Pool]) // of the standing area, when it is one
		}
		e.Pools = append(e.Pools, Pool{Name: p.Pool, Capacity: p.Capacity, Overbook: p.Overbook, Buckets: bucketsOf(&p), Price: price})
	}
	for _, area := range sorted(u.areas) {
		price, named := e.Prices[area]
		if _, has := e.Pool(area); has || !named {
			continue
		}
		if _, band := u.bands[area]; !band {
			delete(e.Prices, area)
		}
		if u.areas[area] == 0 {
			c.fail(pointerTo("/prices", area), "is for a standing area whose layout does not say how many it holds; add a pool of that name with its capacity")
		}
		p := PoolDraft{Pool: area, Capacity: int64(max(1, u.areas[area]))}
		e.Pools = append(e.Pools, Pool{Name: area, Capacity: p.Capacity, Buckets: bucketsOf(&p), Price: price})
	}
}

func bucketsOf(p *PoolDraft) int {
	switch {
	case p.Buckets != nil:
		return *p.Buckets
	case p.Capacity >= manyUnits:
		return usualBuckets
	default:
		return 1
	}
}

// uses is what of a layout prices and pools must match.
type uses struct {
	bands map[string]bool // whether it has seats outside pools, which only its price can price
	pools map[string]int  // seats of each pool
	areas map[string]int  // capacity of each standing area
	loose int             // seats outside pools
}

func usesOf(l *venue.Layout) uses {
	u := uses{bands: map[string]bool{}, pools: map[string]int{}, areas: map[string]int{}}
	if l == nil {
		return u
	}
	// Seats of a row mostly share band and pool: the maps are only asked where one changes.
	for i := 0; i < len(l.Seats); {
		first, n := &l.Seats[i], 1
		for i+n < len(l.Seats) && l.Seats[i+n].Band == first.Band && l.Seats[i+n].Pool == first.Pool {
			n++
		}
		u.bands[first.Band] = u.bands[first.Band] || first.Pool == ""
		if first.Pool == "" {
			u.loose += n
		} else {
			u.pools[first.Pool] += n
		}
		i += n
	}
	for _, a := range l.Areas {
		if a.Kind == venue.Standing {
			u.areas[a.Name] += a.Capacity
		}
	}
	return u
}

// places is what the event can sell, counted as its board counts.
func (u *uses) places(e *Event) int {
	n := u.loose
	for i := range e.Pools {
		units := int(e.Pools[i].Capacity + e.Pools[i].Overbook)
		if seats := u.pools[e.Pools[i].Name]; seats > 0 {
			units = min(units, seats)
		}
		n += units
	}
	return n
}

// over lays the draft over p. What the draft leaves out follows where the preset no longer fits: a short hold shortens its payment session with it.
func (d *PolicyDraft) over(p *Policy) {
	seconds := func(to *time.Duration, n *int64) {
		if n != nil {
			*to = time.Duration(min(max(*n, -1), int64(MaxCancelBefore/time.Second)+1)) * time.Second // out of bounds either way, without overflow
		}
	}
	number := func(to *int, n *int) {
		if n != nil {
			*to = *n
		}
	}
	seconds(&p.HoldTTL, d.HoldSeconds)
	if seconds(&p.PaymentTTL, d.PaymentSeconds); d.HoldSeconds != nil && d.PaymentSeconds == nil {
		p.PaymentTTL = min(p.PaymentTTL, max(time.Second, (p.HoldTTL*4/5).Truncate(time.Second))) // as the presets
	}
	if seconds(&p.Ceiling, d.HoldCeilingSeconds); d.HoldSeconds != nil && d.HoldCeilingSeconds == nil {
		p.Ceiling = max(p.Ceiling, p.HoldTTL)
	}
	seconds(&p.ExtendTTL, d.ExtendSeconds)
	number(&p.MaxPlacesPerHold, d.MaxPlacesPerHold)
	if number(&p.MaxPlacesPerCustomer, d.MaxPlacesPerCustomer); d.MaxPlacesPerHold != nil && d.MaxPlacesPerCustomer == nil {
		p.MaxPlacesPerCustomer = max(p.MaxPlacesPerCustomer, p.MaxPlacesPerHold)
	}
	number(&p.MaxHoldsPerMinute, d.MaxHoldsPerMinute)
	if w := d.WaitingRoom; w != nil {
		if w.Enabled != nil {
			p.WaitingRoom.Enabled = *w.Enabled
		}
		number(&p.WaitingRoom.PerSecond, w.PerSecond)
		number(&p.WaitingRoom.MaxActive, w.MaxActive)
		seconds(&p.WaitingRoom.PassTTL, w.PassSeconds)
		seconds(&p.WaitingRoom.OpensBefore, w.OpensSecondsBefore)
	}
	if d.Cancellation != nil {
		p.Cancellation = make([]CancellationRule, len(d.Cancellation))
		for i, r := range d.Cancellation {
			seconds(&p.Cancellation[i].UntilBefore, &r.UntilSecondsBefore)
			p.Cancellation[i].RefundPercent = r.RefundPercent
		}
	}
	if d.Orphans != nil {
		p.Orphans = *d.Orphans
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// listed names the first few of many.
func listed(names []string) string {
	const few = 10
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
