package catalogtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

var searchTests = []contract{
	{"words are found wherever they stand, the last from its beginning", wordsAreFound},
	{"every script is found as people type it", scriptsAreFound},
	{"whatever is typed is a question and never a command", anythingCanBeTyped},
	{"place looks in venue and city only", placeIsVenueAndCity},
	{"a day is the day of the event's own zone", dayIsLocal},
	{"a range of days has both its ends", rangeHasBothEnds},
	{"what has started is left out unless a day is asked for", pastIsLeftOut},
	{"kind and airports narrow", kindAndAirportsNarrow},
	{"pages show everything once, also over equal starts", pagesShowAllOnce},
	{"pages go on when their last event was moved", pagesGoOnAfterMove},
	{"an item has what a list shows", itemHasAll},
	{"any mix of filters finds what a plain filter of all events finds", filtersAreLikeAModel},
}

func titled(title string) func(*catalog.Draft) { return func(d *catalog.Draft) { d.Title = title } }

func at(t time.Time) func(*catalog.Draft) { return func(d *catalog.Draft) { d.StartsAt = t } }

// opened is for events whose sale would otherwise open when they start.
func opened(d *catalog.Draft) { d.SaleOpensAt = d.StartsAt.AddDate(0, 0, -1) }

func in(name, city, zone string) func(*catalog.Draft) {
	return func(d *catalog.Draft) { d.Venue = catalog.Venue{Name: name, City: city, TimeZone: zone} }
}

func flightOf(from, to string) func(*catalog.Draft) {
	return func(d *catalog.Draft) { d.Kind, d.Origin, d.Destination = catalog.Flight, from, to }
}

func wordsAreFound(w *world) {
	w.add(
		w.event("a", titled("The Night Train"), in("Odeon", "Gent", "UTC"), at(Start.Add(1*time.Hour))),
		w.event("b", titled("Train of Thought: a night of jazz"), in("Old Mill", "Brugge", "UTC"), at(Start.Add(2*time.Hour))),
		w.event("c", titled("Nightingales"), in("Odeon", "Brugge", "UTC"), at(Start.Add(3*time.Hour))),
		w.event("d", titled("SGN–HAN VN123"), flightOf("SGN", "HAN"), in("Tan Son Nhat", "Ho Chi Minh City", "Asia/Ho_Chi_Minh"), at(Start.Add(4*time.Hour))),
	)
	for text, want := range map[string][]string{
		"night": {"a", "b", "c"}, "NIGHT": {"a", "b", "c"}, "night train": {"a", "b"}, "train night": {"a", "b"}, "nig": {"a", "b", "c"}, "n": {"a", "b", "c", "d"},
		"nightin": {"c"}, "nigh train": {}, "tra thought": {}, "thought tra": {"b"}, "train odeon": {"a"}, "odeon": {"a", "c"}, "jazz brugge": {"b"},
		"ight": {}, "nightingaless": {}, "sgn": {"d"}, "sgn-han": {"d"}, "han sgn": {"d"}, "vn123": {"d"}, "vn12": {"d"}, "vn 123": {}, "minh ho": {"d"}, "city": {"d"},
		"  the,  night!!": {"a"}, "train:of": {"b"},
	} {
		w.finds(catalog.Query{Text: text}, want...)
	}
}

