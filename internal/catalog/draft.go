package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Limits of an event.
const (
	MaxTitle       = 200 // bytes of a title, a venue's name or city
	MaxSlug        = 80
	MaxPools       = 64
	MaxPoolName    = 60
	MaxBuckets     = 64
	MaxCapacity    = 10_000_000
	MaxPrice       = 100_000_000_00 // minor units
	MaxBands       = 200
	MaxRules       = 20
	MaxPlacesLimit = 100 // of one hold
	MaxCustomer    = 10_000
	MaxPerMinute   = 1_000_000
	MaxHold        = 24 * time.Hour
	MinHold        = time.Second
	// bucketUnits: a pool gets one bucket for so many units, up to defaultBuckets, unless it says otherwise.
	bucketUnits    = 1_000
	defaultBuckets = 8
)

// FieldError says what is wrong with one field of a draft, and what to do.
type FieldError struct {
	Pointer string // JSON pointer, such as /policy/holdSeconds
	Detail  string
}

// FieldErrors is everything that is wrong with a draft, at once.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	texts := make([]string, len(e))
	for i, f := range e {
		texts[i] = f.Pointer + ": " + f.Detail
	}
	return strings.Join(texts, "; ")
}

func (e *FieldErrors) add(pointer, format string, args ...any) {
	*e = append(*e, FieldError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

func (e FieldErrors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Draft is an event as somebody asks for it: zero fields take defaults, nothing is checked yet.
type Draft struct {
	Kind                                Kind
	Slug                                string // made from the title when empty
	Title                               string
	Venue                               Venue
	StartsAt, SaleOpensAt, SaleClosesAt time.Time // opens now and closes at the start when zero
	Currency                            string
	Layout                              LayoutRef
	Prices                              map[string]int64
	Pools                               []Pool
	Origin, Destination                 string
	Policy                              PolicyDraft
}

// PolicyDraft is what differs from the preset of the kind.
type PolicyDraft struct {
	HoldSeconds, PaymentSeconds, ExtendSeconds, HoldCeilingSeconds *int
	MaxPlacesPerHold, MaxPlacesPerCustomer, MaxHoldsPerMinute      *int
	WaitingRoom                                                    *WaitingRoomDraft
	Cancellation                                                   *[]CancellationRule
	Orphans                                                        *Orphans
}

// WaitingRoomDraft is what differs from the preset's room.
type WaitingRoomDraft struct {
	Enabled                                               *bool
	PerSecond, MaxActive, PassSeconds, OpensSecondsBefore *int
}

var (
	slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	iataForm = regexp.MustCompile(`^[A-Z]{3}$`)
	noSlug   = regexp.MustCompile(`[^a-z0-9]+`)
)

// NewEvent checks a draft and makes the event; layout is the one that the draft names, or nil. The error is FieldErrors.
func NewEvent(d Draft, layout *venue.Layout, now time.Time) (*Event, error) {
	e := &Event{
		ID: NewEventID(), Slug: d.Slug, Kind: d.Kind, Title: d.Title, Venue: d.Venue, StartsAt: d.StartsAt, SaleOpensAt: d.SaleOpensAt,
		SaleClosesAt: d.SaleClosesAt, Currency: d.Currency, Layout: d.Layout, Prices: d.Prices, Pools: slices.Clone(d.Pools),
		Origin: d.Origin, Destination: d.Destination, Version: 1, CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	if e.SaleOpensAt.IsZero() {
		e.SaleOpensAt = now
	}
	if e.SaleClosesAt.IsZero() {
		e.SaleClosesAt = e.StartsAt
	}
	if e.Slug == "" {
		e.Slug = slugOf(e.Title, e.ID)
	}
	for _, at := range []*time.Time{&e.StartsAt, &e.SaleOpensAt, &e.SaleClosesAt} {
		*at = at.UTC().Truncate(time.Millisecond)
	}
	if layout != nil {
		// A standing area of the layout is a pool of its name; its capacity is the plan's unless the event says otherwise.
		for i := range e.Pools {
			for _, a := range layout.Areas {
				if a.Kind == venue.Standing && a.Name == e.Pools[i].Name && e.Pools[i].Capacity == 0 {
					e.Pools[i].Capacity = int64(a.Capacity)
				}
			}
		}
	}
	for i := range e.Pools {
		if e.Pools[i].Buckets == 0 {
			e.Pools[i].Buckets = int(min(defaultBuckets, 1+e.Pools[i].Capacity/bucketUnits))
		}
	}
	var wrong FieldErrors
	e.Policy = d.Policy.over(Preset(d.Kind), &wrong)
	e.check(layout, &wrong)
	if err := wrong.orNil(); err != nil {
		return nil, err
	}
	return e, nil
}

// slugOf makes a slug of a title; the id makes it unique where a title says too little.
func slugOf(title string, id EventID) string {
	s := strings.Trim(noSlug.ReplaceAllString(strings.ToLower(title), "-"), "-")
	s = strings.TrimRight(s[:min(len(s), MaxSlug-20)], "-")
	tail := strings.TrimPrefix(id.String(), eventPrefix+"_")
	if s == "" {
		return "event-" + tail
	}
	return s + "-" + tail[:6]
}

// Check says what is wrong with an event as edited; the error is FieldErrors.
func (e *Event) Check(layout *venue.Layout) error {
	var wrong FieldErrors
	e.check(layout, &wrong)
	return wrong.orNil()
}

func (e *Event) check(layout *venue.Layout, wrong *FieldErrors) {
	switch e.Kind {
	case Cinema, Concert, Flight:
	default:
		wrong.add("/kind", "give cinema, concert or flight")
	}
	if !slugForm.MatchString(e.Slug) || len(e.Slug) > MaxSlug {
		wrong.add("/slug", "use lower case letters and digits, with single dashes between, at most %d", MaxSlug)
	} else if _, err := ParseEventID(e.Slug); err == nil {
		wrong.add("/slug", "looks like an event's id; choose another")
	}
	checkText(wrong, "/title", e.Title, true)
	checkText(wrong, "/venue/name", e.Venue.Name, true)
	checkText(wrong, "/venue/city", e.Venue.City, false)
	checkText(wrong, "/venue/country", e.Venue.Country, false)
	if _, err := time.LoadLocation(e.Venue.TimeZone); err != nil || e.Venue.TimeZone == "" || e.Venue.TimeZone == "Local" {
		wrong.add("/venue/timeZone", "give an IANA time zone such as Europe/Berlin")
	}
	switch {
	case e.StartsAt.IsZero() || e.StartsAt.Unix() <= 0 || e.StartsAt.Year() > 2200:
		wrong.add("/startsAt", "give the instant at which the event starts, such as 2026-12-24T18:00:00Z")
	case !e.SaleClosesAt.After(e.SaleOpensAt):
		wrong.add("/saleClosesAt", "must be after saleOpensAt")
	case e.SaleClosesAt.After(e.StartsAt.Add(366 * 24 * time.Hour)):
		wrong.add("/saleClosesAt", "must be within a year of the start")
	}
	if _, err := money.New(0, e.Currency); err != nil {
		wrong.add("/currency", "give an ISO 4217 code such as EUR")
	}
	e.checkPools(wrong)
	e.checkPrices(layout, wrong)
	if e.Kind == Flight {
		if !iataForm.MatchString(e.Origin) {
			wrong.add("/origin", "a flight needs the IATA code of its airport, such as SGN")
		}
		if !iataForm.MatchString(e.Destination) || e.Destination == e.Origin {
			wrong.add("/destination", "a flight needs the IATA code of another airport, such as HAN")
		}
	} else if e.Origin != "" || e.Destination != "" {
		wrong.add("/origin", "only flights have an origin and a destination")
	}
	e.Policy.check(wrong)
}

// checkText bounds what people read and keeps control characters out of it.
func checkText(wrong *FieldErrors, pointer, text string, required bool) {
	switch {
	case required && strings.TrimSpace(text) == "":
		wrong.add(pointer, "must not be empty")
	case len(text) > MaxTitle || !utf8.ValidString(text):
		wrong.add(pointer, "use at most %d bytes of UTF-8", MaxTitle)
	case strings.ContainsFunc(text, unicode.IsControl):
		wrong.add(pointer, "must not contain control characters")
	}
}

func (e *Event) checkPools(wrong *FieldErrors) {
	if len(e.Pools) > MaxPools {
		wrong.add("/pools", "use at most %d pools", MaxPools)
		return
	}
	for i, p := range e.Pools {
		at := fmt.Sprintf("/pools/%d", i)
		if strings.TrimSpace(p.Name) != p.Name || p.Name == "" || len(p.Name) > MaxPoolName || strings.ContainsFunc(p.Name, unicode.IsControl) || !utf8.ValidString(p.Name) {
			wrong.add(at+"/pool", "give a name of 1 to %d bytes", MaxPoolName)
		}
		if first, _ := e.Pool(p.Name); first != i {
			wrong.add(at+"/pool", "two pools have this name")
		}
		if p.Capacity < 0 || p.Capacity > MaxCapacity {
			wrong.add(at+"/capacity", "must be 0 to %d", MaxCapacity)
		}
		if p.Overbook < 0 || p.Overbook > MaxCapacity {
			wrong.add(at+"/overbook", "must be 0 to %d", MaxCapacity)
		}
		if p.Buckets < 1 || p.Buckets > MaxBuckets {
			wrong.add(at+"/buckets", "must be 1 to %d", MaxBuckets)
		}
		if p.Price < 0 || p.Price > MaxPrice {
			wrong.add(at+"/price", "must be 0 to %d minor units", int64(MaxPrice))
		}
	}
}

func (e *Event) checkPrices(layout *venue.Layout, wrong *FieldErrors) {
	if len(e.Prices) > MaxBands {
		wrong.add("/prices", "use at most %d bands", MaxBands)
		return
	}
	for band, price := range e.Prices {
		if price < 0 || price > MaxPrice {
			wrong.add("/prices/"+pointerEscape(band), "must be 0 to %d minor units", int64(MaxPrice))
		}
		if layout == nil || !slices.Contains(layout.Bands, band) {
			wrong.add("/prices/"+pointerEscape(band), "the layout has no such band")
		}
	}
	if layout == nil {
		if len(e.Pools) == 0 {
			wrong.add("/pools", "an event without a layout needs at least one pool")
		}
		return
	}
	unpriced, seated := map[string]bool{}, map[string]int64{}
	for i := range layout.Seats {
		s := &layout.Seats[i]
		if s.Pool != "" {
			seated[s.Pool]++
		}
		if _, ok := e.Prices[s.Band]; !ok && s.Pool == "" {
			unpriced[s.Band] = true
		}
	}
	for band := range unpriced {
		wrong.add("/prices/"+pointerEscape(band), "the layout has seats of this band; give their price")
	}
	for pool, seats := range seated {
		i, ok := e.Pool(pool)
		switch {
		case !ok:
			wrong.add("/pools", "the layout has seats of the pool %q; give the pool", pool)
		case e.Pools[i].Capacity < seats:
			wrong.add(fmt.Sprintf("/pools/%d/capacity", i), "the layout has %d seats of this pool; give at least that", seats)
		}
	}
}

func pointerEscape(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

// over lays a draft over a preset; numbers that can't be are named and left as in the preset.
func (d PolicyDraft) over(p Policy, wrong *FieldErrors) Policy {
	seconds := func(to *time.Duration, from *int, name string) {
		if from == nil {
			return
		}
		if *from < 0 || *from > int(10*366*24*time.Hour/time.Second) {
			wrong.add("/policy/"+name, "give seconds, at least 0")
			return
		}
		*to = time.Duration(*from) * time.Second
	}
	number := func(to *int, from *int) {
		if from != nil {
			*to = *from
		}
	}
	seconds(&p.HoldTTL, d.HoldSeconds, "holdSeconds")
	seconds(&p.PaymentTTL, d.PaymentSeconds, "paymentSeconds")
	seconds(&p.ExtendTTL, d.ExtendSeconds, "extendSeconds")
	seconds(&p.Ceiling, d.HoldCeilingSeconds, "holdCeilingSeconds")
	number(&p.MaxPlacesPerHold, d.MaxPlacesPerHold)
	number(&p.MaxPlacesPerCustomer, d.MaxPlacesPerCustomer)
	number(&p.MaxHoldsPerMinute, d.MaxHoldsPerMinute)
	// What the draft says nothing about follows what it says: a shorter hold has a shorter payment, a longer one a later ceiling.
	if d.HoldSeconds != nil && d.PaymentSeconds == nil && p.PaymentTTL > p.HoldTTL {
		p.PaymentTTL = p.HoldTTL * 4 / 5
	}
	if d.HoldSeconds != nil && d.HoldCeilingSeconds == nil && p.Ceiling < p.HoldTTL {
		p.Ceiling = p.HoldTTL
	}
	if d.MaxPlacesPerHold != nil && d.MaxPlacesPerCustomer == nil && p.MaxPlacesPerCustomer < p.MaxPlacesPerHold {
		p.MaxPlacesPerCustomer = p.MaxPlacesPerHold
	}
	if d.MaxPlacesPerCustomer != nil && d.MaxPlacesPerHold == nil && p.MaxPlacesPerHold > p.MaxPlacesPerCustomer {
		p.MaxPlacesPerHold = p.MaxPlacesPerCustomer
	}
	if w := d.WaitingRoom; w != nil {
		if w.Enabled != nil {
			p.WaitingRoom.Enabled = *w.Enabled
		}
		number(&p.WaitingRoom.PerSecond, w.PerSecond)
		number(&p.WaitingRoom.MaxActive, w.MaxActive)
		seconds(&p.WaitingRoom.PassTTL, w.PassSeconds, "waitingRoom/passSeconds")
		seconds(&p.WaitingRoom.OpensBefore, w.OpensSecondsBefore, "waitingRoom/opensSecondsBefore")
	}
	if d.Cancellation != nil {
		p.Cancellation = slices.Clone(*d.Cancellation)
	}
	if d.Orphans != nil {
		p.Orphans = *d.Orphans
	}
	return p
}

func (p *Policy) check(wrong *FieldErrors) {
	if p.HoldTTL < MinHold || p.HoldTTL > MaxHold {
		wrong.add("/policy/holdSeconds", "must be 1 to %d", int(MaxHold.Seconds()))
	}
	if p.PaymentTTL < time.Second || p.PaymentTTL > p.HoldTTL {
		wrong.add("/policy/paymentSeconds", "must be at least 1 and at most holdSeconds: the difference is the time for the provider's callback to arrive")
	}
	if p.ExtendTTL > MaxHold {
		wrong.add("/policy/extendSeconds", "must be 0 to %d", int(MaxHold.Seconds()))
	}
	if p.Ceiling < p.HoldTTL || p.Ceiling > MaxHold {
		wrong.add("/policy/holdCeilingSeconds", "must be at least holdSeconds and at most %d", int(MaxHold.Seconds()))
	}
	if p.MaxPlacesPerHold < 1 || p.MaxPlacesPerHold > MaxPlacesLimit {
		wrong.add("/policy/maxPlacesPerHold", "must be 1 to %d", MaxPlacesLimit)
	}
	if p.MaxPlacesPerCustomer < p.MaxPlacesPerHold || p.MaxPlacesPerCustomer > MaxCustomer {
		wrong.add("/policy/maxPlacesPerCustomer", "must be at least maxPlacesPerHold and at most %d", MaxCustomer)
	}
	if p.MaxHoldsPerMinute < 1 || p.MaxHoldsPerMinute > MaxPerMinute {
		wrong.add("/policy/maxHoldsPerMinute", "must be 1 to %d", MaxPerMinute)
	}
	w := p.WaitingRoom
	if w.PerSecond < 1 || w.PerSecond > 1_000_000 {
		wrong.add("/policy/waitingRoom/perSecond", "must be 1 to 1000000")
	}
	if w.MaxActive < 1 || w.MaxActive > 10_000_000 {
		wrong.add("/policy/waitingRoom/maxActive", "must be 1 to 10000000")
	}
	if w.PassTTL < 10*time.Second || w.PassTTL > MaxHold {
		wrong.add("/policy/waitingRoom/passSeconds", "must be 10 to %d", int(MaxHold.Seconds()))
	}
	if len(p.Cancellation) > MaxRules {
		wrong.add("/policy/cancellation", "use at most %d rules", MaxRules)
		return
	}
	for i, r := range p.Cancellation {
		if r.RefundPercent < 0 || r.RefundPercent > 100 {
			wrong.add(fmt.Sprintf("/policy/cancellation/%d/refundPercent", i), "must be 0 to 100")
		}
		if r.UntilBefore < 0 {
			wrong.add(fmt.Sprintf("/policy/cancellation/%d/untilSecondsBefore", i), "must be at least 0")
		}
		if i > 0 && r.UntilBefore >= p.Cancellation[i-1].UntilBefore {
			wrong.add(fmt.Sprintf("/policy/cancellation/%d/untilSecondsBefore", i), "put the rules in order, the longest time before the start first")
		}
	}
	switch p.Orphans {
	case OrphansAllow, OrphansAvoid, OrphansForbid:
	default:
		wrong.add("/policy/orphans", "give allow, avoid or forbid")
	}
}

// Capacity is how many places the event has in all: its seats, and the units of pools beyond the seats that they carry.
func (e *Event) Capacity(layout *venue.Layout) int {
	seated := map[string]int64{}
	total := int64(0)
	if layout != nil {
		total = int64(len(layout.Seats))
		for i := range layout.Seats {
			if p := layout.Seats[i].Pool; p != "" {
				seated[p]++
			}
		}
	}
	for _, p := range e.Pools {
		total += max(0, p.Capacity+p.Overbook-seated[p.Name])
	}
	return int(total)
}

// PriceFrom is the lowest price of the event.
func (e *Event) PriceFrom() int64 {
	low, any := int64(0), false
	see := func(p int64) {
		if !any || p < low {
			low, any = p, true
		}
	}
	for _, p := range e.Prices {
		see(p)
	}
	for _, p := range e.Pools {
		see(p.Price)
	}
	return low
}
