package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testFlightFiles() flightFiles {
	dir := filepath.Join("testdata", "openflights")
	return flightFiles{Airports: filepath.Join(dir, "airports.dat"), Routes: filepath.Join(dir, "routes.dat"), Planes: filepath.Join(dir, "planes.dat")}
}

func readTestNetwork(t *testing.T, f flightFiles) *network {
	t.Helper()
	n, err := readNetwork(f)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func legNames(n *network) []string {
	var names []string
	for i := range n.Legs {
		l := &n.Legs[i]
		names = append(names, fmt.Sprintf("%s %s", l.title(), cabinShapes[l.Cabin].Letters))
	}
	return names
}

func TestOnlyNonStopRoutesBetweenKnownAirportsAreFlown(t *testing.T) {
	t.Parallel()
	n := readTestNetwork(t, testFlightFiles())
	got := legNames(n)
	slices.Sort(got)
	want := []string{
		"CPX–LTX XA100 ABC DEF", "DLX–HHX XB100 AC DF", "HHX–DLX XB101 ABC DEF", "LTX–CPX XA101 ABC DEFG HJK", "LTX–CPX XB102 A BC",
		"LTX–MRX XA102 AC DF", "MRX–LTX XA103 ABC DEF",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	counts := []int{n.Routes, n.Codeshares, n.Stops, n.Unknown, n.Repeated}
	if diff := cmp.Diff([]int{16, 2, 1, 3, 1}, counts); diff != "" {
		t.Errorf("routes, codeshares, with stops, of unknown airports, repeated: %s", diff)
	}
}

func TestBadLinesAreCountedAndNamedAndSpoilNothingElse(t *testing.T) {
	t.Parallel()
	n := readTestNetwork(t, testFlightFiles())
	if n.Bad.Count != 8 {
		t.Errorf("%d bad lines, want 8: %q", n.Bad.Count, n.Bad.Named)
	}
	for i, want := range []string{
		"airports.dat:8: the time zone", "airports.dat:9: a second airport LTX", "airports.dat:10: ", "airports.dat:11: has too few columns: 2, not 12",
		`airports.dat:12: the IATA code "abc"`, `routes.dat:15: the airline "x-"`, "routes.dat:16: has too few columns", `routes.dat:17: codeshare is "?"`,
	} {
		if i >= len(n.Bad.Named) || !strings.Contains(n.Bad.Named[i], want) {
			t.Errorf("bad line %d: %q, want %q in it", i, n.Bad.Named, want)
		}
	}
}

func TestOnlyTheFirstBadLinesAreNamed(t *testing.T) {
	t.Parallel()
	f := testFlightFiles()
	good, err := os.ReadFile(f.Routes)
	if err != nil {
		t.Fatal(err)
	}
	f.Routes = filepath.Join(t.TempDir(), "routes.dat")
	if err := os.WriteFile(f.Routes, append([]byte("\xef\xbb\xbf"+strings.Repeat("no route\r\n", 1000)+"\xff\xfe,,,,,,,0,\r\n"), good...), 0o600); err != nil {
		t.Fatal(err)
	}
	n := readTestNetwork(t, f)
	if n.Bad.Count != 1009 || len(n.Bad.Named) != namedBadLines || len(n.Legs) != 7 {
		t.Errorf("%d bad lines, %d named, %d legs; want 1009, %d, 7", n.Bad.Count, len(n.Bad.Named), len(n.Legs), namedBadLines)
	}
}

func TestAFileOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	f := testFlightFiles()
	f.Airports, f.Routes = f.Routes, f.Airports
	if _, err := readNetwork(f); err == nil || !strings.Contains(err.Error(), "no line of it is as OpenFlights writes them") {
		t.Errorf("exchanged files: %v", err)
	}
	f = testFlightFiles()
	f.Routes = filepath.Join(t.TempDir(), "none")
	if _, err := readNetwork(f); err == nil || !strings.Contains(err.Error(), f.Routes) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestFilesAreRecognisedByName(t *testing.T) {
	t.Parallel()
	var f flightFiles
	if err := f.recognise([]string{"x/Routes-2014.dat", "airports.dat", "/y/planes.csv"}); err != nil {
		t.Fatal(err)
	}
	if want := (flightFiles{"airports.dat", "x/Routes-2014.dat", "/y/planes.csv"}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	f = flightFiles{Airports: "first"}
	if err := f.recognise([]string{"other.dat"}); err == nil {
		t.Error("other.dat was taken for something")
	}
	if err := f.recognise([]string{"airports.dat"}); err == nil {
		t.Error("two files of airports were taken")
	}
	if err := f.recognise(nil); err == nil {
		t.Error("routes were not missed")
	}
}

// The choice is a promise: whoever imports the same files gets the same flights, and more flights only add to fewer.
func TestTheChoiceIsFixed(t *testing.T) {
	t.Parallel()
	want := []string{
		"MRX–LTX XA103 ABC DEF", "DLX–HHX XB100 AC DF", "LTX–CPX XB102 A BC", "HHX–DLX XB101 ABC DEF", "LTX–MRX XA102 AC DF", "LTX–CPX XA101 ABC DEFG HJK",
		"CPX–LTX XA100 ABC DEF",
	}
	f := testFlightFiles()
	first := legNames(readTestNetwork(t, f))
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	lines, err := os.ReadFile(f.Routes)
	if err != nil {
		t.Fatal(err)
	}
	turned := strings.Split(strings.TrimSpace(string(lines)), "\n")
	slices.Reverse(turned[:7])
	f.Routes = filepath.Join(t.TempDir(), "routes.dat")
	if err := os.WriteFile(f.Routes, []byte(strings.Join(turned, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, legNames(readTestNetwork(t, f))); diff != "" {
		t.Errorf("the order of lines changes the choice: %s", diff)
	}
}

func TestFlightsLeaveOnTheirDayInTheirOwnZone(t *testing.T) {
	t.Parallel()
	n := readTestNetwork(t, testFlightFiles())
	for _, date := range []string{"2026-12-24", "2026-03-29", "2026-10-25"} { // the last two: clocks change in London
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n.Legs {
			l := &n.Legs[i]
			at, ok := l.departure(day)
			if !ok {
				t.Errorf("%s does not leave on %s", l.title(), date)
			}
			if at.Format(time.DateOnly) != date || at.Location().String() != l.From.Zone || at.Hour() < 5 || at.Hour() > 22 || at.Minute()%5 != 0 {
				t.Errorf("%s leaves at %v", l.title(), at)
			}
			if want := strings.ToLower(l.Airline + "-" + l.From.Code + "-" + l.To.Code + "-" + at.Format("20060102-1504")); l.slug(at) != want {
				t.Errorf("slug %q, want %q", l.slug(at), want)
			}
		}
	}
}

// Samoa moved over the date line and had no 30 December 2011.
func TestNoFlightLeavesOnADayThatAPlaceSkipped(t *testing.T) {
	t.Parallel()
	n := readTestNetwork(t, testFlightFiles())
	for i := range n.Legs {
		l := &n.Legs[i]
		_, ok := l.departure(time.Date(2011, 12, 30, 0, 0, 0, 0, time.UTC))
		if want := l.From.Code != "DLX"; ok != want {
			t.Errorf("%s leaves: %v, want %v", l.title(), ok, want)
		}
	}
}

func TestFaresAreWholeUnitsOfAnyCurrency(t *testing.T) {
	t.Parallel()
	n := readTestNetwork(t, testFlightFiles())
	for i := range n.Legs {
		l := &n.Legs[i]
		none, two := l.fare(0), l.fare(2)
		if none < 39 || none > 438 || two != none*100 {
			t.Errorf("%s costs %d without decimals and %d with two", l.title(), none, two)
		}
	}
}

// HOLDFAST_TEST_DATA names a folder with the real files.
func TestTheRealFilesGiveADayOfFlights(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("HOLDFAST_TEST_DATA")
	if dir == "" {
		t.Skip("HOLDFAST_TEST_DATA does not name a folder with openflights/airports.dat, routes.dat and planes.dat")
	}
	n := readTestNetwork(t, flightFiles{
		Airports: filepath.Join(dir, "openflights", "airports.dat"), Routes: filepath.Join(dir, "openflights", "routes.dat"),
		Planes: filepath.Join(dir, "openflights", "planes.dat"),
	})
	if len(n.Legs) < 5_000 {
		t.Fatalf("%d flights", len(n.Legs))
	}
	cabins := map[cabinKind]int{}
	slugs := map[string]bool{}
	for i := range n.Legs {
		l := &n.Legs[i]
		cabins[l.Cabin]++
		at, ok := l.departure(time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC))
		if !ok || slugs[l.slug(at)] {
			t.Errorf("%s does not leave, or has the slug of another: %s", l.title(), l.slug(at))
		}
		slugs[l.slug(at)] = true
	}
	t.Logf("%d flights, by cabin %v, %d bad lines: %q", len(n.Legs), cabins, n.Bad.Count, n.Bad.Named)
	for kind := range cabinShapes {
		if cabins[cabinKind(kind)] == 0 {
			t.Errorf("no flight has the cabin %v", cabinShapes[kind])
		}
	}
}
