package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// C-63: whatever comes as a hold request, the answer is never a 5xx, and what is refused holds nothing.
func FuzzHoldRequest(f *testing.F) {
	for _, seed := range []string{
		`{"seats":["F5","F6"]}`, `{"pool":"STANDING","quantity":2}`, `{"pool":"ECONOMY","seats":["12A"]}`, `{"best":{"quantity":2,"section":"Stalls"}}`, `{}`, `null`, `[]`, ``,
		`{"seats":["F5"],"replaces":"hld_aaaa"}`, `{"seats":[null]}`, `{"best":{"quantity":-1}}`, `{"quantity":1e9,"pool":"ECONOMY"}`, "{\"seats\":[\"\xff\"]}",
		`{"seats":["F5"],"seats":["F6"]}`, `{"best":{"quantity":1,"wheelchair":true,"band":"Premium"}}`, `{"seats":[]}`, `{"pool":"STANDING","quantity":0}`,
	} {
		f.Add(seed)
	}
	w := newWorld(f)
	events := []string{w.cinema("cinema", plenty()), w.flight("flight", plenty()), w.festival("festival", 1_000_000, plenty())}
	token := strings.TrimPrefix(w.token(), "Authorization: ")
	f.Fuzz(func(t *testing.T, body string) {
		w.t = t
		for _, event := range events {
			before := w.held(event)
			r := httptest.NewRequest(http.MethodPost, "/v1/events/"+event+"/holds", strings.NewReader(body))
			r.Header.Set("Authorization", token)
			r.Header.Set("Content-Type", "application/json")
			a := httptest.NewRecorder()
			w.api.ServeHTTP(a, r)
			switch {
			case a.Code == http.StatusCreated:
				// Given back, so that the next input finds the places free again.
				r := httptest.NewRequest(http.MethodDelete, a.Header().Get("Location"), nil)
				r.Header.Set("Authorization", token)
				done := httptest.NewRecorder()
				w.api.ServeHTTP(done, r)
				if done.Code != http.StatusNoContent {
					t.Fatalf("giving it back: %d %s", done.Code, done.Body)
				}
			case a.Code < 400 || a.Code >= 500:
				t.Fatalf("%q: %d %s", body, a.Code, a.Body)
			case a.Header().Get("Content-Type") != "application/problem+json" || !utf8.Valid(a.Body.Bytes()):
				t.Fatalf("%q: %v %s", body, a.Header(), a.Body)
			}
			if after := w.held(event); after != before {
				t.Fatalf("%q: %d, and %d places held instead of %d", body, a.Code, after, before)
			}
		}
	})
}
