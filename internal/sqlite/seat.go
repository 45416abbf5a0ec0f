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
			var hold, until any
			if c.New.Status == booking.Held || c.New.Status == booking.Sold {
				hold = c.New.Hold[:]
			}
			if c.New.Status == booking.Held {
				until = millis(c.New.Until)
			}
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

// changeSeats writes the seats that have an owner or are blocked, in runs of one event and one kind of guard.
func (t *tx) changeSeats(changes []booking.SeatChange, now time.Time) error {
	for _, run := range groups(changes, func(c *booking.SeatChange) catalog.EventID { return c.Ref.Event }) {
		var lists [booking.GuardBlocked + 1]array
		var count [len(lists)]int
		for i := range run {
			c := &run[i]
			if c.Guard == booking.GuardFree {
				continue
			}
			list := &lists[c.Guard]
			if *list == nil {
				*list = array{'['}
			}
			list.open()
			list.int(int64(c.Ref.No))
			list.int(int64(c.New.Status))
			if c.New.Status == booking.Held || c.New.Status == booking.Sold {
				list.bits(c.New.Hold)
			} else {
				list.null()
			}
			if c.New.Status == booking.Held {
				list.int(millis(c.New.Until))
			} else {
				list.null()
			}
			list.int(int64(c.New.Epoch))
			list.bits(c.Owner)
			list.close()
			count[c.Guard]++
		}
		for guard, list := range lists {
			if count[guard] == 0 {
				continue
			}
			list.close()
			changed, err := t.exec(seatWrites[guard], int64(run[0].Ref.Event), string(list), millis(now))
			if err := must(changed, err, count[guard], "seats"); err != nil {
				return err
			}
		}
	}
	return nil
}

// seatWrites has the statement of each guard. ?1 is the event, ?2 the seats as JSON, ?3 the time that the batch was decided at.
var seatWrites = [...]string{
	booking.GuardHeld:    updateSeats + ` AND seat.status = 1 AND seat.hold_id = j.owner AND ?3 > 0`,
	booking.GuardLive:    updateSeats + ` AND seat.status = 1 AND seat.hold_id = j.owner AND seat.expires_at >= ?3`,
	booking.GuardSold:    updateSeats + ` AND seat.status = 2 AND seat.hold_id = j.owner AND ?3 > 0`,
	booking.GuardBlocked: updateSeats + ` AND seat.status = 3 AND ?3 > 0`,
}

const updateSeats = `
	UPDATE seat SET status = j.status, hold_id = j.hold_id, expires_at = j.expires_at, epoch = j.epoch
	FROM (
		SELECT value->>0 AS no, value->>1 AS status, unhex(value->>2) AS hold_id, value->>3 AS expires_at, value->>4 AS epoch, unhex(value->>5) AS owner
		FROM json_each(?2)
	) AS j
	WHERE seat.event_id = ?1 AND seat.seat_no = j.no`
