// Package httpd is the shell around the program's handlers: listener and graceful stop, what every request passes through, limits,
// and problems: the one table from errors to answers.
//
// It is one of the two places that ask the clock; Now is for handlers that pass the time on.
package httpd

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"
)

// Now is the clock of handlers.
func Now() time.Time { return time.Now() }

// Middleware wraps a handler.
type Middleware func(http.Handler) http.Handler

// Chain wraps h so that the first middleware sees a request first.
func Chain(h http.Handler, middleware ...Middleware) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// Request is what Track found out about a request.
type Request struct {
	ID     string     // X-Request-Id: the client's if it is well formed, else random
	Trace  string     // the trace id of a well-formed traceparent (W3C Trace Context), or empty
	Parent string     // that traceparent, to be passed on in calls that the request causes
	Client netip.Addr // who asks: the peer, or what a trusted proxy says; invalid when the server does not know
	Secure bool       // came over TLS, here or at a trusted proxy

	log  *slog.Logger
	slot func() // gives the place of an InFlight limit back early
}

type requestKey struct{}

// RequestOf gives what Track found out, or the zero value outside of Track.
func RequestOf(ctx context.Context) *Request {
	if t, ok := ctx.Value(requestKey{}).(*tracked); ok {
		return &t.Request
	}
	return &Request{}
}

// Log is the logger of a request, or the default one outside of Track. With a LogHandler its records carry the request's ids.
func Log(ctx context.Context) *slog.Logger {
	if log := RequestOf(ctx).log; log != nil {
		return log
	}
	return slog.Default()
}

// Tracking says how Track works.
type Tracking struct {
	Log *slog.Logger
	// Level chooses the level at which an answer is logged; nil means AccessLevel. A disabled level costs nothing.
	Level func(r *http.Request, status int) slog.Level
	// Done is told of every answer, for metrics. route is the pattern of the mux, empty where none matched. May be nil.
	Done func(route string, status int, took time.Duration)
	// Proxies may name the client in X-Forwarded-For and the scheme in X-Forwarded-Proto. Nobody else's word is taken.
	Proxies []netip.Prefix
}

