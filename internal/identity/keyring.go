package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Keyring signs and checks everything that this program gives out to be shown again. All methods are safe for concurrent use.
type Keyring struct {
	store  KeyStore
	derive []byte // key of Derive
	set    atomic.Pointer[keySet]
	mu     sync.Mutex // one Reload or Rotate at a time
}

// keySet is what the stored keys amount to. It is never changed, only replaced.
type keySet struct {
	tokens       []tokenKey // the signing one first
	ticketSigner ed25519.PrivateKey
	ticketPublic []TicketPublicKey
}

type tokenKey struct {
	id        uint32
	retiresAt time.Time
	purposes  [purposes]macKey
	cursor    []byte
}

// LoadKeyring reads the keys and makes those that are missing, which is all of them at the first start.
func LoadKeyring(ctx context.Context, store KeyStore, now time.Time) (*Keyring, error) {
	keys, err := store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	for _, kind := range []KeyKind{RootKey, TokenKey, TicketKey} {
		if slices.ContainsFunc(keys, func(k Key) bool { return k.Kind == kind }) {
			continue
		}
		if err := store.AddKey(ctx, newKey(kind, 1, now)); err != nil {
			return nil, fmt.Errorf("add a key: %w", err)
		}
	}
	k := &Keyring{store: store}
	if err := k.Reload(ctx, now); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the keys again: for those that other processes made, and so that a new key begins to sign. Call it at least every KeyLead. On an error
// the keys stay as they were.
func (k *Keyring) Reload(ctx context.Context, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reload(ctx, now)
}

func (k *Keyring) reload(ctx context.Context, now time.Time) error {
	keys, err := k.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	roots, err := live(keys, RootKey, now)
	if err != nil {
		return err
	}
	tokens, err := live(keys, TokenKey, now)
	if err != nil {
		return err
	}
	tickets, err := live(keys, TicketKey, now)
	if err != nil {
		return err
	}
	derive := subkey(roots[0].Secret, "derive")
	switch {
	case len(roots) > 1, k.derive != nil && !hmac.Equal(k.derive, derive):
		return fmt.Errorf("%w: the root key changed", ErrKey)
	case k.derive == nil:
		k.derive = derive // before anybody has the keyring
	}
	s := &keySet{ticketSigner: ed25519.NewKeyFromSeed(tickets[0].Secret)}
	for _, t := range tickets {
		public := ed25519.NewKeyFromSeed(t.Secret).Public().(ed25519.PublicKey) // the type that its documentation promises
		s.ticketPublic = append(s.ticketPublic, TicketPublicKey{Key: public, RetiresAt: t.RetiresAt})
	}
	for _, t := range tokens {
		tk := tokenKey{id: t.ID, retiresAt: t.RetiresAt, cursor: subkey(t.Secret, "cursor")}
		for p, name := range purposeNames {
			if name != "" {
				tk.purposes[p] = newMACKey(subkey(t.Secret, "token/"+name))
			}
		}
		s.tokens = append(s.tokens, tk)
	}
	k.set.Store(s)
	return nil
}

// Rotate makes a new key, which signs from KeyLead after now, and lets those before it be believed for the overlap after that. The overlap has to be
// longer than the longest-lived thing that the key signs. The root key is ErrNotRotated.
func (k *Keyring) Rotate(ctx context.Context, kind KeyKind, overlap time.Duration, now time.Time) error {
	if kind == RootKey {
		return ErrNotRotated
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, err := k.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	before, err := live(keys, kind, now)
	if err != nil {
		return err
	}
	if len(before) == MaxLiveKeys {
		return fmt.Errorf("%w: %d of kind %s", ErrTooManyKeys, len(before), kind)
	}
	var last uint32
	for _, o := range keys {
		if o.Kind == kind {
			last = max(last, o.ID)
		}
	}
	// The new key first: a crash between the two leaves an old key that lives on until the next rotation, never a time without any.
	if err := k.store.AddKey(ctx, newKey(kind, last+1, now)); err != nil {
		return fmt.Errorf("add a key: %w", err)
	}
	for _, o := range before {
		if !o.RetiresAt.IsZero() {
			continue
		}
		o.RetiresAt = now.UTC().Truncate(time.Millisecond).Add(KeyLead + overlap)
		if err := k.store.AddKey(ctx, o); err != nil {
			return fmt.Errorf("retire a key: %w", err)
		}
	}
	return k.reload(ctx, now)
}

// Derive is a keyed hash of a purpose and parts, for ids that must be the same when the same request is repeated, and that nobody else can foresee.
//
// It is keyed with the root secret, which never rotates: the ids are stored, and with another key the repetition of a request would make a second hold
// instead of finding the first. Nothing is granted for knowing such an id, so there is nothing that a rotation would take back.
func (k *Keyring) Derive(purpose string, parts ...[]byte) [16]byte {
	m := hmac.New(sha256.New, k.derive)
	// Lengths in front: ("ab","c") and ("a","bc") are different requests.
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		m.Write(n[:])
		m.Write(b)
	}
	write([]byte(purpose))
	for _, p := range parts {
		write(p)
	}
	return [16]byte(m.Sum(nil))
}

// subkey gives each use a key of its own (HKDF, RFC 5869), so that a signature made for one use is noise to every other.
func subkey(secret []byte, use string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "holdfast/v1/"+use, sha256.Size)
	if err != nil {
		panic(err) // only for a length that SHA-256 cannot give
	}
	return key
}

// find needs no map: there are few keys, and nearly always the first is the one. It returns nil for one that is not known or retired.
func (s *keySet) find(id uint32, now time.Time) *tokenKey {
	for i := range s.tokens {
		if t := &s.tokens[i]; t.id == id {
			if !t.retiresAt.IsZero() && now.After(t.retiresAt) {
				return nil
			}
			return t
		}
	}
	return nil
}
