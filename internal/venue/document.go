package venue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Format is the value of "format" in the own layout files.
const Format = "holdfast-layout/1"

// document is the own format, docs/layouts.md; files of other formats become one first. It is kept with the layout, for Canonical and Wire.
type document struct {
	Format   string    `json:"format"`
	Name     string    `json:"name"`
	Focus    *Point    `json:"focus,omitempty"`
	Sections []section `json:"sections,omitempty"`
	Areas    []Area    `json:"areas,omitempty"`

	pretix bool // how the places of a row are called in errors
}

type section struct {
	Name string  `json:"name"`
	Kind string  `json:"kind,omitempty"`
	Code *string `json:"code,omitempty"` // nil: the usual rule
	Band string  `json:"band,omitempty"` // "": the section's name
	Pool string  `json:"pool,omitempty"`
	Rows []row   `json:"rows"`

	path string
}

const cabinKind = "cabin"

// row describes its seats by a line or by explicit points. Places count from 1, from the first point to the last.
type row struct {
	Label      string      `json:"label"`
	First      *Point      `json:"first,omitempty"`
	Last       *Point      `json:"last,omitempty"`
	Count      int         `json:"count,omitempty"`
	Curve      Coord       `json:"curve,omitempty"`
	Points     []Point     `json:"points,omitempty"`
	Gaps       []gap       `json:"gaps,omitempty"`
	Numbers    *numbers    `json:"numbers,omitempty"` // nil: 1, 2, 3, …
	Band       string      `json:"band,omitempty"`
	Bands      []bandRange `json:"bands,omitempty"`
	Wheelchair []int       `json:"wheelchair,omitempty"`
	Companion  []int       `json:"companion,omitempty"`
	Exit       bool        `json:"exit,omitempty"`

	path string
}

// gap is an aisle after a place, as wide as so many seats.
type gap struct {
	After int `json:"after"`
	Width int `json:"width"`
}

const unsaidWidth = -1

// numbers is a rule for the numbers of a row's seats: by counting, by letters, or one by one.
type numbers struct {
	Start    *int     `json:"start,omitempty"` // nil: 1
	Step     int      `json:"step,omitempty"`
	Skip     []int    `json:"skip,omitempty"`
	Letters  string   `json:"letters,omitempty"`
	List     []string `json:"list,omitempty"`
	Reversed bool     `json:"reversed,omitempty"`
}

type bandRange struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Band string `json:"band"`
}

