package catalog

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of searching.
const (
	MaxQueryBytes  = 200 // of Text and Place, each
	DefaultResults = 20
	MaxResults     = 100
	maxSearches    = 1024        // results kept in memory
	searchTTL      = time.Second // results may be so old
)

// Query asks for events; zero fields do not narrow it. Events that have started are left out unless a date is asked for.
type Query struct {
	Text        string // words that title, venue or city have, the last one perhaps unfinished
	Place       string // words that venue or city have, the same
	Kind        Kind
	Origin      string // IATA codes
	Destination string
	Date        string // yyyy-mm-dd in the event's own zone; the two others include their day
	DateFrom    string
	DateTo      string
	Limit       int      // 0: DefaultResults
	After       Position // of the page before; zero: the first page

	Now time.Time // set by the catalog
}

// Position is where a page ends.
type Position struct {
	StartsAt time.Time
	ID       EventID
}

// Item is an event as lists show it.
type Item struct {
	ID                                  EventID
	Slug                                string
	Kind                                Kind
	Title                               string
	Venue                               Venue
	StartsAt, SaleOpensAt, SaleClosesAt time.Time
	Paused                              bool
	Currency                            string
	PriceFrom                           int64 // minor units
	Available                           int   // places left, seconds old
	Origin, Destination                 string
}

// Status says whether the sale is open at now.
func (i *Item) Status(now time.Time) Status {
	return statusOf(i.SaleOpensAt, i.SaleClosesAt, i.Paused, now)
}

// Page is a part of the events that were found. Pages are shared: nobody changes them.
type Page struct {
	Items []Item
	Next  *Position // nil: the last page
	Stale bool      // from memory, because the database could not be asked
}

// check brings a query into the one form that stores and the memory of results rely on, or says what is wrong with it.
func (q *Query) check() error {
	var c checks
	for _, f := range []struct {
		pointer string
		text    *string
	}{{"/q", &q.Text}, {"/place", &q.Place}} {
		*f.text = strings.TrimSpace(*f.text)
		if len(*f.text) > MaxQueryBytes {
			c.fail(f.pointer, "has %d bytes; use fewer words, at most %d", len(*f.text), MaxQueryBytes)
		} else if !utf8.ValidString(*f.text) {
			c.fail(f.pointer, "is not UTF-8; send it so")
		}
	}
	switch q.Kind {
	case "", Cinema, Concert, Flight:
	default:
		c.fail("/kind", "is %q; use cinema, concert or flight", q.Kind)
	}
	for _, f := range []struct {
		pointer string
		code    *string
	}{{"/from", &q.Origin}, {"/to", &q.Destination}} {
		if *f.code = strings.ToUpper(*f.code); *f.code != "" && !iataForm.MatchString(*f.code) {
			c.fail(f.pointer, "is %q; use the IATA code of an airport, such as SGN", *f.code)
		}
	}
	for _, f := range []struct{ pointer, day string }{{"/date", q.Date}, {"/dateFrom", q.DateFrom}, {"/dateTo", q.DateTo}} {
		if f.day == "" {
			continue
		}
		if t, err := time.Parse(time.DateOnly, f.day); err != nil || t.Before(firstStart) || t.After(lastStart) {
			c.fail(f.pointer, "is %q; use a day such as 2030-12-24", f.day)
		}
	}
	if q.Date != "" && (q.DateFrom != "" || q.DateTo != "") {
		c.fail("/date", "excludes dateFrom and dateTo; use one or the others")
	}
	if q.DateTo != "" && q.DateFrom > q.DateTo {
		c.fail("/dateTo", "is before dateFrom; exchange them")
	}
	switch {
	case q.Limit == 0:
		q.Limit = DefaultResults
	case q.Limit < 0 || q.Limit > MaxResults:
		c.fail("/limit", "is %d; use 1 to %d", q.Limit, MaxResults)
	}
	q.After.StartsAt = q.After.StartsAt.UTC() // equal instants must be equal keys
	return c.err()
}

// key tells the query from others by a text. fmt would take longer to write it than the database takes to answer.
func (q *Query) key() string {
	b := make([]byte, 0, 128)
	for _, s := range []string{"search", q.Text, q.Place, string(q.Kind), q.Origin, q.Destination, q.Date, q.DateFrom, q.DateTo} {
		b = strconv.AppendInt(b, int64(len(s)), 10) // so that no text passes for the end of a field
		b = append(append(b, ' '), s...)
	}
	for _, n := range []int64{int64(q.Limit), q.After.StartsAt.UnixNano(), int64(q.After.ID)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	return string(b)
}

// dated says whether the query names a day; then it finds events that have started, too.
func (q *Query) dated() bool { return q.Date != "" || q.DateFrom != "" || q.DateTo != "" }

// StartsFrom is the instant before which nothing that is asked for starts: now, or the first day's first hour anywhere on earth. The zero time: no bound.
func (q *Query) StartsFrom() time.Time {
	day := q.Date + q.DateFrom // one of them is empty
	if !q.dated() {
		return q.Now
	}
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return time.Time{}
	}
	return t.Add(-farthestEast)
}

// StartsUntil is the instant after which nothing that is asked for starts; the zero time: no bound.
func (q *Query) StartsUntil() time.Time {
	t, err := time.Parse(time.DateOnly, q.Date+q.DateTo)
	if err != nil {
		return time.Time{}
	}
	return t.Add(24*time.Hour + farthestWest)
}

// No place has ever been further from UTC than these.
const (
	farthestEast = 16 * time.Hour
	farthestWest = 16 * time.Hour
)

// search answers from results of the last second, or asks the store once for all who want the same. When the store can't be asked, it goes on with older
// results as long as it has them.
type found struct {
	page Page
	at   time.Time
}

// Search lists the events that a query finds. Errors: FieldErrors; the store's.
func (c *Catalog) Search(ctx context.Context, q Query) (Page, error) {
	if err := q.check(); err != nil {
		return Page{}, err
	}
	q.Now = time.Time{}
	now := c.now()
	c.mu.Lock()
	known, ok := c.searches.get(q)
	c.mu.Unlock()
	if ok && now.Sub(known.at) < searchTTL {
		return known.page, nil
	}
	page, err := once(ctx, &c.running, q.key(), func(ctx context.Context) (Page, error) {
		asked := q
		asked.Now = now
		items, err := c.store.Search(ctx, &asked)
		if err != nil {
			return Page{}, err
		}
		p := Page{Items: items}
		if len(items) > q.Limit {
			p.Items = items[:q.Limit:q.Limit]
			last := &items[q.Limit-1]
			p.Next = &Position{StartsAt: last.StartsAt, ID: last.ID}
		}
		c.mu.Lock()
		c.searches.put(q, found{p, now}, 1)
		c.mu.Unlock()
		return p, nil
	})
	if err != nil && ok && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		known.page.Stale = true
		return known.page, nil
	}
	return page, err
}
