// Package simulator is a payment provider inside the process that misbehaves on demand: it tells twenty times or never, too late, out of order, charges
// another amount, and times out after it has done its work. It keeps an append-only ledger, so that it remembers what it charged when the program is
// killed, as a real provider would.
package simulator

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Limits. What goes over one that concerns the whole simulator is payment.ErrUnavailable; over one that concerns a call, ErrAction or payment.ErrDeclined.
const (
	MaxPayments         = 2_000_000
	MaxPendingCallbacks = 2_000_000
	MaxCallbacks        = 100       // of one action
	MaxDelay            = time.Hour // of the callbacks of one action
	MaxActions          = 1_000     // of one payment
	MaxRefunds          = 1_000     // of one payment
	maxTextBytes        = 2_048     // of each text in a call
)

// ErrAction says that an Action asks for what the simulator cannot do; the message names the field.
var ErrAction = errors.New("not an action of the simulator")

// Config is what a Simulator needs. Only Path, HTTPClient, Logger and Workers may be left out.
type Config struct {
	Path        string        // file of the ledger; empty: memory only
	CallbackURL func() string // where notices are POSTed; asked each time, because a listener on port 0 knows its address late; empty: not yet
	Secrets     []payment.Secret
	HTTPClient  *http.Client // must not follow redirects and needs a timeout; nil: one that does so
	Now         func() time.Time
	PayURL      func(paymentID string) string // the page on which the customer pays
	Logger      *slog.Logger                  // nil: none
	Workers     int                           // callbacks on their way at once; 0: 32
}

// Simulator is a payment.Provider. Use New.
type Simulator struct {
	config Config
	client *http.Client
	wake   chan struct{} // of one: a callback was added that may be due before the one that Run waits for

	mu       sync.Mutex // held for a write() to the page cache at most, never while something is sent
	ledger   *ledger
	sessions map[string]*session
	refunds  map[string]refund // by refund id
	due      dueHeap
	sequence uint64
	onTheWay int
	totals   Totals
	faults   [calls][]Fault
}

var _ payment.Provider = (*Simulator)(nil)

type session struct {
	price       money.Money
	expiresAt   time.Time
	page        string // return URL
	description string
	language    string
	status      payment.Status // Pending, Succeeded or Failed; Expired is a matter of the clock
	closed      bool
	charged     money.Money
	refunded    money.Money
	refunds     int
	actions     int
	told        int
}

type refund struct {
	paymentID string
	amount    money.Money
}

// New opens the ledger, if there is one, and knows again everything that it said before. A ledger that cannot be read is ErrLedger.
func New(c Config) (*Simulator, error) {
	switch {
	case c.CallbackURL == nil, c.Now == nil, c.PayURL == nil:
		return nil, errors.New("simulator: CallbackURL, Now and PayURL are needed")
	case len(c.Secrets) == 0:
		return nil, errors.New("simulator: a secret is needed to sign notices")
	}
	if c.Workers <= 0 {
		c.Workers = 32
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Simulator{
		config:   c,
		client:   c.HTTPClient,
		wake:     make(chan struct{}, 1),
		sessions: map[string]*session{},
		refunds:  map[string]refund{},
		totals:   Totals{Charged: map[string]int64{}, Refunded: map[string]int64{}},
	}
	if s.client == nil {
		s.client = newClient(c.Workers)
	}
	l, err := openLedger(c.Path, s.replay())
	if err != nil {
		return nil, err
	}
	s.ledger = l
	return s, nil
}

// CloseLedger ends the simulator after Run has returned. Calls that would write are payment.ErrUnavailable from then on.
func (s *Simulator) CloseLedger() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.close()
}

// Name is "simulator".
func (s *Simulator) Name() string { return "simulator" }

// A reference follows from the payment, so it is the same again after a kill between making it and writing it down.
func reference(paymentID string) string { return "sim_" + paymentID }

// Open makes a session, or answers the one that there is. See payment.Provider.
func (s *Simulator) Open(ctx context.Context, r payment.OpenRequest) (payment.Session, error) {
	var expiresAt time.Time
	err := s.faulty(ctx, CallOpen, func() (err error) { expiresAt, err = s.open(r); return err })
	if err != nil {
		return payment.Session{}, err
	}
	return payment.Session{Reference: reference(r.PaymentID), URL: s.config.PayURL(r.PaymentID), ExpiresAt: expiresAt}, nil
}