func scriptsAreFound(w *world) {
	titles := map[string]string{
		"danang": "Đà Nẵng by night", "decomposed": "Cafe\u0301 Noe\u0308l", "strasse": "Große Straße", "oslo": "Ærø Ølfest Łódź", "istanbul": "İstanbul Işık",
		"tokyo": "東京ドームシティ2030", "seoul": "서울월드컵경기장", "bangkok": "งานสงกรานต์กรุงเทพ", "moscow": "Чайковский: Щелкунчик, ёлка", "athens": "Μουσική στην Αθήνα", "delhi": "नई दिल्ली संगीत",
		"cairo": "مهرجان القاهرة", "digits": "Open Air ２０３０ ½",
	}
	var events []*catalog.Event
	for slug, title := range titles {
		events = append(events, w.event(slug, titled(title)))
	}
	w.add(events...)
	for text, want := range map[string]string{
		"da nang": "danang", "Đà Nẵng": "danang", "đa n": "danang", "ĐÀ NẴNG": "danang", "cafe noel": "decomposed", "café noël": "decomposed", "CAFÉ": "decomposed", "cafe\u0301": "decomposed",
		"grosse strasse": "strasse", "große straße": "strasse", "aero olfest lodz": "oslo", "łódź": "oslo", "istanbul isik": "istanbul", "İSTANBUL": "istanbul",
		"東京": "tokyo", "東京ドーム": "tokyo", "ドーム": "tokyo", "ドームシティ": "tokyo", "シティ2030": "tokyo", "京ド": "tokyo", "월드컵": "seoul", "서울 경기장": "seoul", "서울월드컵경기장": "seoul", "สงกรานต์": "bangkok", "กรุงเทพ": "bangkok",
		"щелкунчик": "moscow", "чайк": "moscow", "елка": "moscow", "αθηνα": "athens", "Αθήνα": "athens", "ΜΟΥΣΙΚΉ": "athens", "दिल्ली": "delhi", "القاهرة": "cairo", "½": "digits",
	} {
		w.finds(catalog.Query{Text: text}, want)
	}
	for _, text := range []string{"ムード", "京東", "ドーム東京", "컵월드", "nang da nangx", "🎸", "東京🎸大阪"} {
		w.finds(catalog.Query{Text: text})
	}
}

func anythingCanBeTyped(w *world) {
	w.add(w.event("rock", titled("Rock'n'Roll \"Live\" AND Loud ❤️ 100% C*_")))
	for text, want := range map[string][]string{
		`"`: {}, `'`: {}, `*`: {}, `"rock`: {"rock"}, `rock"`: {"rock"}, `rock*`: {"rock"}, `rock AND`: {"rock"}, `rock OR jazz`: {}, `NOT jazz`: {}, `rock NOT loud`: {}, `NEAR(rock loud)`: {},
		`title:rock`: {}, `{title} : rock`: {}, `^rock`: {"rock"}, `rock -jazz`: {}, `rock + roll`: {"rock"}, `(rock`: {"rock"}, `rock)`: {"rock"}, `rock;--`: {"rock"},
		`'; DROP TABLE event; --`: {}, "rock\x00roll": {"rock"}, "rock\xff\xferoll": {"rock"}, "❤️": {}, "❤️ rock": {"rock"}, "rock ❤️": {"rock"}, "\ufe0f rock": {"rock"}, "👨‍👩‍👧 rock": {"rock"},
		"100%": {"rock"}, "%": {}, "_": {}, "rock\u0301": {"rock"}, "\u0301": {}, "rock\u200d": {"rock"}, "𐓏": {}, "🄰": {},
	} {
		w.finds(catalog.Query{Text: text}, want...)
		if _, err := w.store.Search(w.Context(), &catalog.Query{Place: text, Limit: 3, Now: Start}); err != nil {
			w.Errorf("place %q: %v", text, err)
		}
	}
	rapid.Check(w, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(`"'*()^:{}+-~\ANDORTan 東ー`)), 0, 30, -1)).Draw(t, "text")
		for _, q := range []catalog.Query{{Text: text}, {Place: text}, {Text: text, Place: text, Kind: catalog.Concert, Date: "2030-06-01"}} {
			q.Limit, q.Now = 10, Start
			if _, err := w.store.Search(w.Context(), &q); err != nil {
				t.Fatalf("%s: %v", describe(q), err)
			}
		}
	})
	// Whoever types a title as it is finds it.
	n := 0
	rapid.Check(w, func(t *rapid.T) {
		title := strings.TrimSpace(rapid.StringOfN(rapid.RuneFrom([]rune("aBé东京ドーム서울ก็ก ß'Đ.1")), 1, 12, -1).Draw(t, "title"))
		if title == "" || len(catalog.Terms(title)) == 0 || !utf8.ValidString(title) {
			return
		}
		n++
		slug := fmt.Sprintf("typed-%d", n)
		e, err := catalog.NewEvent(new(draft(slug, title)), catalog.Seating{}, Start)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.CreateEvents(w.Context(), []*catalog.Event{e}); err != nil {
			t.Fatal(err)
		}
		if found := w.search(catalog.Query{Text: title}); !slices.Contains(found, slug) {
			t.Errorf("%q is not found by itself: %q", title, found)
		}
	})
}

