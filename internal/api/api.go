// Package api is the JSON API /v1 and its OpenAPI document. Its structs are the wire, a promise to clients, and the only mapping there is from the
// engine's types.
//
// Operations with a JSON body go through huma, which reads, validates and documents them. Those that only write bytes that are ready (layouts,
// availability, streams, pictures) are plain handlers beside it, documented by hand.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// Config of the API. Everything but Picture, Simulator, Version, Limits and Place must be there.
type Config struct {
	Booking *booking.Service
	Catalog *catalog.Catalog
	Boards  *board.Registry
	Tickets ticket.Store
	Keys    *identity.Keyring
	Admin   identity.AdminKeyHash
	// Picture reads an event's whole state in one snapshot, for the numbers that staff see: booking.Store has it. nil: their route is absent.
	Picture   func(ctx context.Context, event catalog.EventID) (board.News, error)
	Simulator *simulator.Simulator // nil: its routes are absent
	Now       func() time.Time
	Logger    *slog.Logger
	PublicURL func() string // where buyers reach the server, without a slash at its end; asked each time
	Secure    func() bool   // buyers reach it over TLS, so that cookies may insist on it
	Version   string        // of the program, in the OpenAPI document
	Limits    Limits

	// Place answers holds instead of Booking.PlaceHold. A bench measures with it what the way to the engine costs by itself.
	Place func(context.Context, booking.PlaceHold) (booking.Placed, error)
}

// Limits of the API; zero fields take the defaults.
type Limits struct {
	Streams           int // streams of server-sent events at once
	SessionsPerMinute int // new sessions per client address; loopback is not counted
}

// Defaults and bounds.
const (
	DefaultStreams           = 10_000
	DefaultSessionsPerMinute = 300 // a whole office or mobile network may share an address
	MaxSeatsNamed            = 100 // in one hold; the event's policy allows far fewer
	MaxBlockSeats            = 10_000
	maxID                    = 128 // characters of an id or slug in a path that are looked at
)

// API serves the routes; use New.
type API struct {
	Config

	mux     *http.ServeMux
	huma    huma.API
	handler http.Handler

	limits   holdLimits
	sessions *httpd.Limiter[addressKey]
	layouts  layoutFiles
	lists    seatLists
	streams  chan struct{}

	// edits lets one edit of an event pass at a time: limits of pools are rows of the engine, the rest is the catalog's, and two edits in between
	// each other would leave one's limits with the other's event.
	edits sync.Mutex
}

// New makes the handler of all routes. It panics only on a mistake in this package's declarations, which every test would show.
func New(c Config) (*API, error) {
	for name, missing := range map[string]bool{
		"Booking": c.Booking == nil, "Catalog": c.Catalog == nil, "Boards": c.Boards == nil, "Tickets": c.Tickets == nil, "Keys": c.Keys == nil,
		"Now": c.Now == nil, "Logger": c.Logger == nil, "PublicURL": c.PublicURL == nil, "Secure": c.Secure == nil,
	} {
		if missing {
			return nil, fmt.Errorf("api: %s is missing", name)
		}
	}
	if c.Place == nil {
		c.Place = c.Booking.PlaceHold
	}
	if c.Limits.Streams == 0 {
		c.Limits.Streams = DefaultStreams
	}
	if c.Limits.SessionsPerMinute == 0 {
		c.Limits.SessionsPerMinute = DefaultSessionsPerMinute
	}
	setUpHuma()
	a := &API{Config: c, mux: http.NewServeMux(), streams: make(chan struct{}, c.Limits.Streams)}
	a.sessions = httpd.NewLimiter[addressKey](httpd.Rate{Name: "sessions", Quota: c.Limits.SessionsPerMinute, Window: time.Minute}, 0)
	a.huma = humago.New(a.mux, humaConfig(c.Version))
	a.sessionRoutes()
	a.eventRoutes()
	a.layoutRoutes()
	a.availabilityRoutes()
	a.holdRoutes()
	a.checkoutRoutes()
	a.paymentRoutes()
	a.bookingRoutes()
	a.ticketRoutes()
	if c.Simulator != nil {
		a.simulatorRoutes()
	}
	a.adminRoutes()
	if err := a.documentRoutes(); err != nil {
		return nil, err
	}
	httpd.HandleProblems(a.mux)
	a.handler = httpd.BodyLimit(bodyLimit)(httpd.Routes(a.mux))
	return a, nil
}

// ServeHTTP answers /v1/…, /openapi.json and .yaml, /docs, /problems/… and, with a simulator, /simulator/…; nothing else is there.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Media types are the same in any case (RFC 9110, 8.3.1); huma compares them as they are written.
	if v := r.Header["Content-Type"]; len(v) == 1 {
		if lower := strings.ToLower(v[0]); lower != v[0] {
			r.Header["Content-Type"] = []string{lower}
		}
	}
	a.handler.ServeHTTP(w, r)
}

