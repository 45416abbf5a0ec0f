// Package client calls the HTTP API of a Holdfast server. It needs the standard library only.
//
// A Client belongs to one server and, with As or WithToken, to one customer; copies share their connections. Every method takes a context, and every
// refusal of the server is a *Problem, whose Code programs look at:
//
//	c, err := client.New("http://127.0.0.1:8080")
//	session, err := c.NewSession(ctx)
//	me := c.As(session)
//	hold, err := me.PlaceHold(ctx, "demo-cinema", client.HoldRequest{Seats: []string{"F5", "F6"}})
//	if p, ok := errors.AsType[*client.Problem](err); ok && p.Code == client.CodePlacesGone {
//		hold, err = me.PlaceHold(ctx, "demo-cinema", client.HoldRequest{Seats: p.Alternatives[0]})
//	}
//	payment, err := me.Checkout(ctx, hold.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits and defaults.
const (
	MaxAnswer           = 64 << 20 // bytes of an answer that are read
	DefaultTimeout      = 30 * time.Second
	DefaultRetries      = 2
	DefaultConnections  = 256 // kept open when idle
	firstWait, lastWait = 100 * time.Millisecond, 5 * time.Second
)

// Client is safe for concurrent use.
type Client struct {
	base    string
	http    *http.Client
	token   string
	agent   string
	retries int
}

// Option changes what New makes.
type Option func(*Client)

// WithHTTPClient calls with h, instead of a client with DefaultTimeout that keeps DefaultConnections.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithRetries sets how often a call that is safe to repeat is repeated when the server can't be reached or is busy; 0: never.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithUserAgent sets the User-Agent field.
func WithUserAgent(s string) Option { return func(c *Client) { c.agent = s } }

// New makes a client of the server at base, such as https://tickets.example.org.
func New(base string, options ...Option) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("address of the server: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("address of the server: %q is not http(s)://host", base)
	}
	c := &Client{base: strings.TrimRight(base, "/"), agent: "holdfast-client", retries: DefaultRetries}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		c.http = &http.Client{Timeout: DefaultTimeout, Transport: NewTransport(DefaultConnections), CheckRedirect: noCredentialsElsewhere}
	}
	return c, nil
}

// NewTransport makes a transport that keeps up to so many connections to one server. Answers are taken uncompressed: most are smaller than a packet.
func NewTransport(connections int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() // the type that net/http promises
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = connections, connections, 0
	t.DisableCompression = true
	return t
}

// noCredentialsElsewhere stops at a redirect to another host: the layout is at the same one, and a token must not travel.
func noCredentialsElsewhere(r *http.Request, via []*http.Request) error {
	if len(via) >= 5 || r.URL.Host != via[0].URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// WithToken gives a client that shows another token: a session's, or an admin key.
func (c *Client) WithToken(token string) *Client {
	other := *c
	other.token = token
	return &other
}

// As gives a client that acts for the customer of a session.
func (c *Client) As(s Session) *Client { return c.WithToken(s.Token) }

// Base is the address of the server, without a slash at its end.
func (c *Client) Base() string { return c.base }

// NewIdempotencyKey makes a random key for one request. Keep it to repeat that very request.
func NewIdempotencyKey() string { return rand.Text() }

// call is one request and where its answer goes.
type call struct {
	method, path string
	query        url.Values
	body         any         // sent as JSON; []byte is sent as it is; nil: none
	key          string      // Idempotency-Key
	header       http.Header // more fields
	into         any         // *[]byte takes the bytes; nil: the body is dropped
	repeatable   bool        // although it has no key and is no GET
}

// do sends a call and, when that is safe, repeats it while the server can't be reached or is busy. It returns the fields of the answer.
func (c *Client) do(ctx context.Context, in call) (http.Header, error) {
	body, err := in.encode()
	if err != nil {
		return nil, err
	}
	safe := in.method == http.MethodGet || in.key != "" || in.repeatable
	for attempt := 0; ; attempt++ {
		header, err := c.once(ctx, in, body)
		if err == nil || !safe || attempt >= c.retries || ctx.Err() != nil {
			return header, err
		}
		after, again := worthRepeating(err)
		if !again {
			return header, err
		}
		if err := pause(ctx, max(after, backoff(attempt))); err != nil {
			return header, err
		}
	}
}

func (in *call) encode() ([]byte, error) {
	switch b := in.body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	}
	b, err := json.Marshal(in.body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", in.method, in.path, err)
	}
	return b, nil
}

func (c *Client) once(ctx context.Context, in call, body []byte) (http.Header, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	target := c.base + in.path
	if len(in.query) > 0 {
		target += "?" + in.query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, in.method, target, reader)
	if err != nil {
		return nil, err
	}
	h := r.Header
	h["User-Agent"] = []string{c.agent}
	if body != nil {
		h["Content-Type"] = []string{"application/json"}
	}
	if c.token != "" {
		h["Authorization"] = []string{"Bearer " + c.token}
	}
	if in.key != "" {
		h["Idempotency-Key"] = []string{in.key}
	}
	for name, values := range in.header {
		h[name] = values
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return w.Header, in.read(w)
}

// read takes the whole answer, so that the connection can be used again.
func (in *call) read(w *http.Response) error {
	defer func() { _ = w.Body.Close() }() // it was read to its end or is useless
	data, err := readAll(w)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case w.StatusCode >= http.StatusMultipleChoices && w.StatusCode != http.StatusNotModified:
		return readProblem(w, data)
	}
	switch into := in.into.(type) {
	case nil:
	case *[]byte:
		*into = data
	default:
		if len(data) == 0 {
			return nil
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("answer to %s %s: %w", in.method, in.path, err)
		}
	}
	return nil
}

func readAll(w *http.Response) ([]byte, error) {
	if n := w.ContentLength; n >= 0 && n <= MaxAnswer {
		data := make([]byte, n)
		_, err := io.ReadFull(w.Body, data)
		if err == nil {
			_, err = w.Body.Read(make([]byte, 1)) // meets the end, so that the connection is given back
			if errors.Is(err, io.EOF) {
				err = nil
			}
		}
		return data, err
	}
	data, err := io.ReadAll(io.LimitReader(w.Body, MaxAnswer+1))
	if err == nil && len(data) > MaxAnswer {
		err = fmt.Errorf("an answer of more than %d bytes", MaxAnswer)
	}
	return data, err
}

// ErrUnreachable: no answer came; whether the server did the work is not known.
var ErrUnreachable = errors.New("the server can't be reached")

// worthRepeating says whether the same request may succeed soon, and how long to wait at least.
func worthRepeating(err error) (after time.Duration, again bool) {
	if p, ok := errors.AsType[*Problem](err); ok {
		busy := p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests || p.Code == CodeIdempotencyInProgress
		return p.RetryAfter, busy && p.Retryable && p.RetryAfter <= lastWait
	}
	return 0, errors.Is(err, ErrUnreachable)
}

// backoff doubles from firstWait, less up to a half of it, so that clients that failed together do not come back together.
func backoff(attempt int) time.Duration {
	wait := min(lastWait, firstWait<<min(attempt, 10))
	return wait - mathrand.N(wait/2+1)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func seg(s string) string { return url.PathEscape(s) }

// retryAfter reads whole seconds; dates are not sent by this API.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
