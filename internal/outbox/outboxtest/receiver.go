package outboxtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-project/holdfast/internal/outbox"
)

// Receiver is a publisher that remembers what it was given and refuses on demand.
type Receiver struct {
	Refuse func(m outbox.Message) error // nil: takes everything

	mu    sync.Mutex
	got   []outbox.Message
	tries map[string]int
}

var _ outbox.Publisher = (*Receiver)(nil)

// Publish is described at outbox.Publisher.
func (r *Receiver) Publish(_ context.Context, messages []outbox.Message) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil {
		r.tries = make(map[string]int)
	}
	answers := make([]error, len(messages))
	for i, m := range messages {
		r.tries[fmt.Sprintf("%s/%d", m.Key, m.Sequence)]++
		if r.Refuse != nil {
			answers[i] = r.Refuse(m)
		}
		if answers[i] == nil {
			r.got = append(r.got, m)
		}
	}
	return answers
}

// SetRefuse changes what is refused while a relay is running.
func (r *Receiver) SetRefuse(refuse func(m outbox.Message) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Refuse = refuse
}

// Got is what was accepted, repetitions included, in the order of arrival.
func (r *Receiver) Got() []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Tries counts how often a message was offered; it is named key/sequence.
func (r *Receiver) Tries(message string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries[message]
}
