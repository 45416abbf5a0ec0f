package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// Limits of what a catalog keeps in memory.
const (
	maxEvents      = 16_384    // about 2 kB each
	maxAbsent      = 4_096     // ids and slugs that nobody has
	maxLayoutSeats = 1_000_000 // over all layouts

	absentTTL   = 2 * time.Second // a new event is found after so long, wherever it was made
	pollEvery   = time.Second     // for changes by other processes, while anybody asks for events
	maxAge      = 2 * time.Second // who asks after a longer silence waits for the news first
	maxPollWait = 100 * time.Millisecond
	loadTimeout = 5 * time.Second
	// Every poll asks again for the changes of this time: a read that began before a change may be put in memory after the change was heard of, and
	// databases with many writers number changes in another order than they commit them.
	overlap = loadTimeout + pollEvery
)

// Catalog answers questions about events and layouts from memory. It asks the store only for what it does not have, and once a second for what has changed
// (never while nobody asks). When the store is away it goes on with what it has. All methods are safe for concurrent use.
type Catalog struct {
	store   Store
	now     func() time.Time
	running singleflight.Group

	mu       sync.Mutex
	events   *lru[EventID, *Event]
	bySlug   map[string]EventID // of events
	absent   *lru[string, time.Time]
	layouts  *lru[LayoutRef, *venue.Layout]
	searches *lru[Query, found]

	pollDue atomic.Int64 // unix nanoseconds
	hearing atomic.Bool  // a poll is running: one at a time, however slow the store is
	heard   atomic.Int64 // when the last successful poll began
	failing atomic.Bool
	poll    atomic.Pointer[polling] // the last one that began

	heads []head // of earlier polls, oldest first; only the running poll uses it
}

type polling struct{ done chan struct{} }

type head struct {
	at    time.Time
	point int64
}

// New makes a catalog on a store.
func New(store Store, now func() time.Time) *Catalog {
	c := &Catalog{
		store: store, now: now,
		events: newLRU[EventID, *Event](maxEvents), bySlug: map[string]EventID{}, absent: newLRU[string, time.Time](maxAbsent),
		layouts: newLRU[LayoutRef, *venue.Layout](maxLayoutSeats), searches: newLRU[Query, found](maxSearches),
	}
	c.events.dropped = func(_ EventID, e *Event) { delete(c.bySlug, e.Slug) }
	return c
}

