package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/venue"
)

var draftNow = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func ptr[T any](v T) *T { return &v }

func concertDraft() Draft {
	return Draft{
		Kind: Concert, Title: "Night of the Bells", Venue: Venue{Name: "Old Mill", City: "Gent", TimeZone: "Europe/Brussels"},
		StartsAt: time.Date(2030, 6, 1, 18, 0, 0, 0, time.UTC), Currency: "EUR", Pools: []PoolDraft{{Pool: "STANDING", Capacity: 300, Price: ptr(int64(2500))}},
	}
}

func seating(t testing.TB, l *venue.Layout, err error) Seating {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return Seating{LayoutRef{"layout", 1}, l}
}

// field is an area for standing, beside a section of two seats.
func field(t testing.TB, capacity string) Seating {
	t.Helper()
	l, _, err := venue.Parse([]byte(`{"format":"holdfast-layout/1","name":"Field","sections":[{"name":"Stand","rows":[
		{"label":"A","first":{"x":0,"y":0},"last":{"x":1,"y":0},"count":2}]}],
		"areas":[{"kind":"standing","name":"FRONT",` + capacity + `"rect":{"x":0,"y":5,"width":9,"height":9}}]}`))
	return seating(t, l, err)
}

func pointers(err error) (out []string) {
	fields, _ := err.(FieldErrors)
	for _, f := range fields {
		out = append(out, f.Pointer)
	}
	slices.Sort(out)
	return out
}

