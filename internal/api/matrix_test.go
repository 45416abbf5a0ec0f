package api

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/api/client"
)

// routes lists what is documented; TestEveryRouteIsDocumented proves that it is everything.
func (w *world) routes(t *testing.T, visit func(method, path string, op *huma.Operation)) {
	t.Helper()
	for path, item := range w.api.huma.OpenAPI().Paths {
		for _, method := range methods {
			if op := operationOf(item, method); op != nil {
				visit(method, path, op)
			}
		}
	}
}

// Somebody else's hold, booking, ticket or quote is 404 on every route that takes one, whoever asks; without a session it is 401.
func TestNobodyReachesWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.cinema("cinema", plenty())
	owner := w.guest()
	b := w.buy(owner, event, client.HoldRequest{Seats: []string{"A5"}})
	h, err := owner.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"B5"}})
	w.must(err)
	q, err := owner.QuoteCancellation(ctx, b.BookingID)
	w.must(err)
	fill := strings.NewReplacer("{hold}", h.HoldID, "{booking}", b.BookingID, "{ticket}", b.Tickets[0].TicketID, "{quote}", q.QuoteID)
	stranger := w.token()
	tried := 0
	w.routes(t, func(method, path string, op *huma.Operation) {
		if strings.HasPrefix(path, "/v1/admin/") || !strings.Contains(path, "{hold}") && !strings.Contains(path, "{booking}") {
			return
		}
		tried++
		body := ""
		if op.RequestBody != nil {
			body = examples[op.OperationID]
		}
		at := fill.Replace(path)
		if a := w.send(method, at, body, stranger, "Idempotency-Key: k"); a.status != 404 || a.field("code") != "not-found" {
			t.Errorf("%s %s of somebody else: %d %s", method, path, a.status, a.body)
		}
		if a := w.send(method, at, body, "Idempotency-Key: k"); a.status != 401 {
			t.Errorf("%s %s without a session: %d %s", method, path, a.status, a.body)
		}
		garbled := strings.NewReplacer(h.HoldID, "hld_x", b.BookingID, "bkg_x").Replace(at)
		if a := w.send(method, garbled, body, stranger, "Idempotency-Key: k"); a.status != 404 {
			t.Errorf("%s %s with a garbled id: %d %s", method, path, a.status, a.body)
		}
	})
	if tried < 9 {
		t.Errorf("only %d routes were tried", tried)
	}
	if seen, err := owner.Booking(ctx, b.BookingID); err != nil || seen.Status != "confirmed" {
		t.Errorf("afterwards the booking is %+v, %v", seen, err)
	}
	if seen, err := owner.Hold(ctx, h.HoldID); err != nil || seen.State != "held" {
		t.Errorf("afterwards the hold is %+v, %v", seen, err)
	}
}

// Staff calls need the admin key: no session and no other key will do.
func TestStaffCallsNeedTheAdminKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cinema("cinema", nil)
	session := w.token()
	tried := 0
	w.routes(t, func(method, path string, op *huma.Operation) {
		if !strings.HasPrefix(path, "/v1/admin/") {
			return
		}
		tried++
		at := strings.NewReplacer("{event}", "cinema", "{booking}", "bkg_x").Replace(path)
		for _, auth := range []string{"", session, "Authorization: Bearer ", "Authorization: Bearer " + adminKey + "x", "Authorization: Basic " + adminKey} {
			a := w.send(method, at, examples[op.OperationID], auth)
			if a.status != 401 || a.header.Get("Www-Authenticate") == "" {
				t.Errorf("%s %s with %.30q: %d %s", method, path, auth, a.status, a.body)
			}
		}
	})
	if tried < 13 {
		t.Errorf("only %d routes were tried", tried)
	}
}

