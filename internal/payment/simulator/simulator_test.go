package simulator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start = time.Date(2026, 6, 1, 20, 0, 0, 0, time.UTC)
	eur12 = money.Money{Amount: 1200, Currency: "EUR"}
)

// clock is set by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// tester is what *testing.T, *testing.B and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func open(t tester, c Config) *Simulator {
	t.Helper()
	if c.Secrets == nil {
		c.Secrets = []payment.Secret{payment.NewSecret()}
	}
	if c.CallbackURL == nil {
		c.CallbackURL = func() string { return "" }
	}
	c.PayURL = func(id string) string { return "https://pay.example/" + id }
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(id string) payment.OpenRequest {
	return payment.OpenRequest{PaymentID: id, Price: eur12, ExpiresAt: start.Add(8 * time.Minute), ReturnURL: "https://shop.example/back", Description: "Two seats", Language: "de"}
}

func mustOpen(t tester, s *Simulator, id string) payment.Session {
	t.Helper()
	session, err := s.Open(context.Background(), request(id))
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func mustAct(t tester, s *Simulator, id string, a Action) {
	t.Helper()
	if err := s.Act(context.Background(), id, a); err != nil {
		t.Fatal(err)
	}
}

func refundOf(id, refundID string, amount int64) payment.RefundRequest {
	return payment.RefundRequest{RefundID: refundID, PaymentID: id, Reference: reference(id), Amount: money.Money{Amount: amount, Currency: "EUR"}}
}

func wantState(t *testing.T, s *Simulator, id string, want payment.State) {
	t.Helper()
	got, err := s.Look(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if want.Status != payment.Unknown {
		want.Reference = reference(id)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("state of %s (-want +got):\n%s", id, d)
	}
}

func eur(n int64) money.Money { return money.Money{Amount: n, Currency: "EUR"} }

func TestOpenAgainAnswersTheSameSession(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Config{Now: c.Now})
	first := mustOpen(t, s, "p1")
	again := request("p1")
	again.ExpiresAt = again.ExpiresAt.Add(time.Hour)
	if got, err := s.Open(t.Context(), again); err != nil || got != first {
		t.Errorf("again: %v %v, want %v", got, err, first)
	}
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	c.add(time.Hour)
	if got := mustOpen(t, s, "p1"); got != first {
		t.Errorf("after it was paid and over: %v, want %v", got, first)
	}
	if got := s.Totals().Opened; got != 1 {
		t.Errorf("%d sessions", got)
	}
	other := request("p1")
	other.Price.Amount++
	if _, err := s.Open(t.Context(), other); !errors.Is(err, payment.ErrDeclined) {
		t.Errorf("another price: %v", err)
	}
	other = request("p1")
	other.Price.Currency = "USD"
	if _, err := s.Open(t.Context(), other); !errors.Is(err, payment.ErrDeclined) {
		t.Errorf("another currency: %v", err)
	}
}

func TestOpenDeclinesWhatCannotBePaid(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	cases := map[string]func(r *payment.OpenRequest){
		"no id":       func(r *payment.OpenRequest) { r.PaymentID = "" },
		"no price":    func(r *payment.OpenRequest) { r.Price.Amount = 0 },
		"less":        func(r *payment.OpenRequest) { r.Price.Amount = -1 },
		"no currency": func(r *payment.OpenRequest) { r.Price.Currency = "" },
		"over":        func(r *payment.OpenRequest) { r.ExpiresAt = start.Add(-time.Nanosecond) },
		"too long":    func(r *payment.OpenRequest) { r.Description = string(make([]byte, maxTextBytes+1)) },
	}
	for name, alter := range cases {
		r := request("p1")
		alter(&r)
		if _, err := s.Open(t.Context(), r); !errors.Is(err, payment.ErrDeclined) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantState(t, s, "p1", payment.State{Status: payment.Unknown})
}

func TestASessionIsPaidOnceHoweverOftenTheCustomerPays(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	wantState(t, s, "p1", payment.State{Status: payment.Pending, Charged: eur(0), Refunded: eur(0)})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := s.Act(t.Context(), "p1", Action{Outcome: Succeed}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
	if got := s.Totals(); got.Paid != 1 || got.Charged["EUR"] != 1200 {
		t.Errorf("totals %+v", got)
	}
	if err := s.Act(t.Context(), "p1", Action{Outcome: Fail}); !errors.Is(err, payment.ErrDeclined) {
		t.Errorf("fail after it was paid: %v", err)
	}
}

func TestAFailedAttemptMayBeFollowedByAnother(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Fail})
	wantState(t, s, "p1", payment.State{Status: payment.Failed, Charged: eur(0), Refunded: eur(0)})
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
}

func TestASessionThatIsOverCannotBePaidUnlessLate(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Simulator, *clock) error{
		"expired": func(_ *Simulator, c *clock) error { c.add(8*time.Minute + time.Nanosecond); return nil },
		"closed":  func(s *Simulator, _ *clock) error { _, err := s.Close(context.Background(), "p1"); return err },
	} {
		c := newClock()
		s := open(t, Config{Now: c.Now})
		mustOpen(t, s, "p1")
		if err := end(s, c); err != nil {
			t.Fatal(err)
		}
		if err := s.Act(t.Context(), "p1", Action{Outcome: Succeed}); !errors.Is(err, payment.ErrDeclined) {
			t.Errorf("%s: %v", name, err)
		}
		if page, _ := s.Page("p1"); page.Payable {
			t.Errorf("%s: page says payable", name)
		}
		wantState(t, s, "p1", payment.State{Status: payment.Expired, Charged: eur(0), Refunded: eur(0)})
		mustAct(t, s, "p1", Action{Outcome: Succeed, Late: true})
		wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
	}
}

