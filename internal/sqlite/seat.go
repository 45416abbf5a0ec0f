package sqlite

import (
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

var (
	someSeats = overRows(`SELECT seat_no, status, hold_id, coalesce(expires_at, 0), epoch FROM seat WHERE event_id = ? AND seat_no IN (`, `?`, `)`)
	// GuardFree: a seat without a row is free, one with a row when it says so or when the time of its hold is over.
	claimSeats = overRows(`INSERT INTO seat (event_id, seat_no, status, hold_id, expires_at, epoch) VALUES `, `(?, ?, ?, ?, ?, ?)`, `
		ON CONFLICT (event_id, seat_no) DO UPDATE
		SET status = excluded.status, hold_id = excluded.hold_id, expires_at = excluded.expires_at, epoch = excluded.epoch
		WHERE seat.status = 0 OR seat.status = 1 AND seat.expires_at < ?`)
)

func (t *tx) lockSeats(n *booking.Need, r *booking.Rows) error {
	for _, run := range groups(n.Seats, func(s *booking.SeatRef) catalog.EventID { return s.Event }) {
		err := someSeats.each(len(run), func(query string, from, to int) error {
			args := []any{int64(run[0].Event)}
			for _, ref := range run[from:to] {
				args = append(args, int64(ref.No))
			}
			rows, err := t.query(query, args...)
			if err != nil {
				return err
			}
			for rows.Next() {
				no, seat, err := scanSeat(rows)
				if err != nil {
					return closing(rows, err)
				}
				r.Seats[booking.SeatRef{Event: run[0].Event, No: no}] = seat
			}
			return closing(rows, rows.Err())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeSeats writes the seats of a batch. The guards say again, to the database, what Decide believed of the row.
func (t *tx) writeSeats(changes []booking.SeatChange, now time.Time) error {
	var claimed []*booking.SeatChange
	for i := range changes {
		if changes[i].Guard == booking.GuardFree {
			claimed = append(claimed, &changes[i])
		}
	}
	err := claimSeats.each(len(claimed), func(query string, from, to int) error {
		args := make([]any, 0, 6*(to-from)+1)
		for _, c := range claimed[from:to] {
			hold, until := seatValues(c)
			args = append(args, int64(c.Ref.Event), int64(c.Ref.No), int64(c.New.Status), hold, until, int64(c.New.Epoch))
		}
		changed, err := t.exec(query, append(args, millis(now))...)
		return must(changed, err, to-from, "seats")
	})
	if err != nil || len(claimed) == len(changes) {
		return err
	}
	return t.changeSeats(changes, now)
}

// changeSeats writes the seats that have an owner or are blocked, each by its key. All in one UPDATE … FROM a list was tried: SQLite may then walk
// through every seat of the event once for every row of the list.
func (t *tx) changeSeats(changes []booking.SeatChange, now time.Time) error {
	for i := range changes {
		c := &changes[i]
		if c.Guard == booking.GuardFree {
			continue
		}
		hold, until := seatValues(c)
		args := []any{int64(c.New.Status), hold, until, int64(c.New.Epoch), int64(c.Ref.Event), int64(c.Ref.No)}
		switch c.Guard {
		case booking.GuardHeld, booking.GuardSold:
			args = append(args, c.Owner[:])
		case booking.GuardLive:
			args = append(args, c.Owner[:], millis(now))
		case booking.GuardFree, booking.GuardBlocked:
		}
		changed, err := t.exec(seatWrites[c.Guard], args...)
		if err := must(changed, err, 1, "seat"); err != nil {
			return err
		}
	}
	return nil
}

// seatValues are the columns that are empty unless the seat is taken.
func seatValues(c *booking.SeatChange) (hold, until any) {
	if c.New.Status == booking.Held || c.New.Status == booking.Sold {
		hold = c.New.Hold[:]
	}
	if c.New.Status == booking.Held {
		until = millis(c.New.Until)
	}
	return hold, until
}

// seatWrites has the statement of each guard but GuardFree.
var seatWrites = [...]string{
	booking.GuardHeld:    updateSeat + ` AND status = 1 AND hold_id = ?`,
	booking.GuardLive:    updateSeat + ` AND hold_id = ? AND expires_at >= ?`, // only a held seat has an end: a CHECK of the table
	booking.GuardSold:    updateSeat + ` AND status = 2 AND hold_id = ?`,
	booking.GuardBlocked: updateSeat + ` AND status = 3`,
}

const updateSeat = `UPDATE seat SET status = ?, hold_id = ?, expires_at = ?, epoch = ? WHERE event_id = ? AND seat_no = ?`
