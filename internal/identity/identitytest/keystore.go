// Package identitytest is the contract that every identity.KeyStore passes.
package identitytest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/identity"
)

// KeyStore runs the contract. open makes a fresh, empty store for each test.
func KeyStore(t *testing.T, open func(t *testing.T) identity.KeyStore) {
	made := time.Date(2026, 6, 1, 20, 0, 0, 123_000_000, time.UTC)
	key := func(kind identity.KeyKind, id uint32, fill byte) identity.Key {
		return identity.Key{Kind: kind, ID: id, Secret: bytes.Repeat([]byte{fill}, 32), CreatedAt: made}
	}
	add := func(t *testing.T, s identity.KeyStore, keys ...identity.Key) {
		t.Helper()
		for _, k := range keys {
			if err := s.AddKey(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(t *testing.T, s identity.KeyStore, want ...identity.Key) {
		t.Helper()
		got, err := s.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		order := func(a, b identity.Key) int {
			return bytes.Compare([]byte(string(a.Kind)+string(rune(a.ID))), []byte(string(b.Kind)+string(rune(b.ID))))
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); d != "" {
			t.Errorf("keys (-want +got):\n%s", d)
		}
	}

	t.Run("an empty store has no keys", func(t *testing.T) {
		t.Parallel()
		want(t, open(t))
	})
	t.Run("keys come back as they were added", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		retiring := key(identity.TokenKey, 2, 3)
		retiring.RetiresAt = made.Add(time.Hour)
		keys := []identity.Key{key(identity.RootKey, 1, 1), key(identity.TokenKey, 1, 2), retiring, key(identity.TicketKey, 1, 4)}
		add(t, s, keys...)
		want(t, s, keys...)
	})
	t.Run("adding a key again only sets when it retires", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		first, again := key(identity.TokenKey, 1, 1), key(identity.TokenKey, 1, 2)
		again.CreatedAt, again.RetiresAt = made.Add(time.Minute), made.Add(time.Hour)
		add(t, s, first, again)
		first.RetiresAt = again.RetiresAt
		want(t, s, first)
	})
	t.Run("processes that start together share one set of keys", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		var wg sync.WaitGroup
		rings := make([]*identity.Keyring, 8)
		for i := range rings {
			wg.Go(func() {
				var err error
				if rings[i], err = identity.LoadKeyring(context.WithoutCancel(t.Context()), s, made); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		token := rings[0].Issue(identity.SessionToken, 0, [16]byte{7}, made.Add(time.Hour))
		id := rings[0].Derive("hold", []byte("key"))
		for _, r := range rings {
			if _, err := r.Check(token, identity.SessionToken, 0, made); err != nil {
				t.Error(err)
			}
			if r.Derive("hold", []byte("key")) != id || !r.TicketSigner().Equal(rings[0].TicketSigner()) {
				t.Error("keyrings differ")
			}
		}
	})
}
