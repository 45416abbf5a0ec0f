package api

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
)

// SimulatorAction is what the pretended provider does next with a payment.
type SimulatorAction struct {
	Outcome      string `json:"outcome" enum:"succeed,fail"`
	Callbacks    *int   `json:"callbacks,omitempty" minimum:"0" maximum:"100" doc:"How often it tells: once when left out, 0 is never, 20 is twenty times at once."`
	DelaySeconds int    `json:"delaySeconds,omitempty" minimum:"0" maximum:"3600" doc:"Until it tells. The money moves at once."`
	Amount       int64  `json:"amount,omitempty" minimum:"0" doc:"Charged instead of the price, minor units."`
	Currency     string `json:"currency,omitempty" maxLength:"3" doc:"Charged in instead of the price's."`
	OutOfOrder   bool   `json:"outOfOrder,omitempty" doc:"A notice that the payment failed comes after those of its success."`
	DistinctIDs  bool   `json:"distinctIds,omitempty" doc:"Every callback is a notice of its own; otherwise they are one, delivered several times."`
	Late         bool   `json:"late,omitempty" doc:"The buyer pays although the session is over."`
}

// SimulatorPayment is what the provider's own books say.
type SimulatorPayment struct {
	Status        string `json:"status" enum:"pending,succeeded,failed,expired"`
	Charged       Money  `json:"charged"`
	Refunded      Money  `json:"refunded"`
	CallbacksSent int    `json:"callbacksSent" doc:"Those that were answered 2xx."`
}

type simulateInput struct {
	Payment string `path:"payment"`
	Body    SimulatorAction
}

type simulatedInput struct {
	Payment string `path:"payment"`
}

type simulatedOutput struct{ Body SimulatorPayment }

func (a *API) simulatorRoutes() {
	const tag = "Simulator"
	register(a, operation{
		id: "simulate-payment", method: http.MethodPost, path: "/v1/simulator/payments/{payment}", tag: tag, status: http.StatusAccepted,
		summary: "Say what becomes of a payment", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
		description: "Only where the payment simulator is on: demo, bench, tests.",
	}, a.simulate)
	register(a, operation{
		id: "get-simulated-payment", method: http.MethodGet, path: "/v1/simulator/payments/{payment}", tag: tag,
		summary: "What the pretended provider's books say", errors: []int{http.StatusNotFound},
	}, a.simulated)
	a.mux.HandleFunc("GET /simulator/pay/{payment}", a.payPage)
	a.mux.HandleFunc("POST /simulator/pay/{payment}", a.pay)
}

func (a *API) simulate(ctx context.Context, in *simulateInput) (*struct{}, error) {
	b := in.Body
	act := simulator.Action{
		Outcome: simulator.Outcome(b.Outcome), Callbacks: 1, Delay: time.Duration(b.DelaySeconds) * time.Second,
		Amount: b.Amount, Currency: b.Currency, OutOfOrder: b.OutOfOrder, DistinctIDs: b.DistinctIDs, Late: b.Late,
	}
	if b.Callbacks != nil {
		act.Callbacks = *b.Callbacks
	}
	return nil, a.Simulator.Act(ctx, in.Payment, act)
}

func (a *API) simulated(_ context.Context, in *simulatedInput) (*simulatedOutput, error) {
	r, known := a.Simulator.Report(in.Payment)
	if !known {
		return nil, payment.ErrUnknownPayment
	}
	// Before anything was charged the books have no currency of their own.
	page, _ := a.Simulator.Page(in.Payment)
	in2 := func(m money.Money) Money {
		if m.Currency == "" {
			m.Currency = page.Price.Currency
		}
		return amount(m)
	}
	return &simulatedOutput{SimulatorPayment{
		Status: string(r.Status), Charged: in2(r.Charged), Refunded: in2(r.Refunded), CallbacksSent: r.CallbacksSent,
	}}, nil
}

const payStyle = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:28rem;margin-inline:auto;padding:1rem}` +
	`form{display:grid;gap:.75rem;margin-block:1.5rem}button{font:inherit;padding:.75rem;border-radius:.5rem;border:1px solid;cursor:pointer}` +
	`.price{font-size:2rem;font-weight:700;margin-block:.5rem}.note{border-inline-start:.25rem solid;padding-inline-start:.75rem}`

var payTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pay (simulator)</title><style>` + payStyle + `</style></head><body><main>
<h1>Pay (simulator)</h1>
<p class="note">No money moves here. This page pretends to be a payment provider.</p>
<p>{{.Description}}</p>
<p class="price">{{.Price}}</p>
{{if .Payable}}<p>This session ends at <time datetime="{{.Until}}">{{.Until}}</time>.</p>
<form method="post">
<button name="do" value="succeed">Pay</button>
<button name="do" value="fail">Let the payment fail</button>
<button name="do" value="leave">Leave without paying</button>
</form>
{{else}}<p>This payment is {{.Status}}. Nothing can be paid here any more.</p>
{{end}}{{if .Back}}<p><a href="{{.Back}}">Back to the shop</a></p>{{end}}
</main></body></html>
`))

type payView struct {
	Description, Price, Until, Status, Back string
	Payable                                 bool
}

// payPage is the page of the pretended provider; it needs no script.
func (a *API) payPage(w http.ResponseWriter, r *http.Request) {
	p, known := a.Simulator.Page(r.PathValue("payment"))
	if !known {
		a.fail(w, r, payment.ErrUnknownPayment)
		return
	}
	view := payView{
		Description: p.Description, Price: p.Price.String(), Until: p.ExpiresAt.UTC().Format(time.RFC3339), Status: string(p.Status),
		Payable: p.Payable && p.Status == payment.Pending, Back: webAddress(p.ReturnURL),
	}
	var page bytes.Buffer
	if err := payTemplate.Execute(&page, view); err != nil {
		a.fail(w, r, err)
		return
	}
	h := w.Header()
	h["Cache-Control"] = noStore
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", stylePolicy(payStyle, "'self'"))
	_, _ = w.Write(page.Bytes()) // the client may have gone
}

// pay does what the buyer chose, then sends the browser on with GET, so that reloading does not do it again.
func (a *API) pay(w http.ResponseWriter, r *http.Request) {
	w.Header()["Cache-Control"] = noStore
	id := r.PathValue("payment")
	p, known := a.Simulator.Page(id)
	if !known {
		a.fail(w, r, payment.ErrUnknownPayment)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, httpd.MaxBody)
	if err := r.ParseForm(); err != nil {
		a.fail(w, r, httpd.MalformedBody.Problem("The form cannot be read."))
		return
	}
	var err error
	switch do := r.PostForm.Get("do"); do {
	case string(simulator.Succeed), string(simulator.Fail):
		err = a.Simulator.Act(r.Context(), id, simulator.Action{Outcome: simulator.Outcome(do), Callbacks: 1})
	case "leave":
	default:
		err = httpd.Validation.Field("do", "Choose succeed, fail or leave.")
	}
	if err != nil && !errors.Is(err, payment.ErrDeclined) { // a second click on a session that is over just goes on
		a.fail(w, r, err)
		return
	}
	to := webAddress(p.ReturnURL)
	if to == "" {
		to = r.URL.Path
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// webAddress lets only addresses of the web and paths through.
func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return s
}
