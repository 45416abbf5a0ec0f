// Package ticket turns confirmed bookings into tickets: it consumes booking messages, issues one signed code per place, and draws
// it.
package ticket

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// A code is the RFC 4648 base32 text, without padding, of this layout (integers big-endian):
//
//	version 1 | key id 4 | event 8 | ticket bits 16 | issue 1 | expires 4, Unix seconds, 0 = never | place length 1 | place | signature 64
//
// The signature is plain Ed25519 over signedFor followed by everything before the signature, so any gate with the public key
// can check a code offline, in any language.
//
// Why base32: its letters are all in the alphanumeric set of QR codes (5.5 bits a character, 8.8 bits a byte), where base64 needs
// byte mode (10.7 bits a byte). Base45 would take 8.25, but has spaces, % and / in it, so that it cannot be put into an address or
// read out; with a place of up to 12 bytes both give the same QR symbol (version 7, 45 modules at level M; base64: version 8).
const (
	codeVersion   = 1
	placeAt       = 1 + 4 + 8 + 16 + 1 + 4
	signatureSize = ed25519.SignatureSize
	signedFor     = "holdfast ticket code\x00" // a signature made for another purpose with the same key is not a ticket

	// MaxPlace bounds the text of a place in a code, in bytes.
	MaxPlace = 64
	// maxCode bounds what is looked at; longer texts are refused unread.
	maxCode = ((placeAt+1+MaxPlace+signatureSize)*8 + 4) / 5
)

var codeText = base32.StdEncoding.WithPadding(base32.NoPadding)

// Errors of codes. A gate refuses on each; they differ so that it can say why.
var (
	ErrCode        = errors.New("not a ticket code")
	ErrKey         = errors.New("ticket code signed with an unknown key")
	ErrSignature   = errors.New("ticket code is not authentic")
	ErrCodeExpired = errors.New("ticket code is over")
	ErrClaims      = errors.New("claims do not fit into a ticket code")
)

// KeyID says which key signed a code, so that keys can be changed while codes of the old one are still good.
type KeyID uint32

// KeyIDOf derives the id of a key from the key itself: nobody has to number keys. A collision only makes Verify try the wrong
// key and refuse.
func KeyIDOf(public ed25519.PublicKey) KeyID {
	sum := sha256.Sum256(public)
	return KeyID(binary.BigEndian.Uint32(sum[:4]))
}

// Claims is what a code proves.
type Claims struct {
	Ticket  booking.TicketID // carries its event
	Place   string           // seat code, or the pool for a place without a seat; 1 to MaxPlace bytes of UTF-8
	Issue   uint8            // counts up when a ticket gets a new code; gates refuse older issues they know of
	Expires time.Time        // whole seconds; zero: never
}

// Sign makes the code. The same key and claims give the same text. A place or a time that does not fit is ErrClaims.
func Sign(private ed25519.PrivateKey, c Claims) (string, error) {
	if c.Place == "" || len(c.Place) > MaxPlace || !utf8.ValidString(c.Place) {
		return "", fmt.Errorf("%w: place of %d bytes", ErrClaims, len(c.Place))
	}
	var expires uint32
	if !c.Expires.IsZero() {
		s := c.Expires.Unix()
		if s <= 0 || s > math.MaxUint32 {
			return "", fmt.Errorf("%w: expires %s", ErrClaims, c.Expires)
		}
		expires = uint32(s)
	}
	public := private.Public().(ed25519.PublicKey) // the type says so in its documentation
	event := c.Ticket.Event.Bytes()

	b := make([]byte, 0, len(signedFor)+placeAt+1+MaxPlace+signatureSize)
	b = append(b, signedFor...)
	b = append(b, codeVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(KeyIDOf(public)))
	b = append(b, event[:]...)
	b = append(b, c.Ticket.Bits[:]...)
	b = append(b, c.Issue)
	b = binary.BigEndian.AppendUint32(b, expires)
	b = append(b, byte(len(c.Place)))
	b = append(b, c.Place...)
	b = append(b, ed25519.Sign(private, b)...)
	return codeText.EncodeToString(b[len(signedFor):]), nil
}

// Verify reads a code and proves that a holder of the private key made it. keys gives the public key of an id, or nil for one
// that is not trusted. Nothing of the content is used before the signature was checked, except the id of the key. An authentic
// code whose time is over gives its claims and ErrCodeExpired.
func Verify(keys func(KeyID) ed25519.PublicKey, code string, now time.Time) (Claims, error) {
	if len(code) > maxCode {
		return Claims{}, fmt.Errorf("%w: %d characters", ErrCode, len(code))
	}
	b, err := codeText.DecodeString(code)
	// Decoding skips line ends and unused bits of the last character: only the one spelling that Sign makes is accepted.
	if err != nil || codeText.EncodeToString(b) != code {
		return Claims{}, fmt.Errorf("%w: bad text", ErrCode)
	}
	if len(b) <= placeAt+1+signatureSize || b[0] != codeVersion {
		return Claims{}, fmt.Errorf("%w: bad layout", ErrCode)
	}
	public := keys(KeyID(binary.BigEndian.Uint32(b[1:])))
	if len(public) != ed25519.PublicKeySize {
		return Claims{}, ErrKey
	}
	body, signature := b[:len(b)-signatureSize], b[len(b)-signatureSize:]
	if !ed25519.Verify(public, append([]byte(signedFor), body...), signature) {
		return Claims{}, ErrSignature
	}
	if len(body) != placeAt+1+int(body[placeAt]) {
		return Claims{}, fmt.Errorf("%w: bad layout", ErrCode)
	}
	c := Claims{
		Ticket: booking.TicketID{Event: catalog.EventID(binary.BigEndian.Uint64(body[5:])), Bits: [16]byte(body[13:29])},
		Issue:  body[29],
		Place:  string(body[placeAt+1:]),
	}
	if s := binary.BigEndian.Uint32(body[30:]); s != 0 {
		c.Expires = time.Unix(int64(s), 0).UTC()
		if now.After(c.Expires) {
			return c, ErrCodeExpired
		}
	}
	return c, nil
}
