package httpd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// ProblemType is the media type of RFC 9457.
const ProblemType = "application/problem+json"

// problemsPath is where the pages of the kinds are; a problem's type is problemsPath + its code.
const problemsPath = "/problems/"

// Problem is an error as clients see it (RFC 9457). Make one with Kind.Problem and fill in what is known. It is an error itself,
// and has the methods by which huma writes errors.
type Problem struct {
	Type     string // address of the page that explains the kind
	Code     string // stable; what programs look at
	Title    string
	Status   int
	Detail   string // this occurrence, for people: what to do about it
	Instance string // the path of the request when empty
	Errors   []FieldError
	// Retryable says that the same request may succeed later; RetryAfter, when not 0, that it is useless before. It is sent in
	// whole seconds, rounded up.
	Retryable  bool
	RetryAfter time.Duration
	Extra      map[string]any // further members, e.g. "seats"; names of the members above are not allowed
}

// FieldError names one field of the request.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer as a fragment ("#/seats/0"), or the name of a parameter
	Detail  string `json:"detail"`
	Code    string `json:"code,omitempty"`
}

func (p Problem) Error() string {
	if p.Detail == "" {
		return p.Code + ": " + p.Title
	}
	return p.Code + ": " + p.Detail
}

// GetStatus, GetHeaders and ContentType are what huma asks an error for.
func (p Problem) GetStatus() int { return p.Status }

// GetHeaders gives the fields that go with the problem.
func (p Problem) GetHeaders() http.Header {
	h := http.Header{"Cache-Control": noStore}
	if p.RetryAfter > 0 {
		h["Retry-After"] = []string{wholeSeconds(p.RetryAfter)}
	}
	return h
}

// ContentType replaces JSON by the type of problems.
func (p Problem) ContentType(string) string { return ProblemType }

// MarshalJSON writes the standard members, then ours, then Extra in the order of its names.
func (p Problem) MarshalJSON() ([]byte, error) { return p.appendJSON(nil, p.Instance) }

// standard members may not be overwritten by Extra.
var standard = map[string]bool{
	"type": true, "title": true, "status": true, "detail": true, "instance": true, "code": true, "retryable": true, "errors": true,
}

// ErrExtra says that an extra member has the name of a standard one, or a value that is not JSON.
var ErrExtra = errors.New("bad extra member of a problem")

// Refusals are the hottest answers of a rush, so this is written by hand: encoding/json would take a map for the extra members
// and several times as long.
func (p Problem) appendJSON(b []byte, instance string) ([]byte, error) {
	b = appendText(append(b, `{"type":`...), p.Type)
	b = appendText(append(b, `,"title":`...), p.Title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.Status), 10)
	if p.Detail != "" {
		b = appendText(append(b, `,"detail":`...), p.Detail)
	}
	if instance != "" {
		b = appendText(append(b, `,"instance":`...), instance)
	}
	b = appendText(append(b, `,"code":`...), p.Code)
	b = strconv.AppendBool(append(b, `,"retryable":`...), p.Retryable)
	if len(p.Errors) > 0 {
		list, err := json.Marshal(p.Errors)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"errors":`...), list...)
	}
	if len(p.Extra) > 0 {
		for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
			if standard[name] {
				return nil, fmt.Errorf("%w: %q is a standard one", ErrExtra, name)
			}
			var err error
			if b, err = appendValue(append(appendText(append(b, ','), name), ':'), p.Extra[name]); err != nil {
				return nil, fmt.Errorf("%w: %q: %w", ErrExtra, name, err)
			}
		}
	}
	return append(b, '}'), nil
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendText(b, v), nil
	case []string:
		if v != nil {
			return appendTexts(b, v), nil
		}
	case [][]string:
		if v != nil {
			b = append(b, '[')
			for i, list := range v {
				if i > 0 {
					b = append(b, ',')
				}
				b = appendTexts(b, list)
			}
			return append(b, ']'), nil
		}
	}
	text, err := json.Marshal(v)
	return append(b, text...), err
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

// appendText writes a JSON string; plain ones, nearly all, without a detour.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string is always JSON: invalid UTF-8 becomes U+FFFD
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

var (
	problemHeader = []string{ProblemType}
	noStore       = []string{"no-store"}
	bodies        = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}
)

// WriteProblem answers with p. Fields that a handler set before for the case of success should not be there any more; what the
// middleware set stays. Problems are not cached unless the handler says so.
func WriteProblem(w http.ResponseWriter, r *http.Request, p Problem) {
	instance := p.Instance
	if instance == "" {
		instance = r.URL.EscapedPath()
	}
	buffer := bodies.Get().(*[]byte)
	defer bodies.Put(buffer)
	body, err := p.appendJSON((*buffer)[:0], instance)
	if err != nil {
		// The refusal is right, only its decoration is not: tell it without.
		Log(r.Context()).ErrorContext(r.Context(), "problem cannot be written whole", "code", p.Code, "err", err)
		p.Extra, p.Errors = nil, nil
		body, _ = p.appendJSON((*buffer)[:0], instance)
	}
	*buffer = body

	h := w.Header()
	h["Content-Type"] = problemHeader
	if _, ok := h["Cache-Control"]; !ok {
		h["Cache-Control"] = noStore
	}
	if p.RetryAfter > 0 {
		h["Retry-After"] = []string{wholeSeconds(p.RetryAfter)}
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client may have gone; there is nobody left to tell
}

// wholeSeconds rounds up: who asks a moment too early is refused again.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Rule maps one kind of error. Either Is names a sentinel and the problem is that of Kind with Detail, or As looks into the error
// itself.
type Rule struct {
	Is     error
	Kind   *Kind
	Detail string
	As     func(err error) (Problem, bool)
}

// Table is the one place where errors become problems. Rules are tried in order; put the frequent ones first.
type Table struct{ rules []Rule }

// NewTable makes one out of rules, which come before those of this package.
func NewTable(rules ...Rule) *Table {
	return &Table{rules: append(slices.Clip(rules),
		Rule{As: asProblem},
		Rule{As: asTooLarge},
	)}
}

// Problem maps an error. known is false for one that no rule knows: it becomes an internal error whose text the client never
// sees, and should be logged.
func (t *Table) Problem(err error) (p Problem, known bool) {
	for i := range t.rules {
		rule := &t.rules[i]
		if rule.As != nil {
			if p, ok := rule.As(err); ok {
				return p, true
			}
			continue
		}
		if errors.Is(err, rule.Is) {
			return rule.Kind.Problem(rule.Detail), true
		}
	}
	return Internal.Problem(""), false
}

// Write answers with the problem of an error. Errors that no rule knows are logged here, once, unless the client has gone: then
// the error is only that.
func (t *Table) Write(w http.ResponseWriter, r *http.Request, err error) {
	p, known := t.Problem(err)
	if !known && r.Context().Err() == nil {
		Log(r.Context()).ErrorContext(r.Context(), "request failed", "method", r.Method, "route", route(r), "err", err)
	}
	WriteProblem(w, r, p)
}

func asProblem(err error) (Problem, bool) { return errors.AsType[Problem](err) }

func asTooLarge(err error) (Problem, bool) {
	large, ok := errors.AsType[*http.MaxBytesError](err)
	if !ok {
		return Problem{}, false
	}
	return tooLarge(large.Limit), true
}

func tooLarge(limit int64) Problem {
	p := BodyTooLarge.Problem(fmt.Sprintf("The body may have at most %d bytes.", limit))
	p.Extra = map[string]any{"maxBytes": limit}
	return p
}