func placeIsVenueAndCity(w *world) {
	w.add(
		w.event("a", titled("Odeon days in Gent"), in("Old Mill", "Brugge", "UTC"), at(Start.Add(time.Hour))),
		w.event("b", in("Odeon", "Gent", "UTC"), at(Start.Add(2*time.Hour))),
		w.event("c", titled("Odeon"), in("Le Théâtre de la Ville", "", "UTC"), at(Start.Add(3*time.Hour))),
	)
	w.finds(catalog.Query{Place: "odeon"}, "b")
	w.finds(catalog.Query{Place: "gent ode"}, "b")
	w.finds(catalog.Query{Place: "brug"}, "a")
	w.finds(catalog.Query{Text: "odeon", Place: "brugge"}, "a")
	w.finds(catalog.Query{Text: "odeon"}, "a", "b", "c")
	w.finds(catalog.Query{Text: "odeon", Place: "theatre ville"}, "c")
	w.finds(catalog.Query{Text: "gent", Place: "!"}, "a", "b") // a place without a word is no place
	w.finds(catalog.Query{Place: "old ville"})
	w.finds(catalog.Query{Text: "20300601"}) // its day is for the filter by day, not a word of the event
}

func dayIsLocal(w *world) {
	// C-63: midnight where the event is, also when clocks change there on that day.
	zone := func(name string) *time.Location {
		z, err := time.LoadLocation(name)
		w.ok(err)
		return z
	}
	for i, v := range []struct {
		zone string
		day  time.Time
	}{
		{"Pacific/Kiritimati", time.Date(2030, 6, 10, 0, 0, 0, 0, time.UTC)}, {"Pacific/Pago_Pago", time.Date(2030, 6, 10, 0, 0, 0, 0, time.UTC)},
		{"Asia/Kathmandu", time.Date(2030, 6, 11, 0, 0, 0, 0, time.UTC)}, {"Europe/Berlin", time.Date(2031, 3, 30, 0, 0, 0, 0, time.UTC)},
		{"Europe/Berlin", time.Date(2030, 10, 27, 0, 0, 0, 0, time.UTC)}, {"America/Santiago", time.Date(2030, 9, 8, 0, 0, 0, 0, time.UTC)},
	} {
		z := zone(v.zone)
		first := time.Date(v.day.Year(), v.day.Month(), v.day.Day(), 0, 0, 0, 0, z)
		for first.In(z).Day() != v.day.Day() { // midnight may not exist
			first = first.Add(time.Hour)
		}
		for first.Add(-time.Second).In(z).Day() == v.day.Day() {
			first = first.Add(-time.Second)
		}
		last := time.Date(v.day.Year(), v.day.Month(), v.day.Day(), 23, 59, 59, 0, z)
		slug := func(s string) string { return fmt.Sprintf("z%d-%s", i, s) }
		place := fmt.Sprintf("hall%dx", i)
		w.add(
			w.event(slug("before"), in(place, "", v.zone), at(first.Add(-time.Second))), w.event(slug("first"), in(place, "", v.zone), at(first)),
			w.event(slug("last"), in(place, "", v.zone), at(last)), w.event(slug("after"), in(place, "", v.zone), at(last.Add(time.Second))),
		)
		day := v.day.Format(time.DateOnly)
		for _, q := range []catalog.Query{
			{Date: day, Place: place}, {DateFrom: day, DateTo: day, Place: place}, {Date: day, Text: place}, {Date: day, Place: place, Kind: catalog.Concert},
		} {
			w.finds(q, slug("first"), slug("last"))
		}
		if found := w.search(catalog.Query{Date: day}); !slices.Contains(found, slug("first")) || !slices.Contains(found, slug("last")) || slices.Contains(found, slug("before")) || slices.Contains(found, slug("after")) {
			w.Errorf("on %s in %s: %q", day, v.zone, found)
		}
		w.finds(catalog.Query{DateFrom: day, Place: place}, slug("first"), slug("last"), slug("after"))
		w.finds(catalog.Query{DateTo: day, Place: place}, slug("before"), slug("first"), slug("last"))
	}
}