// AccessLevel logs what an operator should look at: server errors as errors, refusals of bad requests as information, and at
// debug what happens a thousand times a second in a rush (successes, lost places, limits, overload): a log line for each would
// make an overload worse, and metrics count them.
func AccessLevel(_ *http.Request, status int) slog.Level {
	switch {
	case status < 400:
		return slog.LevelDebug
	case status == http.StatusConflict, status == http.StatusGone, status == http.StatusTooManyRequests, status == http.StatusNotFound,
		status == http.StatusServiceUnavailable:
		return slog.LevelDebug
	case status >= 500:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Track is the outermost middleware. It gives the request its id, finds out who asks, logs the answer, and turns a panic of a
// handler into a logged internal error.
func Track(o Tracking) Middleware {
	if o.Level == nil {
		o.Level = AccessLevel
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			started := time.Now()
			// One allocation for all that belongs to the request, the value of its id's field included.
			t := &tracked{ResponseWriter: w}
			t.log = o.Log
			t.ID = requestID(r)
			t.Trace, t.Parent = traceparent(r)
			t.Client, t.Secure = client(r, o.Proxies)
			t.field[0] = t.ID
			w.Header()["X-Request-Id"] = t.field[:]
			r = r.WithContext(context.WithValue(r.Context(), requestKey{}, t))
			defer func() {
				aborted := t.recovered(r, recover())
				t.report(o, r, time.Since(started))
				if aborted {
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(t, r)
		})
	}
}

// tracked sees what a handler answers.
type tracked struct {
	http.ResponseWriter
	Request
	status int
	bytes  int64
	field  [1]string
}

func (t *tracked) WriteHeader(status int) {
	if t.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		t.status = status
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	n, err := t.ResponseWriter.Write(b)
	t.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController through.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// recovered answers for a handler that panicked. It says whether the connection must be cut, because the client would take what
// was sent so far for the whole answer.
func (t *tracked) recovered(r *http.Request, v any) (aborted bool) {
	switch v {
	case nil:
		return false
	case http.ErrAbortHandler: // asked for, and no mistake
		return true
	}
	t.log.ErrorContext(r.Context(), "handler panicked", "method", r.Method, "route", route(r), "panic", v, "stack", string(debug.Stack()))
	if t.status != 0 {
		return true
	}
	h := t.Header()
	for name := range h {
		switch name {
		case "Content-Type", "Content-Length", "Content-Encoding", "Etag", "Cache-Control", "Location", "Set-Cookie", "Link", "Last-Modified":
			delete(h, name) // described an answer that is not coming
		}
	}
	WriteProblem(t, r, Internal.Problem(""))
	return false
}

func (t *tracked) report(o Tracking, r *http.Request, took time.Duration) {
	if t.status == 0 {
		t.status = http.StatusOK // net/http sends this for a handler that wrote nothing
	}
	if o.Done != nil {
		o.Done(r.Pattern, t.status, took)
	}
	level := o.Level(r, t.status)
	if !o.Log.Enabled(r.Context(), level) {
		return
	}
	o.Log.LogAttrs(r.Context(), level, "request",
		slog.String("method", r.Method), slog.String("route", route(r)), slog.Int("status", t.status), slog.Int64("bytes", t.bytes),
		slog.Duration("took", took), slog.String("client", t.Client.String()))
}

// maxLoggedPath bounds what a stranger can put into a log line.
const maxLoggedPath = 256

// route is what a log says of the address: the pattern, or the path where none matched. Never the query, which may have secrets
// or what a person searched for.
func route(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	path := r.URL.EscapedPath()
	return path[:min(len(path), maxLoggedPath)]
}

// maxRequestID bounds the ids that are taken over from clients, in bytes.
const maxRequestID = 64

func requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && wellFormedID(given[0]) {
		return given[0]
	}
	var raw [16]byte
	binary.NativeEndian.PutUint64(raw[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(raw[8:], rand.Uint64())
	var text [32]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

// wellFormedID keeps what could break a log line, a header or a shell out.
func wellFormedID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// traceparent reads https://www.w3.org/TR/trace-context/ section 3.2: version-trace-parent-flags. Versions after 00 may append
// to it.
func traceparent(r *http.Request) (trace, whole string) {
	given := r.Header["Traceparent"]
	if len(given) != 1 {
		return "", ""
	}
	const size, zeroTrace, zeroParent = 55, "00000000000000000000000000000000", "0000000000000000"
	s := given[0]
	if len(s) < size || len(s) > 2*size || len(s) > size && (s[:2] == "00" || s[size] != '-') || s[:2] == "ff" {
		return "", ""
	}
	for i := range size {
		c := s[i]
		dash := i == 2 || i == 35 || i == 52
		if dash != (c == '-') || !dash && !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return "", ""
		}
	}
	if s[3:35] == zeroTrace || s[36:52] == zeroParent || !wellFormedTail(s[size:]) {
		return "", ""
	}
	return s[3:35], s
}

func wellFormedTail(s string) bool { return s == "" || wellFormedID(s) }

// maxForwards bounds how many hops of X-Forwarded-For are looked at.
const maxForwards = 16

// client finds who asks. Proxies append the address of their own peer, so only the right end of X-Forwarded-For can be believed:
// it is read from there for as long as the address before is a trusted proxy. Whatever a client wrote itself is further left.
func client(r *http.Request, proxies []netip.Prefix) (addr netip.Addr, secure bool) {
	secure = r.TLS != nil
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, secure
	}
	addr = peer.Addr().Unmap().WithZone("")
	if !trusted(addr, proxies) {
		return addr, secure
	}
	if proto := r.Header["X-Forwarded-Proto"]; len(proto) > 0 {
		last := proto[len(proto)-1]
		secure = strings.EqualFold(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]), "https")
	}
	hops := 0
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; hops++ {
			var hop string
			comma := strings.LastIndexByte(rest, ',')
			hop, more = rest[comma+1:], comma >= 0
			if more {
				rest = rest[:comma]
			}
			before, ok := forwardedAddr(strings.TrimSpace(hop))
			if !ok || hops == maxForwards {
				return addr, secure // the last one that somebody trusted has named
			}
			addr = before
			if !trusted(addr, proxies) {
				return addr, secure
			}
		}
	}
	return addr, secure
}

func forwardedAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(s) // some proxies add the port
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// LogHandler adds the ids of the request in the context to records.
type LogHandler struct{ slog.Handler }

// Handle is part of slog.Handler.
func (h LogHandler) Handle(ctx context.Context, record slog.Record) error {
	if r := RequestOf(ctx); r.ID != "" {
		record.AddAttrs(slog.String("request", r.ID))
		if r.Trace != "" {
			record.AddAttrs(slog.String("trace", r.Trace))
		}
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs is part of slog.Handler.
func (h LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return LogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup is part of slog.Handler.
func (h LogHandler) WithGroup(name string) slog.Handler { return LogHandler{h.Handler.WithGroup(name)} }
