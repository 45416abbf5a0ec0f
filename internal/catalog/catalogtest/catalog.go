package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/venue"
)

var catalogTests = []contract{
	{"an event is read once for all who ask", eventIsReadOnce},
	{"a change by another process is seen within two seconds", changeIsSeen},
	{"what is not there is asked for once, and found when it is made", absentIsRemembered},
	{"many names that are not there don't grow the memory or hide a new event", absentFlood},
	{"when the store is away what is known is answered, searches marked stale", storeAway},
	{"an event made before anything was asked is not remembered wrongly", madeBeforeFirstPoll},
	{"an old answer that comes late does not hide an edit", lateAnswer},
	{"a slow store has one poll at a time", oneSlowPoll},
	{"a search is asked once for all who want the same", searchIsAskedOnce},
	{"a search is at most a second old", searchIsFresh},
	{"queries that differ are not taken for each other", queriesAreKeptApart},
	{"a query that can't be is refused by its field", queryIsChecked},
	{"pages of a search lead to each other", pagesLeadOn},
	{"of editors of one version one wins, those of any version all", editorsAtOnce},
	{"an edit that is wrong or fails changes nothing", editFails},
	{"events are made all or none, each mistake by its element", eventsAllOrNone},
	{"an event takes the newest version of its layout and keeps it", newestLayout},
	{"a layout is parsed once for all who ask", layoutIsReadOnce},
}

var errAway = errors.New("the store is away")

// counted is a store that counts what it is asked and can be made slow or take leave.
type counted struct {
	catalog.Store

	events, slugs, layouts, searches, polls atomic.Int64
	away                                    atomic.Bool
	slow, late                              atomic.Pointer[chan struct{}] // reads wait until it is closed: before they read, or with what they have read
}

func (c *counted) enter(ctx context.Context, n *atomic.Int64) error {
	n.Add(1)
	if gate := c.slow.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.away.Load() {
		return errAway
	}
	return nil
}

func (c *counted) Event(ctx context.Context, id catalog.EventID) (*catalog.Event, error) {
	if err := c.enter(ctx, &c.events); err != nil {
		return nil, err
	}
	return c.Store.Event(ctx, id)
}

func (c *counted) EventBySlug(ctx context.Context, slug string) (*catalog.Event, error) {
	if err := c.enter(ctx, &c.slugs); err != nil {
		return nil, err
	}
	e, err := c.Store.EventBySlug(ctx, slug)
	if gate := c.late.Load(); gate != nil {
		<-*gate
	}
	return e, err
}

func (c *counted) Layout(ctx context.Context, ref catalog.LayoutRef) ([]byte, error) {
	if err := c.enter(ctx, &c.layouts); err != nil {
		return nil, err
	}
	return c.Store.Layout(ctx, ref)
}

func (c *counted) Search(ctx context.Context, q *catalog.Query) ([]catalog.Item, error) {
	if err := c.enter(ctx, &c.searches); err != nil {
		return nil, err
	}
	return c.Store.Search(ctx, q)
}

func (c *counted) Changes(ctx context.Context, after int64) ([]catalog.Change, error) {
	if err := c.enter(ctx, &c.polls); err != nil {
		return nil, err
	}
	return c.Store.Changes(ctx, after)
}

func (c *counted) LastChange(ctx context.Context) (int64, error) {
	if err := c.enter(ctx, &c.polls); err != nil {
		return 0, err
	}
	return c.Store.LastChange(ctx)
}

func (w *world) catalog() (*catalog.Catalog, *counted) {
	s := &counted{Store: w.store}
	return catalog.New(s, w.clock.Now), s
}

// together runs f so many times at once.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// until asks again until it is so: another goroutine has been told and is on its way.
func (w *world) until(what string, so func() bool) {
	w.Helper()
	for range 2_000 {
		if so() {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-w.Context().Done():
		}
	}
	w.Fatalf("never: %s", what)
}