func TestADraftGetsItsDefaults(t *testing.T) {
	t.Parallel()
	d := concertDraft()
	d.Title = "Nächte in Łódź: L'été"
	e, err := NewEvent(&d, Seating{}, draftNow)
	if err != nil {
		t.Fatal(err)
	}
	want := &Event{
		ID: e.ID, Slug: "nachte-in-lodz-lete", Kind: Concert, Title: d.Title, Venue: d.Venue, StartsAt: d.StartsAt,
		SaleOpensAt: draftNow.Truncate(time.Second), SaleClosesAt: d.StartsAt, Currency: "EUR", Prices: map[string]int64{},
		Pools: []Pool{{Name: "STANDING", Capacity: 300, Buckets: 1, Price: 2500}}, Policy: Preset(Concert), Places: 300, Version: 1, CreatedAt: draftNow.Truncate(time.Second),
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	if got := e.Status(draftNow); got != OnSale {
		t.Errorf("a sale without an opening is %s at once", got)
	}
}

// C-63: an opening between two seconds is rounded up.
func TestASaleNeverOpensEarlyNorClosesLate(t *testing.T) {
	t.Parallel()
	d := concertDraft()
	d.SaleOpensAt = time.Date(2030, 3, 31, 2, 0, 0, 1, time.FixedZone("", 3600))
	d.SaleClosesAt = time.Date(2030, 5, 1, 0, 0, 0, 999_999_999, time.UTC)
	e, err := NewEvent(&d, Seating{}, draftNow)
	if err != nil {
		t.Fatal(err)
	}
	if e.SaleOpensAt.Before(d.SaleOpensAt) || e.SaleOpensAt.Sub(d.SaleOpensAt) >= time.Second || e.SaleClosesAt.After(d.SaleClosesAt) {
		t.Errorf("opens %v, closes %v", e.SaleOpensAt, e.SaleClosesAt)
	}
	for at, want := range map[time.Time]Status{
		e.SaleOpensAt.Add(-1): Upcoming, e.SaleOpensAt: OnSale, e.SaleClosesAt.Add(-1): OnSale, e.SaleClosesAt: Closed,
	} {
		if got := e.Status(at); got != want {
			t.Errorf("at %v it is %s, want %s", at, got, want)
		}
	}
}

func TestEveryMistakeOfADraftIsNamedByItsField(t *testing.T) {
	t.Parallel()
	hall, err := venue.Cinema(10, 20) // bands Stalls and Premium
	cinema := seating(t, hall, err)
	cabin, err := venue.Cabin(30, "ABC DEF", "ECONOMY")
	plane := seating(t, cabin, err)
	cinemaDraft := func(d *Draft) {
		d.Kind, d.Pools, d.Prices = Cinema, nil, map[string]int64{"Stalls": 1200, "Premium": 1500}
	}
	flightDraft := func(d *Draft) {
		d.Kind, d.Origin, d.Destination = Flight, "SGN", "HAN"
		d.Pools = []PoolDraft{{Pool: "ECONOMY", Capacity: 180, Overbook: 3, Price: ptr(int64(9900))}}
	}
	for name, test := range map[string]struct {
		seating Seating
		change  func(*Draft)
		want    []string
	}{
		"nothing":                           {change: func(d *Draft) { *d = Draft{} }, want: []string{"/currency", "/kind", "/pools", "/slug", "/startsAt", "/title", "/venue/name", "/venue/timeZone"}},
		"right, with seats":                 {seating: cinema, change: cinemaDraft},
		"right, a flight":                   {seating: plane, change: flightDraft},
		"right, more units than seats":      {seating: plane, change: func(d *Draft) { flightDraft(d); d.Pools[0].Capacity = 200 }},
		"title too long":                    {change: func(d *Draft) { d.Slug, d.Title = "x", strings.Repeat("é", MaxTitleRunes+1) }, want: []string{"/title"}},
		"title that turns its reader round": {change: func(d *Draft) { d.Title = "abc\u202edef" }, want: []string{"/title"}},
		"title of a broken encoding":        {change: func(d *Draft) { d.Title = "a\xffb" }, want: []string{"/title"}},
		"title without a letter of ours":    {change: func(d *Draft) { d.Title = "夜" }, want: []string{"/slug"}},
		"slug with capitals":                {change: func(d *Draft) { d.Slug = "Night" }, want: []string{"/slug"}},
		"slug like an id":                   {change: func(d *Draft) { d.Slug = "evt_abc" }, want: []string{"/slug"}},
		"slug too long":                     {change: func(d *Draft) { d.Slug = strings.Repeat("a", MaxSlugBytes+1) }, want: []string{"/slug"}},
		"zone of the machine":               {change: func(d *Draft) { d.Venue.TimeZone = "Local" }, want: []string{"/venue/timeZone"}},
		"zone that is none":                 {change: func(d *Draft) { d.Venue.TimeZone = "Europe/Atlantis" }, want: []string{"/venue/timeZone"}},
		"zone out of the folder":            {change: func(d *Draft) { d.Venue.TimeZone = "../../etc/passwd" }, want: []string{"/venue/timeZone"}},
		"sale that closes before it opens":  {change: func(d *Draft) { d.SaleOpensAt, d.SaleClosesAt = d.StartsAt.Add(-1e9), d.StartsAt.Add(-2e9) }, want: []string{"/saleOpensAt"}},
		"sale after the start":              {change: func(d *Draft) { d.SaleClosesAt = d.StartsAt.Add(time.Second) }, want: []string{"/saleClosesAt"}},
		"event that has started":            {change: func(d *Draft) { d.StartsAt = draftNow.Add(-time.Hour) }, want: []string{"/saleOpensAt"}},
		"start before the calendar":         {change: func(d *Draft) { d.StartsAt = time.Unix(0, 0) }, want: []string{"/startsAt"}},
		"start after the calendar":          {change: func(d *Draft) { d.StartsAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, want: []string{"/startsAt"}},
		"currency in lower case":            {change: func(d *Draft) { d.Currency = "eur" }, want: []string{"/currency"}},
		"price below nothing":               {change: func(d *Draft) { d.Pools[0].Price = ptr(int64(-1)) }, want: []string{"/pools/0/price"}},
		"price above all":                   {change: func(d *Draft) { d.Pools[0].Price = ptr(MaxPrice + 1) }, want: []string{"/pools/0/price"}},
		"free":                              {change: func(d *Draft) { d.Pools[0].Price = ptr(int64(0)) }},
		"pool without a price":              {change: func(d *Draft) { d.Pools[0].Price = nil }, want: []string{"/pools/0/price"}},
		"pool priced by its name":           {change: func(d *Draft) { d.Pools[0].Price, d.Prices = nil, map[string]int64{"STANDING": 1} }},
		"pool priced twice":                 {change: func(d *Draft) { d.Prices = map[string]int64{"STANDING": 1} }, want: []string{"/pools/0/price"}},
		"two pools of one name":             {change: func(d *Draft) { d.Pools = append(d.Pools, d.Pools[0]) }, want: []string{"/pools/1/pool"}},
		"pool of nothing":                   {change: func(d *Draft) { d.Pools[0].Capacity = 0 }, want: []string{"/pools/0/capacity"}},
		"pool without end":                  {change: func(d *Draft) { d.Pools[0].Capacity, d.Pools[0].Overbook = MaxPoolUnits+1, MaxPoolUnits+1 }, want: []string{"/pools/0/capacity", "/pools/0/overbook"}},
		"overbooking below nothing":         {change: func(d *Draft) { d.Pools[0].Overbook = -1 }, want: []string{"/pools/0/overbook"}},
		"no bucket":                         {change: func(d *Draft) { d.Pools[0].Buckets = ptr(0) }, want: []string{"/pools/0/buckets"}},
		"more buckets than units":           {change: func(d *Draft) { d.Pools[0].Capacity, d.Pools[0].Buckets = 2, ptr(3) }, want: []string{"/pools/0/buckets"}},
		"price of a band without a layout":  {change: func(d *Draft) { d.Prices = map[string]int64{"a/b~c": 5} }, want: []string{"/prices/a~1b~0c"}},
		"band without a price":              {seating: cinema, change: func(d *Draft) { cinemaDraft(d); delete(d.Prices, "Premium") }, want: []string{"/prices/Premium"}},
		"price of no band":                  {seating: cinema, change: func(d *Draft) { cinemaDraft(d); d.Prices["Balcony"] = 1 }, want: []string{"/prices/Balcony"}},
		"seats of a pool that is missing":   {seating: plane, change: func(d *Draft) { flightDraft(d); d.Pools[0].Pool = "BUSINESS" }, want: []string{"/pools"}},
		"fewer units than seats":            {seating: plane, change: func(d *Draft) { flightDraft(d); d.Pools[0].Capacity = 179 }, want: []string{"/pools/0/capacity"}},
		"flight from nowhere":               {change: func(d *Draft) { flightDraft(d); d.Origin = "" }, want: []string{"/origin"}},
		"flight to itself":                  {change: func(d *Draft) { flightDraft(d); d.Destination = "SGN" }, want: []string{"/destination"}},
		"flight by small letters":           {change: func(d *Draft) { flightDraft(d); d.Origin = "sgn" }, want: []string{"/origin"}},
		"concert from an airport":           {change: func(d *Draft) { d.Origin = "SGN" }, want: []string{"/origin"}},
		"standing area nobody sells":        {seating: field(t, `"capacity":500,`), change: func(d *Draft) { d.Pools, d.Prices = nil, map[string]int64{"Stand": 1} }, want: []string{"/pools"}},
		"standing area of unknown size": {
			seating: field(t, ``), change: func(d *Draft) { d.Pools, d.Prices = nil, map[string]int64{"Stand": 1, "FRONT": 2} }, want: []string{"/prices/FRONT"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := concertDraft()
			test.change(&d)
			e, err := NewEvent(&d, test.seating, draftNow)
			if diff := cmp.Diff(test.want, pointers(err)); diff != "" {
				t.Fatalf("%v%s", err, diff)
			}
			if len(test.want) == 0 && e == nil {
				t.Fatal("no event and no error")
			}
		})
	}
}

func TestAPricedStandingAreaBecomesAPool(t *testing.T) {
	t.Parallel()
	d := concertDraft()
	d.Pools, d.Prices = nil, map[string]int64{"Stand": 4000, "FRONT": 3500}
	e, err := NewEvent(&d, field(t, `"capacity":5000,`), draftNow)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pool{{Name: "FRONT", Capacity: 5000, Buckets: usualBuckets, Price: 3500}}, e.Pools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"Stand": 4000}, e.Prices); diff != "" {
		t.Error(diff)
	}
	if e.Places != 5002 || e.PriceFrom() != 3500 {
		t.Errorf("%d places from %d", e.Places, e.PriceFrom())
	}
}

