package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/api/client"
)

func TestBadCheckoutsNameTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	s, err := w.client.NewSession(ctx)
	w.must(err)
	me, auth := w.client.As(s), "Authorization: Bearer "+s.Token
	cinema, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	flight, err := me.PlaceHold(ctx, w.flight("flight", plenty()), client.HoldRequest{Seats: []string{"12A", "12B"}})
	w.must(err)
	const key = "Idempotency-Key: k"
	for name, c := range map[string]struct {
		hold, body, key string
		status          int
		code, pointer   string
	}{
		"no key":               {cinema.HoldID, `{"email":"a@example.org","name":"A"}`, "", 400, "idempotency-key-missing", ""},
		"no mail":              {cinema.HoldID, `{"name":"A"}`, key, 422, "validation", "#/email"},
		"no name":              {cinema.HoldID, `{"email":"a@example.org"}`, key, 422, "validation", "#/name"},
		"empty name":           {cinema.HoldID, `{"email":"a@example.org","name":""}`, key, 422, "validation", "#/name"},
		"blank name":           {cinema.HoldID, `{"email":"a@example.org","name":"  "}`, key, 422, "validation", "#/name"},
		"name with a line end": {cinema.HoldID, `{"email":"a@example.org","name":"A\r\nBcc: b"}`, key, 422, "validation", "#/name"},
		"mail without domain":  {cinema.HoldID, `{"email":"a","name":"A"}`, key, 422, "validation", "#/email"},
		"mail with a name":     {cinema.HoldID, `{"email":"A <a@example.org>","name":"A"}`, key, 422, "validation", "#/email"},
		"two mails":            {cinema.HoldID, `{"email":"a@example.org,b@example.org","name":"A"}`, key, 422, "validation", "#/email"},
		"mail with a line end": {cinema.HoldID, `{"email":"a@example.org\nx","name":"A"}`, key, 422, "validation", "#/email"},
		"strange language":     {cinema.HoldID, `{"email":"a@example.org","name":"A","language":"e n"}`, key, 422, "validation", "#/language"},
		"long name":            {cinema.HoldID, `{"email":"a@example.org","name":"` + strings.Repeat("A", 201) + `"}`, key, 422, "validation", "#/name"},
		"no passengers":        {flight.HoldID, `{"email":"a@example.org","name":"A"}`, key, 422, "passengers-required", "#/passengers"},
		"one of two":           {flight.HoldID, `{"email":"a@example.org","name":"A","passengers":[{"name":"A"}]}`, key, 422, "passengers-required", "#/passengers"},
		"nameless passenger":   {flight.HoldID, `{"email":"a@example.org","name":"A","passengers":[{"name":"A"},{"name":""}]}`, key, 422, "validation", "#/passengers/1/name"},
		"passenger as text":    {flight.HoldID, `{"email":"a@example.org","name":"A","passengers":["A","B"]}`, key, 422, "validation", "#/passengers/0"},
		"no such hold":         {"hld_nonsense", `{"email":"a@example.org","name":"A"}`, key, 404, "not-found", ""},
	} {
		fields := []string{auth}
		if c.key != "" {
			fields = append(fields, c.key)
		}
		a := w.send(http.MethodPost, "/v1/holds/"+c.hold+"/checkout", c.body, fields...)
		pointer := ""
		if list, ok := a.field("errors").([]any); ok && len(list) > 0 {
			pointer, _ = list[0].(map[string]any)["pointer"].(string)
		}
		if a.status != c.status || a.field("code") != c.code || pointer != c.pointer {
			t.Errorf("%s: %d %v %q, want %d %s %q: %s", name, a.status, a.field("code"), pointer, c.status, c.code, c.pointer, a.body)
		}
	}
	if list, err := me.Bookings(ctx); err != nil || len(list) != 0 {
		t.Errorf("%d bookings after refused checkouts, %v", len(list), err)
	}
}

