package identity

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 6, 1, 20, 0, 0, 0, time.UTC)

func load(t testing.TB, s KeyStore, now time.Time) *Keyring {
	t.Helper()
	k, err := LoadKeyring(context.Background(), s, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rotate(t *testing.T, k *Keyring, kind KeyKind, overlap time.Duration, now time.Time) {
	t.Helper()
	if err := k.Rotate(t.Context(), kind, overlap, now); err != nil {
		t.Fatal(err)
	}
}

func reload(t *testing.T, k *Keyring, now time.Time) {
	t.Helper()
	if err := k.Reload(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	var store MemoryKeys
	first := load(t, &store, start)
	token := first.Issue(SessionToken, 0, [16]byte{1}, start.Add(time.Hour))
	second := load(t, &store, start.Add(time.Minute))
	if _, err := second.Check(token, SessionToken, 0, start); err != nil {
		t.Error(err)
	}
	if !second.TicketSigner().Equal(first.TicketSigner()) || second.Derive("hold") != first.Derive("hold") {
		t.Error("other keys after a restart")
	}
	keys, _ := store.Keys(t.Context())
	if len(keys) != 3 {
		t.Errorf("%d keys", len(keys))
	}
	if other := load(t, new(MemoryKeys), start); other.Derive("hold") == first.Derive("hold") {
		t.Error("two installations derive the same ids")
	}
}

func TestATokenSurvivesARotationForTheOverlap(t *testing.T) {
	t.Parallel()
	var store MemoryKeys
	k := load(t, &store, start)
	const overlap = time.Hour
	never := start.Add(1000 * time.Hour)
	before := k.Issue(PassToken, 5, [16]byte{1}, never)
	rotate(t, k, TokenKey, overlap, start)
	end := start.Add(KeyLead + overlap)
	cursor, err := k.SealCursor("events", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{start, start.Add(KeyLead), end} {
		if _, err := k.Check(before, PassToken, 5, at); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
	// Retired keys are refused without a Reload as with it.
	for range 2 {
		if _, err := k.Check(before, PassToken, 5, end.Add(time.Millisecond)); !errors.Is(err, ErrToken) {
			t.Errorf("after the overlap: %v", err)
		}
		if _, err := k.OpenCursor("events", cursor, end.Add(time.Millisecond)); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor after the overlap: %v", err)
		}
		reload(t, k, end.Add(time.Millisecond))
	}
	after := k.Issue(PassToken, 5, [16]byte{1}, never)
	if _, err := k.Check(after, PassToken, 5, end.Add(500*time.Hour)); err != nil {
		t.Errorf("the new key: %v", err)
	}
}

// A process that has not heard of a rotation yet must never meet a token of the new key.
func TestANewKeySignsOnlyWhenEveryProcessKnowsIt(t *testing.T) {
	t.Parallel()
	var store MemoryKeys
	a, b := load(t, &store, start), load(t, &store, start)
	rotate(t, a, TokenKey, time.Hour, start)
	c := load(t, &store, start.Add(time.Second)) // a process that starts in between
	for _, k := range []*Keyring{a, c} {
		if _, err := b.Check(k.Issue(SessionToken, 0, [16]byte{}, start.Add(time.Hour)), SessionToken, 0, start); err != nil {
			t.Error(err)
		}
	}
	reload(t, b, start.Add(KeyLead-time.Second))
	reload(t, a, start.Add(KeyLead))
	token := a.Issue(SessionToken, 0, [16]byte{}, start.Add(time.Hour))
	if _, err := b.Check(token, SessionToken, 0, start.Add(KeyLead)); err != nil {
		t.Error(err)
	}
	if got := a.set.Load().tokens[0].id; got != 2 {
		t.Errorf("key %d signs", got)
	}
}

func TestTheRootKeyNeverRotates(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	if err := k.Rotate(t.Context(), RootKey, time.Hour, start); !errors.Is(err, ErrNotRotated) {
		t.Error(err)
	}
	want := k.Derive("hold", []byte("a"))
	rotate(t, k, TokenKey, 0, start)
	rotate(t, k, TicketKey, 0, start)
	reload(t, k, start.Add(time.Hour))
	if k.Derive("hold", []byte("a")) != want {
		t.Error("derived ids changed with another key")
	}
}

func TestRotationsAreLimited(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	for range MaxLiveKeys - 1 {
		rotate(t, k, TokenKey, time.Hour, start)
	}
	if err := k.Rotate(t.Context(), TokenKey, time.Hour, start); !errors.Is(err, ErrTooManyKeys) {
		t.Error(err)
	}
	rotate(t, k, TokenKey, time.Hour, start.Add(2*time.Hour))
}

func TestTicketKeysRotateWithOverlap(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	message := []byte("seat F5")
	old := ed25519.Sign(k.TicketSigner(), message)
	trusted := func(signature []byte, now time.Time) bool {
		for _, p := range k.TicketPublicKeys(now) {
			if ed25519.Verify(p.Key, message, signature) {
				return true
			}
		}
		return false
	}
	const overlap = 400 * 24 * time.Hour
	rotate(t, k, TicketKey, overlap, start)
	reload(t, k, start.Add(KeyLead))
	signature := ed25519.Sign(k.TicketSigner(), message)
	if string(signature) == string(old) {
		t.Error("the old key still signs")
	}
	if first := k.TicketPublicKeys(start)[0].Key; !first.Equal(k.TicketSigner().Public()) {
		t.Error("the signing key is not the first of the list")
	}
	end := start.Add(KeyLead + overlap)
	for _, c := range []struct {
		at       time.Time
		old, new bool
	}{{start, true, true}, {end, true, true}, {end.Add(time.Millisecond), false, true}} {
		if trusted(old, c.at) != c.old || trusted(signature, c.at) != c.new {
			t.Errorf("at %v: old %v, new %v", c.at, trusted(old, c.at), trusted(signature, c.at))
		}
	}
}

// A store that lost or changed keys must stop the program, not make it sign with something else.
func TestUnusableKeysAreAnError(t *testing.T) {
	t.Parallel()
	secret := make([]byte, 32)
	sound := []Key{{Kind: RootKey, ID: 1, Secret: secret}, {Kind: TokenKey, ID: 1, Secret: secret}, {Kind: TicketKey, ID: 1, Secret: secret}}
	for name, extra := range map[string]Key{
		"short secret": {Kind: TokenKey, ID: 2, Secret: secret[1:]},
		"no id":        {Kind: TicketKey, Secret: secret},
		"unknown kind": {Kind: "mail", ID: 1, Secret: secret},
		"two roots":    {Kind: RootKey, ID: 2, Secret: secret},
	} {
		store := &MemoryKeys{keys: append(sound[:3:3], extra)}
		if k, err := LoadKeyring(t.Context(), store, start); !errors.Is(err, ErrKey) || k != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	store := &MemoryKeys{keys: sound[:3:3]}
	k := load(t, store, start)
	token := k.Issue(SessionToken, 0, [16]byte{1}, start.Add(time.Hour))
	store.keys = nil
	if err := k.Reload(t.Context(), start); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	if _, err := k.Check(token, SessionToken, 0, start); err != nil {
		t.Errorf("after a reload that failed: %v", err)
	}
	other := new(MemoryKeys)
	load(t, other, start)
	store.keys = other.keys
	if err := k.Reload(t.Context(), start); !errors.Is(err, ErrKey) {
		t.Errorf("another root key: %v", err)
	}
}

func TestDeriveTellsEveryRequestApart(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	b := func(s string) []byte { return []byte(s) }
	seen := map[[16]byte]string{}
	for name, id := range map[string][16]byte{
		"ab c":        k.Derive("hold", b("ab"), b("c")),
		"a bc":        k.Derive("hold", b("a"), b("bc")),
		"abc":         k.Derive("hold", b("abc")),
		"abc and ''":  k.Derive("hold", b("abc"), nil),
		"'' and abc":  k.Derive("hold", nil, b("abc")),
		"purpose":     k.Derive("holdabc"),
		"other":       k.Derive("booking", b("abc")),
		"no parts":    k.Derive("hold"),
		"no anything": k.Derive(""),
	} {
		if before, ok := seen[id]; ok {
			t.Errorf("%q and %q are the same", before, name)
		}
		seen[id] = name
	}
	if k.Derive("hold", b("ab"), b("c")) != k.Derive("hold", b("ab"), b("c")) {
		t.Error("not the same twice")
	}
}

func TestKeysHideTheirSecret(t *testing.T) {
	t.Parallel()
	k := newKey(TokenKey, 7, start)
	var out strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, format+"\n", k)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("a key", "key", k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("a key", "key", k)
	for _, form := range []string{"%v", "%x", "%#v", "%s"} {
		if text := strings.Trim(fmt.Sprintf(form, k.Secret), "[]"); strings.Contains(out.String(), text) {
			t.Errorf("the secret is shown as %s", form)
		}
	}
	if !strings.Contains(out.String(), "token key 7") {
		t.Error(out.String())
	}
}

func TestAdminKeyMatchesOnlyItself(t *testing.T) {
	t.Parallel()
	key := NewAdminKey()
	hash := HashAdminKey(key)
	if !hash.Matches(key) {
		t.Error("does not match itself")
	}
	if other := NewAdminKey(); other == key || hash.Matches(other) {
		t.Error("matches another key")
	}
	for _, bad := range []string{"", key[:len(key)-1], key + "A", strings.ToUpper(key)} {
		if hash.Matches(bad) {
			t.Errorf("matches %q", bad)
		}
	}
	if (AdminKeyHash{}).Matches("") {
		t.Error("a hash that was never set lets the empty key in")
	}
}

func TestCursorsComeBackOnlyForTheirList(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	rapid.Check(t, func(t *rapid.T) {
		position := rapid.SliceOfN(rapid.Byte(), 0, MaxCursor).Draw(t, "position")
		scope := rapid.String().Draw(t, "scope")
		text, err := k.SealCursor(scope, position)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.OpenCursor(scope, text, start)
		if err != nil || string(got) != string(position) {
			t.Fatalf("%q %v", got, err)
		}
		if _, err := k.OpenCursor(scope+"x", text, start); !errors.Is(err, ErrCursor) {
			t.Fatalf("for another list: %v", err)
		}
		if bad := tamper(t, text); bad != text {
			if _, err := k.OpenCursor(scope, bad, start); !errors.Is(err, ErrCursor) {
				t.Fatalf("tampered: %v", err)
			}
		}
	})
	if _, err := k.SealCursor("", make([]byte, MaxCursor+1)); !errors.Is(err, ErrCursor) {
		t.Error(err)
	}
	if _, err := k.OpenCursor("", strings.Repeat("A", 10_000), start); !errors.Is(err, ErrCursor) {
		t.Error(err)
	}
	if _, err := k.OpenCursor("", k.Issue(SessionToken, 0, [16]byte{}, start.Add(time.Hour)), start); !errors.Is(err, ErrCursor) {
		t.Errorf("a token as cursor: %v", err)
	}
}

func TestMemoryKeysGivesOutNothingThatItsOwnerCanChange(t *testing.T) {
	t.Parallel()
	var store MemoryKeys
	k := newKey(RootKey, 1, start)
	want := newKey(RootKey, 1, start)
	copy(want.Secret, k.Secret)
	if err := store.AddKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.Secret[0]++
	got, _ := store.Keys(t.Context())
	if d := cmp.Diff([]Key{want}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
