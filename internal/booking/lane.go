package booking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Limits of a lane.
const (
	batchMax        = 512  // commands in one transaction
	laneMax         = 8192 // commands waiting in a lane; one more is ErrBusy
	eventMax        = 6144 // of those, for one event: a hot event leaves room for its neighbours
	guardTries      = 3    // of one command that the store refuses
	shortRounds     = 4    // how often ended holds are settled for a command that is short
	shortHolds      = 500  // ended holds settled in one of those rounds
	bestTries       = 4    // how often "best available" chooses again when others were faster
	applyTimeout    = 30 * time.Second
	unknownOutcomes = 2 // how often a batch is repeated whose outcome is not known
)

// lane is the one way into the places of its events: what has gathered while the last batch was committing is the next batch.
type lane struct {
	store  Store
	boards *board.Registry
	watch  Observer
	log    *slog.Logger
	now    func() time.Time
	skew   *atomic.Int64 // store's clock minus this process', nanoseconds
	told   func()

	mu      sync.Mutex
	waiting map[catalog.EventID]*line
	ring    []*line // lines with something in them, the next to be served first
	size    int
	closed  bool
	wake    chan struct{}
	done    chan struct{}
}

// line is what waits for one event, first come, first served.
type line struct {
	event   catalog.EventID
	entries []*entry
}

// entry is a command on its way through a lane.
type entry struct {
	command Command
	// choose is set for "best available": it picks the places from the picture of the moment and fills the command in.
	choose  func(*board.Overlay) error
	board   *board.Board // of the command's event, when it was loaded already
	keep    bool         // somebody will ask again (Idempotency-Key): never release for want of a listener
	queued  time.Time
	rounds  int     // of settling ended holds
	tries   int     // of choosing
	gone    []int32 // seats that it chose and the store refused: the picture has not heard of them yet
	settled atomic.Bool
	answer  chan Result
}