// C-27: the same key is one payment session, another body under it is refused, a second key is shown the same payment.
func TestCheckoutChargesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me := w.guest()
	h, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	ada := client.CheckoutRequest{Email: "ada@example.org", Name: "Ada", IdempotencyKey: "k1"}
	var all sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		all.Go(func() {
			// Those who come while the first is running are told so, and ask again.
			for {
				p, err := me.Checkout(ctx, h.HoldID, ada)
				if err == nil {
					ids[i] = p.PaymentID
					return
				}
				if problem(t, err).Code != client.CodeIdempotencyInProgress {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two payments: %s and %s", ids[0], id)
		}
	}
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada", IdempotencyKey: "k2"})
	if err != nil || p.PaymentID != ids[0] {
		t.Errorf("a second click: %s, %v, want %s", p.PaymentID, err, ids[0])
	}
	_, err = me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "eve@example.org", Name: "Eve", IdempotencyKey: "k1"})
	if q := problem(t, err); q.Status != 422 || q.Code != client.CodeIdempotencyKeyReused {
		t.Errorf("another body: %+v", q)
	}
	want := client.Payment{
		PaymentID: p.PaymentID, BookingID: p.BookingID, Provider: "simulator", Status: "pending", URL: w.url + "/simulator/pay/" + p.PaymentID,
		ExpiresAt: w.now().Add(8 * time.Minute), Price: client.Money{Amount: 1200, Currency: "EUR"}, Link: p.Link,
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// C-28 to C-31 over HTTP: however often it is told, one booking and one set of tickets.
func TestPaidHoldBecomesOneBookingWithTickets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me, event := w.guest(), w.cinema("cinema", plenty())
	h, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5", "F6"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	b, err := me.Booking(ctx, p.BookingID)
	if err != nil || b.Status != "pending" || len(b.Tickets) != 0 {
		t.Fatalf("before paying: %+v, %v", b, err)
	}
	w.must(w.client.Simulate(ctx, p.PaymentID, client.SimulatorAction{Outcome: "succeed", Callbacks: number(20), DistinctIDs: true, OutOfOrder: true}))
	w.settle()
	w.pass(2 * time.Second)
	w.settle()
	b, err = me.Booking(ctx, p.BookingID)
	w.must(err)
	if b.Status != "confirmed" || len(b.Tickets) != 2 || b.Tickets[0].Seat != "F5" || b.Tickets[1].Seat != "F6" || b.Tickets[0].Code == "" || b.Refund != nil {
		t.Fatalf("after paying: %+v", b)
	}
	if h, err = me.Hold(ctx, h.HoldID); err != nil || h.State != "booked" || h.BookingID != b.BookingID {
		t.Errorf("the hold: %+v, %v", h, err)
	}
	books, err := w.client.Simulated(ctx, p.PaymentID)
	if err != nil || books.CallbacksSent != 21 || books.Charged.Amount != 2400 {
		t.Errorf("the provider's books: %+v, %v", books, err)
	}
	if list, err := me.Tickets(ctx, b.BookingID); err != nil || cmp.Diff(b.Tickets, list) != "" {
		t.Errorf("the list of tickets: %+v, %v", list, err)
	}
	png, err := me.TicketPNG(ctx, b.BookingID, b.Tickets[0].TicketID)
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the picture: %d bytes, %v", len(png), err)
	}
	if r, err := w.admin.Audit(ctx, event); err != nil || !r.OK {
		t.Errorf("the audit: %+v, %v", r, err)
	}
}

// C-32: the callback is lost, and the buyer comes back from paying: the provider is asked.
func TestLookingAtAPendingBookingAsksTheProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me := w.guest()
	h, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	w.must(w.client.Simulate(ctx, p.PaymentID, client.SimulatorAction{Outcome: "succeed", Callbacks: number(0)}))
	if b, err := me.Booking(ctx, p.BookingID); err != nil || b.Status != "confirmed" {
		t.Errorf("the booking: %+v, %v", b, err)
	}
}

