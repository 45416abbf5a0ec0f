package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/holdfast-project/holdfast/api/client"
	"github.com/holdfast-project/holdfast/internal/httpd"
)

func TestSessionIsATokenAndACookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.send(http.MethodPost, "/v1/sessions", "")
	if a.status != 201 || a.field("customerId") == nil || a.field("token") == nil || a.field("expiresAt") != "2026-05-31T12:00:00Z" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"holdfast_session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie lacks %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("over plain HTTP a secure cookie would be lost: %s", cookie)
	}
	name, _, _ := strings.Cut(cookie, ";")
	if b := w.send(http.MethodGet, "/v1/bookings", "", "Cookie: "+name); b.status != 200 {
		t.Errorf("with the cookie: %d %s", b.status, b.body)
	}
	// A token that is no good is not overruled by a cookie that is.
	if b := w.send(http.MethodGet, "/v1/bookings", "", "Cookie: "+name, "Authorization: Bearer nonsense"); b.status != 401 {
		t.Errorf("with a bad token: %d", b.status)
	}
	w.pass(SessionTTL + time.Second)
	b := w.send(http.MethodGet, "/v1/bookings", "", "Cookie: "+name)
	if b.status != 401 || !strings.Contains(b.body, "POST /v1/sessions") || b.header.Get("Www-Authenticate") == "" {
		t.Errorf("after its time: %d %s", b.status, b.body)
	}
}

func TestSessionCookieInsistsOnTLSWhereThereIsSome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Secure = func() bool { return true } })
	cookie := w.send(http.MethodPost, "/v1/sessions", "").header.Get("Set-Cookie")
	if !strings.HasPrefix(cookie, "__Host-holdfast_session=") || !strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie is %s", cookie)
	}
	plain := strings.TrimPrefix(cookie, "__Host-")
	name, _, _ := strings.Cut(plain, ";")
	if a := w.send(http.MethodGet, "/v1/bookings", "", "Cookie: "+name); a.status != 401 {
		t.Errorf("a cookie that any host may set was taken: %d", a.status)
	}
}

func TestSearchPagesThroughWhatFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	for i := range 5 {
		w.make(client.NewEvent{
			Kind: "concert", Slug: fmt.Sprintf("gig-%d", i), Title: fmt.Sprintf("Gig number%d", i), StartsAt: began.Add(time.Duration(i+1) * 24 * time.Hour),
			Pools: []client.NewPool{{Pool: "STANDING", Capacity: 10, Price: 100}},
		})
	}
	w.flight("flight", nil)
	var seen []string
	q := client.SearchQuery{Kind: "concert", Limit: 2}
	for range 10 {
		page, err := w.client.Search(ctx, q)
		w.must(err)
		for _, e := range page.Items {
			seen = append(seen, e.Slug)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "gig-0 gig-1 gig-2 gig-3 gig-4" {
		t.Errorf("the pages have %s", got)
	}
	for name, c := range map[string]struct {
		q    client.SearchQuery
		want string
	}{
		"text":    {client.SearchQuery{Text: "number3"}, "gig-3"},
		"day":     {client.SearchQuery{Date: "2026-05-02", Kind: "concert"}, "gig-0"},
		"days":    {client.SearchQuery{DateFrom: "2026-05-05", DateTo: "2026-05-05"}, "gig-3"},
		"route":   {client.SearchQuery{From: "sgn", To: "HAN"}, "flight"},
		"nothing": {client.SearchQuery{From: "HAN", To: "SGN"}, ""},
	} {
		page, err := w.client.Search(ctx, c.q)
		w.must(err)
		got := ""
		for _, e := range page.Items {
			got += e.Slug
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	a := w.send(http.MethodGet, "/v1/events?kind=concert&limit=2", "")
	link := a.header.Get("Link")
	if !strings.HasSuffix(link, `rel="next"`) || a.header.Get("Cache-Control") != "public, max-age=1" || len(a.header["Set-Cookie"]) > 0 {
		t.Errorf("Link %q, Cache-Control %q", link, a.header.Get("Cache-Control"))
	}
	next := strings.TrimPrefix(link[:strings.IndexByte(link, '>')], "<")
	if b := w.send(http.MethodGet, next, ""); b.status != 200 || !strings.Contains(b.body, "gig-2") {
		t.Errorf("following the link: %d %s", b.status, b.body)
	}
	if b := w.send(http.MethodGet, strings.Replace(next, "concert", "cinema", 1), ""); b.status != 422 || !strings.Contains(b.body, `"cursor"`) {
		t.Errorf("the cursor with other filters: %d %s", b.status, b.body)
	}
	if last := w.send(http.MethodGet, "/v1/events?kind=flight", ""); !strings.Contains(last.body, `"next":null`) || last.header.Get("Link") != "" {
		t.Errorf("at the end: %s", last.body)
	}
}

func TestBadFiltersAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, name := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "kind=opera": "kind", "from=SG": "from", "to=H4N": "to", "date=2026-13-01": "date",
		"dateFrom=tomorrow": "dateFrom", "dateFrom=2026-05-02&dateTo=2026-05-01": "dateTo", "cursor=nonsense": "cursor", "q=%ff": "q", "dat=2026-05-01": "dat",
		"q=" + strings.Repeat("x", 201): "q",
	} {
		a := w.send(http.MethodGet, "/v1/events?"+query, "")
		if a.status != 422 || !strings.Contains(a.body, `"pointer":"`+name+`"`) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

func TestEventPageTellsWhatABuyerNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	id := w.flight("flight", nil)
	e, err := w.client.Event(ctx, "flight")
	w.must(err)
	if e.ID != id || e.Status != "onSale" || e.Available != 180 || e.Pools[0].Available != 183 || e.Policy.MaxPlacesPerHold != 9 || e.Policy.PaymentSeconds != 480 ||
		e.Origin != "SGN" || e.Layout == nil || e.Policy.Cancellation[0].RefundPercent != 100 {
		t.Errorf("got %+v", e)
	}
	a := w.send(http.MethodGet, "/v1/events/"+id, "")
	tag := a.header.Get("Etag")
	if !strings.HasPrefix(tag, `W/"`) || !strings.HasPrefix(a.header.Get("Cache-Control"), "public, max-age=1") {
		t.Errorf("ETag %s, Cache-Control %s", tag, a.header.Get("Cache-Control"))
	}
	if b := w.send(http.MethodGet, "/v1/events/"+id, "", "If-None-Match: "+tag); b.status != 304 || b.body != "" {
		t.Errorf("the same again: %d %q", b.status, b.body)
	}
	for _, name := range []string{"no-such", "evt_aaaaaaaaaaaaa", "%00", strings.Repeat("x", 500)} {
		if b := w.send(http.MethodGet, "/v1/events/"+name, ""); b.status != 404 || b.field("code") != "not-found" {
			t.Errorf("%s: %d %s", name, b.status, b.body)
		}
	}
}

func TestLayoutIsKeptForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cinema("cinema", nil)
	w.festival("festival", 10, nil)
	a := w.send(http.MethodGet, "/v1/events/cinema/layout", "")
	at := a.header.Get("Location")
	if a.status != 302 || !strings.HasPrefix(at, "/v1/layouts/cinema-hall/") || a.field("url") != at {
		t.Fatalf("%d to %q: %s", a.status, at, a.body)
	}
	plain := w.send(http.MethodGet, at, "")
	if plain.status != 200 || plain.field("name") != "Cinema hall" || plain.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
		t.Fatalf("%d %v: %s", plain.status, plain.header, plain.body)
	}
	for coding, read := range readers {
		b := w.send(http.MethodGet, at, "", "Accept-Encoding: "+coding)
		if got := read(t, b.body); got != plain.body || b.header.Get("Content-Encoding") != coding || b.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v, %d bytes, want %d", coding, b.header, len(got), len(plain.body))
		}
		if b.header.Get("Etag") == plain.header.Get("Etag") {
			t.Errorf("%s has the strong tag of other bytes", coding)
		}
		if c := w.send(http.MethodGet, at, "", "Accept-Encoding: "+coding, "If-None-Match: "+b.header.Get("Etag")); c.status != 304 {
			t.Errorf("%s again: %d", coding, c.status)
		}
	}
	for _, path := range []string{"/v1/events/festival/layout", strings.TrimSuffix(at, "1") + "2", strings.TrimSuffix(at, "1") + "01", "/v1/layouts/cinema/1", "/v1/layouts/x/one"} {
		if b := w.send(http.MethodGet, path, ""); b.status != 404 {
			t.Errorf("%s: %d", path, b.status)
		}
	}
}

