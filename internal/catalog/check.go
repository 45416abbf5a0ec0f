package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // venues are in zones that the machine may not have files of
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Limits of an event.
const (
	MaxTitleRunes       = 200
	MaxVenueRunes       = 120 // of its name, city and country each
	MaxSlugBytes        = 80
	MaxPrices           = 500
	MaxPools            = 50
	MaxPoolUnits        = venue.MaxAreaCapacity // capacity and overbooking of a pool, each
	MaxBuckets          = 64
	MaxPrice      int64 = 100_000_000_000 // minor units of one place; a thousand of them are far from overflowing

	MaxTTL               = 24 * time.Hour // of holds and payment sessions
	MaxCeiling           = 48 * time.Hour
	MaxPlacesPerHold     = 100
	MaxPlacesPerCustomer = 1_000_000
	MaxHoldsPerMinute    = 1_000_000
	MaxAdmitPerSecond    = 1_000_000
	MaxActive            = 10_000_000
	MaxPassTTL           = 24 * time.Hour
	MaxOpensBefore       = 90 * 24 * time.Hour
	MaxCancellationRules = 10
	MaxCancelBefore      = 3 * 366 * 24 * time.Hour
)

// firstStart and lastStart bound the calendar: what lies outside is a mistake, and stores may pack instants into fewer bits.
var (
	firstStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	lastStart  = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// FieldError says which field is wrong and what to do about it.
type FieldError struct {
	Pointer string // JSON pointer, such as /policy/holdSeconds
	Detail  string // names the remedy
}

// FieldErrors is everything that is wrong with a draft, an edit or a query; errors.AsType finds it. It is never empty.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	texts := make([]string, len(e))
	for i, f := range e {
		texts[i] = f.Pointer + ": " + f.Detail
	}
	return strings.Join(texts, "; ")
}

// checks gathers what is wrong.
type checks struct{ found FieldErrors }

func (c *checks) fail(pointer, format string, args ...any) {
	c.found = append(c.found, FieldError{pointer, fmt.Sprintf(format, args...)})
}

