package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// runImport runs "import …" on the database in dir.
func runImport(t *testing.T, dir string, args ...string) (out, progress string, err error) {
	t.Helper()
	c := newImportCommand(openCatalog)
	c.SilenceUsage, c.SilenceErrors = true, true
	var o, p bytes.Buffer
	c.SetOut(&o)
	c.SetErr(&p)
	if len(args) > 0 {
		args = append(args, "--data", dir)
	}
	c.SetArgs(args)
	err = c.ExecuteContext(t.Context())
	return o.String(), p.String(), err
}

// catalogOf opens what an import left.
func catalogOf(t *testing.T, dir string) *catalog.Catalog {
	t.Helper()
	c, db, err := openCatalog(t.Context(), Config{Data: dir, Synchronous: "full"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantUsage checks that an error is the caller's and says all of this.
func wantUsage(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, errUsage) {
		t.Fatalf("%v, want a mistake of the caller", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q in it", err, text)
		}
	}
}

func TestImportLayoutReadsBothFormatsAndCountsVersions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	venues := filepath.Join("..", "..", "internal", "venue", "testdata")
	own, pretix := filepath.Join(venues, "hall.json"), filepath.Join(venues, "pretix.json")
	out, _, err := runImport(t, dir, "layout", own, pretix)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], own+": layout ") || !strings.HasPrefix(lines[1], pretix+": layout ") {
		t.Fatalf("printed %q", out)
	}
	again, _, err := runImport(t, dir, "layout", own, pretix)
	if err != nil || again != out {
		t.Errorf("the same files again printed %q, %v, want %q", again, err, out)
	}
	data, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	var layout map[string]any
	if err := json.Unmarshal(data, &layout); err != nil {
		t.Fatal(err)
	}
	layout["focus"] = map[string]any{"x": 1.5, "y": 0.25}
	changed, err := json.Marshal(layout)
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := runImport(t, dir, "layout", write(t, "hall.json", string(changed)))
	if err != nil || !strings.Contains(next, " version 2: ") {
		t.Errorf("another content printed %q, %v, want version 2", next, err)
	}
}

func TestImportLayoutNamesFileAndPlaceOfAMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := write(t, "bad.json", `{"format": "holdfast-layout/1", "name": "X", "sections": [{"name": "A", "rows": [{"label": "1"}]}]}`)
	_, _, err := runImport(t, dir, "layout", bad)
	wantUsage(t, err, bad, "sections[0].rows[0]")
	_, _, err = runImport(t, dir, "layout", filepath.Join(dir, "none.json"))
	wantUsage(t, err, "none.json")
}

const concertDraft = `{"kind": "concert", "slug": "%s", "title": "Night of the Bells", "venue": {"name": "Old Mill", "city": "Gent", "timeZone": "Europe/Brussels"},
  "startsAt": "2031-05-01T18:00:00Z", "currency": "EUR", "pools": [{"pool": "STANDING", "capacity": 300, "price": 2500}]}`

func concert(slug string) string { return fmt.Sprintf(concertDraft, slug) }

func TestImportEventsReadsListsAndLines(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"list":                   "\ufeff [" + concert("one") + ",\n" + concert("two") + "]\n",
		"one after the other":    concert("one") + "\n" + concert("two"),
		"lines with empty lines": "\n" + strings.ReplaceAll(concert("one"), "\n", " ") + "\n\n\r\n" + strings.ReplaceAll(concert("two"), "\n", " ") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := t.TempDir(), write(t, "events.json", text)
			out, _, err := runImport(t, dir, "events", path)
			if err != nil || out != path+": 2 events added\n" {
				t.Fatalf("printed %q, %v", out, err)
			}
			out, progress, err := runImport(t, dir, "events", path, write(t, "more.json", concert("three")))
			if err != nil || !strings.HasPrefix(out, path+": 0 events added, 2 there already\n") || !strings.Contains(out, "more.json: 1 events added\n") {
				t.Errorf("again printed %q, %v", out, err)
			}
			if !strings.Contains(progress, "one exists already") || !strings.Contains(progress, "two exists already") {
				t.Errorf("again told %q", progress)
			}
			events := catalogOf(t, dir)
			for _, slug := range []string{"one", "two", "three"} {
				e, err := events.Resolve(t.Context(), slug)
				if err != nil {
					t.Fatal(err)
				}
				if e.Title != "Night of the Bells" || e.Pools[0].Capacity != 300 || e.Policy.MaxPlacesPerHold != 4 || !e.StartsAt.Equal(time.Date(2031, 5, 1, 18, 0, 0, 0, time.UTC)) {
					t.Errorf("%s is %+v", slug, e)
				}
			}
		})
	}
}