func TestPlacesAreCountedAsTheBoardCountsThem(t *testing.T) {
	t.Parallel()
	cabin, err := venue.Cabin(30, "ABC DEF", "ECONOMY")
	plane := seating(t, cabin, err)
	for name, test := range map[string]struct {
		pools []PoolDraft
		want  int
	}{
		"overbooked units have no seat":     {[]PoolDraft{{Pool: "ECONOMY", Capacity: 180, Overbook: 3, Price: ptr(int64(1))}}, 180},
		"units of a pool without seats add": {[]PoolDraft{{Pool: "ECONOMY", Capacity: 180, Price: ptr(int64(1))}, {Pool: "CARGO", Capacity: 5, Overbook: 2, Price: ptr(int64(1))}}, 187},
	} {
		d := concertDraft()
		d.Kind, d.Origin, d.Destination, d.Pools = Flight, "SGN", "HAN", test.pools
		e, err := NewEvent(&d, plane, draftNow)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if e.Places != test.want {
			t.Errorf("%s: %d places, want %d", name, e.Places, test.want)
		}
	}
}

func TestPolicyLiesOverItsPreset(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		json string
		want func(*Policy)
		bad  []string
	}{
		"nothing":                           {json: `{}`, want: func(*Policy) {}},
		"a short hold shortens its payment": {json: `{"holdSeconds":5}`, want: func(p *Policy) { p.HoldTTL, p.PaymentTTL = 5*time.Second, 4*time.Second }},
		"the shortest hold":                 {json: `{"holdSeconds":1}`, want: func(p *Policy) { p.HoldTTL, p.PaymentTTL = time.Second, time.Second }},
		"a long hold raises its ceiling":    {json: `{"holdSeconds":3600}`, want: func(p *Policy) { p.HoldTTL, p.Ceiling = time.Hour, time.Hour }},
		"many places for each customer":     {json: `{"maxPlacesPerHold":20}`, want: func(p *Policy) { p.MaxPlacesPerHold, p.MaxPlacesPerCustomer = 20, 20 }},
		"part of the room":                  {json: `{"waitingRoom":{"enabled":false,"passSeconds":30}}`, want: func(p *Policy) { p.WaitingRoom.Enabled, p.WaitingRoom.PassTTL = false, 30*time.Second }},
		"never refunded":                    {json: `{"cancellation":[]}`, want: func(p *Policy) { p.Cancellation = []CancellationRule{} }},
		"all": {
			json: `{"holdSeconds":60,"paymentSeconds":50,"extendSeconds":0,"holdCeilingSeconds":90,"maxPlacesPerHold":1,"maxPlacesPerCustomer":2,"maxHoldsPerMinute":3,
				"waitingRoom":{"enabled":true,"perSecond":4,"maxActive":5,"passSeconds":6,"opensSecondsBefore":7},
				"cancellation":[{"untilSecondsBefore":9,"refundPercent":90},{"untilSecondsBefore":8,"refundPercent":0}],"orphans":"forbid"}`,
			want: func(p *Policy) {
				*p = Policy{
					HoldTTL: time.Minute, PaymentTTL: 50 * time.Second, Ceiling: 90 * time.Second, MaxPlacesPerHold: 1, MaxPlacesPerCustomer: 2, MaxHoldsPerMinute: 3,
					WaitingRoom:  WaitingRoom{Enabled: true, PerSecond: 4, MaxActive: 5, PassTTL: 6 * time.Second, OpensBefore: 7 * time.Second},
					Cancellation: []CancellationRule{{9 * time.Second, 90}, {8 * time.Second, 0}}, Orphans: OrphansForbid,
				}
			},
		},
		"payment longer than its hold": {json: `{"paymentSeconds":301}`, bad: []string{"/policy/paymentSeconds"}},
		"no time to pay":               {json: `{"paymentSeconds":0}`, bad: []string{"/policy/paymentSeconds"}},
		"ceiling below the hold":       {json: `{"holdCeilingSeconds":299}`, bad: []string{"/policy/holdCeilingSeconds"}},
		"more than fits a duration":    {json: `{"holdSeconds":9223372036854775807}`, bad: []string{"/policy/holdCeilingSeconds", "/policy/holdSeconds"}},
		"less than nothing": {
			json: `{"extendSeconds":-9223372036854775808,"maxPlacesPerHold":0,"maxPlacesPerCustomer":-1,"maxHoldsPerMinute":0}`,
			bad:  []string{"/policy/extendSeconds", "/policy/maxHoldsPerMinute", "/policy/maxPlacesPerCustomer", "/policy/maxPlacesPerHold"},
		},
		"a room for nobody": {
			json: `{"waitingRoom":{"perSecond":0,"maxActive":0,"passSeconds":0,"opensSecondsBefore":-1}}`,
			bad:  []string{"/policy/waitingRoom/maxActive", "/policy/waitingRoom/opensSecondsBefore", "/policy/waitingRoom/passSeconds", "/policy/waitingRoom/perSecond"},
		},
		"rules of the wrong order": {
			json: `{"cancellation":[{"untilSecondsBefore":8,"refundPercent":101},{"untilSecondsBefore":8,"refundPercent":-1}]}`,
			bad:  []string{"/policy/cancellation/0/refundPercent", "/policy/cancellation/1/refundPercent", "/policy/cancellation/1/untilSecondsBefore"},
		},
		"orphans": {json: `{"orphans":"maybe"}`, bad: []string{"/policy/orphans"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := concertDraft()
			if err := json.Unmarshal([]byte(test.json), &d.Policy); err != nil {
				t.Fatal(err)
			}
			e, err := NewEvent(&d, Seating{}, draftNow)
			if diff := cmp.Diff(test.bad, pointers(err)); diff != "" {
				t.Fatalf("%v%s", err, diff)
			}
			if test.bad != nil {
				return
			}
			want := Preset(Concert)
			test.want(&want)
			if diff := cmp.Diff(want, e.Policy); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a policy's fields say, the event either is refused or its holds can be placed, paid and ended.
func TestAPolicyThatIsAcceptedCanBeSoldBy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(label string) *int64 {
			return rapid.Ptr(rapid.OneOf(rapid.Int64Range(-2, 20), rapid.Int64Range(250, 90_000), rapid.Int64()), true).Draw(t, label)
		}
		number := func(label string) *int {
			return rapid.Ptr(rapid.OneOf(rapid.IntRange(-2, 20), rapid.Int()), true).Draw(t, label)
		}
		d := concertDraft()
		d.Kind = rapid.SampledFrom([]Kind{Cinema, Concert}).Draw(t, "kind")
		d.Policy = &PolicyDraft{
			HoldSeconds: seconds("hold"), PaymentSeconds: seconds("payment"), ExtendSeconds: seconds("extend"), HoldCeilingSeconds: seconds("ceiling"),
			MaxPlacesPerHold: number("per hold"), MaxPlacesPerCustomer: number("per customer"), MaxHoldsPerMinute: number("per minute"),
		}
		e, err := NewEvent(&d, Seating{}, draftNow)
		if err != nil {
			for _, p := range pointers(err) {
				if !strings.HasPrefix(p, "/policy/") {
					t.Fatalf("policy %+v: %v", d.Policy, err)
				}
			}
			return
		}
		p := e.Policy
		if p.HoldTTL < time.Second || p.PaymentTTL <= 0 || p.PaymentTTL > p.HoldTTL || p.Buffer() != p.HoldTTL-p.PaymentTTL || p.Ceiling < p.HoldTTL ||
			p.Ceiling > MaxCeiling || p.ExtendTTL < 0 || p.MaxPlacesPerHold < 1 || p.MaxPlacesPerCustomer < 1 || p.MaxHoldsPerMinute < 1 {
			t.Fatalf("accepted %+v", p)
		}
	})
}

