package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	checkTimeout = 2 * time.Second // for all checks together
	checkKept    = 1 * time.Second // an answer is reused, so that asking often is no load on what is checked
)

// Check is one thing that must work before requests are sent here.
type Check struct {
	Name string
	// Check gives the reason when it does not work. The text is public on a shared listener: no addresses, no secrets.
	Check func(ctx context.Context) error
}

// readiness answers /readyz.
type readiness struct {
	checks   []Check
	draining func() bool

	mu   sync.Mutex
	at   time.Time
	last readyPage
}

type readyPage struct {
	Ready    bool         `json:"ready"`
	Draining bool         `json:"draining"`
	Checks   []checkState `json:"checks"`
}

type checkState struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

func (h *readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := h.look(r.Context())
	if page.Draining = h.draining(); page.Draining {
		page.Ready = false
	}
	status := http.StatusOK
	if !page.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, page)
}

func (h *readiness) look(ctx context.Context) readyPage {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); h.at.IsZero() || now.Sub(h.at) >= checkKept {
		// The client's hanging up must not become an answer that others are given.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		h.last = readyPage{Ready: true, Checks: make([]checkState, len(h.checks))}
		var all sync.WaitGroup
		for i, c := range h.checks {
			all.Go(func() {
				state := checkState{Name: c.Name, OK: true}
				if err := c.Check(ctx); err != nil {
					state.OK, state.Reason = false, err.Error()
				}
				h.last.Checks[i] = state
			})
		}
		all.Wait()
		for _, state := range h.last.Checks {
			h.last.Ready = h.last.Ready && state.OK
		}
		h.at = time.Now()
	}
	return h.last
}

// alive answers /livez: a process that can answer is alive, whatever its database does. Restarting it would not help.
func alive(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only types of this package come here
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone
}
