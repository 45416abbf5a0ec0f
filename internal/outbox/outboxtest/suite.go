package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/outbox"
)

// Tx writes rows the way a store's own transactions do.
type Tx interface {
	Insert(m outbox.Message) error // m.ID and m.Attempts are ignored; the row is due at once
	Commit() error
	Rollback() error
}

// Harness is an empty store and the means to fill it.
type Harness struct {
	Store outbox.Store
	Begin func() Tx
	// Overlapping says that two transactions can be open at once, so that one may take its position early and commit late.
	Overlapping bool
}

// start is when the rows of the suite are written; any time will do that a database can keep.
var start = time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC)

// errDown is what the publisher of the suite answers when it does not want a message.
var errDown = errors.New("receiver is down")

// Suite tries what a relay relies on. newStore gives a fresh, empty store each time.
func Suite(t *testing.T, newStore func(t *testing.T) Harness) {
	tests := []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"rows come back whole and in order", rowsComeBackWhole},
		{"take keeps to its limit and marks nothing", takeKeepsToLimit},
		{"a failed row waits and holds back its key only", failedRowHoldsBackItsKeyOnly},
		{"settle ignores rows that are gone", settleIgnoresGone},
		{"a settle that fails changes nothing", failedSettleChangesNothing},
		{"lag counts waiting rows and the oldest", lagCounts},
		{"a rolled back row is never published", rolledBackIsNeverPublished},
		{"a row that commits late is published", lateCommitIsPublished},
		{"a poisoned key blocks neither others nor the head of the table", poisonBlocksNobody},
		{"nothing is lost or out of order over failures and crashes", nothingLost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, newStore(t))
		})
	}
}

// Fact makes the n-th message of a key.
func Fact(key string, n int64) outbox.Message {
	return outbox.Message{
		Topic:     outbox.TopicBookings,
		Type:      "booking-confirmed",
		Key:       key,
		MessageID: fmt.Sprintf("msg_%s_%d", key, n),
		Sequence:  n,
		Payload:   fmt.Appendf(nil, `{"booking":%q,"n":%d}`, key, n),
		CreatedAt: start,
	}
}

func (h Harness) insert(t *testing.T, messages ...outbox.Message) {
	t.Helper()
	tx := h.Begin()
	for _, m := range messages {
		must(t, tx.Insert(m))
	}
	must(t, tx.Commit())
}

func (h Harness) take(t *testing.T, now time.Time, limit int) []outbox.Message {
	t.Helper()
	got, err := h.Store.Take(t.Context(), now, limit)
	must(t, err)
	return got
}

func (h Harness) rows(t *testing.T) int {
	t.Helper()
	rows, _, err := h.Store.Lag(t.Context(), start)
	must(t, err)
	return rows
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ids(messages []outbox.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, fmt.Sprintf("%s/%d", m.Key, m.Sequence))
	}
	return texts
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func rowsComeBackWhole(t *testing.T, h Harness) {
	want := []outbox.Message{Fact("a", 1), Fact("b", 1), Fact("a", 2)}
	want[1].Topic, want[1].Type = outbox.TopicTickets, "tickets-issued"
	want[2].CreatedAt = start.Add(1234 * time.Millisecond)
	h.insert(t, want...)
	got := h.take(t, start.Add(time.Minute), 10)
	for i := range got {
		if got[i].ID <= 0 || i > 0 && got[i].ID <= got[i-1].ID {
			t.Errorf("positions do not rise: %d at %d", got[i].ID, i)
		}
		got[i].ID = 0
		got[i].CreatedAt = got[i].CreatedAt.UTC()
	}
	equal(t, want, got)
}

func takeKeepsToLimit(t *testing.T, h Harness) {
	h.insert(t, Fact("a", 1), Fact("b", 1), Fact("c", 1))
	equal(t, []string{"a/1", "b/1"}, ids(h.take(t, start, 2)))
	// Taking again gives the same: nothing is marked, so a relay that died left nothing behind.
	equal(t, []string{"a/1", "b/1", "c/1"}, ids(h.take(t, start, 10)))
}

