package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// Tickets is the ticket store on a DB.
type Tickets struct{ *DB }

var _ ticket.Store = (*Tickets)(nil)

// NewTickets makes one.
func NewTickets(db *DB) *Tickets { return &Tickets{db} }

const voidTicketsOf = `UPDATE ticket INDEXED BY ticket_once SET status = 2 WHERE event_id = ? AND booking_id = ? AND status <> 2`

// voidTickets makes the codes of cancelled bookings worthless, in the step that gives their places back.
func (t *tx) voidTickets(ids []booking.BookingID) error {
	for _, id := range ids {
		if _, err := t.exec(voidTicketsOf, int64(id.Event), id.Bits[:]); err != nil {
			return err
		}
	}
	return nil
}

// Issue writes the tickets of a confirmed booking once.
func (s *Tickets) Issue(ctx context.Context, id booking.BookingID, tickets []ticket.Ticket, fact []byte) error {
	return s.update(ctx, func(t *tx) error {
		var wanted bool
		err := t.queryRow(`
			SELECT status = 1 AND NOT EXISTS (SELECT 1 FROM ticket WHERE event_id = ?1 AND booking_id = ?2)
			FROM booking WHERE event_id = ?1 AND id = ?2`, int64(id.Event), id.Bits[:]).Scan(&wanted)
		if err := missing(err); err != nil || !wanted {
			return err
		}
		for i := range tickets {
			k := &tickets[i]
			_, err := t.exec(`
				INSERT INTO ticket (event_id, id, booking_id, ordinal, seat, pool, holder, code, status, issued_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				int64(k.ID.Event), k.ID.Bits[:], id.Bits[:], k.Ordinal, k.Seat, k.Pool, k.Holder, k.Code, k.Status, millis(k.IssuedAt))
			if err != nil {
				return err
			}
		}
		return t.addMessage(outbox.Message{
			Topic: outbox.TopicTickets, Type: ticket.MessageIssued, Key: id.String(), Sequence: 1, Payload: fact, CreatedAt: s.clock(),
		})
	})
}

const ticketColumns = `event_id, id, booking_id, ordinal, seat, pool, holder, code, status, issued_at`

func scanTicket(row interface{ Scan(...any) error }) (ticket.Ticket, error) {
	var k ticket.Ticket
	var issued int64
	err := row.Scan(&k.ID.Event, (*bits16)(&k.ID.Bits), (*bits16)(&k.Booking.Bits), &k.Ordinal, &k.Seat, &k.Pool, &k.Holder, &k.Code, &k.Status, &issued)
	k.Booking.Event, k.IssuedAt = k.ID.Event, instant(issued)
	return k, err
}

// Tickets lists a booking's tickets.
func (s *Tickets) Tickets(ctx context.Context, id booking.BookingID) ([]ticket.Ticket, error) {
	rows, err := s.query(ctx, `SELECT `+ticketColumns+` FROM ticket WHERE event_id = ? AND booking_id = ? ORDER BY ordinal`, int64(id.Event), id.Bits[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []ticket.Ticket
	for rows.Next() {
		k, err := scanTicket(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// Ticket reads one.
func (s *Tickets) Ticket(ctx context.Context, id booking.TicketID) (ticket.Ticket, error) {
	k, err := scanTicket(s.queryRow(ctx, `SELECT `+ticketColumns+` FROM ticket WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
	if errors.Is(err, sql.ErrNoRows) {
		err = ticket.ErrNotFound
	}
	return k, err
}
