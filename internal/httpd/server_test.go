package httpd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

// serving starts a server on free ports. stop tells it to stop, and gives what Serve said.
func serving(t *testing.T, cfg httpd.Config) (s *httpd.Server, stop func() error) {
	t.Helper()
	cfg.Addr, cfg.Log = "127.0.0.1:0", silent()
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 10 * time.Second
	}
	s, err := httpd.Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	said := make(chan error, 1)
	go func() { said <- s.Serve(ctx) }()
	var result error
	var stopped bool
	stop = func() error {
		cancel()
		if !stopped {
			result, stopped = <-said, true
		}
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return s, stop
}

// client keeps connections of its own, and closes them.
func client(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(body)
}

func TestHealthIsAnsweredBesideTheHandler(t *testing.T) {
	t.Parallel()
	for _, ops := range []string{"", "127.0.0.1:0"} {
		t.Run("ops on "+ops, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "holdfast_test_total", Help: "x"})
			registry.MustRegister(counter)
			counter.Add(7)
			var broken atomic.Bool
			s, _ := serving(t, httpd.Config{
				OpsAddr: ops, Handler: text("main"), Metrics: registry, Pprof: true,
				Checks: []httpd.Check{
					{"database", func(context.Context) error { return nil }},
					{"migrations", func(context.Context) error {
						if broken.Load() {
							return errors.New("3 are missing")
						}
						return nil
					}},
				},
			})
			c := client(t)
			base := "http://" + s.OpsAddr()
			if status, body := get(t, c, base+"/livez"); status != 200 || body != "{\"alive\":true}\n" {
				t.Errorf("livez: %d %s", status, body)
			}
			if status, _ := get(t, c, base+"/healthz"); status != 200 {
				t.Errorf("healthz: %d", status)
			}
			if status, body := get(t, c, base+"/metrics"); status != 200 || !strings.Contains(body, "holdfast_test_total 7") {
				t.Errorf("metrics: %d %s", status, body)
			}
			want := `{"ready":true,"draining":false,"checks":[{"name":"database","ok":true},{"name":"migrations","ok":true}]}` + "\n"
			if status, body := get(t, c, base+"/readyz"); status != 200 || body != want {
				t.Errorf("readyz: %d %s", status, body)
			}
			_, onMain := get(t, c, "http://"+s.Addr()+"/readyz")
			_, profiles := get(t, c, base+"/debug/pprof/cmdline")
			switch ops {
			case "":
				if onMain != want || profiles != "main" {
					t.Errorf("shared: readyz %s, profiles %s", onMain, profiles)
				}
			default:
				if onMain != "main" || profiles == "main" || s.Addr() == s.OpsAddr() {
					t.Errorf("apart: readyz on main %s, profiles %s", onMain, profiles)
				}
			}
		})
	}
}

func TestReadinessNamesTheReason(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s, _ := serving(t, httpd.Config{Handler: text("main"), Checks: []httpd.Check{
		{"database", func(context.Context) error { return nil }},
		{"migrations", func(context.Context) error { asked.Add(1); return errors.New("3 are missing") }},
	}})
	c := client(t)
	want := `{"ready":false,"draining":false,"checks":[{"name":"database","ok":true},{"name":"migrations","ok":false,"reason":"3 are missing"}]}` + "\n"
	for range 50 {
		if status, body := get(t, c, "http://"+s.Addr()+"/readyz"); status != 503 || body != want {
			t.Fatalf("%d %s", status, body)
		}
	}
	// A slow machine may need more than a second for 50 requests.
	if n := asked.Load(); n > 10 {
		t.Errorf("the check ran %d times: asking for readiness must be no load", n)
	}
}