func TestImportEventsNamesFileLineEventAndField(t *testing.T) {
	t.Parallel()
	line := func(change func(map[string]any)) string {
		var m map[string]any
		if err := json.Unmarshal([]byte(concert("bad")), &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	good := line(func(m map[string]any) { m["slug"] = "good" })
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"field that can't be", good + "\n\n" + line(func(m map[string]any) { m["currency"] = "EURO" }), []string{"events.json:3: event 2: /currency "}},
		{"field of a pool", good + "\n" + line(func(m map[string]any) { m["pools"].([]any)[0].(map[string]any)["capacity"] = -1 }), []string{"events.json:2: event 2: /pools/0/capacity "}},
		{"several at once", line(func(m map[string]any) { m["title"] = ""; m["kind"] = "opera" }) + "\n" + line(func(m map[string]any) { m["slug"] = "B" }), []string{":1: event 1: /title ", ":1: event 1: /kind ", ":2: event 2: /slug "}},
		{"unknown field", "[" + good + ",\n\n" + line(func(m map[string]any) { m["tilte"] = "x" }) + "]", []string{"events.json:3: event 2: /tilte: ", "unknown field"}},
		{"unknown field inside", line(func(m map[string]any) { m["venue"].(map[string]any)["town"] = "x" }), []string{"events.json:1: event 1: /venue: unknown field \"town\""}},
		{"wrong type", good + "\n" + line(func(m map[string]any) { m["venue"].(map[string]any)["name"] = 7 }), []string{"events.json:2: event 2: /venue/name: a JSON number does not fit here"}},
		{"time that is none", line(func(m map[string]any) { m["startsAt"] = "soon" }), []string{"events.json:1: event 1: /startsAt: ", "soon"}},
		{"same slug twice", good + "\n" + good, []string{"events.json:2: event 2: /slug "}},
		{"layout that is not there", line(func(m map[string]any) { m["layoutId"] = "none" }), []string{"event 1: /layoutId "}},
		{"broken UTF-8", line(func(m map[string]any) { m["title"] = "x\xff" }), []string{"event 1: /title "}},
		{"broken JSON", good + "\n\n{\"kind\": \"concert\",}", []string{"events.json:3: event 2: "}},
		{"broken list", "[" + good + "\n" + good + "]", []string{"events.json:2: event 2: "}},
		{"JSON that ends too early", good + "\n{\"kind\":", []string{"events.json:2: event 2: the file ends"}},
		{"list that ends too early", "[" + good + ",\n", []string{"events.json:2: event 2: "}},
		{"no object", good + "\n7", []string{"events.json:2: event 2: an event is a JSON object"}},
		{"list in a list", "[[" + good + "]]", []string{"events.json:1: event 1: an event is a JSON object"}},
		{"something after the list", "[" + good + "]\n" + good, []string{"events.json:2: something follows the list"}},
		{"nothing", " \n", []string{"events.json:1: has no events"}},
		{"empty list", "[]", []string{"events.json:1: has no events"}},
		{"too many", strings.Repeat("{}\n", catalog.MaxBatch+1), []string{"events.json:10001: has more than 10000 events"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, _, err := runImport(t, dir, "events", write(t, "events.json", test.text))
			wantUsage(t, err, test.want...)
			if _, err := catalogOf(t, dir).Resolve(t.Context(), "good"); !errors.Is(err, catalog.ErrNotFound) {
				t.Errorf("half of the file was added: %v", err)
			}
		})
	}
}

