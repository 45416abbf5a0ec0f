package loadgen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-project/holdfast/api/client"
)

// The sale.
const (
	saleCustomers   = 100_000
	saleReturns     = 100_000 // at most so many come again as new customers until nothing is left
	saleLimit       = 10 * time.Minute
	settleLimit     = 3 * time.Minute // for the last refunds and tickets
	saleHold        = 5               // seconds
	salePayment     = 4
	saleCeiling     = 30
	saleTries       = 4 // of one customer to hold something
	pictureEvery    = 200 * time.Millisecond
	idleWorkerPause = 20 * time.Millisecond
	busyTries       = 5 // of one request that is answered 503
)

// behaviour is what a customer does once there is a hold.
type behaviour int

const (
	pays behaviour = iota
	abandons
	releases
	paysTwiceTold
	paysTwentyTimesTold
	paysNeverTold
	paysToldLater
	paysTooLate
	paysOutOfOrder
	paysManyNotices
	paysWrongAmount
	failsToPay
	behaviours
)

var behaviourShare = [behaviours]int{ // percent
	abandons: 30, releases: 4, pays: 34, paysTwiceTold: 6, paysTwentyTimesTold: 2, paysNeverTold: 6, paysToldLater: 5, paysTooLate: 4,
	paysOutOfOrder: 3, paysManyNotices: 2, paysWrongAmount: 1, failsToPay: 3,
}

var behaviourNames = [behaviours]string{
	abandons: "abandoned", releases: "released", pays: "told once", paysTwiceTold: "told twice", paysTwentyTimesTold: "told twenty times",
	paysNeverTold: "never told", paysToldLater: "told later", paysTooLate: "paid after the session", paysOutOfOrder: "told out of order",
	paysManyNotices: "told by several notices", paysWrongAmount: "wrong amount", failsToPay: "payment failed first",
}

func behave(rng *rand.Rand) behaviour {
	at := rng.IntN(100)
	for b, share := range behaviourShare {
		if at -= share; at < 0 {
			return behaviour(b)
		}
	}
	return pays
}

// worker has one request in flight at most.
type worker struct{ rng *rand.Rand }

// sale is one sellout on its way.
type sale struct {
	*run
	house  *house
	rows   [][]int32
	agenda agenda
	seen   atomic.Pointer[picture]

	arrived, returned             atomic.Int64
	held, refused, gaveUp, busy   atomic.Int64
	tooLate, checkouts, simulated atomic.Int64
	did                           [behaviours]atomic.Int64
	sold                          *atomic.Int64

	mu        sync.Mutex
	purchases map[string]*purchase // by booking
	stop      atomic.Bool          // nobody new comes
}

// picture is the seat map as everybody sees it.
type picture struct {
	states            []client.SeatState
	free, heldN, sold int
}

// purchase is a booking that was begun.
type purchase struct {
	booking  string
	payments []string
}

// customer is one person.
type customer struct {
	api   *client.Client
	want  int
	tries int
}

