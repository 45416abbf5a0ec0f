package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
)

const paymentColumns = `event_id, id, hold_id, provider, coalesce(reference, ''), url, amount, currency, status, charged, charged_currency,
	owed, refunded, created_at, expires_at, check_at, checks, request`

// Indexes are named where the planner, which has no statistics, would walk through everything of the event.
const paymentsOfHold = `SELECT ` + paymentColumns + ` FROM payment INDEXED BY payment_hold WHERE event_id = ? AND hold_id = ? ORDER BY created_at, id`

// scanPayment reads the columns above, and then what else the query selects.
func scanPayment(row interface{ Scan(...any) error }, more ...any) (booking.Payment, error) {
	var p booking.Payment
	var created, expires, check int64
	err := row.Scan(append([]any{&p.ID.Event, (*bits16)(&p.ID.Bits), (*bits16)(&p.Hold.Bits), &p.Provider, &p.Reference, &p.URL,
		&p.Price.Amount, &p.Price.Currency, &p.Status, &p.Charged.Amount, &p.Charged.Currency,
		&p.Owed, &p.Refunded, &created, &expires, &check, &p.Checks, (*bits16)(&p.Request)}, more...)...)
	p.Hold.Event = p.ID.Event
	p.CreatedAt, p.ExpiresAt, p.CheckAt = instant(created), instant(expires), instant(check)
	return p, err
}

// lockPayments reads payments by id and asks for their holds.
func (t *tx) lockPayments(n *booking.Need, r *booking.Rows) error {
	for _, id := range n.Payments {
		p, err := scanPayment(t.queryRow(`SELECT `+paymentColumns+` FROM payment WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
		if err := missing(err); err != nil {
			return err
		}
		if err == nil {
			r.Payments[id] = p
			n.Holds = append(n.Holds, p.Hold)
		}
	}
	n.Compact()
	return nil
}

// paymentsOf reads all payments of a hold.
func (t *tx) paymentsOf(id booking.HoldID, r *booking.Rows) error {
	rows, err := t.query(paymentsOfHold, int64(id.Event), id.Bits[:])
	if err != nil {
		return err
	}
	for rows.Next() {
		p, err := scanPayment(rows)
		if err != nil {
			return closing(rows, err)
		}
		r.Payments[p.ID] = p
		r.PaymentsOf[id] = append(r.PaymentsOf[id], p.ID)
	}
	return closing(rows, rows.Err())
}

func (t *tx) writePayments(changes []booking.PaymentChange) error {
	for i := range changes {
		p := &changes[i].New
		reference := sql.NullString{String: p.Reference, Valid: p.Reference != ""}
		if changes[i].Insert {
			changed, err := t.exec(`
				INSERT INTO payment (event_id, id, hold_id, provider, reference, url, amount, currency, status, charged, charged_currency,
					owed, refunded, created_at, expires_at, check_at, checks, request)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				int64(p.ID.Event), p.ID.Bits[:], p.Hold.Bits[:], p.Provider, reference, p.URL, p.Price.Amount, p.Price.Currency, p.Status,
				p.Charged.Amount, p.Charged.Currency, p.Owed, p.Refunded, millis(p.CreatedAt), millis(p.ExpiresAt), millis(p.CheckAt), p.Checks, p.Request[:])
			if err := must(changed, err, 1, "new payment"); err != nil {
				return err
			}
			continue
		}
		changed, err := t.exec(`
			UPDATE payment SET reference = ?, url = ?, status = ?, charged = ?, charged_currency = ?, owed = ?, refunded = ?, check_at = ?, checks = ?
			WHERE event_id = ? AND id = ? AND status = ?`,
			reference, p.URL, p.Status, p.Charged.Amount, p.Charged.Currency, p.Owed, p.Refunded, millis(p.CheckAt), p.Checks,
			int64(p.ID.Event), p.ID.Bits[:], changes[i].From)
		if err := must(changed, err, 1, "payment"); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) lockNotices(n *booking.Need, r *booking.Rows) error {
	for _, ref := range n.Notices {
		var one int
		err := t.queryRow(`SELECT 1 FROM payment_notice WHERE provider = ? AND notice_id = ?`, ref.Provider, ref.ID).Scan(&one)
		if err := missing(err); err != nil {
			return err
		}
		if err == nil {
			r.Notices[ref] = true
		}
	}
	return nil
}

func (t *tx) writeNotices(refs []booking.NoticeRef, now time.Time) error {
	for _, ref := range refs {
		changed, err := t.exec(`INSERT INTO payment_notice (provider, notice_id, seen_at) VALUES (?, ?, ?)`, ref.Provider, ref.ID, millis(now))
		if err := must(changed, err, 1, "notice"); err != nil {
			return err
		}
	}
	return nil
}

// Payment reads one payment.
func (s *Store) Payment(ctx context.Context, id booking.PaymentID) (booking.Payment, error) {
	p, err := scanPayment(s.queryRow(ctx, `SELECT `+paymentColumns+` FROM payment WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
	return p, notFound(err)
}

// PaymentsOf lists a hold's payments, oldest first.
func (s *Store) PaymentsOf(ctx context.Context, id booking.HoldID) ([]booking.Payment, error) {
	rows, err := s.query(ctx, paymentsOfHold, int64(id.Event), id.Bits[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []booking.Payment
	for rows.Next() {
		p, err := scanPayment(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// DuePayments lists pending payments whose time to ask has come.
func (s *Store) DuePayments(ctx context.Context, limit int) ([]booking.DuePayment, error) {
	now := s.clock()
	rows, err := s.query(ctx, `
		SELECT `+paymentColumns+`,
			(SELECT state = 0 AND expires_at >= ?1 FROM hold WHERE hold.event_id = payment.event_id AND hold.id = payment.hold_id),
			(SELECT expires_at FROM hold WHERE hold.event_id = payment.event_id AND hold.id = payment.hold_id)
		FROM payment WHERE status = 0 AND check_at <= ?1 ORDER BY check_at LIMIT ?2`, millis(now), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []booking.DuePayment
	for rows.Next() {
		var d booking.DuePayment
		var until int64
		if d.Payment, err = scanPayment(rows, &d.Held, &until); err != nil {
			return nil, err
		}
		d.Until = instant(until)
		out = append(out, d)
	}
	return out, rows.Err()
}

// ForgetNotices drops old notice ids.
func (s *Store) ForgetNotices(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.update(ctx, func(t *tx) (err error) {
		n, err = t.exec(`
			DELETE FROM payment_notice WHERE (provider, notice_id) IN (
				SELECT provider, notice_id FROM payment_notice WHERE seen_at < ? ORDER BY seen_at LIMIT ?)`, millis(before), limit)
		return err
	})
	return int(n), err
}