func (s *Simulator) open(r payment.OpenRequest) (expiresAt time.Time, err error) {
	for _, text := range []string{r.PaymentID, r.ReturnURL, r.Description, r.Language} {
		if len(text) > maxTextBytes {
			return time.Time{}, fmt.Errorf("%w: a text is longer than %d bytes", payment.ErrDeclined, maxTextBytes)
		}
	}
	if _, err := money.New(r.Price.Amount, r.Price.Currency); err != nil || r.Price.Currency == "" || r.Price.Amount <= 0 || r.PaymentID == "" {
		return time.Time{}, fmt.Errorf("%w: a payment needs an id and a price", payment.ErrDeclined)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.sessions[r.PaymentID]
	switch now := s.config.Now(); {
	case known && p.price != r.Price:
		return time.Time{}, fmt.Errorf("%w: payment %s is open with another price", payment.ErrDeclined, r.PaymentID)
	case known: // whatever became of it: a repetition answers the same
	case now.After(r.ExpiresAt):
		return time.Time{}, fmt.Errorf("%w: the session would be over already", payment.ErrDeclined)
	case len(s.sessions) >= MaxPayments:
		return time.Time{}, fmt.Errorf("%w: the simulator is full", payment.ErrUnavailable)
	default:
		err := s.record(record{
			Kind: recordOpen, Payment: r.PaymentID, At: now, Money: r.Price, Until: r.ExpiresAt,
			Page: r.ReturnURL, Description: r.Description, Language: r.Language,
		})
		if err != nil {
			return time.Time{}, err
		}
		p = s.sessions[r.PaymentID]
	}
	return p.expiresAt, nil
}

// Look tells what became of a payment. See payment.Provider.
func (s *Simulator) Look(ctx context.Context, paymentID string) (payment.State, error) {
	var out payment.State
	err := s.faulty(ctx, CallLook, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		out = s.state(paymentID)
		return nil
	})
	return out, err
}

// Close ends a session that is not paid. See payment.Provider; one that is not known is payment.ErrUnknownPayment.
func (s *Simulator) Close(ctx context.Context, paymentID string) (payment.State, error) {
	var out payment.State
	err := s.faulty(ctx, CallClose, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		p, known := s.sessions[paymentID]
		if !known {
			return fmt.Errorf("%w: %s", payment.ErrUnknownPayment, paymentID)
		}
		if p.status != payment.Succeeded && !p.closed {
			if err := s.record(record{Kind: recordClose, Payment: paymentID, At: s.config.Now()}); err != nil {
				return err
			}
		}
		out = s.state(paymentID)
		return nil
	})
	return out, err
}

// Refund gives money back. See payment.Provider.
func (s *Simulator) Refund(ctx context.Context, r payment.RefundRequest) error {
	return s.faulty(ctx, CallRefund, func() error { return s.refund(r) })
}

func (s *Simulator) refund(r payment.RefundRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.sessions[r.PaymentID]
	before, repeated := s.refunds[r.RefundID]
	switch {
	case repeated && before == refund{r.PaymentID, r.Amount}:
		return nil
	case repeated:
		return fmt.Errorf("%w: refund %s was made with another amount or payment", payment.ErrDeclined, r.RefundID)
	case !known:
		return fmt.Errorf("%w: %s", payment.ErrUnknownPayment, r.PaymentID)
	case r.RefundID == "" || len(r.RefundID) > maxTextBytes || r.Reference != reference(r.PaymentID):
		return fmt.Errorf("%w: a refund needs an id and the reference of its payment", payment.ErrDeclined)
	case p.status != payment.Succeeded:
		return fmt.Errorf("%w: nothing was charged for payment %s", payment.ErrDeclined, r.PaymentID)
	case r.Amount.Currency != p.charged.Currency || r.Amount.Amount <= 0 || r.Amount.Amount > p.charged.Amount-p.refunded.Amount:
		return fmt.Errorf("%w: refund of %v, but %v was charged and %v given back", payment.ErrDeclined, r.Amount, p.charged, p.refunded)
	case p.refunds >= MaxRefunds:
		return fmt.Errorf("%w: a payment has at most %d refunds", payment.ErrDeclined, MaxRefunds)
	}
	return s.record(record{Kind: recordRefund, Payment: r.PaymentID, At: s.config.Now(), Refund: r.RefundID, Money: r.Amount})
}