func newLane(c laneConfig) *lane {
	return &lane{
		store: c.Store, boards: c.Boards, watch: c.Observer, log: c.Logger, now: c.Now, skew: c.Skew, told: c.Told,
		waiting: map[catalog.EventID]*line{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

type laneConfig struct {
	Store    Store
	Boards   *board.Registry
	Observer Observer
	Logger   *slog.Logger
	Now      func() time.Time
	Skew     *atomic.Int64
	Told     func()
}

// do sends a command through the lane and waits for its result, or for the end of ctx. A command that is already on its way then is still done;
// a hold that nobody waits for is released again.
func (l *lane) do(ctx context.Context, e *entry) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	e.answer = make(chan Result, 1)
	if err := l.add(e); err != nil {
		return Result{}, err
	}
	select {
	case r := <-e.answer:
		return r, r.Err
	case <-ctx.Done():
		if e.settled.CompareAndSwap(false, true) {
			return Result{}, ctx.Err()
		}
		r := <-e.answer // it was answered in the same instant
		return r, r.Err
	}
}

func (l *lane) add(e *entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.waiting[e.command.EventID()]
	if l.closed || l.size >= laneMax || q != nil && len(q.entries) >= eventMax {
		return ErrBusy
	}
	e.queued = l.now()
	if q == nil {
		q = &line{event: e.command.EventID()}
		l.waiting[q.event] = q
		l.ring = append(l.ring, q)
	}
	q.entries = append(q.entries, e)
	l.size++
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// take makes the next batch: an even share of it for every event that waits, so that a hot event delays its neighbours by one batch at most.
func (l *lane) take() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []*entry
	for len(batch) < batchMax && len(l.ring) > 0 {
		share := max(1, (batchMax-len(batch))/len(l.ring))
		for n := len(l.ring); n > 0 && len(batch) < batchMax; n-- {
			q := l.ring[0]
			l.ring = l.ring[1:]
			k := min(share, len(q.entries), batchMax-len(batch))
			batch = append(batch, q.entries[:k]...)
			clear(q.entries[:k])
			q.entries = q.entries[k:]
			if len(q.entries) > 0 {
				l.ring = append(l.ring, q)
			} else {
				delete(l.waiting, q.event)
			}
		}
	}
	l.size -= len(batch)
	return batch
}

// run serves the lane until close was called and everything that was accepted is answered.
func (l *lane) run() {
	defer close(l.done)
	for range l.wake {
		for batch := l.take(); len(batch) > 0; batch = l.take() {
			l.serve(batch)
			// Those who were just answered, and requests that are ready to be read, go first: their commands make the next batch larger, and a larger
			// one costs less for each (measured: twice the size). When nobody else is ready this costs nothing.
			runtime.Gosched()
		}
		l.mu.Lock()
		stop := l.closed && l.size == 0
		l.mu.Unlock()
		if stop {
			return
		}
	}
}

// close refuses new commands and waits until the accepted ones are answered.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.done
}

// serve answers a batch; what is short of places that ended holds may still be using, or chose seats that others were faster to take, goes round again.
func (l *lane) serve(batch []*entry) {
	started := l.now()
	l.watch.Batch(len(batch), started.Sub(batch[0].queued))
	for len(batch) > 0 {
		batch = l.choose(batch)
		results := l.apply(batch)
		var again []*entry
		var short []*entry
		for i, e := range batch {
			r := results[i]
			switch {
			case r.Short && e.rounds < shortRounds:
				e.rounds++
				short = append(short, e)
			case e.choose != nil && errors.Is(r.Err, ErrGone) && e.tries < bestTries:
				e.tries++
				if gone, ok := errors.AsType[*GoneError](r.Err); ok {
					e.gone = append(e.gone, gone.Seats...)
				}
				again = append(again, e)
			default:
				l.answer(e, r)
			}
		}
		batch = append(l.settleEnded(short, results, batch), again...)
	}
	l.watch.BatchDone(l.now().Sub(started))
}

// settleEnded puts commands that end over holds in front of those that are short; a command for which there are none is answered as it was.
func (l *lane) settleEnded(short []*entry, results []Result, batch []*entry) []*entry {
	if len(short) == 0 {
		return nil
	}
	refused := make(map[*entry]Result, len(batch))
	queries := map[catalog.EventID]*EndedHolds{}
	for i, e := range batch {
		refused[e] = results[i]
	}
	for _, e := range short {
		q := queries[e.command.EventID()]
		if q == nil {
			q = &EndedHolds{Event: e.command.EventID(), Limit: shortHolds}
			queries[q.Event] = q
		}
		q.Pools = append(q.Pools, refused[e].pools...)
		if place, ok := e.command.(*Place); ok && errors.Is(refused[e].Err, ErrCustomerLimit) {
			q.Customers = append(q.Customers, place.Customer)
		}
	}
	var next []*entry
	found := map[catalog.EventID]bool{}
	for event, q := range queries {
		ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
		ended, err := l.store.EndedHolds(ctx, *q)
		cancel()
		if err != nil {
			l.log.Error("looking for ended holds", "event", event, "error", err)
			continue
		}
		for _, id := range ended {
			next = append(next, &entry{command: &Expire{ID: id}, keep: true, rounds: shortRounds})
		}
		found[event] = len(ended) > 0
	}
	for _, e := range short {
		if found[e.command.EventID()] {
			next = append(next, e)
		} else {
			l.answer(e, refused[e])
		}
	}
	return next
}

// choose lets the entries of the batch that want the best places pick them, each seeing what those before it ask for.
func (l *lane) choose(batch []*entry) []*entry {
	var overlays map[catalog.EventID]*board.Overlay
	for _, e := range batch {
		if e.choose != nil && overlays[e.command.EventID()] == nil {
			if overlays == nil {
				overlays = map[catalog.EventID]*board.Overlay{}
			}
			overlays[e.command.EventID()] = board.NewOverlay(e.board, l.storeNow())
		}
	}
	if overlays == nil {
		return batch
	}
	for _, e := range batch {
		if len(e.gone) > 0 {
			overlays[e.command.EventID()].Take(e.gone)
		}
	}
	kept := batch[:0]
	for _, e := range batch {
		o := overlays[e.command.EventID()]
		if e.choose != nil {
			if err := e.choose(o); err != nil {
				e.tries = bestTries
				// A repetition under the same Idempotency-Key has its places already: the store must be asked even when nothing is free.
				if !e.keep {
					l.answer(e, Result{Err: err})
					continue
				}
			}
		}
		if place, ok := e.command.(*Place); ok && o != nil {
			o.Take(place.Seats)
			if len(place.Seats) == 0 {
				o.TakeUnits(boardUnits(nil, place.Units))
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// apply runs a batch. If the store refuses it as a whole, its commands are tried one by one, so that one bad command harms no other.
func (l *lane) apply(batch []*entry) []Result {
	if len(batch) == 0 {
		return nil
	}
	commands := make([]Command, len(batch))
	for i, e := range batch {
		commands[i] = e.command
	}
	applied, err := l.try(commands)
	if err == nil {
		return applied.Results
	}
	results := make([]Result, len(batch))
	if errors.Is(err, ErrUnavailable) {
		l.log.Error("batch failed", "commands", len(batch), "error", err)
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	l.watch.Single(len(batch))
	if len(batch) > 1 {
		l.log.Warn("batch refused, trying its commands one by one", "commands", len(batch), "error", err)
	}
	for i, c := range commands {
		for try := 0; ; try++ {
			applied, err := l.try([]Command{c})
			if err == nil {
				results[i] = applied.Results[0]
				break
			}
			if !errors.Is(err, ErrGuard) || try+1 >= guardTries {
				l.log.Error("command failed", "command", fmt.Sprintf("%T", c), "event", c.EventID(), "error", err)
				results[i].Err = err
				break
			}
		}
	}
	return results
}

// try runs the store once, or again when the outcome is not known, and tells the boards what changed.
func (l *lane) try(commands []Command) (applied Applied, err error) {
	// A batch carries the commands of many: no single client's patience may end it.
	ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic in a batch", "panic", p, "stack", string(debug.Stack()))
			mayBeKnown(commands)
			err = fmt.Errorf("panic in a batch: %v", p)
		}
	}()
	for n := 0; ; n++ {
		applied, err = l.store.Apply(ctx, commands, Decide)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnavailable) || n >= unknownOutcomes {
			return applied, err
		}
		mayBeKnown(commands)
	}
	l.skew.Store(int64(applied.Now.Sub(l.now())))
	l.show(applied)
	if applied.Changes != nil && len(applied.Changes.Messages) > 0 {
		l.told()
	}
	return applied, nil
}

// mayBeKnown says that the store may have committed the commands already: when they are tried again, repetitions must be looked for.
func mayBeKnown(commands []Command) {
	for _, c := range commands {
		if place, ok := c.(*Place); ok {
			place.Fresh = false
		}
	}
}

func (l *lane) storeNow() time.Time { return l.now().Add(time.Duration(l.skew.Load())) }

// show tells the boards, before anybody is answered: who was told 201 sees the seat as held.
func (l *lane) show(a Applied) {
	if l.boards == nil || a.Changes == nil {
		return
	}
	for event, news := range a.Changes.news() {
		l.boards.Apply(int64(event), news, a.Now)
	}
}

func (l *lane) answer(e *entry, r Result) {
	l.watch.Result(e.command, r, l.now().Sub(e.queued))
	if e.answer == nil {
		return
	}
	if e.settled.CompareAndSwap(false, true) {
		e.answer <- r
		return
	}
	// The client went away while its hold was being placed: it must not keep places that nobody knows of.
	if place, ok := e.command.(*Place); ok && r.Err == nil && !r.Replay && !e.keep {
		if err := l.add(&entry{command: &Release{ID: place.ID, Customer: place.Customer}, keep: true}); err != nil {
			l.log.Warn("an abandoned hold is left to expire", "hold", place.ID, "error", err)
		}
	}
}
