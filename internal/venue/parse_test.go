package venue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// equalLayouts compares everything but the look-up table, which follows from the seats.
var equalLayouts = cmp.Options{
	cmp.AllowUnexported(Layout{}, document{}, section{}, row{}), cmpopts.IgnoreFields(Layout{}, "byCode"), cmpopts.EquateEmpty(),
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, data []byte) (*Layout, []Warning) {
	t.Helper()
	l, warnings, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return l, warnings
}

// line shows a seat the way the tests compare it.
func line(l *Layout, no int32) string {
	s := &l.Seats[no]
	return fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%d,%d|row %d", s.Code, s.Section, s.Row, s.Number, s.Band, s.Pool, s.Kind, s.X, s.Y, l.RowOf[no])
}

func lines(l *Layout, from, to int32) (out []string) {
	for no := from; no < to; no++ {
		out = append(out, line(l, no))
	}
	return out
}

func TestOwnFormatDescribesEverySeat(t *testing.T) {
	t.Parallel()
	l, warnings := parse(t, read(t, "hall.json"))
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	// Row A: 12 seats and an aisle of one seat on 12 units; the bow is 4·0.75·t·(1-t).
	want := []string{
		"Stalls-A-1|Stalls|A|1|B||wheelchair|0,0|row 0",
		"Stalls-A-2|Stalls|A|2|B||companion|100,23|row 0",
		"Stalls-A-3|Stalls|A|3|B||standard|200,42|row 0",
		"Stalls-A-4|Stalls|A|4|A||standard|300,56|row 0",
		"Stalls-A-5|Stalls|A|5|A||standard|400,67|row 0",
		"Stalls-A-6|Stalls|A|6|A||standard|500,73|row 0",
		"Stalls-A-7|Stalls|A|7|A||standard|700,73|row 0",
		"Stalls-A-8|Stalls|A|8|A||standard|800,67|row 0",
		"Stalls-A-9|Stalls|A|9|A||standard|900,56|row 0",
		"Stalls-A-10|Stalls|A|10|B||standard|1000,42|row 0",
		"Stalls-A-11|Stalls|A|11|B||standard|1100,23|row 0",
		"Stalls-A-12|Stalls|A|12|B||wheelchair|1200,0|row 0",
		"Stalls-B-26|Stalls|B|26|B||standard|0,110|row 1",
	}
	if diff := cmp.Diff(want, lines(l, 0, 13)); diff != "" {
		t.Error(diff)
	}
	want = []string{
		"Stalls-B-2|Stalls|B|2|B||standard|1100,110|row 1",
		"Stalls-C-1|Stalls|C|1|B||standard|0,300|row 2",
		"Stalls-C-2|Stalls|C|2|B||standard|125,350|row 2",
		"Stalls-C-2a|Stalls|C|2a|B||standard|200,301|row 2",
		"L1-1|Box 1||1|Box 1|BOXES|standard|-300,100|row 3",
		"L1-X-P|Box 1|X|P|A|BOXES|standard|-300,200|row 4",
		"L1-X-Q|Box 1|X|Q|A|BOXES|standard|-325,300|row 4",
		"L1-X-R|Box 1|X|R|A|BOXES|standard|-350,400|row 4",
		"11A|Shuttle|11|A|Shuttle|BUS|standard|3000,0|row 5",
		"11B|Shuttle|11|B|Shuttle|BUS|standard|3100,0|row 5",
		"11C|Shuttle|11|C|Shuttle|BUS|standard|3400,0|row 5",
		"11D|Shuttle|11|D|Shuttle|BUS|standard|3500,0|row 5",
		"12A|Shuttle|12|A|Shuttle|BUS|standard|3000,130|row 6",
	}
	if diff := cmp.Diff(want, lines(l, 23, 36)); diff != "" {
		t.Error(diff)
	}
	wantRows := []Row{
		{Section: 0, Label: "A", First: 0, Count: 12, Blocks: []Block{{0, 6}, {6, 6}}},
		{Section: 0, Label: "B", First: 12, Count: 12, Blocks: []Block{{12, 12}}},
		{Section: 0, Label: "C", First: 24, Count: 3, Blocks: []Block{{24, 1}, {25, 2}}},
		{Section: 1, Label: "", First: 27, Count: 1, Blocks: []Block{{27, 1}}},
		{Section: 1, Label: "X", First: 28, Count: 3, Blocks: []Block{{28, 3}}},
		{Section: 2, Label: "11", First: 31, Count: 4, Blocks: []Block{{31, 2}, {33, 2}}},
		{Section: 2, Label: "12", First: 35, Count: 4, Blocks: []Block{{35, 2}, {37, 2}}, Exit: true},
		{Section: 2, Label: "14", First: 39, Count: 4, Blocks: []Block{{39, 2}, {41, 2}}},
	}
	if diff := cmp.Diff(wantRows, l.Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"B", "A", "Box 1", "Shuttle"}, l.Bands); diff != "" {
		t.Error(diff)
	}
	if want := (Point{550, -200}); l.Focus != want {
		t.Errorf("focus %v, want %v", l.Focus, want)
	}
	if len(l.Areas) != 3 || l.Areas[1].Capacity != 300 || len(l.Areas[2].Polygon) != circleCorners {
		t.Errorf("areas %+v", l.Areas)
	}
}

