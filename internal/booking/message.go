package booking

import (
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Types of the messages about bookings. Only facts that others act on are messages; seats travel on the board.
const (
	MessageConfirmed = "booking.confirmed"
	MessageFailed    = "booking.failed"
	MessageCancelled = "booking.cancelled"
	MessageRefundDue = "booking.refund-due"
)

// Naming tells how people call the places of an event; facts carry names, since those who read them have no layout at hand.
// The zero value leaves names out.
type Naming struct {
	Layout *venue.Layout
	Pools  []string
}

// FactPlace is a place of a booking as messages name it.
type FactPlace struct {
	Seat  string `json:"seat,omitempty"`
	Pool  string `json:"pool,omitempty"`
	Units int64  `json:"units,omitempty"` // of a pool, without a seat
}

// BookingFact is the payload of the messages about a booking. The version rises when a field changes its meaning; new fields do not raise it.
type BookingFact struct {
	Version   int         `json:"version"`
	BookingID string      `json:"bookingId"`
	EventID   string      `json:"eventId"`
	Status    string      `json:"status"`
	Reason    string      `json:"reason,omitempty"`
	Price     money.Money `json:"price"`
	Refund    money.Money `json:"refund,omitzero"`
	Buyer     Buyer       `json:"buyer"`
	Places    []FactPlace `json:"places,omitempty"`
	At        time.Time   `json:"at"`
}

// RefundFact is the payload of MessageRefundDue.
type RefundFact struct {
	Version   int         `json:"version"`
	BookingID string      `json:"bookingId"`
	EventID   string      `json:"eventId"`
	PaymentID string      `json:"paymentId"`
	Amount    money.Money `json:"amount"` // all refunds of the payment together
	Reason    string      `json:"reason"` // a RefundCause
	Buyer     Buyer       `json:"buyer"`
}

func bookingFact(b Booking, n Naming) BookingFact {
	f := BookingFact{
		Version: 1, BookingID: b.ID.String(), EventID: b.ID.Event.String(), Status: b.Status.String(), Reason: b.Reason,
		Price: b.Price, Buyer: b.Buyer, Places: n.places(b.Seats, b.Units), At: b.ChangedAt,
	}
	if b.Refund > 0 {
		f.Refund = money.Money{Amount: b.Refund, Currency: b.Price.Currency}
	}
	return f
}

func refundFact(b Booking, p Payment, cause RefundCause) RefundFact {
	return RefundFact{
		Version: 1, BookingID: b.ID.String(), EventID: b.ID.Event.String(), PaymentID: p.ID.String(), Reason: string(cause), Buyer: b.Buyer,
		Amount: money.Money{Amount: p.Owed, Currency: p.Charged.Currency},
	}
}

// places names seats, then the units of pools that no seat of the booking took.
func (n Naming) places(seats []int32, units []Units) []FactPlace {
	if n.Layout == nil && n.Pools == nil {
		return nil
	}
	var out []FactPlace
	left := map[string]int64{}
	for _, u := range units {
		left[n.Pools[u.Pool]] += u.N
	}
	for _, no := range seats {
		seat := n.Layout.Seats[no]
		out = append(out, FactPlace{Seat: seat.Code, Pool: seat.Pool})
		if seat.Pool != "" {
			left[seat.Pool]--
		}
	}
	for _, pool := range n.Pools {
		if left[pool] > 0 {
			out = append(out, FactPlace{Pool: pool, Units: left[pool]})
		}
	}
	return out
}
