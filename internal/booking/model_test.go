package booking_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
)

// TestDecideAgreesWithModel runs many short histories on the decisions alone. Each number is a seed; one that fails is shrunk to the steps that it needs.
func TestDecideAgreesWithModel(t *testing.T) {
	t.Parallel()
	histories := uint64(100_000)
	if raceEnabled {
		histories /= 20 // nothing here is concurrent
	}
	event := bookingtest.ModelEvent()
	run := func(steps []bookingtest.Step) error {
		clock := bookingtest.NewClock()
		return bookingtest.NewHistory(bookingtest.NewTables(clock, event), clock, event).Run(t.Context(), steps)
	}
	first := rand.Uint64()
	for seed := first; seed < first+histories; seed++ {
		steps := bookingtest.Steps(seed)
		if err := run(steps); err != nil {
			steps = bookingtest.Shrink(steps, func(s []bookingtest.Step) bool { return run(s) != nil })
			t.Fatalf("seed %d, %d steps: %v", seed, len(steps), run(steps))
		}
	}
	t.Logf("seeds %d to %d", first, first+histories-1)
}

// TestDecideAgreesWithModelOnDrawnSteps is the same with rapid, which aims at small and extreme numbers.
func TestDecideAgreesWithModelOnDrawnSteps(t *testing.T) {
	t.Parallel()
	event := bookingtest.ModelEvent()
	rapid.Check(t, func(t *rapid.T) {
		clock := bookingtest.NewClock()
		if err := bookingtest.NewHistory(bookingtest.NewTables(clock, event), clock, event).Run(t.Context(), bookingtest.DrawSteps(t)); err != nil {
			t.Fatal(err)
		}
	})
}