func TestSeatByCodeComparesExactly(t *testing.T) {
	t.Parallel()
	l, _ := parse(t, read(t, "hall.json"))
	for no := range l.Seats {
		if got, ok := l.SeatByCode(l.Seats[no].Code); !ok || got != int32(no) || l.Seats[no].No != got {
			t.Errorf("seat %d is found as %d", no, got)
		}
	}
	for _, code := range []string{"", "12a", " 12A", "12A ", "12-A", "Stalls-a-1", "stalls-A-1", "13A"} {
		if no, ok := l.SeatByCode(code); ok {
			t.Errorf("%q is seat %d", code, no)
		}
	}
}

func TestSeatCode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ prefix, row, number, want string }{
		{"", "F", "5", "F5"},
		{"", "12", "A", "12A"},
		{"", "1", "5", "1-5"},
		{"", "A", "B", "A-B"},
		{"", "A1", "5", "A1-5"},
		{"", "Ä", "5", "Ä5"},
		{"", "", "5", "5"},
		{"101", "F", "5", "101-F-5"},
		{"Box", "", "5", "Box-5"},
	} {
		if got := seatCode(tc.prefix, tc.row, tc.number); got != tc.want {
			t.Errorf("%q %q %q gives %q, want %q", tc.prefix, tc.row, tc.number, got, tc.want)
		}
	}
}

func TestFocusIsTheStageOrTheMiddleOfTheFrontEdge(t *testing.T) {
	t.Parallel()
	const rows = `"sections":[{"name":"S","rows":[{"label":"A","first":{"x":-2,"y":5},"last":{"x":4,"y":5},"count":3},{"label":"B","first":{"x":0,"y":7},"count":1}]}]`
	for _, tc := range []struct {
		name, areas string
		want        Point
	}{
		{"no area", `[]`, Point{100, 500}},
		{"decoration", `[{"kind":"decoration","rect":{"x":0,"y":0,"width":9,"height":9}}]`, Point{100, 500}},
		{"screen", `[{"kind":"screen","rect":{"x":0,"y":0,"width":3,"height":1}}]`, Point{150, 50}},
	} {
		l, _ := parse(t, []byte(`{"format":"holdfast-layout/1","name":"H",`+rows+`,"areas":`+tc.areas+`}`))
		if l.Focus != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, l.Focus, tc.want)
		}
	}
}

