package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/api/client"
	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
	"github.com/holdfast-project/holdfast/internal/sqlite"
	"github.com/holdfast-project/holdfast/internal/ticket"
	"github.com/holdfast-project/holdfast/internal/venue"
)

const adminKey = "hfadmin_of-the-tests"

var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is the real program on a database of its own, with a clock that only moves when told.
type world struct {
	t       testing.TB
	api     *API
	db      *sqlite.DB
	catalog *catalog.Catalog
	boards  *board.Registry
	sim     *simulator.Simulator
	relay   *outbox.Relay
	url     string
	client  *client.Client
	admin   client.Admin
	offset  atomic.Int64
}

func (w *world) now() time.Time { return began.Add(time.Duration(w.offset.Load())) }

func (w *world) pass(d time.Duration) { w.offset.Add(int64(d)) }

type option func(*Config)

func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t}
	log := slog.New(slog.DiscardHandler)
	var err error
	w.db, err = sqlite.Open(ctx, t.TempDir(), sqlite.Options{Now: w.now, Relaxed: true})
	w.must(err)
	t.Cleanup(func() { w.must(w.db.Close()) })
	keys, err := identity.LoadKeyring(ctx, sqlite.NewKeys(w.db), w.now())
	w.must(err)
	w.catalog = catalog.New(sqlite.NewCatalog(w.db), w.now)
	store := sqlite.NewStore(w.db)
	var service *booking.Service
	w.boards = board.NewRegistry(board.Config{Now: w.now, Load: func(ctx context.Context, id int64) (board.Shape, board.News, error) {
		e, err := w.catalog.Event(ctx, catalog.EventID(id))
		if err != nil {
			return board.Shape{}, board.News{}, err
		}
		shape, err := service.Shape(ctx, e)
		if err != nil {
			return shape, board.News{}, err
		}
		news, err := store.Picture(ctx, e.ID)
		return shape, news, err
	}})
	w.sim, err = simulator.New(simulator.Config{
		Secrets: []payment.Secret{payment.NewSecret()}, Now: w.now, Logger: log,
		CallbackURL: func() string { return w.url + "/v1/payments/simulator/callback" },
		PayURL:      func(id string) string { return w.url + "/simulator/pay/" + id },
	})
	w.must(err)
	service, err = booking.New(booking.Config{
		Store: store, Catalog: w.catalog, Boards: w.boards, Providers: []payment.Provider{w.sim}, Derive: keys.Derive, Now: w.now, Logger: log,
		ReturnURL: func(id booking.BookingID) string { return w.url + "/v1/bookings/" + id.String() },
	})
	w.must(err)
	t.Cleanup(service.Close)
	tickets := sqlite.NewTickets(w.db)
	local := outbox.NewLocal()
	local.Subscribe(outbox.TopicBookings, "tickets", (&ticket.Issuer{Store: tickets, Key: keys.TicketSigner, Now: w.now}).Handle)
	w.relay = outbox.NewRelay(sqlite.NewOutbox(w.db), local, w.now, outbox.Observer{})

	c := Config{
		Booking: service, Catalog: w.catalog, Boards: w.boards, Tickets: tickets, Keys: keys, Admin: identity.HashAdminKey(adminKey), Picture: store.Picture,
		Simulator: w.sim, Now: w.now, Logger: log, PublicURL: func() string { return w.url }, Secure: func() bool { return false },
	}
	for _, o := range options {
		o(&c)
	}
	w.api, err = New(c)
	w.must(err)
	server := httptest.NewServer(httpd.Chain(w.api, httpd.Track(httpd.Tracking{Log: log}), httpd.SecurityHeaders))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.client, err = client.New(w.url, client.WithRetries(0))
	w.must(err)
	w.admin = w.client.Admin(adminKey)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// layout stores a sample and gives its id.
func (w *world) layout(l *venue.Layout, err error) string {
	w.t.Helper()
	w.must(err)
	added, err := w.catalog.AddLayout(context.Background(), l.Canonical())
	w.must(err)
	return added.Ref.ID
}

// make adds an event over the API; change may alter the defaults of an event that is on sale.
func (w *world) make(e client.NewEvent) string {
	w.t.Helper()
	if e.Title == "" {
		e.Title = e.Slug
	}
	if e.Venue.Name == "" {
		e.Venue = client.Venue{Name: "Hall 1", City: "Berlin", TimeZone: "Europe/Berlin"}
	}
	if e.StartsAt.IsZero() {
		e.StartsAt = began.Add(10 * 24 * time.Hour)
	}
	if e.SaleOpensAt.IsZero() {
		e.SaleOpensAt = began.Add(-time.Hour)
	}
	if e.SaleClosesAt.IsZero() {
		e.SaleClosesAt = e.StartsAt
	}
	if e.Currency == "" {
		e.Currency = "EUR"
	}
	made, err := w.admin.CreateEvent(context.Background(), e)
	w.must(err)
	return made.ID
}

