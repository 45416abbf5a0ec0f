package catalog

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/venue"
)

var testNow = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// goodDraft is a draft of each kind, as JSON: what clients and import files send.
const goodDraft = `{"kind": "flight", "slug": "vn-123", "title": "SGN–HAN VN123", "venue": {"name": "Tan Son Nhat", "city": "Ho Chi Minh City", "timeZone": "Asia/Ho_Chi_Minh"},
	"startsAt": "2030-06-01T08:00:00+07:00", "saleOpensAt": "2030-05-02T00:00:00Z", "saleClosesAt": "2030-06-01T00:00:00Z", "currency": "USD", "origin": "SGN", "destination": "HAN",
	"pools": [{"pool": "ECONOMY", "capacity": 180, "overbook": 3, "price": 9900}, {"pool": "CARGO", "capacity": 4000, "price": 100}], "policy": {}}`

func readDraft(t testing.TB, text string) Draft {
	t.Helper()
	var d Draft
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// edit sets a JSON pointer in a draft's JSON; nil removes it.
func edit(t testing.TB, text, pointer string, value any) string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	at := root
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for _, step := range steps[:len(steps)-1] {
		switch node := at.(type) {
		case map[string]any:
			if node[step] == nil {
				node[step] = map[string]any{}
			}
			at = node[step]
		case []any:
			at = node[step[0]-'0']
		}
	}
	last := steps[len(steps)-1]
	if value == nil {
		delete(at.(map[string]any), last)
	} else {
		at.(map[string]any)[last] = value
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func pointers(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	fields, ok := errors.AsType[FieldErrors](err)
	if !ok || len(fields) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	var out []string
	for _, f := range fields {
		if f.Detail == "" || !strings.Contains(err.Error(), f.Detail) {
			t.Errorf("%s: detail %q is not in %q", f.Pointer, f.Detail, err)
		}
		out = append(out, f.Pointer)
	}
	return out
}

func TestADraftBecomesAnEventWithItsDefaults(t *testing.T) {
	t.Parallel()
	d := readDraft(t, goodDraft)
	e, err := NewEvent(&d, Seating{}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	want := &Event{
		ID: e.ID, Slug: "vn-123", Kind: Flight, Title: "SGN–HAN VN123", Venue: Venue{Name: "Tan Son Nhat", City: "Ho Chi Minh City", TimeZone: "Asia/Ho_Chi_Minh"},
		StartsAt: time.Date(2030, 6, 1, 1, 0, 0, 0, time.UTC), SaleOpensAt: time.Date(2030, 5, 2, 0, 0, 0, 0, time.UTC), SaleClosesAt: time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC),
		Currency: "USD", Prices: map[string]int64{}, Origin: "SGN", Destination: "HAN", Policy: Preset(Flight), Places: 4183, Version: 1, CreatedAt: testNow,
		Pools: []Pool{{Name: "ECONOMY", Capacity: 180, Overbook: 3, Buckets: 1, Price: 9900}, {Name: "CARGO", Capacity: 4000, Buckets: 8, Price: 100}},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}

	d.Slug, d.SaleOpensAt, d.SaleClosesAt, d.Title = "", time.Time{}, time.Time{}, "Đà Nẵng: l'été – 50%!"
	e, err = NewEvent(&d, Seating{}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if e.Slug != "da-nang-lete-50" || !e.SaleOpensAt.Equal(testNow) || !e.SaleClosesAt.Equal(e.StartsAt) {
		t.Errorf("slug %q, sale from %v to %v", e.Slug, e.SaleOpensAt, e.SaleClosesAt)
	}
	d.Pools[0].Pool = "CHANGED"
	if e.Pools[0].Name != "ECONOMY" {
		t.Error("the event shares the pools of its draft")
	}
}

func TestEveryMistakeOfADraftIsNamedByItsField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 201)
	for _, test := range []struct {
		pointer string
		value   any
		want    string // "": pointer itself
	}{
		{"/kind", "opera", ""}, {"/kind", "", ""}, {"/kind", "Flight", ""}, {"/kind", "concert", "/origin"},
		{"/slug", "A", ""}, {"/slug", "a--b", ""}, {"/slug", "-a", ""}, {"/slug", "a_b", ""}, {"/slug", "ä", ""}, {"/slug", strings.Repeat("a", 81), ""},
		{"/title", "", ""}, {"/title", " x", ""}, {"/title", "x\ty", ""}, {"/title", "x\u202ey", ""}, {"/title", "x\ufffdy", ""}, {"/title", long, ""}, {"/title", "a\x1fb", ""},
		{"/venue/name", "", ""}, {"/venue/name", long, ""}, {"/venue/city", "x\x00", ""}, {"/venue/country", long, ""},
		{"/venue/timeZone", "", ""}, {"/venue/timeZone", "Local", ""}, {"/venue/timeZone", "Mars/Olympus", ""}, {"/venue/timeZone", "../etc/passwd", ""}, {"/venue/timeZone", nil, ""},
		{"/startsAt", nil, ""}, {"/startsAt", "1999-12-31T23:59:59Z", ""}, {"/startsAt", "3000-01-01T00:00:00Z", ""}, {"/startsAt", "2030-05-31T00:00:00Z", "/saleClosesAt"},
		{"/saleOpensAt", "2030-06-01T00:00:00Z", ""}, {"/saleOpensAt", "2031-01-01T00:00:00Z", ""}, {"/saleOpensAt", "1999-01-01T00:00:00Z", ""},
		{"/saleClosesAt", "2030-06-01T01:00:01Z", ""}, {"/saleClosesAt", "2030-05-01T00:00:00Z", "/saleOpensAt"},
		{"/currency", "", ""}, {"/currency", "EURO", ""}, {"/currency", "ZZZ", ""}, {"/currency", "eur", ""},
		{"/origin", "", ""}, {"/origin", "sgn", ""}, {"/origin", "SGNX", ""}, {"/destination", "HA", ""}, {"/destination", "SGN", ""}, {"/destination", nil, ""},
		{"/pools/0/pool", "", ""}, {"/pools/0/pool", " x", ""}, {"/pools/1/pool", "ECONOMY", ""}, {"/pools/0/pool", strings.Repeat("x", 81), ""},
		{"/pools/0/capacity", 0, ""}, {"/pools/0/capacity", -1, ""}, {"/pools/0/capacity", MaxPoolUnits + 1, ""}, {"/pools/0/capacity", nil, ""},
		{"/pools/0/overbook", -1, ""}, {"/pools/0/overbook", MaxPoolUnits + 1, ""}, {"/pools/0/buckets", 0, ""}, {"/pools/0/buckets", 65, ""}, {"/pools/0/buckets", -1, ""},
		{"/pools/0/price", -1, ""}, {"/pools/0/price", MaxPrice + 1, ""}, {"/pools/1/price", nil, ""},
		{"/prices", map[string]int64{"Stalls": 5}, "/prices/Stalls"}, {"/prices", map[string]int64{"a/b~c": 5}, "/prices/a~1b~0c"}, {"/prices", map[string]int64{"ECONOMY": 5}, "/pools/0/price"},
		{"/policy/holdSeconds", 0, ""}, {"/policy/holdSeconds", -7, ""}, {"/policy/holdSeconds", 86401, ""}, {"/policy/paymentSeconds", 0, ""}, {"/policy/paymentSeconds", 601, ""},
		{"/policy/extendSeconds", -1, ""}, {"/policy/extendSeconds", 86401, ""}, {"/policy/holdCeilingSeconds", 599, ""}, {"/policy/holdCeilingSeconds", int64(1) << 62, ""},
		{"/policy/maxPlacesPerHold", 0, ""}, {"/policy/maxPlacesPerHold", 101, ""}, {"/policy/maxPlacesPerCustomer", 0, ""}, {"/policy/maxHoldsPerMinute", 0, ""},
		{"/policy/waitingRoom/perSecond", 0, ""}, {"/policy/waitingRoom/maxActive", 0, ""}, {"/policy/waitingRoom/passSeconds", 0, ""}, {"/policy/waitingRoom/opensSecondsBefore", -1, ""},
		{"/policy/orphans", "never", ""},
		{"/policy/cancellation", []CancellationDraft{{100, 101}}, "/policy/cancellation/0/refundPercent"}, {"/policy/cancellation", []CancellationDraft{{100, -1}}, "/policy/cancellation/0/refundPercent"},
		{"/policy/cancellation", []CancellationDraft{{-1, 50}}, "/policy/cancellation/0/untilSecondsBefore"}, {"/policy/cancellation", []CancellationDraft{{1 << 62, 50}}, "/policy/cancellation/0/untilSecondsBefore"},
		{"/policy/cancellation", []CancellationDraft{{100, 50}, {100, 20}}, "/policy/cancellation/1/untilSecondsBefore"}, {"/policy/cancellation", []CancellationDraft{{100, 50}, {200, 20}}, "/policy/cancellation/1/untilSecondsBefore"},
		{"/policy/cancellation", slices.Repeat([]CancellationDraft{{1, 1}}, 11), "/policy/cancellation"},
	} {
		d := readDraft(t, edit(t, goodDraft, test.pointer, test.value))
		_, err := NewEvent(&d, Seating{}, testNow)
		want := test.want
		if want == "" {
			want = test.pointer
		}
		if got := pointers(t, err); len(got) == 0 || got[0] != want || len(got) > 1 && test.want == "" {
			t.Errorf("%s = %v: mistakes at %q, want %s", test.pointer, test.value, got, want)
		}
	}
}

func TestAllMistakesOfADraftAreToldAtOnceInTheSameOrder(t *testing.T) {
	t.Parallel()
	d := Draft{Prices: map[string]int64{"c": -1, "a": 1, "b": 2}}
	_, first := NewEvent(&d, Seating{}, testNow)
	if n := len(pointers(t, first)); n < 8 {
		t.Errorf("only %d mistakes of an empty draft: %v", n, first)
	}
	for range 20 {
		if _, err := NewEvent(&d, Seating{}, testNow); err.Error() != first.Error() {
			t.Fatalf("%v, before %v", err, first)
		}
	}
}

func TestWhatPeopleWriteInTheirScriptsIsATitle(t *testing.T) {
	t.Parallel()
	for _, title := range []string{"東京　ドーム", "Wagner\u00a0Festival", "می\u200cخواهم", "👨\u200d👩\u200d👧 day ❤️", "नई दिल्ली", "Cafe\u0301", `Rock 'n' "Roll" <live> & loud`, strings.Repeat("東", 200)} {
		d := readDraft(t, goodDraft)
		d.Title = title
		if e, err := NewEvent(&d, Seating{}, testNow); err != nil || e.Title != title {
			t.Errorf("%q: %v", title, err)
		}
	}
}

// C-63: fractions of seconds are not kept, and a sale never opens before the instant that was said.
func TestASaleNeverOpensEarly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		opens := testNow.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "after")))
		price := int64(5)
		d := Draft{
			Kind: Concert, Slug: "one", Title: "One", Venue: Venue{Name: "Hall", TimeZone: "UTC"}, StartsAt: testNow.AddDate(0, 1, 0), SaleOpensAt: opens, Currency: "EUR",
			Pools: []PoolDraft{{Pool: "A", Capacity: 1, Price: &price}},
		}
		e, err := NewEvent(&d, Seating{}, testNow)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := e.edited(&Edit{SaleOpensAt: &opens}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []time.Time{e.SaleOpensAt, edited.SaleOpensAt} {
			if late := got.Sub(opens); late < 0 || late >= time.Second || got.Nanosecond() != 0 {
				t.Fatalf("opens at %v, asked for %v", got, opens)
			}
		}
	})
}

