package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/api/client"
	"github.com/holdfast-project/holdfast/internal/venue"
)

func problem(t *testing.T, err error) *client.Problem {
	t.Helper()
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		t.Fatalf("the answer is %v, want a problem", err)
	}
	return p
}

// C-63, C-64: whatever is wrong with a request is a 4xx that names the field, and nothing is held.
func TestBadHoldRequestsNameTheFieldAndHoldNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event := w.cinema("cinema", plenty())
	other := w.flight("flight", plenty())
	auth := w.token()
	long := strings.Repeat("x", 81)
	for name, c := range map[string]struct {
		body    string
		status  int
		code    string
		pointer string // of the first error; empty: none
		event   string
		fields  []string
	}{
		"unknown seat":             {body: `{"seats":["F5","Z99"]}`, status: 422, code: "unknown-seat", pointer: "#/seats/1"},
		"seat of another event":    {body: `{"seats":["12A"]}`, status: 422, code: "unknown-seat", pointer: "#/seats/0"},
		"seat twice":               {body: `{"seats":["F5","F5"]}`, status: 422, code: "duplicate-seat", pointer: "#/seats/1"},
		"seat in another case":     {body: `{"seats":["f5"]}`, status: 422, code: "unknown-seat", pointer: "#/seats/0"},
		"no seats":                 {body: `{"seats":[]}`, status: 422, code: "nothing-asked", pointer: "#/seats"},
		"nine seats":               {body: `{"seats":["F1","F2","F3","F4","F5","F6","F7","F8","F9"]}`, status: 422, code: "too-many-places", pointer: "#/seats"},
		"a thousand seats":         {body: `{"seats":[` + strings.Repeat(`"F1",`, 999) + `"F1"]}`, status: 422, code: "validation", pointer: "#/seats"},
		"nothing":                  {body: `{}`, status: 422, code: "nothing-asked", pointer: "#"},
		"null":                     {body: `null`, status: 422, code: "validation", pointer: "#"},
		"a list":                   {body: `[]`, status: 422, code: "validation", pointer: "#"},
		"a number":                 {body: `1`, status: 422, code: "validation", pointer: "#"},
		"empty body":               {body: ``, status: 400, code: "malformed-body"},
		"no JSON":                  {body: `seats=F5`, status: 400, code: "malformed-body"},
		"half a JSON":              {body: `{"seats":["F5"`, status: 400, code: "malformed-body"},
		"more after the JSON":      {body: `{"seats":["F5"]}x`, status: 400, code: "malformed-body"},
		"two JSONs":                {body: `{"seats":["F5"]}{"seats":["F6"]}`, status: 400, code: "malformed-body"},
		"broken UTF-8":             {body: "{\"seats\":[\"F5\xff\"]}", status: 400, code: "malformed-body"},
		"byte order mark":          {body: "\ufeff" + `{"seats":["F5"]}`, status: 400, code: "malformed-body"},
		"unknown field":            {body: `{"seats":["F5"],"seat":"F6"}`, status: 422, code: "validation", pointer: "#/seat"},
		"field in another case":    {body: `{"Seats":["F5"]}`, status: 422, code: "validation", pointer: "#/Seats"},
		"seats as text":            {body: `{"seats":"F5"}`, status: 422, code: "validation", pointer: "#/seats"},
		"a seat as number":         {body: `{"seats":[5]}`, status: 422, code: "validation", pointer: "#/seats/0"},
		"pool as number":           {body: `{"pool":1,"quantity":1}`, status: 422, code: "validation", pointer: "#/pool"},
		"pool too long":            {body: `{"pool":"` + long + `","quantity":1}`, status: 422, code: "validation", pointer: "#/pool"},
		"unknown pool":             {body: `{"pool":"STANDING","quantity":1}`, status: 422, code: "unknown-pool", pointer: "#/pool"},
		"empty pool":               {body: `{"pool":"","quantity":1}`, status: 422, code: "unknown-pool", pointer: "#/pool"},
		"quantity without pool":    {body: `{"quantity":1}`, status: 422, code: "validation", pointer: "#/pool"},
		"pool without quantity":    {body: `{"pool":"ECONOMY"}`, status: 422, code: "nothing-asked", pointer: "#/quantity", event: other},
		"quantity 0":               {body: `{"pool":"ECONOMY","quantity":0}`, status: 422, code: "nothing-asked", pointer: "#/quantity", event: other},
		"quantity negative":        {body: `{"pool":"ECONOMY","quantity":-3}`, status: 422, code: "nothing-asked", pointer: "#/quantity", event: other},
		"quantity 10 of 9":         {body: `{"pool":"ECONOMY","quantity":10}`, status: 422, code: "too-many-places", pointer: "#/quantity", event: other},
		"quantity huge":            {body: `{"pool":"ECONOMY","quantity":9223372036854775808}`, status: 422, code: "validation", pointer: "#/quantity", event: other},
		"quantity very huge":       {body: `{"pool":"ECONOMY","quantity":1e400}`, status: 400, code: "malformed-body", event: other},
		"quantity a fraction":      {body: `{"pool":"ECONOMY","quantity":1.5}`, status: 422, code: "validation", pointer: "#/quantity", event: other},
		"quantity as text":         {body: `{"pool":"ECONOMY","quantity":"2"}`, status: 422, code: "validation", pointer: "#/quantity", event: other},
		"seats and quantity":       {body: `{"seats":["F5"],"quantity":1}`, status: 422, code: "validation", pointer: "#/quantity"},
		"seats of another pool":    {body: `{"seats":["12A"],"pool":"BUSINESS"}`, status: 422, code: "pool-mismatch", pointer: "#/pool", event: other},
		"best and seats":           {body: `{"best":{"quantity":1},"seats":["F5"]}`, status: 422, code: "validation", pointer: "#/best"},
		"best of nothing":          {body: `{"best":{}}`, status: 422, code: "validation", pointer: "#/best/quantity"},
		"best of 0":                {body: `{"best":{"quantity":0}}`, status: 422, code: "nothing-asked", pointer: "#/best/quantity"},
		"best of 9":                {body: `{"best":{"quantity":9}}`, status: 422, code: "too-many-places", pointer: "#/best/quantity"},
		"best, unknown field":      {body: `{"best":{"quantity":1,"row":"A"}}`, status: 422, code: "validation", pointer: "#/best/row"},
		"best in unknown section":  {body: `{"best":{"quantity":1,"section":"Moon"}}`, status: 422, code: "validation", pointer: "#/best/section"},
		"replaces no hold":         {body: `{"seats":["F5"],"replaces":"hld_x"}`, status: 404, code: "not-found", pointer: "#/replaces"},
		"text instead of JSON":     {body: `{"seats":["F5"]}`, status: 415, code: "unsupported-media-type", fields: []string{"Content-Type: text/plain"}},
		"form instead of JSON":     {body: `seats=F5`, status: 415, code: "unsupported-media-type", fields: []string{"Content-Type: application/x-www-form-urlencoded"}},
		"body over the limit":      {body: `{"seats":["` + strings.Repeat("F", 70_000) + `"]}`, status: 413, code: "body-too-large"},
		"key too long":             {body: `{"seats":["F5"]}`, status: 400, code: "idempotency-key-invalid", fields: []string{"Idempotency-Key: " + strings.Repeat("k", 256)}},
		"key with a space":         {body: `{"seats":["F5"]}`, status: 400, code: "idempotency-key-invalid", fields: []string{"Idempotency-Key: a b"}},
		"key with umlauts":         {body: `{"seats":["F5"]}`, status: 400, code: "idempotency-key-invalid", fields: []string{"Idempotency-Key: schlüssel"}},
		"no session":               {body: `{"seats":["F5"]}`, status: 401, code: "unauthorized", fields: []string{"Authorization"}},
		"token of nobody":          {body: `{"seats":["F5"]}`, status: 401, code: "unauthorized", fields: []string{"Authorization: Bearer nonsense"}},
		"admin key as a customer":  {body: `{"seats":["F5"]}`, status: 401, code: "unauthorized", fields: []string{"Authorization: Bearer " + adminKey}},
		"no such event":            {body: `{"seats":["F5"]}`, status: 404, code: "not-found", event: "no-such-event"},
		"event with strange name":  {body: `{"seats":["F5"]}`, status: 404, code: "not-found", event: "..%2f..%2fetc"},
		"deep nesting in the body": {body: strings.Repeat("[", 30_000), status: 400, code: "malformed-body"},
	} {
		at := c.event
		if at == "" {
			at = event
		}
		a := w.send(http.MethodPost, "/v1/events/"+at+"/holds", c.body, append([]string{auth}, c.fields...)...)
		if a.status != c.status || a.field("code") != c.code {
			t.Errorf("%s: %d %v, want %d %s: %s", name, a.status, a.field("code"), c.status, c.code, a.body)
			continue
		}
		if got := a.header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: the type is %q", name, got)
		}
		pointer := ""
		if list, ok := a.field("errors").([]any); ok && len(list) > 0 {
			pointer, _ = list[0].(map[string]any)["pointer"].(string)
		}
		if pointer != c.pointer {
			t.Errorf("%s: names %q, want %q: %s", name, pointer, c.pointer, a.body)
		}
		if a.field("instance") == nil || a.field("type") != "/problems/"+c.code {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if n := w.held(event) + w.held(other); n != 0 {
		t.Errorf("%d places are held after refused requests", n)
	}
}

func TestHoldIsPlacedInEveryForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cinema, flight, festival := w.cinema("cinema", plenty()), w.flight("flight", plenty()), w.festival("festival", 100, plenty())
	yes := true
	for name, c := range map[string]struct {
		event string
		ask   client.HoldRequest
		want  client.Hold
	}{
		"seats": {cinema, client.HoldRequest{Seats: []string{"F6", "F5"}}, client.Hold{
			EventID: cinema, Seats: []string{"F5", "F6"}, Pools: []client.PoolUnits{}, Price: client.Money{Amount: 2400, Currency: "EUR"},
		}},
		"units": {festival, client.HoldRequest{Pool: "STANDING", Quantity: 3}, client.Hold{
			EventID: festival, Seats: []string{}, Pools: []client.PoolUnits{{Pool: "STANDING", Quantity: 3}}, Price: client.Money{Amount: 16500, Currency: "EUR"},
		}},
		"seats of a pool": {flight, client.HoldRequest{Pool: "ECONOMY", Seats: []string{"12A", "12B"}}, client.Hold{
			EventID: flight, Seats: []string{"12A", "12B"}, Pools: []client.PoolUnits{{Pool: "ECONOMY", Quantity: 2}}, Price: client.Money{Amount: 19800, Currency: "EUR"},
		}},
		"best": {cinema, client.HoldRequest{Best: &client.Best{Quantity: 1, Band: "Premium"}}, client.Hold{
			EventID: cinema, Pools: []client.PoolUnits{}, Price: client.Money{Amount: 1500, Currency: "EUR"}, Together: &yes,
		}},
	} {
		me := w.guest()
		got, err := me.PlaceHold(context.Background(), c.event, c.ask)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.ask.Best != nil && len(got.Seats) == c.ask.Best.Quantity {
			c.want.Seats = got.Seats
		}
		c.want.HoldID, c.want.State = got.HoldID, "held"
		c.want.ExpiresAt, c.want.CeilingAt = got.ExpiresAt, got.CeilingAt
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if left := got.ExpiresAt.Sub(w.now()); left != 10*time.Minute && left != 5*time.Minute {
			t.Errorf("%s: it lives for %v", name, left)
		}
		seen, err := me.Hold(context.Background(), got.HoldID)
		got.Together = nil
		if d := cmp.Diff(got, seen); err != nil || d != "" {
			t.Errorf("%s: looking at it: %v (-placed +seen):\n%s", name, err, d)
		}
	}
}