func failedRowHoldsBackItsKeyOnly(t *testing.T, h Harness) {
	h.insert(t, Fact("a", 1), Fact("b", 1), Fact("a", 2), Fact("b", 2))
	retryAt := start.Add(time.Second)
	first := h.take(t, start, 1)[0]
	must(t, h.Store.Settle(t.Context(), nil, []outbox.Failure{{ID: first.ID, NextAt: retryAt, Reason: strings.Repeat("é", outbox.MaxReason/2)}}))

	equal(t, []string{"b/1", "b/2"}, ids(h.take(t, retryAt.Add(-time.Millisecond), 10)))
	again := h.take(t, retryAt, 10)
	equal(t, []string{"a/1", "b/1", "a/2", "b/2"}, ids(again))
	equal(t, []int{1, 0, 0, 0}, []int{again[0].Attempts, again[1].Attempts, again[2].Attempts, again[3].Attempts})
}

func settleIgnoresGone(t *testing.T, h Harness) {
	h.insert(t, Fact("a", 1))
	id := h.take(t, start, 1)[0].ID
	must(t, h.Store.Settle(t.Context(), []int64{id, id + 1000}, []outbox.Failure{{ID: id + 1001, NextAt: start}}))
	must(t, h.Store.Settle(t.Context(), []int64{id}, nil))
	must(t, h.Store.Settle(t.Context(), nil, nil))
	equal(t, 0, h.rows(t))
}

func failedSettleChangesNothing(t *testing.T, h Harness) {
	h.insert(t, Fact("a", 1), Fact("b", 1))
	got := h.take(t, start, 2)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	err := h.Store.Settle(stopped, []int64{got[0].ID}, []outbox.Failure{{ID: got[1].ID, NextAt: start.Add(time.Hour)}})
	if err == nil {
		t.Error("settled although the context had ended")
	}
	equal(t, []string{"a/1", "b/1"}, ids(h.take(t, start, 2)))
}

func lagCounts(t *testing.T, h Harness) {
	lag := func(now time.Time) (int, time.Duration) {
		t.Helper()
		rows, oldest, err := h.Store.Lag(t.Context(), now)
		must(t, err)
		return rows, oldest
	}
	rows, oldest := lag(start)
	equal(t, 0, rows)
	equal(t, time.Duration(0), oldest)

	young := Fact("b", 1)
	young.CreatedAt = start.Add(time.Minute)
	h.insert(t, Fact("a", 1), young)
	first := h.take(t, start, 1)[0]
	must(t, h.Store.Settle(t.Context(), nil, []outbox.Failure{{ID: first.ID, NextAt: start.Add(time.Hour)}}))
	rows, oldest = lag(start.Add(10 * time.Minute))
	equal(t, 2, rows)
	equal(t, 10*time.Minute, oldest)
}

// C-46
func rolledBackIsNeverPublished(t *testing.T, h Harness) {
	tx := h.Begin()
	must(t, tx.Insert(Fact("ghost", 1)))
	must(t, tx.Rollback())
	h.insert(t, Fact("real", 1))

	receiver := &Receiver{}
	relay := outbox.NewRelay(h.Store, receiver, func() time.Time { return start }, outbox.Observer{})
	drain(t, relay)
	equal(t, []string{"real/1"}, ids(receiver.Got()))
}

// C-42
func lateCommitIsPublished(t *testing.T, h Harness) {
	if !h.Overlapping {
		t.Skip("this store writes one transaction at a time, so positions are committed in their order")
	}
	early, late := h.Begin(), h.Begin()
	must(t, early.Insert(Fact("early", 1)))
	must(t, late.Insert(Fact("late", 1)))
	must(t, late.Commit())

	receiver := &Receiver{}
	relay := outbox.NewRelay(h.Store, receiver, func() time.Time { return start }, outbox.Observer{})
	drain(t, relay)
	equal(t, []string{"late/1"}, ids(receiver.Got()))

	must(t, early.Commit())
	drain(t, relay)
	equal(t, []string{"late/1", "early/1"}, ids(receiver.Got()))
	equal(t, 0, h.rows(t))
}