func seatingOf(t *testing.T, l *venue.Layout, err error) Seating {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return Seating{Ref: LayoutRef{ID: "a-layout", Version: 2}, Layout: l}
}

func TestPricesAndPoolsMatchTheLayout(t *testing.T) {
	t.Parallel()
	hall, err := venue.Cinema(6, 10) // 40 Stalls, 20 Premium
	cinema := seatingOf(t, hall, err)
	aircraft, err := venue.Cabin(30, "ABC DEF", "ECONOMY")
	cabin := seatingOf(t, aircraft, err)
	field, _, err := venue.Parse([]byte(`{"format": "holdfast-layout/1", "name": "Field", "areas": [
		{"kind": "standing", "name": "FRONT", "capacity": 1500, "rect": {"x": 0, "y": 0, "width": 9, "height": 9}},
		{"kind": "standing", "name": "BACK", "rect": {"x": 0, "y": 20, "width": 9, "height": 9}}],
		"sections": [{"name": "Stand", "rows": [{"label": "A", "first": {"x": 0, "y": 40}, "last": {"x": 9, "y": 40}, "count": 10}]}]}`))
	open := seatingOf(t, field, err)
	five, eighty := int64(500), int64(8000)
	pool := func(name string, capacity, overbook int64) PoolDraft {
		return PoolDraft{Pool: name, Capacity: capacity, Overbook: overbook, Price: &eighty}
	}
	for _, test := range []struct {
		name    string
		seating Seating
		prices  map[string]int64
		pools   []PoolDraft
		places  int
		from    int64
		wrong   []string
	}{
		{"bands", cinema, map[string]int64{"Stalls": 1200, "Premium": 1500}, nil, 60, 1200, nil},
		{"a band without price", cinema, map[string]int64{"Stalls": 1200}, nil, 0, 0, []string{"/prices/Premium"}},
		{"no price at all", cinema, nil, nil, 0, 0, []string{"/prices/Premium", "/prices/Stalls"}},
		{"a band too many", cinema, map[string]int64{"Stalls": 1, "Premium": 2, "Box": 3}, nil, 0, 0, []string{"/prices/Box"}},
		{"a negative price", cinema, map[string]int64{"Stalls": -1, "Premium": 2}, nil, 0, 0, []string{"/prices/Stalls"}},
		{"a pool beside the seats", cinema, map[string]int64{"Stalls": 1200, "Premium": 1500}, []PoolDraft{pool("SOFA", 5, 0)}, 65, 1200, nil},
		{"seats of a pool", cabin, nil, []PoolDraft{pool("ECONOMY", 180, 3)}, 180, 8000, nil},
		{"a price for some seats of a pool", cabin, map[string]int64{"Extra legroom": 9000}, []PoolDraft{pool("ECONOMY", 180, 3)}, 180, 8000, nil},
		{"fewer units than seats", cabin, nil, []PoolDraft{pool("ECONOMY", 179, 3)}, 0, 0, []string{"/pools/0/capacity"}},
		{"no pool for the seats", cabin, nil, []PoolDraft{pool("BUSINESS", 200, 0)}, 0, 0, []string{"/pools"}},
		{"areas by price", open, map[string]int64{"Stand": 900, "FRONT": 500}, []PoolDraft{pool("BACK", 70, 0)}, 1580, 500, nil},
		{"areas by pools", open, map[string]int64{"Stand": 900}, []PoolDraft{pool("FRONT", 100, 1), {Pool: "BACK", Capacity: 7, Price: &five}}, 118, 500, nil},
		{"an area that says no number", open, map[string]int64{"Stand": 900, "FRONT": 500, "BACK": 300}, nil, 0, 0, []string{"/prices/BACK"}},
		{"an area forgotten", open, map[string]int64{"Stand": 900, "FRONT": 500}, nil, 0, 0, []string{"/pools"}},
		{"price of the pool's name", Seating{}, map[string]int64{"A": 5}, []PoolDraft{{Pool: "A", Capacity: 3}}, 3, 5, nil},
		{"nothing to sell", Seating{}, nil, nil, 0, 0, []string{"/pools"}},
		{"too many pools", Seating{}, nil, func() (many []PoolDraft) {
			for i := range MaxPools + 1 {
				many = append(many, pool(strings.Repeat("x", i+1), 1, 0))
			}
			return many
		}(), 0, 0, []string{"/pools"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := Draft{
				Kind: Cinema, Slug: "one", Title: "One", Venue: Venue{Name: "Hall", TimeZone: "UTC"}, StartsAt: testNow.AddDate(0, 1, 0), Currency: "EUR", Prices: test.prices, Pools: test.pools,
			}
			e, err := NewEvent(&d, test.seating, testNow)
			if diff := cmp.Diff(test.wrong, pointers(t, err)); diff != "" {
				t.Fatalf("%v: %s", err, diff)
			}
			if err == nil && (e.Places != test.places || e.PriceFrom() != test.from || e.Layout != test.seating.Ref) {
				t.Errorf("%d places from %d on %v, want %d from %d", e.Places, e.PriceFrom(), e.Layout, test.places, test.from)
			}
		})
	}
}

