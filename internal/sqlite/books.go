package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// snapshot runs f over one unchanging state of the database; writers go on meanwhile.
func (s *Store) snapshot(ctx context.Context, f func(each func(query string, scan func(*sql.Rows) error, args ...any) error) error) (err error) {
	t, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() {
		if e := t.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	return f(func(query string, scan func(*sql.Rows) error, args ...any) error {
		s.statements.Add(1)
		rows, err := t.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := scan(rows); err != nil {
				return closing(rows, err)
			}
		}
		return closing(rows, rows.Err())
	})
}

func scanSeat(rows *sql.Rows) (no int32, seat booking.Seat, err error) {
	var until int64
	err = rows.Scan(&no, &seat.Status, (*bits16)(&seat.Hold), &until, &seat.Epoch)
	if seat.Status == booking.Held {
		seat.Until = instant(until)
	}
	return no, seat, err
}

const (
	allSeats   = `SELECT seat_no, status, hold_id, coalesce(expires_at, 0), epoch FROM seat WHERE event_id = ?`
	allBuckets = `SELECT pool, bucket, capacity, overbook, held, sold, epoch FROM pool_bucket WHERE event_id = ? ORDER BY pool, bucket`
)

func scanBucket(rows *sql.Rows) (pool int, b booking.Bucket, err error) {
	err = rows.Scan(&pool, &b.Bucket, &b.Capacity, &b.Overbook, &b.Held, &b.Sold, &b.Epoch)
	return pool, b, err
}

// Picture reads what the board of an event shows.
func (s *Store) Picture(ctx context.Context, event catalog.EventID) (board.News, error) {
	var n board.News
	err := s.snapshot(ctx, func(each func(string, func(*sql.Rows) error, ...any) error) error {
		return errors.Join(
			each(allSeats, func(r *sql.Rows) error {
				no, seat, err := scanSeat(r)
				n.Seats = append(n.Seats, booking.BoardSeat(no, seat))
				return err
			}, int64(event)),
			each(allBuckets, func(r *sql.Rows) error {
				pool, b, err := scanBucket(r)
				n.Buckets = append(n.Buckets, booking.BoardBucket(pool, b))
				return err
			}, int64(event)),
			// Holds that are not settled, over or not: their units count as taken in the buckets.
			each(`SELECT `+holdColumns+` FROM hold WHERE event_id = ? AND state = 0 AND units <> '[]'`, func(r *sql.Rows) error {
				h, err := scanHold(r)
				n.Claims = append(n.Claims, booking.BoardClaim(&h))
				return err
			}, int64(event)),
		)
	})
	return n, err
}

// Books reads everything of an event.
func (s *Store) Books(ctx context.Context, event catalog.EventID) (*booking.Books, error) {
	b := &booking.Books{
		Event: event, Seats: map[int32]booking.Seat{}, Pools: map[int][]booking.Bucket{}, Holds: map[booking.HoldID]booking.Hold{},
		Bookings: map[booking.BookingID]booking.Booking{}, Allowances: map[identity.CustomerID]int{}, Pending: map[booking.BookingID]bool{},
	}
	id := int64(event)
	err := s.snapshot(ctx, func(each func(string, func(*sql.Rows) error, ...any) error) error {
		return errors.Join(
			each(allSeats, func(r *sql.Rows) error {
				no, seat, err := scanSeat(r)
				b.Seats[no] = seat
				return err
			}, id),
			each(allBuckets, func(r *sql.Rows) error {
				pool, k, err := scanBucket(r)
				b.Pools[pool] = append(b.Pools[pool], k)
				return err
			}, id),
			each(`SELECT `+holdColumns+` FROM hold WHERE event_id = ?`, func(r *sql.Rows) error {
				h, err := scanHold(r)
				b.Holds[h.ID] = h
				return err
			}, id),
			each(`SELECT `+bookingColumns+` FROM booking WHERE event_id = ?`, func(r *sql.Rows) error {
				k, err := scanBooking(r)
				b.Bookings[k.ID] = k
				return err
			}, id),
			each(`SELECT `+paymentColumns+` FROM payment WHERE event_id = ?`, func(r *sql.Rows) error {
				p, err := scanPayment(r)
				b.Payments = append(b.Payments, p)
				return err
			}, id),
			each(`SELECT `+refundColumns+` FROM refund WHERE event_id = ?`, func(r *sql.Rows) error {
				f, err := scanRefund(r)
				b.Refunds = append(b.Refunds, f)
				return err
			}, id),
			each(`SELECT customer, units FROM allowance WHERE event_id = ? AND units > 0`, func(r *sql.Rows) error {
				var c identity.CustomerID
				var n int
				err := r.Scan((*bits16)(&c), &n)
				b.Allowances[c] = n
				return err
			}, id),
			each(`SELECT booking_id, status = 2 FROM ticket WHERE event_id = ?`, func(r *sql.Rows) error {
				k := booking.BookedTicket{Booking: booking.BookingID{Event: event}}
				err := r.Scan((*bits16)(&k.Booking.Bits), &k.Void)
				b.Tickets = append(b.Tickets, k)
				return err
			}, id),
			each(`SELECT DISTINCT key FROM outbox WHERE topic = 'booking-events'`, func(r *sql.Rows) error {
				var key string
				if err := r.Scan(&key); err != nil {
					return err
				}
				k, err := booking.ParseBookingID(key)
				if err == nil && k.Event == event {
					b.Pending[k] = true
				}
				return err
			}),
		)
	})
	b.Now = s.clock()
	return b, err
}