// state needs the lock.
func (s *Simulator) state(paymentID string) payment.State {
	p, known := s.sessions[paymentID]
	if !known {
		return payment.State{Status: payment.Unknown}
	}
	status := p.status
	if status == payment.Pending && s.over(p) {
		status = payment.Expired
	}
	return payment.State{Status: status, Reference: reference(paymentID), Charged: p.charged, Refunded: p.refunded}
}

func (s *Simulator) over(p *session) bool { return p.closed || s.config.Now().After(p.expiresAt) }

// Outcome is what the pretended customer's bank says.
type Outcome string

// The outcomes.
const (
	Succeed Outcome = "succeed"
	Fail    Outcome = "fail"
)

// Action is what the provider does next with a payment. Money moves at once; only the telling waits.
type Action struct {
	Outcome Outcome
	// Callbacks is how many times it tells: 0 is never, 20 is twenty times at once. Each is repeated until it is answered 2xx, so many times.
	Callbacks int
	Delay     time.Duration // until the callbacks
	// Amount and Currency are what is really charged; zero and empty: the price.
	Amount   int64
	Currency string
	// OutOfOrder adds a notice that the payment failed, told OutOfOrderLag after those of its success.
	OutOfOrder bool
	// DistinctIDs gives every callback an id of its own; otherwise they are one notice, delivered several times.
	DistinctIDs bool
	// Late lets the customer pay although the session is over.
	Late bool
}

// OutOfOrderLag is how much later than the success it contradicts a stale notice is told.
const OutOfOrderLag = time.Second

// Act makes the provider do something with a payment. A payment is charged once: to succeed again only tells again. Errors are ErrAction, payment.ErrUnknownPayment,
// payment.ErrDeclined for a session that is over (unless Late) or that is paid and told to fail, and payment.ErrUnavailable.
func (s *Simulator) Act(ctx context.Context, paymentID string, a Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.sessions[paymentID]
	now := s.config.Now()
	switch {
	case !known:
		return fmt.Errorf("%w: %s", payment.ErrUnknownPayment, paymentID)
	case p.status == payment.Succeeded && a.Outcome == Fail:
		return fmt.Errorf("%w: payment %s is paid", payment.ErrDeclined, paymentID)
	case p.status != payment.Succeeded && s.over(p) && !a.Late:
		return fmt.Errorf("%w: the session of payment %s is over", payment.ErrDeclined, paymentID)
	case p.actions >= MaxActions:
		return fmt.Errorf("%w: a payment has at most %d actions", ErrAction, MaxActions)
	case len(s.due)+s.onTheWay+a.Callbacks+1 > MaxPendingCallbacks:
		return fmt.Errorf("%w: too many callbacks are waiting", payment.ErrUnavailable)
	}
	r := record{Kind: recordAct, Payment: paymentID, At: now, Until: now.Add(a.Delay), Callbacks: a.Callbacks, OutOfOrder: a.OutOfOrder, DistinctIDs: a.DistinctIDs}
	if a.Outcome == Succeed {
		r.Money = p.price
		if a.Amount != 0 {
			r.Money.Amount = a.Amount
		}
		if a.Currency != "" {
			r.Money.Currency = a.Currency
		}
		if p.status == payment.Succeeded {
			r.Money = p.charged
		}
	}
	return s.record(r)
}

func (a Action) validate() error {
	switch {
	case a.Outcome != Succeed && a.Outcome != Fail:
		return fmt.Errorf("%w: outcome is %q or %q", ErrAction, Succeed, Fail)
	case a.Callbacks < 0 || a.Callbacks > MaxCallbacks:
		return fmt.Errorf("%w: callbacks is 0 to %d", ErrAction, MaxCallbacks)
	case a.Delay < 0 || a.Delay > MaxDelay:
		return fmt.Errorf("%w: the delay is 0 to %v", ErrAction, MaxDelay)
	case a.Amount < 0:
		return fmt.Errorf("%w: the amount is not negative", ErrAction)
	case a.Outcome == Fail && (a.Amount != 0 || a.Currency != "" || a.OutOfOrder):
		return fmt.Errorf("%w: amount, currency and outOfOrder go with %q", ErrAction, Succeed)
	}
	if a.Currency != "" {
		if _, err := money.New(a.Amount, a.Currency); err != nil {
			return fmt.Errorf("%w: %w", ErrAction, err)
		}
	}
	return nil
}

