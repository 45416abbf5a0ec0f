package ticket_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

var (
	private = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	evening = time.Date(2026, 5, 1, 23, 59, 59, 0, time.UTC)
)

// trusted answers with the key of private for the id of private only.
func trusted(id ticket.KeyID) ed25519.PublicKey {
	if public := private.Public().(ed25519.PublicKey); id == ticket.KeyIDOf(public) {
		return public
	}
	return nil
}

func claims() ticket.Claims {
	return ticket.Claims{
		Ticket:  booking.TicketID{Event: 0x0123456789abcdef, Bits: [16]byte{1, 2, 3, 15: 16}},
		Place:   "F5",
		Issue:   1,
		Expires: evening,
	}
}

func sign(t *testing.T, c ticket.Claims) string {
	t.Helper()
	code, err := ticket.Sign(private, c)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestCodeProvesItsClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := ticket.Claims{
			Ticket: booking.TicketID{Event: catalog.EventID(rapid.Int64Min(1).Draw(t, "event"))},
			Place:  rapid.StringN(1, 16, ticket.MaxPlace).Draw(t, "place"),
			Issue:  rapid.Byte().Draw(t, "issue"),
		}
		copy(want.Ticket.Bits[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bits"))
		if s := rapid.Uint32().Draw(t, "expires"); s != 0 {
			want.Expires = time.Unix(int64(s), 0).UTC()
		}
		code, err := ticket.Sign(private, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ticket.Verify(trusted, code, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestCodeIsFixed(t *testing.T) {
	t.Parallel()
	// Printed tickets outlive a release: a change of this text makes all of them worthless.
	const want = "AH7ICLASAERUKZ4JVPG66AICAMAAAAAAAAAAAAAAAAAAAEABNH2T47YCIY22MTDGXYDKTLJK5BTGAKQOE2Q46EX6OSGVQS6QBUQCCF36R4OK7SQ5VWYS6MAS7YJXNTAV7TENNBK6ZWLUAWL3EF4HZXH6OVYC43R3B4"
	if code := sign(t, claims()); code != want {
		t.Errorf("got %s", code)
	}
}

func TestEveryChangedByteIsRefused(t *testing.T) {
	t.Parallel()
	text := base32.StdEncoding.WithPadding(base32.NoPadding)
	raw, err := text.DecodeString(sign(t, claims()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			forged := bytes.Clone(raw)
			forged[i] ^= 1 << bit
			if got, err := ticket.Verify(trusted, text.EncodeToString(forged), evening); err == nil {
				t.Errorf("byte %d, bit %d: accepted as %+v", i, bit, got)
			}
		}
	}
}

func TestEveryOtherSpellingIsRefused(t *testing.T) {
	t.Parallel()
	code := sign(t, claims())
	spellings := map[string]string{
		"empty":           "",
		"lower case":      strings.ToLower(code),
		"line end":        code[:80] + "\n" + code[80:],
		"trailing":        code + "A",
		"padding":         code + "======",
		"cut":             code[:len(code)-8],
		"signature only":  code[len(code)-103:],
		"far too long":    strings.Repeat("A", 1<<20),
		"not base32":      strings.Repeat("1", len(code)),
		"not even a text": "\xff\xfe" + code[2:],
	}
	for i := range code {
		spellings[fmt.Sprintf("without character %d", i)] = code[:i] + code[i+1:]
	}
	// The unused bits of the last character can be set without changing a byte.
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" {
		if other := code[:len(code)-1] + string(last); other != code {
			spellings[fmt.Sprintf("last character %c", last)] = other
		}
	}
	for name, spelling := range spellings {
		if _, err := ticket.Verify(trusted, spelling, evening); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCodeOfAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	code, err := ticket.Sign(stranger, claims())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ticket.Verify(trusted, code, evening); !errors.Is(err, ticket.ErrKey) {
		t.Errorf("unknown key: %v", err)
	}
	// Two keys whose short ids collide must not vouch for each other.
	always := func(ticket.KeyID) ed25519.PublicKey { return private.Public().(ed25519.PublicKey) }
	if _, err := ticket.Verify(always, code, evening); !errors.Is(err, ticket.ErrSignature) {
		t.Errorf("wrong key: %v", err)
	}
	// A signature over the same bytes made for another purpose lacks the prefix.
	text := base32.StdEncoding.WithPadding(base32.NoPadding)
	raw, _ := text.DecodeString(sign(t, claims()))
	body := raw[:len(raw)-ed25519.SignatureSize]
	crossed := text.EncodeToString(append(bytes.Clone(body), ed25519.Sign(private, body)...))
	if _, err := ticket.Verify(trusted, crossed, evening); !errors.Is(err, ticket.ErrSignature) {
		t.Errorf("signature for another purpose: %v", err)
	}
}

func TestCodeEndsAfterItsLastSecond(t *testing.T) {
	t.Parallel()
	code := sign(t, claims())
	if _, err := ticket.Verify(trusted, code, evening); err != nil {
		t.Errorf("at its end: %v", err)
	}
	got, err := ticket.Verify(trusted, code, evening.Add(time.Nanosecond))
	if !errors.Is(err, ticket.ErrCodeExpired) || got.Place != "F5" {
		t.Errorf("after its end: %+v, %v", got, err)
	}
	forever := claims()
	forever.Expires = time.Time{}
	if _, err := ticket.Verify(trusted, sign(t, forever), evening.AddDate(100, 0, 0)); err != nil {
		t.Errorf("without an end: %v", err)
	}
}

func TestSignRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*ticket.Claims){
		"no place":       func(c *ticket.Claims) { c.Place = "" },
		"long place":     func(c *ticket.Claims) { c.Place = strings.Repeat("x", ticket.MaxPlace+1) },
		"invalid UTF-8":  func(c *ticket.Claims) { c.Place = "\xff" },
		"before 1970":    func(c *ticket.Claims) { c.Expires = time.Unix(-1, 0) },
		"after uint32":   func(c *ticket.Claims) { c.Expires = time.Unix(1<<32, 0) },
		"at second zero": func(c *ticket.Claims) { c.Expires = time.Unix(0, 0) },
	}
	for name, change := range tests {
		c := claims()
		change(&c)
		if code, err := ticket.Sign(private, c); !errors.Is(err, ticket.ErrClaims) {
			t.Errorf("%s: %q, %v", name, code, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	code, err := ticket.Sign(private, claims())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(code)
	f.Add(code[:100])
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ticket.Verify(trusted, text, evening)
		if err == nil && text != code {
			t.Errorf("%q accepted as %+v", text, got)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	for b.Loop() {
		if _, err := ticket.Sign(private, claims()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	code, _ := ticket.Sign(private, claims())
	for b.Loop() {
		if _, err := ticket.Verify(trusted, code, evening); err != nil {
			b.Fatal(err)
		}
	}
}
