package catalogtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

var storeTests = []contract{
	{"an event comes back whole, by id and by slug", eventComesBackWhole},
	{"a slug that is taken leaves its event out and no other", takenSlugIsLeftOut},
	{"what is not there is not found", unknownIsNotFound},
	{"an update replaces all but slug and layout", updateReplaces},
	{"an update of another version changes nothing", updateOfAnotherVersion},
	{"of many updates of one version one wins", oneUpdateWins},
	{"changes are told in their order, each event once", changesInOrder},
	{"changes come in bounded parts", changesInParts},
	{"the same content is the same version of a layout, other content the next", layoutVersions},
	{"many who add the same layout get one version", layoutAddedAtOnce},
}

func eventComesBackWhole(w *world) {
	pool, seat := int64(2500), 7
	seconds, none := int64(90), 0
	yes := true
	orphans := catalog.OrphansForbid
	e := w.event("whole", func(d *catalog.Draft) {
		d.Title, d.Venue.Country = `Quotes ' " \ and 東京 ❤️`, ""
		d.Pools = []catalog.PoolDraft{{Pool: "A|B", Capacity: 5000, Overbook: 12, Price: &pool}, {Pool: "two", Capacity: 7, Buckets: &seat, Price: &pool}}
		d.SaleOpensAt, d.SaleClosesAt = Start.Add(-time.Hour), Start.Add(time.Hour)
		d.Policy = &catalog.PolicyDraft{
			HoldSeconds: &seconds, MaxPlacesPerHold: &seat, Orphans: &orphans, WaitingRoom: &catalog.WaitingRoomDraft{Enabled: &yes, PassSeconds: &seconds},
			Cancellation: []catalog.CancellationDraft{{UntilSecondsBefore: 100, RefundPercent: 90}, {UntilSecondsBefore: 0, RefundPercent: none}},
		}
	})
	e.Paused, e.Layout = true, catalog.LayoutRef{ID: "somewhere", Version: 3}
	e.Prices = map[string]int64{"Stalls": 1200, "Box/1~": 0}
	flight := w.event("a-flight", func(d *catalog.Draft) { d.Kind, d.Origin, d.Destination = catalog.Flight, "SGN", "HAN" })
	w.add(e, flight)
	for _, want := range []*catalog.Event{e, flight} {
		byID, err := w.store.Event(w.Context(), want.ID)
		w.ok(err)
		bySlug, err := w.store.EventBySlug(w.Context(), want.Slug)
		w.ok(err)
		if diff := cmp.Diff(want, byID); diff != "" {
			w.Errorf("by id: %s", diff)
		}
		if diff := cmp.Diff(want, bySlug); diff != "" {
			w.Errorf("by slug: %s", diff)
		}
	}
}

func takenSlugIsLeftOut(w *world) {
	first := w.event("one")
	w.add(first)
	taken, err := w.store.CreateEvents(w.Context(), []*catalog.Event{w.event("zero"), w.event("one"), w.event("two"), w.event("zero"), w.event("three")})
	w.ok(err)
	if diff := cmp.Diff([]int{1, 3}, taken); diff != "" {
		w.Errorf("taken: %s", diff)
	}
	for _, slug := range []string{"zero", "one", "two", "three"} {
		if _, err := w.store.EventBySlug(w.Context(), slug); err != nil {
			w.Errorf("%s: %v", slug, err)
		}
	}
	if e, err := w.store.EventBySlug(w.Context(), "one"); err != nil || e.ID != first.ID {
		w.Errorf("one is now %+v, %v", e, err)
	}
	if n := len(w.search(catalog.Query{Text: "bells"})); n != 4 {
		w.Errorf("%d events are found, want 4", n)
	}
}

func unknownIsNotFound(w *world) {
	w.add(w.event("there"))
	_, err1 := w.store.Event(w.Context(), catalog.NewEventID())
	_, err2 := w.store.EventBySlug(w.Context(), "nowhere")
	_, err3 := w.store.Layout(w.Context(), catalog.LayoutRef{ID: "nowhere", Version: 1})
	_, err4 := w.store.NewestLayout(w.Context(), "nowhere")
	err5 := w.store.UpdateEvent(w.Context(), w.event("nowhere"), 1)
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, catalog.ErrNotFound) {
			w.Errorf("question %d: %v", i+1, err)
		}
	}
	w.ok(w.store.SetAvailable(w.Context(), map[catalog.EventID]int{catalog.NewEventID(): 3}))
	if point, err := w.store.LastChange(w.Context()); err != nil || point <= 0 {
		w.Errorf("last change %d, %v", point, err)
	}
}