func TestPretixPlanBecomesALayout(t *testing.T) {
	t.Parallel()
	l, warnings := parse(t, read(t, "pretix.json"))
	want := []string{
		"Saal-1-1|Saal|1|1|Parkett||wheelchair|10000,6075|row 0",
		"Saal-1-2|Saal|1|2|Parkett||standard|12500,6075|row 0",
		"Saal-1-3|Saal|1|3|Parkett||standard|15000,6075|row 0",
		"Saal-1-4|Saal|1|4|Loge||standard|22500,6075|row 0",
		"Saal-2-10|Saal|2|10|Loge||standard|10000,9050|row 1",
		"Saal-2-8|Saal|2|8|Loge||standard|12433,9200|row 1",
		"Saal-2-6|Saal|2|6|Loge||standard|14810,9650|row 1",
		"Saal (2)-1-1|Saal (2)|1|1|Parkett||standard|10000,20000|row 2",
	}
	if diff := cmp.Diff(want, lines(l, 0, int32(len(l.Seats)))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Block{{0, 3}, {3, 1}}, l.Rows[0].Blocks); diff != "" {
		t.Errorf("an aisle is where the distance is unusual:\n%s", diff)
	}
	if l.Name != "Großer Saal" {
		t.Errorf("name %q", l.Name)
	}
	wantAreas := []Area{
		{Kind: Stage, Name: "BÜHNE", Polygon: []Point{{11000, 1050}, {21000, 1050}, {21000, 3050}, {11000, 3050}}},
		{Kind: Standing, Name: "Standing", Polygon: []Point{{10000, 22000}, {10000, 27000}, {6000, 27000}, {6000, 22000}}},
	}
	if diff := cmp.Diff(wantAreas, l.Areas[:2]); diff != "" {
		t.Error(diff)
	}
	if l.Focus != (Point{16000, 2050}) {
		t.Errorf("focus %v is not the stage", l.Focus)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	wantWarnings := []string{
		`name: spaces of "Großer Saal " were put in order`,
		`zones[0].rows[0].seats[2].colour: not known, left out here and wherever else it is`,
		`zones[0].rows[2]: row without seats, left out`,
		`zones[0].areas[1]: area without a shape, left out`,
		`zones[1]: named "Saal (2)", since zones need different names`,
		`zones[1].areas[0]: standing area "Standing": the plan has no capacity, the event's pool of that name says it`,
	}
	if diff := cmp.Diff(wantWarnings, got); diff != "" {
		t.Error(diff)
	}
}

func TestCanonicalParsesToAnEqualLayout(t *testing.T) {
	t.Parallel()
	for name, l := range someLayouts(t) {
		again, warnings, err := Parse(l.Canonical())
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %v %v", name, err, warnings)
		}
		if diff := cmp.Diff(l, again, equalLayouts); diff != "" {
			t.Errorf("%s:\n%.2000s", name, diff)
		}
		if !bytes.Equal(l.Canonical(), again.Canonical()) {
			t.Errorf("%s: the canonical form changes", name)
		}
	}
}

func someLayouts(t testing.TB) map[string]*Layout {
	t.Helper()
	out := map[string]*Layout{}
	for _, name := range []string{"hall.json", "pretix.json"} {
		out[name], _ = parse(t, read(t, name))
	}
	add := func(name string, l *Layout, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = l
	}
	l, err := Cinema(10, 20)
	add("cinema", l, err)
	l, err = Stadium(3_333)
	add("stadium", l, err)
	l, err = Cabin(30, "ABC DEF", "ECONOMY")
	add("cabin", l, err)
	return out
}

// change edits the JSON of a file at a path of keys and indexes; del removes.
func change(t *testing.T, file string, path []any, value any) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(read(t, file), &doc); err != nil {
		t.Fatal(err)
	}
	at := doc
	for _, step := range path[:len(path)-1] {
		switch s := step.(type) {
		case string:
			at = at.(map[string]any)[s]
		case int:
			at = at.([]any)[s]
		}
	}
	switch s := path[len(path)-1].(type) {
	case string:
		if value == del {
			delete(at.(map[string]any), s)
		} else {
			at.(map[string]any)[s] = value
		}
	case int:
		at.([]any)[s] = value
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var del = &struct{ int }{}

func repeat(v any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = v
	}
	return out
}

type obj = map[string]any

