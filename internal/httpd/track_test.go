package httpd_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

func TestRequestIDIsKeptWhenWellFormed(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"0af7651916cd43dd8448eb211c80319c": true,
		"req-1_2.3":                        true,
		strings.Repeat("a", 64):            true,
		strings.Repeat("a", 65):            false,
		"":                                 false,
		"a b":                              false,
		"a\nb":                             false,
		"é":                                false,
		"$(reboot)":                        false,
	}
	for given, kept := range tests {
		var inside string
		h := tracked(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { inside = httpd.RequestOf(r.Context()).ID }))
		w := ask(h, "GET", "/", func(r *http.Request) { r.Header["X-Request-Id"] = []string{given} })
		got := w.Header().Get("X-Request-Id")
		if got != inside || (got == given) != kept || len(got) < 3 {
			t.Errorf("%q became %q inside, %q outside", given, inside, got)
		}
	}
	first, second := ask(tracked(text("")), "GET", "/", nil), ask(tracked(text("")), "GET", "/", nil)
	if first.Header().Get("X-Request-Id") == second.Header().Get("X-Request-Id") {
		t.Error("two requests got the same id")
	}
}

func TestTraceParentIsTakenOverWhenWellFormed(t *testing.T) {
	t.Parallel()
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	tests := map[string]string{
		"00-" + trace + "-" + parent + "-01":                             trace,
		"cc-" + trace + "-" + parent + "-01-what-the-next":               trace,
		"00-" + trace + "-" + parent + "-01-more":                        "",
		"ff-" + trace + "-" + parent + "-01":                             "",
		"00-" + trace + "-" + parent + "-0":                              "",
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":            "",
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01":           "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":            "",
		"00_" + trace + "-" + parent + "-01":                             "",
		"cc-" + trace + "-" + parent + "-01-\n":                          "",
		"cc-" + trace + "-" + parent + "-01" + strings.Repeat("-a", 100): "",
	}
	for given, want := range tests {
		var log record
		h := httpd.Track(httpd.Tracking{Log: logger(&log, slog.LevelDebug)})(text(""))
		ask(h, "GET", "/", func(r *http.Request) { r.Header.Set("Traceparent", given) })
		if logged := strings.Contains(log.String(), "trace="+trace); logged != (want != "") {
			t.Errorf("%q: log %s", given, &log)
		}
	}
}

func TestAccessLogSaysWhatHappenedAtItsLevel(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/events/{event}", func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"ok": 200, "gone": 409, "bad": 422, "broken": 500, "busy": 503}[r.PathValue("event")]
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "12345")
	})
	var log record
	var done []int
	h := httpd.Track(httpd.Tracking{Log: logger(&log, slog.LevelInfo), Done: func(route string, status int, took time.Duration) {
		if route != "GET /v1/events/{event}" || took < 0 {
			t.Errorf("done: %q after %v", route, took)
		}
		done = append(done, status)
	}})(mux)
	for _, event := range []string{"ok", "gone", "busy", "bad", "broken"} {
		ask(h, "GET", "/v1/events/"+event+"?q=private", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") })
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=INFO") || !strings.Contains(lines[0], "status=422 bytes=5") ||
		!strings.Contains(lines[1], "level=ERROR") || !strings.Contains(lines[1], `route="GET /v1/events/{event}"`) || !strings.Contains(lines[1], "client=192.0.2.1") {
		t.Errorf("log:\n%s", &log)
	}
	if strings.Contains(log.String(), "private") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log tells secrets:\n%s", &log)
	}
	if diff := cmp.Diff([]int{200, 409, 503, 422, 500}, done); diff != "" {
		t.Error(diff)
	}
}

func TestPanicBecomesAnInternalProblemAndALogLine(t *testing.T) {
	t.Parallel()
	var log record
	h := httpd.Track(httpd.Tracking{Log: logger(&log, slog.LevelError)})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		var nothing map[string]int
		nothing["boom"] = 1
	}))
	w := ask(h, "GET", "/", func(r *http.Request) { r.Header.Set("X-Request-Id", "req-9") })
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "boom") || w.Header().Get("Etag")+w.Header().Get("Set-Cookie") != "" || w.Header().Get("X-Content-Type-Options") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if !strings.Contains(log.String(), "nil map") || !strings.Contains(log.String(), "track_test.go") || !strings.Contains(log.String(), "request=req-9") {
		t.Errorf("log: %s", &log)
	}
}

