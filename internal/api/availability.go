package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzip"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Heartbeat is how often a silent stream says that it is alive: proxies hang up after a minute of nothing, and a reader that has gone is only noticed by
// writing to it.
const Heartbeat = 15 * time.Second

// streamRetry tells browsers when to come back after the end of a stream, in milliseconds.
const streamRetry = 1000

// maxSeatLists is how many events' lists of seats are kept; one of 50,000 seats is about 6 MB.
const maxSeatLists = 32

var maxAge1 = []string{"public, max-age=1"}

// Availability is the changing part of a seat map.
type Availability struct {
	Version int64            `json:"version"`
	Seats   string           `json:"seats" doc:"Base64, 2 bits a seat in layout order, low bits first: 0 available, 1 held, 2 sold, 3 blocked."`
	Pools   map[string]int64 `json:"pools" doc:"Units left."`
}

// SeatList is every place of an event.
type SeatList struct {
	Version int64  `json:"version"`
	Seats   []Seat `json:"seats"`
	Pools   []Pool `json:"pools"`
}

// Seat is a seat with its state.
type Seat struct {
	Seat    string `json:"seat"`
	Section string `json:"section"`
	Row     string `json:"row"`
	Status  string `json:"status" enum:"available,held,sold,blocked"`
	Price   Money  `json:"price"`
	Pool    string `json:"pool,omitempty"`
}

