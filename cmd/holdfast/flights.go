package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// openFlightsNotice has to be where the data is used: its licence asks for it.
const openFlightsNotice = `Airports, routes and aircraft: OpenFlights (https://openflights.org/data), Open Database License (https://opendatacommons.org/licenses/odbl/1-0/).
Flight numbers, departure times, fares and cabins are invented.`

// Limits of an OpenFlights file.
const (
	maxFlightLines = 2_000_000
	maxFlightLine  = 64 << 10 // bytes
	namedBadLines  = 10
)

// flightFiles are the paths of the three files. Planes may be missing: then every aircraft is taken for the most common kind.
type flightFiles struct{ Airports, Routes, Planes string }

// recognise fills in the files that have no path yet by the names of paths.
func (f *flightFiles) recognise(paths []string) error {
	for _, p := range paths {
		base := strings.ToLower(filepath.Base(p))
		var to *string
		switch {
		case strings.HasPrefix(base, "airports"):
			to = &f.Airports
		case strings.HasPrefix(base, "routes"):
			to = &f.Routes
		case strings.HasPrefix(base, "planes"):
			to = &f.Planes
		default:
			return fmt.Errorf("%w: %s: its name does not begin with airports, routes or planes; use --airports, --routes or --planes", errUsage, p)
		}
		if *to != "" {
			return fmt.Errorf("%w: %s: %s is the same kind of file; give one", errUsage, p, *to)
		}
		*to = p
	}
	switch {
	case f.Airports == "":
		return fmt.Errorf("%w: airports.dat is missing", errUsage)
	case f.Routes == "":
		return fmt.Errorf("%w: routes.dat is missing", errUsage)
	}
	return nil
}

// airport is one from which flights can leave: it has an IATA code, and a time zone that this program knows.
type airport struct {
	Code, Name, City, Country, Zone string

	zone *time.Location
}

// leg is an airline that flies non-stop from one airport to another.
type leg struct {
	Airline  string
	From, To *airport
	Cabin    cabinKind
	Number   int // of the flight, invented

	order uint64
}

// network is what an import knows after reading.
type network struct {
	Legs []leg // in the order in which they are chosen
	Bad  badLines

	Routes, Codeshares, Stops, Unknown, Repeated int // routes read, and those left out by reason
}

// badLines counts lines that could not be read and names the first.
type badLines struct {
	Count int
	Named []string
}

func (b *badLines) add(path string, line int, err error) {
	if b.Count++; len(b.Named) < namedBadLines {
		b.Named = append(b.Named, fmt.Sprintf("%s:%d: %v", path, line, err))
	}
}

// Errors of one line.
var (
	errColumns = errors.New("has too few columns")
	errCode    = errors.New("is not a code")
)

