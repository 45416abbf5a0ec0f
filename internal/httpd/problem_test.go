package httpd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

func TestProblemIsWrittenAsRFC9457Says(t *testing.T) {
	t.Parallel()
	p := httpd.PlacesGone.Problem("F6 was taken.")
	p.Extra = map[string]any{"seats": []string{"F6"}, "alternatives": [][]string{{"F7", "F8"}}}
	p.Errors = []httpd.FieldError{{Pointer: "#/seats/1", Detail: "taken", Code: "gone"}}
	p.RetryAfter = 1001 * time.Millisecond
	w := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httpd.WriteProblem(w, r, p) }), "POST", "/v1/events/a%20b/holds?q=secret", nil)

	want := `{"type":"/problems/places-gone","title":"Places are gone","status":409,"detail":"F6 was taken.","instance":"/v1/events/a%20b/holds",` +
		`"code":"places-gone","retryable":false,"errors":[{"pointer":"#/seats/1","detail":"taken","code":"gone"}],` +
		`"alternatives":[["F7","F8"]],"seats":["F6"]}`
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Error(diff)
	}
	header := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}, "Retry-After": {"2"}}
	if diff := cmp.Diff(header, w.Header()); diff != "" || w.Code != 409 {
		t.Errorf("status %d %s", w.Code, diff)
	}
}

func TestProblemIsJSONWhateverItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := httpd.Validation.Problem(rapid.String().Draw(t, "detail"))
		name := rapid.StringMatching(`x[a-z"\\<é]{0,5}`).Draw(t, "name")
		values := rapid.SliceOf(rapid.String()).Draw(t, "values")
		p.Extra = map[string]any{name: values, "one": rapid.String().Draw(t, "one")}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if detail, _ := got["detail"].(string); detail != p.Detail {
			t.Errorf("detail %q became %q", p.Detail, detail)
		}
		list, ok := got[name].([]any)
		if !ok && values != nil || len(list) != len(values) || got["one"] != p.Extra["one"] {
			t.Errorf("extra members became %v", got)
		}
		for i := range list {
			if list[i] != values[i] {
				t.Errorf("%q became %q", values[i], list[i])
			}
		}
	})
}

func TestBadExtraMembersAreLeftOutAndTold(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"status": 200, "type": "about:blank", "loop": make(chan int)} {
		p := httpd.NotFound.Problem("")
		p.Extra = map[string]any{name: value}
		if _, err := json.Marshal(p); !errors.Is(err, httpd.ErrExtra) {
			t.Errorf("%s: %v", name, err)
		}
		var log record
		h := httpd.Track(httpd.Tracking{Log: logger(&log, slog.LevelInfo)})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httpd.WriteProblem(w, r, p) }))
		w := ask(h, "GET", "/x", nil)
		if w.Code != 404 || !strings.Contains(w.Body.String(), `"code":"not-found"`) || !strings.Contains(log.String(), "cannot be written whole") {
			t.Errorf("%s: %d %s\n%s", name, w.Code, w.Body, &log)
		}
	}
}

func TestProblemHasTheMethodsThatHumaLooksFor(t *testing.T) {
	t.Parallel()
	p := httpd.Busy.Problem("")
	p.RetryAfter = time.Second
	// The interfaces of huma v2, whose package this one does not import.
	var err any = p
	status, ok := err.(interface {
		GetStatus() int
		Error() string
	})
	if !ok || status.GetStatus() != 503 || status.Error() == "" {
		t.Error("not a huma.StatusError")
	}
	headers, ok := err.(interface{ GetHeaders() http.Header })
	if !ok || headers.GetHeaders().Get("Retry-After") != "1" {
		t.Error("not a huma.HeadersError")
	}
	if filter, ok := err.(interface{ ContentType(string) string }); !ok || filter.ContentType("application/json") != httpd.ProblemType {
		t.Error("not a huma.ContentTypeFilter")
	}
}

var (
	errGone  = errors.New("seat is gone")
	errOther = errors.New("disk is on fire at 10.0.0.7")
)

type missingError struct{ what string }

func (e missingError) Error() string { return e.what }

func table() *httpd.Table {
	return httpd.NewTable(
		httpd.Rule{Is: errGone, Kind: httpd.PlacesGone, Detail: "Choose another seat."},
		httpd.Rule{As: func(err error) (httpd.Problem, bool) {
			missing, ok := errors.AsType[missingError](err)
			return httpd.NotFound.Problem(missing.what), ok
		}},
	)
}