func TestParseRefusesWithThePlaceAndTheReason(t *testing.T) {
	t.Parallel()
	in := func(path ...any) []any { return path }
	stalls := func(row int, field string) []any { return in("sections", 0, "rows", row, field) }
	pretixSeat := func(field string) []any { return in("zones", 0, "rows", 1, "seats", 2, field) }
	for _, tc := range []struct {
		name  string
		file  string
		path  []any
		value any
		is    error
		at    string
	}{
		{"unknown key at the top", "hall.json", in("colour"), 1, ErrUnknown, "colour"},
		{"unknown key in a section", "hall.json", in("sections", 1, "colour"), 1, ErrUnknown, "sections[1].colour"},
		{"unknown key in a row", "hall.json", stalls(1, "colour"), 1, ErrUnknown, "sections[0].rows[1].colour"},
		{"unknown key in a point", "hall.json", in("focus", "z"), 1, ErrUnknown, "focus.z"},
		{"unknown key in an area", "hall.json", in("areas", 0, "colour"), 1, ErrUnknown, "areas[0].colour"},
		{"unknown key in a cabin", "hall.json", in("sections", 2, "cabin", "wings"), 2, ErrUnknown, "sections[2].cabin.wings"},
		{"unknown key in a gap", "hall.json", in("sections", 0, "rows", 0, "gaps", 0, "before"), 2, ErrUnknown, "sections[0].rows[0].gaps[0].before"},
		{"unknown key in numbers", "hall.json", in("sections", 0, "rows", 1, "numbers", "odd"), true, ErrUnknown, "sections[0].rows[1].numbers.odd"},
		{"unknown key in a band range", "hall.json", in("sections", 0, "rows", 0, "bands", 0, "colour"), 1, ErrUnknown, "sections[0].rows[0].bands[0].colour"},
		{"another version", "hall.json", in("format"), "holdfast-layout/9", ErrFormat, "format"},
		{"wrong type", "hall.json", in("name"), 7, ErrValue, "name"},
		{"null", "hall.json", in("name"), nil, ErrValue, "name"},
		{"list for an object", "hall.json", in("focus"), []any{}, ErrValue, "focus"},
		{"object for a list", "hall.json", in("sections"), obj{}, ErrValue, "sections"},
		{"text for a flag", "hall.json", stalls(0, "exit"), "yes", ErrValue, "sections[0].rows[0].exit"},
		{"text for a number", "hall.json", in("focus", "x"), "1", ErrValue, "focus.x"},
		{"fraction for a count", "hall.json", stalls(1, "count"), 1.5, ErrValue, "sections[0].rows[1].count"},
		{"no name", "hall.json", in("name"), del, ErrMissing, "name"},
		{"name with a space at its end", "hall.json", in("name"), "Hall ", ErrValue, "name"},
		{"name with a control character", "hall.json", in("name"), "Ha\x00ll", ErrValue, "name"},
		{"name that turns the direction", "hall.json", in("name"), "Ha\u202ell", ErrValue, "name"},
		{"name with a broken character", "hall.json", in("name"), "Ha\ufffdll", ErrValue, "name"},
		{"long name", "hall.json", in("name"), strings.Repeat("x", MaxNameBytes+1), ErrLimit, "name"},
		{"section without a name", "hall.json", in("sections", 1, "name"), "", ErrMissing, "sections[1].name"},
		{"two sections of a name", "hall.json", in("sections", 1, "name"), "Stalls", ErrDuplicate, "sections[1]"},
		{"section without rows", "hall.json", in("sections", 1, "rows"), []any{}, ErrMissing, "sections[1].rows"},
		{"section of an unknown kind", "hall.json", in("sections", 1, "kind"), "deck", ErrUnknown, "sections[1].kind"},
		{"pool with a space", "hall.json", in("sections", 1, "pool"), " P", ErrValue, "sections[1].pool"},
		{"code with a tab", "hall.json", in("sections", 1, "code"), "L\t1", ErrValue, "sections[1].code"},
		{"too many sections", "hall.json", in("sections"), repeat(obj{"name": "x"}, MaxSections+1), ErrLimit, "sections"},
		{"long label", "hall.json", stalls(0, "label"), strings.Repeat("x", MaxLabelBytes+1), ErrLimit, "sections[0].rows[0]"},
		{"no count", "hall.json", stalls(0, "count"), del, ErrMissing, "sections[0].rows[0]"},
		{"negative count", "hall.json", stalls(0, "count"), -3, ErrMissing, "sections[0].rows[0]"},
		{"too many in a row", "hall.json", stalls(0, "count"), MaxRowSeats + 1, ErrLimit, "sections[0].rows[0]"},
		{"no first point", "hall.json", stalls(0, "first"), del, ErrMissing, "sections[0].rows[0]"},
		{"no last point", "hall.json", stalls(0, "last"), del, ErrMissing, "sections[0].rows[0]"},
		{"row without length", "hall.json", stalls(1, "last"), obj{"x": 0, "y": 1.1}, ErrValue, "sections[0].rows[1]"},
		{"point without y", "hall.json", stalls(1, "last"), obj{"x": 0}, ErrMissing, "sections[0].rows[1].last"},
		{"curve of one seat", "hall.json", in("sections", 1, "rows", 0, "curve"), 1, ErrValue, "sections[1].rows[0]"},
		{"points and a line", "hall.json", stalls(2, "first"), obj{"x": 0, "y": 0}, ErrValue, "sections[0].rows[2]"},
		{"far away", "hall.json", in("focus", "x"), MaxExtentUnits * 2, ErrLimit, "focus.x"},
		{"huge number", "hall.json", in("focus", "x"), json.Number("1e999"), ErrLimit, "focus.x"},
		{"huge count", "hall.json", stalls(0, "count"), json.Number("99999999999999999999"), ErrValue, "sections[0].rows[0].count"},
		{"gap before the row", "hall.json", stalls(0, "gaps"), []any{obj{"after": 0}}, ErrValue, "sections[0].rows[0]"},
		{"gap behind the row", "hall.json", stalls(0, "gaps"), []any{obj{"after": 12}}, ErrValue, "sections[0].rows[0]"},
		{"gaps out of order", "hall.json", stalls(0, "gaps"), []any{obj{"after": 5}, obj{"after": 5}}, ErrValue, "sections[0].rows[0]"},
		{"negative gap", "hall.json", stalls(0, "gaps"), []any{obj{"after": 5, "width": -1}}, ErrValue, "sections[0].rows[0].gaps[0].width"},
		{"wide gap", "hall.json", stalls(0, "gaps"), []any{obj{"after": 5, "width": MaxRowSlots}}, ErrLimit, "sections[0].rows[0]"},
		{"gap with a width between points", "hall.json", stalls(2, "gaps"), []any{obj{"after": 1, "width": 1}}, ErrValue, "sections[0].rows[2]"},
		{"step 0", "hall.json", stalls(1, "numbers"), obj{"step": 0}, ErrValue, "sections[0].rows[1].numbers.step"},
		{"negative step", "hall.json", stalls(1, "numbers"), obj{"step": -1}, ErrValue, "sections[0].rows[1]"},
		{"huge start", "hall.json", stalls(1, "numbers"), obj{"start": MaxSeatNumber + 1}, ErrValue, "sections[0].rows[1]"},
		{"letters and start", "hall.json", stalls(1, "numbers"), obj{"start": 1, "letters": "ABCDEFGHIJKL"}, ErrValue, "sections[0].rows[1]"},
		{"too few letters", "hall.json", stalls(1, "numbers"), obj{"letters": "ABC"}, ErrValue, "sections[0].rows[1]"},
		{"too few in the list", "hall.json", stalls(2, "numbers"), obj{"list": []any{"1"}}, ErrValue, "sections[0].rows[2]"},
		{"empty number", "hall.json", stalls(2, "numbers"), obj{"list": []any{"1", "", "3"}}, ErrMissing, "sections[0].rows[2]"},
		{"number with a space", "hall.json", stalls(2, "numbers"), obj{"list": []any{"1", " 2", "3"}}, ErrValue, "sections[0].rows[2]"},
		{"number twice", "hall.json", stalls(2, "numbers"), obj{"list": []any{"1", "2", "1"}}, ErrDuplicate, "sections[0].rows[2] place 3"},
		{"row twice", "hall.json", stalls(1, "label"), "A", ErrDuplicate, "sections[0].rows[1] place 7"},
		{"band range behind the row", "hall.json", stalls(0, "bands"), []any{obj{"from": 4, "to": 13, "band": "A"}}, ErrValue, "sections[0].rows[0]"},
		{"bands that overlap", "hall.json", stalls(0, "bands"), []any{obj{"from": 1, "to": 3, "band": "A"}, obj{"from": 3, "to": 4, "band": "C"}}, ErrDuplicate, "sections[0].rows[0]"},
		{"band without a name", "hall.json", stalls(0, "bands"), []any{obj{"from": 1, "to": 3}}, ErrMissing, "sections[0].rows[0]"},
		{"wheelchair place outside", "hall.json", stalls(0, "wheelchair"), []any{13}, ErrValue, "sections[0].rows[0]"},
		{"wheelchair and companion", "hall.json", stalls(0, "companion"), []any{1}, ErrDuplicate, "sections[0].rows[0]"},
		{"cabin and rows", "hall.json", in("sections", 2, "rows"), []any{obj{}}, ErrValue, "sections[2]"},
		{"cabin backwards", "hall.json", in("sections", 2, "cabin", "to"), 3, ErrValue, "sections[2].cabin"},
		{"cabin of too many rows", "hall.json", in("sections", 2, "cabin", "to"), MaxSeatNumber, ErrLimit, "sections[2].cabin"},
		{"cabin without letters", "hall.json", in("sections", 2, "cabin", "letters"), "", ErrValue, "sections[2].cabin.letters"},
		{"cabin with an aisle outside", "hall.json", in("sections", 2, "cabin", "letters"), " AB", ErrValue, "sections[2].cabin"},
		{"cabin without pitch", "hall.json", in("sections", 2, "cabin", "pitch"), 0, ErrValue, "sections[2].cabin.pitch"},
		{"cabin beyond the plan", "hall.json", in("sections", 2, "cabin", "at"), obj{"x": MaxExtentUnits, "y": 0}, ErrLimit, "sections[2].cabin"},
		{"exit row that is left out", "hall.json", in("sections", 2, "cabin", "exitRows"), []any{13}, ErrValue, "sections[2].cabin.exitRows"},
		{"area of an unknown kind", "hall.json", in("areas", 0, "kind"), "pool", ErrUnknown, "areas[0].kind"},
		{"area without a shape", "hall.json", in("areas", 0, "rect"), del, ErrMissing, "areas[0]"},
		{"area of two shapes", "hall.json", in("areas", 0, "circle"), obj{"x": 0, "y": 0, "radius": 1}, ErrMissing, "areas[0]"},
		{"area of two points", "hall.json", in("areas", 1, "polygon"), []any{obj{"x": 0, "y": 0}, obj{"x": 1, "y": 0}}, ErrValue, "areas[1]"},
		{"rect without height", "hall.json", in("areas", 0, "rect", "height"), del, ErrMissing, "areas[0].rect"},
		{"area beyond the plan", "hall.json", in("areas", 0, "rect", "width"), MaxExtentUnits, ErrLimit, "areas[0].rect"},
		{"capacity of a stage", "hall.json", in("areas", 0, "capacity"), 3, ErrValue, "areas[0].capacity"},
		{"negative capacity", "hall.json", in("areas", 1, "capacity"), -1, ErrValue, "areas[1].capacity"},
		{"standing area without a pool", "hall.json", in("areas", 1, "name"), "", ErrMissing, "areas[1].name"},
		{"too many areas", "hall.json", in("areas"), repeat(obj{"kind": "stage", "circle": obj{"x": 0, "y": 0, "radius": 1}}, MaxAreas+1), ErrLimit, "areas"},

		{"pretix: guid twice", "pretix.json", pretixSeat("seat_guid"), "g1", ErrDuplicate, "zones[0].rows[1].seats[2]"},
		{"pretix: no guid", "pretix.json", pretixSeat("seat_guid"), del, ErrMissing, "zones[0].rows[1].seats[2]"},
		{"pretix: unknown category", "pretix.json", pretixSeat("category"), "Balkon", ErrUnknown, "zones[0].rows[1].seats[2]"},
		{"pretix: no category", "pretix.json", pretixSeat("category"), del, ErrMissing, "zones[0].rows[1].seats[2]"},
		{"pretix: no position", "pretix.json", pretixSeat("position"), del, ErrMissing, "zones[0].rows[1].seats[2]"},
		{"pretix: position without x", "pretix.json", pretixSeat("position"), obj{"y": 1}, ErrMissing, "zones[0].rows[1].seats[2].position"},
		{"pretix: positions add up too far", "pretix.json", pretixSeat("position"), obj{"x": MaxExtentUnits, "y": 1}, ErrLimit, "zones[0].rows[1].seats[2]"},
		{"pretix: no number", "pretix.json", pretixSeat("seat_number"), del, ErrMissing, "zones[0].rows[1].seats[2]"},
		{"pretix: number twice", "pretix.json", pretixSeat("seat_number"), "8", ErrDuplicate, "zones[0].rows[1].seats[2]"},
		{"pretix: wrong type", "pretix.json", pretixSeat("seat_number"), 6, ErrValue, "zones[0].rows[1].seats[2].seat_number"},
		{"pretix: category twice", "pretix.json", in("categories", 1, "name"), "Parkett", ErrDuplicate, "categories[1]"},
		{"pretix: category without a name", "pretix.json", in("categories", 1, "name"), del, ErrMissing, "categories[1]"},
		{"pretix: text of a wrong type", "pretix.json", in("zones", 0, "areas", 0, "text"), 3, ErrValue, "zones[0].areas[0].text"},
		{"pretix: no name", "pretix.json", in("name"), del, ErrMissing, "name"},
		{"pretix: no seats", "pretix.json", in("zones"), []any{}, ErrMissing, ""},
		{"pretix: too many in a row", "pretix.json", in("zones", 0, "rows", 0, "seats"), repeat(obj{}, MaxRowSeats+1), ErrLimit, "zones[0].rows[0].seats"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, _, err := Parse(change(t, tc.file, tc.path, tc.value))
			if l != nil || !errors.Is(err, tc.is) {
				t.Fatalf("%v, want %v", err, tc.is)
			}
			if at, ok := errors.AsType[*PathError](err); !ok || at.Path != tc.at {
				t.Errorf("%v, want it at %q", err, tc.at)
			}
		})
	}
}

