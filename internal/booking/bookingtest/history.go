package bookingtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Step is something that happens in a history: what, and four numbers that say with whom, what and how. Any numbers make sense, so that a failing
// history can be shrunk.
type Step struct{ Kind, A, B, C, D uint8 }

// The world of a history: few of everything, so that they meet.
const (
	modelSeats     = 6
	modelPools     = 2
	modelCustomers = 3
	modelLimit     = 6 // places of a customer
	modelHoldTTL   = 100 * time.Second
	modelSession   = 80 * time.Second
	modelExtend    = 60 * time.Second
	modelCeiling   = 250 * time.Second
	modelPrice     = 100
)

// ModelEvent is the event of a history.
func ModelEvent() *catalog.Event {
	e := newEvent(catalog.Concert)
	e.Pools = []catalog.Pool{{Name: "P", Capacity: 5, Overbook: 1, Buckets: 2}, {Name: "Q", Capacity: 3, Buckets: 1}}
	e.Policy.HoldTTL, e.Policy.PaymentTTL, e.Policy.ExtendTTL, e.Policy.Ceiling = modelHoldTTL, modelSession, modelExtend, modelCeiling
	e.Policy.MaxPlacesPerCustomer = modelLimit
	e.Policy.Cancellation = []catalog.CancellationRule{{UntilBefore: 900 * time.Second, RefundPercent: 100}, {UntilBefore: 300 * time.Second, RefundPercent: 50}}
	e.SaleClosesAt, e.StartsAt = Start.Add(1300*time.Second), Start.Add(1500*time.Second)
	return e
}

// model says in few words what should be. It knows no rows, buckets, epochs, allowances or guards: only who has what, by when, and what was paid.
type model struct {
	now      time.Time
	owner    [modelSeats]int // hold that took the seat last; -1 none
	blocked  [modelSeats]bool
	limit    [modelPools]int
	holds    []modelHold
	payments []modelPayment
	quotes   []modelQuote
	notices  map[string]bool
}

type modelHold struct {
	who            int
	seats          []int32
	units          [modelPools]int
	price          int64
	until, ceiling time.Time
	prolonged      bool
	state          booking.HoldState
	booked         string // "", pending, confirmed, failed, cancelled
	refund         int64
	cancelledBy    int // quote, -1 none
}

type modelPayment struct {
	hold                    int
	expires                 time.Time
	status                  booking.PaymentStatus
	charged, owed, refunded int64
	due                     []int64 // refunds not done, oldest first
}

type modelQuote struct {
	hold    int
	refund  int64
	expires time.Time
}

func newModel(e *catalog.Event) *model {
	m := &model{notices: map[string]bool{}}
	for i := range m.owner {
		m.owner[i] = -1
	}
	for i, p := range e.Pools {
		m.limit[i] = int(p.Capacity + p.Overbook)
	}
	return m
}

func (h *modelHold) places() int { return len(h.seats) + h.units[0] + h.units[1] }

func (m *model) live(h int) bool {
	return m.holds[h].state == booking.HoldHeld && !m.now.After(m.holds[h].until)
}

// has says whether a hold has its places now: for minutes, or for good.
func (m *model) has(h int) bool { return m.live(h) || m.holds[h].booked == "confirmed" }

func (m *model) free(seat int32) bool {
	return !m.blocked[seat] && (m.owner[seat] < 0 || !m.has(m.owner[seat]))
}

func (m *model) taken(pool int) (n int) {
	for h := range m.holds {
		if m.has(h) {
			n += m.holds[h].units[pool]
		}
	}
	return n
}

func (m *model) placesOf(who int) (n int) {
	for h := range m.holds {
		if m.has(h) && m.holds[h].who == who {
			n += m.holds[h].places()
		}
	}
	return n
}

