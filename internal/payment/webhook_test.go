package payment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var sentAt = time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)

const noticeID, noticeBody = "msg_1", `{"type": "payment.succeeded", "data": {"amount": 1200}}`

func signed(secrets ...Secret) http.Header {
	h := http.Header{}
	Sign(h, secrets, noticeID, sentAt, []byte(noticeBody))
	return h
}

// The example of the Standard Webhooks reference libraries proves that the signed content and the encodings are the standard's, not only our own.
func TestSignMakesTheSignatureOfTheStandardsExample(t *testing.T) {
	t.Parallel()
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	Sign(h, []Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := h.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestVerifyAcceptsWhatWasSigned(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	for _, skew := range []time.Duration{0, Tolerance, -Tolerance} {
		id, at, err := Verify([]Secret{secret}, signed(secret), []byte(noticeBody), sentAt.Add(skew))
		if err != nil || id != noticeID || !at.Equal(sentAt) {
			t.Errorf("skew %v: %q %v %v", skew, id, at, err)
		}
	}
}

// C-36: the signature is over the raw bytes, so even a body with the same meaning is refused.
func TestVerifyRefusesEveryOtherBody(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(noticeBody)); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"truncated":     noticeBody[:len(noticeBody)-1],
		"empty":         "",
		"re-serialised": compact.String(),
		"longer":        noticeBody + "\n",
		"other amount":  strings.Replace(noticeBody, "1200", "1201", 1),
	}
	for name, body := range bodies {
		if _, _, err := Verify([]Secret{secret}, signed(secret), []byte(body), sentAt); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// C-36
func TestVerifyRefusesABodyOverTheLimitEvenIfSigned(t *testing.T) {
	t.Parallel()
	secret, h, body := NewSecret(), http.Header{}, bytes.Repeat([]byte("x"), MaxNoticeBytes+1)
	Sign(h, []Secret{secret}, noticeID, sentAt, body)
	if _, _, err := Verify([]Secret{secret}, h, body, sentAt); !errors.Is(err, ErrNotAuthentic) {
		t.Error(err)
	}
	Sign(h, []Secret{secret}, noticeID, sentAt, body[1:])
	if _, _, err := Verify([]Secret{secret}, h, body[1:], sentAt); err != nil {
		t.Error(err)
	}
}

// C-36: wrong key, and headers that are missing, doubled, altered or malformed.
func TestVerifyRefusesHeadersThatWereNotSigned(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	signature := signed(secret).Get(HeaderSignature)
	cases := map[string]func(h http.Header){
		"wrong key":          func(h http.Header) { h.Set(HeaderSignature, signed(NewSecret()).Get(HeaderSignature)) },
		"no id":              func(h http.Header) { h.Del(HeaderID) },
		"no timestamp":       func(h http.Header) { h.Del(HeaderTimestamp) },
		"no signature":       func(h http.Header) { h.Del(HeaderSignature) },
		"empty signature":    func(h http.Header) { h.Set(HeaderSignature, "") },
		"two ids":            func(h http.Header) { h.Add(HeaderID, noticeID) },
		"two timestamps":     func(h http.Header) { h.Add(HeaderTimestamp, h.Get(HeaderTimestamp)) },
		"two signatures":     func(h http.Header) { h.Add(HeaderSignature, signature) },
		"other id":           func(h http.Header) { h.Set(HeaderID, "msg_2") },
		"longer id":          func(h http.Header) { h.Set(HeaderID, noticeID+".1") },
		"other second":       func(h http.Header) { h.Set(HeaderTimestamp, strconv.FormatInt(sentAt.Unix()+1, 10)) },
		"timestamp spelling": func(h http.Header) { h.Set(HeaderTimestamp, "+"+h.Get(HeaderTimestamp)) },
		"timestamp text":     func(h http.Header) { h.Set(HeaderTimestamp, "now") },
		"no version":         func(h http.Header) { h.Set(HeaderSignature, strings.TrimPrefix(signature, "v1,")) },
		"other version":      func(h http.Header) { h.Set(HeaderSignature, "v2,"+strings.TrimPrefix(signature, "v1,")) },
		"not base64":         func(h http.Header) { h.Set(HeaderSignature, "v1,%%%") },
		"no mac":             func(h http.Header) { h.Set(HeaderSignature, "v1,") },
		"half a mac":         func(h http.Header) { h.Set(HeaderSignature, signature[:len("v1,")+24]) },
		"too many before": func(h http.Header) {
			h.Set(HeaderSignature, strings.Repeat("v1,AAAA ", maxSignatures)+signature)
		},
	}
	for name, alter := range cases {
		h := signed(secret)
		alter(h)
		if _, _, err := Verify([]Secret{secret}, h, []byte(noticeBody), sentAt); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// C-36: an id with a dot would let one signature stand for two messages.
func TestVerifyRefusesAnIDThatCouldSlideIntoTheTimestamp(t *testing.T) {
	t.Parallel()
	secret, h := NewSecret(), http.Header{}
	Sign(h, []Secret{secret}, "a.1", sentAt, []byte("body"))
	if _, _, err := Verify([]Secret{secret}, h, []byte("body"), sentAt); !errors.Is(err, ErrNotAuthentic) {
		t.Error(err)
	}
}

// C-37
func TestVerifyRefusesATimeOutsideTheTolerance(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	for _, skew := range []time.Duration{Tolerance + time.Second, -Tolerance - time.Second, 76 * time.Hour, -76 * time.Hour} {
		if _, _, err := Verify([]Secret{secret}, signed(secret), []byte(noticeBody), sentAt.Add(skew)); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("skew %v: %v", skew, err)
		}
	}
}

// C-38: whichever side rotates first, notices keep passing during the overlap and the old secret is worth nothing after it.
func TestVerifyDuringAndAfterARotation(t *testing.T) {
	t.Parallel()
	before, after, stranger := NewSecret(), NewSecret(), NewSecret()
	cases := []struct {
		name           string
		signs, accepts []Secret
		want           error
	}{
		{"receiver first", []Secret{before}, []Secret{before, after}, nil},
		{"sender first", []Secret{before, after}, []Secret{before}, nil},
		{"both", []Secret{before, after}, []Secret{after, before}, nil},
		{"sender new only", []Secret{after}, []Secret{before, after}, nil},
		{"old secret after the overlap", []Secret{before}, []Secret{after}, ErrNotAuthentic},
		{"stranger during the overlap", []Secret{stranger}, []Secret{before, after}, ErrNotAuthentic},
		{"receiver without a secret", []Secret{before}, nil, ErrNotAuthentic},
	}
	for _, c := range cases {
		if _, _, err := Verify(c.accepts, signed(c.signs...), []byte(noticeBody), sentAt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	h := signed(after)
	h.Set(HeaderSignature, "v1a,AAAA "+h.Get(HeaderSignature))
	if _, _, err := Verify([]Secret{after}, h, []byte(noticeBody), sentAt); err != nil {
		t.Errorf("beside a signature of another version: %v", err)
	}
}

// C-36: no change of a single byte anywhere gets through.
func TestVerifyRefusesEveryChangedByte(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "body")
		h := http.Header{}
		Sign(h, []Secret{secret}, noticeID, sentAt, body)
		flip := byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		field := rapid.SampledFrom([]string{"body", HeaderID, HeaderTimestamp, HeaderSignature}).Draw(t, "field")
		if field == "body" {
			body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] ^= flip
		} else {
			v := []byte(h.Get(field))
			v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] ^= flip
			h.Set(field, string(v))
		}
		if _, _, err := Verify([]Secret{secret}, h, body, sentAt); !errors.Is(err, ErrNotAuthentic) {
			t.Fatalf("accepted: %v", err)
		}
	})
}

// C-36: what was sent must not reach a log through the error.
func TestVerifyErrorsQuoteNothingThatWasSent(t *testing.T) {
	t.Parallel()
	const canary = "canary5309"
	for _, field := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
		h := signed(NewSecret())
		h.Set(field, canary+".")
		if _, _, err := Verify([]Secret{NewSecret()}, h, []byte(canary), sentAt); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestSecretsSurviveTheirTextAndHideElsewhere(t *testing.T) {
	t.Parallel()
	s := NewSecret()
	again, err := ParseSecret(s.Text())
	if err != nil || !bytes.Equal(again.key, s.key) {
		t.Fatalf("%v", err)
	}
	hex := fmt.Sprintf("%x", s.key)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(format, s); strings.Contains(got, s.Text()[len(secretPrefix):]) || strings.Contains(got, hex) {
			t.Errorf("%s shows %s", format, got)
		}
	}
	for _, bad := range []string{"", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***", "whsec_" + strings.Repeat("A", 100)} {
		if _, err := ParseSecret(bad); !errors.Is(err, ErrSecret) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