func (a *API) availabilityRoutes() {
	const tag = "Events"
	schemas := a.huma.OpenAPI().Components.Schemas
	event := []*huma.Param{pathParam("event", "Id or slug.")}
	tagged := func(schema *huma.Schema, what string) map[string]*huma.Response {
		return map[string]*huma.Response{
			"200": {
				Description: what, Content: map[string]*huma.MediaType{jsonType: {Schema: schema}},
				Headers: map[string]*huma.Header{"ETag": {Schema: &huma.Schema{Type: huma.TypeString}}},
			},
			"304": {Description: "Not modified since If-None-Match."},
		}
	}
	a.plain(operation{
		id: "list-seats", method: http.MethodGet, path: "/v1/events/{event}/seats", tag: tag, errors: []int{http.StatusNotFound},
		summary: "Every seat with its state and price", description: "For simple clients. Others read the layout once and the availability often, which is a hundredth of the bytes.",
	}, "", event, tagged(schemas.Schema(typeOf[SeatList](), true, ""), "The places."), a.seats)
	a.plain(operation{
		id: "get-availability", method: http.MethodGet, path: "/v1/events/{event}/availability", tag: tag, errors: []int{http.StatusNotFound},
		summary: "The changing part of the seat map", description: "May be a second old: the hold decides. Send the ETag back in If-None-Match.",
	}, "", event, tagged(schemas.Schema(typeOf[Availability](), true, ""), "The picture."), a.availability)
	a.plain(operation{
		id: "watch-availability", method: http.MethodGet, path: "/v1/events/{event}/availability/stream", tag: tag, errors: []int{http.StatusNotFound},
		summary: "Changes of the availability as they happen",
		description: "Server-sent events. `snapshot` has the whole picture, `delta` what makes its version out of the version `from`: `{\"version\",\"from\",\"seats\":[[number,state],…],\"pools\":{…}}`. " +
			"The id of each is its version; send the last one in Last-Event-ID to go on from there.",
	}, "", append(event, &huma.Param{
		Name: "Last-Event-ID", In: "header", Description: "The version that the client has.", Schema: &huma.Schema{Type: huma.TypeString},
	}), map[string]*huma.Response{"200": {
		Description: "The stream.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}, a.stream)
}

// board gives the live picture of an event.
func (a *API) board(ctx context.Context, e *catalog.Event) (*board.Board, error) {
	b, err := a.Boards.Get(ctx, int64(e.ID))
	if err != nil {
		return nil, fmt.Errorf("board of %v: %w", e.ID, err)
	}
	return b, nil
}

// availability is the hottest read of all: everything but choosing the bytes was done when the version was made.
func (a *API) availability(w http.ResponseWriter, r *http.Request) error {
	e, err := a.event(r.Context(), r.PathValue("event"))
	if err != nil {
		return err
	}
	b, err := a.board(r.Context(), e)
	if err != nil {
		return err
	}
	s := b.Snapshot(a.Now())
	h := w.Header()
	h["Cache-Control"] = maxAge1
	h["Vary"] = varyEncoding
	h["Etag"] = []string{s.ETag}
	if sameTag(r, s.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	switch c := accepted(r); c {
	case brotlied:
		writeFile(w, c, s.Brotli())
	case zipped:
		writeFile(w, c, s.Gzip())
	default:
		writeFile(w, c, s.JSON())
	}
	return nil
}

func (a *API) stream(w http.ResponseWriter, r *http.Request) error {
	e, err := a.event(r.Context(), r.PathValue("event"))
	if err != nil {
		return err
	}
	b, err := a.board(r.Context(), e)
	if err != nil {
		return err
	}
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		p := httpd.Busy.Problem("Too many streams are open; poll the availability instead.")
		p.RetryAfter = httpd.BusyWait
		return p
	}
	after, err := strconv.ParseInt(r.Header.Get("Last-Event-Id"), 10, 64)
	if err != nil {
		after = 0 // none, or not ours: begin with a snapshot
	}
	out, err := httpd.NewStream(w, r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	sub := b.Subscribe(after)
	defer sub.Close()
	if _, err := fmt.Fprintf(out, "retry: %d\n\n", streamRetry); err != nil {
		return nil // the client has gone
	}
	follow(r.Context(), out, sub)
	return nil
}

// follow writes frames until the client goes, the server drains, or the reader is too slow. The client comes back with the last version that it has.
func follow(ctx context.Context, out *httpd.Stream, sub *board.Subscription) {
	beat := time.NewTicker(Heartbeat)
	defer beat.Stop()
	for {
		frame, more, err := sub.Poll()
		if err != nil {
			return
		}
		if frame.Bytes != nil {
			if _, err := out.Write(frame.Bytes); err != nil {
				return
			}
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			if _, err := out.Write([]byte(": still here\n\n")); err != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-out.Draining():
			return
		}
	}
}

// seatList is the list of one version of an event's picture.
type seatList struct {
	event   int // version of the event
	tag     string
	plain   []byte
	zipOnce sync.Once
	zip     []byte
}

// seatLists keeps the last list of each event: making one takes milliseconds for a stadium, and many ask for the same.
type seatLists struct {
	mu  sync.Mutex
	all map[catalog.EventID]*seatList
}

func (l *seatLists) get(e *catalog.Event, tag string, build func() []byte) *seatList {
	l.mu.Lock()
	got := l.all[e.ID]
	l.mu.Unlock()
	if got != nil && got.tag == tag && got.event == e.Version {
		return got
	}
	got = &seatList{event: e.Version, tag: tag, plain: build()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil || len(l.all) >= maxSeatLists {
		l.all = map[catalog.EventID]*seatList{}
	}
	l.all[e.ID] = got
	return got
}

func (l *seatList) gzip() []byte {
	l.zipOnce.Do(func() {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // one of the library's levels
		_, _ = w.Write(l.plain)                           // to a Buffer: cannot fail
		_ = w.Close()
		l.zip = out.Bytes()
	})
	return l.zip
}

func (a *API) seats(w http.ResponseWriter, r *http.Request) error {
	e, err := a.event(r.Context(), r.PathValue("event"))
	if err != nil {
		return err
	}
	b, err := a.board(r.Context(), e)
	if err != nil {
		return err
	}
	var layout *venue.Layout
	if e.Layout != (catalog.LayoutRef{}) {
		if layout, err = a.layoutOf(r.Context(), e); err != nil {
			return err
		}
	}
	s := b.Snapshot(a.Now())
	tag := `W/"` + strconv.Itoa(e.Version) + "-" + strings.Trim(s.ETag, `W/"`) + `"`
	h := w.Header()
	h["Cache-Control"] = maxAge1
	h["Vary"] = varyEncoding
	h["Etag"] = []string{tag}
	if sameTag(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	list := a.lists.get(e, tag, func() []byte { return appendSeats(e, layout, s) })
	if accepted(r) == asIs {
		writeFile(w, asIs, list.plain)
	} else {
		writeFile(w, zipped, list.gzip())
	}
	return nil
}

// appendSeats writes a SeatList. By hand, because it is 50,000 small objects of which few bytes differ.
func appendSeats(e *catalog.Event, layout *venue.Layout, s *board.Snapshot) []byte {
	count := 0
	if layout != nil {
		count = len(layout.Seats)
	}
	out := make([]byte, 0, 256+128*count)
	out = append(out, `{"version":`...)
	out = strconv.AppendInt(out, s.Version, 10)
	out = append(out, `,"seats":[`...)
	for i := range count {
		seat := &layout.Seats[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, `{"seat":`...), seat.Code)
		out = appendString(append(out, `,"section":`...), seat.Section)
		out = appendString(append(out, `,"row":`...), seat.Row)
		out = appendString(append(out, `,"status":`...), s.Status(int32(i)).String())
		out = appendMoney(append(out, `,"price":`...), seatPrice(e, seat), e.Currency)
		if seat.Pool != "" {
			out = appendString(append(out, `,"pool":`...), seat.Pool)
		}
		out = append(out, '}')
	}
	out = append(out, `],"pools":[`...)
	for i, p := range e.Pools {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, `{"pool":`...), p.Name)
		out = append(out, `,"available":`...)
		out = strconv.AppendInt(out, s.Pools[i], 10)
		out = append(appendMoney(append(out, `,"price":`...), p.Price, e.Currency), '}')
	}
	return append(out, "]}\n"...)
}

// seatPrice is the price of the seat's band or, where that has none, of its pool.
func seatPrice(e *catalog.Event, seat *venue.Seat) int64 {
	price, ok := e.Prices[seat.Band]
	if !ok {
		if i, known := e.Pool(seat.Pool); known {
			return e.Pools[i].Price
		}
	}
	return price
}

func appendMoney(b []byte, amount int64, currency string) []byte {
	b = strconv.AppendInt(append(b, `{"amount":`...), amount, 10)
	return append(appendString(append(b, `,"currency":`...), currency), '}')
}

// appendString writes a JSON string; plain ones, nearly all, without a detour.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always has a JSON form
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