func TestLostPlacesAreNamedWithAlternatives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	cinema, festival := w.cinema("cinema", plenty()), w.festival("festival", 3, plenty())
	one, two := w.guest(), w.guest()
	if _, err := one.PlaceHold(ctx, cinema, client.HoldRequest{Seats: []string{"F5", "F6"}}); err != nil {
		t.Fatal(err)
	}
	_, err := two.PlaceHold(ctx, cinema, client.HoldRequest{Seats: []string{"F6", "F7"}})
	p := problem(t, err)
	if p.Status != 409 || p.Code != client.CodePlacesGone || !cmp.Equal(p.Seats, []string{"F6"}) || len(p.Alternatives) == 0 || p.Type != "/problems/places-gone" {
		t.Fatalf("got %+v", p)
	}
	if _, err := two.PlaceHold(ctx, cinema, client.HoldRequest{Seats: p.Alternatives[0]}); err != nil {
		t.Errorf("the alternative %v: %v", p.Alternatives[0], err)
	}
	if _, err := one.PlaceHold(ctx, festival, client.HoldRequest{Pool: "STANDING", Quantity: 2}); err != nil {
		t.Fatal(err)
	}
	_, err = two.PlaceHold(ctx, festival, client.HoldRequest{Pool: "STANDING", Quantity: 2})
	if p := problem(t, err); p.Code != client.CodePlacesGone || !cmp.Equal(p.Pools, []string{"STANDING"}) || p.Seats != nil {
		t.Errorf("got %+v", p)
	}
	small := w.make(client.NewEvent{Kind: "cinema", Slug: "small", LayoutID: w.layout(venue.Cinema(1, 4)), Prices: map[string]int64{"Stalls": 1200}})
	_, err = two.PlaceHold(ctx, small, client.HoldRequest{Best: &client.Best{Quantity: 8, Wheelchair: true}})
	if p := problem(t, err); p.Code != client.CodePlacesGone || p.Detail == "" {
		t.Errorf("eight places of four: %+v", p)
	}
}