// readNetwork reads the three files and puts the routes into their order.
func readNetwork(f flightFiles) (*network, error) {
	n := &network{}
	airports := map[string]*airport{}
	zones := map[string]*time.Location{} // nil: not known
	err := n.read(f.Airports, 12, func(field []string) error {
		a := &airport{Name: shown(field[1]), City: shown(field[2]), Country: shown(field[3]), Code: field[4], Zone: field[11]}
		if orNone(a.Code) == "" || orNone(a.Zone) == "" {
			return nil // a place without a code or a zone is no mistake, only no use
		}
		for _, text := range []string{a.Name, a.City, a.Country} {
			if utf8.RuneCountInString(text) > catalog.MaxVenueRunes || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				return fmt.Errorf("%q is too long or can't be shown", text)
			}
		}
		if a.Name == "" {
			a.Name = a.Code
		}
		if !airportCode.MatchString(a.Code) {
			return fmt.Errorf("the IATA code %q %w", a.Code, errCode)
		}
		zone, known := zones[a.Zone]
		if !known {
			zone, _ = time.LoadLocation(a.Zone) // nil on an error
			zones[a.Zone] = zone
		}
		if zone == nil {
			return fmt.Errorf("the time zone %q is not known", a.Zone)
		}
		if airports[a.Code] != nil {
			return fmt.Errorf("a second airport %s", a.Code)
		}
		a.zone = zone
		airports[a.Code] = a
		return nil
	})
	if err != nil {
		return nil, err
	}
	cabins := map[string]cabinKind{}
	if f.Planes != "" {
		err := n.read(f.Planes, 3, func(field []string) error {
			if code := orNone(field[1]); code != "" {
				cabins[code] = cabinOf(field[0])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	seen := map[[3]string]bool{}
	err = n.read(f.Routes, 9, func(field []string) error {
		n.Routes++
		airline, from, to := field[0], airports[field[2]], airports[field[4]]
		switch {
		case field[6] != "" && field[6] != "Y":
			return fmt.Errorf("codeshare is %q, not Y or nothing", field[6])
		case field[6] == "Y":
			n.Codeshares++ // the same aircraft under another airline's number
			return nil
		case field[7] != "0":
			n.Stops++
			return nil
		case !airlineCode.MatchString(airline):
			return fmt.Errorf("the airline %q %w", airline, errCode)
		case from == nil || to == nil || from == to:
			n.Unknown++
			return nil
		}
		key := [3]string{airline, from.Code, to.Code}
		if seen[key] {
			n.Repeated++
			return nil
		}
		seen[key] = true
		n.Legs = append(n.Legs, leg{Airline: airline, From: from, To: to, Cabin: firstCabin(cabins, field[8]), order: pick("route", airline, from.Code, to.Code)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.arrange()
	return n, nil
}

var (
	airportCode = regexp.MustCompile(`^[A-Z]{3}$`)
	airlineCode = regexp.MustCompile(`^[A-Z0-9]{2,3}$`)
)

// arrange numbers the flights of each airline in the order of their airports, then puts all into the order of a hash of airline and airports. So the
// first n are a fair sample of the world, always the same, and more of them only add to it.
func (n *network) arrange() {
	slices.SortFunc(n.Legs, func(a, b leg) int {
		return strings.Compare(a.Airline+" "+a.From.Code+a.To.Code, b.Airline+" "+b.From.Code+b.To.Code)
	})
	const firstNumber = 100
	for i := range n.Legs {
		l := &n.Legs[i]
		if l.Number = firstNumber; i > 0 && n.Legs[i-1].Airline == l.Airline {
			l.Number = n.Legs[i-1].Number + 1
		}
	}
	slices.SortStableFunc(n.Legs, func(a, b leg) int {
		switch {
		case a.order < b.order:
			return -1
		case a.order > b.order:
			return 1
		}
		return 0
	})
}

// pick is the same number for the same words on every machine, spread evenly: 64 bits of their SHA-256.
func pick(words ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

// departure is the invented time at which a leg leaves on a day: between 05:00 and 22:55 local time. ok is false where that day has no such time, as when
// clocks are set forward over it or a country skips a day.
func (l *leg) departure(day time.Time) (at time.Time, ok bool) {
	const (
		first = 5 * 60
		step  = 5
		steps = 18 * 60 / step
	)
	minute := first + step*int(pick("time", l.Airline, l.From.Code, l.To.Code)%steps)
	at = time.Date(day.Year(), day.Month(), day.Day(), minute/60, minute%60, 0, 0, l.From.zone)
	return at, at.Day() == day.Day() && at.Hour() == minute/60 && at.Minute() == minute%60
}

// fare is invented: 39 to 438 whole units of a currency that has so many decimals.
func (l *leg) fare(digits int) int64 {
	fare := int64(39 + pick("fare", l.Airline, l.From.Code, l.To.Code)%400)
	for range digits {
		fare *= 10
	}
	return fare
}

// slug names the flight of a leg at a local time.
func (l *leg) slug(at time.Time) string {
	return strings.ToLower(fmt.Sprintf("%s-%s-%s-%s", l.Airline, l.From.Code, l.To.Code, at.Format("20060102-1504")))
}

func (l *leg) title() string {
	return fmt.Sprintf("%s–%s %s%d", l.From.Code, l.To.Code, l.Airline, l.Number)
}

// cabinKind is one of the few cabins that all flights share.
type cabinKind int

const (
	narrowBody cabinKind = iota // also where the aircraft is not known: most flights are by one
	wideBody
	regional
	commuter
)

// cabinShape is a cabin as venue.Cabin makes it.
type cabinShape struct {
	Rows    int
	Letters string
}

var cabinShapes = [...]cabinShape{
	narrowBody: {30, "ABC DEF"}, wideBody: {34, "ABC DEFG HJK"}, regional: {20, "AC DF"}, commuter: {10, "A BC"},
}

// cabinOf tells the kind of an aircraft by its name in planes.dat.
func cabinOf(aircraft string) cabinKind {
	switch {
	case wideNames.MatchString(aircraft):
		return wideBody
	case narrowNames.MatchString(aircraft):
		return narrowBody
	case commuterNames.MatchString(aircraft):
		return commuter
	default:
		return regional // regional jets and turboprops are most of the other names
	}
}

var (
	wideNames   = regexp.MustCompile(`^(Airbus A3([03458]0|10)|Boeing 7([47]7|67|87)|Lockheed L-1011|McDonnell Douglas MD-11|Douglas DC-10|Ilyushin IL(86|96))`)
	narrowNames = regexp.MustCompile(`^(Airbus A3|Boeing 7|McDonnell Douglas MD-[89]|Douglas DC-[89]|Tupolev|COMAC C|Bombardier CS|Yakovlev Yak-42|Ilyushin IL62|British Aerospace \(BAC\))`)
	// Fewer than about fifty seats.
	commuterNames = regexp.MustCompile(`^(Beech|Cessna|Piper|Pilatus|Partenavia|De Havilland Canada DHC-[236] |De Havilland DH|British Aerospace Jetstream|Embraer EMB|Saab SF|` +
		`Fairchild|Shorts|Harbin|Antonov AN-28|Learjet|Dassault|Gulfstream|Bell|Sikorsky|Embraer (Legacy|Phenom)|Canadair (Challenger)|De Havilland Canada DHC-8-[12])`)
)

// firstCabin is that of the first aircraft of a route whose code is known.
func firstCabin(cabins map[string]cabinKind, equipment string) cabinKind {
	for code := range strings.FieldsSeq(equipment) {
		if c, ok := cabins[code]; ok {
			return c
		}
	}
	return narrowBody
}

// shown is a name for people: without a space too many, of any kind.
func shown(s string) string { return strings.Join(strings.Fields(orNone(s)), " ") }

// orNone reads \N, the files' null.
func orNone(s string) string {
	if s == `\N` {
		return ""
	}
	return s
}

// read goes through the lines of a file. Lines that are wrong are counted and passed over; a file of which nothing can be read is another kind of file.
func (n *network) read(path string, columns int, each func([]string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	defer f.Close() // only read
	bad, named, line, used := n.Bad.Count, len(n.Bad.Named), 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, maxFlightLine), maxFlightLine)
	for lines.Scan() {
		if line++; line > maxFlightLines {
			return fmt.Errorf("%w: %s: more than %d lines; split the file", errUsage, path, maxFlightLines)
		}
		text := lines.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		used++
		fields, err := splitLine(text)
		if err == nil && len(fields) < columns {
			err = fmt.Errorf("%w: %d, not %d", errColumns, len(fields), columns)
		}
		if err == nil {
			err = each(fields)
		}
		if err != nil {
			n.Bad.add(path, line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %s: line %d: %w", errUsage, path, line+1, err)
	}
	if used == n.Bad.Count-bad {
		return fmt.Errorf("%w: %s: no line of it is as OpenFlights writes them%s", errUsage, path, firstOf(n.Bad.Named[named:]))
	}
	return nil
}

func firstOf(named []string) string {
	if len(named) == 0 {
		return ""
	}
	return "; " + named[0]
}

// splitLine reads one line of CSV. Lines are read one by one, so that an open quote spoils its own line and not the rest of the file.
func splitLine(line []byte) ([]string, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("is not UTF-8")
	}
	if bytes.IndexByte(line, '"') < 0 {
		return strings.Split(strings.TrimSuffix(string(line), "\r"), ","), nil
	}
	r := csv.NewReader(bytes.NewReader(line))
	r.FieldsPerRecord = -1
	fields, err := r.Read()
	if err, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, err.Err // the line's number is the file's, not this reader's
	}
	if errors.Is(err, io.EOF) {
		return nil, errColumns
	}
	return fields, err
}