func eventIsReadOnce(w *world) {
	e := w.event("one")
	w.add(e)
	c, s := w.catalog()
	if _, err := c.Resolve(w.Context(), "warm-up"); !errors.Is(err, catalog.ErrNotFound) {
		w.Fatal(err)
	}
	s.slugs.Store(0)
	gate := make(chan struct{})
	s.slow.Store(&gate)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(100, func(int) {
			if got, err := c.Resolve(w.Context(), "one"); err != nil || got.ID != e.ID {
				w.Errorf("%v, %v", got, err)
			}
		})
	}()
	w.until("somebody reads", func() bool { return s.slugs.Load() > 0 })
	close(gate)
	<-done
	for range 100 {
		if got, err := c.Event(w.Context(), e.ID); err != nil || got.Slug != "one" {
			w.Errorf("%v, %v", got, err)
		}
	}
	// Those who came after the answer find it in memory, so few reads may follow the first, but not one for each.
	if n := s.slugs.Load() + s.events.Load(); n > 3 {
		w.Errorf("%d reads for 200 questions", n)
	}
}

func changeIsSeen(w *world) {
	e := w.event("one")
	w.add(e)
	here, s := w.catalog()
	there, _ := w.catalog()
	if _, err := here.Event(w.Context(), e.ID); err != nil {
		w.Fatal(err)
	}
	for round := 2; round <= 4; round++ {
		title := fmt.Sprintf("Edition %d", round)
		if _, err := there.EditEvent(w.Context(), e.ID, catalog.Edit{Title: &title}); err != nil {
			w.Fatal(err)
		}
		w.clock.Add(2100 * time.Millisecond) // longer than an answer may be old: the next question waits for news
		got, err := here.Resolve(w.Context(), "one")
		w.ok(err)
		if got.Title != title || got.Version != round {
			w.Errorf("%q in version %d, want %q", got.Title, got.Version, title)
		}
		if mine, err := there.Event(w.Context(), e.ID); err != nil || mine.Version != round {
			w.Errorf("the editor itself sees version %d, %v", mine.Version, err)
		}
	}
	reads := s.events.Load()
	w.clock.Add(time.Hour)
	if _, err := here.Event(w.Context(), e.ID); err != nil {
		w.Fatal(err)
	}
	if n := s.events.Load(); n != reads {
		w.Errorf("%d reads although nothing had changed", n-reads)
	}
}

func absentIsRemembered(w *world) {
	c, s := w.catalog()
	there, _ := w.catalog()
	for range 50 {
		if _, err := c.Resolve(w.Context(), "later"); !errors.Is(err, catalog.ErrNotFound) {
			w.Fatal(err)
		}
	}
	id := catalog.NewEventID()
	for range 50 {
		if _, err := c.Resolve(w.Context(), id.String()); !errors.Is(err, catalog.ErrNotFound) {
			w.Fatal(err)
		}
	}
	for _, never := range []string{"", "Not-A-Slug", "a--b", "evt_", "a/b", "x' OR 1=1", string(make([]byte, 1000))} {
		if _, err := c.Resolve(w.Context(), never); !errors.Is(err, catalog.ErrNotFound) {
			w.Errorf("%q: %v", never, err)
		}
	}
	if n := s.slugs.Load() + s.events.Load(); n != 2 {
		w.Errorf("%d reads for two names that are not there", n)
	}
	if _, err := c.CreateEvent(w.Context(), draft("later", "Made here")); err != nil {
		w.Fatal(err)
	}
	if e, err := c.Resolve(w.Context(), "later"); err != nil || e.Title != "Made here" {
		w.Errorf("the event that was made here: %v, %v", e, err)
	}
	if _, err := c.Resolve(w.Context(), "elsewhere"); !errors.Is(err, catalog.ErrNotFound) {
		w.Fatal(err)
	}
	if _, err := there.CreateEvent(w.Context(), draft("elsewhere", "Made elsewhere")); err != nil {
		w.Fatal(err)
	}
	w.clock.Add(1100 * time.Millisecond) // time for a poll, but not to forget
	w.until("the event that was made elsewhere is found", func() bool {
		e, err := c.Resolve(w.Context(), "elsewhere")
		return err == nil && e.Title == "Made elsewhere"
	})
}

