package ticket

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/outbox"
)

// Status of a ticket.
type Status uint8

// The statuses. A void ticket never becomes valid again.
const (
	Valid Status = 0
	Used  Status = 1
	Void  Status = 2
)

func (s Status) String() string { return [...]string{"valid", "used", "void"}[s] }

// Ticket is the right to one place of a booking.
type Ticket struct {
	ID       booking.TicketID
	Booking  booking.BookingID
	Ordinal  int // from 0, in the order of the booking's places
	Seat     string
	Pool     string
	Holder   string // name of the passenger or, where none was asked for, of the buyer
	Code     string
	Status   Status
	IssuedAt time.Time
}

// Place is what the ticket is for, as people call it.
func (t *Ticket) Place() string {
	if t.Seat != "" {
		return t.Seat
	}
	return t.Pool
}

// ErrNotFound: there is no such ticket.
var ErrNotFound = errors.New("no such ticket")

// Store keeps tickets.
type Store interface {
	// Issue writes the tickets of a booking and the message that they are there, in one transaction. It writes nothing, and that is no error,
	// when the booking has tickets already or is no longer confirmed.
	Issue(ctx context.Context, id booking.BookingID, tickets []Ticket, fact []byte) error
	// Tickets lists a booking's tickets in the order of its places.
	Tickets(ctx context.Context, id booking.BookingID) ([]Ticket, error)
	// Ticket reads one; ErrNotFound.
	Ticket(ctx context.Context, id booking.TicketID) (Ticket, error)
}

// Issuer makes tickets of confirmed bookings. It is a consumer of booking-events: told twice, it issues once.
type Issuer struct {
	Store Store
	Key   func() ed25519.PrivateKey
	Now   func() time.Time
}

// MessageIssued is the type of the message that tells of new tickets.
const MessageIssued = "tickets.issued"

// IssuedFact is its payload.
type IssuedFact struct {
	Version   int       `json:"version"`
	BookingID string    `json:"bookingId"`
	EventID   string    `json:"eventId"`
	Tickets   []string  `json:"tickets"` // ids; codes are secrets of their holders and do not travel
	At        time.Time `json:"at"`
}

// Handle consumes a message of booking-events.
func (i *Issuer) Handle(ctx context.Context, m outbox.Message) error {
	if m.Type != booking.MessageConfirmed {
		return nil
	}
	var fact booking.BookingFact
	if err := json.Unmarshal(m.Payload, &fact); err != nil {
		return fmt.Errorf("message %s: %w", m.MessageID, err)
	}
	id, err := booking.ParseBookingID(fact.BookingID)
	if err != nil {
		return fmt.Errorf("message %s: booking %q: %w", m.MessageID, fact.BookingID, err)
	}
	tickets, err := i.tickets(id, fact)
	if err != nil {
		return fmt.Errorf("message %s: %w", m.MessageID, err)
	}
	told := IssuedFact{Version: 1, BookingID: fact.BookingID, EventID: fact.EventID, At: i.Now().UTC().Truncate(time.Millisecond)}
	for _, t := range tickets {
		told.Tickets = append(told.Tickets, t.ID.String())
	}
	payload, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return i.Store.Issue(ctx, id, tickets, payload)
}

// tickets makes one for each place.
func (i *Issuer) tickets(id booking.BookingID, fact booking.BookingFact) ([]Ticket, error) {
	var out []Ticket
	add := func(seat, pool string) error {
		t := Ticket{ID: IDOf(id, len(out)), Booking: id, Ordinal: len(out), Seat: seat, Pool: pool, Holder: fact.Buyer.Name, IssuedAt: i.Now()}
		if n := len(out); n < len(fact.Buyer.Passengers) {
			t.Holder = fact.Buyer.Passengers[n]
		}
		var err error
		t.Code, err = Sign(i.Key(), Claims{Ticket: t.ID, Place: t.Place()})
		out = append(out, t)
		return err
	}
	for _, p := range fact.Places {
		if p.Seat != "" {
			if err := add(p.Seat, p.Pool); err != nil {
				return nil, err
			}
		}
		for range p.Units {
			if err := add("", p.Pool); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// IDOf is the id of a booking's ticket: it follows from the booking, so that issuing again makes no other ticket. A booking's id is a secret of its
// buyer, and the hash does not give it away: who finds a ticket learns nothing about the booking.
func IDOf(id booking.BookingID, ordinal int) booking.TicketID {
	hash := sha256.New()
	hash.Write([]byte("holdfast ticket"))
	event := id.Event.Bytes()
	hash.Write(event[:])
	hash.Write(id.Bits[:])
	_ = binary.Write(hash, binary.BigEndian, uint32(ordinal)) // a hash takes everything
	return booking.TicketID{Event: id.Event, Bits: [16]byte(hash.Sum(nil)[:16])}
}