// bodyLimit is how many bytes the body of a request may have.
func bodyLimit(r *http.Request) int64 {
	switch {
	case r.URL.Path == "/v1/admin/layouts":
		return httpd.MaxLayoutBody
	case strings.HasPrefix(r.URL.Path, "/v1/payments/"):
		return payment.MaxNoticeBytes
	}
	return httpd.MaxBody
}

func humaConfig(version string) huma.Config {
	format := huma.Format{Marshal: writeJSON, Unmarshal: readJSON}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:    "3.1.0",
			Info:       info(version),
			Tags:       tags,
			Components: &huma.Components{SecuritySchemes: securitySchemes},
		},
		Formats:       map[string]huma.Format{jsonType: format, "json": format},
		DefaultFormat: jsonType,
	}
}

const jsonType = "application/json"

// setUpHuma makes the settings of huma that belong to the whole process: once, before there is any API that could read them.
var setUpHuma = sync.OnceFunc(func() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return failure{refused(status, message, errs)}
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		p := refused(status, message, errs)
		if ctx != nil {
			u := ctx.URL()
			p.Instance = u.EscapedPath()
		}
		return failure{p}
	}
	huma.ValidateStrictCasing = true // one spelling of a name: "Seats" is not "seats"
	huma.DefaultArrayNullable = false
})

// readJSON is strict where encoding/json is not: it would replace broken UTF-8, so that two different texts read the same.
func readJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
	return json.Unmarshal(data, v)
}

var errNotUTF8 = errors.New("the body is not valid UTF-8")

func writeJSON(w io.Writer, v any) error {
	if f, ok := v.(failure); ok { // it is JSON already: no second look at it
		body, err := f.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	}
	return json.NewEncoder(w).Encode(v)
}

// failure is a problem on its way through huma.
type failure struct{ httpd.Problem }

// GetHeaders leaves Cache-Control out, which the route has set already.
func (f failure) GetHeaders() http.Header {
	h := f.Problem.GetHeaders()
	delete(h, "Cache-Control")
	return h
}

// Schema documents problems.
func (failure) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[ProblemBody](), true, "Problem")
}

// refused turns what huma found wrong with a request into a problem.
func refused(status int, message string, errs []error) httpd.Problem {
	for _, err := range errs {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			p, _ := httpd.Errors.Problem(large)
			return p
		}
	}
	k := httpd.Validation
	switch status {
	case http.StatusBadRequest:
		k = httpd.MalformedBody
	case http.StatusRequestTimeout:
		p := httpd.MalformedBody.Problem("The body did not come in time.")
		p.Status = http.StatusRequestTimeout
		return p
	case http.StatusRequestEntityTooLarge:
		k = httpd.BodyTooLarge
	case http.StatusUnsupportedMediaType:
		return httpd.UnsupportedMediaType.Problem("")
	case http.StatusInternalServerError:
		if len(errs) > 0 && errors.Is(errs[0], io.ErrUnexpectedEOF) {
			return httpd.MalformedBody.Problem("The body ended too early.")
		}
		return httpd.Internal.Problem("")
	}
	p := k.Problem("")
	if status == http.StatusBadRequest {
		p.Detail = sentence(message)
	}
	for _, err := range errs {
		d, ok := err.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		detail := d.ErrorDetail()
		if k == httpd.MalformedBody {
			p.Detail = sentence(detail.Message)
			continue
		}
		p.Errors = append(p.Errors, fieldError(detail))
	}
	return p
}

// fieldError names a field the way our problems do, and says what to do. The value is left out: it may be anything, a name or a token too.
func fieldError(d *huma.ErrorDetail) httpd.FieldError {
	where, rest, _ := strings.Cut(d.Location, ".")
	at, array := strings.CutPrefix(where, "body")
	f := httpd.FieldError{Pointer: rest, Detail: sentence(d.Message), Code: httpd.Validation.Code}
	if array { // body, body.seats[0] or body[0]
		path := at
		if rest != "" {
			path += "." + rest
		}
		if name, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
			name, _, _ = strings.Cut(name, " ")
			path += "." + name
			f.Detail = "This field is required."
		}
		f.Pointer = httpd.Pointer(path)
	}
	switch d.Message {
	case "unexpected property":
		f.Detail = "This field is not known here; leave it out or correct its name."
	case "unknown query parameter":
		f.Detail = "This parameter is not known here; leave it out or correct its name."
	}
	return f
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// call is what a handler behind huma may need of its request.
type call struct {
	r        *http.Request
	w        http.ResponseWriter
	customer identity.CustomerID // zero: nobody
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// access says who may call.
type access int

const (
	public   access = iota // anybody; what it shows may be cached by anybody
	customer               // whoever has a session
	linked                 // a customer, or whoever has the booking's link
	staff                  // whoever has the admin key
)

// operation is one route through huma.
type operation struct {
	id, method, path, tag, summary, description string

	access access
	status int   // of success; 0: huma's default
	errors []int // that are possible besides those of its access
	body   int64 // bytes; 0: httpd.MaxBody
	strict bool  // unknown query parameters are refused
}

// register adds a route. handle's errors go through the one table.
func register[I, O any](a *API, o operation, handle func(context.Context, *I) (*O, error)) {
	if o.body == 0 {
		o.body = httpd.MaxBody
	}
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.summary, Description: o.description,
		DefaultStatus: o.status, Errors: o.allErrors(), Security: o.security(),
		MaxBodyBytes:    o.body + 1, // huma refuses at the limit, not above it
		BodyReadTimeout: httpd.ReadTimeout,
		Middlewares:     huma.Middlewares{a.enter(o.access)}, RejectUnknownQueryParameters: o.strict,
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, failure{a.problem(callOf(ctx).r, err)}
		}
		return out, nil
	})
}

