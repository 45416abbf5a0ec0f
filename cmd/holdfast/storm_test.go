package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-project/holdfast/api/client"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/venue"
)

var (
	stormSeed   = flag.Uint64("storm.seed", 0, "of the storm; 0: a new one")
	stormRounds = flag.Int("storm.rounds", 20, "kills of the storm; with -short a fifth of them")
)

const (
	stormActors   = 24
	stormSeats    = 5_000
	stormUnits    = 40_000
	stormPatience = 30 * time.Second // until a retried request has an answer
	stormPool     = "STANDING"
)

// In the middle of holds, releases, checkouts, payments and cancellations the server is killed, again and again, and started on the same data. Whoever had
// no answer asks again with the same key. At the end nothing that was acknowledged is missing, nobody has what somebody else has, and all money is where
// it belongs. C-17, C-18, C-40.
func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	seed, rounds := *stormSeed, *stormRounds
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	if testing.Short() {
		rounds = max(1, rounds/5)
	}
	t.Logf("seed %d: repeat with go test ./cmd/holdfast -run Killed -storm.seed %d", seed, seed)
	s := &storm{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)),
		config: childConfig{Program: program(t), Dir: t.TempDir(), Data: "data", AdminKey: identity.NewAdminKey(), Flags: []string{
			"--payments", "simulator", "--log-level", "error", "--sweep-every", "500ms", "--reconcile-after", "2s", "--reconcile-before-end", "1s",
		}},
	}
	s.start()
	s.open()
	for i := range stormActors {
		s.actors = append(s.actors, s.enter(i, rand.New(rand.NewPCG(seed, uint64(i+1)))))
	}
	g, ctx := errgroup.WithContext(t.Context())
	for _, a := range s.actors {
		g.Go(func() error { return a.act(ctx) })
	}
	for range rounds {
		wait(ctx, time.Duration(50+s.rng.IntN(700))*time.Millisecond)
		if ctx.Err() != nil {
			break
		}
		if err := s.server.kill(); err != nil {
			t.Fatal(err)
		}
		s.start()
	}
	s.calm.Store(true)
	if err := g.Wait(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	s.check()
	if err := s.server.stop(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// wait passes time unless ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// storm is the server, which comes and goes, and those who use it.
type storm struct {
	t      *testing.T
	rng    *rand.Rand
	config childConfig
	server *child
	client atomic.Pointer[client.Client] // of the server of the moment
	actors []*actor
	calm   atomic.Bool // no more kills: finish what was begun

	seated, standing string // events
	seats            []string
	answered, asked  atomic.Int64
}

func (s *storm) start() {
	s.t.Helper()
	server, err := startChild(s.t.Context(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = server
	s.t.Cleanup(func() { _ = server.kill() }) // it has ended already unless the test failed
	c, err := client.New(server.url, client.WithRetries(0), client.WithHTTPClient(&http.Client{
		Timeout: 10 * time.Second, Transport: client.NewTransport(2 * stormActors),
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.client.Store(c)
}

func (s *storm) admin() client.Admin { return s.client.Load().Admin(s.config.AdminKey) }

// open makes an event of seats and one of standing places.
func (s *storm) open() {
	s.t.Helper()
	ctx := s.t.Context()
	l, err := venue.Stadium(stormSeats)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range l.Seats {
		s.seats = append(s.seats, l.Seats[i].Code)
	}
	layout, err := s.admin().AddLayout(ctx, l.Canonical())
	if err != nil {
		s.t.Fatal(err)
	}
	prices := map[string]int64{}
	for _, band := range l.Bands {
		prices[band] = 1_000
	}
	hold, pay, off, places, customer, minute := 3_600, 3_000, false, 4, 10_000, 1_000_000
	now := time.Now().UTC()
	e := client.NewEvent{
		Kind: "concert", Slug: "storm-seats", Title: "Storm", Currency: "EUR", Venue: client.Venue{Name: "Hall", City: "Berlin", TimeZone: "Europe/Berlin"},
		StartsAt: now.AddDate(0, 1, 0), SaleOpensAt: now.Add(-time.Minute), SaleClosesAt: now.AddDate(0, 0, 20), LayoutID: layout.LayoutID, Prices: prices,
		Policy: &client.PolicyPatch{
			HoldSeconds: &hold, PaymentSeconds: &pay, HoldCeilingSeconds: &hold, MaxPlacesPerHold: &places, MaxPlacesPerCustomer: &customer,
			MaxHoldsPerMinute: &minute, WaitingRoom: &client.WaitingRoomPatch{Enabled: &off},
			Cancellation: &[]client.Cancellation{{UntilSecondsBefore: 3_600, RefundPercent: 100}},
		},
	}
	made, err := s.admin().CreateEvent(ctx, e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.seated = made.ID
	e.Slug, e.LayoutID, e.Prices = "storm-standing", "", nil
	e.Pools = []client.NewPool{{Pool: stormPool, Capacity: stormUnits, Buckets: 4, Price: 500}}
	if made, err = s.admin().CreateEvent(ctx, e); err != nil {
		s.t.Fatal(err)
	}
	s.standing = made.ID
}

// actor is one customer, who keeps a book of everything that was acknowledged.
type actor struct {
	*storm
	no      int
	rng     *rand.Rand
	session client.Session
	book    []*promise
}

// promise is a hold that was answered 201, and what became of it since.
type promise struct {
	hold      client.Hold
	event     string
	request   client.HoldRequest
	released  bool
	payment   client.Payment
	paid      bool // the provider has the money
	confirmed bool // a look at the booking has said so
	cancelled bool
}

func (s *storm) enter(no int, rng *rand.Rand) *actor {
	s.t.Helper()
	session, err := s.client.Load().NewSession(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return &actor{storm: s, no: no, rng: rng, session: session}
}

// act does one thing after the other until the storm is over. What was begun is always brought to an answer.
func (a *actor) act(ctx context.Context) error {
	for !a.calm.Load() && ctx.Err() == nil {
		var err error
		switch n := a.rng.IntN(100); {
		case n < 50:
			err = a.place(ctx)
		case n < 58:
			err = a.release(ctx)
		case n < 82:
			err = a.pay(ctx)
		case n < 94:
			err = a.cancel(ctx)
		default:
			err = a.repeat(ctx)
		}
		if err != nil {
			return fmt.Errorf("actor %d: %w", a.no, err)
		}
	}
	return nil
}

// insist asks until there is an answer, of whatever server is there by then.
func (a *actor) insist(ctx context.Context, ask func(*client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, stormPatience)
	defer cancel()
	for {
		a.asked.Add(1)
		err := ask(a.client.Load().As(a.session))
		p, refused := errors.AsType[*client.Problem](err)
		busy := refused && (p.Status == http.StatusServiceUnavailable || p.Code == client.CodeIdempotencyInProgress)
		if !busy && !errors.Is(err, client.ErrUnreachable) {
			a.answered.Add(1)
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %v: %w", stormPatience, err)
		}
		wait(ctx, 20*time.Millisecond)
	}
}

// any picks a promise that fits.
func (a *actor) any(fits func(*promise) bool) *promise {
	for range 10 {
		if len(a.book) == 0 {
			return nil
		}
		if p := a.book[a.rng.IntN(len(a.book))]; fits(p) {
			return p
		}
	}
	return nil
}

func (a *actor) place(ctx context.Context) error {
	p := &promise{event: a.seated, request: client.HoldRequest{IdempotencyKey: client.NewIdempotencyKey()}}
	switch n := 1 + a.rng.IntN(4); a.rng.IntN(4) {
	case 0:
		p.event, p.request.Pool, p.request.Quantity = a.standing, stormPool, n
	case 1:
		p.request.Best = &client.Best{Quantity: n}
	default:
		for _, i := range a.rng.Perm(len(a.seats))[:n] {
			p.request.Seats = append(p.request.Seats, a.seats[i])
		}
	}
	err := a.insist(ctx, func(c *client.Client) (err error) { p.hold, err = c.PlaceHold(ctx, p.event, p.request); return err })
	if isCode(err, client.CodePlacesGone) {
		return nil
	}
	if err == nil {
		a.book = append(a.book, p)
	}
	return err
}

func (a *actor) release(ctx context.Context) error {
	p := a.any(func(p *promise) bool { return !p.released && p.payment.PaymentID == "" })
	if p == nil {
		return nil
	}
	err := a.insist(ctx, func(c *client.Client) error { return c.Release(ctx, p.hold.HoldID) })
	p.released = err == nil
	return err
}

func (a *actor) pay(ctx context.Context) error {
	p := a.any(func(p *promise) bool { return !p.released && !p.paid })
	if p == nil {
		return nil
	}
	request := client.CheckoutRequest{Email: "ada@example.org", Name: "Ada", IdempotencyKey: client.NewIdempotencyKey()}
	var pay client.Payment
	err := a.insist(ctx, func(c *client.Client) (err error) { pay, err = c.Checkout(ctx, p.hold.HoldID, request); return err })
	if err != nil {
		return err
	}
	if before := p.payment.PaymentID; before != "" && before != pay.PaymentID {
		return fmt.Errorf("hold %s has two open payments: %s and %s", p.hold.HoldID, before, pay.PaymentID)
	}
	p.payment = pay
	if a.rng.IntN(4) == 0 {
		return nil // to be paid another time
	}
	tells := a.rng.IntN(4) // never, once, twice, three times
	act := client.SimulatorAction{Outcome: "succeed", Callbacks: &tells, OutOfOrder: tells > 0 && a.rng.IntN(8) == 0}
	err = a.insist(ctx, func(c *client.Client) error { return c.Simulate(ctx, pay.PaymentID, act) })
	p.paid = err == nil
	return err
}

func (a *actor) cancel(ctx context.Context) error {
	p := a.any(func(p *promise) bool { return p.paid && !p.cancelled })
	if p == nil {
		return nil
	}
	var b client.Booking
	err := a.insist(ctx, func(c *client.Client) (err error) { b, err = c.Booking(ctx, p.payment.BookingID); return err })
	switch {
	case err != nil:
		return err
	case p.confirmed && b.Status != "confirmed":
		return fmt.Errorf("booking %s was confirmed and is %s", b.BookingID, b.Status)
	case b.Status != "confirmed":
		return nil // the provider's word is not here yet
	}
	p.confirmed = true
	if a.rng.IntN(3) > 0 {
		return nil
	}
	var quote client.Quote
	if err := a.insist(ctx, func(c *client.Client) (err error) { quote, err = c.QuoteCancellation(ctx, b.BookingID); return err }); err != nil {
		return err
	}
	err = a.insist(ctx, func(c *client.Client) error { _, err := c.Cancel(ctx, b.BookingID, quote.QuoteID); return err })
	p.cancelled = err == nil
	return err
}

// repeat asks for a hold again, with its key: the answer is the first one. C-17
func (a *actor) repeat(ctx context.Context) error {
	p := a.any(func(p *promise) bool { return !p.released && !p.cancelled })
	if p == nil {
		return nil
	}
	var again client.Hold
	err := a.insist(ctx, func(c *client.Client) (err error) { again, err = c.PlaceHold(ctx, p.event, p.request); return err })
	if err != nil {
		return fmt.Errorf("hold %s (paid: %v), %+v, repeated with its key: %w", p.hold.HoldID, p.paid, p.request, err)
	}
	if again.HoldID != p.hold.HoldID || !again.Replayed || !slices.Equal(again.Seats, p.hold.Seats) {
		return fmt.Errorf("repeated with its key, hold %s %v became %s %v (replayed: %v)", p.hold.HoldID, p.hold.Seats, again.HoldID, again.Seats, again.Replayed)
	}
	return nil
}

func isCode(err error, code string) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Code == code
}

// check compares all books with what the server and the provider say, after the provider's last word has come.
func (s *storm) check() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	var mu sync.Mutex
	owner, units := map[string]string{}, int64(0)
	holds, booked, cancelled, released := 0, 0, 0, 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, a := range s.actors {
		for _, p := range a.book {
			g.Go(func() error {
				if err := a.kept(gctx, p); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				holds++
				switch {
				case p.released:
					released++
					return nil
				case p.cancelled:
					cancelled++
					return nil
				case p.paid:
					booked++
				}
				for _, seat := range p.hold.Seats {
					if other, taken := owner[seat]; taken {
						return fmt.Errorf("seat %s is promised to %s and to %s", seat, other, p.hold.HoldID)
					}
					owner[seat] = p.hold.HoldID
				}
				for _, pool := range p.hold.Pools {
					units += pool.Quantity
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		s.t.Error(err)
	}
	s.t.Logf("%d requests, %d answered; %d holds: %d released, %d bookings, %d cancelled", s.asked.Load(), s.answered.Load(), holds, released, booked, cancelled)
	if holds == 0 || booked == 0 || cancelled == 0 || s.asked.Load() == s.answered.Load() {
		s.t.Error("the storm was too weak to show anything")
	}
	for event, want := range map[string]int64{s.seated: int64(len(owner)), s.standing: units} {
		stats, err := s.admin().Stats(ctx, event)
		if err != nil {
			s.t.Error(err)
			continue
		}
		got := stats.Total.Held + stats.Total.Sold
		if event == s.standing {
			got = stats.Pools[0].Held + stats.Pools[0].Sold
		}
		// More would be places that nobody knows to have, fewer would be a promise that was forgotten.
		if got != want {
			s.t.Errorf("%d places of %s are held or sold, %d are promised to somebody", got, event, want)
		}
		audit, err := s.admin().Audit(ctx, event)
		if err != nil || !audit.OK {
			s.t.Errorf("audit of %s: %+v, %v", event, audit, err)
		}
	}
}

// kept says how a promise is broken.
func (a *actor) kept(ctx context.Context, p *promise) error {
	c := a.client.Load().As(a.session)
	for open := "not looked at"; p.payment.PaymentID != "" && open != ""; {
		if ctx.Err() != nil {
			return fmt.Errorf("booking %s was not settled in time: %s", p.payment.BookingID, open)
		}
		now, err := a.settled(ctx, p)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if open = now; open != "" {
			wait(ctx, 200*time.Millisecond)
		}
	}
	h, err := c.Hold(ctx, p.hold.HoldID)
	if err != nil {
		return fmt.Errorf("hold %s, which was answered 201: %w", p.hold.HoldID, err)
	}
	want := "held"
	switch {
	case p.released:
		want = "released"
	case p.paid:
		want = "booked"
	}
	if h.State != want || !slices.Equal(h.Seats, p.hold.Seats) {
		return fmt.Errorf("hold %s over %v is %s over %v instead of %s", h.HoldID, p.hold.Seats, h.State, h.Seats, want)
	}
	return nil
}

// settled compares the server's books of a booking with the provider's, and says what is still open.
func (a *actor) settled(ctx context.Context, p *promise) (open string, err error) {
	b, err := a.admin().Booking(ctx, p.payment.BookingID)
	if err != nil {
		return "asking for the booking", err
	}
	told, err := a.client.Load().Simulated(ctx, p.payment.PaymentID)
	if err != nil {
		return "asking the provider", err
	}
	want, kept := "pending", int64(0)
	switch {
	case p.cancelled:
		want = "cancelled"
	case p.paid:
		want, kept = "confirmed", p.hold.Price.Amount
	}
	charged, refunded := told.Charged.Amount, told.Refunded.Amount
	if len(b.Payments) != 1 {
		return "", fmt.Errorf("booking %s has %d payments instead of one", b.BookingID, len(b.Payments))
	}
	state := fmt.Sprintf("booking %s should be %s; it is %s with %d tickets, by the provider %d charged and %d given back, by the server %d",
		b.BookingID, want, b.Status, len(b.Tickets), charged, refunded, b.Payments[0].Refunded.Amount)
	switch {
	case b.Status != want && b.Status != "pending":
		return "", errors.New(state)
	case b.Status != want, charged-refunded != kept, b.Payments[0].Refunded.Amount != refunded, want == "confirmed" && len(b.Tickets) == 0:
		return state, nil
	}
	return "", nil
}