func TestImportEventsTellsTheFirstMistakesOfMany(t *testing.T) {
	t.Parallel()
	_, _, err := runImport(t, t.TempDir(), "events", write(t, "events.json", strings.Repeat("{}\n", 100)))
	wantUsage(t, err, "event 1: ", " more")
	if n := strings.Count(err.Error(), "\n"); n != maxNamedErrors {
		t.Errorf("%d lines", n)
	}
}

func TestImportFlightsAddsEachOnItsLocalDay(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), testFlightFiles()
	args := []string{"flights", f.Airports, f.Routes, f.Planes, "--date", "2030-12-24", "--count", "5", "--currency", "KWD"}
	out, progress, err := runImport(t, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"5 flights on 2030-12-24 added\n", "16 routes read: 7 ", "Open Database License", "invented"} {
		if !strings.Contains(out, text) {
			t.Errorf("printed %q, want %q in it", out, text)
		}
	}
	for _, text := range []string{"8 lines could not be read", "airports.dat:8: ", "flights: 5 of 5\n"} {
		if !strings.Contains(progress, text) {
			t.Errorf("told %q, want %q in it", progress, text)
		}
	}
	again, _, err := runImport(t, dir, args...)
	if err != nil || !strings.HasPrefix(again, "0 flights on 2030-12-24 added, 5 there already\n") {
		t.Errorf("again printed %q, %v", again, err)
	}
	args[len(args)-3] = "50"
	rest, _, err := runImport(t, dir, args...)
	if err != nil || !strings.HasPrefix(rest, "2 flights on 2030-12-24 added, 5 there already; these are all that the files have\n") {
		t.Errorf("more printed %q, %v", rest, err)
	}

	page, err := catalogOf(t, dir).Search(t.Context(), catalog.Query{Kind: catalog.Flight, Date: "2030-12-24"})
	if err != nil || len(page.Items) != 7 {
		t.Fatalf("found %d, %v", len(page.Items), err)
	}
	zones := map[string]string{}
	for _, i := range page.Items {
		zone, err := time.LoadLocation(i.Venue.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		local := i.StartsAt.In(zone)
		if want := strings.ToLower(fmt.Sprintf("%s-%s-%s", i.Origin, i.Destination, local.Format("20060102-1504"))); !strings.HasSuffix(i.Slug, want) || local.Format(time.DateOnly) != "2030-12-24" {
			t.Errorf("%s leaves at %v, want %q at its end", i.Slug, local, want)
		}
		if i.Currency != "KWD" || i.PriceFrom < 39_000 || i.PriceFrom > 438_000 {
			t.Errorf("%s costs %d %s", i.Slug, i.PriceFrom, i.Currency)
		}
		zones[i.Origin] = i.Venue.TimeZone
	}
	want := map[string]string{"LTX": "Asia/Ho_Chi_Minh", "CPX": "Africa/Johannesburg", "MRX": "Europe/London", "DLX": "Pacific/Apia", "HHX": "Asia/Kathmandu"}
	if diff := cmp.Diff(want, zones); diff != "" {
		t.Error(diff)
	}
}

