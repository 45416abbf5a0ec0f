package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// shop is a small server that keeps its promises or, when told to, breaks one: a bench that does not notice would be worth nothing.
type shop struct {
	mu      sync.Mutex
	holders map[string]int // by seat
	asked   int

	sellTwice  bool // each seat to two customers
	badAudit   bool
	forgetful  bool // says 201 and holds nothing
	overloaded bool // answers every tenth 503
}

const shopSeats = soldOutSeats

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	path := r.URL.Path
	switch {
	case path == "/v1/admin/layouts":
		answer(201, map[string]any{"layoutId": "lay", "version": 1, "seats": shopSeats})
	case path == "/v1/admin/events":
		answer(201, map[string]any{"id": "evt", "slug": "evt"})
	case strings.HasSuffix(path, "/audit"):
		if s.badAudit {
			answer(200, map[string]any{"ok": false, "violations": []map[string]string{{"rule": "one-owner", "detail": "seat 1 has two"}}})
			return
		}
		answer(200, map[string]any{"ok": true, "violations": []any{}})
	case strings.HasSuffix(path, "/stats"):
		s.mu.Lock()
		held := 0
		for _, n := range s.holders {
			if n > 0 {
				held++
			}
		}
		s.mu.Unlock()
		if s.forgetful {
			held--
		}
		answer(200, map[string]any{"total": map[string]int{"held": held}})
	case strings.HasSuffix(path, "/seats"):
		seats := make([]map[string]string, shopSeats)
		for i := range seats {
			seats[i] = map[string]string{"seat": fmt.Sprint("S", i), "row": fmt.Sprint(i / 20)}
		}
		answer(200, map[string]any{"version": 1, "seats": seats})
	case path == "/v1/sessions":
		answer(201, map[string]string{"token": "token", "customerId": "cus"})
	case strings.HasPrefix(path, FloorRefuse):
		answer(409, map[string]string{"code": "places-gone"})
	case path == FloorPath:
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/holds"):
		var ask struct{ Seats []string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.Header.Get("Authorization") != "Bearer token" {
			answer(422, nil)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		allowed := 1
		if s.sellTwice {
			allowed = 2
		}
		switch {
		case s.overloaded && s.asked%10 == 0:
			answer(503, map[string]string{"code": "busy"})
		case s.holders[ask.Seats[0]] < allowed:
			s.holders[ask.Seats[0]]++
			answer(201, map[string]string{"holdId": "hld"})
		default:
			answer(409, map[string]string{"code": "places-gone"})
		}
	default:
		http.NotFound(w, r)
	}
}

func runAgainst(t *testing.T, s *shop, name string) (*Report, error) {
	t.Helper()
	s.holders = map[string]int{}
	server := httptest.NewServer(s)
	defer server.Close()
	scenario, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return scenario.Run(t.Context(), Config{
		Target: server.URL, AdminKey: "key", Clients: 20, Rounds: 5, Seed: 1, Now: time.Now,
		Stadium: func(int) ([]byte, error) { return []byte("{}"), nil },
	})
}

// C-02
func TestLastSeatNoticesEveryBrokenPromise(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name   string
		shop   *shop
		broken string // "": none
	}{
		{"a good shop", &shop{}, ""},
		{"two winners", &shop{sellTwice: true}, "instead of one 201"},
		{"an audit that finds something", &shop{badAudit: true}, "one-owner"},
		{"a winner without a seat", &shop{forgetful: true}, "4 seats are held after 5 rounds"},
		{"answers that nobody expects", &shop{overloaded: true}, "503"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			r, err := runAgainst(t, x.shop, "lastseat")
			if err != nil {
				t.Fatal(err)
			}
			if r.OK != (x.broken == "") {
				t.Errorf("ok is %v: %q", r.OK, r.Failures)
			}
			if x.broken != "" && !slices.ContainsFunc(r.Failures, func(f string) bool { return strings.Contains(f, x.broken) }) {
				t.Errorf("%q is not among %q", x.broken, r.Failures)
			}
			var text strings.Builder
			if err := r.WriteText(&text); err != nil || strings.Contains(text.String(), "BROKEN") == r.OK || !strings.Contains(text.String(), "ratio") {
				t.Errorf("%v: a text that does not say it:\n%s", err, text.String())
			}
		})
	}
}

func TestAServerThatIsNotThereIsAnErrorAndNoReport(t *testing.T) {
	t.Parallel()
	s, err := Find("lastseat")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run(t.Context(), Config{Target: "http://127.0.0.1:1", Now: time.Now}); err == nil || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARunThatCannotBeMadeIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := Find("nothing"); !errors.Is(err, ErrScenario) {
		t.Error(err)
	}
	for name, cfg := range map[string]Config{
		"clients": {Clients: MaxClients + 1}, "rounds": {Rounds: -1}, "duration": {Duration: MaxDuration + 1}, "target": {Target: "ftp://x"},
	} {
		if err := Scenarios()[0].Check(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	flights, err := Find("flights")
	if err != nil {
		t.Fatal(err)
	}
	if err := flights.Check(Config{Target: "http://127.0.0.1:1"}); !errors.Is(err, ErrConfig) {
		t.Errorf("flights on one server: %v", err)
	}
}
