package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/money"
)

// Venue is where an event takes place; for a flight the airport it leaves from.
type Venue struct {
	Name     string `json:"name" maxLength:"200"`
	City     string `json:"city" maxLength:"200" required:"false"`
	Country  string `json:"country,omitempty" maxLength:"200"`
	TimeZone string `json:"timeZone" maxLength:"64" doc:"IANA name. Dates of the event are in it." example:"Europe/Berlin"`
}

// EventSummary is an event in a list.
type EventSummary struct {
	ID           string    `json:"id"`
	Slug         string    `json:"slug"`
	Kind         string    `json:"kind" enum:"cinema,concert,flight"`
	Title        string    `json:"title"`
	Venue        Venue     `json:"venue"`
	StartsAt     time.Time `json:"startsAt"`
	SaleOpensAt  time.Time `json:"saleOpensAt"`
	SaleClosesAt time.Time `json:"saleClosesAt"`
	Status       string    `json:"status" enum:"upcoming,onSale,paused,closed"`
	PriceFrom    Money     `json:"priceFrom"`
	Available    int       `json:"available" doc:"Places left; seconds old in lists."`
	Origin       string    `json:"origin,omitempty" doc:"IATA code, of flights."`
	Destination  string    `json:"destination,omitempty" doc:"IATA code, of flights."`
}

// Event is an event with everything that a buyer may want to know.
type Event struct {
	EventSummary

	Currency string           `json:"currency"`
	Layout   *LayoutRef       `json:"layout,omitempty" doc:"Of events with seats."`
	Prices   map[string]Money `json:"prices" doc:"By price band of the layout."`
	Pools    []Pool           `json:"pools"`
	Policy   Policy           `json:"policy"`
}

// Pool is a counted stock: a standing area, a fare class.
type Pool struct {
	Pool      string `json:"pool"`
	Available int64  `json:"available" doc:"Units left, overbooking included."`
	Price     Money  `json:"price"`
}

// Policy is how an event sells.
type Policy struct {
	HoldSeconds          int            `json:"holdSeconds"`
	PaymentSeconds       int            `json:"paymentSeconds"`
	ExtendSeconds        int            `json:"extendSeconds" doc:"What one \"more time\" adds; 0: not offered."`
	HoldCeilingSeconds   int            `json:"holdCeilingSeconds" doc:"The longest that a hold may live, with every prolongation."`
	MaxPlacesPerHold     int            `json:"maxPlacesPerHold"`
	MaxPlacesPerCustomer int            `json:"maxPlacesPerCustomer" doc:"Over all holds and bookings of the event."`
	MaxHoldsPerMinute    int            `json:"maxHoldsPerMinute"`
	WaitingRoom          WaitingRoom    `json:"waitingRoom"`
	Cancellation         []Cancellation `json:"cancellation"`
	Orphans              string         `json:"orphans" enum:"allow,avoid,forbid" doc:"Whether a choice may leave a single seat alone."`
}

// WaitingRoom is the pace at which an event lets people in.
type WaitingRoom struct {
	Enabled            bool `json:"enabled"`
	PerSecond          int  `json:"perSecond"`
	MaxActive          int  `json:"maxActive"`
	PassSeconds        int  `json:"passSeconds"`
	OpensSecondsBefore int  `json:"opensSecondsBefore"`
}

// Cancellation is a rule: the first that fits counts, none is 0 %.
type Cancellation struct {
	UntilSecondsBefore int `json:"untilSecondsBefore" minimum:"0" maximum:"316224000"`
	RefundPercent      int `json:"refundPercent" minimum:"0" maximum:"100"`
}

