package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// shop is the receiver: it reads notices as the engine does and answers what the test says.
type shop struct {
	mu      sync.Mutex
	reader  *Simulator
	now     func() time.Time
	answer  func(n int) int           // status for the nth delivery, from 1; 0: the connection breaks
	block   func(ctx context.Context) // before answering
	notices []payment.Notice
	tries   int
	busy    int
	busiest int
}

// RoundTrip lets a simulator reach the shop without a network, so that synctest can move the time.
func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.tries++
	n := s.tries
	s.busy++
	s.busiest = max(s.busiest, s.busy)
	block := s.block
	s.mu.Unlock()
	if block != nil {
		block(r.Context())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	status := http.StatusOK
	if s.answer != nil {
		status = s.answer(n)
	}
	if status == 0 || r.Context().Err() != nil {
		return nil, errors.New("connection reset")
	}
	if status == http.StatusOK {
		notice, err := s.reader.ReadNotice(r.Header, body, s.now())
		if err != nil {
			return nil, err
		}
		s.notices = append(s.notices, notice)
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: http.NoBody, Request: r}, nil
}

func (s *shop) told() []payment.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notices)
}

func withShop(t *testing.T, c Config) (*Simulator, *shop) {
	t.Helper()
	receiver := &shop{now: c.Now}
	if c.CallbackURL == nil {
		c.CallbackURL = func() string { return "http://shop.example/callback" }
	}
	c.HTTPClient = &http.Client{Transport: receiver}
	s := open(t, c)
	receiver.reader = s
	return s, receiver
}

// running starts Run in a synctest bubble, whose clock begins at another date than start, and returns what stops it.
func running(t *testing.T, s *Simulator) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	return func() { cancel(); <-done }
}

func openNow(t *testing.T, s *Simulator, id string) {
	t.Helper()
	r := request(id)
	r.ExpiresAt = s.config.Now().Add(8 * time.Minute)
	if _, err := s.Open(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func TestANoticeTellsWhatHappened(t *testing.T) {
	t.Parallel()
	c := newClock()
	s, shop := withShop(t, Config{Now: c.Now})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1, Amount: 5, Currency: "USD"})
	mustOpen(t, s, "p2")
	mustAct(t, s, "p2", Action{Outcome: Fail, Callbacks: 1})
	c.add(time.Minute)
	if got := s.RunOnce(t.Context()); got != 2 {
		t.Fatalf("told %d", got)
	}
	want := map[string]payment.Notice{
		"p1": {ID: noticeID("p1", 1, 0), PaymentID: "p1", Reference: "sim_p1", Status: payment.Succeeded, Charged: money.Money{Amount: 5, Currency: "USD"}, At: start},
		"p2": {ID: noticeID("p2", 1, 0), PaymentID: "p2", Reference: "sim_p2", Status: payment.Failed, At: start},
	}
	for _, n := range shop.told() {
		if n != want[n.PaymentID] {
			t.Errorf("got %+v, want %+v", n, want[n.PaymentID])
		}
	}
	if r, _ := s.Report("p1"); r.CallbacksSent != 1 {
		t.Errorf("report %+v", r)
	}
	if got := s.RunOnce(t.Context()); got != 0 {
		t.Errorf("told %d again", got)
	}
}

// C-30: twenty at once, all of them one notice. C-35: or twenty notices about one payment.
func TestTellsTwentyTimesAtOnce(t *testing.T) {
	t.Parallel()
	for _, distinct := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, shop := withShop(t, Config{Now: time.Now})
			all := make(chan struct{})
			shop.block = func(context.Context) { <-all }
			stop := running(t, s)
			openNow(t, s, "p1")
			mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 20, DistinctIDs: distinct})
			synctest.Wait()
			if shop.busiest != 20 {
				t.Errorf("%d at once", shop.busiest)
			}
			close(all)
			synctest.Wait()
			ids := map[string]int{}
			for _, n := range shop.told() {
				ids[n.ID]++
			}
			if want := map[bool]int{false: 1, true: 20}[distinct]; len(shop.told()) != 20 || len(ids) != want {
				t.Errorf("distinct %v: %d notices with %d ids", distinct, len(shop.told()), len(ids))
			}
			if r, _ := s.Report("p1"); r.CallbacksSent != 20 || r.Charged != eur12 {
				t.Errorf("report %+v", r)
			}
			stop()
		})
	}
}