func absentFlood(w *world) {
	w.add(w.event("one"))
	c, s := w.catalog()
	for i := range 6_000 {
		if _, err := c.Resolve(w.Context(), fmt.Sprintf("no-%d", i)); !errors.Is(err, catalog.ErrNotFound) {
			w.Fatal(err)
		}
	}
	reads := s.slugs.Load()
	if _, err := c.Resolve(w.Context(), "no-0"); !errors.Is(err, catalog.ErrNotFound) {
		w.Fatal(err)
	}
	if s.slugs.Load() != reads+1 {
		w.Error("six thousand names are remembered: the memory has no limit")
	}
	if _, err := c.Resolve(w.Context(), "one"); err != nil {
		w.Error(err)
	}
}

func storeAway(w *world) {
	e := w.event("one")
	w.add(e)
	c, s := w.catalog()
	if _, err := c.Event(w.Context(), e.ID); err != nil {
		w.Fatal(err)
	}
	known, unknown := catalog.Query{Text: "bells"}, catalog.Query{Text: "night"}
	fresh, err := c.Search(w.Context(), known)
	w.ok(err)
	if fresh.Stale || len(fresh.Items) != 1 {
		w.Errorf("fresh: %+v", fresh)
	}
	s.away.Store(true)
	for range 5 {
		w.clock.Add(3 * time.Second)
		if got, err := c.Event(w.Context(), e.ID); err != nil || got.Slug != "one" {
			w.Errorf("known event: %v, %v", got, err)
		}
		if _, err := c.Resolve(w.Context(), "unknown"); !errors.Is(err, errAway) {
			w.Errorf("unknown event: %v", err)
		}
		page, err := c.Search(w.Context(), known)
		if err != nil || !page.Stale || len(page.Items) != 1 {
			w.Errorf("known search: %+v, %v", page, err)
		}
		if _, err := c.Search(w.Context(), unknown); !errors.Is(err, errAway) {
			w.Errorf("unknown search: %v", err)
		}
	}
	s.away.Store(false)
	w.clock.Add(3 * time.Second)
	page, err := c.Search(w.Context(), known)
	if err != nil || page.Stale {
		w.Errorf("back again: %+v, %v", page, err)
	}
	if _, err := c.Resolve(w.Context(), "unknown"); !errors.Is(err, catalog.ErrNotFound) {
		w.Errorf("unknown event when the store is back: %v", err)
	}
}

func madeBeforeFirstPoll(w *world) {
	here, _ := w.catalog()
	there, _ := w.catalog()
	e, err := here.CreateEvent(w.Context(), draft("one", "First"))
	w.ok(err)
	title := "Second"
	if _, err := there.EditEvent(w.Context(), e.ID, catalog.Edit{Title: &title}); err != nil {
		w.Fatal(err)
	}
	w.clock.Add(time.Minute)
	if got, err := here.Event(w.Context(), e.ID); err != nil || got.Title != title {
		w.Errorf("%q, %v", got.Title, err)
	}
}

