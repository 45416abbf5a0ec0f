package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
)

const refundColumns = `event_id, id, payment_id, provider, reference, cause, amount, currency, done, attempts, next_at, created_at`

func scanRefund(row interface{ Scan(...any) error }) (booking.Refund, error) {
	var r booking.Refund
	var next, created int64
	err := row.Scan(&r.ID.Event, (*bits16)(&r.ID.Bits), (*bits16)(&r.Payment.Bits), &r.Provider, &r.Reference, &r.Cause,
		&r.Amount.Amount, &r.Amount.Currency, &r.Done, &r.Attempts, &next, &created)
	r.Payment.Event = r.ID.Event
	r.NextAt, r.CreatedAt = instant(next), instant(created)
	return r, err
}

func (t *tx) lockRefunds(n *booking.Need, r *booking.Rows) error {
	for _, id := range n.Refunds {
		refund, err := scanRefund(t.queryRow(`SELECT `+refundColumns+` FROM refund WHERE event_id = ? AND id = ?`, int64(id.Event), id.Bits[:]))
		if err := missing(err); err != nil {
			return err
		}
		if err == nil {
			r.Refunds[id] = refund
		}
	}
	return nil
}

func (t *tx) writeRefunds(changes []booking.RefundChange) error {
	for i := range changes {
		r := &changes[i].New
		if changes[i].Insert {
			changed, err := t.exec(`
				INSERT INTO refund (event_id, id, payment_id, provider, reference, cause, amount, currency, done, attempts, next_at, created_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				int64(r.ID.Event), r.ID.Bits[:], r.Payment.Bits[:], r.Provider, r.Reference, r.Cause, r.Amount.Amount, r.Amount.Currency,
				r.Done, r.Attempts, millis(r.NextAt), millis(r.CreatedAt))
			if err := must(changed, err, 1, "new refund"); err != nil {
				return err
			}
			continue
		}
		changed, err := t.exec(`UPDATE refund SET done = ?, attempts = ?, next_at = ? WHERE event_id = ? AND id = ? AND done = 0`,
			r.Done, r.Attempts, millis(r.NextAt), int64(r.ID.Event), r.ID.Bits[:])
		if err := must(changed, err, 1, "refund"); err != nil {
			return err
		}
	}
	return nil
}

// ClaimRefunds lists what is due and makes it due again after lease.
func (s *Store) ClaimRefunds(ctx context.Context, limit int, lease time.Duration) ([]booking.Refund, error) {
	var due []booking.Refund
	now := s.clock()
	// A look from the side first: nearly always there is nothing, and then nobody should wait for the writer.
	var some bool
	if err := s.queryRow(ctx, `SELECT EXISTS (SELECT 1 FROM refund WHERE done = 0 AND next_at <= ?)`, millis(now)).Scan(&some); err != nil || !some {
		return nil, err
	}
	err := s.update(ctx, func(t *tx) error {
		rows, err := t.query(`
			UPDATE refund SET next_at = ?1 WHERE (event_id, id) IN (
				SELECT event_id, id FROM refund WHERE done = 0 AND next_at <= ?2 ORDER BY next_at LIMIT ?3)
			RETURNING `+refundColumns, millis(now.Add(lease)), millis(now), limit)
		if err != nil {
			return err
		}
		for rows.Next() {
			r, err := scanRefund(rows)
			if err != nil {
				return closing(rows, err)
			}
			due = append(due, r)
		}
		t.writes += int64(len(due))
		return closing(rows, rows.Err())
	})
	// RETURNING has no order of its own.
	slices.SortFunc(due, func(a, b booking.Refund) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return due, err
}

// Lag says how far the loops are behind.
func (s *Store) Lag(ctx context.Context) (booking.Lag, error) {
	now := millis(s.clock())
	var sweep, reconcile, refund int64
	var l booking.Lag
	err := s.queryRow(ctx, `
		SELECT coalesce((SELECT ?1 - min(expires_at) FROM hold WHERE state = 0 AND expires_at < ?1), 0),
			coalesce((SELECT ?1 - min(check_at) FROM payment WHERE status = 0 AND check_at <= ?1), 0),
			coalesce((SELECT ?1 - min(created_at) FROM refund WHERE done = 0), 0),
			(SELECT count(*) FROM refund WHERE done = 0)`, now).Scan(&sweep, &reconcile, &refund, &l.Refunds)
	l.Sweep, l.Reconcile, l.Refund = time.Duration(sweep)*time.Millisecond, time.Duration(reconcile)*time.Millisecond, time.Duration(refund)*time.Millisecond
	return l, err
}

// Now is the store's clock.
func (s *Store) Now(context.Context) (time.Time, error) { return s.clock(), nil }
