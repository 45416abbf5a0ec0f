package outboxtest_test

import (
	"testing"

	"github.com/holdfast-project/holdfast/internal/outbox/outboxtest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	outboxtest.Suite(t, func(*testing.T) outboxtest.Harness {
		s := outboxtest.NewMemory()
		return outboxtest.Harness{Store: s, Begin: s.Begin, Overlapping: true}
	})
}
