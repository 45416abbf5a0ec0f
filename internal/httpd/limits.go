package httpd

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Limits of requests.
const (
	MaxBody       = 64 << 10 // bytes of a request's body, unless its route takes more
	MaxLayoutBody = 8 << 20  // bytes of a layout
	MaxInFlight   = 4096     // requests being worked on
	BusyWait      = 1 * time.Second
)

// BodyLimit refuses bodies over limit(r) bytes: at once when Content-Length says so, else as soon as too much was read, by an
// *http.MaxBytesError that the Table knows.
func BodyLimit(limit func(r *http.Request) int64) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Body == nil || r.Body == http.NoBody {
				next.ServeHTTP(w, r)
				return
			}
			most := limit(r)
			if r.ContentLength > most {
				// What is on its way is not read: the connection cannot be used again.
				w.Header().Set("Connection", "close")
				WriteProblem(w, r, tooLarge(most))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
			next.ServeHTTP(w, r)
		})
	}
}

// InFlight bounds the requests that are being worked on at once. Work that cannot be finished in time is refused before it costs
// anything, so that throughput does not fall when more is asked than can be done.
type InFlight struct {
	most    int64
	now     atomic.Int64
	refused atomic.Int64
}

// NewInFlight makes one; most is the number of requests.
func NewInFlight(most int) *InFlight { return &InFlight{most: int64(most)} }

// Now is the number of requests being worked on; streams are not among them.
func (l *InFlight) Now() int64 { return l.now.Load() }

// Refused counts the requests that were one too many, since the start.
func (l *InFlight) Refused() int64 { return l.refused.Load() }

// Limit is the middleware: one too many is refused as busy.
func (l *InFlight) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.now.Add(1) > l.most {
			l.now.Add(-1)
			l.refused.Add(1)
			p := Busy.Problem("")
			p.RetryAfter = BusyWait
			WriteProblem(w, r, p)
			return
		}
		var left atomic.Bool
		leave := func() {
			if left.CompareAndSwap(false, true) {
				l.now.Add(-1)
			}
		}
		defer leave()
		RequestOf(r.Context()).slot = leave
		next.ServeHTTP(w, r)
	})
}
