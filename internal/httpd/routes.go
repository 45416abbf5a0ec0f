package httpd

import (
	"net/http"
	"strings"
)

// Routes answers a mux' own 404 and 405 as problems. It must wrap the mux directly.
func Routes(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(&routed{ResponseWriter: w, r: r}, r)
	})
}

// routed looks at the status when no pattern matched: a mux notes the pattern in the request before it calls a handler, so what
// it answers itself can be told from a handler's 404.
type routed struct {
	http.ResponseWriter
	r        *http.Request
	replaced bool
}

func (w *routed) WriteHeader(status int) {
	if w.r.Pattern == "" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		w.replaced = true
		p := NotFound.Problem("")
		if status == http.StatusMethodNotAllowed {
			p = MethodNotAllowed.Problem("Allowed: " + strings.Join(w.Header()["Allow"], ", ") + ".")
		}
		WriteProblem(w.ResponseWriter, w.r, p)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *routed) Write(b []byte) (int, error) {
	if w.replaced {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (w *routed) Unwrap() http.ResponseWriter { return w.ResponseWriter }