// C-45
func poisonBlocksNobody(t *testing.T, h Harness) {
	// More poisoned rows than a batch has: if they were taken again and again, nothing behind them would ever move.
	const poisoned = 2*outbox.BatchRows + 1
	var messages []outbox.Message
	for n := range int64(poisoned) {
		messages = append(messages, Fact("poison", n+1), Fact(fmt.Sprintf("sick-%d", n), 1))
	}
	messages = append(messages, Fact("well", 1), Fact("well", 2))
	h.insert(t, messages...)

	receiver := &Receiver{Refuse: func(m outbox.Message) error {
		if m.Key != "well" {
			return errDown
		}
		return nil
	}}
	now := start
	relay := outbox.NewRelay(h.Store, receiver, func() time.Time { return now }, outbox.Observer{})
	for range 60 {
		drain(t, relay)
		now = now.Add(time.Second)
	}
	equal(t, []string{"well/1", "well/2"}, ids(receiver.Got()))
	equal(t, 2*poisoned, h.rows(t))
	// Tried again at 0, 1, 3, 7, 15, 31 s: a row that never succeeds costs less and less.
	equal(t, 6, receiver.Tries("poison/1"))
	equal(t, 0, receiver.Tries("poison/2"))

	receiver.SetRefuse(nil)
	now = now.Add(outbox.RetryMax)
	drain(t, relay)
	equal(t, 0, h.rows(t))
	equal(t, 2*poisoned+2, len(receiver.Got()))
	InOrder(t, receiver.Got())
}

// C-43, C-44
func nothingLost(t *testing.T, h Harness) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const keys, each = 20, 15
	written := make(map[string]int64)
	receiver := &Receiver{}
	receiver.Refuse = func(outbox.Message) error {
		if random.IntN(4) == 0 {
			return errDown
		}
		return nil
	}
	store := &crashing{Store: h.Store, crash: func() bool { return random.IntN(3) == 0 }}
	now := start
	relay := outbox.NewRelay(store, receiver, func() time.Time { return now }, outbox.Observer{})
	for done := 0; done < keys*each; {
		tx := h.Begin()
		for range 1 + random.IntN(30) {
			key := fmt.Sprintf("k%d", random.IntN(keys))
			if written[key] < each {
				written[key]++
				done++
				must(t, tx.Insert(Fact(key, written[key])))
			}
		}
		must(t, tx.Commit())
		if _, err := relay.RunOnce(t.Context()); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	receiver.SetRefuse(nil)
	store.crash = func() bool { return false }
	now = now.Add(outbox.RetryMax)
	drain(t, relay)

	equal(t, 0, h.rows(t))
	InOrder(t, receiver.Got())
	if n := len(FirstSeen(receiver.Got())); n != keys*each {
		t.Errorf("%d of %d messages arrived", n, keys*each)
	}
	if store.crashes == 0 || len(receiver.Got()) == keys*each {
		t.Errorf("%d crashes, %d deliveries: nothing was tried", store.crashes, len(receiver.Got()))
	}
}

func drain(t *testing.T, relay *outbox.Relay) {
	t.Helper()
	const rounds = 1000
	for range rounds {
		n, err := relay.RunOnce(t.Context())
		must(t, err)
		if n == 0 {
			return
		}
	}
	t.Fatalf("the outbox is not empty after %d rounds", rounds)
}

var errCrash = errors.New("crashed before settling")

// crashing forgets to settle now and then: the relay died after publishing.
type crashing struct {
	outbox.Store
	crash   func() bool
	crashes int
}

func (s *crashing) Settle(ctx context.Context, published []int64, failed []outbox.Failure) error {
	if s.crash() {
		s.crashes++
		return errCrash
	}
	return s.Store.Settle(ctx, published, failed)
}

// InOrder fails unless a consumer that drops what is not newer sees the sequence of every key without a gap.
func InOrder(t *testing.T, messages []outbox.Message) {
	t.Helper()
	last := make(map[string]int64)
	for _, m := range FirstSeen(messages) {
		if m.Sequence != last[m.Key]+1 {
			t.Errorf("%s: %d came after %d", m.Key, m.Sequence, last[m.Key])
		}
		last[m.Key] = m.Sequence
	}
}

// FirstSeen drops repetitions, as consumers do.
func FirstSeen(messages []outbox.Message) (first []outbox.Message) {
	seen := make(map[string]bool)
	for _, m := range messages {
		if !seen[m.MessageID] {
			seen[m.MessageID] = true
			first = append(first, m)
		}
	}
	return slices.Clip(first)
}