// Stores keep prices, pools and policy as JSON.
func TestWhatStoresKeepComesBackWhole(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{Cinema, Concert, Flight} {
		want := Preset(kind)
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Policy
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestAnEditOfOneThingLeavesTheOthers(t *testing.T) {
	t.Parallel()
	d := concertDraft()
	d.Policy = &PolicyDraft{HoldSeconds: ptr(int64(100)), PaymentSeconds: ptr(int64(100))} // no buffer, on purpose
	e, err := NewEvent(&d, Seating{}, draftNow)
	if err != nil {
		t.Fatal(err)
	}
	later := e.StartsAt.Add(time.Hour)
	for name, test := range map[string]struct {
		edit Edit
		want func(*Event)
	}{
		"a rule of the policy":  {Edit{Policy: &PolicyDraft{Orphans: ptr(OrphansAllow)}}, func(e *Event) { e.Policy.Orphans = OrphansAllow }},
		"a pause":               {Edit{Paused: ptr(true)}, func(e *Event) { e.Paused = true }},
		"a later start":         {Edit{StartsAt: &later}, func(e *Event) { e.StartsAt, e.SaleClosesAt = later, later }},
		"the figures of a pool": {Edit{Pools: []PoolEdit{{Pool: "STANDING", Capacity: ptr(int64(400)), Overbook: ptr(int64(4))}}}, func(e *Event) { e.Pools[0].Capacity, e.Pools[0].Overbook, e.Places = 400, 4, 404 }},
		"the price of a pool":   {Edit{Pools: []PoolEdit{{Pool: "STANDING", Price: ptr(int64(1))}}}, func(e *Event) { e.Pools[0].Price = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := *e
			want.Pools, want.Version = slices.Clone(e.Pools), 2
			test.want(&want)
			got, err := e.edited(&test.edit, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
			if e.Pools[0].Capacity != 300 || e.Paused || e.Version != 1 {
				t.Errorf("the event that others read was changed: %+v", e)
			}
		})
	}
}
