package httpd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

func TestBodyLimitRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	errs := httpd.NewTable()
	h := httpd.BodyLimit(func(r *http.Request) int64 {
		if r.URL.Path == "/layouts" {
			return 20
		}
		return 10
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			errs.Write(w, r, err)
			return
		}
		_, _ = w.Write(body)
	}))
	tests := []struct {
		path    string
		size    int
		chunked bool
		want    int
	}{
		{"/holds", 10, false, 200}, {"/holds", 11, false, 413}, {"/holds", 10, true, 200}, {"/holds", 11, true, 413},
		{"/layouts", 20, false, 200}, {"/layouts", 21, true, 413}, {"/holds", 0, false, 200},
	}
	for _, test := range tests {
		r := httptest.NewRequest("POST", test.path, strings.NewReader(strings.Repeat("x", test.size)))
		if test.chunked {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%+v: %d", test, w.Code)
		}
		var p struct {
			Code     string
			MaxBytes int
		}
		if test.want == 413 {
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != "body-too-large" || p.MaxBytes == 0 {
				t.Errorf("%+v: %s", test, w.Body)
			}
		}
	}
}

func TestInFlightRefusesOneTooManyAndRecovers(t *testing.T) {
	t.Parallel()
	const most = 3
	limit := httpd.NewInFlight(most)
	entered, leave := make(chan struct{}), make(chan struct{})
	h := tracked(limit.Limit(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
	})))
	var working sync.WaitGroup
	for range most {
		working.Go(func() { ask(h, "GET", "/", nil) })
		<-entered
	}
	w := ask(h, "GET", "/", nil)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"busy"`) || limit.Refused() != 1 || limit.Now() != most {
		t.Errorf("%d %v %s; %d in flight", w.Code, w.Header(), w.Body, limit.Now())
	}
	close(leave)
	working.Wait()
	go func() { <-entered }()
	if w := ask(h, "GET", "/", nil); w.Code != 200 || limit.Now() != 0 {
		t.Errorf("afterwards: %d, %d in flight", w.Code, limit.Now())
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	h := httpd.Chain(text(""), httpd.Track(httpd.Tracking{Log: silent(), Proxies: proxies}), httpd.SecurityHeaders)
	got := ask(h, "GET", "/", nil).Header()
	got.Del("X-Request-Id")
	got.Del("Content-Type")
	want := http.Header{
		"X-Content-Type-Options":  {"nosniff"},
		"Referrer-Policy":         {"strict-origin-when-cross-origin"},
		"Content-Security-Policy": {"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		"Permissions-Policy":      {"camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for forwarded, secure := range map[string]bool{"https": true, "http": false, "https, http": false, "http, HTTPS": true} {
		for peer, trusted := range map[string]bool{"192.0.2.1:1": true, "203.0.113.1:1": false} {
			w := ask(h, "GET", "/", func(r *http.Request) {
				r.RemoteAddr = peer
				r.Header.Set("X-Forwarded-Proto", forwarded)
			})
			if sent := w.Header().Get("Strict-Transport-Security") != ""; sent != (secure && trusted) {
				t.Errorf("%s from %s: HSTS %v", forwarded, peer, sent)
			}
		}
	}
	if ask(h, "GET", "https://example.com/", nil).Header().Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS over TLS")
	}
}

func TestOtherSitesPagesCannotAct(t *testing.T) {
	t.Parallel()
	protect, err := httpd.SameOrigin([]string{"https://widget.example"})
	if err != nil {
		t.Fatal(err)
	}
	h := protect(text("done"))
	tests := []struct {
		name, method string
		header       map[string]string
		want         int
	}{
		{"a program without a browser", "POST", nil, 200},
		{"own page with cookie", "POST", map[string]string{"Cookie": "s=1", "Sec-Fetch-Site": "same-origin"}, 200},
		{"other site with cookie", "POST", map[string]string{"Cookie": "s=1", "Sec-Fetch-Site": "cross-site"}, 403},
		{"other site of the same owner", "DELETE", map[string]string{"Cookie": "s=1", "Sec-Fetch-Site": "same-site"}, 403},
		{"old browser, other origin", "POST", map[string]string{"Cookie": "s=1", "Origin": "https://evil.example"}, 403},
		{"old browser, own origin", "POST", map[string]string{"Cookie": "s=1", "Origin": "http://example.com"}, 200},
		{"trusted origin", "POST", map[string]string{"Cookie": "s=1", "Origin": "https://widget.example", "Sec-Fetch-Site": "cross-site"}, 200},
		{"reading", "GET", map[string]string{"Cookie": "s=1", "Sec-Fetch-Site": "cross-site"}, 200},
		{"by token", "POST", map[string]string{"Authorization": "Bearer x", "Sec-Fetch-Site": "cross-site"}, 200},
		{"token and cookie", "POST", map[string]string{"Authorization": "Bearer x", "Cookie": "s=1", "Sec-Fetch-Site": "cross-site"}, 403},
		{"sign-in from another site", "POST", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
	}
	for _, test := range tests {
		w := ask(h, test.method, "/v1/sessions", func(r *http.Request) {
			for name, value := range test.header {
				r.Header.Set(name, value)
			}
		})
		if w.Code != test.want || test.want == 403 && w.Header().Get("Content-Type") != httpd.ProblemType {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
	}
	if _, err := httpd.SameOrigin([]string{"widget.example/path"}); err == nil {
		t.Error("a malformed origin was taken")
	}
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestLimiterGivesItsQuotaAndRefillsEvenly(t *testing.T) {
	t.Parallel()
	l := httpd.NewLimiter[string](httpd.Rate{Name: "holds", Quota: 5, Window: time.Minute}, 0)
	for i := range 5 {
		if d := l.Allow("a", noon); !d.OK || d.Remaining != 4-i || d.Reset != time.Duration(i+1)*12*time.Second {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	want := httpd.Decision{Reset: time.Minute, RetryAfter: 12 * time.Second}
	for range 3 { // being refused costs nothing
		if diff := cmp.Diff(want, l.Allow("a", noon)); diff != "" {
			t.Error(diff)
		}
	}
	if !l.Allow("b", noon).OK {
		t.Error("another key was refused")
	}
	if l.Allow("a", noon.Add(12*time.Second-1)).OK || !l.Allow("a", noon.Add(12*time.Second)).OK || l.Allow("a", noon.Add(12*time.Second)).OK {
		t.Error("the sixth token must come after 12 s, and only one")
	}
	// A clock that is set back empties the bucket, it does not lock the key out for an hour.
	if !l.Allow("c", noon.Add(time.Hour)).OK {
		t.Error("c refused")
	}
	if d := l.Allow("c", noon); d.OK || d.RetryAfter != 12*time.Second || !l.Allow("c", noon.Add(12*time.Second)).OK {
		t.Errorf("after the clock went back: %+v", d)
	}
}

func TestLimiterNeverGivesMoreThanQuotaAndRefill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := httpd.Rate{Name: "x", Quota: rapid.IntRange(1, 20).Draw(t, "quota"), Window: time.Duration(rapid.IntRange(1, 100).Draw(t, "window")) * time.Second}
		l := httpd.NewLimiter[int](rate, 0)
		now, given, first := noon, 0, noon
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			d := l.Allow(1, now)
			if d.OK {
				given++
			} else if again := l.Allow(1, now.Add(d.RetryAfter)); !again.OK {
				t.Fatalf("refused again after the wait it was told: %+v then %+v", d, again)
			} else {
				given++
				now = now.Add(d.RetryAfter)
			}
			refill := float64(now.Sub(first)) / float64(rate.Window/time.Duration(rate.Quota))
			if float64(given) > float64(rate.Quota)+refill+1e-6 {
				t.Fatalf("%d given in %v", given, now.Sub(first))
			}
		}
	})
}

func TestLimiterForgetsRatherThanGrows(t *testing.T) {
	t.Parallel()
	const keys = 6400
	l := httpd.NewLimiter[int](httpd.Rate{Name: "x", Quota: 2, Window: time.Minute}, keys)
	now := noon
	for i := range 20 * keys {
		if !l.Allow(i, now).OK {
			t.Fatalf("new key %d was refused", i)
		}
		if i == keys {
			now = now.Add(time.Second)
		}
	}
	if n := l.Keys(); n > keys || n < keys/2 {
		t.Errorf("%d keys remembered, at most %d allowed", n, keys)
	}
}

func TestLimiterIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	l := httpd.NewLimiter[string](httpd.Rate{Name: "x", Quota: 100, Window: time.Hour}, 0)
	var mu sync.Mutex
	given := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if l.Allow("a", noon).OK {
					mu.Lock()
					given++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if given != 100 {
		t.Errorf("%d given, want 100", given)
	}
}

func TestRateLimitIsToldInTheFields(t *testing.T) {
	t.Parallel()
	l := httpd.NewLimiter[netip.Addr](httpd.Rate{Name: "address", Quota: 2, Window: time.Minute}, 0)
	h := httpd.Chain(text("ok"), tracked, l.Limit(httpd.ByAddress(false)))
	from := func(addr string) *httptest.ResponseRecorder {
		return ask(h, "GET", "/", func(r *http.Request) { r.RemoteAddr = addr })
	}
	w := from("203.0.113.1:1")
	if diff := cmp.Diff([]string{`"address";q=2;w=60`}, w.Header()["Ratelimit-Policy"]); diff != "" || w.Header().Get("RateLimit") != `"address";r=1;t=30` {
		t.Errorf("%v %s", w.Header(), diff)
	}
	from("203.0.113.1:2")
	w = from("203.0.113.1:3")
	if w.Code != 429 || w.Header().Get("Retry-After") != "30" || w.Header().Get("RateLimit") != `"address";r=0;t=60` || !strings.Contains(w.Body.String(), "too-many-requests") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	// Neighbours in a /64 are one customer, loopback is nobody.
	for i := range 5 {
		want := 200
		if i >= 2 {
			want = 429
		}
		if w := from(fmt.Sprintf("[2001:db8:1:2::%d]:1", i)); w.Code != want {
			t.Errorf("IPv6 neighbour %d: %d", i, w.Code)
		}
		if w := from("127.0.0.1:1"); w.Code != 200 || w.Header().Get("RateLimit") != "" {
			t.Errorf("loopback %d: %d", i, w.Code)
		}
	}
}

func TestUnknownAddressesAndMethodsAreProblems(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/events/{event}", text("event"))
	mux.HandleFunc("GET /own", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "own words", http.StatusNotFound) })
	h := tracked(httpd.Routes(mux))
	tests := []struct {
		method, path string
		status       int
		kind, body   string
	}{
		{"GET", "/v1/events/x", 200, "", "event"},
		{"GET", "/nowhere", 404, "application/problem+json", `"code":"not-found"`},
		{"POST", "/v1/events/x", 405, "application/problem+json", `"detail":"Allowed: GET, HEAD."`},
		{"GET", "/own", 404, "text/plain; charset=utf-8", "own words\n"},
	}
	for _, test := range tests {
		w := ask(h, test.method, test.path, nil)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || test.kind != "" && w.Header().Get("Content-Type") != test.kind {
			t.Errorf("%s %s: %d %v %s", test.method, test.path, w.Code, w.Header(), w.Body)
		}
		if test.status == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("Allow: %q", w.Header().Get("Allow"))
		}
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := httpd.NewLimiter[netip.Addr](httpd.Rate{Name: "x", Quota: 1 << 30, Window: 100 * time.Hour}, 0)
	addr := netip.MustParseAddr("203.0.113.1")
	b.ReportAllocs()
	for b.Loop() {
		l.Allow(addr, noon)
	}
}
