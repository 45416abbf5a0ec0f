package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Purpose is what a token proves. A token of one purpose is worth nothing for another: each has its own key.
type Purpose uint8

// The purposes, with what audience and subject are. The numbers are part of tokens that are out there.
const (
	SessionToken     Purpose = 1 // 0; the customer
	PassToken        Purpose = 2 // the event; the customer who was let in
	EntryToken       Purpose = 3 // the event; the entry in its waiting room
	BookingLinkToken Purpose = 4 // the event; the booking's bits
	purposes                 = 5
)

var purposeNames = [purposes]string{SessionToken: "session", PassToken: "pass", EntryToken: "entry", BookingLinkToken: "booking-link"}

// A token is the base64url text, without padding, of
//
//	version 1 | key id 4 | purpose 1 | audience 8 | subject 16 | expires 8, Unix seconds | random 8 | HMAC-SHA256 of all before 32
//
// big-endian. 78 bytes are a multiple of three, so the text has no unused bits and every token has one spelling. The random bytes tell two tokens of one
// subject apart.
const (
	tokenVersion = 1
	audienceAt   = 1 + 4 + 1
	subjectAt    = audienceAt + 8
	expiresAt    = subjectAt + 16
	randomAt     = expiresAt + 8
	signedBytes  = randomAt + 8
	tokenBytes   = signedBytes + sha256.Size
	// TokenLen is the length of every token, in characters.
	TokenLen = tokenBytes / 3 * 4
)

// Errors of tokens; they come unwrapped.
var (
	// ErrToken: not a token of ours for this purpose and audience, or of a key that was retired.
	ErrToken = errors.New("the token is not valid")
	// ErrTokenExpired: it was, but its time is over.
	ErrTokenExpired = errors.New("the token has expired")
)

// Issue makes a token that is good up to and including the second of expires. The audience is an event's id, 0 for none.
func (k *Keyring) Issue(p Purpose, audience int64, subject [16]byte, expires time.Time) string {
	key := &k.set.Load().tokens[0]
	var b [tokenBytes]byte
	b[0] = tokenVersion
	binary.BigEndian.PutUint32(b[1:], key.id)
	b[audienceAt-1] = byte(p)
	binary.BigEndian.PutUint64(b[audienceAt:], uint64(audience))
	copy(b[subjectAt:], subject[:])
	binary.BigEndian.PutUint64(b[expiresAt:], uint64(expires.Unix()))
	rand.Read(b[randomAt:signedBytes])
	mac := key.purposes[p].sum((*[signedBytes]byte)(b[:]))
	copy(b[signedBytes:], mac[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Check proves that a token was issued for this purpose and audience and is not over, and returns its subject. It is ErrToken or ErrTokenExpired
// otherwise. Nothing of a token but its key's id is read before its signature has been verified. It allocates nothing: polls of the waiting room do little else.
func (k *Keyring) Check(token string, p Purpose, audience int64, now time.Time) (subject [16]byte, err error) {
	var text [TokenLen]byte
	if len(token) != TokenLen || p == 0 || p >= purposes {
		return subject, ErrToken
	}
	copy(text[:], token)
	var b [tokenBytes]byte
	// The decoder skips line ends, which then are missing from the count.
	if n, err := base64.RawURLEncoding.Decode(b[:], text[:]); err != nil || n != tokenBytes {
		return subject, ErrToken
	}
	key := k.set.Load().find(binary.BigEndian.Uint32(b[1:]), now)
	if key == nil {
		return subject, ErrToken
	}
	mac := key.purposes[p].sum((*[signedBytes]byte)(b[:]))
	if subtle.ConstantTimeCompare(mac[:], b[signedBytes:]) != 1 {
		return subject, ErrToken
	}
	if b[0] != tokenVersion || b[audienceAt-1] != byte(p) || binary.BigEndian.Uint64(b[audienceAt:]) != uint64(audience) {
		return subject, ErrToken
	}
	if now.Unix() > int64(binary.BigEndian.Uint64(b[expiresAt:])) {
		return subject, ErrTokenExpired
	}
	return [16]byte(b[subjectAt:]), nil
}

// macKey is a key of HMAC-SHA256 (RFC 2104) with both pads made beforehand. crypto/hmac would allocate its state for each message; this one lives on the
// stack. A test holds it equal to crypto/hmac.
type macKey struct{ inner, outer [sha256.BlockSize]byte }

// newMACKey wants at most a block of key.
func newMACKey(key []byte) (m macKey) {
	copy(m.inner[:], key)
	m.outer = m.inner
	for i := range m.inner {
		m.inner[i] ^= 0x36
		m.outer[i] ^= 0x5c
	}
	return m
}

func (m *macKey) sum(message *[signedBytes]byte) [sha256.Size]byte {
	var in [sha256.BlockSize + signedBytes]byte
	copy(in[:], m.inner[:])
	copy(in[sha256.BlockSize:], message[:])
	hash := sha256.Sum256(in[:])
	var out [sha256.BlockSize + sha256.Size]byte
	copy(out[:], m.outer[:])
	copy(out[sha256.BlockSize:], hash[:])
	return sha256.Sum256(out[:])
}

// A cursor is the base64url text of
//
//	version 1 | key id 4 | position | HMAC-SHA256 of scope and all before, first 16 bytes
const (
	cursorVersion = 1
	cursorHead    = 1 + 4
	cursorMAC     = 16
	// MaxCursor is how long the position in a cursor may be, in bytes.
	MaxCursor = 512
)

// ErrCursor says that a text is not a cursor that was given out for this list.
var ErrCursor = errors.New("not a cursor of this list")

// SealCursor makes the text that leads to the next page of a list. The scope names the list and all its filters, so that a cursor fits no other one. The
// position can be read by whoever decodes it, but not changed. One longer than MaxCursor is ErrCursor.
func (k *Keyring) SealCursor(scope string, position []byte) (string, error) {
	if len(position) > MaxCursor {
		return "", fmt.Errorf("%w: a position of %d bytes", ErrCursor, len(position))
	}
	key := &k.set.Load().tokens[0]
	b := make([]byte, 0, cursorHead+len(position)+cursorMAC)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint32(b, key.id)
	b = append(b, position...)
	b = append(b, key.cursorMAC(scope, b)...)
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// OpenCursor returns the position that was sealed for the same scope, or ErrCursor.
func (k *Keyring) OpenCursor(scope, text string, now time.Time) ([]byte, error) {
	if len(text) > base64.RawURLEncoding.EncodedLen(cursorHead+MaxCursor+cursorMAC) {
		return nil, ErrCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < cursorHead+cursorMAC || base64.RawURLEncoding.EncodedLen(len(b)) != len(text) {
		return nil, ErrCursor
	}
	key := k.set.Load().find(binary.BigEndian.Uint32(b[1:]), now)
	if key == nil {
		return nil, ErrCursor
	}
	body, mac := b[:len(b)-cursorMAC], b[len(b)-cursorMAC:]
	if !hmac.Equal(mac, key.cursorMAC(scope, body)) || body[0] != cursorVersion {
		return nil, ErrCursor
	}
	return body[cursorHead:], nil
}

func (t *tokenKey) cursorMAC(scope string, body []byte) []byte {
	m := hmac.New(sha256.New, t.cursor)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(scope)))
	m.Write(n[:])
	m.Write([]byte(scope))
	m.Write(body)
	return m.Sum(nil)[:cursorMAC]
}