func number(n int) *int { return &n }

// plenty lets tests hold as often as they like.
func plenty() *client.PolicyPatch {
	return &client.PolicyPatch{MaxHoldsPerMinute: number(10_000), MaxPlacesPerCustomer: number(1000)}
}

func (w *world) cinema(slug string, p *client.PolicyPatch) string {
	return w.make(client.NewEvent{
		Kind: "cinema", Slug: slug, LayoutID: w.layout(venue.Cinema(10, 20)), Prices: map[string]int64{"Stalls": 1200, "Premium": 1500}, Policy: p,
	})
}

func (w *world) festival(slug string, capacity int64, p *client.PolicyPatch) string {
	return w.make(client.NewEvent{Kind: "concert", Slug: slug, Pools: []client.NewPool{{Pool: "STANDING", Capacity: capacity, Price: 5500}}, Policy: p})
}

func (w *world) flight(slug string, p *client.PolicyPatch) string {
	return w.make(client.NewEvent{
		Kind: "flight", Slug: slug, Title: "SGN–HAN HF101", LayoutID: w.layout(venue.Cabin(30, "ABC DEF", "ECONOMY")), Origin: "SGN", Destination: "HAN",
		Venue: client.Venue{Name: "Tan Son Nhat", City: "Ho Chi Minh City", TimeZone: "Asia/Ho_Chi_Minh"},
		Pools: []client.NewPool{{Pool: "ECONOMY", Capacity: 180, Overbook: 3, Price: 9900}}, Policy: p,
	})
}

// guest makes a customer.
func (w *world) guest() *client.Client {
	w.t.Helper()
	s, err := w.client.NewSession(context.Background())
	w.must(err)
	return w.client.As(s)
}

// settle lets everything happen that is due: callbacks are told, messages relayed.
func (w *world) settle() {
	w.t.Helper()
	ctx := context.Background()
	w.sim.RunOnce(ctx)
	for {
		n, err := w.relay.RunOnce(ctx)
		w.must(err)
		if n == 0 {
			return
		}
	}
}

// buy goes from hold to confirmed booking.
func (w *world) buy(c *client.Client, event string, h client.HoldRequest) client.Booking {
	w.t.Helper()
	ctx := context.Background()
	hold, err := c.PlaceHold(ctx, event, h)
	w.must(err)
	request := client.CheckoutRequest{Email: "ada@example.org", Name: "Ada Lovelace"}
	for range max(len(h.Seats), h.Quantity) {
		request.Passengers = append(request.Passengers, client.Passenger{Name: "Ada Lovelace"})
	}
	p, err := c.Checkout(ctx, hold.HoldID, request)
	w.must(err)
	w.must(w.client.Simulate(ctx, p.PaymentID, client.SimulatorAction{Outcome: "succeed"}))
	w.settle()
	b, err := c.Booking(ctx, p.BookingID)
	w.must(err)
	if b.Status != "confirmed" || len(b.Tickets) == 0 {
		w.t.Fatalf("the booking is %s with %d tickets, want it confirmed with some", b.Status, len(b.Tickets))
	}
	return b
}

// answer is an answer as it came over the wire.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) field(name string) any {
	var m map[string]any
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		return fmt.Errorf("%w: %s", err, a.body)
	}
	return m[name]
}

// send makes any request; fields are name: value.
func (w *world) send(method, path, body string, fields ...string) answer {
	w.t.Helper()
	r, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	w.must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept-Encoding", "identity")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	// No redirect is followed: each answer is looked at.
	res, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	w.must(err)
	return answer{res.StatusCode, res.Header, string(text)}
}

// token makes a customer and gives the field that says so.
func (w *world) token() string {
	w.t.Helper()
	s, err := w.client.NewSession(context.Background())
	w.must(err)
	return "Authorization: Bearer " + s.Token
}

// held counts the places that are not available.
func (w *world) held(event string) int {
	w.t.Helper()
	s, err := w.admin.Stats(context.Background(), event)
	w.must(err)
	return int(s.Total.Held + s.Total.Sold)
}
