package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// HandlerTimeout bounds one subscriber's work on one message; the context ends then.
const HandlerTimeout = 30 * time.Second

// ErrPanic says that a subscriber panicked; its text carries the value and the stack.
var ErrPanic = errors.New("subscriber panicked")

// Handler does a subscriber's work for one message. It must be idempotent: after a crash, and when another subscriber of the
// topic fails, it sees the message again.
type Handler func(ctx context.Context, m Message) error

// Local is the publisher of a single process: it calls its subscribers. A message is done when all subscribers of its topic
// handled it; a topic without subscribers is done at once.
type Local struct {
	mu          sync.RWMutex
	subscribers map[string][]subscriber
}

type subscriber struct {
	name   string
	handle Handler
}

var _ Publisher = (*Local)(nil)

// NewLocal makes a publisher without subscribers.
func NewLocal() *Local { return &Local{subscribers: make(map[string][]subscriber)} }

// Subscribe adds a handler to a topic; the name stands in its errors. Subscribe before the relay runs: what was published
// before is not told again.
func (l *Local) Subscribe(topic, name string, handle Handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers[topic] = append(l.subscribers[topic], subscriber{name, handle})
}

// Publish calls the subscribers, message by message in the order given. One that fails does not keep the others of its topic
// from being told.
func (l *Local) Publish(ctx context.Context, messages []Message) []error {
	answers := make([]error, len(messages))
	for i, m := range messages {
		l.mu.RLock()
		subscribers := l.subscribers[m.Topic]
		l.mu.RUnlock()
		for _, s := range subscribers {
			if err := s.call(ctx, m); err != nil {
				answers[i] = errors.Join(answers[i], fmt.Errorf("%s: %w", s.name, err))
			}
		}
	}
	return answers
}

func (s subscriber) call(ctx context.Context, m Message) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, HandlerTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, v, debug.Stack())
		}
	}()
	return s.handle(ctx, m)
}