// sellout sells a stadium to the last seat to people who do everything that people and payment providers do.
func sellout(ctx context.Context, r *run) error {
	hall, err := r.buildHall(ctx, stadiumSeats)
	if err != nil {
		return err
	}
	policy := wide()
	hold, pay, ceiling, perHold, perCustomer := saleHold, salePayment, saleCeiling, 4, 8
	policy.HoldSeconds, policy.PaymentSeconds, policy.HoldCeilingSeconds = &hold, &pay, &ceiling
	policy.MaxPlacesPerHold, policy.MaxPlacesPerCustomer = &perHold, &perCustomer
	h, err := r.open(ctx, hall, priceCents, policy)
	if err != nil {
		return err
	}
	s := &sale{run: r, house: h, rows: hall.rows, purchases: map[string]*purchase{}}
	flight := &inFlight{next: r.http.Transport}
	people := *r.http
	people.Transport = flight
	if r.api, err = client.New(r.cfg.Target, client.WithHTTPClient(&people), client.WithRetries(0)); err != nil {
		return err
	}
	r.admin = r.api.Admin(r.cfg.AdminKey)
	before, err := r.counters(ctx)
	if err != nil {
		r.note("the server's counters are not shown: %v", err)
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	started := r.cfg.Now()
	s.sold = r.phase("selling", int64(len(h.seats)))
	if err := s.sell(ctx); err != nil {
		return err
	}
	took := r.cfg.Now().Sub(started)
	end := s.seen.Load()
	r.report.figure("seconds until the last seat was sold", took.Seconds(), "s")
	if end.sold != len(h.seats) {
		r.fail("%d of %d seats were sold, %d are held and %d free after %v", end.sold, len(h.seats), end.heldN, end.free, took)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	total := r.cfg.Now().Sub(started)
	r.report.atMost("seconds until every payment was settled", total.Seconds(), saleLimit.Seconds(), "s")
	if total > saleLimit {
		r.fail("it took %v, longer than %v", total, saleLimit)
	}
	r.report.figure("customers", float64(s.arrived.Load()), "")
	r.report.figure("came again as new customers", float64(s.returned.Load()), "")
	r.report.figure("holds", float64(s.held.Load()), "")
	r.report.figure("refusals", float64(s.refused.Load()), "")
	r.report.figure("left with nothing", float64(s.gaveUp.Load()), "")
	r.report.figure("checkouts", float64(s.checkouts.Load()), "")
	r.report.figure("checkouts or payments that came too late", float64(s.tooLate.Load()), "")
	r.report.figure("answers 503, tried again", float64(s.busy.Load()), "")
	for b := range behaviours {
		r.report.figure("customers: "+behaviourNames[b], float64(s.did[b].Load()), "")
	}
	r.report.atMost("requests in flight, at most", float64(flight.peak.Load()), float64(r.cfg.Clients), "")
	r.report.figure("requests", float64(flight.all.Load()), "")
	if after, err := r.counters(ctx); err == nil && before != nil {
		for kind, n := range after.labelled(metricNotices) {
			r.report.figure("callbacks: "+kind, n-before.labelled(metricNotices)[kind], "")
		}
		r.report.figure("holds settled after their end", after.since(before, metricExpired), "")
		r.report.figure("database commits", after.since(before, metricCommits), "")
	}
	return nil
}

// inFlight counts requests on their way.
type inFlight struct {
	next           http.RoundTripper
	now, peak, all atomic.Int64
}

// RoundTrip is part of http.RoundTripper. Until the body is read a request is not done, but all of ours are read at once.
func (f *inFlight) RoundTrip(r *http.Request) (*http.Response, error) {
	n := f.now.Add(1)
	defer f.now.Add(-1)
	f.all.Add(1)
	for {
		if peak := f.peak.Load(); n <= peak || f.peak.CompareAndSwap(peak, n) {
			break
		}
	}
	return f.next.RoundTrip(r)
}

// sell lets people in until everything is sold and nobody is on the way, or the time is over.
func (s *sale) sell(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	started := s.cfg.Now()
	g.Go(func() error { // one of the clients looks for all, as a cache in front of the server would
		for !s.over() {
			if err := pause(ctx, pictureEvery); err != nil {
				return err
			}
			if err := s.look(ctx); err != nil {
				return err
			}
			if s.seen.Load().sold == len(s.house.seats) || s.cfg.Now().Sub(started) > saleLimit {
				s.stop.Store(true)
			}
		}
		return nil
	})
	for i := range max(1, s.cfg.Clients-1) {
		g.Go(func() error {
			w := &worker{rng: rand.New(rand.NewPCG(s.cfg.Seed, uint64(i)))}
			for !s.over() {
				if t, ok := s.agenda.take(s.cfg.Now()); ok {
					err := t.do(ctx, w)
					s.agenda.done()
					if err != nil {
						return err
					}
					continue
				}
				if !s.admit() {
					if err := pause(ctx, idleWorkerPause); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (s *sale) over() bool { return s.stop.Load() && s.agenda.idle() }

// admit puts the next person on the agenda: first all customers, then those who come again, no more than there are free seats for.
func (s *sale) admit() bool {
	if s.stop.Load() {
		return false
	}
	if n := s.arrived.Add(1); n <= saleCustomers {
		s.agenda.add(s.cfg.Now(), s.arrive)
		return true
	}
	s.arrived.Add(-1)
	p := s.seen.Load()
	if p.free == 0 || s.returned.Load() >= saleReturns {
		return false
	}
	s.agenda.mu.Lock()
	queued := len(s.agenda.all) + s.agenda.busy
	s.agenda.mu.Unlock()
	if queued > p.free {
		return false
	}
	s.returned.Add(1)
	s.agenda.add(s.cfg.Now(), s.arrive)
	return true
}

// look reads the seat map.
func (s *sale) look(ctx context.Context) error {
	a, _, err := s.api.Availability(ctx, s.house.id, "")
	if err != nil {
		return err
	}
	p := &picture{}
	if p.states, err = a.States(len(s.house.seats)); err != nil {
		return err
	}
	for _, state := range p.states {
		switch state {
		case client.SeatAvailable:
			p.free++
		case client.SeatHeld:
			p.heldN++
		case client.SeatSold:
			p.sold++
		case client.SeatBlocked:
		}
	}
	s.seen.Store(p)
	if s.sold != nil {
		s.sold.Store(int64(p.sold))
	}
	return nil
}

// again repeats a request that is answered 503, after a pause that grows.
func (s *sale) again(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		p, refused := asProblem(err)
		if !refused || p.Status != http.StatusServiceUnavailable || try == busyTries {
			return err
		}
		s.busy.Add(1)
		if err := pause(ctx, time.Duration(try)*200*time.Millisecond); err != nil {
			return err
		}
	}
}

// arrive is a new customer's first click.
func (s *sale) arrive(ctx context.Context, w *worker) error {
	var session client.Session
	err := s.again(ctx, func() (err error) { session, err = s.api.NewSession(ctx); return err })
	if err != nil {
		return fmt.Errorf("a session: %w", err)
	}
	return s.choose(ctx, w, &customer{api: s.api.As(session), want: 1 + w.rng.IntN(4)})
}

// choose asks for seats: often the best, often some from the map. Who gets none looks again a little later, a few times.
func (s *sale) choose(ctx context.Context, w *worker, c *customer) error {
	c.tries++
	p := s.seen.Load()
	if c.tries > 1 && p.free == 0 {
		s.later(w, c) // the map shows nothing: no need to ask
		return nil
	}
	request := client.HoldRequest{IdempotencyKey: client.NewIdempotencyKey()}
	const few = 500 // places that the house does not choose by itself (wheelchairs) are among the last
	if seats := s.pick(w.rng, p, c.want); len(seats) > 0 && (p.free < few || w.rng.IntN(100) < 40) {
		request.Seats = seats
	} else {
		request.Best = &client.Best{Quantity: c.want}
	}
	var hold client.Hold
	err := s.again(ctx, func() (err error) { hold, err = c.api.PlaceHold(ctx, s.house.id, request); return err })
	switch {
	case err == nil:
		s.held.Add(1)
		if n := len(hold.Seats); n < 1 || n > 4 {
			s.fail("a hold of %d seats", n)
		}
		return s.decide(ctx, w, c, &hold)
	case code(err) == client.CodePlacesGone:
		s.refused.Add(1)
		if p, _ := asProblem(err); len(p.Alternatives) > 0 && c.tries < saleTries {
			c.tries++
			request = client.HoldRequest{Seats: p.Alternatives[w.rng.IntN(len(p.Alternatives))], IdempotencyKey: client.NewIdempotencyKey()}
			err = s.again(ctx, func() (err error) { hold, err = c.api.PlaceHold(ctx, s.house.id, request); return err })
			if err == nil {
				s.held.Add(1)
				return s.decide(ctx, w, c, &hold)
			}
			if code(err) != client.CodePlacesGone {
				return fmt.Errorf("a hold of what was offered: %w", err)
			}
			s.refused.Add(1)
		}
		c.want = max(1, c.want-1)
		s.later(w, c)
		return nil
	default:
		return fmt.Errorf("a hold: %w", err)
	}
}

func (s *sale) later(w *worker, c *customer) {
	if c.tries >= saleTries || s.stop.Load() {
		s.gaveUp.Add(1)
		return
	}
	wait := time.Second + time.Duration(w.rng.IntN(3_000))*time.Millisecond
	s.agenda.add(s.cfg.Now().Add(wait), func(ctx context.Context, w *worker) error { return s.choose(ctx, w, c) })
}

// pick finds free seats side by side on the map, from a random row on; fewer when there are not so many anywhere.
func (s *sale) pick(rng *rand.Rand, p *picture, want int) []string {
	for ; want > 0; want-- {
		at := rng.IntN(len(s.rows))
		for i := range s.rows {
			row := s.rows[(at+i)%len(s.rows)]
			for from := 0; from+want <= len(row); from++ {
				run := row[from : from+want]
				if !slices.ContainsFunc(run, func(no int32) bool { return p.states[no] != client.SeatAvailable }) {
					seats := make([]string, want)
					for k, no := range run {
						seats[k] = s.house.seats[no]
					}
					return seats
				}
			}
		}
	}
	return nil
}

// decide does what people do with a hold.
func (s *sale) decide(ctx context.Context, w *worker, c *customer, hold *client.Hold) error {
	b := behave(w.rng)
	s.did[b].Add(1)
	switch b {
	case abandons:
		return nil
	case releases:
		err := s.again(ctx, func() error { return c.api.Release(ctx, hold.HoldID) })
		if err != nil {
			return fmt.Errorf("a release: %w", err)
		}
		return nil
	default: // everybody else pays, or tries to
	}
	pay, err := s.checkout(ctx, c, hold, w.rng.IntN(10) == 0)
	if err != nil || pay == nil {
		return err
	}
	none, twice, twenty, three := 0, 2, 20, 3
	act := client.SimulatorAction{Outcome: "succeed"}
	switch b {
	case paysTwiceTold:
		act.Callbacks = &twice
	case paysTwentyTimesTold:
		act.Callbacks = &twenty
	case paysNeverTold:
		act.Callbacks = &none
	case paysToldLater:
		act.DelaySeconds = 2 + w.rng.IntN(7)
	case paysTooLate:
		act.Late = true
		at := pay.ExpiresAt.Add(500*time.Millisecond + time.Duration(w.rng.IntN(4_000))*time.Millisecond)
		s.agenda.add(at, func(ctx context.Context, _ *worker) error { return s.simulate(ctx, pay, act) })
		return nil
	case paysOutOfOrder:
		act.OutOfOrder = true
	case paysManyNotices:
		act.Callbacks, act.DistinctIDs = &three, true
	case paysWrongAmount:
		act.Amount = pay.Price.Amount - 1
	case failsToPay:
		if err := s.simulate(ctx, pay, client.SimulatorAction{Outcome: "fail"}); err != nil || w.rng.IntN(2) == 0 {
			return err
		}
		if pay, err = s.checkout(ctx, c, hold, false); err != nil || pay == nil { // with another card
			return err
		}
	default: // pays and is told once
	}
	return s.simulate(ctx, pay, act)
}

// checkout begins to pay, clicking twice now and then. nil: it was too late.
func (s *sale) checkout(ctx context.Context, c *customer, hold *client.Hold, twice bool) (*client.Payment, error) {
	request := client.CheckoutRequest{Email: "buyer@example.org", Name: "Buyer", IdempotencyKey: client.NewIdempotencyKey()}
	var pay client.Payment
	err := s.again(ctx, func() (err error) { pay, err = c.api.Checkout(ctx, hold.HoldID, request); return err })
	switch code(err) {
	case client.CodeHoldEnded, client.CodeTooLateToPay:
		s.tooLate.Add(1)
		return nil, nil //nolint:nilnil // nil says that it was too late
	case client.CodeHoldNotLive: // the failed attempt's money had come after all
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("a checkout: %w", err)
	}
	s.checkouts.Add(1)
	if twice {
		var second client.Payment
		err := s.again(ctx, func() (err error) { second, err = c.api.Checkout(ctx, hold.HoldID, request); return err })
		if err != nil {
			return nil, fmt.Errorf("the same checkout again: %w", err)
		}
		if second.PaymentID != pay.PaymentID {
			s.fail("clicking twice made two payments: %s and %s", pay.PaymentID, second.PaymentID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.purchases[pay.BookingID]
	if one == nil {
		one = &purchase{booking: pay.BookingID}
		s.purchases[pay.BookingID] = one
	}
	if !slices.Contains(one.payments, pay.PaymentID) {
		one.payments = append(one.payments, pay.PaymentID)
	}
	return &pay, nil
}

// simulate lets the provider do something. A session may be over by the time that somebody wants to pay.
func (s *sale) simulate(ctx context.Context, pay *client.Payment, act client.SimulatorAction) error {
	err := s.again(ctx, func() error { return s.api.Simulate(ctx, pay.PaymentID, act) })
	if p, ok := asProblem(err); ok && p.Status == http.StatusConflict && !act.Late {
		s.tooLate.Add(1)
		return nil
	}
	if err != nil {
		return fmt.Errorf("paying: %w", err)
	}
	s.simulated.Add(1)
	return nil
}

// ended is how a purchase ended, by the server's books and the provider's.
type ended struct {
	open      string // why it is not settled yet
	confirmed bool
	seats     []string
	price     int64
	reason    string
	charged   int64 // by the provider's books
	refunded  int64
	sent      int64
	wrong     []string
}

// settle waits until every payment has ended in a booking or a refund, then adds everything up by the provider's books.
func (s *sale) settle(ctx context.Context) error {
	left := make([]*purchase, 0, len(s.purchases))
	for _, p := range s.purchases {
		left = append(left, p)
	}
	done := s.phase("settling", int64(len(left)))
	deadline := s.cfg.Now().Add(settleLimit)
	results := make(map[string]ended, len(left))
	for {
		var mu sync.Mutex
		var open []*purchase
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(min(64, s.cfg.Clients))
		for _, p := range left {
			g.Go(func() error {
				e, err := s.lookUp(gctx, p)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				results[p.booking] = e
				if e.open != "" {
					open = append(open, p)
				} else {
					done.Add(1)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		left = open
		if len(left) == 0 || s.cfg.Now().After(deadline) {
			break
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	for _, p := range left {
		s.fail("booking %s is not settled after %v: %s", p.booking, settleLimit, results[p.booking].open)
	}
	s.addUp(results)
	return nil
}

// lookUp compares the server's books of a purchase with the provider's.
func (s *sale) lookUp(ctx context.Context, p *purchase) (ended, error) {
	var b client.AdminBooking
	err := s.again(ctx, func() (err error) { b, err = s.admin.Booking(ctx, p.booking); return err })
	if err != nil {
		return ended{}, fmt.Errorf("looking at a booking: %w", err)
	}
	e := ended{confirmed: b.Status == "confirmed", seats: b.Seats, price: b.Price.Amount, reason: b.Reason}
	if len(b.Payments) != len(p.payments) {
		e.wrong = append(e.wrong, fmt.Sprintf("%d payments were begun, the server has %d", len(p.payments), len(b.Payments)))
	}
	switch {
	case b.Status == "pending":
		e.open = "the booking is pending"
	case e.confirmed && len(b.Tickets) != len(b.Seats):
		e.open = fmt.Sprintf("%d tickets for %d seats", len(b.Tickets), len(b.Seats))
	}
	for _, pay := range b.Payments {
		var told client.SimulatorPayment
		err := s.again(ctx, func() (err error) { told, err = s.api.Simulated(ctx, pay.PaymentID); return err })
		if err != nil {
			return ended{}, fmt.Errorf("looking at a payment: %w", err)
		}
		charged, refunded := amountOf(told.Charged), amountOf(told.Refunded)
		e.charged, e.refunded, e.sent = e.charged+charged, e.refunded+refunded, e.sent+int64(told.CallbacksSent)
		switch {
		case pay.Status == "pending":
			e.open = "a payment is pending"
		case pay.Charged.Amount != charged:
			e.open = fmt.Sprintf("the provider charged %d, the server knows of %d (%s)", charged, pay.Charged.Amount, pay.Status)
		case pay.Owed.Amount != refunded || pay.Refunded.Amount != refunded:
			e.open = fmt.Sprintf("%d owed, %d refunded, the provider gave back %d", pay.Owed.Amount, pay.Refunded.Amount, refunded)
		}
	}
	return e, nil
}

func amountOf(m *client.Money) int64 {
	if m == nil {
		return 0
	}
	return m.Amount
}

// addUp makes the totals and finds what does not fit.
func (s *sale) addUp(results map[string]ended) {
	owner := map[string]string{}
	var bookings, failed, charged, refunded, prices, sent int64
	reasons := map[string]int64{}
	for id, e := range results {
		charged, refunded, sent = charged+e.charged, refunded+e.refunded, sent+e.sent
		for _, w := range e.wrong {
			s.fail("booking %s: %s", id, w)
		}
		if !e.confirmed {
			failed++
			if e.refunded > 0 {
				reasons[e.reason]++
			}
			if e.charged != e.refunded {
				s.fail("booking %s failed, %d were charged and %d given back", id, e.charged, e.refunded)
			}
			continue
		}
		bookings++
		prices += e.price
		if e.charged-e.refunded != e.price {
			s.fail("booking %s costs %d, %d were charged and %d given back", id, e.price, e.charged, e.refunded)
		}
		if e.refunded > 0 {
			reasons["duplicate"]++
		}
		for _, seat := range e.seats {
			if other, taken := owner[seat]; taken {
				s.fail("seat %s is sold to %s and to %s", seat, other, id)
			}
			owner[seat] = id
		}
	}
	if len(owner) != len(s.house.seats) {
		s.fail("%d of %d seats are in a confirmed booking", len(owner), len(s.house.seats))
	}
	if charged-refunded != prices {
		s.fail("the provider charged %d and gave back %d; the bookings cost %d", charged, refunded, prices)
	}
	f := s.report.figure
	f("seats sold", float64(len(owner)), "of "+strconv.Itoa(len(s.house.seats)))
	f("bookings confirmed", float64(bookings), "")
	f("bookings failed", float64(failed), "")
	for reason, n := range reasons {
		f("refunds: "+reason, float64(n), "")
	}
	f("charged by the provider", float64(charged)/100, "EUR")
	f("given back by the provider", float64(refunded)/100, "EUR")
	f("price of all bookings", float64(prices)/100, "EUR")
	f("callbacks taken by the server", float64(sent), "")
}