func rangeHasBothEnds(w *world) {
	for day := 8; day <= 13; day++ {
		w.add(w.event(fmt.Sprintf("d%d", day), at(time.Date(2030, 6, day, 20, 0, 0, 0, time.UTC))))
	}
	w.finds(catalog.Query{DateFrom: "2030-06-10", DateTo: "2030-06-12"}, "d10", "d11", "d12")
	w.finds(catalog.Query{DateFrom: "2030-06-12"}, "d12", "d13")
	w.finds(catalog.Query{DateTo: "2030-06-09"}, "d8", "d9")
	w.finds(catalog.Query{DateFrom: "2030-06-14"})
	w.finds(catalog.Query{DateFrom: "2030-06-12", DateTo: "2030-06-10"})
}

func pastIsLeftOut(w *world) {
	for slug, start := range map[string]time.Time{
		"long-over": Start.AddDate(-1, 0, 0), "yesterday": Start.AddDate(0, 0, -1), "over": Start.Add(-time.Second), "now": Start, "soon": Start.Add(time.Second),
	} {
		w.add(w.event(slug, at(start), func(d *catalog.Draft) {
			d.Kind, d.Origin, d.Destination, d.SaleOpensAt = catalog.Flight, "SGN", "HAN", start.AddDate(0, 0, -1)
		}))
	}
	for _, q := range []catalog.Query{
		{}, {Text: "bells"}, {Place: "mill"}, {Kind: catalog.Flight}, {Origin: "SGN"}, {Destination: "HAN"}, {Origin: "SGN", Destination: "HAN"},
	} {
		w.finds(q, "now", "soon")
		// Less than a second after the start it has started.
		q.Now = Start.Add(time.Millisecond)
		w.finds(q, "soon")
	}
	w.finds(catalog.Query{Date: "2030-05-01"}, "over", "now", "soon")
	w.finds(catalog.Query{DateFrom: "2030-04-30"}, "yesterday", "over", "now", "soon")
	w.finds(catalog.Query{DateTo: "2030-05-01"}, "long-over", "yesterday", "over", "now", "soon")
	w.finds(catalog.Query{Origin: "SGN", Destination: "HAN", DateTo: "2030-04-30"}, "long-over", "yesterday")
}

func kindAndAirportsNarrow(w *world) {
	w.add(
		w.event("a", flightOf("SGN", "HAN"), at(Start.Add(1*time.Hour))), w.event("b", flightOf("HAN", "SGN"), at(Start.Add(2*time.Hour))),
		w.event("c", flightOf("SGN", "DAD"), at(Start.Add(3*time.Hour))), w.event("d", at(Start.Add(4*time.Hour))),
		w.event("e", at(Start.Add(5*time.Hour)), func(d *catalog.Draft) { d.Kind = catalog.Cinema }),
	)
	w.finds(catalog.Query{Kind: catalog.Flight}, "a", "b", "c")
	w.finds(catalog.Query{Kind: catalog.Cinema}, "e")
	w.finds(catalog.Query{Origin: "SGN"}, "a", "c")
	w.finds(catalog.Query{Destination: "SGN"}, "b")
	w.finds(catalog.Query{Origin: "SGN", Destination: "DAD"}, "c")
	w.finds(catalog.Query{Origin: "SGN", Kind: catalog.Concert})
	w.finds(catalog.Query{Origin: "SGN", Destination: "HAN", Date: "2030-05-01", Text: "bells", Place: "gent", Kind: catalog.Flight}, "a")
}

