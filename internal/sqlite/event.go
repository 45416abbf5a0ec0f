package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Catalog is the catalog's store on a DB.
type Catalog struct{ *DB }

var _ catalog.Store = (*Catalog)(nil)

// NewCatalog makes one.
func NewCatalog(db *DB) *Catalog { return &Catalog{db} }

const eventColumns = `id, slug, kind, title, venue, city, country, time_zone, starts_at, opens_at, closes_at, currency, layout_id, layout_version,
	prices, pools, origin, destination, policy, places, paused, version, created_at`

func scanEvent(row interface{ Scan(...any) error }) (*catalog.Event, error) {
	var e catalog.Event
	var starts, opens, closes, created int64
	var prices, pools, policy []byte
	err := row.Scan(&e.ID, &e.Slug, &e.Kind, &e.Title, &e.Venue.Name, &e.Venue.City, &e.Venue.Country, &e.Venue.TimeZone, &starts, &opens, &closes,
		&e.Currency, &e.Layout.ID, &e.Layout.Version, &prices, &pools, &e.Origin, &e.Destination, &policy, &e.Places, &e.Paused, &e.Version, &created)
	if err != nil {
		return nil, err
	}
	e.StartsAt, e.SaleOpensAt, e.SaleClosesAt, e.CreatedAt = instant(starts), instant(opens), instant(closes), instant(created)
	err = errors.Join(json.Unmarshal(prices, &e.Prices), json.Unmarshal(pools, &e.Pools), json.Unmarshal(policy, &e.Policy))
	if err != nil {
		err = fmt.Errorf("event %v: %w", e.ID, err)
	}
	return &e, err
}

// eventValues are the columns above, then those of the search.
func eventValues(e *catalog.Event) ([]any, error) {
	prices, err1 := json.Marshal(e.Prices)
	pools, err2 := json.Marshal(e.Pools)
	policy, err3 := json.Marshal(e.Policy)
	day, err4 := e.LocalDate()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("event %v: %w", e.ID, err)
	}
	return []any{
		int64(e.ID), e.Slug, e.Kind, e.Title, e.Venue.Name, e.Venue.City, e.Venue.Country, e.Venue.TimeZone,
		millis(e.StartsAt), millis(e.SaleOpensAt), millis(e.SaleClosesAt), e.Currency, e.Layout.ID, e.Layout.Version,
		string(prices), string(pools), e.Origin, e.Destination, string(policy), e.Places, e.Paused, e.Version, millis(e.CreatedAt),
		day, e.PriceFrom(),
	}, nil
}

// nextPoint is the point of the change that is being written: there is one writer, so points rise in the order of commits.
const nextPoint = `(SELECT coalesce(max(point), 0) + 1 FROM event)`

