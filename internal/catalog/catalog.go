package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// Store keeps layouts and events. Each method is one transaction. Unknown names are ErrNotFound.
type Store interface {
	// AddLayout stores a version of a layout; the same id and hash again is the version that is there.
	AddLayout(ctx context.Context, l StoredLayout) (version int, err error)
	Layout(ctx context.Context, ref LayoutRef) ([]byte, error)
	// LatestLayout is the newest version of a layout.
	LatestLayout(ctx context.Context, id string) (version int, err error)
	// CreateEvents stores new events with the rows of their pools: all of them or none. A slug that is taken is ErrSlugTaken.
	CreateEvents(ctx context.Context, events []NewRow) error
	// UpdateEvent writes an event that has the version before; any other is ErrVersion.
	UpdateEvent(ctx context.Context, e NewRow, before int) error
	Event(ctx context.Context, id EventID) (*Event, error)
	EventBySlug(ctx context.Context, slug string) (*Event, error)
	// TakenSlugs tells which of the slugs are in use.
	TakenSlugs(ctx context.Context, slugs []string) (map[string]bool, error)
	Search(ctx context.Context, q Query, now time.Time) (Page, error)
	// SetAvailable notes how many places events have left, for the search.
	SetAvailable(ctx context.Context, left map[EventID]int) error
}

// StoredLayout is a layout as it is kept: by id, with the hash of its canonical form.
type StoredLayout struct {
	ID        string
	Name      string
	Hash      string
	Canonical []byte
	Seats     int
}

// NewRow is an event with the figures that the search keeps of it.
type NewRow struct {
	*Event
	Available int
}

// Limits and times of the memory that stands before the store.
const (
	maxEvents  = 20_000 // events kept
	maxLayouts = 64     // layouts kept; one of 50,000 seats is about 10 MB
	maxMisses  = 1_000  // names kept that no event has
	freshFor   = 2 * time.Second
	missFor    = time.Second
)

// Config of a Catalog.
type Config struct {
	Store  Store
	Now    func() time.Time
	Logger *slog.Logger
}

// Catalog answers about events from memory; what it says is at most about two seconds old. Safe for concurrent use.
type Catalog struct {
	store Store
	now   func() time.Time
	log   *slog.Logger

	mu      sync.RWMutex
	events  map[EventID]*cached
	slugs   map[string]EventID
	misses  map[string]time.Time
	layouts map[LayoutRef]*compiled

	answers answers
}

type cached struct {
	event   *Event
	readAt  time.Time
	reading bool
}

// compiled is a layout that is being or was parsed, once for all who ask.
type compiled struct {
	once   sync.Once
	layout *venue.Layout
	err    error
}

// New makes a Catalog.
func New(c Config) *Catalog {
	return &Catalog{
		store: c.Store, now: c.Now, log: c.Logger,
		events: map[EventID]*cached{}, slugs: map[string]EventID{}, misses: map[string]time.Time{}, layouts: map[LayoutRef]*compiled{},
	}
}

// Event gives an event. The answer is shared: it must not be changed.
func (c *Catalog) Event(ctx context.Context, id EventID) (*Event, error) {
	c.mu.RLock()
	got := c.events[id]
	c.mu.RUnlock()
	if got == nil {
		return c.read(ctx, id)
	}
	c.refresh(ctx, got)
	return got.event, nil
}

// refresh reads an event again in the background when what is known of it is old: nobody waits, and while the database is away the old is served.
func (c *Catalog) refresh(ctx context.Context, got *cached) {
	now := c.now()
	c.mu.RLock()
	fresh := got.reading || now.Sub(got.readAt) < freshFor
	c.mu.RUnlock()
	if fresh {
		return
	}
	c.mu.Lock()
	mine := !got.reading
	got.reading = true
	c.mu.Unlock()
	if !mine {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, err := c.read(ctx, got.event.ID); err != nil {
			c.log.Warn("an event could not be read again", "event", got.event.ID, "error", err)
			c.mu.Lock()
			got.reading, got.readAt = false, c.now()
			c.mu.Unlock()
		}
	}()
}