// once runs f once for all who ask for the same key at the same time. Nobody's impatience ends it for the others.
func once[T any](ctx context.Context, g *singleflight.Group, key string, f func(context.Context) (T, error)) (T, error) {
	done := g.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return f(ctx)
	})
	var none T
	select {
	case r := <-done:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Resolve finds an event by what stands in an address: its id or its slug. ErrNotFound.
func (c *Catalog) Resolve(ctx context.Context, idOrSlug string) (*Event, error) {
	if id, err := ParseEventID(idOrSlug); err == nil {
		return c.Event(ctx, id)
	}
	return c.EventBySlug(ctx, idOrSlug)
}

// Event finds an event; ErrNotFound.
func (c *Catalog) Event(ctx context.Context, id EventID) (*Event, error) {
	c.fresh(ctx)
	c.mu.Lock()
	e, ok := c.events.get(id)
	c.mu.Unlock()
	if ok {
		return e, nil
	}
	return c.load(ctx, id.String(), func(ctx context.Context) (*Event, error) { return c.store.Event(ctx, id) })
}

// EventBySlug finds an event; ErrNotFound.
func (c *Catalog) EventBySlug(ctx context.Context, slug string) (*Event, error) {
	if len(slug) > MaxSlugBytes || !slugForm.MatchString(slug) {
		return nil, fmt.Errorf("%w: %.*q", ErrNotFound, MaxSlugBytes, slug)
	}
	c.fresh(ctx)
	c.mu.Lock()
	id, ok := c.bySlug[slug]
	e, there := c.events.get(id)
	c.mu.Unlock()
	if ok && there {
		return e, nil
	}
	return c.load(ctx, slug, func(ctx context.Context) (*Event, error) { return c.store.EventBySlug(ctx, slug) })
}

// load reads what is not in memory. name is an id or a slug, which can't be told from each other wrongly: slugs have no underscore.
func (c *Catalog) load(ctx context.Context, name string, read func(context.Context) (*Event, error)) (*Event, error) {
	c.mu.Lock()
	since, ok := c.absent.get(name)
	c.mu.Unlock()
	if ok && c.now().Sub(since) < absentTTL {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return once(ctx, &c.running, name, func(ctx context.Context) (*Event, error) {
		asked := c.now()
		e, err := read(ctx)
		if errors.Is(err, ErrNotFound) {
			c.mu.Lock()
			c.absent.put(name, asked, 1)
			c.mu.Unlock()
		}
		if err != nil {
			return nil, err
		}
		return c.keep(e), nil
	})
}

// keep puts an event in memory unless a newer one is there, and gives the one that is. Before the first poll nothing is kept: it would not be known from
// which point on changes matter.
func (c *Catalog) keep(e *Event) *Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.events.get(e.ID); ok && known.Version >= e.Version {
		return known
	}
	c.absent.drop(e.Slug)
	c.absent.drop(e.ID.String())
	if c.heard.Load() != 0 {
		c.events.put(e.ID, e, 1)
		c.bySlug[e.Slug] = e.ID
	}
	return e
}

// fresh sees to it that what is in memory is at most maxAge old: it starts a poll when one is due, and waits for it only after a silence.
func (c *Catalog) fresh(ctx context.Context) {
	now := c.now()
	if now.UnixNano() >= c.pollDue.Load() && c.hearing.CompareAndSwap(false, true) {
		c.pollDue.Store(now.Add(pollEvery).UnixNano())
		p := &polling{done: make(chan struct{})}
		c.poll.Store(p)
		go func() {
			defer close(p.done)
			defer c.hearing.Store(false)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
			defer cancel()
			c.failing.Store(c.hear(ctx, now) != nil)
		}()
	}
	heard := c.heard.Load()
	p := c.poll.Load()
	if p == nil || c.failing.Load() || now.UnixNano()-heard <= int64(maxAge) {
		return
	}
	var patience <-chan time.Time
	if heard != 0 {
		t := time.NewTimer(maxPollWait)
		defer t.Stop()
		patience = t.C
	}
	select {
	case <-p.done:
	case <-patience:
	case <-ctx.Done():
	}
}

// hear asks for changes and replaces what has changed.
func (c *Catalog) hear(ctx context.Context, now time.Time) error {
	if len(c.heads) == 0 {
		point, err := c.store.LastChange(ctx)
		if err != nil {
			return err
		}
		c.heads = append(c.heads, head{now, point})
		c.heard.Store(now.UnixNano())
		return nil
	}
	for len(c.heads) > 1 && now.Sub(c.heads[1].at) >= overlap {
		c.heads = c.heads[1:]
	}
	point := c.heads[0].point
	for more := true; more; {
		changes, err := c.store.Changes(ctx, point)
		if err != nil {
			return err
		}
		var changed []EventID
		c.mu.Lock()
		for i := range changes {
			ch := &changes[i]
			point = ch.Point
			c.absent.drop(ch.Slug)
			c.absent.drop(ch.ID.String())
			if el, ok := c.events.byKey[ch.ID]; ok && el.Value.(*kept[EventID, *Event]).value.Version < ch.Version {
				changed = append(changed, ch.ID)
			}
		}
		c.mu.Unlock()
		for _, id := range changed {
			e, err := c.store.Event(ctx, id)
			if err != nil {
				return err
			}
			c.keep(e)
		}
		more = len(changes) == MaxChanges
	}
	c.heads = append(c.heads, head{now, point})
	c.heard.Store(now.UnixNano())
	return nil
}

// CreateEvent adds an event. Errors: FieldErrors, ErrSlugTaken.
func (c *Catalog) CreateEvent(ctx context.Context, d Draft) (*Event, error) {
	e, err := c.make(ctx, &d)
	if err != nil {
		return nil, err
	}
	taken, err := c.store.CreateEvents(ctx, []*Event{e})
	if err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrSlugTaken, e.Slug)
	}
	return c.keep(e), nil
}

func (c *Catalog) make(ctx context.Context, d *Draft) (*Event, error) {
	var s Seating
	var missing error
	if d.LayoutID != "" {
		s.Ref = LayoutRef{d.LayoutID, d.LayoutVersion}
		var err error
		if s.Ref.Version == 0 {
			s.Ref.Version, err = c.store.NewestLayout(ctx, d.LayoutID)
		}
		if err == nil {
			s.Layout, err = c.Layout(ctx, s.Ref)
		}
		if errors.Is(err, ErrNotFound) {
			missing = FieldErrors{{"/layoutId", fmt.Sprintf("is %q version %d, which does not exist; post the layout first", d.LayoutID, d.LayoutVersion)}}
		} else if err != nil {
			return nil, err
		}
	}
	if missing != nil { // prices and pools can't be judged without it
		return nil, missing
	}
	return NewEvent(d, s, c.now())
}