func TestImportedFlightsHaveTheCabinOfTheirAircraft(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), testFlightFiles()
	if _, _, err := runImport(t, dir, "flights", f.Airports, f.Routes, f.Planes, "--date", "2030-12-24"); err != nil {
		t.Fatal(err)
	}
	events := catalogOf(t, dir)
	page, err := events.Search(t.Context(), catalog.Query{Date: "2030-12-24"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]int64{}
	for _, i := range page.Items {
		e, err := events.Event(t.Context(), i.ID)
		if err != nil {
			t.Fatal(err)
		}
		l, err := events.Layout(t.Context(), e.Layout)
		if err != nil {
			t.Fatal(err)
		}
		p := e.Pools[0]
		if p.Name != "ECONOMY" || int64(len(l.Seats)) != p.Capacity || p.Buckets != 1 || e.Policy.MaxPlacesPerHold != 9 {
			t.Errorf("%s: %d seats, pool %+v", e.Slug, len(l.Seats), p)
		}
		got[i.Title] = []int64{p.Capacity, p.Overbook}
	}
	want := map[string][]int64{
		"CPX–LTX XA100": {180, 3}, "LTX–CPX XA101": {340, 5}, "LTX–MRX XA102": {80, 1}, "MRX–LTX XA103": {180, 3}, "DLX–HHX XB100": {80, 1},
		"HHX–DLX XB101": {180, 3}, "LTX–CPX XB102": {30, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A day that is over can be imported too: its flights are closed.
func TestFlightsOfADayThatIsOverAreClosed(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), testFlightFiles()
	if out, _, err := runImport(t, dir, "flights", f.Airports, f.Routes, "--date", "2019-07-01", "--count", "3"); err != nil || !strings.HasPrefix(out, "3 flights") {
		t.Fatalf("printed %q, %v", out, err)
	}
	page, err := catalogOf(t, dir).Search(t.Context(), catalog.Query{Date: "2019-07-01"})
	if err != nil || len(page.Items) != 3 {
		t.Fatalf("found %d, %v", len(page.Items), err)
	}
	for _, i := range page.Items {
		if s := i.Status(i.StartsAt.Add(time.Minute)); s != catalog.Closed {
			t.Errorf("%s is %s", i.Slug, s)
		}
	}
}

func TestImportRefusesSettingsThatCantBe(t *testing.T) {
	t.Parallel()
	f := testFlightFiles()
	files := []string{"flights", f.Airports, f.Routes}
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "import what?"},
		{[]string{"flights"}, "airports.dat is missing"},
		{[]string{"flights", f.Airports}, "routes.dat is missing"},
		{files, "--date"},
		{append(files[:3:3], "--date", "24.12.2030"), "--date"},
		{append(files[:3:3], "--date", "2030-12-24", "--count", "0"), "--count"},
		{append(files[:3:3], "--date", "2030-12-24", "--count", "1000001"), "--count"},
		{append(files[:3:3], "--date", "2030-12-24", "--currency", "GOLD"), "--currency"},
		{append(files[:3:3], "--date", "2030-12-24", "--airports", f.Airports), "the same kind of file"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		_, _, err := runImport(t, dir, test.args...)
		wantUsage(t, err, test.want)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%q made a database", test.args)
		}
	}
}

func TestTheLicenceOfTheFlightsIsInTheHelp(t *testing.T) {
	t.Parallel()
	out, _, err := runImport(t, t.TempDir(), "flights", "--help")
	if err != nil || !strings.Contains(out, "Open Database License") || !strings.Contains(out, "invented") {
		t.Errorf("help is %q, %v", out, err)
	}
}

func TestTheExamplesOfTheDocumentCanBeImported(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "importing.md"))
	if err != nil {
		t.Fatal(err)
	}
	layouts, err := os.ReadFile(filepath.Join("..", "..", "docs", "layouts.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := func(text, fence string) string {
		_, rest, ok := strings.Cut(text, "\n```"+fence+"\n")
		body, _, closed := strings.Cut(rest, "\n```\n")
		if !ok || !closed {
			t.Fatalf("no block of %s", fence)
		}
		return body
	}
	dir := t.TempDir()
	out, _, err := runImport(t, dir, "layout", write(t, "hall.json", block(string(layouts), "json")))
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(out, ": layout ")
	id, _, _ = strings.Cut(id, " ")
	lines := strings.ReplaceAll(block(string(document), "jsonl"), "LAYOUT", id)
	out, _, err = runImport(t, dir, "events", write(t, "a.json", block(string(document), "json")), write(t, "b.jsonl", lines))
	if err != nil || !strings.Contains(out, "a.json: 1 events added") || !strings.Contains(out, "b.jsonl: 2 events added") {
		t.Errorf("printed %q, %v", out, err)
	}
}
