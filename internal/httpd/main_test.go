package httpd_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-project/holdfast/internal/httpd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record collects log lines.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(httpd.LogHandler{Handler: slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})})
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// tracked is Track without anything optional.
func tracked(h http.Handler) http.Handler { return httpd.Track(httpd.Tracking{Log: silent()})(h) }

// ask sends a request through h; change may be nil.
func ask(h http.Handler, method, target string, change func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
}
