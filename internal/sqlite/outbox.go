package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/outbox"
)

// Outbox is the relay's store on a DB.
type Outbox struct{ *DB }

var _ outbox.Store = (*Outbox)(nil)

// NewOutbox makes one.
func NewOutbox(db *DB) *Outbox { return &Outbox{db} }

// writeMessages appends the facts of a batch, in the order in which they became true.
func (t *tx) writeMessages(messages []booking.MessageChange, now time.Time) error {
	for _, m := range messages {
		err := t.addMessage(outbox.Message{
			Topic: outbox.TopicBookings, Type: m.Type, Key: m.Booking.String(), Sequence: m.Sequence, Payload: m.Payload, CreatedAt: now,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addMessage appends one fact; (key, topic, sequence) is unique, and names the message for ever.
func (t *tx) addMessage(m outbox.Message) error {
	changed, err := t.exec(`INSERT INTO outbox (topic, type, key, message_id, sequence, payload, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		m.Topic, m.Type, m.Key, fmt.Sprintf("%s/%s/%d", m.Topic, m.Key, m.Sequence), m.Sequence, m.Payload, millis(m.CreatedAt))
	return must(changed, err, 1, "message")
}

// Take gives rows that are due. A row is not due while it, or an earlier row of its key, waits for its retry.
func (o *Outbox) Take(ctx context.Context, now time.Time, limit int) ([]outbox.Message, error) {
	rows, err := o.query(ctx, `
		SELECT id, topic, type, key, message_id, sequence, payload, created_at, attempts FROM outbox AS o
		WHERE next_at <= ?1 AND NOT EXISTS (SELECT 1 FROM outbox AS e WHERE e.key = o.key AND e.next_at > ?1 AND e.id < o.id)
		ORDER BY id LIMIT ?2`, millis(now), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []outbox.Message
	for rows.Next() {
		var m outbox.Message
		var created int64
		if err := rows.Scan(&m.ID, &m.Topic, &m.Type, &m.Key, &m.MessageID, &m.Sequence, &m.Payload, &created, &m.Attempts); err != nil {
			return nil, err
		}
		m.CreatedAt = instant(created)
		out = append(out, m)
	}
	return out, rows.Err()
}

// Settle deletes what was published and notes what failed.
func (o *Outbox) Settle(ctx context.Context, published []int64, failed []outbox.Failure) error {
	return o.update(ctx, func(t *tx) error {
		list := array{'['}
		for _, id := range published {
			list.int(id)
		}
		list.close()
		if _, err := t.exec(`DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(?))`, string(list)); err != nil {
			return err
		}
		for _, f := range failed {
			if _, err := t.exec(`UPDATE outbox SET attempts = attempts + 1, next_at = ? WHERE id = ?`, millis(f.NextAt), f.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// Lag counts what is still to be published.
func (o *Outbox) Lag(ctx context.Context, now time.Time) (rows int, oldest time.Duration, err error) {
	var age int64
	err = o.queryRow(ctx, `SELECT count(*), coalesce(max(0, ?1 - min(created_at)), 0) FROM outbox`, millis(now)).Scan(&rows, &age)
	return rows, time.Duration(age) * time.Millisecond, err
}
