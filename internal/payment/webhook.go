package payment

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Standard Webhooks 1.0.0 (https://www.standardwebhooks.com), symmetric signatures: webhook-signature holds one or more "v1,<base64>" separated by
// spaces, each the HMAC-SHA256 of "<webhook-id>.<webhook-timestamp>.<body>", so that a sender can sign with an old and a new secret at once.

// The headers of a notice.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp" // Unix seconds
	HeaderSignature = "Webhook-Signature"
)

// Limits of a notice.
const (
	// Tolerance is how far the timestamp of a notice may be from the receiver's clock, to either side. Inside it, repetitions are told by their id.
	Tolerance = 5 * time.Minute
	// MaxNoticeBytes is the longest body.
	MaxNoticeBytes = 64 << 10
	// maxSignatures bounds the work that a forged header can cause.
	maxSignatures  = 8
	maxIDBytes     = 256
	minSecretBytes = 24
	maxSecretBytes = 64
	secretPrefix   = "whsec_"
	signatureMark  = "v1,"
)

// ErrSecret says that a text is not a webhook secret.
var ErrSecret = errors.New("not a webhook secret (whsec_ and 24 to 64 bytes in base64)")

// Secret signs notices. It prints as a placeholder; only Text reveals it.
type Secret struct{ key []byte }

// NewSecret makes a random one of 32 bytes.
func NewSecret() Secret {
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand aborts the program instead
	return Secret{key: key}
}

// ParseSecret reads the form whsec_<base64>; anything else is ErrSecret.
func ParseSecret(text string) (Secret, error) {
	body, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, ErrSecret
	}
	key, err := base64.StdEncoding.DecodeString(body)
	// The cause is not wrapped: it would quote a piece of the secret.
	if err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return Secret{}, ErrSecret
	}
	return Secret{key: key}, nil
}

// Text is the form that ParseSecret reads.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

func (s Secret) String() string { return secretPrefix + "(hidden)" }

// GoString keeps the secret out of %#v.
func (s Secret) GoString() string { return s.String() }

// Sign sets the three headers for a body that is sent at the given time, with one signature for each secret. The id must not contain a dot (see Verify).
func Sign(h http.Header, secrets []Secret, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = signatureMark + base64.StdEncoding.EncodeToString(s.mac(id, timestamp, body))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// Verify proves that the raw body was signed with one of the secrets within Tolerance of now, and returns the notice's id and the time of sending.
// Anything else is ErrNotAuthentic; the error names what is wrong but quotes nothing of what was sent.
//
// During a rotation both the old and the new secret are in the list; afterwards the old one is taken out.
func Verify(secrets []Secret, h http.Header, body []byte, now time.Time) (id string, sent time.Time, err error) {
	id, err = oneHeader(h, HeaderID)
	if err != nil {
		return "", time.Time{}, err
	}
	// With a dot inside an id, "a.1" sent at 2 and "a" sent at 1 with the body "2.…" would have one and the same signature.
	if len(id) > maxIDBytes || strings.Contains(id, ".") {
		return "", time.Time{}, fmt.Errorf("%w: %s is malformed", ErrNotAuthentic, HeaderID)
	}
	timestamp, err := oneHeader(h, HeaderTimestamp)
	if err != nil {
		return "", time.Time{}, err
	}
	seconds, perr := strconv.ParseInt(timestamp, 10, 64)
	if perr != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return "", time.Time{}, fmt.Errorf("%w: %s is malformed", ErrNotAuthentic, HeaderTimestamp)
	}
	signatures, err := oneHeader(h, HeaderSignature)
	if err != nil {
		return "", time.Time{}, err
	}
	if len(body) > MaxNoticeBytes {
		return "", time.Time{}, fmt.Errorf("%w: the body is longer than %d bytes", ErrNotAuthentic, MaxNoticeBytes)
	}
	if !anySigned(secrets, signatures, id, timestamp, body) {
		return "", time.Time{}, fmt.Errorf("%w: no signature fits", ErrNotAuthentic)
	}
	sent = time.Unix(seconds, 0)
	if sent.Before(now.Add(-Tolerance)) || sent.After(now.Add(Tolerance)) {
		return "", time.Time{}, fmt.Errorf("%w: sent more than %v from now", ErrNotAuthentic, Tolerance)
	}
	return id, sent, nil
}

// oneHeader wants a header exactly once: of two, a proxy in front may have judged the other one.
func oneHeader(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%w: %s must be there once", ErrNotAuthentic, name)
	}
	return values[0], nil
}

func anySigned(secrets []Secret, signatures, id, timestamp string, body []byte) bool {
	want := make([][]byte, len(secrets))
	for i, s := range secrets {
		want[i] = s.mac(id, timestamp, body)
	}
	fits := false
	list := strings.SplitN(signatures, " ", maxSignatures+1)
	for _, text := range list[:min(len(list), maxSignatures)] {
		encoded, ok := strings.CutPrefix(text, signatureMark)
		if !ok {
			continue // another version, such as the asymmetric v1a
		}
		got, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil {
			continue
		}
		for _, w := range want {
			fits = hmac.Equal(got, w) || fits
		}
	}
	return fits
}

func (s Secret) mac(id, timestamp string, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(id + "." + timestamp + "."))
	m.Write(body)
	return m.Sum(nil)
}
