// Package booking is the engine: it holds places, turns paid holds into bookings, ends what nobody pays for, and sends money back.
//
// Everything that changes the places of an event is a Command. Commands gather in lanes, a lane's store runs them in batches,
// and the pure function Decide answers them from the locked rows. Rules are nowhere else.
package booking

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Catalog is what the engine asks about events. Both answers come from memory nearly always; catalog.ErrNotFound otherwise.
type Catalog interface {
	Event(ctx context.Context, id catalog.EventID) (*catalog.Event, error)
	Layout(ctx context.Context, ref catalog.LayoutRef) (*venue.Layout, error)
}

// Config of a Service. Zero numbers take the defaults of DefaultTimes and DefaultLanes.
type Config struct {
	Store     Store
	Catalog   Catalog
	Boards    *board.Registry
	Providers []payment.Provider // the first one takes new payments; none: only what costs nothing can be checked out
	// Derive is a keyed hash: ids that repeat for the same customer, event and Idempotency-Key, and that nobody can foresee.
	Derive   func(purpose string, parts ...[]byte) [16]byte
	Now      func() time.Time
	Logger   *slog.Logger
	Observer Observer

	Lanes     int
	Bucket    int // of every pool, that this process prefers
	Loops     Loops
	ReturnURL func(BookingID) string // where the provider sends the buyer back to
	Told      func()                 // called after a commit that wrote messages, so that they need not wait for the relay's next look
}

// DefaultLanes is enough to have one batch decided while another commits.
const DefaultLanes = 2

// Service is the engine as the rest of the program sees it. All methods are safe for concurrent use.
type Service struct {
	store   Store
	catalog Catalog
	boards  *board.Registry
	pay     map[string]payment.Provider
	taking  payment.Provider // nil: none
	derive  func(purpose string, parts ...[]byte) [16]byte
	now     func() time.Time
	log     *slog.Logger
	watch   Observer
	loops   Loops
	bucket  int
	back    func(BookingID) string

	lanes   []*lane
	skew    atomic.Int64
	finders finders
	looks   looks
	running sync.Map // idempotency keys whose checkout is calling the provider
}

// New starts the lanes. Close stops them.
func New(c Config) (*Service, error) {
	s := &Service{
		store: c.Store, catalog: c.Catalog, boards: c.Boards, derive: c.Derive, now: c.Now, log: c.Logger, watch: c.Observer,
		loops: c.Loops.withDefaults(), bucket: c.Bucket, back: c.ReturnURL, pay: map[string]payment.Provider{},
	}
	if s.watch == nil {
		s.watch = Nobody{}
	}
	for i, p := range c.Providers {
		if _, ok := s.pay[p.Name()]; ok {
			return nil, fmt.Errorf("two payment providers are called %q", p.Name())
		}
		s.pay[p.Name()] = p
		if i == 0 {
			s.taking = p
		}
	}
	if c.Told == nil {
		c.Told = func() {}
	}
	n := c.Lanes
	if n == 0 {
		n = DefaultLanes
	}
	for range n {
		l := newLane(laneConfig{Store: c.Store, Boards: c.Boards, Observer: s.watch, Logger: c.Logger, Now: c.Now, Skew: &s.skew, Told: c.Told})
		s.lanes = append(s.lanes, l)
		go l.run()
	}
	return s, nil
}

// Close answers every command that was accepted and refuses new ones with ErrBusy.
func (s *Service) Close() {
	var wg sync.WaitGroup
	for _, l := range s.lanes {
		wg.Go(l.close)
	}
	wg.Wait()
}

// Now is the store's clock as far as this process knows it without asking.
func (s *Service) Now() time.Time { return ms(s.now().Add(time.Duration(s.skew.Load()))) }

// TakesPayments says whether anything but free places can be sold.
func (s *Service) TakesPayments() bool { return s.taking != nil }

func (s *Service) lane(event catalog.EventID) *lane {
	return s.lanes[uint64(event)%uint64(len(s.lanes))]
}

// do sends a command through the lane of its event.
func (s *Service) do(ctx context.Context, c Command) (Result, error) {
	return s.lane(c.EventID()).do(ctx, &entry{command: c, keep: true})
}

// id makes an id that follows from an Idempotency-Key, or a random one where there is none.
func (s *Service) id(purpose string, customer identity.CustomerID, event catalog.EventID, key string) Key {
	k := Key{Event: event}
	if key == "" {
		rand.Read(k.Bits[:])
		return k
	}
	e := event.Bytes()
	k.Bits = s.derive(purpose, customer[:], e[:], []byte(key))
	return k
}

// request hashes what a client asked, so that the same key with another body is noticed. The parts are length-prefixed: no two requests read the same.
type request struct{ h hash.Hash }

func newRequest() request { return request{sha256.New()} }

func (r request) add(parts ...string) request {
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		r.h.Write(n[:])
		r.h.Write([]byte(p))
	}
	return r
}

func (r request) sum() [16]byte { return [16]byte(r.h.Sum(nil)[:16]) }

// event and layout of a command. A hold's event is always there; its absence is our fault, not the caller's.
func (s *Service) eventOf(ctx context.Context, id catalog.EventID) (*catalog.Event, Naming, error) {
	e, err := s.catalog.Event(ctx, id)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, Naming{}, ErrNotFound
	}
	if err != nil {
		return nil, Naming{}, err
	}
	n := Naming{Pools: make([]string, len(e.Pools))}
	for i, p := range e.Pools {
		n.Pools[i] = p.Name
	}
	if e.Layout != (catalog.LayoutRef{}) {
		if n.Layout, err = s.catalog.Layout(ctx, e.Layout); err != nil {
			return nil, Naming{}, fmt.Errorf("layout of %v: %w", e.ID, err)
		}
	}
	return e, n, nil
}
