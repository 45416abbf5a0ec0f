package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
)

// Limits of a search.
const (
	DefaultPage  = 20
	MaxPage      = 100
	MaxQueryText = 200 // bytes
)

// Query is what somebody looks for; zero fields do not narrow it. Dates are days (2006-01-02) in the event's own zone.
type Query struct {
	Text                string
	Kind                Kind
	Origin, Destination string
	Date                string
	DateFrom, DateTo    string
	Place               string // part of the venue's name or city
	Limit               int
	After               Position // of the last item of the page before
}

// Position is a place in the order of a search: by start, then by id.
type Position struct {
	StartsAt time.Time
	ID       EventID
}

// Item is an event as a list shows it. Availability is seconds old.
type Item struct {
	ID                                  EventID
	Slug                                string
	Kind                                Kind
	Title                               string
	Venue                               Venue
	StartsAt, SaleOpensAt, SaleClosesAt time.Time
	PriceFrom                           money.Money
	Available                           int
	Paused                              bool
	Origin, Destination                 string
}

// Status of the item's sale at an instant.
func (i *Item) Status(now time.Time) Status {
	e := Event{SaleOpensAt: i.SaleOpensAt, SaleClosesAt: i.SaleClosesAt, Paused: i.Paused}
	return e.Status(now)
}

// Page is a part of the answer to a query. Next is zero on the last page.
type Page struct {
	Items []Item
	Next  Position
	Stale bool // from memory, since the database is away
}

// Limits of the answers kept.
const (
	maxAnswers = 2_000
	answerFor  = time.Second
)

// answers keeps what was found lately: many ask the same in a rush, and when the database is away an old answer, marked as such, is better than none.
type answers struct {
	mu  sync.Mutex
	all map[Query]answer
}

type answer struct {
	page Page
	at   time.Time
}

// Search finds events. Answers are about a second old at most, or marked stale.
func (c *Catalog) Search(ctx context.Context, q Query) (Page, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultPage
	}
	q.Limit = min(q.Limit, MaxPage)
	now := c.now()
	c.answers.mu.Lock()
	old, known := c.answers.all[q]
	c.answers.mu.Unlock()
	if known && now.Sub(old.at) < answerFor {
		return old.page, nil
	}
	page, err := c.store.Search(ctx, q, now)
	if err != nil {
		if known && ctx.Err() == nil {
			c.log.Warn("a search is answered from memory", "error", err)
			old.page.Stale = true
			return old.page, nil
		}
		return Page{}, err
	}
	c.answers.mu.Lock()
	defer c.answers.mu.Unlock()
	if c.answers.all == nil || len(c.answers.all) >= maxAnswers {
		c.answers.all = map[Query]answer{}
	}
	c.answers.all[q] = answer{page: page, at: now}
	return page, nil
}