func pagesShowAllOnce(w *world) {
	var want []string
	var events []*catalog.Event
	for second := range 4 {
		for i := range 25 {
			slug := fmt.Sprintf("s%d-%d", second, i)
			want = append(want, slug)
			events = append(events, w.event(slug, flightOf("SGN", "HAN"), at(Start.Add(time.Duration(second)*time.Second)), opened))
		}
	}
	// Some that a store with few bits for the order of one second can't tell apart by their ids.
	for i := range events[:10] {
		events[i].ID = events[0].ID + catalog.EventID(i)<<40
		if events[i].ID <= 0 {
			events[i].ID = catalog.EventID(1 + i<<40)
		}
	}
	slices.Reverse(events)
	w.add(events...)
	slices.Sort(want)
	for _, q := range []catalog.Query{
		{}, {Text: "bells"}, {Kind: catalog.Flight}, {Date: "2030-05-01"}, {Origin: "SGN", Destination: "HAN"}, {Origin: "SGN", Destination: "HAN", Date: "2030-05-01"},
		{Origin: "SGN"}, {Destination: "HAN"}, {DateFrom: "2030-05-01", DateTo: "2030-05-02"},
	} {
		for _, limit := range []int{1, 7, 25, 99, 100} {
			q.Limit = limit
			found := w.search(q)
			for i := range found {
				if s := fmt.Sprintf("s%d-", i/25); !strings.HasPrefix(found[i], s) {
					w.Errorf("%s in pages of %d: %s at %d is out of order", describe(q), limit, found[i], i)
					break
				}
			}
			slices.Sort(found)
			if diff := cmp.Diff(want, found); diff != "" {
				w.Errorf("%s in pages of %d: %s", describe(q), limit, diff)
			}
		}
	}
}

func pagesGoOnAfterMove(w *world) {
	var events []*catalog.Event
	for i := range 6 {
		events = append(events, w.event(fmt.Sprintf("e%d", i), at(Start.Add(time.Duration(i)*time.Hour)), opened))
	}
	w.add(events...)
	last := events[2]
	after := catalog.Position{StartsAt: last.StartsAt, ID: last.ID}
	moved := *last
	moved.StartsAt, moved.Version = Start.Add(100*time.Hour), 2
	w.ok(w.store.UpdateEvent(w.Context(), &moved, 1))
	for _, q := range []catalog.Query{{After: after}, {After: after, Text: "bells"}, {After: after, Kind: catalog.Concert}} {
		w.finds(q, "e3", "e4", "e5", "e2")
	}
	w.finds(catalog.Query{After: catalog.Position{StartsAt: Start.Add(3*time.Hour + time.Minute), ID: catalog.NewEventID()}}, "e4", "e5", "e2") // gone altogether
}

func itemHasAll(w *world) {
	price := int64(1900)
	e := w.event("a", flightOf("SGN", "HAN"), func(d *catalog.Draft) {
		d.Title, d.Currency = `Quotes ' " | ,`, "JPY"
		d.Pools = append(d.Pools, catalog.PoolDraft{Pool: "CHEAP", Capacity: 20, Overbook: 2, Price: &price})
	})
	e.Paused = true
	w.add(e, w.event("b", at(Start.Add(time.Hour)), func(d *catalog.Draft) { d.Venue.City, d.Venue.Country = "", "" }))
	items, err := w.store.Search(w.Context(), &catalog.Query{Kind: catalog.Flight, Limit: 5, Now: Start})
	w.ok(err)
	want := []catalog.Item{{
		ID: e.ID, Slug: "a", Kind: catalog.Flight, Title: e.Title, Venue: e.Venue, StartsAt: e.StartsAt, SaleOpensAt: e.SaleOpensAt, SaleClosesAt: e.SaleClosesAt,
		Paused: true, Currency: "JPY", PriceFrom: 1900, Available: 322, Origin: "SGN", Destination: "HAN",
	}}
	if diff := cmp.Diff(want, items); diff != "" {
		w.Error(diff)
	}
	w.ok(w.store.SetAvailable(w.Context(), map[catalog.EventID]int{e.ID: 0, catalog.NewEventID(): 7}))
	items, err = w.store.Search(w.Context(), &catalog.Query{Origin: "SGN", Destination: "HAN", Limit: 5, Now: Start})
	w.ok(err)
	want[0].Available = 0
	if diff := cmp.Diff(want, items); diff != "" {
		w.Error(diff)
	}
	items, err = w.store.Search(w.Context(), &catalog.Query{Kind: catalog.Concert, Limit: 5, Now: Start})
	w.ok(err)
	if len(items) != 1 || items[0].Venue.City != "" || items[0].Venue.Country != "" || items[0].Origin != "" || items[0].Venue.TimeZone != "Europe/Brussels" {
		w.Errorf("%+v", items)
	}
}

