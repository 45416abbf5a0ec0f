package sqlite

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Search finds events in one statement. Events that have started are left out unless a date is asked for.
func (s *Catalog) Search(ctx context.Context, q catalog.Query, now time.Time) (catalog.Page, error) {
	var where []string
	var args []any
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	from := `event`
	if words := matchOf(q.Text, q.Place); words != "" {
		from = `event_text JOIN event ON event.id = event_text.rowid`
		and(`event_text MATCH ?`, words)
	} else if q.Text != "" || q.Place != "" {
		return catalog.Page{}, nil // nothing in it that could be a word
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
	if q.Date != "" {
		and(`local_date = ?`, q.Date)
	}
	if q.DateFrom != "" {
		and(`local_date >= ?`, q.DateFrom)
	}
	if q.DateTo != "" {
		and(`local_date <= ?`, q.DateTo)
	}
	if q.Date == "" && q.DateFrom == "" && q.DateTo == "" {
		and(`starts_at >= ?`, millis(now))
	}
	if q.After != (catalog.Position{}) {
		and(`(starts_at, event.id) > (?, ?)`, millis(q.After.StartsAt), int64(q.After.ID))
	}
	query := `SELECT event.id, slug, kind, event.title, event.venue, event.city, country, time_zone, starts_at, opens_at, closes_at, currency,
		price_from, available, paused, origin, destination FROM ` + from + ` WHERE ` + strings.Join(where, ` AND `) +
		` ORDER BY starts_at, event.id LIMIT ?`
	rows, err := s.query(ctx, query, append(args, q.Limit+1)...)
	if err != nil {
		return catalog.Page{}, err
	}
	defer rows.Close()
	page := catalog.Page{Items: make([]catalog.Item, 0, q.Limit)}
	for rows.Next() {
		if len(page.Items) == q.Limit {
			last := &page.Items[q.Limit-1]
			page.Next = catalog.Position{StartsAt: last.StartsAt, ID: last.ID}
			break
		}
		var i catalog.Item
		var starts, opens, closes int64
		if err := rows.Scan(&i.ID, &i.Slug, &i.Kind, &i.Title, &i.Venue.Name, &i.Venue.City, &i.Venue.Country, &i.Venue.TimeZone,
			&starts, &opens, &closes, &i.PriceFrom.Currency, &i.PriceFrom.Amount, &i.Available, &i.Paused, &i.Origin, &i.Destination); err != nil {
			return catalog.Page{}, err
		}
		i.StartsAt, i.SaleOpensAt, i.SaleClosesAt = instant(starts), instant(opens), instant(closes)
		page.Items = append(page.Items, i)
	}
	return page, rows.Err()
}

// matchOf makes an FTS5 expression of what people typed: all words must be there, the last may be the beginning of one, and those of place in the venue
// or its city. Every word is quoted, so nothing typed is ever an operator.
func matchOf(text, place string) string {
	var parts []string
	if w := words(text); w != "" {
		parts = append(parts, w)
	}
	if w := words(place); w != "" {
		parts = append(parts, `{venue city} : (`+w+`)`)
	}
	return strings.Join(parts, ` AND `)
}

func words(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	if len(fields) == 0 {
		return ""
	}
	return `"` + strings.Join(fields, `" AND "`) + `" *`
}