func TestTableMapsErrorsThroughTheirWrapping(t *testing.T) {
	t.Parallel()
	early := httpd.NotOnSale.Problem("")
	early.Extra = map[string]any{"opensAt": "2026-05-01T10:00:00Z"}
	tests := []struct {
		err   error
		want  httpd.Problem
		known bool
	}{
		{errGone, httpd.PlacesGone.Problem("Choose another seat."), true},
		{fmt.Errorf("hold: %w", errors.Join(errOther, errGone)), httpd.PlacesGone.Problem("Choose another seat."), true},
		{fmt.Errorf("read: %w", missingError{"no event x"}), httpd.NotFound.Problem("no event x"), true},
		{fmt.Errorf("hold: %w", early), early, true},
		{errOther, httpd.Internal.Problem(""), false},
	}
	for _, test := range tests {
		got, known := table().Problem(test.err)
		if diff := cmp.Diff(test.want, got); diff != "" || known != test.known {
			t.Errorf("%v: known %v %s", test.err, known, diff)
		}
	}
}

func TestUnknownErrorsAreLoggedOnceAndNeverTold(t *testing.T) {
	t.Parallel()
	var log record
	errs := table()
	h := httpd.Track(httpd.Tracking{Log: logger(&log, slog.LevelWarn), Level: func(*http.Request, int) slog.Level { return slog.LevelDebug }})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/gone" {
				errs.Write(w, r, errGone)
				return
			}
			errs.Write(w, r, errOther)
		}))
	w := ask(h, "GET", "/fire?token=secret", func(r *http.Request) { r.Header.Set("X-Request-Id", "req-1") })
	if w.Code != 500 || strings.Contains(w.Body.String(), "fire at") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	line := log.String()
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, "fire at 10.0.0.7") || !strings.Contains(line, "request=req-1") || strings.Contains(line, "secret") {
		t.Errorf("log: %s", line)
	}
	if w := ask(h, "GET", "/gone", nil); w.Code != 409 || log.String() != line {
		t.Errorf("%d; log: %s", w.Code, &log)
	}
}

func TestEveryKindHasItsPage(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	httpd.HandleProblems(mux)
	h := httpd.SecurityHeaders(httpd.Routes(mux))

	var index struct {
		Problems []struct {
			Type, Code, Title, What, Do string
			Status                      int
		}
	}
	if err := json.Unmarshal(ask(h, "GET", "/problems", nil).Body.Bytes(), &index); err != nil {
		t.Fatal(err)
	}
	browser := func(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") }
	list := ask(h, "GET", "/problems", browser).Body.String()
	seen := make(map[string]bool)
	for _, k := range index.Problems {
		if seen[k.Code] || k.What == "" || k.Do == "" || k.Title == "" || k.Status < 400 || k.Type != "/problems/"+k.Code {
			t.Errorf("%+v", k)
		}
		seen[k.Code] = true
		page := ask(h, "GET", k.Type, browser)
		if page.Code != 200 || !strings.Contains(page.Body.String(), k.Code) || !strings.Contains(page.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", k.Code, page.Code, page.Body)
		}
		if !strings.Contains(list, `href="/problems/`+k.Code+`"`) {
			t.Errorf("%s is not in the list", k.Code)
		}
	}
	if len(seen) < 40 || !seen["places-gone"] || !seen["internal"] {
		t.Errorf("%d kinds", len(seen))
	}
	if w := ask(h, "GET", "/problems/none", browser); w.Code != 404 || w.Header().Get("Content-Type") != httpd.ProblemType {
		t.Errorf("unknown kind: %d", w.Code)
	}
}

func TestPrefersHTML(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"":                                     false,
		"*/*":                                  false,
		"text/html":                            true,
		"text/html, application/json;q=0.9":    true,
		"text/html;q=0.5, application/json":    false,
		"application/problem+json, text/html":  false,
		"TEXT/HTML;level=1; q=0.4":             true,
		"text/html;q=0":                        false,
		"text/html;q=nonsense":                 false,
		"application/xhtml+xml,*/*;q=0.8":      true,
		"text/htmlish, application/json;q=0.1": false,
	}
	for accept, want := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		if got := httpd.PrefersHTML(r); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func BenchmarkWriteProblem(b *testing.B) {
	p := httpd.PlacesGone.Problem("At least one of the places was taken.")
	p.Extra = map[string]any{"seats": []string{"F6"}}
	r := httptest.NewRequest("POST", "/v1/events/evt_abc/holds", nil)
	w := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		httpd.WriteProblem(w, r, p)
	}
}

// sink is a ResponseWriter that keeps nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { return io.Discard.Write(b) }