func TestASessionCanBePaidUntilItsLastInstant(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Config{Now: c.Now})
	mustOpen(t, s, "p1")
	c.add(8 * time.Minute)
	mustAct(t, s, "p1", Action{Outcome: Succeed})
}

func TestCloseTellsWhenItIsTooLateToClose(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	for range 2 {
		got, err := s.Close(t.Context(), "p1")
		if err != nil || got.Status != payment.Succeeded || got.Charged != eur12 {
			t.Errorf("%v %v", got, err)
		}
	}
	if _, err := s.Close(t.Context(), "p2"); !errors.Is(err, payment.ErrUnknownPayment) {
		t.Error(err)
	}
	wantState(t, s, "p2", payment.State{Status: payment.Unknown})
}

func TestPayingAndClosingAtOnceHaveOneWinner(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	for n := range 200 {
		id := fmt.Sprint("p", n)
		mustOpen(t, s, id)
		var paid, closed bool
		var wg sync.WaitGroup
		wg.Go(func() { paid = s.Act(t.Context(), id, Action{Outcome: Succeed}) == nil })
		wg.Go(func() {
			state, err := s.Close(t.Context(), id)
			closed = err == nil && state.Status == payment.Expired
		})
		wg.Wait()
		if paid == closed {
			t.Fatalf("%s: paid %v, closed %v", id, paid, closed)
		}
	}
}

// C-64: the simulator charges what it was told to, so that the engine can be shown to notice.
func TestAWrongAmountOrCurrencyIsReallyCharged(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed, Amount: 1, Currency: "USD"})
	wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: money.Money{Amount: 1, Currency: "USD"}, Refunded: money.Money{Currency: "USD"}})
	if err := s.Refund(t.Context(), refundOf("p1", "r1", 1)); !errors.Is(err, payment.ErrDeclined) {
		t.Errorf("refund in the currency of the price: %v", err)
	}
	r := refundOf("p1", "r1", 1)
	r.Amount.Currency = "USD"
	if err := s.Refund(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// C-33
func TestRefundHappensOncePerID(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.Refund(t.Context(), refundOf("p1", "r1", 700)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(700)})
	if err := s.Refund(t.Context(), refundOf("p1", "r2", 500)); err != nil {
		t.Error(err)
	}
	if got := s.Totals().Refunded["EUR"]; got != 1200 {
		t.Errorf("refunded %d in all", got)
	}
}