// C-33: money that comes after the hold ended goes back, and the place stays whose it is.
func TestLatePaymentIsRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me, event := w.guest(), w.cinema("cinema", plenty())
	h, err := me.PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	w.pass(11 * time.Minute)
	other, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	w.must(w.client.Simulate(ctx, p.PaymentID, client.SimulatorAction{Outcome: "succeed", Late: true}))
	w.settle()
	b, err := me.Booking(ctx, p.BookingID)
	if err != nil || b.Status != "failed" || b.Refund == nil || b.Refund.Amount != 1200 || len(b.Tickets) != 0 {
		t.Errorf("the late buyer's booking: %+v, %v", b, err)
	}
	_, err = w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}})
	if q := problem(t, err); q.Code != client.CodePlacesGone {
		t.Errorf("the seat of %s: %+v", other.HoldID, q)
	}
}

func TestCancellationGoesByItsQuote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me, event := w.guest(), w.cinema("cinema", plenty())
	b := w.buy(me, event, client.HoldRequest{Seats: []string{"F5"}})
	q, err := me.QuoteCancellation(ctx, b.BookingID)
	if err != nil || q.Refund != (client.Money{Amount: 1200, Currency: "EUR"}) {
		t.Fatalf("the quote: %+v, %v", q, err)
	}
	w.pass(11 * time.Minute)
	_, err = me.Cancel(ctx, b.BookingID, q.QuoteID)
	if p := problem(t, err); p.Status != 410 || p.Code != client.CodeQuoteOver {
		t.Errorf("an old quote: %+v", p)
	}
	if q, err = me.QuoteCancellation(ctx, b.BookingID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is a repetition
		done, err := me.Cancel(ctx, b.BookingID, q.QuoteID)
		if err != nil || done.Status != "cancelled" || done.Refund == nil || *done.Refund != q.Refund || done.Tickets[0].Status != "void" {
			t.Fatalf("cancelled: %+v, %v", done, err)
		}
	}
	_, err = me.QuoteCancellation(ctx, b.BookingID)
	if p := problem(t, err); p.Status != 409 || p.Code != client.CodeNotCancellable {
		t.Errorf("a quote for a cancelled booking: %+v", p)
	}
	_, err = me.Cancel(ctx, b.BookingID, "quo_nonsense")
	if p := problem(t, err); p.Status != 404 {
		t.Errorf("a quote that is not there: %+v", p)
	}
	if _, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"F5"}}); err != nil {
		t.Errorf("the seat that came back: %v", err)
	}
}

func TestQuoteWithAKeyIsTheSameAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.client.NewSession(context.Background())
	w.must(err)
	b := w.buy(w.client.As(s), w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	ask := func() answer {
		return w.send(http.MethodPost, "/v1/bookings/"+b.BookingID+"/cancellation", "", "Authorization: Bearer "+s.Token, "Idempotency-Key: q")
	}
	one, two := ask(), ask()
	if one.status != 201 || one.body != two.body || !strings.HasPrefix(one.header.Get("Location"), "/v1/bookings/"+b.BookingID+"/cancellation/quo_") {
		t.Errorf("%d %s at %s, then %d %s", one.status, one.body, one.header.Get("Location"), two.status, two.body)
	}
}

func TestLinkReadsItsBookingAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me, event := w.guest(), w.cinema("cinema", plenty())
	b, other := w.buy(me, event, client.HoldRequest{Seats: []string{"F5"}}), w.buy(w.guest(), event, client.HoldRequest{Seats: []string{"G5"}})
	path, ok := strings.CutPrefix(b.Link, w.url)
	if !ok {
		t.Fatalf("the link is %q", b.Link)
	}
	_, token, _ := strings.Cut(path, "?link=")
	for name, c := range map[string]struct {
		method, path string
		status       int
	}{
		"the booking":         {http.MethodGet, path, 200},
		"its tickets":         {http.MethodGet, "/v1/bookings/" + b.BookingID + "/tickets?link=" + token, 200},
		"a picture":           {http.MethodGet, "/v1/bookings/" + b.BookingID + "/tickets/" + b.Tickets[0].TicketID + ".png?link=" + token, 200},
		"another booking":     {http.MethodGet, "/v1/bookings/" + other.BookingID + "?link=" + token, 404},
		"another ticket":      {http.MethodGet, "/v1/bookings/" + b.BookingID + "/tickets/" + other.Tickets[0].TicketID + ".png?link=" + token, 404},
		"with a wrong token":  {http.MethodGet, "/v1/bookings/" + b.BookingID + "?link=" + token[1:] + "A", 404},
		"with a session's":    {http.MethodGet, "/v1/bookings/" + b.BookingID + "?link=" + strings.TrimPrefix(w.token(), "Authorization: Bearer "), 404},
		"cancelling":          {http.MethodPost, "/v1/bookings/" + b.BookingID + "/cancellation?link=" + token, 401},
		"the list of own":     {http.MethodGet, "/v1/bookings?link=" + token, 401},
		"its hold":            {http.MethodGet, "/v1/holds/" + b.HoldID + "?link=" + token, 401},
		"without either":      {http.MethodGet, "/v1/bookings/" + b.BookingID, 401},
		"an empty link":       {http.MethodGet, "/v1/bookings/" + b.BookingID + "?link=", 401},
		"the token as bearer": {http.MethodGet, "/v1/bookings/" + b.BookingID, 401},
	} {
		var fields []string
		if name == "the token as bearer" {
			fields = append(fields, "Authorization: Bearer "+token)
		}
		if a := w.send(c.method, c.path, "", fields...); a.status != c.status {
			t.Errorf("%s: %d, want %d: %s", name, a.status, c.status, a.body)
		}
	}
	w.pass(10*24*time.Hour + LinkTTL + time.Second)
	if a := w.send(http.MethodGet, path, ""); a.status != 404 {
		t.Errorf("long after the event: %d", a.status)
	}
}

func TestFreePlacesNeedNoPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.make(client.NewEvent{Kind: "concert", Slug: "free", Pools: []client.NewPool{{Pool: "LAWN", Capacity: 10}}})
	me := w.guest()
	h, err := me.PlaceHold(ctx, event, client.HoldRequest{Pool: "LAWN", Quantity: 1})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	if err != nil || p.Provider != "none" || p.Status != "succeeded" || p.URL != "" {
		t.Fatalf("the checkout: %+v, %v", p, err)
	}
	if b, err := me.Booking(ctx, p.BookingID); err != nil || b.Status != "confirmed" {
		t.Errorf("the booking: %+v, %v", b, err)
	}
}

// C-36, C-37: who cannot sign cannot tell us anything.
func TestCallbacksAreBelievedOnlyWhenAuthentic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me := w.guest()
	h, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	body := `{"type":"payment.succeeded","data":{"paymentId":"` + p.PaymentID + `"}}`
	signed := []string{"Webhook-Id: msg_1", "Webhook-Timestamp: 1777636800", "Webhook-Signature: v1,AAAA"}
	for name, c := range map[string]struct {
		path, body string
		fields     []string
		status     int
		code       string
	}{
		"unsigned":         {"simulator", body, nil, 401, "not-authentic"},
		"forged":           {"simulator", body, signed, 401, "not-authentic"},
		"empty":            {"simulator", "", signed, 401, "not-authentic"},
		"too long":         {"simulator", strings.Repeat("x", 70_000), signed, 413, "body-too-large"},
		"unknown provider": {"bank", body, signed, 404, "not-found"},
	} {
		if a := w.send(http.MethodPost, "/v1/payments/"+c.path+"/callback", c.body, c.fields...); a.status != c.status || a.field("code") != c.code {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, c.status, c.code)
		}
	}
	if b, err := me.Booking(ctx, p.BookingID); err != nil || b.Status != "pending" {
		t.Errorf("the booking: %+v, %v", b, err)
	}
}

func TestSimulatorRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me := w.guest()
	h, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	path := "/v1/simulator/payments/" + p.PaymentID
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"no outcome":           {path, `{}`, 422},
		"unknown outcome":      {path, `{"outcome":"maybe"}`, 422},
		"too many callbacks":   {path, `{"outcome":"succeed","callbacks":101}`, 422},
		"negative delay":       {path, `{"outcome":"succeed","delaySeconds":-1}`, 422},
		"unknown currency":     {path, `{"outcome":"succeed","currency":"XXQ"}`, 422},
		"fail with an amount":  {path, `{"outcome":"fail","amount":1}`, 422},
		"unknown payment":      {"/v1/simulator/payments/pay_nonsense", `{"outcome":"succeed"}`, 404},
		"it works nonetheless": {path, `{"outcome":"fail"}`, 202},
	} {
		if a := w.send(http.MethodPost, c.path, c.body); a.status != c.status {
			t.Errorf("%s: %d, want %d: %s", name, a.status, c.status, a.body)
		}
	}
	w.pass(9 * time.Minute)
	if a := w.send(http.MethodPost, path, `{"outcome":"succeed"}`); a.status != 409 || a.field("code") != "payment-declined" {
		t.Errorf("after the session: %d %s", a.status, a.body)
	}
}

func TestSimulatorHasAPageToPayOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	me := w.guest()
	h, err := me.PlaceHold(ctx, w.cinema("cinema", plenty()), client.HoldRequest{Seats: []string{"F5"}})
	w.must(err)
	p, err := me.Checkout(ctx, h.HoldID, client.CheckoutRequest{Email: "ada@example.org", Name: "Ada"})
	w.must(err)
	path := "/simulator/pay/" + p.PaymentID
	page := w.send(http.MethodGet, path, "")
	for _, want := range []string{`value="succeed"`, `value="fail"`, `value="leave"`, "12.00 EUR", `<form method="post">`} {
		if page.status != 200 || !strings.Contains(page.body, want) {
			t.Errorf("%d: the page lacks %s: %s", page.status, want, page.body)
		}
	}
	if csp := page.header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("the policy is %q", csp)
	}
	if strings.Contains(page.body, "<script") || strings.Contains(page.body, "http://www") {
		t.Error("the page loads something")
	}
	const form = "Content-Type: application/x-www-form-urlencoded"
	if a := w.send(http.MethodPost, path, "do=steal", form); a.status != 422 {
		t.Errorf("an unknown choice: %d", a.status)
	}
	for _, do := range []string{"leave", "fail", "succeed"} {
		a := w.send(http.MethodPost, path, "do="+do, form)
		if a.status != 303 || a.header.Get("Location") != w.url+"/v1/bookings/"+p.BookingID {
			t.Errorf("%s: %d to %q", do, a.status, a.header.Get("Location"))
		}
	}
	w.settle()
	if b, err := me.Booking(ctx, p.BookingID); err != nil || b.Status != "confirmed" {
		t.Errorf("the booking: %+v, %v", b, err)
	}
	if page := w.send(http.MethodGet, path, ""); strings.Contains(page.body, "<form") {
		t.Error("a paid payment can be paid again")
	}
	if a := w.send(http.MethodGet, "/simulator/pay/pay_nonsense", ""); a.status != 404 {
		t.Errorf("an unknown payment: %d", a.status)
	}
}

func TestWithoutSimulatorItsRoutesAreAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Simulator = nil })
	for _, path := range []string{"/v1/simulator/payments/pay_x", "/simulator/pay/pay_x"} {
		if a := w.send(http.MethodGet, path, ""); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := w.send(http.MethodGet, "/openapi.json", ""); strings.Contains(a.body, "simulator/payments") {
		t.Error("the document has them")
	}
}