func TestParseRefusesWhatIsNoLayout(t *testing.T) {
	t.Parallel()
	const empty = `{"format":"holdfast-layout/1","name":"Empty"}`
	for _, tc := range []struct {
		name, text string
		is         error
	}{
		{"nothing", "", ErrSyntax},
		{"half a file", string(read(t, "hall.json")[:500]), ErrSyntax},
		{"something after it", string(read(t, "hall.json")) + "{}", ErrSyntax},
		{"invalid UTF-8", strings.Replace(string(read(t, "hall.json")), "Stalls", "Stalls\xff", 1), ErrSyntax},
		{"NaN", strings.Replace(string(read(t, "hall.json")), `"x": 5.5`, `"x": NaN`, 1), ErrSyntax},
		{"a list", "[]", ErrFormat},
		{"a number", "1", ErrFormat},
		{"null", "null", ErrFormat},
		{"another object", "{}", ErrFormat},
		{"keys in another case", `{"Format":"holdfast-layout/1","Name":"x"}`, ErrFormat},
		{"both formats", `{"format":"holdfast-layout/1","zones":[]}`, ErrFormat},
		{"no seats", empty, ErrMissing},
		{"only decoration", strings.TrimSuffix(empty, "}") + `,"areas":[{"kind":"stage","circle":{"x":0,"y":0,"radius":1}}]}`, ErrMissing},
		{"key twice", strings.TrimSuffix(empty, "}") + `,"name":"Again"}`, ErrDuplicate},
		{"too large", `{"format":"` + strings.Repeat("x", MaxBytes) + `"}`, ErrLimit},
		{"deep", `{"zones":` + strings.Repeat("[", 20_000), ErrSyntax},
	} {
		if l, _, err := Parse([]byte(tc.text)); l != nil || !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.is)
		}
	}
}

