package sqlite

import (
	"context"
	"strings"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Search finds events in one statement.
func (s *Catalog) Search(ctx context.Context, q *catalog.Query) ([]catalog.Item, error) {
	var where []string
	var args []any
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	from := `event`
	if q.Text != "" || q.Place != "" {
		match := matchOf(q.Text, q.Place)
		if match == "" {
			return nil, nil // nothing in it that could be a word
		}
		from = `event_text JOIN event ON event.id = event_text.rowid`
		and(`event_text MATCH ?`, match)
	}
	if q.Kind != "" {
		and(`kind = ?`, q.Kind)
	}
	if q.Origin != "" || q.Destination != "" {
		and(`origin <> ''`) // says that the index of flights serves
	}
	if q.Origin != "" {
		and(`origin = ?`, q.Origin)
	}
	if q.Destination != "" {
		and(`destination = ?`, q.Destination)
	}
	switch {
	case q.Date != "":
		and(`local_date = ?`, q.Date)
	case q.DateFrom == "" && q.DateTo == "":
		and(`starts_at >= ?`, millis(q.Now))
	default:
		// By the clock as well: the order is by start, and its index then knows where to begin and end.
		if t := q.StartsFrom(); q.DateFrom != "" {
			and(`local_date >= ? AND starts_at >= ?`, q.DateFrom, millis(t))
		}
		if t := q.StartsUntil(); q.DateTo != "" {
			and(`local_date <= ? AND starts_at <= ?`, q.DateTo, millis(t))
		}
	}
	if q.After != (catalog.Position{}) {
		and(`(starts_at, event.id) > (?, ?)`, millis(q.After.StartsAt), int64(q.After.ID))
	}
	query := `SELECT event.id, slug, kind, event.title, venue, city, country, time_zone, starts_at, opens_at, closes_at, paused, currency,
		price_from, available, origin, destination FROM ` + from + ` WHERE ` + strings.Join(where, ` AND `) +
		` ORDER BY starts_at, event.id LIMIT ?`
	rows, err := s.query(ctx, query, append(args, q.Limit+1)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []catalog.Item
	for rows.Next() {
		var i catalog.Item
		var starts, opens, closes int64
		if err := rows.Scan(&i.ID, &i.Slug, &i.Kind, &i.Title, &i.Venue.Name, &i.Venue.City, &i.Venue.Country, &i.Venue.TimeZone,
			&starts, &opens, &closes, &i.Paused, &i.Currency, &i.PriceFrom, &i.Available, &i.Origin, &i.Destination); err != nil {
			return nil, err
		}
		i.StartsAt, i.SaleOpensAt, i.SaleClosesAt = instant(starts), instant(opens), instant(closes)
		items = append(items, i)
	}
	return items, rows.Err()
}

// matchOf makes an FTS5 expression of what people typed: every term must be there, the last may be the beginning of one, and those of place in the venue
// or its city. Every term is quoted, so nothing typed is ever an operator.
func matchOf(text, place string) string {
	var parts []string
	if terms := catalog.Terms(text); len(terms) > 0 {
		parts = append(parts, `"`+strings.Join(terms, `" AND "`)+`" *`)
	}
	if terms := catalog.Terms(place); len(terms) > 0 {
		parts = append(parts, `(place : "`+strings.Join(terms, `" AND place : "`)+`" *)`)
	}
	return strings.Join(parts, ` AND `)
}