// CreateEvents adds many events in one step, at most MaxBatch, or none. Those whose slug is taken already are left out; taken names their indexes. Pointers
// of FieldErrors begin with the draft's index, /3/title.
func (c *Catalog) CreateEvents(ctx context.Context, drafts []Draft) (taken []int, err error) {
	var wrong checks
	if len(drafts) > MaxBatch {
		wrong.fail("", "has %d events; add at most %d at a time", len(drafts), MaxBatch)
		return nil, wrong.err()
	}
	events := make([]*Event, 0, len(drafts))
	seen := make(map[string]bool, len(drafts))
	for i := range drafts {
		e, err := c.make(ctx, &drafts[i])
		if fields, ok := errors.AsType[FieldErrors](err); ok {
			for _, f := range fields {
				wrong.fail(fmt.Sprintf("/%d%s", i, f.Pointer), "%s", f.Detail)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if seen[e.Slug] {
			wrong.fail(fmt.Sprintf("/%d/slug", i), "is %q, like that of an event before it; give each its own", e.Slug)
		}
		seen[e.Slug] = true
		events = append(events, e)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return c.store.CreateEvents(ctx, events)
}

// maxEditTries bounds an edit of "whichever version is current" among many editors.
const maxEditTries = 5

// EditEvent changes an event. Errors: FieldErrors, ErrNotFound, ErrVersion.
func (c *Catalog) EditEvent(ctx context.Context, id EventID, x Edit) (*Event, error) {
	for try := 1; ; try++ {
		e, err := c.store.Event(ctx, id) // memory may be a second old
		if err != nil {
			return nil, err
		}
		if x.Version != 0 && x.Version != e.Version {
			return nil, fmt.Errorf("%w: it has version %d, not %d", ErrVersion, e.Version, x.Version)
		}
		var l *venue.Layout
		if e.Layout != (LayoutRef{}) {
			if l, err = c.Layout(ctx, e.Layout); err != nil {
				return nil, err
			}
		}
		n, err := e.edited(&x, l)
		if err != nil {
			return nil, err
		}
		switch err := c.store.UpdateEvent(ctx, n, e.Version); {
		case err == nil:
			return c.keep(n), nil
		case !errors.Is(err, ErrVersion) || x.Version != 0 || try == maxEditTries:
			return nil, err
		}
	}
}

// SetAvailable says how many places events have left, for searches.
func (c *Catalog) SetAvailable(ctx context.Context, left map[EventID]int) error {
	if len(left) == 0 {
		return nil
	}
	return c.store.SetAvailable(ctx, left)
}

// Layout gives a layout; ErrNotFound.
func (c *Catalog) Layout(ctx context.Context, ref LayoutRef) (*venue.Layout, error) {
	c.mu.Lock()
	l, ok := c.layouts.get(ref)
	c.mu.Unlock()
	if ok {
		return l, nil
	}
	return once(ctx, &c.running, fmt.Sprint("layout ", ref), func(ctx context.Context) (*venue.Layout, error) {
		document, err := c.store.Layout(ctx, ref)
		if err != nil {
			return nil, err
		}
		l, _, err := venue.Parse(document)
		if err != nil {
			return nil, fmt.Errorf("stored layout %v: %w", ref, err)
		}
		c.keepLayout(ref, l)
		return l, nil
	})
}

func (c *Catalog) keepLayout(ref LayoutRef, l *venue.Layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.layouts.put(ref, l, 1+len(l.Seats))
}

// AddedLayout is what became of a layout file.
type AddedLayout struct {
	Ref      LayoutRef
	Layout   *venue.Layout
	Warnings []venue.Warning
}

// AddLayout stores a layout, in the own format or a pretix plan. The same name again is the next version of the same layout, the same content the same
// version. Errors: *venue.PathError.
func (c *Catalog) AddLayout(ctx context.Context, data []byte) (AddedLayout, error) {
	l, warnings, err := venue.Parse(data)
	if err != nil {
		return AddedLayout{}, err
	}
	s := &StoredLayout{ID: layoutID(l.Name), Name: l.Name, Seats: len(l.Seats), Document: l.Canonical(), CreatedAt: c.now()}
	s.Hash = sha256.Sum256(s.Document)
	version, err := c.store.AddLayout(ctx, s)
	if err != nil {
		return AddedLayout{}, err
	}
	ref := LayoutRef{s.ID, version}
	c.keepLayout(ref, l)
	return AddedLayout{Ref: ref, Layout: l, Warnings: warnings}, nil
}

// layoutID is the name itself where it can stand in an address; else a part of its hash keeps different names apart.
func layoutID(name string) string {
	id := Slug(name)
	if id == strings.ReplaceAll(strings.ToLower(name), " ", "-") {
		return id
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimPrefix(id+"-"+hex.EncodeToString(sum[:4]), "-")
}
