package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Catalog is the catalog's store on a DB.
type Catalog struct{ *DB }

var _ catalog.Store = (*Catalog)(nil)

// NewCatalog makes one.
func NewCatalog(db *DB) *Catalog { return &Catalog{db} }

const eventColumns = `id, slug, kind, title, venue, city, country, time_zone, starts_at, opens_at, closes_at, currency, layout_id, layout_version,
	prices, pools, origin, destination, policy, paused, version, created_at`

func scanEvent(row interface{ Scan(...any) error }) (*catalog.Event, error) {
	var e catalog.Event
	var starts, opens, closes, created int64
	var prices, pools, policy []byte
	err := row.Scan(&e.ID, &e.Slug, &e.Kind, &e.Title, &e.Venue.Name, &e.Venue.City, &e.Venue.Country, &e.Venue.TimeZone, &starts, &opens, &closes,
		&e.Currency, &e.Layout.ID, &e.Layout.Version, &prices, &pools, &e.Origin, &e.Destination, &policy, &e.Paused, &e.Version, &created)
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
func eventValues(r catalog.NewRow) ([]any, error) {
	e := r.Event
	prices, err1 := json.Marshal(e.Prices)
	pools, err2 := json.Marshal(e.Pools)
	policy, err3 := json.Marshal(e.Policy)
	zone, err4 := time.LoadLocation(e.Venue.TimeZone)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("event %v: %w", e.ID, err)
	}
	return []any{
		int64(e.ID), e.Slug, e.Kind, e.Title, e.Venue.Name, e.Venue.City, e.Venue.Country, e.Venue.TimeZone,
		millis(e.StartsAt), millis(e.SaleOpensAt), millis(e.SaleClosesAt), e.Currency, e.Layout.ID, e.Layout.Version,
		string(prices), string(pools), e.Origin, e.Destination, string(policy), e.Paused, e.Version, millis(e.CreatedAt),
		e.StartsAt.In(zone).Format(time.DateOnly), e.PriceFrom(),
	}, nil
}

// CreateEvents stores events with the rows of their pools and their words.
func (s *Catalog) CreateEvents(ctx context.Context, events []catalog.NewRow) error {
	return s.update(ctx, func(t *tx) error {
		for _, r := range events {
			values, err := eventValues(r)
			if err != nil {
				return err
			}
			_, err = t.exec(`
				INSERT INTO event (`+eventColumns+`, local_date, price_from, available)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(values, r.Available)...)
			if isUnique(err) {
				return fmt.Errorf("%w: %s", catalog.ErrSlugTaken, r.Slug)
			}
			if err != nil {
				return err
			}
			if err := t.insertText(r.Event); err != nil {
				return err
			}
			if err := t.insertBuckets(r.Event); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) insertText(e *catalog.Event) error {
	_, err := t.exec(`INSERT INTO event_text (rowid, title, venue, city) VALUES (?, ?, ?, ?)`,
		int64(e.ID), e.Title+" "+e.Origin+" "+e.Destination, e.Venue.Name, e.Venue.City)
	return err
}

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
func (s *Catalog) UpdateEvent(ctx context.Context, r catalog.NewRow, before int) error {
	values, err := eventValues(r)
	if err != nil {
		return err
	}
	return s.update(ctx, func(t *tx) error {
		changed, err := t.exec(`
			UPDATE event SET slug = ?2, kind = ?3, title = ?4, venue = ?5, city = ?6, country = ?7, time_zone = ?8, starts_at = ?9, opens_at = ?10,
				closes_at = ?11, currency = ?12, layout_id = ?13, layout_version = ?14, prices = ?15, pools = ?16, origin = ?17, destination = ?18,
				policy = ?19, paused = ?20, version = ?21, created_at = ?22, local_date = ?23, price_from = ?24
			WHERE id = ?1 AND version = ?25`, append(values, before)...)
		if err != nil {
			return err
		}
		if changed != 1 {
			return catalog.ErrVersion
		}
		if _, err := t.exec(`DELETE FROM event_text WHERE rowid = ?`, int64(r.ID)); err != nil {
			return err
		}
		return t.insertText(r.Event)
	})
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

// TakenSlugs tells which of the slugs are in use.
func (s *Catalog) TakenSlugs(ctx context.Context, slugs []string) (map[string]bool, error) {
	list, err := json.Marshal(slugs)
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT slug FROM event WHERE slug IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	taken := map[string]bool{}
	for rows.Next() {
		var slug string
		if err := rows.Scan(&slug); err != nil {
			return nil, err
		}
		taken[slug] = true
	}
	return taken, rows.Err()
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