// CreateEvents stores events with the rows of their pools and their words; those whose slug is taken are left out.
func (s *Catalog) CreateEvents(ctx context.Context, events []*catalog.Event) (taken []int, err error) {
	err = s.update(ctx, func(t *tx) error {
		for i, e := range events {
			values, err := eventValues(e)
			if err != nil {
				return err
			}
			order, err := t.freeOrder(e)
			if err != nil {
				return err
			}
			made, err := t.exec(`
				INSERT INTO event (`+eventColumns+`, local_date, price_from, available, list_order, point)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+nextPoint+`)
				ON CONFLICT (slug) DO NOTHING`, append(values, e.Places, order)...)
			if err != nil {
				return err
			}
			if made == 0 {
				taken = append(taken, i)
				continue
			}
			if err := t.insertText(e, order); err != nil {
				return err
			}
			if err := t.insertBuckets(e); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}

// The order of lists is one number: the second of the start, and below it orderBits of the event's id or, where these are taken, the next free ones.
const (
	orderBits  = 28
	orderTries = 1000
)

var errCrowded = errors.New("no place left in the order of lists for one more event of this second")

func orderOf(at time.Time) int64 { return at.Unix() << orderBits }

func orderIn(at time.Time, id catalog.EventID, try int64) int64 {
	return orderOf(at) | (int64(id)+try)&(1<<orderBits-1)
}

func (t *tx) freeOrder(e *catalog.Event) (int64, error) {
	for try := range int64(orderTries) {
		order := orderIn(e.StartsAt, e.ID, try)
		var taken bool
		if err := t.queryRow(`SELECT EXISTS (SELECT 1 FROM event WHERE list_order = ?)`, order).Scan(&taken); err != nil || !taken {
			return order, err
		}
	}
	return 0, fmt.Errorf("event %v: %w", e.ID, errCrowded)
}

func (t *tx) insertText(e *catalog.Event, order int64) error {
	day, err := e.LocalDate()
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO event_text (rowid, day, title, place) VALUES (?, ?, ?, ?)`, order, dayTerm(day),
		strings.Join(catalog.Terms(e.Title+" "+e.Origin+" "+e.Destination), " "), strings.Join(catalog.Terms(e.Venue.Name+" "+e.Venue.City), " "))
	return err
}

// dayTerm is a day as one word of the full text.
func dayTerm(day string) string { return strings.ReplaceAll(day, "-", "") }

// insertBuckets makes the rows of an event's pools, the stock split as evenly as it goes.
func (t *tx) insertBuckets(e *catalog.Event) error {
	for pool, p := range e.Pools {
		n := int64(p.Buckets)
		for b := range n {
			share := func(total int64) int64 {
				part := total / n
				if b < total%n {
					part++
				}
				return part
			}
			_, err := t.exec(`INSERT INTO pool_bucket (event_id, pool, bucket, capacity, overbook) VALUES (?, ?, ?, ?, ?)`,
				int64(e.ID), pool, b, share(p.Capacity), share(p.Overbook))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// UpdateEvent writes an edited event. The rows of its pools are the engine's: their limits change through a command.
func (s *Catalog) UpdateEvent(ctx context.Context, e *catalog.Event, expected int) error {
	values, err := eventValues(e)
	if err != nil {
		return err
	}
	return s.update(ctx, func(t *tx) error {
		var version int
		var old int64
		if err := t.queryRow(`SELECT version, list_order FROM event WHERE id = ?`, int64(e.ID)).Scan(&version, &old); err != nil {
			return noEvent(err)
		}
		if version != expected {
			return catalog.ErrVersion
		}
		order := old
		if old>>orderBits != e.StartsAt.Unix() {
			if order, err = t.freeOrder(e); err != nil {
				return err
			}
		}
		changed, err := t.exec(`
			UPDATE event SET kind = ?3, title = ?4, venue = ?5, city = ?6, country = ?7, time_zone = ?8, starts_at = ?9, opens_at = ?10,
				closes_at = ?11, currency = ?12, prices = ?15, pools = ?16, origin = ?17, destination = ?18,
				policy = ?19, places = ?20, paused = ?21, version = ?22, local_date = ?24, price_from = ?25, list_order = ?26, point = `+nextPoint+`
			WHERE id = ?1 AND version = ?27`, append(values, order, expected)...)
		if err != nil {
			return err
		}
		if changed != 1 {
			return catalog.ErrVersion
		}
		if _, err := t.exec(`DELETE FROM event_text WHERE rowid = ?`, old); err != nil {
			return err
		}
		return t.insertText(e, order)
	})
}

// Changes lists what was added or changed after a point.
func (s *Catalog) Changes(ctx context.Context, after int64) ([]catalog.Change, error) {
	rows, err := s.query(ctx, `SELECT id, slug, version, point FROM event WHERE point > ? ORDER BY point LIMIT ?`, after, catalog.MaxChanges)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []catalog.Change
	for rows.Next() {
		var c catalog.Change
		if err := rows.Scan(&c.ID, &c.Slug, &c.Version, &c.Point); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// LastChange is the point of the newest change.
func (s *Catalog) LastChange(ctx context.Context) (point int64, err error) {
	err = s.queryRow(ctx, `SELECT coalesce(max(point), 0) FROM event`).Scan(&point)
	return point, err
}

// Event reads one event.
func (s *Catalog) Event(ctx context.Context, id catalog.EventID) (*catalog.Event, error) {
	e, err := scanEvent(s.queryRow(ctx, `SELECT `+eventColumns+` FROM event WHERE id = ?`, int64(id)))
	return e, noEvent(err)
}

// EventBySlug reads one event.
func (s *Catalog) EventBySlug(ctx context.Context, slug string) (*catalog.Event, error) {
	e, err := scanEvent(s.queryRow(ctx, `SELECT `+eventColumns+` FROM event WHERE slug = ?`, slug))
	return e, noEvent(err)
}

// SetAvailable notes how many places events have left.
func (s *Catalog) SetAvailable(ctx context.Context, left map[catalog.EventID]int) error {
	return s.update(ctx, func(t *tx) error {
		for id, n := range left {
			if _, err := t.exec(`UPDATE event SET available = ? WHERE id = ? AND available <> ?`, n, int64(id), n); err != nil {
				return err
			}
		}
		return nil
	})
}
