package sqlite

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
)

// TestStoreAgreesWithModel runs histories on the database. The model, and how a history is shrunk and printed, is that of the decisions alone
// (booking.TestDecideAgreesWithModel), so a failure here and not there is the store's.
func TestStoreAgreesWithModel(t *testing.T) {
	t.Parallel()
	h := harness(t)
	rapid.Check(t, func(r *rapid.T) {
		event := bookingtest.ModelEvent() // another one each time: the database is the same
		h.AddEvent(t, event)
		if err := bookingtest.NewHistory(h.Store, h.Clock, event).Run(t.Context(), bookingtest.DrawSteps(r)); err != nil {
			r.Fatal(err)
		}
	})
	for seed := range uint64(150) {
		event := bookingtest.ModelEvent()
		h.AddEvent(t, event)
		if err := bookingtest.NewHistory(h.Store, h.Clock, event).Run(t.Context(), bookingtest.Steps(seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