func (c *Catalog) read(ctx context.Context, id EventID) (*Event, error) {
	e, err := c.store.Event(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.keep(e), nil
}

// keep remembers an event, unless a newer edit of it is known already.
func (c *Catalog) keep(e *Event) *Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.events[e.ID]; old != nil && old.event.Version > e.Version {
		return old.event
	}
	if len(c.events) >= maxEvents {
		// Which one is dropped hardly matters: it is read again when asked for.
		for id, old := range c.events {
			delete(c.events, id)
			delete(c.slugs, old.event.Slug)
			break
		}
	}
	c.events[e.ID] = &cached{event: e, readAt: c.now()}
	c.slugs[e.Slug] = e.ID
	delete(c.misses, e.Slug)
	return e
}

// Resolve gives an event by id or slug. What no event is called is remembered for a moment, so that asking for it again costs nothing.
func (c *Catalog) Resolve(ctx context.Context, name string) (*Event, error) {
	if id, err := ParseEventID(name); err == nil {
		return c.orMiss(ctx, name, func() (*Event, error) { return c.Event(ctx, id) })
	}
	c.mu.RLock()
	id, known := c.slugs[name]
	c.mu.RUnlock()
	if known {
		return c.Event(ctx, id)
	}
	if !slugForm.MatchString(name) || len(name) > MaxSlug {
		return nil, ErrNotFound
	}
	return c.orMiss(ctx, name, func() (*Event, error) {
		e, err := c.store.EventBySlug(ctx, name)
		if err != nil {
			return nil, err
		}
		return c.keep(e), nil
	})
}

func (c *Catalog) orMiss(ctx context.Context, name string, find func() (*Event, error)) (*Event, error) {
	c.mu.RLock()
	at, missed := c.misses[name]
	c.mu.RUnlock()
	if missed && c.now().Sub(at) < missFor {
		return nil, ErrNotFound
	}
	e, err := find()
	if errors.Is(err, ErrNotFound) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.misses) >= maxMisses {
			clear(c.misses)
		}
		c.misses[name] = c.now()
	}
	return e, err
}

// AddLayout stores a layout file, in the own format or a pretix plan. The same content again is the layout that is there; another content under the
// same name is its next version. Errors are venue's.
func (c *Catalog) AddLayout(ctx context.Context, data []byte) (ref LayoutRef, seats int, warnings []venue.Warning, err error) {
	l, warnings, err := venue.Parse(data)
	if err != nil {
		return ref, 0, nil, err
	}
	ref, err = c.StoreLayout(ctx, l)
	return ref, len(l.Seats), warnings, err
}

// StoreLayout is AddLayout for a layout that is parsed already.
func (c *Catalog) StoreLayout(ctx context.Context, l *venue.Layout) (LayoutRef, error) {
	canonical := l.Canonical()
	name, hash := sha256.Sum256([]byte(l.Name)), sha256.Sum256(canonical)
	ref := LayoutRef{ID: "lay_" + hex.EncodeToString(name[:10])}
	var err error
	ref.Version, err = c.store.AddLayout(ctx, StoredLayout{
		ID: ref.ID, Name: l.Name, Hash: hex.EncodeToString(hash[:]), Canonical: canonical, Seats: len(l.Seats),
	})
	return ref, err
}

// Layout gives a layout. It is shared and never changes.
func (c *Catalog) Layout(ctx context.Context, ref LayoutRef) (*venue.Layout, error) {
	c.mu.RLock()
	got := c.layouts[ref]
	c.mu.RUnlock()
	if got == nil {
		c.mu.Lock()
		if got = c.layouts[ref]; got == nil {
			if len(c.layouts) >= maxLayouts {
				for old := range c.layouts {
					delete(c.layouts, old)
					break
				}
			}
			got = &compiled{}
			c.layouts[ref] = got
		}
		c.mu.Unlock()
	}
	got.once.Do(func() {
		var data []byte
		// One client's patience must not decide for all who wait.
		if data, got.err = c.store.Layout(context.WithoutCancel(ctx), ref); got.err == nil {
			if got.layout, _, got.err = venue.Parse(data); got.err != nil {
				got.err = fmt.Errorf("stored layout %s version %d: %w", ref.ID, ref.Version, got.err)
			}
		}
	})
	if got.err != nil {
		c.mu.Lock()
		if c.layouts[ref] == got {
			delete(c.layouts, ref) // ask again next time
		}
		c.mu.Unlock()
	}
	return got.layout, got.err
}

