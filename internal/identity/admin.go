package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// AdminKeyHash is what is stored of an admin key.
//
// A plain SHA-256 is enough for a key that NewAdminKey made: a slow hash defends passwords that can be guessed, and nobody guesses 256 random bits, while
// every admin call would pay for it. A key that an operator chose (HOLDFAST_ADMIN_KEY) should be as random, and need not be stored at all.
type AdminKeyHash [sha256.Size]byte

// NewAdminKey makes a random key of 256 bits. It is shown once and then only its hash is kept.
func NewAdminKey() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return "hfadmin_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashAdminKey hashes a key.
func HashAdminKey(key string) AdminKeyHash { return sha256.Sum256([]byte(key)) }

// Matches says whether the key is the one. Hashes are compared, in constant time, so the answer's time tells neither the content nor the length.
func (h AdminKeyHash) Matches(key string) bool {
	other := HashAdminKey(key)
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}
