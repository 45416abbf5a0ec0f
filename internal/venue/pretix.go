package venue

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A pretix seating plan lists every seat with its own position. Its shape is the published seating-plan.schema.json of pretix
// and, where marked, what the plan editor writes beyond it.

type pretixPlan struct {
	name       string
	categories map[string]bool
	zones      []pretixZone
}

type pretixZone struct {
	name  string
	x, y  float64
	rows  []pretixRow
	areas []pretixArea
	path  string
}

type pretixRow struct {
	number string
	x, y   float64
	seats  []pretixSeat
	path   string
}

type pretixSeat struct {
	guid, number, category string
	x, y                   float64
	placed, wheelchair     bool
}

type pretixArea struct {
	x, y, width, height, rx, ry, rotation float64
	text                                  string
	points                                [][2]float64
	path                                  string
}

// aisleFactor: a distance between neighbours of more than so many usual ones is an aisle. The format has no word for aisles, and
// seats across one are not together.
const aisleFactor = 1.5

func (r *reader) pretixPlan() (*document, error) {
	p := pretixPlan{categories: map[string]bool{}}
	seats := 0
	err := r.object(func(key string) (err error) {
		switch key {
		case "name":
			p.name, err = r.cleanText()
		case "size":
			err = r.skip()
		case "categories":
			err = r.list(MaxSeats, func(int) error { return r.pretixCategory(&p) })
		case "zones":
			err = r.list(MaxSections, func(int) error {
				z, err := r.pretixZone(&seats)
				p.zones = append(p.zones, z)
				return err
			})
		default:
			return errUnknownKey
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.pretixDocument(&p)
}

// cleanText reads a text and puts its spaces in order: people type them by accident, and nobody sees them.
func (r *reader) cleanText() (string, error) {
	s, err := r.text()
	if err != nil {
		return "", err
	}
	clean := strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " ")
	if clean != s {
		r.warn(fmt.Sprintf("spaces of %.60q were put in order", s))
	}
	return clean, nil
}

func (r *reader) pretixCategory(p *pretixPlan) error {
	var name string
	err := r.object(func(key string) (err error) {
		switch key {
		case "name":
			name, err = r.cleanText()
		case "color":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("name is %w", ErrMissing)
	}
	if p.categories[name] {
		return fmt.Errorf("category %.60q is %w", name, ErrDuplicate)
	}
	p.categories[name] = true
	return nil
}

func (r *reader) pretixZone(seats *int) (pretixZone, error) {
	z := pretixZone{path: string(r.path)}
	err := r.object(func(key string) (err error) {
		switch key {
		case "name":
			z.name, err = r.cleanText()
		case "position":
			z.x, z.y, err = r.xy()
		case "rows":
			err = r.list(MaxRows, func(int) error {
				w, err := r.pretixRow(seats)
				z.rows = append(z.rows, w)
				return err
			})
		case "areas":
			err = r.list(MaxAreas, func(int) error {
				a, err := r.pretixArea()
				z.areas = append(z.areas, a)
				return err
			})
		case "displayed", "uuid", "zone_id":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	return z, err
}

func (r *reader) pretixRow(seats *int) (pretixRow, error) {
	w := pretixRow{path: string(r.path)}
	err := r.object(func(key string) (err error) {
		switch key {
		case "row_number":
			w.number, err = r.cleanText()
		case "position":
			w.x, w.y, err = r.xy()
		case "seats":
			err = r.list(MaxRowSeats, func(int) error {
				if *seats++; *seats > MaxSeats {
					return fmt.Errorf("%w: more than %d seats", ErrLimit, MaxSeats)
				}
				s, err := r.pretixSeat()
				w.seats = append(w.seats, s)
				return err
			})
		case "row_number_position", "row_label", "number_of_seats", "seats_spacing", "uuid", "row_id":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	return w, err
}

func (r *reader) pretixSeat() (pretixSeat, error) {
	var s pretixSeat
	err := r.object(func(key string) (err error) {
		switch key {
		case "seat_guid":
			s.guid, err = r.text()
		case "seat_number":
			s.number, err = r.cleanText()
		case "position":
			s.placed = true
			s.x, s.y, err = r.xy()
		case "category":
			s.category, err = r.cleanText()
		case "wheelchair":
			s.wheelchair, err = r.boolean()
		case "uuid", "radius":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	return s, err
}

// pretixArea reads both spellings: sizes beside the position (the schema) and inside an object named by the shape (the editor).
func (r *reader) pretixArea() (pretixArea, error) {
	a := pretixArea{path: string(r.path)}
	err := r.object(func(key string) (err error) {
		switch key {
		case "position":
			a.x, a.y, err = r.xy()
		case "width":
			a.width, err = r.number()
		case "height":
			a.height, err = r.number()
		case "rectangle":
			err = r.fields(map[string]*float64{"width": &a.width, "height": &a.height})
		case "radius":
			a.rx, err = r.number()
			a.ry = a.rx
		case "circle":
			err = r.fields(map[string]*float64{"radius": &a.rx})
			a.ry = a.rx
		case "ellipse":
			err = r.object(func(key string) (err error) {
				if key != "radius" {
					return errUnknownKey
				}
				a.rx, a.ry, err = r.xy()
				return err
			})
		case "polygon":
			err = r.object(func(key string) error {
				if key != "points" {
					return errUnknownKey
				}
				return r.list(MaxPolygon, func(int) error {
					x, y, err := r.xy()
					a.points = append(a.points, [2]float64{x, y})
					return err
				})
			})
		case "rotation":
			a.rotation, err = r.number()
		case "text":
			a.text, err = r.pretixText()
		case "color", "border_color", "shape", "uuid":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	return a, err
}

// pretixText is a plain text in the schema and an object in the editor's files.
func (r *reader) pretixText() (text string, err error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	switch t := t.(type) {
	case nil:
		return "", nil
	case string:
		return strings.Join(strings.Fields(t), " "), nil
	case json.Delim:
		if t != '{' {
			return "", r.want("a text", t)
		}
	default:
		return "", r.want("a text", t)
	}
	err = r.rest(func(key string) (err error) {
		switch key {
		case "text":
			text, err = r.cleanText()
		case "position", "color", "size":
			err = r.skip()
		default:
			return errUnknownKey
		}
		return err
	})
	return text, err
}

// pretixDocument checks what the format promises and turns the plan into a document.
func (r *reader) pretixDocument(p *pretixPlan) (*document, error) {
	d := &document{Name: p.name, pretix: true}
	guids := map[string]seatRef{}
	names := map[string]bool{}
	usual := p.usualDistance()
	for zi := range p.zones {
		z := &p.zones[zi]
		s := section{Name: r.sectionName(z, zi, names), path: z.path}
		for wi := range z.rows {
			w := &z.rows[wi]
			if len(w.seats) == 0 {
				r.warnAt(w.path, "row without seats, left out")
				continue
			}
			out, err := w.row(z, p.categories, guids, usual)
			if err != nil {
				return nil, err
			}
			s.Rows = append(s.Rows, out)
		}
		if len(s.Rows) > 0 {
			s.Band = s.Rows[0].Band
			for i := range s.Rows {
				if s.Rows[i].Band == s.Band {
					s.Rows[i].Band = ""
				}
			}
			d.Sections = append(d.Sections, s)
		}
		for ai := range z.areas {
			a, err := r.pretixAreaOf(&z.areas[ai], z)
			if err != nil {
				return nil, &PathError{z.areas[ai].path, err}
			}
			if a != nil {
				d.Areas = append(d.Areas, *a)
			}
		}
	}
	return d, nil
}

func (r *reader) warnAt(path, text string) {
	saved := r.path
	r.path = []byte(path)
	r.warn(text)
	r.path = saved
}

// sectionName gives every zone a name of its own, because people find their seats by it.
func (r *reader) sectionName(z *pretixZone, i int, taken map[string]bool) string {
	name := z.name
	if name == "" {
		name = "Zone " + strconv.Itoa(i+1)
	}
	for base, n := name, 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	if name != z.name && len(z.rows) > 0 {
		r.warnAt(z.path, fmt.Sprintf("named %.100q, since zones need different names", name))
	}
	taken[name] = true
	return name
}

// usualDistance is the median of the distances between neighbours over the whole plan.
func (p *pretixPlan) usualDistance() float64 {
	var all []float64
	for i := range p.zones {
		for j := range p.zones[i].rows {
			all = append(all, p.zones[i].rows[j].distances()...)
		}
	}
	return median(all)
}

func (w *pretixRow) distances() []float64 {
	out := make([]float64, 0, len(w.seats))
	for i := 1; i < len(w.seats); i++ {
		out = append(out, math.Hypot(w.seats[i].x-w.seats[i-1].x, w.seats[i].y-w.seats[i-1].y))
	}
	return out
}

// median sorts d; of nothing it is 0.
func median(d []float64) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)-1)/2]
}

// seatRef is a seat's place in the file.
type seatRef struct {
	row *pretixRow
	i   int
}

func (s seatRef) String() string { return fmt.Sprintf("%s.seats[%d]", s.row.path, s.i) }

// row checks and converts one row; usual is the plan's distance between neighbours, used where the row is too short to tell.
func (w *pretixRow) row(z *pretixZone, categories map[string]bool, guids map[string]seatRef, usual float64) (row, error) {
	out := row{Label: w.number, path: w.path}
	list := make([]string, len(w.seats))
	points := make([]Point, len(w.seats))
	for i := range w.seats {
		s := &w.seats[i]
		ref := seatRef{w, i}
		fail := func(format string, args ...any) (row, error) {
			return row{}, &PathError{ref.String(), fmt.Errorf(format, args...)}
		}
		if s.guid == "" {
			return fail("seat_guid is %w", ErrMissing)
		}
		if first, dup := guids[s.guid]; dup {
			return fail("seat_guid %.100q is %w, first at %s", s.guid, ErrDuplicate, first)
		}
		guids[s.guid] = ref
		if s.number == "" {
			return fail("seat_number is %w", ErrMissing)
		}
		if s.category == "" {
			return fail("category is %w", ErrMissing)
		}
		if !categories[s.category] {
			return fail("category %.100q is %w", s.category, ErrUnknown)
		}
		if !s.placed {
			return fail("position is %w", ErrMissing)
		}
		at, err := polygon([][2]float64{{z.x + w.x + s.x, z.y + w.y + s.y}})
		if err != nil {
			return fail("%w", err)
		}
		points[i], list[i] = at[0], s.number
		if s.wheelchair {
			out.Wheelchair = append(out.Wheelchair, i+1)
		}
		if n := len(out.Bands); n > 0 && out.Bands[n-1].Band == s.category {
			out.Bands[n-1].To = i + 1
		} else {
			out.Bands = append(out.Bands, bandRange{From: i + 1, To: i + 1, Band: s.category})
		}
	}
	out.Band = out.Bands[0].Band
	out.Bands = slices.DeleteFunc(out.Bands, func(b bandRange) bool { return b.Band == out.Band })
	out.Numbers = numbersOf(list)
	step := usual
	if d := w.distances(); len(d) >= 3 {
		step = median(d)
	}
	out.place(points, step)
	return out, nil
}

// numbersOf finds the counting rule behind a list of numbers, else keeps the list.
func numbersOf(list []string) *numbers {
	start, step, ok := counting(list)
	switch {
	case !ok || max(start, start+step*(len(list)-1)) > MaxSeatNumber || max(step, -step) > MaxSeatNumber:
		return &numbers{List: list}
	case start == 1 && step == 1:
		return nil
	case step > 0:
		return &numbers{Start: &start, Step: step}
	default:
		end := start + step*(len(list)-1)
		return &numbers{Start: &end, Step: -step, Reversed: true}
	}
}

// counting says whether the numbers count evenly, up or down, as whole numbers written the usual way.
func counting(list []string) (start, step int, ok bool) {
	step = 1
	for i, s := range list {
		v, err := strconv.ParseUint(s, 10, 31)
		if err != nil || strconv.FormatUint(v, 10) != s {
			return 0, 0, false
		}
		switch i {
		case 0:
			start = int(v)
		case 1:
			step = int(v) - start
		}
		if int(v) != start+i*step {
			return 0, 0, false
		}
	}
	return start, step, step != 0
}

// place describes points by a line with gaps if that gives exactly the same points, else lists them.
func (r *row) place(points []Point, step float64) {
	r.Count = len(points)
	step *= coordsPerUnit
	for i := 1; i < len(points); i++ {
		d := math.Hypot(float64(points[i].X)-float64(points[i-1].X), float64(points[i].Y)-float64(points[i-1].Y))
		if step > 0 && d > aisleFactor*step {
			r.Gaps = append(r.Gaps, gap{After: i, Width: int(min(math.Round(d/step)-1, MaxRowSlots))})
		}
	}
	first, last := points[0], points[len(points)-1]
	r.First, r.Last = &first, &last
	if r.normalize() == nil && slices.Equal(r.positions(), points) {
		return
	}
	r.First, r.Last, r.Points = nil, nil, points
	for i := range r.Gaps {
		r.Gaps[i].Width = 0
	}
}

// areaWords tell by its text what an area is; the format itself does not say.
var areaWords = []struct {
	kind  AreaKind
	words []string
}{
	{Stage, []string{"stage", "bühne", "scène", "scene", "podium", "escenario", "palco"}},
	{Screen, []string{"screen", "leinwand", "écran", "pantalla"}},
	{Standing, []string{"standing", "stehplatz", "stehplätze", "general admission"}},
}

// pretixAreaOf converts an area; nil for one without a shape, such as a mere text.
func (r *reader) pretixAreaOf(a *pretixArea, z *pretixZone) (*Area, error) {
	x, y := z.x+a.x, z.y+a.y
	var corners [][2]float64
	switch {
	case len(a.points) >= 3:
		corners = turned(x, y, a.rotation, slices.Clone(a.points))
	case a.rx > 0 && a.ry > 0:
		corners = ellipse(x, y, a.rx, a.ry, a.rotation)
	case a.width > 0 && a.height > 0:
		corners = rectangle(x, y, a.width, a.height, a.rotation)
	default:
		r.warnAt(a.path, "area without a shape, left out")
		return nil, nil
	}
	out := &Area{Kind: Decoration, Name: a.text}
	lower := strings.ToLower(a.text)
	for _, w := range areaWords {
		if slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(lower, word) }) {
			out.Kind = w.kind
			break
		}
	}
	if checkText(out.Name, MaxNameBytes) != nil {
		r.warnAt(a.path, "its text cannot be a name, left out")
		out.Kind, out.Name = Decoration, ""
	}
	if out.Kind == Standing {
		r.warnAt(a.path, fmt.Sprintf("standing area %q: the plan has no capacity, the event's pool of that name says it", out.Name))
	}
	var err error
	out.Polygon, err = polygon(corners)
	return out, err
}