func filtersAreLikeAModel(w *world) {
	zones := []string{"Pacific/Kiritimati", "Asia/Ho_Chi_Minh", "UTC", "America/New_York", "Pacific/Pago_Pago"}
	codes := []string{"SGN", "HAN", "DAD"}
	cities := []string{"Gent", "Gand", "Oslo"}
	var events []*catalog.Event
	for i := range 400 {
		h := i * 7919
		events = append(events, w.event(fmt.Sprintf("m-%d", i), titled([]string{"Night Train", "Nightingale", "Day"}[h%3]), in("Hall", cities[h/3%3], zones[h%5]),
			at(Start.Add(time.Duration(h%(14*24))*time.Hour-7*24*time.Hour)), func(d *catalog.Draft) {
				d.SaleOpensAt = d.StartsAt.AddDate(0, 0, -9)
				if d.Kind = []catalog.Kind{catalog.Cinema, catalog.Concert, catalog.Flight}[h/7%3]; d.Kind == catalog.Flight {
					d.Origin, d.Destination = codes[h%3], codes[(h+1+h/5%2)%3]
				}
			}))
	}
	w.add(events...)
	day := func(e *catalog.Event) string {
		d, err := e.LocalDate()
		w.ok(err)
		return d
	}
	rapid.Check(w, func(t *rapid.T) {
		pick := func(name string, of ...string) string { return rapid.SampledFrom(append(of, "", "")).Draw(t, name) }
		dates := []string{"2030-04-24", "2030-04-28", "2030-05-01", "2030-05-02", "2030-05-07", "2030-05-09"}
		q := catalog.Query{
			Text: pick("text", "night", "nigh", "night train", "day"), Place: pick("place", "gent", "g"), Kind: catalog.Kind(pick("kind", "cinema", "concert", "flight")),
			Origin: pick("from", codes...), Destination: pick("to", codes...), Date: pick("date", dates...), Limit: rapid.IntRange(1, 50).Draw(t, "limit"),
		}
		if q.Date == "" {
			q.DateFrom, q.DateTo = pick("dateFrom", dates...), pick("dateTo", dates...)
		}
		var want []string
		for _, e := range events {
			text := map[string]bool{"": true, "night": e.Title != "Day", "nigh": e.Title != "Day", "night train": e.Title == "Night Train", "day": e.Title == "Day"}[q.Text]
			place := q.Place == "" || strings.HasPrefix(strings.ToLower(e.Venue.City), q.Place)
			undated := q.Date == "" && q.DateFrom == "" && q.DateTo == ""
			if text && place && (q.Kind == "" || e.Kind == q.Kind) && (q.Origin == "" || e.Origin == q.Origin) && (q.Destination == "" || e.Destination == q.Destination) &&
				(q.Date == "" || day(e) == q.Date) && (q.DateFrom == "" || day(e) >= q.DateFrom) && (q.DateTo == "" || day(e) <= q.DateTo) && (!undated || !e.StartsAt.Before(Start)) {
				want = append(want, e.Slug)
			}
		}
		found := w.search(q)
		slices.Sort(found)
		slices.Sort(want)
		if diff := cmp.Diff(append([]string{}, want...), found); diff != "" {
			t.Fatalf("%s: %s", describe(q), diff)
		}
	})
}