// layoutOf is the layout of a draft or event, nil where it has none.
func (c *Catalog) layoutOf(ctx context.Context, ref LayoutRef) (*venue.Layout, error) {
	if ref == (LayoutRef{}) {
		return nil, nil
	}
	l, err := c.Layout(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return nil, FieldErrors{{Pointer: "/layoutId", Detail: "there is no such layout; POST it first"}}
	}
	return l, err
}

// Prepare checks a draft and makes the event without storing it.
func (c *Catalog) Prepare(ctx context.Context, d Draft) (NewRow, error) {
	if d.Layout.ID != "" && d.Layout.Version == 0 {
		v, err := c.store.LatestLayout(ctx, d.Layout.ID)
		if errors.Is(err, ErrNotFound) {
			return NewRow{}, FieldErrors{{Pointer: "/layoutId", Detail: "there is no such layout; POST it first"}}
		}
		if err != nil {
			return NewRow{}, err
		}
		d.Layout.Version = v
	}
	l, err := c.layoutOf(ctx, d.Layout)
	if err != nil {
		return NewRow{}, err
	}
	e, err := NewEvent(d, l, c.now())
	if err != nil {
		return NewRow{}, err
	}
	return NewRow{Event: e, Available: e.Capacity(l)}, nil
}

// CreateEvent checks and stores an event. Errors: FieldErrors, ErrSlugTaken.
func (c *Catalog) CreateEvent(ctx context.Context, d Draft) (*Event, error) {
	row, err := c.Prepare(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := c.CreateEvents(ctx, []NewRow{row}); err != nil {
		return nil, err
	}
	return c.keep(row.Event), nil
}

// CreateEvents stores prepared events, all or none.
func (c *Catalog) CreateEvents(ctx context.Context, rows []NewRow) error {
	return c.store.CreateEvents(ctx, rows)
}

// TakenSlugs tells which of the slugs are in use.
func (c *Catalog) TakenSlugs(ctx context.Context, slugs []string) (map[string]bool, error) {
	return c.store.TakenSlugs(ctx, slugs)
}

// EditEvent changes an event that is still in the version before, through change, which gets a copy. What can't be edited (id, slug, kind, layout, the
// number, names and buckets of pools, currency) is kept as it was. Errors: FieldErrors, ErrVersion, ErrNotFound, and what change returns.
func (c *Catalog) EditEvent(ctx context.Context, id EventID, before int, change func(*Event) error) (*Event, error) {
	old, err := c.store.Event(ctx, id)
	if err != nil {
		return nil, err
	}
	if old.Version != before {
		return nil, ErrVersion
	}
	e := *old
	e.Pools = append([]Pool(nil), old.Pools...)
	e.Policy.Cancellation = append([]CancellationRule(nil), old.Policy.Cancellation...)
	if err := change(&e); err != nil {
		return nil, err
	}
	e.ID, e.Slug, e.Kind, e.Layout, e.Currency, e.CreatedAt = old.ID, old.Slug, old.Kind, old.Layout, old.Currency, old.CreatedAt
	e.Version = old.Version + 1
	for _, at := range []*time.Time{&e.StartsAt, &e.SaleOpensAt, &e.SaleClosesAt} {
		*at = at.UTC().Truncate(time.Millisecond)
	}
	l, err := c.layoutOf(ctx, e.Layout)
	if err != nil {
		return nil, err
	}
	if len(e.Pools) != len(old.Pools) {
		return nil, FieldErrors{{Pointer: "/pools", Detail: "pools can be changed, not added or removed"}}
	}
	for i := range e.Pools {
		e.Pools[i].Name, e.Pools[i].Buckets = old.Pools[i].Name, old.Pools[i].Buckets
	}
	if err := e.Check(l); err != nil {
		return nil, err
	}
	if err := c.store.UpdateEvent(ctx, NewRow{Event: &e}, before); err != nil {
		return nil, err
	}
	return c.keep(&e), nil
}

// Overlay lays a policy draft over an event's policy. Errors are FieldErrors of fields that can't be read; EditEvent checks the whole.
func (d PolicyDraft) Overlay(p Policy) (Policy, error) {
	var wrong FieldErrors
	p = d.over(p, &wrong)
	return p, wrong.orNil()
}

// SetAvailable notes how many places events have left, for the search.
func (c *Catalog) SetAvailable(ctx context.Context, left map[EventID]int) error {
	return c.store.SetAvailable(ctx, left)
}
