package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Search finds events in one statement.
func (s *Catalog) Search(ctx context.Context, q *catalog.Query) ([]catalog.Item, error) {
	query, args, ok := searchOf(q)
	if !ok {
		return nil, nil
	}
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	items := make([]catalog.Item, 0, q.Limit+1)
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		item, err := itemOf(text)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, rows.Err()
}

// itemColumns come as one text: every value that crosses from SQLite to Go costs more than finding it does, and one instead of seventeen halves the cost of a
// search. Nobody can write the separator into a title: the catalog refuses control characters.
const (
	itemColumns = `concat_ws(char(31), event.id, slug, kind, event.title, venue, city, country, time_zone, starts_at, opens_at, closes_at, paused, currency,
		price_from, available, origin, destination)`
	itemSeparator = "\x1f"
	itemFields    = 17
)

var errItem = errors.New("an event in the database is not as it was written")

func itemOf(text string) (i catalog.Item, err error) {
	if n := strings.Count(text, itemSeparator) + 1; n != itemFields {
		return i, fmt.Errorf("%w: %d fields", errItem, n)
	}
	word := func() (w string) {
		w, text, _ = strings.Cut(text, itemSeparator)
		return w
	}
	number := func() int64 {
		n, e := strconv.ParseInt(word(), 10, 64)
		if e != nil {
			err = fmt.Errorf("%w: %w", errItem, e)
		}
		return n
	}
	i.ID, i.Slug, i.Kind, i.Title = catalog.EventID(number()), word(), catalog.Kind(word()), word()
	i.Venue = catalog.Venue{Name: word(), City: word(), Country: word(), TimeZone: word()}
	i.StartsAt, i.SaleOpensAt, i.SaleClosesAt = instant(number()), instant(number()), instant(number())
	i.Paused, i.Currency, i.PriceFrom, i.Available = number() != 0, word(), number(), int(number())
	i.Origin, i.Destination = word(), word()
	return i, err
}

// searchOf writes the statement of a query; ok is false where nothing can match. It names the index, because the planner, which has no statistics, took the
// one by date for a search by route and date: among 100,000 flights that was ten times as slow.
func searchOf(q *catalog.Query) (query string, args []any, ok bool) {
	var where []string
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	var from string
	order := `list_order`
	byRoute := q.Origin != "" && q.Destination != ""
	switch match := matchOf(q.Text, q.Place); {
	case match != "":
		if q.Date != "" {
			match += ` AND day : "` + dayTerm(q.Date) + `"`
		}
		from, order = `event_text CROSS JOIN event INDEXED BY event_list ON list_order = event_text.rowid`, `event_text.rowid`
		and(`event_text MATCH ?`, match)
	case q.Text != "" || q.Place != "":
		return "", nil, false // nothing in it that could be a word
	case byRoute:
		from = `event INDEXED BY event_route`
	case q.Origin != "":
		from = `event INDEXED BY event_departure`
	case q.Destination != "":
		from = `event INDEXED BY event_arrival`
	case q.Date != "":
		from = `event INDEXED BY event_date`
	case q.Kind != "":
		from = `event INDEXED BY event_kind`
	case q.DateFrom != "" || q.DateTo != "":
		from = `event INDEXED BY event_days`
	default:
		from = `event INDEXED BY event_list`
	}
	if q.Origin != "" || q.Destination != "" {
		and(`origin <> ''`) // the indexes of flights have no other events
	}
	if q.Origin != "" {
		and(`origin = ?`, q.Origin)
	}
	if q.Destination != "" {
		and(`destination = ?`, q.Destination)
	}
	if q.Kind != "" {
		and(`kind = ?`, q.Kind)
	}
	switch {
	case q.Date != "":
		and(`local_date = ?`, q.Date)
	case q.DateFrom != "":
		and(`local_date >= ?`, q.DateFrom)
	case q.DateTo == "" && byRoute:
		// Spares that index the flights of years ago; yesterday, because it is still that in the west.
		and(`local_date >= ?`, q.Now.UTC().AddDate(0, 0, -1).Format(time.DateOnly))
	}
	if q.DateTo != "" {
		and(`local_date <= ?`, q.DateTo)
	}
	if q.Date == "" && q.DateFrom == "" && q.DateTo == "" {
		and(`starts_at >= ?`, millis(q.Now))
	}
	// The same bounds by the order itself say where an index begins and ends.
	if t := q.StartsFrom(); !t.IsZero() {
		and(order+` >= ?`, orderOf(t))
	}
	if t := q.StartsUntil(); !t.IsZero() {
		and(order+` < ?`, orderOf(t))
	}
	if p := q.After; p != (catalog.Position{}) {
		// An event that has been moved or removed since: go on where it was.
		and(order+` > coalesce((SELECT e.list_order FROM event e WHERE e.id = ? AND e.starts_at = ?), ?)`, int64(p.ID), millis(p.StartsAt), orderIn(p.StartsAt, p.ID, 0))
	}
	return `SELECT ` + itemColumns + ` FROM ` + from + ` WHERE ` + strings.Join(where, ` AND `) + ` ORDER BY ` + order + ` LIMIT ?`, append(args, q.Limit+1), true
}

// matchOf makes an FTS5 expression of what people typed: every term must be there, the last may be the beginning of one, and those of place in the venue
// or its city. Every term is quoted, so nothing typed is ever an operator.
func matchOf(text, place string) string {
	var parts []string
	if terms := catalog.Terms(text); len(terms) > 0 {
		parts = append(parts, `{title place} : ("`+strings.Join(terms, `" AND "`)+`" *)`)
	}
	if terms := catalog.Terms(place); len(terms) > 0 {
		parts = append(parts, `(place : "`+strings.Join(terms, `" AND place : "`)+`" *)`)
	}
	return strings.Join(parts, ` AND `)
}