// labels gives the numbers of n seats.
func (nu *numbers) labels(n int) ([]string, error) {
	if nu == nil {
		nu = &numbers{Step: 1}
	}
	out := make([]string, 0, n)
	switch {
	case len(nu.List) > 0:
		out = append(out, nu.List...)
	case nu.Letters != "":
		for _, r := range nu.Letters {
			out = append(out, string(r))
		}
	default:
		skip := make(map[int]bool, len(nu.Skip))
		for _, s := range nu.Skip {
			skip[s] = true
		}
		for v := nu.start(); len(out) < n; v += nu.Step {
			if !skip[v] {
				out = append(out, strconv.Itoa(v))
			}
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("%w: %d numbers for %d seats", ErrValue, len(out), n)
	}
	if nu.Reversed {
		slices.Reverse(out)
	}
	for _, s := range out {
		if s == "" {
			return nil, fmt.Errorf("seat number is %w", ErrMissing)
		}
		if err := checkText(s, MaxLabelBytes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (nu *numbers) start() int {
	if nu.Start == nil {
		return 1
	}
	return *nu.Start
}

func (nu *numbers) check() error {
	switch {
	case nu == nil:
		return nil
	case len(nu.List) > 0 && nu.Letters != "", (len(nu.List) > 0 || nu.Letters != "") && (nu.Start != nil || nu.Step != 0 || len(nu.Skip) > 0):
		return fmt.Errorf("%w: start with step, letters and list exclude each other", ErrValue)
	case len(nu.List) > 0 || nu.Letters != "":
		return nil
	case nu.start() < 0 || nu.start() > MaxSeatNumber || nu.Step < 1 || nu.Step > MaxSeatNumber:
		return fmt.Errorf("%w: start from 0 and step from 1, both at most %d", ErrValue, MaxSeatNumber)
	}
	return nil
}

// bow is the vector from the chord's middle to the row's middle: curve to the right-hand side of the walk from first to last in
// a plan whose y points down, so that a positive curve brings the ends of a left-to-right row nearer to the screen.
func (r *row) bow() Point {
	if r.Curve == 0 || r.First == nil || r.Last == nil {
		return Point{}
	}
	dx, dy := int64(r.Last.X-r.First.X), int64(r.Last.Y-r.First.Y)
	length := math.Sqrt(float64(dx*dx + dy*dy)) // the sum is an exact integer below 2^53: the same on every machine
	return Point{
		X: Coord(math.Round(float64(r.Curve) * float64(-dy) / length)),
		Y: Coord(math.Round(float64(r.Curve) * float64(dx) / length)),
	}
}

// at is the position of slot s of a row with slots 0 to last: along the line, pushed sideways by the parabola 4·t·(1-t).
// A parabola needs no sine, so integer arithmetic gives every client the same answer; all products stay below 2^53.
func at(first, end, bow Point, s, last int64) Point {
	if last == 0 {
		return first
	}
	axis := func(a, b, c Coord) Coord {
		return a + Coord(divRound((int64(b)-int64(a))*s, last)+divRound(4*int64(c)*s*(last-s), last*last))
	}
	return Point{X: axis(first.X, end.X, bow.X), Y: axis(first.Y, end.Y, bow.Y)}
}

// divRound is a/b to the nearest integer, halves up: Math.floor((2*a+b)/(2*b)) in a browser. b > 0.
func divRound(a, b int64) int64 {
	a, b = 2*a+b, 2*b
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// slots gives the slot of each of n places and the last slot: gaps take room too.
func slots(n int, gaps []gap) (slot []int64, last int64) {
	slot = make([]int64, n)
	next := 0
	for i := range slot {
		slot[i] = last
		if i == n-1 {
			break
		}
		last++
		if next < len(gaps) && gaps[next].After == i+1 {
			last += int64(gaps[next].Width)
			next++
		}
	}
	return slot, last
}

// positions gives the places of a checked row.
func (r *row) positions() []Point {
	if len(r.Points) > 0 {
		return r.Points
	}
	slot, last := slots(r.Count, r.Gaps)
	out := make([]Point, r.Count)
	bow := r.bow()
	for i, s := range slot {
		out[i] = at(*r.First, *r.Last, bow, s, last)
	}
	return out
}

// normalize fills what may be left out and checks the row's shape.
func (r *row) normalize() error {
	if err := checkText(r.Label, MaxLabelBytes); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	width := 1
	if len(r.Points) > 0 {
		width = 0
		if r.First != nil || r.Last != nil || r.Curve != 0 || r.Count != 0 && r.Count != len(r.Points) {
			return fmt.Errorf("%w: points exclude first, last, curve and another count", ErrValue)
		}
		r.Count = len(r.Points)
	}
	switch {
	case r.Count < 1:
		return fmt.Errorf("count is %w", ErrMissing)
	case r.Count > MaxRowSeats:
		return fmt.Errorf("%w: %d seats in a row, at most %d", ErrLimit, r.Count, MaxRowSeats)
	case len(r.Points) == 0 && r.First == nil:
		return fmt.Errorf("first is %w", ErrMissing)
	case len(r.Points) == 0 && r.Last == nil && r.Count > 1:
		return fmt.Errorf("last is %w", ErrMissing)
	case len(r.Points) == 0 && r.Last == nil:
		r.Last = r.First
	case len(r.Points) == 0 && r.Count > 1 && *r.First == *r.Last:
		return fmt.Errorf("%w: first and last are the same point", ErrValue)
	}
	if r.Count == 1 && r.Curve != 0 {
		return fmt.Errorf("%w: a single seat has no curve", ErrValue)
	}
	total := r.Count
	for i := range r.Gaps {
		g := &r.Gaps[i]
		if g.Width == unsaidWidth {
			g.Width = width
		}
		if g.After < 1 || g.After >= r.Count || i > 0 && g.After <= r.Gaps[i-1].After {
			return fmt.Errorf("gaps: %w: after %d; gaps ascend from 1 to count-1", ErrValue, g.After)
		}
		if g.Width < 0 || len(r.Points) > 0 && g.Width > 0 {
			return fmt.Errorf("gaps: %w: width %d", ErrValue, g.Width)
		}
		if total += g.Width; g.Width > MaxRowSlots || total > MaxRowSlots {
			return fmt.Errorf("gaps: %w: seats and gaps are wider than %d seats", ErrLimit, MaxRowSlots)
		}
	}
	if err := r.Numbers.check(); err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	return nil
}

// kinds gives the kind of each place.
func (r *row) kinds() ([]Kind, error) {
	out := make([]Kind, r.Count)
	for _, set := range []struct {
		places []int
		kind   Kind
	}{{r.Wheelchair, Wheelchair}, {r.Companion, Companion}} {
		for _, p := range set.places {
			if p < 1 || p > r.Count {
				return nil, fmt.Errorf("%s: %w: place %d of %d", set.kind, ErrValue, p, r.Count)
			}
			if out[p-1] != Standard {
				return nil, fmt.Errorf("%s: place %d is %w", set.kind, p, ErrDuplicate)
			}
			out[p-1] = set.kind
		}
	}
	return out, nil
}

// bands gives the price band of each place.
func (r *row) bands(section string) ([]string, error) {
	out := make([]string, r.Count)
	for i, b := range r.Bands {
		if b.From < 1 || b.To < b.From || b.To > r.Count {
			return nil, fmt.Errorf("bands[%d]: %w: places %d to %d of %d", i, ErrValue, b.From, b.To, r.Count)
		}
		if err := checkName(b.Band); err != nil {
			return nil, fmt.Errorf("bands[%d].band: %w", i, err)
		}
		for p := b.From; p <= b.To; p++ {
			if out[p-1] != "" {
				return nil, fmt.Errorf("bands[%d]: place %d is %w", i, p, ErrDuplicate)
			}
			out[p-1] = b.Band
		}
	}
	rest := r.Band
	if rest == "" {
		rest = section
	}
	if err := checkName(rest); err != nil {
		return nil, fmt.Errorf("band: %w", err)
	}
	for i := range out {
		if out[i] == "" {
			out[i] = rest
		}
	}
	return out, nil
}

// builder turns a document into a layout.
type builder struct {
	doc   *document
	l     *Layout
	bands map[string]bool
}

func build(d *document) (*Layout, error) {
	d.Format = Format
	b := &builder{doc: d, bands: map[string]bool{}, l: &Layout{Name: d.Name, Areas: d.Areas, doc: d}}
	if err := checkName(d.Name); err != nil {
		return nil, &PathError{"name", err}
	}
	if len(d.Sections) > MaxSections {
		return nil, &PathError{"sections", fmt.Errorf("%w: %d sections, at most %d", ErrLimit, len(d.Sections), MaxSections)}
	}
	rows, seats := 0, 0
	for i := range d.Sections {
		s := &d.Sections[i]
		rows += len(s.Rows)
		if rows > MaxRows {
			return nil, &PathError{s.path, fmt.Errorf("%w: more than %d rows", ErrLimit, MaxRows)}
		}
		for j := range s.Rows {
			if err := s.Rows[j].normalize(); err != nil {
				return nil, &PathError{s.Rows[j].path, err}
			}
			if seats += s.Rows[j].Count; seats > MaxSeats {
				return nil, &PathError{s.Rows[j].path, fmt.Errorf("%w: more than %d seats", ErrLimit, MaxSeats)}
			}
		}
	}
	if err := checkAreas(d.Areas); err != nil {
		return nil, err
	}
	if seats == 0 && !slices.ContainsFunc(d.Areas, func(a Area) bool { return a.Kind == Standing }) {
		return nil, &PathError{"", fmt.Errorf("%w: a seat or a standing area", ErrMissing)}
	}
	b.l.Seats = make([]Seat, 0, seats)
	b.l.RowOf = make([]int32, 0, seats)
	b.l.Rows = make([]Row, 0, rows)
	b.l.byCode = make(map[string]int32, seats)
	names := map[string]string{}
	for i := range d.Sections {
		s := &d.Sections[i]
		if first, dup := names[s.Name]; dup {
			return nil, &PathError{s.path, fmt.Errorf("section name %q is %w, also at %s", s.Name, ErrDuplicate, first)}
		}
		names[s.Name] = s.path
		if err := b.section(s); err != nil {
			return nil, err
		}
	}
	b.l.Focus = b.focus()
	for i := range d.Sections { // paths are of the file, not of the layout
		d.Sections[i].path = ""
		for j := range d.Sections[i].Rows {
			d.Sections[i].Rows[j].path = ""
		}
	}
	d.pretix = false
	return b.l, nil
}

func (b *builder) section(s *section) error {
	fail := func(field string, err error) error { return &PathError{s.path + field, err} }
	if err := checkName(s.Name); err != nil {
		return fail(".name", err)
	}
	if len(s.Rows) == 0 {
		return fail(".rows", fmt.Errorf("rows are %w", ErrMissing))
	}
	if s.Kind != "" && s.Kind != cabinKind {
		return fail(".kind", fmt.Errorf("%w: %q", ErrUnknown, s.Kind))
	}
	if err := checkText(s.Pool, MaxNameBytes); err != nil {
		return fail(".pool", err)
	}
	prefix := ""
	switch {
	case s.Code != nil:
		prefix = *s.Code
	case s.Kind != cabinKind && len(b.doc.Sections) > 1:
		prefix = s.Name
	}
	if err := checkText(prefix, MaxNameBytes); err != nil {
		return fail(".code", err)
	}
	band := s.Band
	if band == "" {
		band = s.Name
	}
	no := int32(len(b.l.Sections))
	b.l.Sections = append(b.l.Sections, Section{
		Name: s.Name, Code: prefix, Pool: s.Pool, Cabin: s.Kind == cabinKind,
		FirstRow: int32(len(b.l.Rows)), Rows: int32(len(s.Rows)),
	})
	for j := range s.Rows {
		if err := b.row(no, &s.Rows[j], prefix, band); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) row(sectionNo int32, r *row, prefix, band string) error {
	fail := func(err error) error { return &PathError{r.path, err} }
	labels, err := r.Numbers.labels(r.Count)
	if err != nil {
		return fail(fmt.Errorf("numbers: %w", err))
	}
	bands, err := r.bands(band)
	if err != nil {
		return fail(err)
	}
	kinds, err := r.kinds()
	if err != nil {
		return fail(err)
	}
	l, sec := b.l, &b.l.Sections[sectionNo]
	rowNo, first := int32(len(l.Rows)), int32(len(l.Seats))
	for i, p := range r.positions() {
		seat := Seat{
			No: first + int32(i), Code: seatCode(prefix, r.Label, labels[i]), Section: sec.Name, Row: r.Label, Number: labels[i],
			Band: bands[i], Pool: sec.Pool, Kind: kinds[i], X: p.X, Y: p.Y,
		}
		if other, dup := l.byCode[seat.Code]; dup {
			o := &l.Seats[other]
			return &PathError{b.placePath(r, i), fmt.Errorf("seat code %q is %w, also in section %q row %q", seat.Code, ErrDuplicate, o.Section, o.Row)}
		}
		l.byCode[seat.Code] = seat.No
		l.Seats = append(l.Seats, seat)
		l.RowOf = append(l.RowOf, rowNo)
		if !b.bands[seat.Band] {
			b.bands[seat.Band] = true
			l.Bands = append(l.Bands, seat.Band)
		}
	}
	l.Rows = append(l.Rows, Row{
		Section: sectionNo, Label: r.Label, First: first, Count: int32(r.Count), Blocks: blocks(first, r.Count, r.Gaps), Exit: r.Exit,
	})
	return nil
}

func (b *builder) placePath(r *row, i int) string {
	if b.doc.pretix {
		return fmt.Sprintf("%s.seats[%d]", r.path, i)
	}
	return fmt.Sprintf("%s place %d", r.path, i+1)
}

func blocks(first int32, count int, gaps []gap) []Block {
	out := make([]Block, 0, len(gaps)+1)
	from := int32(0)
	for _, g := range gaps {
		out = append(out, Block{First: first + from, Count: int32(g.After) - from})
		from = int32(g.After)
	}
	return append(out, Block{First: first + from, Count: int32(count) - from})
}

func checkAreas(areas []Area) error {
	if len(areas) > MaxAreas {
		return &PathError{"areas", fmt.Errorf("%w: %d areas, at most %d", ErrLimit, len(areas), MaxAreas)}
	}
	for i, a := range areas {
		fail := func(field string, err error) error { return &PathError{fmt.Sprintf("areas[%d]%s", i, field), err} }
		switch a.Kind {
		case Standing:
			if a.Name == "" {
				return fail(".name", fmt.Errorf("name is %w: it is the pool that is sold", ErrMissing))
			}
		case Stage, Screen, Decoration:
			if a.Capacity != 0 {
				return fail(".capacity", fmt.Errorf("%w: only a standing area has one", ErrValue))
			}
		default:
			return fail(".kind", fmt.Errorf("%w: %q", ErrUnknown, a.Kind))
		}
		if err := checkText(a.Name, MaxNameBytes); err != nil {
			return fail(".name", err)
		}
		if a.Capacity < 0 || a.Capacity > MaxAreaCapacity {
			return fail(".capacity", fmt.Errorf("%w: from 0 to %d", ErrValue, MaxAreaCapacity))
		}
		if len(a.Polygon) < 3 || len(a.Polygon) > MaxPolygon {
			return fail("", fmt.Errorf("%w: a shape of %d points, 3 to %d make one", ErrValue, len(a.Polygon), MaxPolygon))
		}
	}
	return nil
}

// focus is where the file says, else the middle of the first stage or screen, else the middle of the front edge of the seats.
func (b *builder) focus() Point {
	if b.doc.Focus != nil {
		return *b.doc.Focus
	}
	for _, a := range b.doc.Areas {
		if a.Kind == Stage || a.Kind == Screen {
			low, high := bounds(slices.Values(a.Polygon))
			return Point{X: low.X + (high.X-low.X)/2, Y: low.Y + (high.Y-low.Y)/2}
		}
	}
	low, high := bounds(func(yield func(Point) bool) {
		for i := range b.l.Seats {
			if !yield(Point{b.l.Seats[i].X, b.l.Seats[i].Y}) {
				return
			}
		}
	})
	return Point{X: low.X + (high.X-low.X)/2, Y: low.Y}
}

// bounds of at least one point; of none, the origin.
func bounds(points func(yield func(Point) bool)) (low, high Point) {
	first := true
	for p := range points {
		if first {
			low, high, first = p, p, false
		}
		low = Point{min(low.X, p.X), min(low.Y, p.Y)}
		high = Point{max(high.X, p.X), max(high.Y, p.Y)}
	}
	return low, high
}

// cabin is the short way to write the rows of an aircraft: the same letters in every row, a space for an aisle.
type cabin struct {
	From, To int
	Skip     []int
	Letters  string
	ExitRows []int
	Pitch    Coord // from row to row, in units of a seat's width
	At       Point // the first place of the first row
}

// rows of the cabin; errors name the field.
func (c *cabin) rows(path string) ([]row, error) {
	fail := func(field, format string, args ...any) ([]row, error) {
		return nil, &PathError{path + field, fmt.Errorf(format, args...)}
	}
	if c.From < 0 || c.To < c.From || c.To > MaxSeatNumber {
		return fail("", "%w: rows from %d to %d", ErrValue, c.From, c.To)
	}
	if c.To-c.From >= MaxRows {
		return fail("", "%w: more than %d rows", ErrLimit, MaxRows)
	}
	if c.Pitch <= 0 {
		return fail(".pitch", "%w: it must be above 0", ErrValue)
	}
	var gaps []gap
	letters := strings.ReplaceAll(c.Letters, " ", "")
	count, last := 0, 0
	for _, r := range c.Letters {
		if r != ' ' {
			count++
			last++
			continue
		}
		last++
		if n := len(gaps); n > 0 && gaps[n-1].After == count {
			gaps[n-1].Width++
		} else {
			gaps = append(gaps, gap{After: count, Width: 1})
		}
	}
	if count == 0 || strings.HasSuffix(c.Letters, " ") {
		return fail(".letters", "%w: letters with spaces between them, such as \"ABC DEF\"", ErrValue)
	}
	if last > MaxRowSlots {
		return fail(".letters", "%w: more than %d", ErrLimit, MaxRowSlots)
	}
	for _, no := range c.ExitRows {
		if no < c.From || no > c.To || slices.Contains(c.Skip, no) {
			return fail(".exitRows", "%w: there is no row %d", ErrValue, no)
		}
	}
	var out []row
	for no := c.From; no <= c.To; no++ {
		if slices.Contains(c.Skip, no) {
			continue
		}
		y := int64(c.At.Y) + int64(c.Pitch)*int64(len(out))
		end := int64(c.At.X) + int64(last-1)*coordsPerUnit
		if max(y, end) > MaxExtentUnits*coordsPerUnit {
			return fail("", "%w: it reaches beyond %d units", ErrLimit, MaxExtentUnits)
		}
		out = append(out, row{
			Label: strconv.Itoa(no), Count: count, Gaps: slices.Clone(gaps), Numbers: &numbers{Letters: letters},
			First: &Point{c.At.X, Coord(y)}, Last: &Point{Coord(end), Coord(y)}, Exit: slices.Contains(c.ExitRows, no),
			path: path,
		})
	}
	return out, nil
}

// rectangle turned by so many degrees around its position, as a polygon.
func rectangle(x, y, width, height, degrees float64) [][2]float64 {
	return turned(x, y, degrees, [][2]float64{{0, 0}, {width, 0}, {width, height}, {0, height}})
}

// ellipse around a centre, as a polygon.
func ellipse(x, y, rx, ry, degrees float64) [][2]float64 {
	corners := make([][2]float64, circleCorners)
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / circleCorners)
		corners[i] = [2]float64{rx * cos, ry * sin}
	}
	return turned(x, y, degrees, corners)
}

func turned(x, y, degrees float64, corners [][2]float64) [][2]float64 {
	sin, cos := math.Sincos(math.Mod(degrees, 360) * math.Pi / 180)
	for i, c := range corners {
		corners[i] = [2]float64{x + c[0]*cos - c[1]*sin, y + c[0]*sin + c[1]*cos}
	}
	return corners
}