// What is personal is in no cache, what is public has no cookie, and everything is told to be what it is.
func TestHeadersOfAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event := w.cinema("cinema", plenty())
	s, err := w.client.NewSession(context.Background())
	w.must(err)
	auth := "Authorization: Bearer " + s.Token
	b := w.buy(w.client.As(s), event, client.HoldRequest{Seats: []string{"A5"}})
	personal := map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "strict-origin-when-cross-origin",
	}
	with := func(more ...string) map[string]string {
		m := map[string]string{}
		for k, v := range personal {
			m[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		method, path, body string
		want               map[string]string
	}{
		"session":     {http.MethodPost, "/v1/sessions", "", with("Content-Type", "application/json")},
		"hold":        {http.MethodPost, "/v1/events/cinema/holds", `{"seats":["B5"]}`, with("Content-Type", "application/json", "Ratelimit-Policy", `"holds";q=10000;w=60`)},
		"lost place":  {http.MethodPost, "/v1/events/cinema/holds", `{"seats":["A5"]}`, with("Content-Type", "application/problem+json")},
		"bad hold":    {http.MethodPost, "/v1/events/cinema/holds", `{"seats":1}`, with("Content-Type", "application/problem+json")},
		"booking":     {http.MethodGet, "/v1/bookings/" + b.BookingID, "", with("Content-Type", "application/json")},
		"bookings":    {http.MethodGet, "/v1/bookings", "", with("Content-Type", "application/json")},
		"tickets":     {http.MethodGet, "/v1/bookings/" + b.BookingID + "/tickets", "", with("Content-Type", "application/json")},
		"picture":     {http.MethodGet, "/v1/bookings/" + b.BookingID + "/tickets/" + b.Tickets[0].TicketID + ".png", "", with("Content-Type", "image/png")},
		"nothing":     {http.MethodGet, "/v1/nothing", "", with("Content-Type", "application/problem+json")},
		"no method":   {http.MethodPut, "/v1/events/cinema", "{}", with("Content-Type", "application/problem+json", "Allow", "GET, HEAD")},
		"event":       {http.MethodGet, "/v1/events/cinema", "", map[string]string{"Cache-Control": "public, max-age=1, stale-while-revalidate=5", "Set-Cookie": ""}},
		"events":      {http.MethodGet, "/v1/events", "", map[string]string{"Cache-Control": "public, max-age=1", "Set-Cookie": ""}},
		"docs":        {http.MethodGet, "/docs", "", map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "public, max-age=60"}},
		"problems":    {http.MethodGet, "/problems/places-gone", "", map[string]string{"Content-Type": "application/json"}},
		"head of one": {http.MethodHead, "/v1/events/cinema/availability", "", map[string]string{"Content-Type": "application/json", "Cache-Control": "public, max-age=1"}},
	} {
		a := w.send(c.method, c.path, c.body, auth)
		got := map[string]string{}
		for field := range c.want {
			got[field] = strings.Join(a.header[field], " | ")
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %d (-want +got):\n%s", name, a.status, d)
		}
	}
}

