package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/identity"
)

const bookingColumns = `event_id, id, customer, status, amount, currency, buyer, seats, units, places, refund, reason, cancelled_by, sequence, created_at, changed_at`

func scanBooking(row interface{ Scan(...any) error }) (booking.Booking, error) {
	var b booking.Booking
	var buyer, seats, units []byte
	var created, changed int64
	err := row.Scan(&b.ID.Event, (*bits16)(&b.ID.Bits), (*bits16)(&b.Customer), &b.Status, &b.Price.Amount, &b.Price.Currency, &buyer,
		&seats, &units, &b.Places, &b.Refund, &b.Reason, (*bits16)(&b.CancelledBy.Bits), &b.Sequence, &created, &changed)
	if err != nil {
		return b, err
	}
	b.CreatedAt, b.ChangedAt = instant(created), instant(changed)
	if b.CancelledBy.Bits != [16]byte{} {
		b.CancelledBy.Event = b.ID.Event
	}
	return b, errors.Join(json.Unmarshal(buyer, &b.Buyer), parsePlaces(seats, units, &b.Seats, &b.Units))
}

func (t *tx) writeBookings(changes []booking.BookingChange) error {
	for i := range changes {
		b := &changes[i].New
		buyer, err := json.Marshal(b.Buyer)
		if err != nil {
			return err
		}
		if changes[i].Insert {
			changed, err := t.exec(`
				INSERT INTO booking (event_id, id, customer, status, amount, currency, email, buyer, seats, units, places, refund, reason,
					sequence, created_at, changed_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				int64(b.ID.Event), b.ID.Bits[:], b.Customer[:], b.Status, b.Price.Amount, b.Price.Currency, b.Buyer.Email, string(buyer),
				string(seatsJSON(b.Seats)), string(unitsJSON(b.Units)), b.Places, b.Refund, b.Reason, b.Sequence, millis(b.CreatedAt), millis(b.ChangedAt))
			if err := must(changed, err, 1, "new booking"); err != nil {
				return err
			}
			continue
		}
		var by any
		if b.CancelledBy != (booking.QuoteID{}) {
			by = b.CancelledBy.Bits[:]
		}
		changed, err := t.exec(`
			UPDATE booking SET status = ?, email = ?, buyer = ?, refund = ?, reason = ?, cancelled_by = ?, sequence = ?, changed_at = ?
			WHERE event_id = ? AND id = ? AND status = ?`,
			b.Status, b.Buyer.Email, string(buyer), b.Refund, b.Reason, by, b.Sequence, millis(b.ChangedAt),
			int64(b.ID.Event), b.ID.Bits[:], changes[i].From)
		if err := must(changed, err, 1, "booking"); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) lockQuotes(n *booking.Need, r *booking.Rows) error {
	for _, id := range n.Quotes {
		q := booking.Quote{ID: id, Booking: booking.BookingID{Event: id.Event}}
		var expires int64
		err := t.queryRow(`SELECT booking_id, refund, currency, expires_at FROM quote WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]).
			Scan((*bits16)(&q.Booking.Bits), &q.Refund.Amount, &q.Refund.Currency, &expires)
		if err := missing(err); err != nil {
			return err
		}
		if err == nil {
			q.ExpiresAt = instant(expires)
			r.Quotes[id] = q
		}
	}
	return nil
}

func (t *tx) writeQuotes(quotes []booking.Quote) error {
	for _, q := range quotes {
		changed, err := t.exec(`INSERT INTO quote (event_id, id, booking_id, refund, currency, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
			int64(q.ID.Event), q.ID.Bits[:], q.Booking.Bits[:], q.Refund.Amount, q.Refund.Currency, millis(q.ExpiresAt))
		if err := must(changed, err, 1, "quote"); err != nil {
			return err
		}
	}
	return nil
}

// Booking reads one booking.
func (s *Store) Booking(ctx context.Context, id booking.BookingID) (booking.Booking, error) {
	b, err := scanBooking(s.queryRow(ctx, `SELECT `+bookingColumns+` FROM booking WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
	return b, notFound(err)
}

// BookingsOf lists a customer's newest bookings.
func (s *Store) BookingsOf(ctx context.Context, customer identity.CustomerID, limit int) ([]booking.Booking, error) {
	return s.bookings(ctx, `SELECT `+bookingColumns+` FROM booking WHERE customer = ? ORDER BY created_at DESC LIMIT ?`, customer[:], limit)
}

// FindBookings lists the newest bookings of a mail address, whatever its case.
func (s *Store) FindBookings(ctx context.Context, email string, limit int) ([]booking.Booking, error) {
	return s.bookings(ctx, `SELECT `+bookingColumns+` FROM booking WHERE email = ? ORDER BY created_at DESC LIMIT ?`, email, limit)
}

func (s *Store) bookings(ctx context.Context, query string, args ...any) ([]booking.Booking, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []booking.Booking
	for rows.Next() {
		b, err := scanBooking(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}