func updateReplaces(w *world) {
	e := w.event("before", func(d *catalog.Draft) { d.Kind, d.Origin, d.Destination = catalog.Flight, "SGN", "HAN" })
	w.add(e, w.event("other", func(d *catalog.Draft) { d.StartsAt = d.StartsAt.Add(time.Hour) }))
	n := w.event("after", func(d *catalog.Draft) {
		d.Title, d.Venue = "Morning of the Drums", catalog.Venue{Name: "New Mill", City: "Auckland", TimeZone: "Pacific/Auckland"}
		d.StartsAt = d.StartsAt.Add(48 * time.Hour)
	})
	n.ID, n.Version, n.Paused, n.Layout = e.ID, 2, true, catalog.LayoutRef{ID: "other", Version: 9}
	w.ok(w.store.UpdateEvent(w.Context(), n, 1))
	got, err := w.store.EventBySlug(w.Context(), "before")
	w.ok(err)
	n.Slug, n.Layout, n.CreatedAt = e.Slug, e.Layout, e.CreatedAt
	if diff := cmp.Diff(n, got); diff != "" {
		w.Error(diff)
	}
	if _, err := w.store.EventBySlug(w.Context(), "after"); !errors.Is(err, catalog.ErrNotFound) {
		w.Errorf("the slug was changed: %v", err)
	}
	w.finds(catalog.Query{Text: "drums"}, "before")
	w.finds(catalog.Query{Text: "bells"}, "other")
	w.finds(catalog.Query{Text: "SGN"})
	w.finds(catalog.Query{Place: "auckland"}, "before")
	w.finds(catalog.Query{}, "other", "before")
	w.finds(catalog.Query{Origin: "SGN"})
	w.finds(catalog.Query{Date: "2030-06-04"}, "before") // the 3rd in UTC
	// Back into the second of the other: both stay in the list.
	n.Version, n.StartsAt = 3, e.StartsAt.Add(time.Hour)
	w.ok(w.store.UpdateEvent(w.Context(), n, 2))
	if found := w.search(catalog.Query{}); len(found) != 2 {
		w.Errorf("found %q", found)
	}
	w.finds(catalog.Query{Text: "drums"}, "before")
	// The same start, another title: the words of the old one are gone.
	n.Version, n.Title = 4, "Evening of the Flutes"
	w.ok(w.store.UpdateEvent(w.Context(), n, 3))
	w.finds(catalog.Query{Text: "drums"})
	w.finds(catalog.Query{Text: "flutes"}, "before")
}

func updateOfAnotherVersion(w *world) {
	e := w.event("one")
	w.add(e)
	n := *e
	n.Title, n.Version = "Changed", 2
	for _, expected := range []int{0, 2, -1} {
		if err := w.store.UpdateEvent(w.Context(), &n, expected); !errors.Is(err, catalog.ErrVersion) {
			w.Errorf("expecting version %d: %v", expected, err)
		}
	}
	got, err := w.store.Event(w.Context(), e.ID)
	w.ok(err)
	if diff := cmp.Diff(e, got); diff != "" {
		w.Error(diff)
	}
	w.finds(catalog.Query{Text: "changed"})
}

func oneUpdateWins(w *world) {
	e := w.event("one")
	w.add(e)
	const editors = 16
	errs := make([]error, editors)
	var all sync.WaitGroup
	for i := range editors {
		all.Go(func() {
			n := *e
			n.Title, n.Version = fmt.Sprintf("Edition %d", i), 2
			errs[i] = w.store.UpdateEvent(w.Context(), &n, 1)
		})
	}
	all.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !errors.Is(err, catalog.ErrVersion):
			w.Errorf("editor %d: %v, after %d had won", i, err, winner)
		}
	}
	got, err := w.store.Event(w.Context(), e.ID)
	w.ok(err)
	if want := fmt.Sprintf("Edition %d", winner); got.Title != want || got.Version != 2 {
		w.Errorf("%q in version %d, want %q", got.Title, got.Version, want)
	}
}