func TestRefundDeclines(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	for _, id := range []string{"p1", "p2", "unpaid"} {
		mustOpen(t, s, id)
	}
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	mustAct(t, s, "p2", Action{Outcome: Succeed})
	if err := s.Refund(t.Context(), refundOf("p1", "r1", 700)); err != nil {
		t.Fatal(err)
	}
	otherReference := refundOf("p1", "r2", 1)
	otherReference.Reference = reference("p2")
	cases := []struct {
		name string
		r    payment.RefundRequest
		want error
	}{
		{"more than is left", refundOf("p1", "r2", 501), payment.ErrDeclined},
		{"nothing", refundOf("p1", "r2", 0), payment.ErrDeclined},
		{"less than nothing", refundOf("p1", "r2", -1), payment.ErrDeclined},
		{"same id, other amount", refundOf("p1", "r1", 1), payment.ErrDeclined},
		{"same id, other payment", refundOf("p2", "r1", 700), payment.ErrDeclined},
		{"no id", refundOf("p1", "", 1), payment.ErrDeclined},
		{"reference of another payment", otherReference, payment.ErrDeclined},
		{"not paid", refundOf("unpaid", "r2", 1), payment.ErrDeclined},
		{"unknown", refundOf("p3", "r2", 1), payment.ErrUnknownPayment},
	}
	for _, c := range cases {
		if err := s.Refund(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if got := s.Totals().Refunded["EUR"]; got != 700 {
		t.Errorf("refunded %d in all", got)
	}
}

func TestActRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	for name, a := range map[string]Action{
		"no outcome":         {},
		"too many callbacks": {Outcome: Succeed, Callbacks: MaxCallbacks + 1},
		"less than none":     {Outcome: Succeed, Callbacks: -1},
		"too slow":           {Outcome: Succeed, Delay: MaxDelay + 1},
		"too quick":          {Outcome: Succeed, Delay: -1},
		"negative":           {Outcome: Succeed, Amount: -1},
		"no such currency":   {Outcome: Succeed, Currency: "EURO"},
		"failed with amount": {Outcome: Fail, Amount: 1},
	} {
		if err := s.Act(t.Context(), "p1", a); !errors.Is(err, ErrAction) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Act(t.Context(), "p2", Action{Outcome: Succeed}); !errors.Is(err, payment.ErrUnknownPayment) {
		t.Error(err)
	}
	wantState(t, s, "p1", payment.State{Status: payment.Pending, Charged: eur(0), Refunded: eur(0)})
}

// C-39: the work is done although the answer is lost, and a repetition does not do it again.
func TestALostAnswerLeavesTheWorkDone(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	s.Break(CallOpen, Fault{Times: 1, Lose: true})
	if _, err := s.Open(t.Context(), request("p1")); !errors.Is(err, payment.ErrUnavailable) {
		t.Fatal(err)
	}
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	s.Break(CallRefund, Fault{Times: 2, Lose: true})
	for range 2 {
		if err := s.Refund(t.Context(), refundOf("p1", "r1", 1200)); !errors.Is(err, payment.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur12})
	if err := s.Refund(t.Context(), refundOf("p1", "r1", 1200)); err != nil {
		t.Error(err)
	}
	if got := s.Totals(); got.Opened != 1 || got.Refunded["EUR"] != 1200 {
		t.Errorf("totals %+v", got)
	}
}

func TestARefusedCallDoesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	s.Break(CallOpen, Fault{Times: 2, Refuse: true})
	for range 2 {
		if _, err := s.Open(t.Context(), request("p1")); !errors.Is(err, payment.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	wantState(t, s, "p1", payment.State{Status: payment.Unknown})
	mustOpen(t, s, "p1")
	s.Break(CallLook, Fault{Times: -1, Refuse: true})
	for range 3 {
		if _, err := s.Look(t.Context(), "p1"); !errors.Is(err, payment.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	s.Repair()
	wantState(t, s, "p1", payment.State{Status: payment.Pending, Charged: eur(0), Refunded: eur(0)})
}

func TestASlowCallKeepsToItsCallersPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Now: func() time.Time { return start }})
		s.Break(CallOpen, Fault{Times: 3, Delay: 10 * time.Second})
		began := time.Now()
		mustOpen(t, s, "p1")
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("took %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Open(ctx, request("p2"))
		if !errors.Is(err, payment.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wantState(t, s, "p2", payment.State{Status: payment.Unknown})
	})
}

// The simulator against the plainest model of a provider, with restarts from the ledger in between. C-31, C-40
func TestSimulatorAgreesWithAModelOverRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var run int
	rapid.Check(t, func(t *rapid.T) {
		run++
		c := newClock()
		config := Config{Path: filepath.Join(dir, fmt.Sprint(run)), Now: c.Now}
		s := open(t, config)
		type entry struct {
			status            payment.Status
			over              bool
			charged, refunded int64
		}
		model := map[string]*entry{}
		refunds := map[string]string{}
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				r := request(id)
				r.ExpiresAt = c.Now().Add(8 * time.Minute)
				if _, err := s.Open(context.Background(), r); err != nil {
					t.Fatal(err)
				}
				if model[id] == nil {
					model[id] = &entry{status: payment.Pending}
				}
			},
			"act": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				a := Action{Outcome: rapid.SampledFrom([]Outcome{Succeed, Fail}).Draw(t, "outcome"), Callbacks: rapid.IntRange(0, 3).Draw(t, "callbacks"), Late: rapid.Bool().Draw(t, "late")}
				m := model[id]
				ok := m != nil && (m.status == payment.Succeeded || !m.over || a.Late) && (m.status != payment.Succeeded || a.Outcome == Succeed)
				if err := s.Act(context.Background(), id, a); (err == nil) != ok {
					t.Fatalf("act: %v, model says %v", err, ok)
				}
				if ok && a.Outcome == Succeed {
					m.status, m.charged = payment.Succeeded, 1200
				} else if ok {
					m.status = payment.Failed
				}
			},
			"close": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if _, err := s.Close(context.Background(), id); (err == nil) != (model[id] != nil) {
					t.Fatal(err)
				}
				if m := model[id]; m != nil && m.status != payment.Succeeded {
					m.over = true
				}
			},
			"refund": func(t *rapid.T) {
				id, rid := ids.Draw(t, "id"), rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "refund")
				amount := rapid.Int64Range(1, 1200).Draw(t, "amount")
				call := fmt.Sprint(id, amount)
				m := model[id]
				repeated := refunds[rid] != ""
				ok := repeated && refunds[rid] == call || !repeated && m != nil && m.refunded+amount <= m.charged
				if err := s.Refund(context.Background(), refundOf(id, rid, amount)); (err == nil) != ok {
					t.Fatalf("refund: %v, model says %v", err, ok)
				}
				if ok && !repeated {
					refunds[rid] = call
					m.refunded += amount
				}
			},
			"time passes": func(_ *rapid.T) {
				c.add(9 * time.Minute)
				for _, m := range model {
					m.over = true
				}
			},
			"restart": func(t *rapid.T) {
				if err := s.CloseLedger(); err != nil {
					t.Fatal(err)
				}
				s = open(t, config)
			},
			"": func(t *rapid.T) {
				var charged, refunded int64
				for _, id := range []string{"a", "b", "c"} {
					got, err := s.Look(context.Background(), id)
					if err != nil {
						t.Fatal(err)
					}
					want := payment.State{Status: payment.Unknown}
					if m := model[id]; m != nil {
						want = payment.State{Status: m.status, Reference: reference(id), Charged: eur(m.charged), Refunded: eur(m.refunded)}
						if m.over && m.status == payment.Pending {
							want.Status = payment.Expired
						}
						charged += m.charged
						refunded += m.refunded
					}
					if got != want {
						t.Fatalf("%s is %+v, want %+v", id, got, want)
					}
				}
				if got := s.Totals(); got.Opened != len(model) || got.Charged["EUR"] != charged || got.Refunded["EUR"] != refunded {
					t.Fatalf("totals %+v, want %d opened, %d charged, %d refunded", got, len(model), charged, refunded)
				}
			},
		})
		if err := s.CloseLedger(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPageShowsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	mustOpen(t, s, "p1")
	got, ok := s.Page("p1")
	r := request("p1")
	want := Page{Price: r.Price, ExpiresAt: r.ExpiresAt, ReturnURL: r.ReturnURL, Description: r.Description, Language: r.Language, Status: payment.Pending, Payable: true}
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("(-want +got):\n%s", d)
	}
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	if got, _ := s.Page("p1"); got.Payable || got.Status != payment.Succeeded {
		t.Errorf("after paying: %+v", got)
	}
	if _, ok := s.Page("p2"); ok {
		t.Error("a page of an unknown payment")
	}
}

func BenchmarkPayment(b *testing.B) {
	s := open(b, Config{Path: filepath.Join(b.TempDir(), "ledger"), Now: time.Now})
	r := request("")
	r.ExpiresAt = time.Now().Add(time.Hour)
	for n := 0; b.Loop(); n++ {
		r.PaymentID = fmt.Sprint("pay_", n)
		if _, err := s.Open(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		if err := s.Act(context.Background(), r.PaymentID, Action{Outcome: Succeed}); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.CloseLedger(); err != nil {
		b.Fatal(err)
	}
}