func TestRowsAndSeatsAreLimitedOverTheWholeLayout(t *testing.T) {
	t.Parallel()
	row := func(i int) obj {
		return obj{"label": fmt.Sprint("R", i), "first": obj{"x": 0, "y": i}, "last": obj{"x": 9, "y": i}, "count": MaxRowSeats}
	}
	layout := func(rows int, edit func(obj)) []byte {
		sections := []any{}
		list := []any{}
		for i := range rows {
			r := row(i)
			edit(r)
			list = append(list, r)
			if len(list) == 10_000 || i == rows-1 {
				sections = append(sections, obj{"name": fmt.Sprint("S", len(sections)), "rows": list})
				list = []any{}
			}
		}
		b, err := json.Marshal(obj{"format": Format, "name": "Large", "sections": sections})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if l, _ := parse(t, layout(MaxSeats/MaxRowSeats, func(obj) {})); len(l.Seats) != MaxSeats {
		t.Errorf("%d seats", len(l.Seats))
	}
	if _, _, err := Parse(layout(MaxSeats/MaxRowSeats+1, func(obj) {})); !errors.Is(err, ErrLimit) {
		t.Errorf("too many seats: %v", err)
	}
	if _, _, err := Parse(layout(MaxRows+1, func(r obj) { r["count"] = 1; delete(r, "last") })); !errors.Is(err, ErrLimit) {
		t.Errorf("too many rows: %v", err)
	}
}

func TestAStandingAreaAloneIsALayout(t *testing.T) {
	t.Parallel()
	l, _ := parse(t, []byte(`{"format":"holdfast-layout/1","name":"Field","areas":[{"kind":"standing","name":"STANDING","circle":{"x":0,"y":0,"radius":50}}]}`))
	if len(l.Seats) != 0 || len(l.Areas) != 1 {
		t.Errorf("%+v", l)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(read(f, "hall.json"))
	f.Add(read(f, "pretix.json"))
	f.Add([]byte(`{"format":"holdfast-layout/1","name":"F","sections":[{"name":"C","cabin":{"to":3,"letters":"A B"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, warnings, err := Parse(data)
		if err != nil {
			if _, ok := errors.AsType[*PathError](err); !ok {
				t.Fatalf("%T without a path: %v", err, err)
			}
			return
		}
		if len(l.Seats) > MaxSeats || len(l.Rows) > MaxRows || len(l.Sections) > MaxSections || len(warnings) > MaxWarnings {
			t.Fatal("over a limit")
		}
		checkLayout(t, l)
		again, _, err := Parse(l.Canonical())
		if err != nil {
			t.Fatalf("the canonical form is refused: %v", err)
		}
		if diff := cmp.Diff(l, again, equalLayouts); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(l.Seats, expand(t, l.Wire())); diff != "" {
			t.Fatal(diff)
		}
	})
}

// checkLayout tests what every user of a layout relies on.
func checkLayout(t *testing.T, l *Layout) {
	t.Helper()
	next := int32(0)
	for i := range l.Rows {
		r := &l.Rows[i]
		at := r.First
		for _, b := range r.Blocks {
			if b.First != at || b.Count < 1 {
				t.Fatalf("row %d: blocks %v", i, r.Blocks)
			}
			at += b.Count
		}
		if r.First != next || r.Count < 1 || at != r.First+r.Count {
			t.Fatalf("row %d: %+v", i, r)
		}
		next = at
		for no := r.First; no < at; no++ {
			s := &l.Seats[no]
			if found, ok := l.SeatByCode(s.Code); !ok || found != no || s.No != no || l.RowOf[no] != int32(i) || s.Row != r.Label || s.Section != l.Sections[r.Section].Name {
				t.Fatalf("seat %d: %+v", no, s)
			}
		}
	}
	if int(next) != len(l.Seats) {
		t.Fatalf("rows have %d seats, the layout %d", next, len(l.Seats))
	}
}