func TestPanicInTheMiddleOfAnAnswerCutsTheConnection(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{"mistake": "boom", "asked for": http.ErrAbortHandler} {
		h := tracked(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half an ans")
			panic(v)
		}))
		func() {
			defer func() {
				if got := recover(); got != any(http.ErrAbortHandler) {
					t.Errorf("%s: recovered %v", name, got)
				}
			}()
			ask(h, "GET", "/", nil)
		}()
	}
}

func TestClientAddressCannotBeSpoofed(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "203.0.113.9:1234", nil, "203.0.113.9"},
		{"a stranger's word is not taken", "203.0.113.9:1234", []string{"198.51.100.1"}, "203.0.113.9"},
		{"a proxy's is", "10.0.0.1:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		{"what the client wrote before the proxy added is ignored", "10.0.0.1:1", []string{"1.1.1.1, 127.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1, 10.9.9.9"}, "198.51.100.1"},
		{"several lines are one list", "10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1", "10.9.9.9"}, "198.51.100.1"},
		{"a client that claims to be a proxy", "10.0.0.1:1", []string{"1.1.1.1, 10.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		{"nonsense ends the walk", "10.0.0.1:1", []string{"1.1.1.1, unknown, 10.9.9.9"}, "10.9.9.9"},
		{"nothing but proxies", "10.0.0.1:1", []string{"10.2.2.2, 10.3.3.3"}, "10.2.2.2"},
		{"empty", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"IPv6", "[fd00::1]:1", []string{"2001:db8::7"}, "2001:db8::7"},
		{"ports and brackets", "[fd00::1]:1", []string{"[2001:db8::7]:99"}, "2001:db8::7"},
		{"IPv4 with a port", "10.0.0.1:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"endless list", "10.0.0.1:1", []string{strings.Repeat("10.0.0.2,", 5000) + "10.0.0.3"}, "10.0.0.2"},
		{"no address", "@", []string{"198.51.100.1"}, "invalid IP"},
	}
	for _, test := range tests {
		var got netip.Addr
		h := httpd.Track(httpd.Tracking{Log: silent(), Proxies: proxies})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = httpd.RequestOf(r.Context()).Client
		}))
		ask(h, "GET", "/", func(r *http.Request) {
			r.RemoteAddr = test.peer
			r.Header["X-Forwarded-For"] = test.forwarded
		})
		if got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestResponseControllerReachesTheConnection(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		if err := rc.Flush(); err != nil {
			t.Error(err)
		}
	})
	s := httptest.NewServer(tracked(httpd.Routes(mux)))
	defer s.Close()
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkMiddleware is what every request pays, against the same handler alone.
func BenchmarkMiddleware(b *testing.B) {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/events/{event}/holds", text("{}"))
	origin, err := httpd.SameOrigin(nil)
	if err != nil {
		b.Fatal(err)
	}
	limiter := httpd.NewLimiter[netip.Addr](httpd.Rate{Name: "address", Quota: 1 << 30, Window: 100 * time.Hour}, 0)
	all := []httpd.Middleware{
		httpd.Track(httpd.Tracking{Log: logger(io.Discard, slog.LevelInfo)}),
		httpd.SecurityHeaders,
		origin,
		httpd.NewInFlight(httpd.MaxInFlight).Limit,
		limiter.Limit(httpd.ByAddress(false)),
		httpd.BodyLimit(func(*http.Request) int64 { return httpd.MaxBody }),
		func(http.Handler) http.Handler { return httpd.Routes(mux) },
	}
	bench := func(name string, h http.Handler) {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("POST", "/v1/events/evt_abc/holds", strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer x")
			body := r.Body
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				r.Body = body
				h.ServeHTTP(w, r)
			}
		})
	}
	bench("none", mux)
	bench("track", httpd.Chain(mux, all[0]))
	bench("all", httpd.Chain(mux, all...))
	bench("all but rate", httpd.Chain(mux, append(append([]httpd.Middleware{}, all[:4]...), all[5:]...)...))
}
