package outbox_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/outbox/outboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("receiver is down")

func put(t *testing.T, s *outboxtest.Memory, messages ...outbox.Message) {
	t.Helper()
	tx := s.Begin()
	for _, m := range messages {
		m.CreatedAt = time.Now()
		if err := tx.Insert(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// running starts a relay inside a synctest bubble and stops it at the end of the test.
func running(t *testing.T, s outbox.Store, p outbox.Publisher, o outbox.Observer) *outbox.Relay {
	t.Helper()
	relay := outbox.NewRelay(s, p, time.Now, o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		relay.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return relay
}

func TestRetryDelayDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	tests := map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	}
	for failures, want := range tests {
		if got := outbox.RetryDelay(failures); got != want {
			t.Errorf("RetryDelay(%d) = %v, want %v", failures, got, want)
		}
	}
}

func TestNotifyPublishesWithoutWaitingForThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, receiver := outboxtest.NewMemory(), &outboxtest.Receiver{}
		relay := running(t, store, receiver, outbox.Observer{})
		synctest.Wait()
		started := time.Now()

		put(t, store, outboxtest.Fact("a", 1))
		relay.Notify()
		relay.Notify()
		synctest.Wait()
		if len(receiver.Got()) != 1 || time.Since(started) != 0 {
			t.Errorf("%d published after %v, want 1 at once", len(receiver.Got()), time.Since(started))
		}

		put(t, store, outboxtest.Fact("a", 2))
		time.Sleep(outbox.PollInterval)
		synctest.Wait()
		if len(receiver.Got()) != 2 {
			t.Errorf("%d published, want 2: the poll must find what nobody told of", len(receiver.Got()))
		}
	})
}

// C-45
func TestReceiverDownForTenMinutesKeepsEverythingInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := outboxtest.NewMemory()
		receiver := &outboxtest.Receiver{Refuse: func(outbox.Message) error { return errDown }}
		var rows, failures, oldest atomic.Int64
		relay := running(t, store, receiver, outbox.Observer{
			Lag:    func(n int, age time.Duration) { rows.Store(int64(n)); oldest.Store(int64(age)) },
			Failed: func(outbox.Message, error) { failures.Add(1) },
		})
		const keys, each = 30, 10
		for n := range int64(each) {
			for key := range keys {
				put(t, store, outboxtest.Fact(string(rune('A'+key)), n+1))
			}
			relay.Notify()
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if age := time.Duration(oldest.Load()); rows.Load() != keys*each || age < 9*time.Minute {
			t.Errorf("lag is %d rows, the oldest %v old", rows.Load(), age)
		}
		// 0, 1, 3, 7, 15, 31, 63, 127, 255, 511 s: ten tries for the head of each key, none for the rows behind it.
		if failures.Load() != 10*keys {
			t.Errorf("%d failures in ten minutes, want %d", failures.Load(), 10*keys)
		}

		receiver.SetRefuse(nil)
		time.Sleep(outbox.RetryMax + outbox.LagInterval + outbox.PollInterval)
		synctest.Wait()
		if rows.Load() != 0 || oldest.Load() != 0 || len(receiver.Got()) != keys*each {
			t.Errorf("%d rows left, %d published", rows.Load(), len(receiver.Got()))
		}
		outboxtest.InOrder(t, receiver.Got())
	})
}

// stopping publishes the first message of a wave, then the relay is told to stop.
type stopping struct{ stop context.CancelFunc }

func (p stopping) Publish(ctx context.Context, messages []outbox.Message) []error {
	p.stop()
	answers := make([]error, len(messages))
	for i := range answers[1:] {
		answers[i+1] = ctx.Err()
	}
	return answers
}

func TestStoppingNotesWhatWentOutAndBlamesNobody(t *testing.T) {
	t.Parallel()
	store := outboxtest.NewMemory()
	put(t, store, outboxtest.Fact("a", 1), outboxtest.Fact("b", 1), outboxtest.Fact("a", 2))
	ctx, stop := context.WithCancel(t.Context())
	outbox.NewRelay(store, stopping{stop}, time.Now, outbox.Observer{
		Failed:  func(m outbox.Message, err error) { t.Errorf("%s counted as failed: %v", m.MessageID, err) },
		Trouble: func(err error) { t.Error(err) },
	}).Run(ctx)

	left, err := store.Take(t.Context(), time.Now(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Key != "b" || left[0].Attempts != 0 || left[1].Sequence != 2 {
		t.Errorf("left: %+v", left)
	}
}

// terse breaks the contract of a publisher.
type terse struct{}

func (terse) Publish(context.Context, []outbox.Message) []error { return nil }

func TestPublisherThatDoesNotAnswerLosesNothing(t *testing.T) {
	t.Parallel()
	store := outboxtest.NewMemory()
	put(t, store, outboxtest.Fact("a", 1))
	var got error
	relay := outbox.NewRelay(store, terse{}, time.Now, outbox.Observer{Failed: func(_ outbox.Message, err error) { got = err }})
	if n, err := relay.RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if rows, _, _ := store.Lag(t.Context(), time.Now()); rows != 1 || !errors.Is(got, outbox.ErrPublisher) {
		t.Errorf("%d rows left, failure %v", rows, got)
	}
}

// failing is a store whose database went away.
type failing struct {
	*outboxtest.Memory
	takes atomic.Int64
}

func (s *failing) Take(context.Context, time.Time, int) ([]outbox.Message, error) {
	s.takes.Add(1)
	return nil, errDown
}

func TestStoreTroubleIsToldAndDoesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Memory: outboxtest.NewMemory()}
		var told atomic.Int64
		relay := running(t, store, &outboxtest.Receiver{}, outbox.Observer{Trouble: func(err error) {
			if !errors.Is(err, errDown) {
				t.Error(err)
			}
			told.Add(1)
		}})
		for range 50 {
			relay.Notify()
			time.Sleep(outbox.PollInterval / 10)
		}
		synctest.Wait()
		if n := told.Load(); store.takes.Load() != n || n < 5 || n > 7 {
			t.Errorf("%d reads, %d told in five polls", store.takes.Load(), n)
		}
	})
}

func TestReasonsFitAnyTextColumn(t *testing.T) {
	t.Parallel()
	store := &recording{Memory: outboxtest.NewMemory()}
	put(t, store.Memory, outboxtest.Fact("a", 1))
	receiver := &outboxtest.Receiver{Refuse: func(outbox.Message) error { return errors.New("x\x00" + strings.Repeat("é", outbox.MaxReason)) }}
	if _, err := outbox.NewRelay(store, receiver, time.Now, outbox.Observer{}).RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "x" + strings.Repeat("é", outbox.MaxReason/2-1)
	if diff := cmp.Diff(want, store.failed[0].Reason); diff != "" {
		t.Error(diff)
	}
}

type recording struct {
	*outboxtest.Memory
	failed []outbox.Failure
}

func (s *recording) Settle(ctx context.Context, published []int64, failed []outbox.Failure) error {
	s.failed = append(s.failed, failed...)
	return s.Memory.Settle(ctx, published, failed)
}
