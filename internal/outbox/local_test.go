package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/outbox/outboxtest"
)

func TestLocalTellsEverySubscriberOfTheTopic(t *testing.T) {
	t.Parallel()
	local := outbox.NewLocal()
	var heard []string
	note := func(name string) outbox.Handler {
		return func(_ context.Context, m outbox.Message) error {
			heard = append(heard, name+" "+m.MessageID)
			return nil
		}
	}
	local.Subscribe(outbox.TopicBookings, "tickets", note("tickets"))
	local.Subscribe(outbox.TopicBookings, "points", note("points"))
	local.Subscribe(outbox.TopicTickets, "mail", note("mail"))

	issued := outboxtest.Fact("b", 1)
	issued.Topic = outbox.TopicTickets
	unheard := outboxtest.Fact("c", 1)
	unheard.Topic = "nobody-listens"
	answers := local.Publish(t.Context(), []outbox.Message{outboxtest.Fact("a", 1), issued, unheard})
	if err := errors.Join(answers...); err != nil || len(answers) != 3 {
		t.Error(answers)
	}
	if diff := cmp.Diff([]string{"tickets msg_a_1", "points msg_a_1", "mail msg_b_1"}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestLocalIsDoneOnlyWhenAllSubscribersAre(t *testing.T) {
	t.Parallel()
	local := outbox.NewLocal()
	var other int
	local.Subscribe(outbox.TopicBookings, "mail", func(_ context.Context, m outbox.Message) error {
		switch m.Key {
		case "down":
			return errDown
		case "panics":
			var nothing []int
			_ = nothing[m.Sequence]
		}
		return nil
	})
	local.Subscribe(outbox.TopicBookings, "points", func(context.Context, outbox.Message) error {
		other++
		return nil
	})
	answers := local.Publish(t.Context(), []outbox.Message{outboxtest.Fact("down", 1), outboxtest.Fact("panics", 1), outboxtest.Fact("well", 1)})
	if !errors.Is(answers[0], errDown) || !strings.HasPrefix(answers[0].Error(), "mail: ") {
		t.Errorf("down: %v", answers[0])
	}
	if !errors.Is(answers[1], outbox.ErrPanic) || !strings.Contains(answers[1].Error(), "index out of range") || !strings.Contains(answers[1].Error(), "local_test.go") {
		t.Errorf("panics: %v", answers[1])
	}
	if answers[2] != nil || other != 3 {
		t.Errorf("well: %v; points was told %d times, want 3", answers[2], other)
	}
}

func TestLocalEndsTheContextOfASlowSubscriber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := outbox.NewLocal()
		local.Subscribe(outbox.TopicBookings, "slow", func(ctx context.Context, _ outbox.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		started := time.Now()
		answers := local.Publish(t.Context(), []outbox.Message{outboxtest.Fact("a", 1)})
		if !errors.Is(answers[0], context.DeadlineExceeded) || time.Since(started) != outbox.HandlerTimeout {
			t.Errorf("%v after %v", answers[0], time.Since(started))
		}
	})
}