var readers = map[string]func(t *testing.T, body string) string{
	"gzip": func(t *testing.T, body string) string {
		t.Helper()
		r, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return all(t, r)
	},
	"br": func(t *testing.T, body string) string {
		t.Helper()
		return all(t, brotli.NewReader(strings.NewReader(body)))
	},
}

func all(t *testing.T, r io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCodingIsWhatTheClientTakes(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]coding{
		"": asIs, "gzip": zipped, "br": brotlied, "gzip, deflate, br": brotlied, "gzip;q=0.5, br;q=0": zipped, "gzip;q=0": asIs, "identity": asIs, "gzip; q=1.0": zipped,
		"GZIP": asIs, "*": asIs, "gzip;q=x": asIs,
	} {
		if got := accepted(&http.Request{Header: http.Header{"Accept-Encoding": {field}}}); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

func TestAvailabilityShowsEveryChangeAndIsCheapOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	w.cinema("cinema", plenty())
	a, fresh, err := w.client.Availability(ctx, "cinema", "")
	if err != nil || !fresh {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, fresh, err := w.client.Availability(ctx, "cinema", a.ETag); err != nil || fresh {
		t.Errorf("without a change: fresh %v, %v", fresh, err)
	}
	me := w.guest()
	h, err := me.PlaceHold(ctx, "cinema", client.HoldRequest{Seats: []string{"A3", "A4"}})
	w.must(err)
	w.buy(w.guest(), "cinema", client.HoldRequest{Seats: []string{"A5"}})
	w.must(w.admin.Block(ctx, "cinema", []string{"A6"}))
	w.pass(time.Second)
	b, fresh, err := w.client.Availability(ctx, "cinema", a.ETag)
	if err != nil || !fresh || b.Version <= a.Version {
		t.Fatalf("after changes: %+v, %v", b, err)
	}
	states, err := b.States(200)
	w.must(err)
	want := []client.SeatState{0, 0, client.SeatHeld, client.SeatHeld, client.SeatSold, client.SeatBlocked, 0}
	for i, s := range want {
		if states[i] != s {
			t.Errorf("seat %d is %d, want %d", i, states[i], s)
		}
	}
	list, err := w.client.Seats(ctx, "cinema")
	w.must(err)
	for i, s := range []string{"available", "available", "held", "held", "sold", "blocked", "available"} {
		if got := list.Seats[i]; got.Status != s || got.Seat != fmt.Sprintf("A%d", i+1) || got.Price != (client.Money{Amount: 1200, Currency: "EUR"}) || got.Row != "A" {
			t.Errorf("seat %d is %+v, want %s", i, got, s)
		}
	}
	if len(list.Seats) != 200 || list.Version != b.Version || list.Pools == nil {
		t.Errorf("%d seats of version %d", len(list.Seats), list.Version)
	}
	w.pass(time.Until(h.ExpiresAt) - time.Until(w.now()) + time.Second)
	if list, err = w.client.Seats(ctx, "cinema"); err != nil || list.Seats[2].Status != "available" {
		t.Errorf("after the hold's time: %+v, %v", list.Seats[2], err)
	}
	for _, path := range []string{"/v1/events/cinema/availability", "/v1/events/cinema/seats"} {
		plain := w.send(http.MethodGet, path, "")
		for coding, read := range readers {
			c := w.send(http.MethodGet, path, "", "Accept-Encoding: "+coding)
			got := c.header.Get("Content-Encoding")
			if got == "" || readers[got](t, c.body) != plain.body || read == nil {
				t.Errorf("%s as %s differs", path, coding)
			}
			if c.header.Get("Cache-Control") != "public, max-age=1" || c.header.Get("Vary") != "Accept-Encoding" || len(c.header["Set-Cookie"]) > 0 {
				t.Errorf("%s: %v", path, c.header)
			}
		}
		if c := w.send(http.MethodGet, path, "", "If-None-Match: "+plain.header.Get("Etag")); c.status != 304 || c.body != "" {
			t.Errorf("%s again: %d", path, c.status)
		}
	}
}

// listen reads a stream line by line.
func (w *world) listen(ctx context.Context, after string) (*bufio.Scanner, func()) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/events/cinema/availability/stream", nil)
	w.must(err)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("the stream: %d %v", res.StatusCode, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != "retry: 1000" {
		w.t.Fatalf("the stream begins with %q", lines.Text())
	}
	w.boards.Tick(w.now()) // what changed while nobody followed is told to who follows now
	return lines, func() { _ = res.Body.Close() }
}

// next gives the next event of a stream.
func next(t *testing.T, s *bufio.Scanner) (id, kind, data string) {
	t.Helper()
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			return id, kind, value
		}
	}
	t.Fatalf("the stream ended: %v", s.Err())
	return "", "", ""
}

func TestStreamTellsChangesAndResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.cinema("cinema", plenty())
	one, hangUp := w.listen(ctx, "")
	first, kind, data := next(t, one)
	if kind != "snapshot" || !strings.Contains(data, `"seats":"`) {
		t.Fatalf("begins with %s %s", kind, data)
	}
	hold := func(seat string) {
		_, err := w.guest().PlaceHold(ctx, "cinema", client.HoldRequest{Seats: []string{seat}})
		w.must(err)
		w.pass(time.Second)
		w.boards.Tick(w.now())
	}
	hold("A2")
	second, kind, data := next(t, one)
	if kind != "delta" || !strings.Contains(data, `"seats":[[1,1]]`) || !strings.Contains(data, `"from":`+first) {
		t.Errorf("goes on with %s %s", kind, data)
	}
	hangUp()
	hold("A3")
	two, hangUp := w.listen(ctx, second)
	defer hangUp()
	if _, kind, data := next(t, two); kind != "delta" || !strings.Contains(data, `"seats":[[2,1]]`) {
		t.Errorf("resumes with %s %s", kind, data)
	}
	other, hangUp := w.listen(ctx, "nonsense")
	defer hangUp()
	if _, kind, _ := next(t, other); kind != "snapshot" {
		t.Errorf("an unknown version begins with %s", kind)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Limits.Streams = 1 })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.cinema("cinema", nil)
	s, hangUp := w.listen(ctx, "")
	defer hangUp()
	next(t, s)
	if a := w.send(http.MethodGet, "/v1/events/cinema/availability/stream", ""); a.status != 503 || a.header.Get("Retry-After") != "1" {
		t.Errorf("one too many: %d %s", a.status, a.body)
	}
}

// DESIGN 10: streams end when the server drains, so that their clients come back to another one.
func TestStreamEndsWhenTheServerDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cinema("cinema", nil)
	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	server, err := httpd.Listen(ctx, httpd.Config{Addr: "127.0.0.1:0", Handler: w.api, Log: slog.New(slog.DiscardHandler), StopTimeout: time.Minute})
	w.must(err)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(ctx) }()
	w.url = "http://" + server.Addr()
	s, hangUp := w.listen(context.Background(), "")
	defer hangUp()
	next(t, s)
	drain()
	for s.Scan() {
		t.Logf("more: %s", s.Text())
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// What cannot be done now is a 503 that says when to come back; a callback is told again then.
func TestStoppedEngineIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cinema("cinema", nil)
	auth := w.token()
	w.api.Booking.Close()
	a := w.send(http.MethodPost, "/v1/events/cinema/holds", `{"seats":["A5"]}`, auth)
	if a.status != 503 || a.field("code") != "busy" || a.header.Get("Retry-After") == "" || a.field("retryable") != true {
		t.Errorf("a hold: %d %s", a.status, a.body)
	}
	if a := w.send(http.MethodGet, "/v1/events/cinema/availability", ""); a.status != 200 {
		t.Errorf("the map goes on: %d %s", a.status, a.body)
	}
}
