package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/money"
)

// nothing is a client that throws the answer away.
type nothing struct{ header http.Header }

func (n *nothing) Header() http.Header         { return n.header }
func (n *nothing) Write(b []byte) (int, error) { return len(b), nil }
func (n *nothing) WriteHeader(int)             {}

// The way from the mux to an engine that answers at once: what the API itself costs for a hold, granted or refused.
func BenchmarkHold(b *testing.B) {
	seats := []int32{104, 105}
	for name, answer := range map[string]func(booking.PlaceHold) (booking.Placed, error){
		"granted": func(p booking.PlaceHold) (booking.Placed, error) {
			return booking.Placed{Hold: booking.Hold{
				ID: booking.HoldID{Event: p.Event.ID, Bits: [16]byte{1, 2, 3}}, Seats: seats, Places: 2, Price: money.Money{Amount: 2400, Currency: "EUR"},
				Until: began, Ceiling: began,
			}}, nil
		},
		"refused": func(booking.PlaceHold) (booking.Placed, error) {
			return booking.Placed{}, &booking.GoneError{Seats: seats, Alternatives: [][]int32{{1, 2}, {3, 4}}}
		},
		"floor": nil, // a handler that reads the body and writes as many bytes
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, func(c *Config) {
				if answer != nil {
					c.Place = func(_ context.Context, p booking.PlaceHold) (booking.Placed, error) { return answer(p) }
				}
			})
			p := plenty()
			p.MaxHoldsPerMinute = number(catalog.MaxHoldsPerMinute)
			event := w.cinema("cinema", p)
			field := strings.TrimPrefix(w.token(), "Authorization: ")
			body := `{"seats":["F5","F6"]}`
			answerBytes := []byte(strings.Repeat("x", 300))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/events/"+event+"/holds", strings.NewReader(body))
				r.Header["Authorization"] = []string{field}
				r.Header["Content-Type"] = jsonField
				out := &nothing{http.Header{}}
				if answer == nil {
					_, _ = io.ReadAll(r.Body)
					_, _ = out.Write(answerBytes)
					continue
				}
				w.api.ServeHTTP(out, r)
			}
		})
	}
}

// What a poll of the availability costs.
func BenchmarkAvailability(b *testing.B) {
	w := newWorld(b)
	event := w.cinema("cinema", nil)
	r := httptest.NewRequest(http.MethodGet, "/v1/events/"+event+"/availability", nil)
	r.Header["Accept-Encoding"] = []string{"gzip"}
	b.ReportAllocs()
	for b.Loop() {
		w.api.ServeHTTP(&nothing{http.Header{}}, r)
	}
}
