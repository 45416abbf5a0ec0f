package sqlite

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// sold is a booking of a flight with two places, confirmed, whose message waits in the outbox.
type sold struct {
	bookingtest.Harness
	event   *catalog.Event
	booking booking.Booking
	message outbox.Message
	issuer  *ticket.Issuer
}

func sell(t *testing.T) *sold {
	t.Helper()
	h := harness(t)
	s := &sold{Harness: h, event: bookingtest.Flight()}
	h.AddEvent(t, s.event)
	key := booking.Key{Event: s.event.ID, Bits: [16]byte{1}}
	customer := identity.CustomerID{1}
	a, err := h.Store.Apply(t.Context(), []booking.Command{
		&booking.Place{
			Event: s.event, ID: booking.HoldID(key), Customer: customer, Seats: []int32{3}, Units: []booking.UnitsWant{{N: 2}}, Places: 2,
			Price: money.Money{Currency: "EUR"},
		},
		&booking.Checkout{
			Event: s.event, Hold: booking.HoldID(key), Customer: customer, Payment: booking.PaymentID(key),
			Buyer: booking.Buyer{Name: "Ada", Passengers: []string{"Ada", "Grace"}}, Places: booking.Naming{Layout: bookingtest.Cabin(), Pools: []string{"ECONOMY"}},
		},
	}, booking.Decide)
	if err != nil || a.Results[1].Booking.Status != booking.BookingConfirmed {
		t.Fatal(err, a.Results)
	}
	s.booking = a.Results[1].Booking
	messages, err := h.Outbox.Take(t.Context(), h.Clock.Now(), 10)
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	s.message = messages[0]
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	s.issuer = &ticket.Issuer{Store: h.Tickets, Key: func() ed25519.PrivateKey { return private }, Now: h.Clock.Now}
	return s
}

func (s *sold) statuses(t *testing.T) (all []ticket.Status) {
	t.Helper()
	tickets, err := s.Tickets.Tickets(t.Context(), s.booking.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range tickets {
		all = append(all, k.Status)
	}
	return all
}

func (s *sold) cancel(t *testing.T) {
	t.Helper()
	a, err := s.Store.Apply(t.Context(), []booking.Command{&booking.Cancel{Booking: s.booking.ID, Staff: &booking.StaffCancel{Reason: "fog"}}}, booking.Decide)
	if err != nil || a.Results[0].Err != nil {
		t.Fatal(err, a.Results)
	}
}

func TestTicketsAreIssuedOnceHoweverOftenTheMessageComes(t *testing.T) { // C-43
	t.Parallel()
	s := sell(t)
	if err := s.issuer.Handle(t.Context(), s.message); err != nil {
		t.Fatal(err)
	}
	first, err := s.Tickets.Tickets(t.Context(), s.booking.ID)
	if err != nil || len(first) != 2 {
		t.Fatal(first, err)
	}
	if first[0].Seat != "1D" || first[0].Holder != "Ada" || first[1].Seat != "" || first[1].Pool != "ECONOMY" || first[1].Holder != "Grace" {
		t.Errorf("tickets %+v", first)
	}
	s.Clock.Add(time.Hour)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.issuer.Handle(t.Context(), s.message); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	again, err := s.Tickets.Tickets(t.Context(), s.booking.ID)
	if err != nil || !slices.Equal(again, first) {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
	one, err := s.Tickets.Ticket(t.Context(), first[1].ID)
	if err != nil || one != first[1] {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := s.Tickets.Ticket(t.Context(), booking.TicketID{Event: s.event.ID}); !errors.Is(err, ticket.ErrNotFound) {
		t.Error(err)
	}
	told := 0
	messages, err := s.Outbox.Take(t.Context(), s.Clock.Now(), 10)
	for _, m := range messages {
		if m.Topic == outbox.TopicTickets {
			told++
			var fact ticket.IssuedFact
			if json.Unmarshal(m.Payload, &fact) != nil || len(fact.Tickets) != 2 {
				t.Errorf("fact %s", m.Payload)
			}
		}
	}
	if told != 1 || err != nil {
		t.Errorf("told of %d times, %v", told, err)
	}
	bookingtest.Audited(t, s.Harness, s.event)
}

func TestTicketsIssuedByTwentyAtOnceAreIssuedOnce(t *testing.T) {
	t.Parallel()
	s := sell(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.issuer.Handle(t.Context(), s.message); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := s.statuses(t); !slices.Equal(got, []ticket.Status{ticket.Valid, ticket.Valid}) {
		t.Errorf("tickets %v", got)
	}
	bookingtest.Audited(t, s.Harness, s.event)
}

func TestNoTicketOfACancelledBookingIsValid(t *testing.T) {
	t.Parallel()
	t.Run("cancelled before they were issued", func(t *testing.T) {
		t.Parallel()
		s := sell(t)
		s.cancel(t)
		if err := s.issuer.Handle(t.Context(), s.message); err != nil {
			t.Fatal(err)
		}
		if got := s.statuses(t); len(got) != 0 {
			t.Errorf("tickets %v", got)
		}
		bookingtest.Audited(t, s.Harness, s.event)
	})
	t.Run("cancelled after they were issued, and the message comes again", func(t *testing.T) {
		t.Parallel()
		s := sell(t)
		if err := s.issuer.Handle(t.Context(), s.message); err != nil {
			t.Fatal(err)
		}
		s.cancel(t)
		if err := s.issuer.Handle(t.Context(), s.message); err != nil {
			t.Fatal(err)
		}
		if got := s.statuses(t); !slices.Equal(got, []ticket.Status{ticket.Void, ticket.Void}) {
			t.Errorf("tickets %v", got)
		}
		bookingtest.Audited(t, s.Harness, s.event)
	})
	t.Run("cancelled and issued at once", func(t *testing.T) {
		t.Parallel()
		for range 10 {
			s := sell(t)
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := s.issuer.Handle(t.Context(), s.message); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() { s.cancel(t) })
			wg.Wait()
			if got := s.statuses(t); slices.Contains(got, ticket.Valid) {
				t.Errorf("tickets %v", got)
			}
			bookingtest.Audited(t, s.Harness, s.event)
		}
	})
}
