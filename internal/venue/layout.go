// Package venue knows the fixed part of what is sold: halls, stadiums and cabins, their rows, seats and geometry. It parses
// and validates layouts and writes them for storage and for clients. It does no I/O.
package venue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Limits of a layout. They keep a hostile or mistaken file from costing more than a large stadium does.
const (
	MaxBytes        = 32 << 20 // of a file
	MaxSeats        = 200_000
	MaxSections     = 2_000
	MaxRows         = 20_000 // over all sections
	MaxRowSeats     = 1_000  // in one row
	MaxRowSlots     = 2_000  // seats and the gaps between them, in one row
	MaxAreas        = 1_000
	MaxPolygon      = 500     // points of an area
	MaxAreaCapacity = 1 << 24 // units of a standing area
	MaxSeatNumber   = 100_000 // that a numbering rule may start at or step by
	MaxNameBytes    = 80      // names of layouts, sections, bands, pools and areas
	MaxLabelBytes   = 40      // row labels and seat numbers
	MaxExtentUnits  = 100_000 // positions lie within ± this many units
	MaxWarnings     = 100
)

const (
	coordsPerUnit = 100
	circleCorners = 32 // a round area is kept as a polygon of so many
)

// Errors of parsing. Each comes inside a *PathError that names the place.
var (
	ErrSyntax    = errors.New("not well-formed JSON in UTF-8")
	ErrFormat    = errors.New("neither a Holdfast layout nor a pretix seating plan")
	ErrLimit     = errors.New("over a limit")
	ErrUnknown   = errors.New("not known here")
	ErrMissing   = errors.New("missing")
	ErrDuplicate = errors.New("given twice")
	ErrValue     = errors.New("not allowed")
)

// PathError says where in the file (a JSON path such as zones[0].rows[3].seats[7]) and what is wrong.
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string {
	if e.Path == "" {
		return "layout: " + e.Err.Error()
	}
	return "layout: " + e.Path + ": " + e.Err.Error()
}

func (e *PathError) Unwrap() error { return e.Err }

// Warning is something in a file that was left out or changed, which its owner may want to know.
type Warning struct {
	Path string
	Text string
}

func (w Warning) String() string { return w.Path + ": " + w.Text }

// Coord is a position on one axis, in hundredths of a layout unit (a metre, a seat's width, a pixel: the layout's choice; only
// ratios matter). Integers, so that server and browser derive the same place from the same rule.
type Coord int32

// MarshalJSON writes layout units with at most two decimals.
func (c Coord) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(c)/coordsPerUnit, 'f', -1, 64), nil
}

// Point is a position; x grows to the right and y away from the screen or stage.
type Point struct {
	X Coord `json:"x"`
	Y Coord `json:"y"`
}

// Kind of a seat.
type Kind uint8

// The kinds. Wheelchair and Companion places are only given to people who ask for them.
const (
	Standard Kind = iota
	Wheelchair
	Companion
)

func (k Kind) String() string {
	switch k {
	case Standard:
		return "standard"
	case Wheelchair:
		return "wheelchair"
	case Companion:
		return "companion"
	default:
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
}

// Seat is one numbered place of a layout.
type Seat struct {
	No      int32  // index in layout order
	Code    string // what people use; unique in the layout, compared exactly
	Section string
	Row     string
	Number  string
	Band    string // price band
	Pool    string // counted stock that the seat belongs to, "" for none
	Kind    Kind
	X, Y    Coord
}

// Section is a part of a layout that people know by name.
type Section struct {
	Name           string
	Code           string // prefix of the codes of its seats, "" for none
	Pool           string // pool of its seats, "" for none
	Cabin          bool   // drawn as a cabin: a narrow strip with letters across
	FirstRow, Rows int32
}

// Block is a run of seats with no aisle between them: the seats First to First+Count-1.
type Block struct {
	First, Count int32
}

// Row is a row of seats. Its seats follow each other in layout order, in the order in which they stand.
type Row struct {
	Section      int32 // index into Layout.Sections
	Label        string
	First, Count int32
	Blocks       []Block // in order, together the whole row
	Exit         bool    // an exit row of a cabin
}

// AreaKind says what an area is.
type AreaKind string

// The kinds of area. People stand in a Standing area, which belongs to the pool of its name; the others are decoration.
const (
	Standing   AreaKind = "standing"
	Stage      AreaKind = "stage"
	Screen     AreaKind = "screen"
	Decoration AreaKind = "decoration"
)

// Area is a part of the plan without seats.
type Area struct {
	Kind     AreaKind `json:"kind"`
	Name     string   `json:"name,omitempty"`     // of a standing area: its pool
	Capacity int      `json:"capacity,omitempty"` // units of a standing area; 0 when the plan does not say
	Polygon  []Point  `json:"polygon"`
}

// Layout is the fixed seat map of a venue or aircraft. It is not changed after it was made, so any number of goroutines may read it.
type Layout struct {
	Name     string
	Sections []Section
	Rows     []Row
	Seats    []Seat  // in layout order
	RowOf    []int32 // row index of each seat
	Bands    []string
	Areas    []Area
	Focus    Point // the front middle: where the best seats look at

	doc    *document
	byCode map[string]int32
}

// SeatByCode finds a seat by its code, which must match exactly: case counts, and nothing is trimmed.
func (l *Layout) SeatByCode(code string) (no int32, ok bool) {
	no, ok = l.byCode[code]
	return no, ok
}

// Canonical is the layout in the own format for storage: parsing it gives an equal layout, whose Canonical is the same bytes.
func (l *Layout) Canonical() []byte {
	b, err := json.Marshal(l.doc)
	if err != nil {
		panic(err) // strings, numbers and slices only: cannot fail
	}
	return b
}

// seatCode joins section prefix, row label and number. Without a prefix the dash is left out where a digit meets something else
// (F5, 12A) and kept where the border would be lost (1-5, A-B).
func seatCode(prefix, row, number string) string {
	switch {
	case prefix == "" && row == "":
		return number
	case prefix == "" && isDigit(row[len(row)-1]) != isDigit(number[0]):
		return row + number
	case prefix == "":
		return row + "-" + number
	case row == "":
		return prefix + "-" + number
	default:
		return prefix + "-" + row + "-" + number
	}
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// checkText refuses what cannot be told apart by eye or shown safely: surrounding spaces, control and direction characters,
// and the sign of a broken encoding.
func checkText(s string, maxBytes int) error {
	if len(s) > maxBytes {
		return fmt.Errorf("%w: text of %d bytes, at most %d", ErrLimit, len(s), maxBytes)
	}
	if s == "" {
		return nil
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return fmt.Errorf("%w: %q begins or ends with a space", ErrValue, s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return fmt.Errorf("%w: %q has the character %U", ErrValue, s, r)
		}
	}
	return nil
}

func checkName(s string) error {
	if s == "" {
		return fmt.Errorf("name is %w", ErrMissing)
	}
	return checkText(s, MaxNameBytes)
}