type searchInput struct {
	Text     string `query:"q" maxLength:"200" doc:"Words of the title, the venue or the city."`
	Kind     string `query:"kind" enum:"cinema,concert,flight"`
	From     string `query:"from" pattern:"^[A-Za-z]{3}$" patternDescription:"an IATA code such as SGN" doc:"Flights from this airport."`
	To       string `query:"to" pattern:"^[A-Za-z]{3}$" patternDescription:"an IATA code such as HAN" doc:"Flights to this airport."`
	Date     string `query:"date" format:"date" doc:"On this day, in the event's own zone."`
	DateFrom string `query:"dateFrom" format:"date" doc:"On this day or later, in the event's own zone."`
	DateTo   string `query:"dateTo" format:"date" doc:"On this day or before, in the event's own zone."`
	Place    string `query:"place" maxLength:"200" doc:"Part of the venue's name or city."`
	Limit    int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"The next of the page before; goes with the same filters only."`
}

// EventPage is a part of a list.
type EventPage struct {
	Items []EventSummary `json:"items"`
	Next  *string        `json:"next" doc:"The cursor of the next page; null at the end."`
}

type searchOutput struct {
	CacheControl string `header:"Cache-Control"`
	Link         string `header:"Link" doc:"rel=next: the next page."`
	Stale        string `header:"Holdfast-Stale" doc:"true: from memory, because the database is away."`
	Body         EventPage
}

type eventInput struct {
	Event       string `path:"event" doc:"Id or slug."`
	IfNoneMatch string `header:"If-None-Match"`
}

type eventOutput struct {
	Status       int
	CacheControl string `header:"Cache-Control"`
	ETag         string `header:"ETag"`
	Body         Event
}

func (a *API) eventRoutes() {
	const tag = "Events"
	register(a, operation{
		id: "search-events", method: http.MethodGet, path: "/v1/events", tag: tag, strict: true,
		summary: "Find events", errors: []int{http.StatusUnprocessableEntity},
		description: "By text, kind, place and day; flights also by airports. Filters narrow each other. Ordered by start. The answer may be seconds old.",
	}, a.search)
	register(a, operation{
		id: "get-event", method: http.MethodGet, path: "/v1/events/{event}", tag: tag,
		summary: "An event, its prices, pools and policy", errors: []int{http.StatusNotFound},
	}, a.getEvent)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func (a *API) search(ctx context.Context, in *searchInput) (*searchOutput, error) {
	q, scope := in.query()
	if in.Cursor != "" {
		at, err := a.Keys.OpenCursor(scope, in.Cursor, a.Now())
		if err != nil {
			return nil, err
		}
		q.After = openPosition(at)
	}
	page, err := a.Catalog.Search(ctx, q)
	if wrong, ok := errors.AsType[catalog.FieldErrors](err); ok {
		return nil, parameters(wrong)
	}
	if err != nil {
		return nil, err
	}
	out := &searchOutput{CacheControl: maxAge1[0], Body: EventPage{Items: make([]EventSummary, len(page.Items))}}
	now := a.Now()
	for i := range page.Items {
		it := &page.Items[i]
		out.Body.Items[i] = EventSummary{
			ID: it.ID.String(), Slug: it.Slug, Kind: string(it.Kind), Title: it.Title, Venue: Venue(it.Venue), StartsAt: it.StartsAt.UTC(),
			SaleOpensAt: it.SaleOpensAt.UTC(), SaleClosesAt: it.SaleClosesAt.UTC(), Status: string(it.Status(now)), PriceFrom: Money{Amount: it.PriceFrom, Currency: it.Currency},
			Available: it.Available, Origin: it.Origin, Destination: it.Destination,
		}
	}
	if page.Stale {
		out.Stale = "true"
	}
	if page.Next != nil {
		next, err := a.Keys.SealCursor(scope, sealPosition(*page.Next))
		if err != nil {
			return nil, err
		}
		out.Body.Next = &next
		values := in.values()
		values.Set("limit", strconv.Itoa(in.Limit))
		values.Set("cursor", next)
		out.Link = "</v1/events?" + values.Encode() + `>; rel="next"`
	}
	return out, nil
}

// parameters names parameters where the catalog names fields.
func parameters(wrong catalog.FieldErrors) error {
	p := httpd.Validation.Problem("")
	for _, f := range wrong {
		p.Errors = append(p.Errors, httpd.FieldError{Pointer: strings.TrimPrefix(f.Pointer, "/"), Detail: f.Detail, Code: httpd.Validation.Code})
	}
	return p
}

// query is what the catalog is asked. The scope names the filters, so that a cursor goes with them only.
func (in *searchInput) query() (q catalog.Query, scope string) {
	in.From, in.To = strings.ToUpper(in.From), strings.ToUpper(in.To)
	return catalog.Query{
		Text: in.Text, Kind: catalog.Kind(in.Kind), Origin: in.From, Destination: in.To, Date: in.Date, DateFrom: in.DateFrom, DateTo: in.DateTo,
		Place: in.Place, Limit: in.Limit,
	}, "events?" + in.values().Encode()
}

// values are the filters, without limit and cursor.
func (in *searchInput) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"q": in.Text, "kind": in.Kind, "from": in.From, "to": in.To, "date": in.Date, "dateFrom": in.DateFrom, "dateTo": in.DateTo, "place": in.Place,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

func sealPosition(p catalog.Position) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.StartsAt.UnixMilli()))
	return binary.BigEndian.AppendUint64(b, uint64(p.ID))
}

// openPosition reads what sealPosition wrote; the keyring has proved that it did.
func openPosition(b []byte) catalog.Position {
	const size = 16
	if len(b) != size {
		return catalog.Position{}
	}
	return catalog.Position{
		StartsAt: time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC(), ID: catalog.EventID(binary.BigEndian.Uint64(b[size/2:])),
	}
}

func (a *API) getEvent(ctx context.Context, in *eventInput) (*eventOutput, error) {
	e, err := a.event(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	event, version, err := a.eventPage(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &eventOutput{Status: http.StatusOK, CacheControl: maxAge1[0] + ", stale-while-revalidate=5", Body: event}
	// The status changes with the clock, without an edit.
	out.ETag = fmt.Sprintf(`W/"%d-%d-%s"`, e.Version, version, event.Status)
	if sameTag(callOf(ctx).r, out.ETag) {
		out.Status = http.StatusNotModified
	}
	return out, nil
}

// eventPage writes an event with what is left of it, and says of which version of the board that is.
func (a *API) eventPage(ctx context.Context, e *catalog.Event) (Event, int64, error) {
	b, err := a.board(ctx, e)
	if err != nil {
		return Event{}, 0, err
	}
	now := a.Now()
	s := b.Snapshot(now)
	out := Event{
		EventSummary: EventSummary{
			ID: e.ID.String(), Slug: e.Slug, Kind: string(e.Kind), Title: e.Title, Venue: Venue(e.Venue), StartsAt: e.StartsAt.UTC(),
			SaleOpensAt: e.SaleOpensAt.UTC(), SaleClosesAt: e.SaleClosesAt.UTC(), Status: string(e.Status(now)), PriceFrom: amount(e.Price(e.PriceFrom())),
			Available: b.Available(), Origin: e.Origin, Destination: e.Destination,
		},
		Currency: e.Currency, Layout: layoutRef(e.Layout), Prices: make(map[string]Money, len(e.Prices)), Pools: make([]Pool, len(e.Pools)),
		Policy: policy(&e.Policy),
	}
	for band, price := range e.Prices {
		out.Prices[band] = amount(e.Price(price))
	}
	for i, p := range e.Pools {
		out.Pools[i] = Pool{Pool: p.Name, Available: s.Pools[i], Price: amount(money.Money{Amount: p.Price, Currency: e.Currency})}
	}
	return out, s.Version, nil
}

func policy(p *catalog.Policy) Policy {
	out := Policy{
		HoldSeconds: seconds(p.HoldTTL), PaymentSeconds: seconds(p.PaymentTTL), ExtendSeconds: seconds(p.ExtendTTL), HoldCeilingSeconds: seconds(p.Ceiling),
		MaxPlacesPerHold: p.MaxPlacesPerHold, MaxPlacesPerCustomer: p.MaxPlacesPerCustomer, MaxHoldsPerMinute: p.MaxHoldsPerMinute,
		WaitingRoom: WaitingRoom{
			Enabled: p.WaitingRoom.Enabled, PerSecond: p.WaitingRoom.PerSecond, MaxActive: p.WaitingRoom.MaxActive,
			PassSeconds: seconds(p.WaitingRoom.PassTTL), OpensSecondsBefore: seconds(p.WaitingRoom.OpensBefore),
		},
		Cancellation: make([]Cancellation, len(p.Cancellation)), Orphans: string(p.Orphans),
	}
	for i, r := range p.Cancellation {
		out.Cancellation[i] = Cancellation{UntilSecondsBefore: seconds(r.UntilBefore), RefundPercent: r.RefundPercent}
	}
	return out
}

func seconds(d time.Duration) int { return int(d / time.Second) }