func (m *model) place(want modelHold, replaces int) error {
	if !m.now.Before(Start.Add(1300 * time.Second)) {
		return booking.ErrSaleClosed
	}
	var own modelHold
	if replaces >= 0 {
		own = m.holds[replaces]
		switch {
		case own.who != want.who:
			return booking.ErrNotFound
		case own.state == booking.HoldBooked:
			return booking.ErrAlreadyBooked
		case !m.live(replaces):
			return booking.ErrHoldEnded
		}
	}
	for _, no := range want.seats {
		if !m.free(no) && !slices.Contains(own.seats, no) {
			return booking.ErrGone
		}
	}
	for p := range want.units {
		if want.units[p] > 0 && m.taken(p)-own.units[p]+want.units[p] > m.limit[p] {
			return booking.ErrGone
		}
	}
	if m.placesOf(want.who)-own.places()+want.places() > modelLimit {
		return booking.ErrCustomerLimit
	}
	want.ceiling = m.now.Add(modelCeiling)
	if replaces >= 0 {
		m.end(replaces, booking.HoldReleased)
		want.ceiling = own.ceiling
	}
	want.until = earlier(m.now.Add(modelHoldTTL), want.ceiling)
	want.cancelledBy = -1
	m.holds = append(m.holds, want)
	for _, no := range want.seats {
		m.owner[no] = len(m.holds) - 1
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (m *model) end(h int, state booking.HoldState) {
	m.holds[h].state = state
	if m.holds[h].booked == "pending" {
		m.holds[h].booked = "failed"
	}
}

func (m *model) may(h, who int) error {
	switch {
	case m.holds[h].who != who:
		return booking.ErrNotFound
	case m.holds[h].state == booking.HoldBooked:
		return booking.ErrAlreadyBooked
	}
	return nil
}

func (m *model) release(h, who int) error {
	if err := m.may(h, who); err != nil {
		return err
	}
	if m.holds[h].state == booking.HoldHeld {
		m.end(h, booking.HoldReleased)
	}
	return nil
}

func (m *model) extend(h, who int) error {
	if err := m.may(h, who); err != nil {
		return err
	}
	if !m.live(h) {
		return booking.ErrHoldEnded
	}
	x := &m.holds[h]
	until := earlier(x.until.Add(modelExtend), x.ceiling)
	if until.Equal(x.until) {
		return booking.ErrCeiling
	}
	x.until = until
	return nil
}

// checkout adds a payment unless one is open.
func (m *model) checkout(h, who int) error {
	if err := m.may(h, who); err != nil {
		return err
	}
	if !m.live(h) {
		return booking.ErrHoldEnded
	}
	x := &m.holds[h]
	for _, p := range m.payments {
		if p.hold == h && p.status == booking.PaymentPending && !m.now.After(p.expires) {
			return nil
		}
	}
	const buffer = modelHoldTTL - modelSession
	until := x.until
	if !x.prolonged {
		until = later(until, earlier(m.now.Add(modelSession+buffer), x.ceiling))
	}
	if x.price > 0 && until.Add(-buffer).Sub(m.now) < time.Minute {
		return booking.ErrTooLateToPay
	}
	x.until, x.prolonged, x.booked = until, true, "pending"
	m.payments = append(m.payments, modelPayment{hold: h, expires: until.Add(-buffer)})
	if x.price == 0 {
		x.state, x.booked = booking.HoldBooked, "confirmed"
		m.payments[len(m.payments)-1].status = booking.PaymentSucceeded
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (p *modelPayment) unpaid() bool {
	return p.status == booking.PaymentPending || p.status == booking.PaymentFailed || p.status == booking.PaymentExpired
}

func (p *modelPayment) owe(amount int64) {
	if amount > 0 {
		p.owed += amount
		p.due = append(p.due, amount)
		p.status = booking.PaymentRefundDue
	}
}

func (m *model) settle(id int, notice string, status payment.Status, charged int64, closed bool) {
	p := &m.payments[id]
	h := &m.holds[p.hold]
	if notice != "" && m.notices[notice] {
		return
	}
	m.notices[notice] = notice != ""
	if !p.unpaid() {
		return
	}
	switch {
	case status == payment.Succeeded && charged == h.price && m.live(p.hold):
		p.status, p.charged, h.state, h.booked = booking.PaymentSucceeded, charged, booking.HoldBooked, "confirmed"
	case status == payment.Succeeded:
		p.charged = charged
		if charged != h.price && h.state == booking.HoldHeld {
			h.state = booking.HoldReleased
		}
		if h.booked == "pending" {
			h.booked = "failed"
		}
		p.owe(charged)
		if h.booked == "failed" {
			h.refund += p.owed
		}
	case p.status != booking.PaymentPending:
	case status == payment.Failed:
		p.status = booking.PaymentFailed
	case status == payment.Expired, status == payment.Unknown && closed:
		p.status = booking.PaymentExpired
	}
}

func (m *model) quote(h, who int) error {
	x := &m.holds[h]
	switch {
	case x.booked == "" || x.who != who:
		return booking.ErrNotFound
	case x.booked != "confirmed" || !m.now.Before(Start.Add(1500*time.Second)):
		return booking.ErrNotCancellable
	}
	q := modelQuote{hold: h, expires: m.now.Add(10 * time.Minute)}
	switch left := Start.Add(1500 * time.Second).Sub(m.now); {
	case left >= 900*time.Second:
		q.refund = x.price
	case left >= 300*time.Second:
		q.refund = x.price / 2
	}
	m.quotes = append(m.quotes, q)
	return nil
}

// cancel takes quote -1 for staff, who give everything back.
func (m *model) cancel(h, who, quote int) error {
	x := &m.holds[h]
	if x.booked == "" || quote >= 0 && x.who != who {
		return booking.ErrNotFound
	}
	refund := x.price
	if quote >= 0 {
		q := m.quotes[quote]
		switch {
		case q.hold != h:
			return booking.ErrNotFound
		case x.booked == "cancelled" && x.cancelledBy == quote:
			return nil
		case m.now.After(q.expires):
			return booking.ErrQuoteOver
		}
		refund = q.refund
	}
	if x.booked != "confirmed" {
		return booking.ErrNotCancellable
	}
	x.booked, x.refund, x.cancelledBy = "cancelled", refund, quote
	for i := range m.payments {
		if p := &m.payments[i]; p.hold == h && p.status == booking.PaymentSucceeded {
			p.owe(refund)
		}
	}
	return nil
}

func (m *model) block(seats []int32, unblock bool) error {
	for _, no := range seats {
		if !m.blocked[no] && !m.free(no) {
			return booking.ErrSeatsTaken
		}
	}
	for _, no := range seats {
		m.blocked[no] = !unblock
	}
	return nil
}

func (m *model) setLimit(pool, limit int) error {
	if m.taken(pool) > limit {
		return booking.ErrLimitBelowTaken
	}
	m.limit[pool] = limit
	return nil
}

func (m *model) refunded(id int) {
	p := &m.payments[id]
	p.refunded += p.due[0]
	p.due = p.due[1:]
	switch {
	case p.refunded < p.owed:
	case p.refunded < p.charged:
		p.status = booking.PaymentPartlyRefunded
	default:
		p.status = booking.PaymentRefunded
	}
}

// History runs steps on an engine and on the model.
type History struct {
	engine Engine
	clock  *Clock
	event  *catalog.Event
	m      *model
	holds  []booking.HoldID
	pays   []booking.PaymentID
	quotes []booking.QuoteID
	last   booking.Command
	batch  []booking.Command
	want   []error
	serial uint32
	done   []event
}

// event is a line of what is told when a history fails. Commands are written down only then: that costs more than running them.
type event struct {
	text    string
	command booking.Command
	want    error
}

func (e event) String() string {
	if e.command == nil {
		return e.text
	}
	return fmt.Sprintf("%T%+v -> %v", e.command, e.command, e.want)
}

// NewHistory begins one. The event is ModelEvent's, known to the engine and unused.
func NewHistory(engine Engine, clock *Clock, event *catalog.Event) *History {
	return &History{engine: engine, clock: clock, event: event, m: newModel(event)}
}

// Run runs the steps. A non-nil error says where engine and model part, or what the audit finds.
func (h *History) Run(ctx context.Context, steps []Step) error {
	h.clock.Set(Start)
	err := func() error {
		for _, step := range steps {
			if err := h.step(ctx, step); err != nil {
				return err
			}
			if step.Kind%8 == 7 && len(h.batch) < 6 { // goes on in the same batch
				continue
			}
			if err := h.flush(ctx); err != nil {
				return err
			}
		}
		if err := h.flush(ctx); err != nil {
			return err
		}
		return h.compare(ctx)
	}()
	if err != nil {
		var story strings.Builder
		for _, e := range h.done {
			fmt.Fprintf(&story, "\n%v", e)
		}
		return fmt.Errorf("%w\nafter:%s", err, story.String())
	}
	return nil
}

func (h *History) key() booking.Key {
	h.serial++
	k := booking.Key{Event: h.event.ID}
	k.Bits[0], k.Bits[1], k.Bits[2], k.Bits[15] = byte(h.serial>>16), byte(h.serial>>8), byte(h.serial), 1
	return k
}

func customerNo(n int) identity.CustomerID { return identity.CustomerID{1, byte(n)} }

func (h *History) send(c booking.Command, want error) {
	h.batch, h.want, h.last = append(h.batch, c), append(h.want, want), c
}

func seatsOf(mask uint8) (seats []int32) {
	for no := range int32(modelSeats) {
		if mask&(1<<no) != 0 {
			seats = append(seats, no)
		}
	}
	return seats
}

// step makes the command of a step, and lets the model do it.
func (h *History) step(ctx context.Context, s Step) error {
	m := h.m
	m.now = h.clock.Now()
	kind := s.Kind / 8 % 16
	hold, pay := -1, -1
	if len(m.holds) > 0 {
		hold = len(m.holds) - 1 - int(s.A)%min(len(m.holds), 4)
	}
	if len(m.payments) > 0 {
		pay = len(m.payments) - 1 - int(s.A)%min(len(m.payments), 4)
	}
	who := func() int { // nearly always the owner
		if s.D%8 == 0 {
			return int(s.D/8) % modelCustomers
		}
		return m.holds[hold].who
	}
	switch {
	case kind < 4 || hold < 0 && kind < 12:
		h.place(s, hold, kind == 3)
	case kind == 4:
		w := who()
		h.send(&booking.Release{ID: h.holds[hold], Customer: customerNo(w)}, m.release(hold, w))
	case kind == 5:
		w := who()
		h.send(&booking.Extend{Event: h.event, ID: h.holds[hold], Customer: customerNo(w)}, m.extend(hold, w))
	case kind == 6 || kind == 7:
		w := who()
		known := len(m.payments)
		c := &booking.Checkout{
			Event: h.event, Hold: h.holds[hold], Customer: customerNo(w), Payment: booking.PaymentID(h.key()), Provider: "simulator", Times: testTimes,
			Buyer: booking.Buyer{Email: "ada@example.org"},
		}
		h.send(c, m.checkout(hold, w))
		if len(m.payments) > known {
			h.pays = append(h.pays, c.Payment)
		}
	case (kind == 8 || kind == 9) && pay >= 0:
		h.settle(s, pay)
	case kind == 10:
		w := who()
		if s.B%2 == 0 || len(h.quotes) == 0 {
			c := &booking.QuoteCancellation{Event: h.event, ID: booking.QuoteID(h.key()), Booking: booking.BookingID(h.holds[hold]), Customer: customerNo(w)}
			err := m.quote(hold, w)
			h.send(c, err)
			if err == nil {
				h.quotes = append(h.quotes, c.ID)
			}
			return nil
		}
		quote := len(h.quotes) - 1 - int(s.C)%min(len(h.quotes), 3)
		if s.D%16 != 1 {
			hold = m.quotes[quote].hold
		}
		c := &booking.Cancel{Booking: booking.BookingID(h.holds[hold]), Customer: customerNo(w), Quote: h.quotes[quote]}
		h.send(c, m.cancel(hold, w, quote))
	case kind == 11 && s.B%2 == 0 && hold >= 0:
		h.send(&booking.Cancel{Booking: booking.BookingID(h.holds[hold]), Staff: &booking.StaffCancel{Refund: -1}}, m.cancel(hold, -1, -1))
	case kind == 11:
		if seats := seatsOf(s.C); s.D%3 > 0 {
			h.send(&booking.Block{Event: h.event.ID, Seats: seats, Unblock: s.D%3 == 2}, m.block(seats, s.D%3 == 2))
			return nil
		}
		pool, capacity, overbook := int(s.A)%modelPools, int64(s.B/2%8), int64(s.C%3)
		h.send(&booking.SetPool{Event: h.event.ID, Pool: pool, Capacity: capacity, Overbook: overbook}, m.setLimit(pool, int(capacity+overbook)))
	case kind == 12 && pay >= 0 && len(m.payments[pay].due) > 0:
		return h.refund(ctx, pay, s.B%3 == 0)
	case kind == 13 && h.last != nil:
		h.repeat()
	case kind == 14:
		if err := h.flush(ctx); err != nil {
			return err
		}
		return h.sweep(ctx, booking.EndedHolds{Event: h.event.ID, Limit: 1 + int(s.A%4)})
	default:
		if err := h.flush(ctx); err != nil {
			return err
		}
		step := []time.Duration{time.Second, 30 * time.Second, modelExtend, modelHoldTTL, modelHoldTTL + time.Millisecond, 10 * time.Minute}[int(s.A)%6]
		if hold >= 0 && s.B%2 == 0 { // to an end, or just behind it
			if to := m.holds[hold].until.Add(time.Duration(s.C%2) * time.Millisecond); to.After(m.now) {
				step = to.Sub(m.now)
			}
		}
		h.clock.Add(step)
		h.done = append(h.done, event{text: "+" + step.String()})
	}
	return nil
}

func (h *History) place(s Step, hold int, replace bool) {
	who := int(s.D) % modelCustomers
	want := modelHold{who: who, seats: seatsOf(s.B % (1 << modelSeats)), units: [modelPools]int{int(s.C % 4), int(s.C / 4 % 3)}}
	if want.places() == 0 {
		want.units[0] = 1
	}
	if s.C%32 != 31 { // now and then one is free
		want.price = modelPrice * int64(want.places())
	}
	c := &booking.Place{
		Event: h.event, ID: booking.HoldID(h.key()), Customer: customerNo(who), Seats: want.seats, Places: want.places(), Price: h.event.Price(want.price),
		Bucket: int(s.C / 16),
	}
	for p, n := range want.units {
		if n > 0 {
			c.Units = append(c.Units, booking.UnitsWant{Pool: p, N: int64(n)})
		}
	}
	replaces := -1
	if replace && hold >= 0 {
		replaces = hold
		c.Replaces = h.holds[hold]
		if s.D%16 != 0 {
			who = h.m.holds[hold].who
			want.who, c.Customer = who, customerNo(who)
		}
	}
	err := h.m.place(want, replaces)
	h.send(c, err)
	if err == nil {
		h.holds = append(h.holds, c.ID)
	}
}

func (h *History) settle(s Step, pay int) {
	hold := h.m.payments[pay].hold
	c := &booking.Settle{Payment: h.pays[pay], Times: testTimes}
	c.State.Reference = "sim_" + c.Payment.String()
	charged := int64(0)
	switch s.B % 8 {
	case 0, 1, 2:
		c.State.Status, charged = payment.Succeeded, h.m.holds[hold].price
	case 3:
		c.State.Status, charged = payment.Succeeded, h.m.holds[hold].price+1
	case 4:
		c.State.Status = payment.Failed
	case 5:
		c.State.Status = payment.Expired
	case 6:
		c.State.Status = payment.Pending
	default:
		c.State.Status, c.Closed = payment.Unknown, !h.m.live(hold)
	}
	if charged > 0 {
		c.State.Charged = money.Money{Amount: charged, Currency: h.event.Currency}
	}
	notice := ""
	if s.C%2 == 0 {
		notice = fmt.Sprintf("%v-%d", c.Payment, s.C%6)
		c.Notice = booking.NoticeRef{Provider: "simulator", ID: notice}
	}
	if charged == 0 && c.State.Status == payment.Succeeded { // a free hold was paid at its checkout
		c.State.Status = payment.Pending
	}
	h.m.settle(pay, notice, c.State.Status, charged, c.Closed)
	h.send(c, nil)
}

// refund tells of the refund of a payment that is not done.
func (h *History) refund(ctx context.Context, pay int, failed bool) error {
	if err := h.flush(ctx); err != nil {
		return err
	}
	b, err := h.engine.Books(ctx, h.event.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(b.Refunds, func(r booking.Refund) bool { return r.Payment == h.pays[pay] && !r.Done })
	if i < 0 {
		return fmt.Errorf("payment %d owes %v, and there is no refund", pay, h.m.payments[pay].due)
	}
	h.send(&booking.Refunded{Refund: b.Refunds[i].ID, Payment: h.pays[pay], Failed: failed}, nil)
	if !failed {
		h.m.refunded(pay)
	}
	return nil
}

// repeat sends the last command again, as a client does whose answer got lost: it must change nothing.
func (h *History) repeat() {
	switch c := h.last.(type) {
	case *booking.Place:
		if !slices.Contains(h.holds, c.ID) {
			return
		}
	case *booking.Checkout:
		i := slices.Index(h.pays, c.Payment)
		if i < 0 {
			return
		}
		if p := h.m.payments[i]; p.unpaid() && !h.m.live(p.hold) { // its session was never opened
			h.send(c, booking.ErrHoldEnded)
			return
		}
	case *booking.QuoteCancellation:
		if !slices.Contains(h.quotes, c.ID) {
			return
		}
	case *booking.Cancel:
		i := slices.Index(h.holds, booking.HoldID(c.Booking))
		x := &h.m.holds[i]
		if c.Staff != nil || c.Customer != customerNo(x.who) || x.booked != "cancelled" || x.cancelledBy < 0 || h.quotes[x.cancelledBy] != c.Quote {
			return
		}
	case *booking.Settle:
		if c.Notice == (booking.NoticeRef{}) {
			return
		}
	default:
		return
	}
	h.send(h.last, nil)
}

// sweep settles holds whose time is over.
func (h *History) sweep(ctx context.Context, q booking.EndedHolds) error {
	ended, err := h.engine.EndedHolds(ctx, q)
	if err != nil || len(ended) == 0 {
		return err
	}
	var commands []booking.Command
	for _, id := range ended {
		commands = append(commands, &booking.Expire{ID: id})
	}
	h.done = append(h.done, event{text: "sweep"})
	a, err := h.engine.Apply(ctx, commands, booking.Decide)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for i, r := range a.Results {
		if r.Err != nil || r.Hold.State != booking.HoldExpired {
			return fmt.Errorf("sweep of %v: %v, %s", ended[i], r.Hold.State, said(r.Err))
		}
	}
	return nil
}

// flush sends what waits as one batch. What is short of places that ended holds count is sent again after they were settled, as a lane does.
func (h *History) flush(ctx context.Context) error {
	if len(h.batch) == 0 {
		return nil
	}
	batch, want := h.batch, h.want
	h.batch, h.want = nil, nil
	all := booking.EndedHolds{Event: h.event.ID, Limit: 1000}
	if len(batch) > 1 { // one that is sent again comes after its batch: then the model, which does them in order, would be the one to be wrong
		if err := h.sweep(ctx, all); err != nil {
			return err
		}
	}
	for i, c := range batch {
		h.done = append(h.done, event{command: c, want: want[i]})
	}
	for try := 0; ; try++ {
		a, err := h.engine.Apply(ctx, batch, booking.Decide)
		if err != nil {
			return err
		}
		short := false
		for i, r := range a.Results {
			if short = r.Short && !errors.Is(r.Err, want[i]) && try == 0 && len(batch) == 1; short {
				break
			}
			if !errors.Is(r.Err, want[i]) || (r.Err == nil) != (want[i] == nil) {
				return fmt.Errorf("%T: %s, the model says %s", batch[i], said(r.Err), said(want[i]))
			}
		}
		if !short {
			return nil
		}
		if err := h.sweep(ctx, all); err != nil {
			return err
		}
	}
}

func said(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// view is what both sides can say of everything.
type view struct {
	Seats    [modelSeats]string
	Taken    [modelPools]int
	Limit    [modelPools]int
	Holds    []string
	Payments []string
	Places   map[int]int
}

func (m *model) view() (v view) {
	v.Places = map[int]int{}
	for no := range m.owner {
		switch {
		case m.blocked[no]:
			v.Seats[no] = "blocked"
		case !m.free(int32(no)) && m.live(m.owner[no]):
			v.Seats[no] = fmt.Sprintf("held by %d", m.owner[no])
		case !m.free(int32(no)):
			v.Seats[no] = fmt.Sprintf("sold to %d", m.owner[no])
		}
	}
	for p := range v.Taken {
		v.Taken[p], v.Limit[p] = m.taken(p), m.limit[p]
	}
	for i := range m.holds {
		h := &m.holds[i]
		v.Holds = append(v.Holds, holdView(h.state, h.booked, m.live(i), h.until, h.refund))
		if m.has(i) {
			v.Places[h.who] += h.places()
		}
	}
	for i := range m.payments {
		p := &m.payments[i]
		v.Payments = append(v.Payments, fmt.Sprintf("%v %d %d %d", p.status, p.charged, p.owed, p.refunded))
	}
	return v
}

// holdView says of a hold whose time is over the same whether or not it was swept.
func holdView(state booking.HoldState, booked string, live bool, until time.Time, refund int64) string {
	if state != booking.HoldBooked && !live {
		if booked == "pending" {
			booked = "failed"
		}
		return fmt.Sprintf("over %s %d", booked, refund)
	}
	return fmt.Sprintf("%v until %v %s %d", state, until, booked, refund)
}

func (h *History) view(b *booking.Books) (v view) {
	v.Places = map[int]int{}
	number := map[[16]byte]int{}
	for i, id := range h.holds {
		number[id.Bits] = i
	}
	for no := range v.Seats {
		switch seat := b.Seats[int32(no)]; {
		case seat.Status == booking.Blocked:
			v.Seats[no] = "blocked"
		case seat.Status == booking.Held && booking.Live(seat.Until, b.Now):
			v.Seats[no] = fmt.Sprintf("held by %d", number[seat.Hold])
		case seat.Status == booking.Sold:
			v.Seats[no] = fmt.Sprintf("sold to %d", number[seat.Hold])
		}
	}
	for p := range v.Taken {
		for _, k := range b.Pools[p] {
			v.Taken[p] += int(k.Held + k.Sold)
			v.Limit[p] += int(k.Capacity + k.Overbook)
		}
	}
	for c := range modelCustomers {
		v.Places[c] = b.Allowances[customerNo(c)]
	}
	for _, id := range h.holds {
		x := b.Holds[id]
		live := x.State == booking.HoldHeld && booking.Live(x.Until, b.Now)
		booked, refund := "", int64(0)
		if k, ok := b.Bookings[booking.BookingID(id)]; ok {
			booked, refund = k.Status.String(), k.Refund
		}
		v.Holds = append(v.Holds, holdView(x.State, booked, live, x.Until, refund))
		if x.State == booking.HoldHeld && !live { // not settled: counted still, and free for the next
			v.Places[int(x.Customer[1])] -= x.Places
			for _, u := range x.Units {
				v.Taken[u.Pool] -= int(u.N)
			}
		}
	}
	for c, n := range v.Places {
		if n == 0 {
			delete(v.Places, c)
		}
	}
	for _, id := range h.pays {
		i := slices.IndexFunc(b.Payments, func(p booking.Payment) bool { return p.ID == id })
		if i < 0 {
			v.Payments = append(v.Payments, "missing")
			continue
		}
		p := b.Payments[i]
		v.Payments = append(v.Payments, fmt.Sprintf("%v %d %d %d", p.Status, p.Charged.Amount, p.Owed, p.Refunded))
	}
	return v
}

func (h *History) compare(ctx context.Context) error {
	b, err := h.engine.Books(ctx, h.event.ID)
	if err != nil {
		return err
	}
	h.m.now = h.clock.Now()
	for _, v := range booking.Audit(b) {
		return fmt.Errorf("audit: %s: %s", v.Rule, v.Detail)
	}
	if len(b.Holds) != len(h.holds) || len(b.Payments) != len(h.pays) {
		return fmt.Errorf("%d holds and %d payments, the model has %d and %d", len(b.Holds), len(b.Payments), len(h.holds), len(h.pays))
	}
	if want, got := h.m.view(), h.view(b); !reflect.DeepEqual(want, got) {
		return fmt.Errorf("(-model +engine):\n%s", cmp.Diff(want, got))
	}
	return nil
}
