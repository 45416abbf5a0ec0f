package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/internal/api"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/loadgen"
)

// ready tells whoever started this process where it listens, for everybody and for operators. The file appears with all of its content.
func (a *app) ready() error {
	if a.cfg.ReadyFile == "" {
		return nil
	}
	draft := a.cfg.ReadyFile + ".new"
	if err := os.WriteFile(draft, []byte(a.localURL()+"\nhttp://"+a.server.OpsAddr()+"\n"), 0o600); err != nil {
		return fmt.Errorf("%w: --ready-file: %w", errUsage, err)
	}
	return os.Rename(draft, a.cfg.ReadyFile)
}

// withFloors puts in front of the API what a bench compares it with: the same program, middleware, router, decoder, authentication and encoder, but no
// engine, board or database. So the ratio of the two is the price of the engine and nothing else.
func (a *app) withFloors(h http.Handler, c api.Config) (http.Handler, error) {
	c.Place = a.placeNothing
	place, err := api.New(c)
	if err != nil {
		return nil, err
	}
	c.Place = a.refuseAll
	refuse, err := api.New(c)
	if err != nil {
		return nil, err
	}
	floors := []struct {
		prefix  string
		handler http.Handler
	}{{loadgen.FloorPlace, place}, {loadgen.FloorRefuse, refuse}, {loadgen.FloorReplay, &replayer{next: h, now: c.Now, all: map[string]*replayed{}}}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, floor := strings.CutPrefix(r.URL.Path, loadgen.FloorPath)
		if !floor {
			h.ServeHTTP(w, r)
			return
		}
		// In place: http.StripPrefix would copy the request, and the floor would be slower for it.
		for _, f := range floors {
			if path, ok := strings.CutPrefix(r.URL.Path, f.prefix); ok {
				r.URL.Path, r.URL.RawPath = path, ""
				f.handler.ServeHTTP(w, r)
				return
			}
		}
		if rest == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.NotFound(w, r)
	}), nil
}

// placeNothing answers what the engine would, and holds nothing.
func (a *app) placeNothing(ctx context.Context, p booking.PlaceHold) (booking.Placed, error) {
	numbers, amount, err := a.named(ctx, &p)
	if err != nil {
		return booking.Placed{}, err
	}
	now := a.booking.Now()
	h := booking.Hold{
		ID: booking.HoldID{Event: p.Event.ID}, Customer: p.Customer, Seats: numbers, Places: len(numbers), Price: p.Event.Price(amount),
		State: booking.HoldHeld, Until: now.Add(p.Event.Policy.HoldTTL), Ceiling: now.Add(p.Event.Policy.Ceiling),
	}
	rand.Read(h.ID.Bits[:])
	return booking.Placed{Hold: h}, nil
}

// refuseAll says that whatever is asked for is gone.
func (a *app) refuseAll(ctx context.Context, p booking.PlaceHold) (booking.Placed, error) {
	numbers, _, err := a.named(ctx, &p)
	if err != nil {
		return booking.Placed{}, err
	}
	return booking.Placed{}, &booking.GoneError{Seats: numbers}
}

// named finds the seats' numbers, which answers are made of, and what they cost.
func (a *app) named(ctx context.Context, p *booking.PlaceHold) (numbers []int32, amount int64, err error) {
	layout, err := a.catalog.Layout(ctx, p.Event.Layout)
	if err != nil {
		return nil, 0, err
	}
	numbers = make([]int32, len(p.Seats))
	for i, code := range p.Seats {
		no, ok := layout.SeatByCode(code)
		if !ok {
			return nil, 0, &booking.InputError{Code: "unknown-seat", Pointer: fmt.Sprintf("/seats/%d", i), Detail: "the event has no such seat"}
		}
		numbers[i] = no
		amount += p.Event.Prices[layout.Seats[no].Band]
	}
	return numbers, amount, nil
}

const (
	maxReplayed = 4_096
	// replayFor is how long an availability is repeated: as long as the board itself keeps one (four a second at most).
	replayFor = 250 * time.Millisecond
)

// replayer answers a GET with the bytes that the API answered to the same one before.
type replayer struct {
	next http.Handler
	now  func() time.Time
	mu   sync.RWMutex
	all  map[string]*replayed
}

type replayed struct {
	kept  atomic.Pointer[kept]
	until atomic.Int64 // unix nanoseconds
}

type kept struct {
	status int
	header http.Header
	body   []byte
}

func (p *replayer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	if r.URL.RawQuery != "" {
		_ = r.URL.Query() // the floor parses what the API parses
	}
	key := r.URL.Path + "?" + r.URL.RawQuery + " " + r.Header.Get("Accept-Encoding")
	p.mu.RLock()
	one := p.all[key]
	p.mu.RUnlock()
	if one == nil {
		p.mu.Lock()
		if one = p.all[key]; one == nil {
			if len(p.all) >= maxReplayed {
				clear(p.all)
			}
			one = &replayed{}
			p.all[key] = one
		}
		p.mu.Unlock()
	}
	now := p.now().UnixNano()
	old := one.kept.Load()
	// Lists of events do not change while they are measured.
	if until := one.until.Load(); old == nil || strings.HasSuffix(r.URL.Path, "/availability") && now > until && one.until.CompareAndSwap(until, now+int64(replayFor)) {
		got := &recorder{header: http.Header{}, status: http.StatusOK}
		p.next.ServeHTTP(got, r)
		got.header["Content-Length"] = []string{strconv.Itoa(got.body.Len())}
		old = &kept{got.status, got.header, got.body.Bytes()}
		one.kept.Store(old)
	}
	h := w.Header()
	for name, values := range old.header {
		h[name] = values
	}
	w.WriteHeader(old.status)
	_, _ = w.Write(old.body) // the client may have gone
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is part of http.ResponseWriter, as are the other two.
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