func TestAnEditLeavesTheRestAsItIs(t *testing.T) {
	t.Parallel()
	d := readDraft(t, goodDraft)
	e, err := NewEvent(&d, Seating{}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var x Edit
	err = json.Unmarshal([]byte(`{"title": "New", "startsAt": "2030-06-02T00:00:00Z", "pools": [{"pool": "CARGO", "capacity": 10, "price": 0}], "policy": {"holdSeconds": 60, "cancellation": []}, "paused": true}`), &x)
	if err != nil {
		t.Fatal(err)
	}
	n, err := e.edited(&x, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := *e
	want.Title, want.StartsAt, want.Paused, want.Version, want.Places = "New", time.Date(2030, 6, 2, 0, 0, 0, 0, time.UTC), true, 2, 193
	want.Pools = []Pool{e.Pools[0], {Name: "CARGO", Capacity: 10, Buckets: 8, Price: 0}}
	want.Policy.HoldTTL, want.Policy.PaymentTTL, want.Policy.Cancellation = time.Minute, 48*time.Second, []CancellationRule{}
	if diff := cmp.Diff(&want, n); diff != "" {
		t.Error(diff)
	}
	if after, err := json.Marshal(e); err != nil || string(after) != string(whole) {
		t.Errorf("the event that was edited has changed: %s, before %s", after, whole)
	}

	// A sale that closes at the start goes on doing so, wherever the start goes.
	n.SaleClosesAt = n.StartsAt
	later := n.StartsAt.AddDate(0, 0, 5)
	if m, err := n.edited(&Edit{StartsAt: &later}, nil); err != nil || !m.SaleClosesAt.Equal(later) {
		t.Errorf("%v", err)
	}
}

func TestStatusFollowsTheClock(t *testing.T) {
	t.Parallel()
	// C-63
	e := Event{SaleOpensAt: testNow, SaleClosesAt: testNow.Add(time.Hour)}
	for _, test := range []struct {
		at     time.Duration
		paused bool
		want   Status
	}{
		{-1, false, Upcoming}, {-1, true, Upcoming}, {0, false, OnSale}, {0, true, Paused}, {time.Hour - 1, false, OnSale}, {time.Hour, false, Closed}, {time.Hour, true, Closed},
	} {
		e.Paused = test.paused
		i := Item{SaleOpensAt: e.SaleOpensAt, SaleClosesAt: e.SaleClosesAt, Paused: test.paused}
		if got, item := e.Status(testNow.Add(test.at)), i.Status(testNow.Add(test.at)); got != test.want || item != test.want {
			t.Errorf("%v after the opening, paused %v: %s, as an item %s, want %s", test.at, test.paused, got, item, test.want)
		}
	}
}
