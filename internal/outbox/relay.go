package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Limits and paces of a relay.
const (
	BatchRows     = 100                    // rows a round
	PollInterval  = 500 * time.Millisecond // looks for rows without being told: retries, and rows of other processes
	LagInterval   = 5 * time.Second        // measures the backlog
	RetryFirst    = 1 * time.Second        // wait after the first failure of a row; doubles with each
	RetryMax      = 5 * time.Minute        // longest wait of a row
	SettleTimeout = 5 * time.Second        // for noting what was published although the relay is being stopped
)

// RetryDelay is the wait after a row has failed failures times (>= 1). There is no jitter: rows fail one by one and a relay owns
// them alone, so nothing needs to be spread.
func RetryDelay(failures int) time.Duration {
	delay := RetryFirst
	for ; failures > 1 && delay < RetryMax; failures-- {
		delay *= 2
	}
	return min(delay, RetryMax)
}

// Observer hears how a relay is doing, for metrics and logs. Every func may be nil; they are called from the relay's goroutine
// and must be quick.
type Observer struct {
	Published func(m Message, age time.Duration) // age: from its transaction to now
	Failed    func(m Message, err error)         // will be tried again; m.Attempts counts the failures before this one
	Lag       func(rows int, oldest time.Duration)
	Trouble   func(err error) // the store could not be read or written; the relay goes on
}

// Relay moves rows from a store to a publisher. It keeps the order of a key: a message is given to the publisher only after the
// earlier ones of its key were published, and a failed one holds back the later ones of its key, never those of others.
type Relay struct {
	store     Store
	publisher Publisher
	now       func() time.Time
	observer  Observer

	wake chan struct{}
	// One round at a time: RunOnce may be called while Run is going (tests, a drain at shutdown), and two rounds at once would
	// publish the same rows side by side, out of order.
	round sync.Mutex
}

// NewRelay makes one; nothing happens before Run or RunOnce.
func NewRelay(store Store, publisher Publisher, now func() time.Time, observer Observer) *Relay {
	return &Relay{store: store, publisher: publisher, now: now, observer: observer, wake: make(chan struct{}, 1)}
}

// Notify says that rows may have been committed. It never blocks; many calls wake the relay once.
func (r *Relay) Notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx is done, which is its only way to end. What was published by then is still noted.
func (r *Relay) Run(ctx context.Context) {
	poll := time.NewTicker(PollInterval)
	defer poll.Stop()
	var lagAt time.Time
	for ctx.Err() == nil {
		n, err := r.RunOnce(ctx)
		if err != nil && ctx.Err() == nil {
			r.trouble(err)
		}
		if now := r.now(); now.Sub(lagAt) >= LagInterval {
			lagAt = now
			r.measure(ctx, now)
		}
		if err == nil && n == BatchRows {
			continue // more may be waiting
		}
		// After trouble only the ticker counts: a flood of Notify must not become a flood of failing reads.
		wake := r.wake
		if err != nil {
			wake = nil
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-poll.C:
		}
	}
}

// RunOnce takes one batch and publishes it. It answers how many rows it took, so that calling it until it answers 0 empties the
// outbox of everything that is due; failures of single messages are not errors of the round.
func (r *Relay) RunOnce(ctx context.Context) (n int, err error) {
	r.round.Lock()
	defer r.round.Unlock()

	batch, err := r.store.Take(ctx, r.now(), BatchRows)
	if err != nil {
		return 0, fmt.Errorf("outbox: take: %w", err)
	}
	if len(batch) == 0 {
		return 0, nil
	}
	published, failed := r.publish(ctx, batch)
	if len(published) == 0 && len(failed) == 0 {
		return len(batch), ctx.Err()
	}
	// Stopping must not lose the note of what went out: it would be published again.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	if err := r.store.Settle(settle, published, failed); err != nil {
		return len(batch), fmt.Errorf("outbox: settle: %w", err)
	}
	return len(batch), nil
}

// publish hands the batch on in waves: the first message of every key, then the second of every key whose first went out, and so
// on. Nearly always there is one wave.
func (r *Relay) publish(ctx context.Context, batch []Message) (published []int64, failed []Failure) {
	blocked := make(map[string]bool)
	for len(batch) > 0 && ctx.Err() == nil {
		var wave, later []Message
		inWave := make(map[string]bool, len(batch))
		for _, m := range batch {
			switch {
			case blocked[m.Key]:
			case inWave[m.Key]:
				later = append(later, m)
			default:
				inWave[m.Key] = true
				wave = append(wave, m)
			}
		}
		if len(wave) == 0 {
			break // what was left belongs to keys that failed in the wave before
		}
		answers := r.publisher.Publish(ctx, wave)
		now := r.now()
		for i, m := range wave {
			err := ErrPublisher
			if len(answers) == len(wave) {
				err = answers[i]
			}
			if err == nil {
				published = append(published, m.ID)
				if r.observer.Published != nil {
					r.observer.Published(m, now.Sub(m.CreatedAt))
				}
				continue
			}
			blocked[m.Key] = true
			if ctx.Err() != nil {
				continue // being stopped is nobody's failure
			}
			failed = append(failed, Failure{ID: m.ID, NextAt: now.Add(RetryDelay(m.Attempts + 1)), Reason: reason(err)})
			if r.observer.Failed != nil {
				r.observer.Failed(m, err)
			}
		}
		batch = later
	}
	return published, failed
}

func (r *Relay) measure(ctx context.Context, now time.Time) {
	rows, oldest, err := r.store.Lag(ctx, now)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.trouble(fmt.Errorf("outbox: lag: %w", err))
	case r.observer.Lag != nil:
		r.observer.Lag(rows, oldest)
	}
}

func (r *Relay) trouble(err error) {
	if r.observer.Trouble != nil {
		r.observer.Trouble(err)
	}
}

// reason is what a text column of any of the databases takes: valid UTF-8 without NUL, and short.
func reason(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), MaxReason)], "")
}
