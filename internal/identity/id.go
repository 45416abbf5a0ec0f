// Package identity knows customers only by their ids: it makes and reads the text form of ids, keeps the signing keys with their rotation, and signs the
// tokens that prove a session, a place in a queue or the right to see a booking.
package identity

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// ErrID says that a text is not an id of the kind that was asked for.
var ErrID = errors.New("not an id")

// Lower case without padding: safe in URLs, file names and spoken aloud; base32 keeps ids short and free of case trouble.
var idText = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// EncodeID writes raw bytes as prefix_text. Ids are opaque: their prefix says the kind, nothing else is promised.
func EncodeID(prefix string, raw []byte) string {
	b := make([]byte, 0, len(prefix)+1+idText.EncodedLen(len(raw)))
	b = append(b, prefix...)
	b = append(b, '_')
	return string(idText.AppendEncode(b, raw))
}

// DecodeID reads the text of an id into raw, which has the exact length of that kind. Anything else is ErrID.
func DecodeID(prefix, text string, raw []byte) error {
	body, ok := strings.CutPrefix(text, prefix)
	if !ok || len(body) != 1+idText.EncodedLen(len(raw)) || body[0] != '_' {
		return fmt.Errorf("%w of the kind %s_…", ErrID, prefix)
	}
	if n, err := idText.Decode(raw, []byte(body[1:])); err != nil || n != len(raw) {
		return fmt.Errorf("%w of the kind %s_…", ErrID, prefix)
	}
	// The last character can carry unused bits: only one spelling of an id is accepted, so that texts compare equal when ids do.
	if EncodeID(prefix, raw) != text {
		return fmt.Errorf("%w of the kind %s_…", ErrID, prefix)
	}
	return nil
}

// CustomerID names a customer: a guest's session or, later, an account. 128 random bits.
type CustomerID [16]byte

const customerPrefix = "cus"

// NewCustomerID makes a random one.
func NewCustomerID() CustomerID {
	var c CustomerID
	rand.Read(c[:]) // never fails: crypto/rand aborts the program instead
	return c
}

// ParseCustomerID reads the text form; anything else is ErrID.
func ParseCustomerID(text string) (CustomerID, error) {
	var c CustomerID
	err := DecodeID(customerPrefix, text, c[:])
	return c, err
}

func (c CustomerID) String() string { return EncodeID(customerPrefix, c[:]) }
