// Package outbox carries facts that others act on from the transaction that made them true to those who must hear of them:
// at least once, in order per key, never dropped.
//
// The row is written by the store's own transaction, so a fact that was rolled back is never told and one that was committed
// always is. A Relay reads rows in the order of their positions, hands them to a Publisher and deletes what was published.
// Deleting, instead of remembering the last position, also finds a row whose transaction took its position early and committed
// late.
package outbox

import (
	"context"
	"errors"
	"time"
)

// Topics of the messages.
const (
	TopicBookings = "booking-events" // a booking was confirmed, failed or cancelled, a refund became due
	TopicTickets  = "ticket-issued"  // codes of a booking's tickets are ready
)

// Message is one fact. Consumers may see it more than once, always after the earlier ones of its key.
type Message struct {
	ID        int64     // position in the outbox, set by the store, rising within a key
	Topic     string    // one of the topics above
	Type      string    // what happened, e.g. "booking-confirmed"
	Key       string    // whose order is kept: the text of a booking's id
	MessageID string    // unique for ever; consumers drop repetitions by it
	Sequence  int64     // rises within a key from 1; consumers drop what is not newer
	Payload   []byte    // JSON
	CreatedAt time.Time // of the transaction that wrote it
	Attempts  int       // how often publishing it has failed
}

// Failure says that a message was not published and when it is due again.
type Failure struct {
	ID     int64
	NextAt time.Time
	Reason string // for people, at most MaxReason bytes
}

// MaxReason bounds the text that a failure leaves in its row.
const MaxReason = 500

// Store keeps the rows. One relay at a time owns a store: two would overtake each other within a key.
type Store interface {
	// Take gives up to limit rows that are due at now, in the order of their positions. A row is not due while an earlier row of
	// the same key waits for its retry. Taking changes nothing: a relay that dies gives its rows back by dying.
	Take(ctx context.Context, now time.Time, limit int) ([]Message, error)
	// Settle deletes what was published and, for what failed, counts the attempt and notes when it is due again, in one
	// transaction. Positions that are no longer there are ignored.
	Settle(ctx context.Context, published []int64, failed []Failure) error
	// Lag counts the rows that are still to be published, waiting ones included, and gives the age of the oldest at now (zero
	// when there are none).
	Lag(ctx context.Context, now time.Time) (rows int, oldest time.Duration, err error)
}

// Publisher hands messages on. It answers one error per message in the order given, nil for those that are safe with the
// receiver; it may publish messages of different keys at once. A Relay never gives it two messages of one key in one call.
type Publisher interface {
	Publish(ctx context.Context, messages []Message) []error
}

// ErrPublisher says that a publisher broke its contract: not one answer for each message.
var ErrPublisher = errors.New("publisher did not answer for every message")
