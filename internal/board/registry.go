package board

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits and paces of a registry.
const (
	MaxBoards          = 2000             // default of Config.Boards
	DefaultReloadEvery = 5 * time.Second  // default of Config.ReloadEvery
	LoadTimeout        = 10 * time.Second // of reading one event's rows
	// IdleFor is how long a board is kept that nobody asks for, sells from or follows, and that no hold is known of.
	IdleFor = 2 * time.Minute

	lookEvery  = 50 * time.Millisecond // between two looks for due ticks: a tick is late by at most so much
	loadsMax   = 8                     // readings at once for boards that readers wait for
	pendingMax = 1024                  // news kept for a board that is being loaded; more, and it is reloaded at once
	wantedMax  = 4096                  // events sold from without a board
	wantedEach = 16                    // of them, loaded in one round
)

// Loader reads all that a board needs of an event: every seat that was ever touched, every bucket, every claim in force, of one moment of the store.
type Loader func(ctx context.Context, event int64) (Shape, News, error)

// Config of a Registry; Load and Now must be there.
type Config struct {
	Load        Loader
	Now         func() time.Time
	OnError     func(event int64, err error) // told when a reading in the background failed; the board goes on with what it has
	Boards      int                          // boards kept; boards that are followed are never put away, so there may be that many more
	ReloadEvery time.Duration
}

// Registry has the boards of the events that were watched or sold lately. Safe for concurrent use.
type Registry struct {
	cfg   Config
	loads chan struct{}

	mu      sync.RWMutex
	boards  map[int64]*entry
	loading map[int64]*load
	wanted  map[int64]struct{} // sold from, yet without a board
	left    map[int64]int      // availability of boards put away before Dirty was asked
}

// entry is a board with what the registry knows of it.
type entry struct {
	event    int64
	board    *Board       // replaced when the event's shape changed; under the registry's mu
	used     atomic.Int64 // last use, Unix milliseconds
	reloadAt atomic.Int64
	told     int // what Dirty said last, -1 before; under the registry's mu
}

// load is a first reading that callers wait for.
type load struct {
	done    chan struct{}
	pending []News // heard meanwhile
	missed  bool   // more than could be kept
	board   *Board
	err     error
}

// NewRegistry makes an empty one. Without Run it loads on demand and shows changes when asked; streams, reloading and eviction need Run.
func NewRegistry(c Config) *Registry {
	if c.Boards <= 0 {
		c.Boards = MaxBoards
	}
	if c.ReloadEvery <= 0 {
		c.ReloadEvery = DefaultReloadEvery
	}
	if c.OnError == nil {
		c.OnError = func(int64, error) {}
	}
	return &Registry{
		cfg: c, loads: make(chan struct{}, loadsMax),
		boards: map[int64]*entry{}, loading: map[int64]*load{}, wanted: map[int64]struct{}{}, left: map[int64]int{},
	}
}

// Lookup gives the board of an event if there is one; it reads nothing. A busy path that can do without a board asks here.
func (r *Registry) Lookup(event int64) *Board {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.boards[event]; e != nil {
		e.use(r.cfg.Now())
		return e.board
	}
	return nil
}

func (e *entry) use(now time.Time) {
	// Written once a second at most, or every reader would fight for its cache line.
	if ms := now.UnixMilli(); ms-e.used.Load() > 1000 {
		e.used.Store(ms)
	}
}

// Get gives the board of an event, reading it from the store if need be: once, however many ask for it. Errors: the Loader's, or ctx's.
func (r *Registry) Get(ctx context.Context, event int64) (*Board, error) {
	if b := r.Lookup(event); b != nil {
		return b, nil
	}
	r.mu.Lock()
	if e := r.boards[event]; e != nil {
		defer r.mu.Unlock()
		return e.board, nil
	}
	l := r.loading[event]
	if l == nil {
		l = &load{done: make(chan struct{})}
		r.loading[event] = l
		// On its own, so that the first caller's patience does not end it for the others.
		go r.load(context.WithoutCancel(ctx), event, l)
	}
	r.mu.Unlock()
	select {
	case <-l.done:
		return l.board, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Registry) load(ctx context.Context, event int64, l *load) {
	ctx, cancel := context.WithTimeout(ctx, LoadTimeout)
	defer cancel()
	defer close(l.done)
	var b *Board
	now := r.cfg.Now()
	l.err = func() error {
		select {
		case r.loads <- struct{}{}:
			defer func() { <-r.loads }()
		case <-ctx.Done():
			return ctx.Err()
		}
		shape, full, err := r.cfg.Load(ctx, event)
		if err == nil {
			now = r.cfg.Now()
			b = New(shape, full, now)
		}
		return err
	}()

	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.loading, event)
	if l.err != nil {
		return
	}
	for _, n := range l.pending {
		b.Apply(n, now)
	}
	r.makeRoom()
	e := &entry{event: event, board: b, told: -1}
	e.used.Store(now.UnixMilli())
	if !l.missed {
		e.reloadAt.Store(now.Add(r.cfg.ReloadEvery).UnixMilli())
	}
	r.boards[event] = e
	delete(r.wanted, event)
	delete(r.left, event)
	l.board = b
}