func (c *checks) err() error {
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

// pointerTo appends a key to a JSON pointer (RFC 6901).
func pointerTo(pointer, key string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

var (
	slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	iataForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// Characters without width that Persian, the scripts of India and families of emoji are written with.
const zwnj, zwj = '\u200c', '\u200d'

// text checks something that people read: no control or direction characters, by which one name passes for another.
func (c *checks) text(pointer, s string, maxRunes int) {
	switch n := utf8.RuneCountInString(s); {
	case n > maxRunes:
		c.fail(pointer, "has %d characters; shorten it to %d", n, maxRunes)
	case strings.TrimSpace(s) != s:
		c.fail(pointer, "begins or ends with a space; take it away")
	default:
		for _, r := range s {
			if !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && r != zwnj && r != zwj || r == utf8.RuneError {
				c.fail(pointer, "has the character %U, which can't be shown; take it away", r)
				return
			}
		}
	}
}

// price and span check numbers against named bounds.
func (c *checks) price(pointer string, amount int64) {
	if amount < 0 || amount > MaxPrice {
		c.fail(pointer, "is %d; a price is from 0 to %d minor units", amount, MaxPrice)
	}
}

func (c *checks) count(pointer string, n, least, most int) {
	if n < least || n > most {
		c.fail(pointer, "is %d; use %d to %d", n, least, most)
	}
}

func (c *checks) span(pointer string, d, least, most time.Duration) {
	if d < least || d > most {
		c.fail(pointer, "is %v seconds; use %v to %v", d.Seconds(), least.Seconds(), most.Seconds())
	}
}

// event checks everything that must hold of an event, new or edited. l is its layout, nil for none.
func (c *checks) event(e *Event, l *venue.Layout) {
	switch e.Kind {
	case Cinema, Concert, Flight:
	default:
		c.fail("/kind", "is %q; use cinema, concert or flight", e.Kind)
	}
	if e.Title == "" {
		c.fail("/title", "is missing; say what is on")
	}
	c.text("/title", e.Title, MaxTitleRunes)
	if e.Slug == "" {
		c.fail("/slug", "can't be made from this title; give one of lower-case letters, digits and dashes")
	} else if len(e.Slug) > MaxSlugBytes || !slugForm.MatchString(e.Slug) {
		c.fail("/slug", "is %q; use lower-case letters and digits with single dashes between, at most %d", e.Slug, MaxSlugBytes)
	}
	if e.Venue.Name == "" {
		c.fail("/venue/name", "is missing; say where it takes place")
	}
	c.text("/venue/name", e.Venue.Name, MaxVenueRunes)
	c.text("/venue/city", e.Venue.City, MaxVenueRunes)
	c.text("/venue/country", e.Venue.Country, MaxVenueRunes)
	if !zoneKnown(e.Venue.TimeZone) {
		c.fail("/venue/timeZone", "is %q; use the IANA name of the venue's zone, such as Europe/Paris", e.Venue.TimeZone)
	}
	c.times(e)
	if _, err := money.New(0, e.Currency); err != nil {
		c.fail("/currency", "is %q; use an ISO 4217 code, such as EUR", e.Currency)
	}
	c.airports(e)
	c.pools(e)
	c.seating(e, l)
	c.policy(&e.Policy)
}

// zoneKnown also refuses "Local", which would mean another zone on every machine.
func zoneKnown(name string) bool {
	if name == "" || name == "Local" || len(name) > MaxVenueRunes {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

func (c *checks) times(e *Event) {
	if e.StartsAt.Before(firstStart) || e.StartsAt.After(lastStart) {
		c.fail("/startsAt", "is missing or not in this millennium; give the instant of the start in RFC 3339")
		return
	}
	if e.SaleOpensAt.Before(firstStart) {
		c.fail("/saleOpensAt", "is before the year %d; correct it or leave it out for now", firstStart.Year())
	}
	switch {
	case e.SaleClosesAt.After(e.StartsAt):
		c.fail("/saleClosesAt", "is after the start; close the sale at %s or earlier", e.StartsAt.Format(time.RFC3339))
	case !e.SaleOpensAt.Before(e.SaleClosesAt):
		c.fail("/saleOpensAt", "is not before the sale closes (%s); open it earlier, or correct saleClosesAt or startsAt", e.SaleClosesAt.Format(time.RFC3339))
	}
}

func (c *checks) airports(e *Event) {
	for _, f := range []struct{ pointer, code string }{{"/origin", e.Origin}, {"/destination", e.Destination}} {
		switch {
		case (e.Kind == Cinema || e.Kind == Concert) && f.code != "":
			c.fail(f.pointer, "is only for flights; leave it out")
		case e.Kind == Flight && !iataForm.MatchString(f.code):
			c.fail(f.pointer, "is %q; a flight needs the IATA code of the airport, such as SGN", f.code)
		}
	}
	if e.Origin != "" && e.Origin == e.Destination {
		c.fail("/destination", "is the origin; name the other airport")
	}
}

func (c *checks) pools(e *Event) {
	if len(e.Pools) > MaxPools {
		c.fail("/pools", "has %d pools; use at most %d", len(e.Pools), MaxPools)
	}
	seen := make(map[string]int, len(e.Pools))
	for i := range e.Pools {
		p, at := &e.Pools[i], fmt.Sprintf("/pools/%d", i)
		if first, twice := seen[p.Name]; twice {
			c.fail(at+"/pool", "is also the name of pool %d; give each its own", first)
		}
		seen[p.Name] = i
		if p.Name == "" || len(p.Name) > venue.MaxNameBytes {
			c.fail(at+"/pool", "has %d bytes; name the pool with 1 to %d", len(p.Name), venue.MaxNameBytes)
		} else {
			c.text(at+"/pool", p.Name, venue.MaxNameBytes)
		}
		if p.Capacity < 1 || p.Capacity > MaxPoolUnits {
			c.fail(at+"/capacity", "is %d; use 1 to %d", p.Capacity, MaxPoolUnits)
		}
		if p.Overbook < 0 || p.Overbook > MaxPoolUnits {
			c.fail(at+"/overbook", "is %d; use 0 to %d", p.Overbook, MaxPoolUnits)
		}
		c.count(at+"/buckets", p.Buckets, 1, int(max(1, min(MaxBuckets, p.Capacity))))
		c.price(at+"/price", p.Price)
	}
}

// seating checks prices and pools against the layout.
func (c *checks) seating(e *Event, l *venue.Layout) {
	if len(e.Prices) > MaxPrices {
		c.fail("/prices", "has %d prices; use at most %d", len(e.Prices), MaxPrices)
	}
	u := usesOf(l)
	for _, name := range sorted(e.Prices) {
		at := pointerTo("/prices", name)
		c.price(at, e.Prices[name])
		if _, ok := u.bands[name]; !ok {
			if l == nil {
				c.fail(at, "is for a band of seats, but the event has no layout; name a layoutId, or a pool with a price")
			} else {
				c.fail(at, "is not a band of the layout, nor a pool; its bands are %s", listed(sorted(u.bands)))
			}
		}
	}
	for _, band := range sorted(u.bands) {
		if _, priced := e.Prices[band]; !priced && u.bands[band] {
			c.fail(pointerTo("/prices", band), "is missing; give the band a price in minor units")
		}
	}
	for _, pool := range sorted(u.pools) {
		i, ok := e.Pool(pool)
		if !ok {
			c.fail("/pools", "lacks the pool %q, which %d seats of the layout belong to; add it", pool, u.pools[pool])
		} else if seats := u.pools[pool]; int64(seats) > e.Pools[i].Capacity {
			c.fail(fmt.Sprintf("/pools/%d/capacity", i), "is %d, but %d seats of the layout belong to the pool; raise it to that", e.Pools[i].Capacity, seats)
		}
	}
	for _, area := range sorted(u.areas) {
		if _, ok := e.Pool(area); !ok {
			c.fail("/pools", "lacks the pool of the standing area %q; add it, or a price of that name to prices", area)
		}
	}
	if l == nil && len(e.Pools) == 0 {
		c.fail("/pools", "is empty and there is no layout: nothing could be sold; name a layoutId or a pool")
	}
	e.Places = u.places(e)
}

func (c *checks) policy(p *Policy) {
	c.span("/policy/holdSeconds", p.HoldTTL, time.Second, MaxTTL)
	if p.PaymentTTL < time.Second || p.PaymentTTL > p.HoldTTL && p.HoldTTL >= time.Second {
		c.fail("/policy/paymentSeconds", "is %v; a payment session lives for 1 s up to the hold's %v s: lower it, or raise holdSeconds", p.PaymentTTL.Seconds(), p.HoldTTL.Seconds())
	}
	c.span("/policy/extendSeconds", p.ExtendTTL, 0, MaxTTL)
	c.span("/policy/holdCeilingSeconds", p.Ceiling, p.HoldTTL, MaxCeiling)
	c.count("/policy/maxPlacesPerHold", p.MaxPlacesPerHold, 1, MaxPlacesPerHold)
	c.count("/policy/maxPlacesPerCustomer", p.MaxPlacesPerCustomer, 1, MaxPlacesPerCustomer)
	c.count("/policy/maxHoldsPerMinute", p.MaxHoldsPerMinute, 1, MaxHoldsPerMinute)
	room := &p.WaitingRoom
	c.count("/policy/waitingRoom/perSecond", room.PerSecond, 1, MaxAdmitPerSecond)
	c.count("/policy/waitingRoom/maxActive", room.MaxActive, 1, MaxActive)
	c.span("/policy/waitingRoom/passSeconds", room.PassTTL, time.Second, MaxPassTTL)
	c.span("/policy/waitingRoom/opensSecondsBefore", room.OpensBefore, 0, MaxOpensBefore)
	if n := len(p.Cancellation); n > MaxCancellationRules {
		c.fail("/policy/cancellation", "has %d rules; use at most %d", n, MaxCancellationRules)
	}
	for i, r := range p.Cancellation {
		at := fmt.Sprintf("/policy/cancellation/%d", i)
		c.span(at+"/untilSecondsBefore", r.UntilBefore, 0, MaxCancelBefore)
		c.count(at+"/refundPercent", r.RefundPercent, 0, 100)
		if i > 0 && p.Cancellation[i-1].UntilBefore <= r.UntilBefore {
			c.fail(at+"/untilSecondsBefore", "is not less than that of the rule before; list the rules with the longest time first")
		}
	}
	switch p.Orphans {
	case OrphansAllow, OrphansAvoid, OrphansForbid:
	default:
		c.fail("/policy/orphans", "is %q; use allow, avoid or forbid", p.Orphans)
	}
}
