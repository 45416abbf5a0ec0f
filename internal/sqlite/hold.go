package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

const holdColumns = `event_id, id, customer, seats, units, places, amount, currency, state, placed_at, expires_at, ceiling_at, prolonged, request`

func scanHold(row interface{ Scan(...any) error }) (booking.Hold, error) {
	var h booking.Hold
	var seats, units []byte
	var placed, until, ceiling int64
	err := row.Scan(&h.ID.Event, (*bits16)(&h.ID.Bits), (*bits16)(&h.Customer), &seats, &units, &h.Places, &h.Price.Amount, &h.Price.Currency,
		&h.State, &placed, &until, &ceiling, &h.Prolonged, (*bits16)(&h.Request))
	if err != nil {
		return h, err
	}
	h.PlacedAt, h.Until, h.Ceiling = instant(placed), instant(until), instant(ceiling)
	return h, parsePlaces(seats, units, &h.Seats, &h.Units)
}

func parsePlaces(seatText, unitText []byte, seats *[]int32, units *[]booking.Units) (err error) {
	if *seats, err = parseSeats(seatText); err != nil {
		return err
	}
	if len(unitText) > len("[]") {
		err = json.Unmarshal(unitText, units)
	}
	return err
}

// lockHolds reads holds with everything that hangs on them, and adds their places to what is needed; fresh ids are only looked for.
func (t *tx) lockHolds(n *booking.Need, r *booking.Rows) error {
	for _, run := range groups(n.Repeats, func(id *booking.HoldID) catalog.EventID { return id.Event }) {
		err := freshHolds.each(len(run), func(query string, from, to int) error {
			args := []any{int64(run[0].Event)}
			for i := range run[from:to] {
				args = append(args, run[from+i].Bits[:])
			}
			rows, err := t.query(query, args...)
			if err != nil {
				return err
			}
			for rows.Next() {
				h, err := scanHold(rows)
				if err != nil {
					return closing(rows, err)
				}
				r.Holds[h.ID] = h
			}
			return closing(rows, rows.Err())
		})
		if err != nil {
			return err
		}
	}
	for _, id := range n.Holds {
		h, err := scanHold(t.queryRow(`SELECT `+holdColumns+` FROM hold WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		r.Holds[id] = h
		n.AddHold(&h)
		b, err := scanBooking(t.queryRow(`SELECT `+bookingColumns+` FROM booking WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
		if err == nil {
			r.Bookings[b.ID] = b
		} else if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := t.paymentsOf(id, r); err != nil {
			return err
		}
	}
	n.Compact()
	return nil
}

var (
	freshHolds = overRows(`SELECT `+holdColumns+` FROM hold WHERE event_id = ? AND id IN (`, `?`, `)`)
	newHolds   = overRows(`INSERT INTO hold (`+holdColumns+`) VALUES `, `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, ``)
)

// writeHolds inserts the new holds of a batch together; others change one by one, from the state that they were in.
func (t *tx) writeHolds(changes []booking.HoldChange) error {
	var fresh []*booking.Hold
	for i := range changes {
		h := &changes[i].New
		if changes[i].Insert {
			fresh = append(fresh, h)
			continue
		}
		changed, err := t.exec(`UPDATE hold SET state = ?, expires_at = ?, prolonged = ? WHERE event_id = ? AND id = ? AND state = ?`,
			h.State, millis(h.Until), h.Prolonged, int64(h.ID.Event), h.ID.Bits[:], changes[i].From)
		if err := must(changed, err, 1, "hold"); err != nil {
			return err
		}
	}
	return newHolds.each(len(fresh), func(query string, from, to int) error {
		args := make([]any, 0, 14*(to-from))
		for _, h := range fresh[from:to] {
			args = append(args, int64(h.ID.Event), h.ID.Bits[:], h.Customer[:], string(seatsJSON(h.Seats)), string(unitsJSON(h.Units)), h.Places,
				h.Price.Amount, h.Price.Currency, int64(h.State), millis(h.PlacedAt), millis(h.Until), millis(h.Ceiling), h.Prolonged, h.Request[:])
		}
		changed, err := t.exec(query, args...)
		return must(changed, err, to-from, "new holds")
	})
}

// Hold reads one hold.
func (s *Store) Hold(ctx context.Context, id booking.HoldID) (booking.Hold, error) {
	h, err := scanHold(s.queryRow(ctx, `SELECT `+holdColumns+` FROM hold WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
	return h, notFound(err)
}

const endedHolds = `SELECT event_id, id FROM hold INDEXED BY hold_due WHERE state = 0 AND expires_at < ?`

// EndedHolds names held holds whose time is over.
func (s *Store) EndedHolds(ctx context.Context, q booking.EndedHolds) ([]booking.HoldID, error) {
	query, args := endedHolds, []any{millis(s.clock())}
	if q.Event != 0 {
		query, args = query+` AND event_id = ?`, append(args, int64(q.Event))
		if len(q.Pools)+len(q.Customers) > 0 {
			pools, err := json.Marshal(q.Pools)
			if err != nil {
				return nil, err
			}
			query += ` AND (customer IN (SELECT unhex(value) FROM json_each(?)) OR EXISTS (
				SELECT 1 FROM json_each(hold.units) AS u WHERE u.value->>'p' IN (SELECT value FROM json_each(?))))`
			args = append(args, customersJSON(q.Customers), string(pools))
		}
	}
	rows, err := s.query(ctx, query+` ORDER BY expires_at LIMIT ?`, append(args, q.Limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []booking.HoldID
	for rows.Next() {
		var id booking.HoldID
		if err := rows.Scan(&id.Event, (*bits16)(&id.Bits)); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func customersJSON(customers []identity.CustomerID) string {
	list := array{'['}
	for _, c := range customers {
		list.bits(c)
	}
	list.close()
	return string(list)
}

// missing lets "no row" pass; notFound turns it into the engine's word for it.
func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return known(err)
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return booking.ErrNotFound
	}
	return known(err)
}

// closing ends a result set and gives the first error.
func closing(rows *sql.Rows, err error) error { return errors.Join(err, rows.Close()) }