// C-34
func TestNeverTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, shop := withShop(t, Config{Now: time.Now})
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed})
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if len(shop.told()) != 0 {
			t.Error("told")
		}
		wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
		stop()
	})
}

// C-32: the money moves at once, the news comes when the hold has long been over.
func TestTellsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, shop := withShop(t, Config{Now: time.Now})
		stop := running(t, s)
		openNow(t, s, "late")
		openNow(t, s, "soon")
		mustAct(t, s, "late", Action{Outcome: Succeed, Callbacks: 1, Delay: 20 * time.Minute})
		mustAct(t, s, "soon", Action{Outcome: Succeed, Callbacks: 1, Delay: 5 * time.Minute})
		wantState(t, s, "late", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
		for _, want := range []int{0, 1, 1, 1, 2} {
			synctest.Wait()
			if got := len(shop.told()); got != want {
				t.Errorf("%d told, want %d", got, want)
			}
			<-time.After(5 * time.Minute)
		}
		stop()
	})
}

// C-31
func TestTellsOutOfOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, shop := withShop(t, Config{Now: time.Now})
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 2, OutOfOrder: true})
		<-time.After(OutOfOrderLag)
		synctest.Wait()
		told := shop.told()
		if len(told) != 3 || told[1].Status != payment.Succeeded || told[2].Status != payment.Failed {
			t.Fatalf("told %+v", told)
		}
		if told[2].ID == told[0].ID || !told[2].At.Before(told[0].At) || told[2].Charged != (money.Money{}) {
			t.Errorf("the stale notice is %+v after %+v", told[2], told[0])
		}
		wantState(t, s, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
		stop()
	})
}

func TestRepeatsUntilItIsAnsweredAndSignsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, shop := withShop(t, Config{Now: time.Now})
		answers := []int{http.StatusServiceUnavailable, 0, http.StatusUnauthorized, http.StatusFound, 500, 500, 500, 500, 500, 500, 500, 500, http.StatusOK}
		shop.answer = func(n int) int { return answers[n-1] }
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1})
		// After more than the tolerance: only with a fresh timestamp can the shop's check pass.
		<-time.After(payment.Tolerance + 2*time.Minute)
		synctest.Wait()
		if len(shop.told()) != 1 || shop.tries != len(answers) {
			t.Errorf("%d told in %d tries", len(shop.told()), shop.tries)
		}
		stop()
	})
}

func TestGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		s, shop := withShop(t, Config{Now: time.Now, Path: path})
		shop.answer = func(int) int { return http.StatusInternalServerError }
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1})
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if shop.tries != MaxAttempts {
			t.Errorf("%d tries", shop.tries)
		}
		stop()
		if err := s.CloseLedger(); err != nil {
			t.Fatal(err)
		}
		again, _ := withShop(t, Config{Now: time.Now, Path: path})
		if got := again.RunOnce(t.Context()); got != 0 {
			t.Errorf("%d told after a restart", got)
		}
		if err := again.CloseLedger(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatWasNotToldIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		s, first := withShop(t, Config{Now: time.Now, Path: path})
		first.answer = func(n int) int { return map[bool]int{true: 200, false: 500}[n <= 3] }
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 5, DistinctIDs: true})
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1, Delay: time.Hour})
		synctest.Wait()
		first.mu.Lock()
		first.block = func(ctx context.Context) { <-ctx.Done() } // stopped in the middle of a try
		first.mu.Unlock()
		<-time.After(RetryFirst)
		synctest.Wait()
		stop()
		if err := s.CloseLedger(); err != nil {
			t.Fatal(err)
		}

		s, second := withShop(t, Config{Now: time.Now, Path: path})
		stop = running(t, s)
		synctest.Wait()
		if got := len(second.told()); got != 2 {
			t.Errorf("%d told at once after the restart", got)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		ids := map[string]bool{}
		for _, n := range slices.Concat(first.told(), second.told()) {
			ids[n.ID] = true
		}
		if len(second.told()) != 3 || len(ids) != 6 {
			t.Errorf("%d told, %d ids", len(second.told()), len(ids))
		}
		if r, _ := s.Report("p1"); r.CallbacksSent != 6 {
			t.Errorf("report %+v", r)
		}
		stop()
		if err := s.CloseLedger(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWaitsForAnAddressToTellTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var address string
		s, shop := withShop(t, Config{Now: time.Now, CallbackURL: func() string {
			mu.Lock()
			defer mu.Unlock()
			return address
		}})
		stop := running(t, s)
		openNow(t, s, "p1")
		mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1})
		synctest.Wait()
		mu.Lock()
		address = "http://shop.example/callback"
		mu.Unlock()
		<-time.After(RetryFirst)
		synctest.Wait()
		if got := len(shop.told()); got != 1 {
			t.Errorf("told %d", got)
		}
		stop()
	})
}