func changesInOrder(w *world) {
	if point, err := w.store.LastChange(w.Context()); err != nil || point != 0 {
		w.Errorf("the last change of nothing is %d, %v", point, err)
	}
	a, b, c := w.event("a"), w.event("b"), w.event("c")
	w.add(a, b)
	middle, err := w.store.LastChange(w.Context())
	w.ok(err)
	w.add(c)
	n := *a
	n.Version = 2
	w.ok(w.store.UpdateEvent(w.Context(), &n, 1))
	w.ok(w.store.SetAvailable(w.Context(), map[catalog.EventID]int{b.ID: 1})) // no change of the event
	type change struct {
		Slug    string
		ID      catalog.EventID
		Version int
	}
	from := func(point int64) (list []change, last int64) {
		got, err := w.store.Changes(w.Context(), point)
		w.ok(err)
		for _, ch := range got {
			if ch.Point <= max(point, last) {
				w.Errorf("point %d after %d", ch.Point, max(point, last))
			}
			last = ch.Point
			list = append(list, change{ch.Slug, ch.ID, ch.Version})
		}
		return list, last
	}
	all, last := from(0)
	if diff := cmp.Diff([]change{{"b", b.ID, 1}, {"c", c.ID, 1}, {"a", a.ID, 2}}, all); diff != "" {
		w.Errorf("all changes: %s", diff)
	}
	later, _ := from(middle)
	if diff := cmp.Diff([]change{{"c", c.ID, 1}, {"a", a.ID, 2}}, later); diff != "" {
		w.Errorf("changes after the second: %s", diff)
	}
	if point, err := w.store.LastChange(w.Context()); err != nil || point != last {
		w.Errorf("the last change is %d, %v, want %d", point, err, last)
	}
	if none, _ := from(last); len(none) > 0 {
		w.Errorf("changes after the last: %v", none)
	}
}

func changesInParts(w *world) {
	const all = catalog.MaxChanges + 3
	var events []*catalog.Event
	for i := range all {
		events = append(events, w.event(fmt.Sprintf("e-%d", i)))
	}
	w.add(events...)
	first, err := w.store.Changes(w.Context(), 0)
	w.ok(err)
	if len(first) != catalog.MaxChanges {
		w.Fatalf("%d changes at once", len(first))
	}
	rest, err := w.store.Changes(w.Context(), first[len(first)-1].Point)
	w.ok(err)
	if len(rest) != all-catalog.MaxChanges {
		w.Errorf("%d changes are left", len(rest))
	}
}

func layout(id, document string) *catalog.StoredLayout {
	return &catalog.StoredLayout{ID: id, Name: id, Hash: sha256.Sum256([]byte(document)), Seats: 3, Document: []byte(document), CreatedAt: Start}
}

func layoutVersions(w *world) {
	for _, step := range []struct {
		id, document string
		version      int
	}{{"hall", "one", 1}, {"hall", "two", 2}, {"hall", "one", 1}, {"club", "one", 1}, {"hall", "three", 3}, {"hall", "two", 2}} {
		version, err := w.store.AddLayout(w.Context(), layout(step.id, step.document))
		w.ok(err)
		if version != step.version {
			w.Errorf("%s with %q is version %d, want %d", step.id, step.document, version, step.version)
		}
		got, err := w.store.Layout(w.Context(), catalog.LayoutRef{ID: step.id, Version: version})
		w.ok(err)
		if string(got) != step.document {
			w.Errorf("version %d of %s is %q, want %q", version, step.id, got, step.document)
		}
	}
	if newest, err := w.store.NewestLayout(w.Context(), "hall"); err != nil || newest != 3 {
		w.Errorf("the newest is %d, %v", newest, err)
	}
}

func layoutAddedAtOnce(w *world) {
	const writers = 16
	var all sync.WaitGroup
	versions := make([]int, writers)
	for i := range writers {
		all.Go(func() {
			v, err := w.store.AddLayout(w.Context(), layout("hall", fmt.Sprint(i%2)))
			if err != nil {
				w.Error(err)
			}
			versions[i] = v
		})
	}
	all.Wait()
	for i, v := range versions {
		if v != versions[i%2] || v < 1 || v > 2 {
			w.Errorf("versions %v", versions)
			break
		}
	}
}