// record writes a fact down and lets it take effect; it needs the lock. What cannot be written does not happen.
func (s *Simulator) record(r record) error {
	if err := s.ledger.write(r); err != nil {
		return fmt.Errorf("%w: %w", payment.ErrUnavailable, err)
	}
	for _, cb := range s.apply(r) {
		s.push(cb)
	}
	return nil
}

// apply is the one place where the state changes, for a fact that happens as for one that is read back. It returns the callbacks that follow.
func (s *Simulator) apply(r record) []*callback {
	p := s.sessions[r.Payment]
	switch r.Kind {
	case recordOpen:
		zero := money.Money{Currency: r.Money.Currency}
		s.sessions[r.Payment] = &session{
			price: r.Money, expiresAt: r.Until, page: r.Page, description: r.Description, language: r.Language,
			status: payment.Pending, charged: zero, refunded: zero,
		}
		s.totals.Opened++
	case recordAct:
		p.actions++
		return s.applyAct(p, r)
	case recordClose:
		p.closed = true
	case recordRefund:
		p.refunds++
		p.refunded.Amount += r.Money.Amount
		s.refunds[r.Refund] = refund{r.Payment, r.Money}
		s.totals.Refunded[r.Money.Currency] += r.Money.Amount
	case recordTold:
		p.told++
	case recordGaveUp: // only ends the callback, which is not among the state
	}
	return nil
}

func (s *Simulator) applyAct(p *session, r record) []*callback {
	status := payment.Failed
	if r.Money.Amount > 0 {
		status = payment.Succeeded
		if p.status != payment.Succeeded {
			p.charged, p.refunded.Currency = r.Money, r.Money.Currency
			s.totals.Paid++
			s.totals.Charged[r.Money.Currency] += r.Money.Amount
		}
	}
	p.status = status
	callbacks := make([]*callback, 0, r.Callbacks+1)
	for n := range r.Callbacks {
		cb := &callback{
			key: callbackKey{r.Payment, p.actions, n}, due: r.Until, at: r.At, status: status, charged: r.Money,
			noticeID: noticeID(r.Payment, p.actions, 0),
		}
		if r.DistinctIDs {
			cb.noticeID = noticeID(r.Payment, p.actions, n)
		}
		callbacks = append(callbacks, cb)
	}
	if r.OutOfOrder {
		// It tells of an attempt before the one that succeeded, so its own time is earlier.
		callbacks = append(callbacks, &callback{
			key: callbackKey{r.Payment, p.actions, r.Callbacks}, due: r.Until.Add(OutOfOrderLag), at: r.At.Add(-OutOfOrderLag),
			status: payment.Failed, noticeID: noticeID(r.Payment, p.actions, r.Callbacks),
		})
	}
	return callbacks
}

// replay returns what reads the ledger back: it checks that each record follows from those before, and at the end (nil) queues the callbacks that were never told.
func (s *Simulator) replay() func(*record) error {
	untold := map[callbackKey]*callback{}
	return func(r *record) error {
		if r == nil {
			for _, cb := range untold {
				s.push(cb)
			}
			return nil
		}
		if _, known := s.sessions[r.Payment]; known == (r.Kind == recordOpen) || !slices.Contains(kinds, r.Kind) {
			return fmt.Errorf("record %q of payment %q is out of place", r.Kind, r.Payment)
		}
		if r.Kind == recordTold || r.Kind == recordGaveUp {
			delete(untold, callbackKey{r.Payment, r.Action, r.Number})
		}
		for _, cb := range s.apply(*r) {
			untold[cb.key] = cb
		}
		return nil
	}
}

// push queues a callback and wakes Run if it has become the first; it needs the lock.
func (s *Simulator) push(cb *callback) {
	s.sequence++
	cb.sequence = s.sequence
	heap.Push(&s.due, cb)
	if s.due[0] == cb {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