func lateAnswer(w *world) {
	e := w.event("one")
	w.add(e)
	c, s := w.catalog()
	if _, err := c.Resolve(w.Context(), "warm-up"); !errors.Is(err, catalog.ErrNotFound) {
		w.Fatal(err)
	}
	gate := make(chan struct{})
	s.late.Store(&gate)
	s.slugs.Store(0)
	late := make(chan int)
	go func() {
		got, err := c.Resolve(w.Context(), "one")
		if err != nil {
			w.Error(err)
			got = e
		}
		late <- got.Version
	}()
	w.until("somebody reads", func() bool { return s.slugs.Load() > 0 })
	title := "Edited"
	if _, err := c.EditEvent(w.Context(), e.ID, catalog.Edit{Title: &title}); err != nil {
		w.Fatal(err)
	}
	close(gate)
	if v := <-late; v != 2 {
		w.Errorf("whoever waited got version %d", v)
	}
	if got, err := c.Event(w.Context(), e.ID); err != nil || got.Version != 2 {
		w.Errorf("version %d afterwards, %v", got.Version, err)
	}
}

func oneSlowPoll(w *world) {
	e := w.event("one")
	w.add(e)
	c, s := w.catalog()
	if _, err := c.Event(w.Context(), e.ID); err != nil {
		w.Fatal(err)
	}
	gate := make(chan struct{})
	s.slow.Store(&gate)
	s.polls.Store(0)
	for range 5 {
		w.clock.Add(1100 * time.Millisecond)
		if got, err := c.Event(w.Context(), e.ID); err != nil || got.Slug != "one" {
			w.Errorf("%v, %v", got, err)
		}
	}
	w.until("a poll begins", func() bool { return s.polls.Load() > 0 })
	if n := s.polls.Load(); n != 1 {
		w.Errorf("%d polls wait for the slow store", n)
	}
	close(gate)
	w.until("polling goes on", func() bool {
		w.clock.Add(1100 * time.Millisecond)
		_, err := c.Event(w.Context(), e.ID)
		return err == nil && s.polls.Load() > 2
	})
}

func searchIsAskedOnce(w *world) {
	w.add(w.event("one"))
	c, s := w.catalog()
	gate := make(chan struct{})
	s.slow.Store(&gate)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(100, func(int) {
			if page, err := c.Search(w.Context(), catalog.Query{Text: " bells "}); err != nil || len(page.Items) != 1 {
				w.Errorf("%+v, %v", page, err)
			}
		})
	}()
	w.until("somebody searches", func() bool { return s.searches.Load() > 0 })
	// Whoever has no patience left goes; the others get their answer.
	hurried, cancel := context.WithCancel(w.Context())
	cancel()
	if _, err := c.Search(hurried, catalog.Query{Text: "bells"}); !errors.Is(err, context.Canceled) {
		w.Errorf("whoever has gone: %v", err)
	}
	close(gate)
	<-done
	if n := s.searches.Load(); n > 2 {
		w.Errorf("%d searches for one question", n)
	}
}

func searchIsFresh(w *world) {
	c, s := w.catalog()
	ask := func() int {
		page, err := c.Search(w.Context(), catalog.Query{})
		w.ok(err)
		return len(page.Items)
	}
	if n := ask(); n != 0 {
		w.Errorf("%d events", n)
	}
	w.add(w.event("one"))
	w.clock.Add(999 * time.Millisecond)
	if n := ask(); n != 0 || s.searches.Load() != 1 {
		w.Errorf("%d events, %d searches within the second", n, s.searches.Load())
	}
	w.clock.Add(time.Millisecond)
	if n := ask(); n != 1 || s.searches.Load() != 2 {
		w.Errorf("%d events, %d searches after a second", n, s.searches.Load())
	}
}

