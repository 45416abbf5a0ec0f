package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/outbox/outboxtest"
)

// outboxTx gathers messages and writes them in one transaction: this engine has one writer, so an open transaction would keep everybody else waiting.
type outboxTx struct {
	db       *DB
	messages []outbox.Message
}

var errRolledBack = errors.New("rolled back on purpose")

func (x *outboxTx) Insert(m outbox.Message) error { x.messages = append(x.messages, m); return nil }

func (x *outboxTx) write(end error) error {
	return x.db.update(context.Background(), func(t *tx) error {
		for _, m := range x.messages {
			if err := t.addMessage(m); err != nil {
				return err
			}
			// The suite names its messages itself.
			if _, err := t.exec(`UPDATE outbox SET message_id = ? WHERE key = ? AND topic = ? AND sequence = ?`, m.MessageID, m.Key, m.Topic, m.Sequence); err != nil {
				return err
			}
		}
		return end
	})
}

func (x *outboxTx) Commit() error { return x.write(nil) }

func (x *outboxTx) Rollback() error {
	if err := x.write(errRolledBack); !errors.Is(err, errRolledBack) {
		return errors.Join(errors.New("not rolled back"), err)
	}
	return nil
}

// C-42 to C-46
func TestOutbox(t *testing.T) {
	t.Parallel()
	outboxtest.Suite(t, func(t *testing.T) outboxtest.Harness {
		db := openIn(t, t.TempDir(), Options{Now: bookingtest.NewClock().Now})
		return outboxtest.Harness{Store: NewOutbox(db), Begin: func() outboxtest.Tx { return &outboxTx{db: db} }}
	})
}
