package sqlite

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/identity/identitytest"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	identitytest.KeyStore(t, func(t *testing.T) identity.KeyStore {
		return NewKeys(openIn(t, t.TempDir(), Options{Now: bookingtest.NewClock().Now}))
	})
}

func TestAdminKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), bookingtest.NewClock()
	keys := NewKeys(openIn(t, dir, Options{Now: clock.Now}))
	var made, fresh atomic.Int64
	hashes := make([]identity.AdminKeyHash, 8)
	var wg sync.WaitGroup
	for i := range hashes {
		wg.Go(func() {
			hash, first, err := keys.AdminKey(t.Context(), func() identity.AdminKeyHash {
				made.Add(1)
				return identity.AdminKeyHash{byte(i + 1)}
			})
			if err != nil {
				t.Error(err)
			}
			if first {
				fresh.Add(1)
			}
			hashes[i] = hash
		})
	}
	wg.Wait()
	if made.Load() != 1 || fresh.Load() != 1 {
		t.Errorf("made %d times, said to be new %d times", made.Load(), fresh.Load())
	}
	again, first, err := NewKeys(openIn(t, dir, Options{Now: clock.Now})).AdminKey(t.Context(), func() identity.AdminKeyHash { return identity.AdminKeyHash{99} })
	if err != nil || first {
		t.Errorf("after a restart: new %v, %v", first, err)
	}
	for _, h := range hashes {
		if h != again || h == (identity.AdminKeyHash{}) {
			t.Errorf("hash %x, after a restart %x", h, again)
		}
	}
}
