package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-project/holdfast/api/client"
)

// script answers one after the other; an empty status is a broken connection.
type script struct {
	answers []answer
	seen    []*http.Request
	bodies  []string
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.seen, s.bodies = append(s.seen, r), append(s.bodies, body)
	a := s.answers[min(len(s.seen), len(s.answers))-1]
	if a.status == 0 {
		return nil, errors.New("connection reset")
	}
	h := a.header
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r}, nil
}

func newClient(t *testing.T, s *script) *client.Client {
	t.Helper()
	c, err := client.New("http://server/", client.WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const busy = `{"type":"/problems/busy","title":"Too busy","status":503,"code":"busy","retryable":true}`

// A request is only repeated when doing it twice is doing it once.
func TestOnlySafeRequestsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		first answer
		call  func(context.Context, *client.Client) error
		tries int
	}{
		"hold without a key": {answer{503, busy, nil}, func(ctx context.Context, c *client.Client) error {
			_, err := c.PlaceHold(ctx, "e", client.HoldRequest{Seats: []string{"F5"}})
			return err
		}, 1},
		"hold with a key": {answer{503, busy, nil}, func(ctx context.Context, c *client.Client) error {
			_, err := c.PlaceHold(ctx, "e", client.HoldRequest{Seats: []string{"F5"}, IdempotencyKey: "k"})
			return err
		}, 2},
		"hold with a key, connection lost": {answer{}, func(ctx context.Context, c *client.Client) error {
			_, err := c.PlaceHold(ctx, "e", client.HoldRequest{Seats: []string{"F5"}, IdempotencyKey: "k"})
			return err
		}, 2},
		"checkout": {answer{}, func(ctx context.Context, c *client.Client) error {
			_, err := c.Checkout(ctx, "h", client.CheckoutRequest{})
			return err
		}, 2},
		"reading":          {answer{}, func(ctx context.Context, c *client.Client) error { _, err := c.Event(ctx, "e"); return err }, 2},
		"releasing":        {answer{503, busy, nil}, func(ctx context.Context, c *client.Client) error { return c.Release(ctx, "h") }, 2},
		"more time":        {answer{503, busy, nil}, func(ctx context.Context, c *client.Client) error { _, err := c.Extend(ctx, "h"); return err }, 1},
		"refused for good": {answer{409, `{"code":"customer-limit","status":409}`, nil}, func(ctx context.Context, c *client.Client) error { _, err := c.Hold(ctx, "h"); return err }, 1},
		"asked to wait too long": {answer{429, `{"code":"too-many-requests","status":429,"retryable":true}`, http.Header{"Retry-After": {"60"}}},
			func(ctx context.Context, c *client.Client) error { _, err := c.Hold(ctx, "h"); return err }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []answer{c.first, {201, `{}`, nil}}}
			err := c.call(t.Context(), newClient(t, s))
			if len(s.seen) != c.tries || (err == nil) != (c.tries > 1) {
				t.Errorf("%s: %d tries, %v, want %d", name, len(s.seen), err, c.tries)
			}
			for i := range s.seen {
				if s.bodies[i] != s.bodies[0] || s.seen[i].Header.Get("Idempotency-Key") != s.seen[0].Header.Get("Idempotency-Key") {
					t.Errorf("%s: try %d differs from the first", name, i)
				}
			}
		})
	}
}

func TestRepeatingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{{}}}
		_, err := newClient(t, s).Event(t.Context(), "e")
		if !errors.Is(err, client.ErrUnreachable) || len(s.seen) != 1+client.DefaultRetries {
			t.Errorf("%d tries: %v", len(s.seen), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.seen = nil
		if _, err := newClient(t, s).Event(ctx, "e"); !errors.Is(err, context.Canceled) {
			t.Errorf("after giving up: %v", err)
		}
	})
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{{503, busy, http.Header{"Retry-After": {"3"}}}, {200, `{}`, nil}}}
		began := time.Now()
		if _, err := newClient(t, s).Event(t.Context(), "e"); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestProblemSaysWhatWasRefused(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{{409, `{"type":"/problems/places-gone","title":"Places are gone","status":409,"code":"places-gone","retryable":false,` +
		`"seats":["F6"],"alternatives":[["F7","F8"]]}`, http.Header{"X-Request-Id": {"abc"}}}}}
	_, err := newClient(t, s).PlaceHold(t.Context(), "a/b", client.HoldRequest{Seats: []string{"F6"}})
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Code != client.CodePlacesGone || p.Seats[0] != "F6" || p.Alternatives[0][1] != "F8" || p.RequestID != "abc" {
		t.Errorf("got %#v", err)
	}
	if got := s.seen[0].URL.EscapedPath(); got != "/v1/events/a%2Fb/holds" {
		t.Errorf("the path is %s", got)
	}
	s = &script{answers: []answer{{502, "<html>Bad gateway</html>", nil}}}
	_, err = newClient(t, s).PlaceHold(t.Context(), "e", client.HoldRequest{Seats: []string{"F6"}})
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != 502 || p.Code != "http" {
		t.Errorf("a proxy's page: %#v", err)
	}
}

func TestTokensStayWithTheirClient(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{{200, `{}`, nil}}}
	c := newClient(t, s)
	if _, err := c.As(client.Session{Token: "t"}).Hold(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Event(t.Context(), "e"); err != nil {
		t.Fatal(err)
	}
	if a, b := s.seen[0].Header.Get("Authorization"), s.seen[1].Header.Get("Authorization"); a != "Bearer t" || b != "" {
		t.Errorf("the tokens are %q and %q", a, b)
	}
}

func TestBadAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "server", "ftp://server", "http://", "http://a b"} {
		if _, err := client.New(base); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
}