// Apply tells the board of an event what changed. An event without one is remembered, and gets one if there is room: what it has left is to be known for the search.
func (r *Registry) Apply(event int64, n News, now time.Time) {
	r.mu.RLock()
	e := r.boards[event]
	var b *Board
	if e != nil {
		b = e.board
	}
	r.mu.RUnlock()
	if e != nil {
		e.use(now)
		b.Apply(n, now)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch l := r.loading[event]; {
	case r.boards[event] != nil: // loaded in between
		r.boards[event].board.Apply(n, now)
	case l != nil && len(l.pending) < pendingMax:
		l.pending = append(l.pending, n)
	case l != nil:
		l.missed = true
	case len(r.wanted) < wantedMax:
		r.wanted[event] = struct{}{}
	}
}

// makeRoom puts the boards away that were used longest ago, a few more than needed; mu is held.
func (r *Registry) makeRoom() {
	if len(r.boards) < r.cfg.Boards {
		return
	}
	byUse := make([]*entry, 0, len(r.boards))
	for _, e := range r.boards {
		byUse = append(byUse, e)
	}
	slices.SortFunc(byUse, func(a, b *entry) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	target := r.cfg.Boards - 1 - r.cfg.Boards/32
	for _, e := range byUse {
		if len(r.boards) <= target {
			break
		}
		r.evict(e)
	}
}

// evict puts a board away unless somebody follows it; mu is held.
func (r *Registry) evict(e *entry) {
	if !e.board.close(false) {
		return
	}
	delete(r.boards, e.event)
	if a := e.board.Available(); a != e.told && len(r.left) < r.cfg.Boards {
		r.left[e.event] = a
	}
}

func (r *Registry) entries() []*entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*entry, 0, len(r.boards))
	for _, e := range r.boards {
		all = append(all, e)
	}
	return all
}

func (r *Registry) boardOf(e *entry) *Board {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return e.board
}

// Tick makes the versions that are due for boards that are followed, lets ended holds be over on the others, and puts idle boards away.
func (r *Registry) Tick(now time.Time) {
	var idle []*entry
	for _, e := range r.entries() {
		b := r.boardOf(e)
		if b.Subscribers() > 0 {
			b.Snapshot(now)
			continue
		}
		b.Advance(now)
		if now.UnixMilli()-e.used.Load() > IdleFor.Milliseconds() && !b.holding() {
			idle = append(idle, e)
		}
	}
	if len(idle) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range idle {
		if now.UnixMilli()-e.used.Load() > IdleFor.Milliseconds() {
			r.evict(e)
		}
	}
}

// Reload reads the boards again that are due, one after the other, and gives some of the events without a board one. It ends early with ctx.
func (r *Registry) Reload(ctx context.Context, now time.Time) {
	for _, e := range r.entries() {
		if ctx.Err() != nil {
			return
		}
		if due := e.reloadAt.Load(); now.UnixMilli() < due {
			continue
		}
		e.reloadAt.Store(now.Add(r.cfg.ReloadEvery).UnixMilli())
		if err := r.reload(ctx, e, now); err != nil && ctx.Err() == nil {
			r.cfg.OnError(e.event, err)
		}
	}
	for _, event := range r.wants() {
		if _, err := r.Get(ctx, event); err != nil && ctx.Err() == nil {
			r.cfg.OnError(event, err)
		}
	}
}

func (r *Registry) reload(ctx context.Context, e *entry, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, LoadTimeout)
	defer cancel()
	b := r.boardOf(e)
	began := b.BeginReload()
	shape, full, err := r.cfg.Load(ctx, e.event)
	if err != nil {
		return err
	}
	if sameShape(shape, b.shape) {
		b.Reload(full, began, now)
		return nil
	}
	// The event's places were changed: its subscribers start again on a new board. What is told of it between the reading and here is healed by reading again soon.
	next := newBoard(shape, full, now, b.current.Load().Version)
	r.mu.Lock()
	e.board = next
	e.reloadAt.Store(0)
	r.mu.Unlock()
	b.close(true)
	return nil
}

// wants takes some of the events that were sold from without a board, if there is room for them.
func (r *Registry) wants() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(wantedEach, r.cfg.Boards-len(r.boards))
	var some []int64
	for event := range r.wanted {
		if len(some) >= n {
			break
		}
		some = append(some, event)
		delete(r.wanted, event)
	}
	return some
}

// Dirty says of which events the number of places left changed since it was last asked, and to what; a board newly loaded counts as changed.
func (r *Registry) Dirty() map[int64]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.left
	r.left = map[int64]int{}
	for _, e := range r.boards {
		if a := e.board.Available(); a != e.told {
			e.told = a
			changed[e.event] = a
		}
	}
	return changed
}

// RunOnce does once what Run does all the time.
func (r *Registry) RunOnce(ctx context.Context, now time.Time) {
	r.Tick(now)
	r.Reload(ctx, now)
}

// Run ticks, reloads and evicts until ctx ends. Reading is a loop of its own: a slow store must not hold up the streams.
func (r *Registry) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loop := func(every time.Duration, do func(now time.Time)) {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				do(r.cfg.Now())
			}
		}
	}
	loops.Go(func() { loop(lookEvery, r.Tick) })
	loops.Go(func() { loop(min(TickEvery, r.cfg.ReloadEvery), func(now time.Time) { r.Reload(ctx, now) }) })
	loops.Wait()
}