func (o *operation) allErrors() []int {
	all := append([]int{}, o.errors...)
	if o.access != public {
		all = append(all, http.StatusUnauthorized)
	}
	if o.method != http.MethodGet && o.method != http.MethodDelete {
		all = append(all, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return append(all, http.StatusServiceUnavailable)
}

func (o *operation) security() []map[string][]string {
	switch o.access {
	case customer:
		return []map[string][]string{{"session": {}}, {"cookie": {}}}
	case linked:
		return []map[string][]string{{"session": {}}, {"cookie": {}}, {"link": {}}}
	case staff:
		return []map[string][]string{{"admin": {}}}
	default:
		return nil
	}
}

// enter lets in who may call, and keeps what is personal out of caches.
func (a *API) enter(who access) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		c := &call{r: r, w: w}
		if err := a.let(c, who); err != nil {
			a.fail(w, r, err)
			return
		}
		next(huma.WithValue(ctx, callKey{}, c))
	}
}

// let checks who calls, and sets what their access means for the answer.
func (a *API) let(c *call, who access) (err error) {
	if who == public {
		return nil
	}
	c.w.Header()["Cache-Control"] = noStore
	switch {
	case who == staff:
		err = a.isStaff(c.r)
	case who == linked && c.r.URL.Query().Get("link") != "":
		return nil // the handler checks it against the booking
	default:
		c.customer, err = a.customer(c.r)
	}
	if err != nil {
		c.w.Header()["Www-Authenticate"] = challenge
	}
	return err
}

var (
	noStore   = []string{"no-store"}
	challenge = []string{`Bearer realm="holdfast"`}
)

// problem maps an error by the table and logs what is our own fault, once.
func (a *API) problem(r *http.Request, err error) httpd.Problem {
	p, known := httpd.Errors.Problem(err)
	switch {
	case r.Context().Err() != nil: // the client has gone: the error is only that
	case !known:
		httpd.Log(r.Context()).ErrorContext(r.Context(), "request failed", "method", r.Method, "route", r.Pattern, "err", err)
	case p.Status >= http.StatusInternalServerError && !errors.Is(err, booking.ErrBusy):
		httpd.Log(r.Context()).WarnContext(r.Context(), "request failed", "method", r.Method, "route", r.Pattern, "err", err)
	}
	if p.Instance == "" {
		p.Instance = r.URL.EscapedPath()
	}
	return p
}

// fail answers with the problem of an error, outside of huma.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	httpd.WriteProblem(w, r, a.problem(r, err))
}

// plain adds a route that writes its answer itself. The operation is documented with the responses given; the mux' pattern may differ from the documented
// path, because a mux cannot tell {ticket}.png from {ticket}.
func (a *API) plain(o operation, pattern string, params []*huma.Param, answers map[string]*huma.Response, handle func(w http.ResponseWriter, r *http.Request) error) {
	op := &huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.summary, Description: o.description,
		Parameters: params, Responses: answers, Security: o.security(),
	}
	schema := failure{}.Schema(a.huma.OpenAPI().Components.Schemas)
	for _, status := range o.allErrors() {
		op.Responses[fmt.Sprint(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{httpd.ProblemType: {Schema: schema}},
		}
	}
	a.huma.OpenAPI().AddOperation(op)
	if pattern == "" {
		pattern = o.path
	}
	a.mux.HandleFunc(o.method+" "+pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

// pathParam documents a part of the path.
func pathParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// event finds the event that a path names.
func (a *API) event(ctx context.Context, name string) (*catalog.Event, error) {
	if name == "" || len(name) > maxID {
		return nil, httpd.NotFound.Problem("There is no such event.")
	}
	e, err := a.Catalog.Resolve(ctx, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, httpd.NotFound.Problem("There is no such event.")
	}
	return e, err
}
