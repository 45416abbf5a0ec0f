package booking

import (
	"encoding/binary"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// Key is what ids of this package are made of: the event, so that an id leads to its shard without a look-up, and 128 bits that nobody can guess.
type Key struct {
	Event catalog.EventID
	Bits  [16]byte
}

// The ids. A booking has the bits of the hold it was made from, so each leads to the other.
type (
	HoldID    Key
	BookingID Key
	PaymentID Key
	RefundID  Key
	QuoteID   Key
	TicketID  Key
)

func (k Key) text(prefix string) string {
	var raw [24]byte
	e := k.Event.Bytes()
	copy(raw[:8], e[:])
	copy(raw[8:], k.Bits[:])
	return identity.EncodeID(prefix, raw[:])
}

func parseKey(prefix, text string) (Key, error) {
	var raw [24]byte
	if err := identity.DecodeID(prefix, text, raw[:]); err != nil {
		return Key{}, err
	}
	k := Key{Event: catalog.EventID(binary.BigEndian.Uint64(raw[:8]))}
	if k.Event <= 0 {
		return Key{}, identity.ErrID
	}
	copy(k.Bits[:], raw[8:])
	return k, nil
}

func (id HoldID) String() string    { return Key(id).text("hld") }
func (id BookingID) String() string { return Key(id).text("bkg") }
func (id PaymentID) String() string { return Key(id).text("pay") }
func (id RefundID) String() string  { return Key(id).text("ref") }
func (id QuoteID) String() string   { return Key(id).text("quo") }
func (id TicketID) String() string  { return Key(id).text("tkt") }

// ParseHoldID and its siblings read the text form; anything else is identity.ErrID.
func ParseHoldID(text string) (HoldID, error) { k, err := parseKey("hld", text); return HoldID(k), err }
func ParseBookingID(text string) (BookingID, error) {
	k, err := parseKey("bkg", text)
	return BookingID(k), err
}
func ParsePaymentID(text string) (PaymentID, error) {
	k, err := parseKey("pay", text)
	return PaymentID(k), err
}
func ParseQuoteID(text string) (QuoteID, error) {
	k, err := parseKey("quo", text)
	return QuoteID(k), err
}
func ParseTicketID(text string) (TicketID, error) {
	k, err := parseKey("tkt", text)
	return TicketID(k), err
}

// Holder is the part of a hold's id by which boards tell holders apart; 64 bits of it are enough for a picture that never grants anything.
func (id HoldID) Holder() uint64 { return binary.BigEndian.Uint64(id.Bits[:8]) }