// queriesAreKeptApart asks all at once, so that the key of what is under way counts, and again from memory.
func queriesAreKeptApart(w *world) {
	w.add(w.event("one", titled("Alpha Beta")), w.event("two", titled("Gamma"), in("Alpha", "Beta", "UTC")), w.event("three", flightOf("SGN", "HAN")))
	queries := []catalog.Query{
		{}, {Text: "alpha"}, {Place: "alpha"}, {Text: "alpha", Place: "beta"}, {Place: "alpha", Text: "beta"}, {Text: "alpha beta"}, {Place: "alpha beta"}, {Kind: catalog.Concert}, {Kind: catalog.Flight},
		{Origin: "SGN"}, {Destination: "SGN"}, {Origin: "HAN"}, {Date: "2030-06-01"}, {DateFrom: "2030-06-01"}, {DateTo: "2030-06-01"}, {DateFrom: "2030-06-02"}, {Limit: 1}, {Limit: 2},
		{After: catalog.Position{StartsAt: Start.AddDate(1, 0, 0), ID: 1}}, {After: catalog.Position{StartsAt: Start, ID: 2}}, {Text: "7 alpha"}, {Text: "1", Place: "1 a"},
	}
	c, s := w.catalog()
	gate := make(chan struct{})
	s.slow.Store(&gate)
	got := make([]catalog.Page, len(queries))
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(len(queries), func(i int) {
			page, err := c.Search(w.Context(), queries[i])
			if err != nil {
				w.Error(err)
			}
			got[i] = page
		})
	}()
	w.until("all ask the store", func() bool { return s.searches.Load() == int64(len(queries)) })
	close(gate)
	<-done
	for i, q := range queries {
		again, err := c.Search(w.Context(), q)
		w.ok(err)
		alone, err := catalog.New(w.store, w.clock.Now).Search(w.Context(), q)
		w.ok(err)
		if diff := cmp.Diff(alone, got[i]); diff != "" {
			w.Errorf("%s among others: %s", describe(q), diff)
		}
		if diff := cmp.Diff(alone, again); diff != "" {
			w.Errorf("%s from memory: %s", describe(q), diff)
		}
	}
	if n := s.searches.Load(); n != int64(len(queries)) {
		w.Errorf("%d searches for %d questions", n, len(queries))
	}
}

func queryIsChecked(w *world) {
	c, s := w.catalog()
	long := string(make([]byte, catalog.MaxQueryBytes+1))
	for pointer, q := range map[string]catalog.Query{
		"/q": {Text: "a" + long}, "/place": {Place: "a\xff"}, "/kind": {Kind: "opera"}, "/from": {Origin: "SG"}, "/to": {Destination: "S1N"}, "/date": {Date: "2030-02-30"},
		"/dateFrom": {DateFrom: "1.2.2030"}, "/dateTo": {DateFrom: "2030-02-02", DateTo: "2030-02-01"}, "/limit": {Limit: catalog.MaxResults + 1},
	} {
		_, err := c.Search(w.Context(), q)
		fields, ok := errors.AsType[catalog.FieldErrors](err)
		if !ok || len(fields) != 1 || fields[0].Pointer != pointer {
			w.Errorf("%+v: %v, want a mistake at %s", q, err, pointer)
		}
	}
	for _, q := range []catalog.Query{{Limit: -1}, {Date: "2030-02-01", DateTo: "2030-02-01"}, {DateTo: "9999-01-01"}} {
		if _, err := c.Search(w.Context(), q); err == nil {
			w.Errorf("%+v is answered", q)
		}
	}
	if s.searches.Load() != 0 {
		w.Error("the store was asked")
	}
	if page, err := c.Search(w.Context(), catalog.Query{Origin: "sgn", Limit: catalog.MaxResults}); err != nil || page.Next != nil {
		w.Errorf("%+v, %v", page, err)
	}
}

func pagesLeadOn(w *world) {
	for i := range 45 {
		w.add(w.event(fmt.Sprintf("e-%02d", i)))
	}
	c, _ := w.catalog()
	seen := map[string]bool{}
	var sizes []int
	q := catalog.Query{}
	for {
		page, err := c.Search(w.Context(), q)
		w.ok(err)
		sizes = append(sizes, len(page.Items))
		for _, i := range page.Items {
			if seen[i.Slug] {
				w.Errorf("%s twice", i.Slug)
			}
			seen[i.Slug] = true
		}
		if page.Next == nil || len(sizes) > 10 {
			break
		}
		q.After = *page.Next
	}
	if diff := cmp.Diff([]int{20, 20, 5}, sizes); diff != "" || len(seen) != 45 {
		w.Errorf("%d events; pages %s", len(seen), diff)
	}
}