// Over a real connection, with the client that it makes itself. C-36: nor does it carry a signed notice to where it is redirected.
func TestTellsOverHTTP(t *testing.T) {
	t.Parallel()
	redirected := make(chan struct{}, 1)
	notices := make(chan payment.Notice, 2)
	var s *Simulator
	mux := http.NewServeMux()
	mux.HandleFunc("POST /callback", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n, err := s.ReadNotice(r.Header, body, start)
		if err != nil {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		notices <- n
	})
	mux.HandleFunc("POST /moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { redirected <- struct{}{} })
	server := httptest.NewServer(mux)
	defer server.Close()
	path := "/moved"
	s = open(t, Config{Now: newClock().Now, CallbackURL: func() string { return server.URL + path }})
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1})
	if got := s.RunOnce(t.Context()); got != 0 {
		t.Errorf("told %d by a redirect", got)
	}
	path = "/callback"
	mustAct(t, s, "p1", Action{Outcome: Succeed, Callbacks: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	if n := <-notices; n.PaymentID != "p1" || n.Charged != eur12 {
		t.Errorf("notice %+v", n)
	}
	cancel()
	<-done
	if len(redirected) != 0 {
		t.Error("followed a redirect")
	}
}

func TestReadNoticeBelievesOnlyWhatIsSigned(t *testing.T) {
	t.Parallel()
	secret := payment.NewSecret()
	s := open(t, Config{Now: newClock().Now, Secrets: []payment.Secret{secret}})
	const good = `{"type":"payment.succeeded","timestamp":"2026-06-01T20:00:00Z","data":{"payment":"p1","reference":"sim_p1","charged":{"amount":1200,"currency":"EUR"}}}`
	cases := []struct {
		name, body string
		secret     payment.Secret
		want       error
		status     payment.Status
	}{
		{"authentic", good, secret, nil, payment.Succeeded},
		{"wrong key", good, payment.NewSecret(), payment.ErrNotAuthentic, ""},
		{"of another kind", strings.Replace(good, "succeeded", "disputed", 1), secret, nil, payment.Unknown},
		{"not JSON", good[1:], secret, payment.ErrNotAuthentic, ""},
		{"success without money", strings.Replace(good, "1200", "0", 1), secret, payment.ErrNotAuthentic, ""},
		{"failure with money", strings.Replace(good, "succeeded", "failed", 1), secret, payment.ErrNotAuthentic, ""},
		{"about nothing", strings.Replace(good, `"payment":"p1",`, "", 1), secret, payment.ErrNotAuthentic, ""},
	}
	for _, c := range cases {
		h := http.Header{}
		payment.Sign(h, []payment.Secret{c.secret}, "ntc_1", start, []byte(c.body))
		n, err := s.ReadNotice(h, []byte(c.body), start)
		if !errors.Is(err, c.want) || n.Status != c.status {
			t.Errorf("%s: %+v %v", c.name, n, err)
		}
		if err != nil && (n != payment.Notice{} || strings.Contains(err.Error(), "sim_")) {
			t.Errorf("%s: something of it got out: %+v %v", c.name, n, err)
		}
	}
	h := http.Header{}
	payment.Sign(h, []payment.Secret{secret}, "ntc_1", start, []byte(good))
	if _, err := s.ReadNotice(h, []byte(good), start.Add(payment.Tolerance+time.Second)); !errors.Is(err, payment.ErrNotAuthentic) { // C-37
		t.Error(err)
	}
}

func TestEachSeesEveryPayment(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Now: newClock().Now})
	for n := range 10 {
		mustOpen(t, s, fmt.Sprint("p", n))
	}
	mustAct(t, s, "p3", Action{Outcome: Succeed})
	seen := map[string]payment.Status{}
	s.Each(func(id string, r Report) {
		seen[id] = r.Status
		s.Report(id) // the lock is free
	})
	if len(seen) != 10 || seen["p3"] != payment.Succeeded || seen["p4"] != payment.Pending {
		t.Errorf("%v", seen)
	}
}