// C-26: a repeated request is answered as the first time; another one under the same key is refused.
func TestIdempotencyKeyRepeatsTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event, auth := w.cinema("cinema", plenty()), w.token()
	place := func(key, body string) answer {
		return w.send(http.MethodPost, "/v1/events/"+event+"/holds", body, auth, "Idempotency-Key: "+key)
	}
	first, again := place("k1", `{"seats":["F5"]}`), place("k1", `{"seats":["F5"]}`)
	if first.status != 201 || again.status != 201 || first.body != again.body {
		t.Fatalf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	if f, a := first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"); f != "" || a != "true" {
		t.Errorf("Idempotent-Replayed is %q, then %q", f, a)
	}
	if l := first.header.Get("Location"); l != "/v1/holds/"+first.field("holdId").(string) {
		t.Errorf("Location is %q", l)
	}
	if other := place("k1", `{"seats":["F6"]}`); other.status != 422 || other.field("code") != "idempotency-key-reused" {
		t.Errorf("another body: %d %s", other.status, other.body)
	}
	stranger := w.send(http.MethodPost, "/v1/events/"+event+"/holds", `{"seats":["F8"]}`, w.token(), "Idempotency-Key: k1")
	if stranger.status != 201 {
		t.Errorf("the same key of another customer: %d %s", stranger.status, stranger.body)
	}
	if n := w.held(event); n != 2 {
		t.Errorf("%d seats are held, want 2", n)
	}
}

// C-26: a hundred repetitions at once are one hold.
func TestRepetitionsAtOnceAreOneHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event, me := w.cinema("cinema", plenty()), w.guest()
	var all sync.WaitGroup
	ids := make([]string, 100)
	for i := range ids {
		all.Go(func() {
			h, err := me.PlaceHold(context.Background(), event, client.HoldRequest{Seats: []string{"F5"}, IdempotencyKey: "same"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = h.HoldID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two holds: %s and %s", ids[0], id)
		}
	}
	if n := w.held(event); n != 1 {
		t.Errorf("%d seats are held, want 1", n)
	}
}

func TestReplacingFreesTheOldPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event, me := w.cinema("cinema", plenty()), w.guest()
	old, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5", "F6"}})
	w.must(err)
	next, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F6", "F7"}, Replaces: old.HoldID})
	w.must(err)
	if next.CeilingAt != old.CeilingAt {
		t.Errorf("the ceiling moved from %v to %v", old.CeilingAt, next.CeilingAt)
	}
	if h, err := me.Hold(ctx, old.HoldID); err != nil || h.State != "released" {
		t.Errorf("the old hold is %+v, %v", h, err)
	}
	if _, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}}); err != nil {
		t.Errorf("the freed seat: %v", err)
	}
	_, err = w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F9"}, Replaces: next.HoldID})
	if p := problem(t, err); p.Status != 404 {
		t.Errorf("replacing somebody else's hold: %+v", p)
	}
}

func TestHoldLifeOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event, me := w.cinema("cinema", plenty()), w.guest()
	h, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	longer, err := me.Extend(ctx, h.HoldID)
	if err != nil || longer.ExpiresAt != h.ExpiresAt.Add(5*time.Minute) {
		t.Errorf("more time: until %v, %v", longer.ExpiresAt, err)
	}
	if _, err = me.Extend(ctx, h.HoldID); err != nil {
		t.Fatal(err)
	}
	_, err = me.Extend(ctx, h.HoldID)
	if p := problem(t, err); p.Code != client.CodeHoldAtCeiling {
		t.Errorf("beyond the ceiling: %+v", p)
	}
	// C-14: releasing again is no error, and frees nobody else's seat.
	w.must(me.Release(ctx, h.HoldID))
	other, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	w.must(me.Release(ctx, h.HoldID))
	_, err = w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	if p := problem(t, err); p.Code != client.CodePlacesGone {
		t.Errorf("the seat of %s: %+v", other.HoldID, p)
	}
	_, err = me.Extend(ctx, h.HoldID)
	if p := problem(t, err); p.Status != 410 || p.Code != client.CodeHoldEnded {
		t.Errorf("more time for a released hold: %+v", p)
	}
	w.pass(21 * time.Minute)
	_, err = me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "a@example.org", Name: "A"})
	if p := problem(t, err); p.Status != 410 {
		t.Errorf("checkout of an ended hold: %+v", p)
	}
	expired, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	if err != nil {
		t.Errorf("a seat whose hold is over: %v, %+v", err, expired)
	}
}

func TestSaleThatIsNotOpenIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	pools := []client.NewPool{{Pool: "STANDING", Capacity: 10}}
	opens := began.Add(90 * time.Minute)
	w.make(client.NewEvent{Kind: "concert", Slug: "later", Pools: pools, SaleOpensAt: opens})
	w.make(client.NewEvent{Kind: "concert", Slug: "over", Pools: pools, SaleOpensAt: began.Add(-2 * time.Hour), SaleClosesAt: began})
	w.make(client.NewEvent{Kind: "concert", Slug: "paused", Pools: pools})
	w.must(w.admin.Pause(ctx, "paused"))
	me := w.guest()
	for slug, code := range map[string]string{"later": client.CodeNotOnSale, "over": client.CodeSaleClosed, "paused": client.CodeSalePaused} {
		_, err := me.PlaceHold(ctx, slug, client.HoldRequest{Pool: "STANDING", Quantity: 1})
		p := problem(t, err)
		if p.Status != 403 || p.Code != code {
			t.Errorf("%s: %+v", slug, p)
		}
		if slug == "later" && !p.OpensAt.Equal(opens) {
			t.Errorf("opensAt is %v, want %v", p.OpensAt, opens)
		}
	}
	w.must(w.admin.Resume(ctx, "paused"))
	if _, err := me.PlaceHold(ctx, "paused", client.HoldRequest{Pool: "STANDING", Quantity: 1}); err != nil {
		t.Errorf("after going on: %v", err)
	}
	w.pass(90 * time.Minute)
	if _, err := me.PlaceHold(ctx, "later", client.HoldRequest{Pool: "STANDING", Quantity: 1}); err != nil {
		t.Errorf("at the opening: %v", err)
	}
}

func TestHoldsPerMinuteAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event := w.cinema("cinema", &client.PolicyPatch{MaxHoldsPerMinute: number(2), MaxPlacesPerCustomer: number(100)})
	w.buy(w.guest(), event, client.HoldRequest{Seats: []string{"J10"}})
	auth := w.token()
	place := func(body string) answer {
		return w.send(http.MethodPost, "/v1/events/"+event+"/holds", body, auth)
	}
	// Lost places are not counted as holds.
	for range 5 {
		a := place(`{"seats":["J10"]}`)
		if a.status != 409 || a.header.Get("Ratelimit") != `"holds";r=2;t=30` {
			t.Fatalf("a lost place: %d, RateLimit %q", a.status, a.header.Get("Ratelimit"))
		}
	}
	first, second, third := place(`{"seats":["A5"]}`), place(`{"seats":["B5"]}`), place(`{"seats":["C5"]}`)
	if first.status != 201 || second.status != 201 || third.status != 429 {
		t.Fatalf("got %d, %d, %d, want 201, 201, 429", first.status, second.status, third.status)
	}
	if got := first.header.Get("Ratelimit-Policy"); got != `"holds";q=2;w=60` {
		t.Errorf("RateLimit-Policy is %q", got)
	}
	if third.header.Get("Retry-After") != "30" || third.field("code") != "too-many-requests" || third.field("retryable") != true {
		t.Errorf("Retry-After %q: %s", third.header.Get("Retry-After"), third.body)
	}
	// Changing the choice has a limit of its own.
	swap := place(`{"seats":["D5"],"replaces":"` + second.field("holdId").(string) + `"}`)
	if swap.status != 201 || !strings.HasPrefix(swap.header.Get("Ratelimit"), `"replaces";r=59`) {
		t.Errorf("replacing: %d, RateLimit %q: %s", swap.status, swap.header.Get("Ratelimit"), swap.body)
	}
	w.pass(31 * time.Second)
	if a := place(`{"seats":["E5"]}`); a.status != 201 {
		t.Errorf("half a minute later: %d %s", a.status, a.body)
	}
	// Whoever hammers is stopped, although nothing is counted as a hold.
	for range attemptsPerHold * 2 {
		place(`{"seats":["J10"]}`)
	}
	if a := place(`{"seats":["J10"]}`); a.status != 429 || !strings.HasPrefix(a.header.Get("Ratelimit"), `"attempts"`) {
		t.Errorf("after too many attempts: %d, RateLimit %q", a.status, a.header.Get("Ratelimit"))
	}
}

func TestLimitersAreBounded(t *testing.T) {
	t.Parallel()
	var l rates
	for quota := 1; quota < 3*maxRates; quota++ {
		if got := l.of("x", quota); got == nil {
			t.Fatal("no limiter")
		}
	}
	n := 0
	l.byQuota.Range(func(any, any) bool { n++; return true })
	if n > maxRates+64 {
		t.Errorf("%d limiters", n)
	}
}

func TestCustomerLimitIsOverAllHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.cinema("cinema", &client.PolicyPatch{MaxPlacesPerHold: number(2), MaxPlacesPerCustomer: number(3), MaxHoldsPerMinute: number(100)})
	me := w.guest()
	_, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"A5", "A6"}})
	w.must(err)
	_, err = me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"B5", "B6"}})
	if p := problem(t, err); p.Status != 409 || p.Code != client.CodeCustomerLimit {
		t.Errorf("the fourth place: %+v", p)
	}
}

// SPEC 4: overbooked units have no seat, and a full pool is named even where seats look free.
func TestFullFareClassIsNamedAndItsSeatsAreNotForSale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.flight("flight", plenty())
	for range 20 {
		_, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Pool: "ECONOMY", Quantity: 9})
		w.must(err)
	}
	_, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Pool: "ECONOMY", Quantity: 3})
	w.must(err)
	_, err = w.guest().PlaceHold(ctx, event, client.HoldRequest{Pool: "ECONOMY", Seats: []string{"12A"}})
	if p := problem(t, err); !cmp.Equal(p.Pools, []string{"ECONOMY"}) {
		t.Errorf("got %+v", p)
	}
	w.pass(time.Second)
	seats, err := w.client.Seats(ctx, event)
	w.must(err)
	if seats.Seats[0].Status != "blocked" || seats.Pools[0].Available != 0 {
		t.Errorf("%+v with %d left", seats.Seats[0], seats.Pools[0].Available)
	}
}

// Media types are the same in any case.
func TestContentTypeInAnyCase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	event := w.cinema("cinema", plenty())
	for i, kind := range []string{"Application/JSON", "APPLICATION/JSON; Charset=UTF-8"} {
		body := fmt.Sprintf(`{"seats":["C%d"]}`, i+1)
		if a := w.send(http.MethodPost, "/v1/events/"+event+"/holds", body, w.token(), "Content-Type: "+kind); a.status != http.StatusCreated {
			t.Errorf("%s: %d %s", kind, a.status, a.body)
		}
	}
}