// C-59
func TestStopAnswersWhatItAcceptedAndEndsStreams(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	inFlight := httpd.NewInFlight(2)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-finish
		if r.Context().Err() != nil {
			t.Error("the context of an accepted request ended")
		}
		_, _ = io.WriteString(w, "booked")
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		stream, err := httpd.NewStream(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		if inFlight.Now() != 0 {
			t.Errorf("a stream counts as %d requests", inFlight.Now())
		}
		_, _ = io.WriteString(stream, "hello\n")
		select {
		case <-stream.Draining():
			_, _ = io.WriteString(stream, "bye\n")
		case <-r.Context().Done():
			t.Error("the stream was cut instead of told")
		}
	})
	const drain = time.Second // enough for two requests on a busy machine
	s, stop := serving(t, httpd.Config{Handler: httpd.Chain(httpd.Routes(mux), tracked, inFlight.Limit), DrainDelay: drain})
	base := "http://" + s.Addr()
	c := client(t)

	res, err := c.Get(base + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "hello\n" {
		t.Fatal(line, err)
	}
	slow := make(chan string, 1)
	go func() {
		_, body := get(t, c, base+"/slow")
		slow <- body
	}()
	<-entered

	stopped := make(chan error, 1)
	started := time.Now()
	go func() { stopped <- stop() }()
	// While it drains it says so, still takes requests, and asks each client to come back by a new connection.
	other := client(t)
	for {
		res, err := other.Get(base + "/readyz")
		if err != nil {
			t.Fatal("the listener closed before /readyz failed: ", err)
		}
		var page struct{ Draining bool }
		err = json.NewDecoder(res.Body).Decode(&page)
		if err != nil {
			t.Error(err)
		}
		_ = res.Body.Close()
		if page.Draining {
			if res.StatusCode != 503 {
				t.Errorf("draining, but ready: %d", res.StatusCode)
			}
			break
		}
	}
	res2, err := other.Get(base + "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	_ = res2.Body.Close()
	if !res2.Close || res2.StatusCode != 404 {
		t.Errorf("while draining: status %d, connection is closed: %v", res2.StatusCode, res2.Close)
	}

	if line, err := lines.ReadString('\n'); line != "bye\n" {
		t.Error(line, err)
	}
	if took := time.Since(started); took < drain {
		t.Errorf("streams were told after %v, before the delay of %v was over", took, drain)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the listener is open after streams were told")
	}
	select {
	case err := <-stopped:
		t.Errorf("stopped with a request unanswered: %v", err)
	default:
	}
	close(finish)
	if body := <-slow; body != "booked" {
		t.Errorf("accepted request got %q", body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	s, stop := serving(t, httpd.Config{StopTimeout: 10 * time.Millisecond, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})})
	c := client(t)
	failed := make(chan error, 1)
	go func() {
		res, err := c.Get("http://" + s.Addr())
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	<-entered
	if err := stop(); !errors.Is(err, httpd.ErrStopForced) {
		t.Errorf("Serve said %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

func TestListenSaysWhenAnAddressIsTaken(t *testing.T) {
	t.Parallel()
	s, _ := serving(t, httpd.Config{Handler: text("")})
	for _, cfg := range []httpd.Config{{Addr: s.Addr()}, {Addr: "127.0.0.1:0", OpsAddr: s.Addr()}} {
		cfg.Log, cfg.Handler = silent(), text("")
		if _, err := httpd.Listen(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "listen") {
			t.Errorf("%v", err)
		}
	}
	unused, err := httpd.Listen(t.Context(), httpd.Config{Addr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", Handler: text(""), Log: silent()})
	if err != nil {
		t.Fatal(err)
	}
	if err := unused.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", unused.Addr()); err == nil {
		t.Error("still listening after Close")
	}
}

func TestHeadersOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := serving(t, httpd.Config{Handler: text("")})
	c := client(t)
	got := map[int]int{}
	for _, size := range []int{httpd.MaxHeaderBytes / 2, 2 * httpd.MaxHeaderBytes} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Padding", strings.Repeat("x", size))
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		got[size] = res.StatusCode
	}
	want := map[int]int{httpd.MaxHeaderBytes / 2: 200, 2 * httpd.MaxHeaderBytes: 431}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	t.Parallel()
	s, _ := serving(t, httpd.Config{Handler: text("ok"), MaxConnections: 2})
	for range 2 {
		get(t, client(t), "http://"+s.Addr())
	}
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	res, err := client(t).Get("http://" + s.Addr())
	if err == nil {
		_ = res.Body.Close()
		t.Errorf("the third connection was served: %d", res.StatusCode)
	}
}

func TestTLSIsServedAndTold(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // for its certificate
	defer certified.Close()
	s, _ := serving(t, httpd.Config{Handler: httpd.SecurityHeaders(text("ok")), TLS: &tls.Config{Certificates: certified.TLS.Certificates}})
	c := certified.Client()
	defer c.CloseIdleConnections()
	res, err := c.Get("https://" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}
