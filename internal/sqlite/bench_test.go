package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
)

// BenchmarkHolds is the cost of a durable hold of two seats in the store alone, by the size of the batch.
func BenchmarkHolds(b *testing.B) {
	for _, size := range []int{1, 16, 48, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			db, err := Open(b.Context(), b.TempDir(), Options{Now: time.Now})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			s := NewStore(db)
			e := &catalog.Event{
				ID: catalog.NewEventID(), SaleClosesAt: time.Now().Add(time.Hour), Policy: catalog.Preset(catalog.Concert),
			}
			next := int32(0)
			b.ReportAllocs()
			for n := 0; n < b.N; n += size {
				commands := make([]booking.Command, size)
				for i := range commands {
					c := &booking.Place{
						Event: e, ID: booking.HoldID{Event: e.ID}, Customer: identity.NewCustomerID(), Seats: []int32{next, next + 1}, Places: 2,
						Price: money.Money{Amount: 100, Currency: "EUR"},
					}
					rand.Read(c.ID.Bits[:])
					commands[i], next = c, next+2
				}
				a, err := s.Apply(context.Background(), commands, booking.Decide)
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range a.Results {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
				}
			}
			b.ReportMetric(float64(db.Commits())/float64(b.N), "commits/hold")
		})
	}
}