func editorsAtOnce(w *world) {
	e := w.event("one")
	w.add(e)
	c, _ := w.catalog()
	const editors = 8
	var won, refused atomic.Int64
	together(editors, func(i int) {
		title := fmt.Sprintf("Edition %d", i)
		switch _, err := c.EditEvent(w.Context(), e.ID, catalog.Edit{Version: 1, Title: &title}); {
		case err == nil:
			won.Add(1)
		case errors.Is(err, catalog.ErrVersion):
			refused.Add(1)
		default:
			w.Error(err)
		}
	})
	if won.Load() != 1 || refused.Load() != editors-1 {
		w.Errorf("%d editors of version 1 won, %d were refused", won.Load(), refused.Load())
	}
	// Four at once each have to try again at most three times, of five.
	together(4, func(i int) {
		prices := []catalog.PoolEdit{{Pool: "STANDING", Price: new(int64(100 + i))}}
		if _, err := c.EditEvent(w.Context(), e.ID, catalog.Edit{Pools: prices}); err != nil {
			w.Errorf("an edit of any version: %v", err)
		}
	})
	got, err := c.Event(w.Context(), e.ID)
	w.ok(err)
	if stored, err := w.store.Event(w.Context(), e.ID); err != nil || stored.Version != 6 || got.Version != 6 {
		w.Errorf("version %d in the store, %d in memory, %v; want 6", stored.Version, got.Version, err)
	}
}

func editFails(w *world) {
	e := w.event("one")
	w.add(e)
	c, _ := w.catalog()
	empty, minus, title := "", int64(-1), "New"
	_, err := c.EditEvent(w.Context(), e.ID, catalog.Edit{Title: &empty, Pools: []catalog.PoolEdit{{Pool: "NONE"}, {Pool: "STANDING", Price: &minus}}})
	fields, ok := errors.AsType[catalog.FieldErrors](err)
	if !ok {
		w.Fatal(err)
	}
	var pointers []string
	for _, f := range fields {
		pointers = append(pointers, f.Pointer)
	}
	if diff := cmp.Diff([]string{"/pools/0/pool", "/title", "/pools/1/price"}, pointers); diff != "" {
		w.Errorf("%v: %s", err, diff)
	}
	if _, err := c.EditEvent(w.Context(), catalog.NewEventID(), catalog.Edit{Title: &title}); !errors.Is(err, catalog.ErrNotFound) {
		w.Errorf("an event that is not there: %v", err)
	}
	if _, err := c.EditEvent(w.Context(), e.ID, catalog.Edit{Version: 7, Title: &title}); !errors.Is(err, catalog.ErrVersion) {
		w.Errorf("another version: %v", err)
	}
	got, err := w.store.Event(w.Context(), e.ID)
	w.ok(err)
	if diff := cmp.Diff(e, got); diff != "" {
		w.Error(diff)
	}
}

