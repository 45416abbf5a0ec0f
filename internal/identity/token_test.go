package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tamper changes, inserts or removes one byte of a text.
func tamper(t *rapid.T, text string) string {
	i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
	b := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\r\n=+/-_A"))).Draw(t, "byte")
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		return text[:i] + string([]byte{b}) + text[i+1:]
	case 1:
		return text[:i] + string([]byte{b}) + text[i:]
	default:
		return text[:i] + text[i+1:]
	}
}

func TestATokenProvesWhatItWasIssuedFor(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	rapid.Check(t, func(t *rapid.T) {
		p := Purpose(rapid.IntRange(1, purposes-1).Draw(t, "purpose"))
		audience := rapid.Int64().Draw(t, "audience")
		var subject [16]byte
		copy(subject[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "subject"))
		expires := start.Add(time.Duration(rapid.IntRange(0, 1<<30).Draw(t, "seconds")) * time.Second)
		token := k.Issue(p, audience, subject, expires)
		if len(token) != TokenLen {
			t.Fatalf("%d characters", len(token))
		}
		if got, err := k.Check(token, p, audience, expires); err != nil || got != subject {
			t.Fatalf("%x %v", got, err)
		}
		if got, err := k.Check(token, p, audience, expires.Add(time.Second)); !errors.Is(err, ErrTokenExpired) || got != [16]byte{} {
			t.Fatalf("expired: %x %v", got, err)
		}
	})
}

// C-50, and cross-purpose replay.
func TestATokenIsWorthNothingElsewhere(t *testing.T) {
	t.Parallel()
	k, stranger := load(t, new(MemoryKeys), start), load(t, new(MemoryKeys), start)
	for p := Purpose(1); p < purposes; p++ {
		token := k.Issue(p, 5, [16]byte{1}, start.Add(time.Hour))
		for other := range Purpose(255) {
			if _, err := k.Check(token, other, 5, start); (err == nil) != (other == p) || err != nil && !errors.Is(err, ErrToken) {
				t.Errorf("purpose %d as %d: %v", p, other, err)
			}
		}
		for _, audience := range []int64{0, 4, -5, 5 << 8} {
			if _, err := k.Check(token, p, audience, start); !errors.Is(err, ErrToken) {
				t.Errorf("purpose %d for audience %d: %v", p, audience, err)
			}
		}
		if _, err := stranger.Check(token, p, 5, start); !errors.Is(err, ErrToken) {
			t.Errorf("purpose %d at another installation: %v", p, err)
		}
	}
}

// C-50
func TestEveryTamperedTokenIsRefused(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	token := k.Issue(PassToken, 5, [16]byte{1}, start.Add(time.Hour))
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for flip := 1; flip < 256; flip++ {
			raw[i] ^= byte(flip)
			if got, err := k.Check(base64.RawURLEncoding.EncodeToString(raw), PassToken, 5, start); !errors.Is(err, ErrToken) || got != [16]byte{} {
				t.Fatalf("byte %d ^ %d: %x %v", i, flip, got, err)
			}
			raw[i] ^= byte(flip)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if bad := tamper(t, token); bad != token {
			if _, err := k.Check(bad, PassToken, 5, start); !errors.Is(err, ErrToken) {
				t.Fatalf("%q: %v", bad, err)
			}
		}
	})
	for _, bad := range []string{"", "none", strings.Repeat("A", TokenLen), strings.Repeat("\n", TokenLen), token + token} {
		if _, err := k.Check(bad, PassToken, 5, start); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// An expired token that was also tampered with must not be told from any other forgery.
func TestNothingIsReadBeforeTheSignature(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	raw, _ := base64.RawURLEncoding.DecodeString(k.Issue(PassToken, 5, [16]byte{1}, start.Add(-time.Hour)))
	raw[tokenBytes-1] ^= 1
	if _, err := k.Check(base64.RawURLEncoding.EncodeToString(raw), PassToken, 5, start); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
}

func TestTwoTokensOfOneSubjectDiffer(t *testing.T) {
	t.Parallel()
	k := load(t, new(MemoryKeys), start)
	if k.Issue(SessionToken, 0, [16]byte{1}, start) == k.Issue(SessionToken, 0, [16]byte{1}, start) {
		t.Error("the same token twice")
	}
}

func TestMACIsHMACSHA256(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		message := rapid.SliceOfN(rapid.Byte(), signedBytes, signedBytes).Draw(t, "message")
		m := newMACKey(key)
		got := m.sum((*[signedBytes]byte)(message))
		want := hmac.New(sha256.New, key)
		want.Write(message)
		if !hmac.Equal(got[:], want.Sum(nil)) {
			t.Fatal("differs from crypto/hmac")
		}
	})
}

// Not parallel: AllocsPerRun counts for the whole process.
func TestCheckAllocatesNothing(t *testing.T) {
	k := load(t, new(MemoryKeys), start)
	good := k.Issue(EntryToken, 5, [16]byte{1}, start.Add(time.Hour))
	for name, token := range map[string]string{"good": good, "expired": k.Issue(EntryToken, 5, [16]byte{1}, start.Add(-time.Hour)), "forged": good[:TokenLen-1] + "!"} {
		if n := testing.AllocsPerRun(200, func() { _, _ = k.Check(token, EntryToken, 5, start) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	k := load(b, new(MemoryKeys), start)
	token := k.Issue(EntryToken, 5, [16]byte{1}, start.Add(time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Check(token, EntryToken, 5, start); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIssue(b *testing.B) {
	k := load(b, new(MemoryKeys), start)
	b.ReportAllocs()
	for b.Loop() {
		_ = k.Issue(EntryToken, 5, [16]byte{1}, start)
	}
}
