package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// KeyKind says what a key is for.
type KeyKind string

// The kinds.
const (
	// RootKey makes the ids that follow from a request (Keyring.Derive). There is one, and it never changes.
	RootKey KeyKind = "root"
	// TokenKey signs tokens and cursors.
	TokenKey KeyKind = "token"
	// TicketKey signs ticket codes; Secret is an Ed25519 seed (RFC 8032).
	TicketKey KeyKind = "ticket"
)

// Limits and times of keys.
const (
	secretBytes = 32
	// MaxLiveKeys of a kind: each is tried for, listed and kept in memory.
	MaxLiveKeys = 16
	// KeyLead is how long a new key only checks before it signs. Every process of a fleet has to Reload at least as often, so that none meets a
	// signature of a key that it has not heard of.
	KeyLead = 2 * time.Minute
)

// Errors of keys.
var (
	ErrKey         = errors.New("the stored keys are not usable")
	ErrNotRotated  = errors.New("the root key never changes: ids that are stored follow from it")
	ErrTooManyKeys = errors.New("too many keys of this kind are in use")
)

// Key is a secret as it is stored. Whoever can read the database can sign; keep its backups as you keep its passwords.
type Key struct {
	Kind      KeyKind
	ID        uint32 // from 1, unique within the kind
	Secret    []byte // 32 bytes
	CreatedAt time.Time
	RetiresAt time.Time // after this instant nothing that it signed is believed; zero: not yet known
}

func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Kind, k.ID) }

// GoString keeps the secret out of %#v.
func (k Key) GoString() string { return k.String() }

// LogValue keeps the secret out of logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// KeyStore keeps keys. A store for several processes must be one that all of them share.
type KeyStore interface {
	// Keys returns all keys that were ever added, in any order; times are exact to the millisecond.
	Keys(ctx context.Context) ([]Key, error)
	// AddKey adds a key. If there is one of the same kind and id already, it keeps its secret and its time of creation, and only its RetiresAt
	// is set: so of two processes that make the first key at the same time, both go on with the key of the first one. It is durable on return.
	AddKey(ctx context.Context, k Key) error
}

// MemoryKeys is a KeyStore that lasts as long as the process. The zero value is empty.
type MemoryKeys struct {
	mu   sync.Mutex
	keys []Key
}

var _ KeyStore = (*MemoryKeys)(nil)

// Keys returns all keys.
func (m *MemoryKeys) Keys(context.Context) ([]Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.keys), nil
}

// AddKey adds a key, or sets its RetiresAt.
func (m *MemoryKeys) AddKey(_ context.Context, k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.keys, func(o Key) bool { return o.Kind == k.Kind && o.ID == k.ID }); i >= 0 {
		m.keys[i].RetiresAt = k.RetiresAt
		return nil
	}
	k.Secret = slices.Clone(k.Secret)
	m.keys = append(m.keys, k)
	return nil
}

func newKey(kind KeyKind, id uint32, now time.Time) Key {
	k := Key{Kind: kind, ID: id, Secret: make([]byte, secretBytes), CreatedAt: now.UTC().Truncate(time.Millisecond)}
	rand.Read(k.Secret) // never fails: crypto/rand aborts the program instead
	return k
}

func (k Key) retired(now time.Time) bool { return !k.RetiresAt.IsZero() && now.After(k.RetiresAt) }

// live picks the keys of a kind that are not retired, the one that signs first: the newest whose KeyLead is over, or the oldest of all, which is the
// only one at the first start.
func live(keys []Key, kind KeyKind, now time.Time) ([]Key, error) {
	var out []Key
	for _, k := range keys {
		switch k.Kind {
		case RootKey, TokenKey, TicketKey:
		default:
			return nil, fmt.Errorf("%w: %v is of no known kind", ErrKey, k)
		}
		if k.Kind != kind || k.retired(now) {
			continue
		}
		if len(k.Secret) != secretBytes || k.ID == 0 {
			return nil, fmt.Errorf("%w: %v is malformed", ErrKey, k)
		}
		out = append(out, k)
	}
	if len(out) == 0 || len(out) > MaxLiveKeys {
		return nil, fmt.Errorf("%w: %d %s keys", ErrKey, len(out), kind)
	}
	slices.SortFunc(out, func(a, b Key) int { return int(int64(a.ID) - int64(b.ID)) })
	for i, k := range slices.Backward(out) {
		if !now.Before(k.CreatedAt.Add(KeyLead)) {
			out[0], out[i] = out[i], out[0]
			break
		}
	}
	return out, nil
}

// TicketPublicKey checks ticket codes; it is no secret, and is all that a scanner needs.
type TicketPublicKey struct {
	Key       ed25519.PublicKey
	RetiresAt time.Time // after this instant the codes that it signed are void; zero: not yet known
}

// TicketSigner is the key that new ticket codes are signed with.
func (k *Keyring) TicketSigner() ed25519.PrivateKey { return k.set.Load().ticketSigner }

// TicketPublicKeys lists the keys whose codes are good, the signing one first. The list is the caller's.
func (k *Keyring) TicketPublicKeys(now time.Time) []TicketPublicKey {
	return slices.DeleteFunc(slices.Clone(k.set.Load().ticketPublic), func(p TicketPublicKey) bool {
		return Key{RetiresAt: p.RetiresAt}.retired(now)
	})
}