func eventsAllOrNone(w *world) {
	c, _ := w.catalog()
	bad := draft("bad", "")
	bad.Currency = "GOLD"
	_, err := c.CreateEvents(w.Context(), []catalog.Draft{draft("good", "Good"), bad, draft("good", "Again"), draft("Bad Slug", "x")})
	fields, ok := errors.AsType[catalog.FieldErrors](err)
	if !ok {
		w.Fatal(err)
	}
	var pointers []string
	for _, f := range fields {
		pointers = append(pointers, f.Pointer)
	}
	if diff := cmp.Diff([]string{"/1/title", "/1/currency", "/2/slug", "/3/slug"}, pointers); diff != "" {
		w.Errorf("%v: %s", err, diff)
	}
	w.finds(catalog.Query{})
	if _, err := c.CreateEvents(w.Context(), make([]catalog.Draft, catalog.MaxBatch+1)); err == nil {
		w.Error("a batch has no limit")
	}
	taken, err := c.CreateEvents(w.Context(), []catalog.Draft{draft("good", "Good"), draft("better", "Better")})
	if err != nil || len(taken) != 0 {
		w.Errorf("taken %v, %v", taken, err)
	}
	taken, err = c.CreateEvents(w.Context(), []catalog.Draft{draft("best", "Best"), draft("good", "Good")})
	if diff := cmp.Diff([]int{1}, taken); diff != "" || err != nil {
		w.Errorf("again: %v, %s", err, diff)
	}
	if _, err := c.CreateEvent(w.Context(), draft("good", "Good")); !errors.Is(err, catalog.ErrSlugTaken) {
		w.Errorf("one with a taken slug: %v", err)
	}
}

func cinemaDraft(slug, layout string) catalog.Draft {
	d := draft(slug, "The Night Train")
	d.Kind, d.Pools, d.LayoutID, d.Prices = catalog.Cinema, nil, layout, map[string]int64{"Stalls": 1200, "Premium": 1500}
	return d
}

func newestLayout(w *world) {
	c, _ := w.catalog()
	var refs []catalog.LayoutRef
	for _, rows := range []int{6, 9, 6} {
		l, err := venue.Cinema(rows, 10)
		w.ok(err)
		added, err := c.AddLayout(w.Context(), l.Canonical())
		w.ok(err)
		refs = append(refs, added.Ref)
	}
	if refs[0].ID != refs[1].ID || refs[0].Version != 1 || refs[1].Version != 2 || refs[2] != refs[0] {
		w.Errorf("versions %v", refs)
	}
	made, err := c.CreateEvent(w.Context(), cinemaDraft("newest", refs[0].ID))
	w.ok(err)
	d := cinemaDraft("first", refs[0].ID)
	d.LayoutVersion = 1
	first, err := c.CreateEvent(w.Context(), d)
	w.ok(err)
	if made.Layout != refs[1] || made.Places != 90 || first.Layout != refs[0] || first.Places != 60 {
		w.Errorf("%v with %d places, %v with %d", made.Layout, made.Places, first.Layout, first.Places)
	}
	_, err = c.CreateEvent(w.Context(), cinemaDraft("none", "no-such-layout"))
	if fields, ok := errors.AsType[catalog.FieldErrors](err); !ok || len(fields) != 1 || fields[0].Pointer != "/layoutId" {
		w.Errorf("a layout that is not there: %v", err)
	}
	if _, _, err := venue.Parse([]byte("{}")); err != nil {
		_, err2 := c.AddLayout(w.Context(), []byte("{}"))
		if _, ok := errors.AsType[*venue.PathError](err2); !ok {
			w.Errorf("a file that is none: %v", err2)
		}
	}
}

func layoutIsReadOnce(w *world) {
	writer, _ := w.catalog()
	l, err := venue.Cinema(10, 20)
	w.ok(err)
	added, err := writer.AddLayout(w.Context(), l.Canonical())
	w.ok(err)
	c, s := w.catalog()
	gate := make(chan struct{})
	s.slow.Store(&gate)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(50, func(int) {
			if got, err := c.Layout(w.Context(), added.Ref); err != nil || len(got.Seats) != 200 {
				w.Error(err)
			}
		})
	}()
	w.until("somebody reads", func() bool { return s.layouts.Load() > 0 })
	close(gate)
	<-done
	if n := s.layouts.Load(); n > 2 {
		w.Errorf("%d reads of one layout", n)
	}
	if _, err := c.Layout(w.Context(), catalog.LayoutRef{ID: added.Ref.ID, Version: 2}); !errors.Is(err, catalog.ErrNotFound) {
		w.Errorf("a version that is not there: %v", err)
	}
}