// Whatever the program serves below /v1 is in the document, and complete: a summary, a tag that is explained, the errors that can come.
func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doc := w.send(http.MethodGet, "/openapi.json", "")
	var m struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string         `json:"operationId"`
			Summary     string         `json:"summary"`
			Tags        []string       `json:"tags"`
			Responses   map[string]any `json:"responses"`
			Parameters  []struct {
				Name string `json:"name"`
				In   string `json:"in"`
			} `json:"parameters"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(doc.body), &m); err != nil || m.OpenAPI != "3.1.0" {
		t.Fatalf("%v: version %q", err, m.OpenAPI)
	}
	ids := map[string]bool{}
	for path, item := range m.Paths {
		for method, op := range item {
			name := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s: id %q, summary %q, tags %v", name, op.OperationID, op.Summary, op.Tags)
			}
			ids[op.OperationID] = true
			if _, ok := op.Responses["503"]; !ok || len(op.Responses) < 2 {
				t.Errorf("%s has no errors: %v", name, op.Responses)
			}
			for part := range strings.SplitSeq(path, "/") {
				if name, ok := strings.CutPrefix(part, "{"); ok {
					name, _, _ = strings.Cut(name, "}")
					if !slices.ContainsFunc(op.Parameters, func(p struct {
						Name string `json:"name"`
						In   string `json:"in"`
					}) bool {
						return p.Name == name && p.In == "path"
					}) {
						t.Errorf("%s does not describe {%s}", path, name)
					}
				}
			}
		}
	}
	for _, want := range []string{ // SPEC 8, as far as it is due
		"post /v1/sessions", "get /v1/events", "get /v1/events/{event}", "get /v1/events/{event}/layout", "get /v1/layouts/{layout}/{version}", "get /v1/events/{event}/seats",
		"get /v1/events/{event}/availability", "get /v1/events/{event}/availability/stream", "post /v1/events/{event}/holds", "get /v1/holds/{hold}", "delete /v1/holds/{hold}",
		"post /v1/holds/{hold}/extension", "post /v1/holds/{hold}/checkout", "post /v1/payments/{provider}/callback", "get /v1/bookings", "get /v1/bookings/{booking}",
		"get /v1/bookings/{booking}/tickets", "get /v1/bookings/{booking}/tickets/{ticket}.png", "post /v1/bookings/{booking}/cancellation",
		"put /v1/bookings/{booking}/cancellation/{quote}", "post /v1/simulator/payments/{payment}", "get /v1/simulator/payments/{payment}", "post /v1/admin/layouts",
		"post /v1/admin/events", "get /v1/admin/events/{event}", "patch /v1/admin/events/{event}", "post /v1/admin/events/{event}/pause", "post /v1/admin/events/{event}/resume",
		"post /v1/admin/events/{event}/blocks", "delete /v1/admin/events/{event}/blocks", "get /v1/admin/bookings", "get /v1/admin/bookings/{booking}",
		"post /v1/admin/bookings/{booking}/refund", "get /v1/admin/events/{event}/audit", "get /v1/admin/events/{event}/stats", "get /v1/keys/tickets",
	} {
		method, path, _ := strings.Cut(want, " ")
		if _, ok := m.Paths[path][method]; !ok {
			t.Errorf("%s is not documented", want)
		}
		if method == "get" && !strings.Contains(path, "{") {
			if a := w.send(http.MethodGet, path, "", asStaff); a.status == 404 {
				t.Errorf("%s is documented and not there", want)
			}
		}
	}
	for name, open := range map[string]bool{"Hold": true, "Booking": true, "Problem": true, "HoldRequest": false, "NewEvent": false, "Venue": false} {
		s, ok := m.Components.Schemas[name].(map[string]any)
		if !ok && name == "Problem" {
			s, ok = m.Components.Schemas["ProblemBody"].(map[string]any)
		}
		if closed := s["additionalProperties"] == false; !ok || closed == open {
			t.Errorf("the schema %s is open: %v, want %v", name, !closed, open)
		}
	}
	// Every reference leads somewhere.
	for _, ref := range strings.Split(doc.body, `"$ref":"#/components/schemas/`)[1:] {
		name := ref[:strings.IndexByte(ref, '"')]
		if m.Components.Schemas[name] == nil {
			t.Errorf("the schema %s is not there", name)
		}
	}
	if yaml := w.send(http.MethodGet, "/openapi.yaml", ""); yaml.status != 200 || !strings.Contains(yaml.body, "openapi: 3.1.0") {
		t.Errorf("as YAML: %d %.100s", yaml.status, yaml.body)
	}
}

func TestDocsPageShowsEveryOperationWithoutLoadingAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.send(http.MethodGet, "/docs", "")
	w.routes(t, func(_, path string, op *huma.Operation) {
		if !strings.Contains(page.body, `id="`+op.OperationID+`"`) || !strings.Contains(page.body, template.HTMLEscapeString(op.Summary)) {
			t.Errorf("the page lacks %s %s", op.OperationID, path)
		}
	})
	for _, bad := range []string{"<script", "src=", "https://unpkg", "@import", "url("} {
		if strings.Contains(page.body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	csp := page.header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the policy is %q", csp)
	}
	// Every link within the page leads to a place in it.
	for _, link := range strings.Split(page.body, `href="#`)[1:] {
		if id := link[:strings.IndexByte(link, '"')]; !strings.Contains(page.body, fmt.Sprintf("id=%q", id)) {
			t.Errorf("#%s leads nowhere", id)
		}
	}
}
