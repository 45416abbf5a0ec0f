package venue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Parse reads a layout: the own format (docs/layouts.md) or a pretix seating plan, told apart by their top-level keys. Errors
// are *PathError over one of this package's errors. A key that is not known is an error in the own format, where it is a
// mistake, and a warning in a pretix plan, where it may come from a newer editor.
func Parse(data []byte) (*Layout, []Warning, error) {
	if len(data) > MaxBytes {
		return nil, nil, &PathError{"", fmt.Errorf("%w: %d bytes, at most %d", ErrLimit, len(data), MaxBytes)}
	}
	if !utf8.Valid(data) {
		return nil, nil, &PathError{"", fmt.Errorf("%w: invalid UTF-8", ErrSyntax)}
	}
	var top map[string]json.RawMessage // also checks the syntax of the whole file and that nothing follows it
	if err := json.Unmarshal(data, &top); err != nil {
		if _, notObject := errors.AsType[*json.UnmarshalTypeError](err); notObject {
			return nil, nil, &PathError{"", ErrFormat}
		}
		return nil, nil, &PathError{"", fmt.Errorf("%w: %w", ErrSyntax, err)}
	}
	_, zones := top["zones"]
	_, format := top["format"]
	_, sections := top["sections"]
	r := &reader{dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	var doc *document
	var err error
	switch {
	case zones && !format && !sections:
		doc, err = r.pretixPlan()
	case format && !zones:
		r.strict = true
		doc, err = r.document()
	default:
		err = &PathError{"", fmt.Errorf("%w: it has a \"format\" or \"zones\"", ErrFormat)}
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := build(doc)
	if err != nil {
		return nil, nil, err
	}
	return l, r.warnings, nil
}

// reader walks JSON tokens and knows the path it is at. encoding/json's own decoder names neither the path of an unknown key nor
// that of a wrong type inside a list, and a tree of maps of 200,000 seats would take hundreds of megabytes.
type reader struct {
	dec      *json.Decoder
	path     []byte
	strict   bool
	warnings []Warning
	unknown  []string // patterns of unknown keys that were warned of
}

// errUnknownKey is what a field function answers to a key it does not know, before reading the value.
var errUnknownKey = fmt.Errorf("key is %w", ErrUnknown)

func (r *reader) fail(err error) error {
	if _, done := errors.AsType[*PathError](err); done {
		return err
	}
	return &PathError{string(r.path), err}
}

func (r *reader) warn(text string) {
	switch {
	case len(r.warnings) < MaxWarnings-1:
		r.warnings = append(r.warnings, Warning{string(r.path), text})
	case len(r.warnings) < MaxWarnings:
		r.warnings = append(r.warnings, Warning{"", "more warnings were left out"})
	}
}

// warnUnknown warns once of a key, not for each of 50,000 seats that have it.
func (r *reader) warnUnknown() {
	pattern := make([]byte, 0, len(r.path))
	for _, b := range r.path {
		if !isDigit(b) {
			pattern = append(pattern, b)
		}
	}
	if !slices.Contains(r.unknown, string(pattern)) && len(r.unknown) < MaxWarnings {
		r.unknown = append(r.unknown, string(pattern))
		r.warn("not known, left out here and wherever else it is")
	}
}

func (r *reader) token() (json.Token, error) {
	t, err := r.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, r.fail(fmt.Errorf("%w: %w", ErrSyntax, err))
	}
	return t, nil
}

func (r *reader) want(what string, got json.Token) error {
	return r.fail(fmt.Errorf("%w: %s expected, not %s", ErrValue, what, describe(got)))
}

func describe(t json.Token) string {
	switch t.(type) {
	case json.Delim:
		return "an object or list"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	default:
		return "null"
	}
}

// object calls field for every key; field reads the value.
func (r *reader) object(field func(key string) error) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return r.want("an object", t)
	}
	return r.rest(field)
}

// rest is object after its opening brace.
func (r *reader) rest(field func(key string) error) error {
	var seen []string
	base := len(r.path)
	defer func() { r.path = r.path[:base] }()
	for r.dec.More() {
		t, err := r.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder lets nothing else be a key
		r.path = r.path[:base]
		if base > 0 {
			r.path = append(r.path, '.')
		}
		r.path = append(r.path, key...)
		if slices.Contains(seen, key) {
			return r.fail(fmt.Errorf("key is %w", ErrDuplicate))
		}
		err = field(key)
		switch {
		case errors.Is(err, errUnknownKey) && !r.strict:
			r.warnUnknown()
			err = r.skip()
		case err == nil:
			seen = append(seen, key) // only known ones: there are few
		}
		if err != nil {
			return r.fail(err)
		}
	}
	_, err := r.token()
	return err
}

// list calls item for every element, which reads it; more than most are ErrLimit.
func (r *reader) list(most int, item func(i int) error) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return r.want("a list", t)
	}
	base := len(r.path)
	defer func() { r.path = r.path[:base] }()
	for i := 0; r.dec.More(); i++ {
		if i >= most {
			r.path = r.path[:base]
			return r.fail(fmt.Errorf("%w: more than %d", ErrLimit, most))
		}
		r.path = append(strconv.AppendInt(append(r.path[:base], '['), int64(i), 10), ']')
		if err := item(i); err != nil {
			return r.fail(err)
		}
	}
	r.path = r.path[:base]
	_, err = r.token()
	return err
}

// skip reads over one value.
func (r *reader) skip() error {
	for depth := 0; ; {
		t, err := r.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (r *reader) text() (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok && (r.strict || t != nil) { // other editors write null for "none"
		return "", r.want("a text", t)
	}
	return s, nil
}

func (r *reader) boolean() (bool, error) {
	t, err := r.token()
	if err != nil {
		return false, err
	}
	b, ok := t.(bool)
	if !ok && (r.strict || t != nil) {
		return false, r.want("true or false", t)
	}
	return b, nil
}

// number is one that a position, size or angle can be.
func (r *reader) number() (float64, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	n, ok := t.(json.Number)
	if !ok {
		return 0, r.want("a number", t)
	}
	f, err := n.Float64()
	if err != nil || math.Abs(f) > MaxExtentUnits {
		return 0, r.fail(fmt.Errorf("%w: a number beyond ±%d", ErrLimit, MaxExtentUnits))
	}
	return f, nil
}

func (r *reader) integer() (int, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	n, ok := t.(json.Number)
	if !ok {
		return 0, r.want("a whole number", t)
	}
	i, err := strconv.ParseInt(n.String(), 10, 32)
	if err != nil {
		return 0, r.fail(fmt.Errorf("%w: a whole number of at most 32 bits expected", ErrValue))
	}
	return int(i), nil
}

func (r *reader) integers() (out []int, err error) {
	err = r.list(MaxRowSeats, func(int) error {
		i, err := r.integer()
		out = append(out, i)
		return err
	})
	return out, err
}

// toCoord rounds layout units to hundredths.
func toCoord(f float64) (Coord, error) {
	if !(math.Abs(f) <= MaxExtentUnits) {
		return 0, fmt.Errorf("%w: a position beyond ±%d", ErrLimit, MaxExtentUnits)
	}
	return Coord(math.Round(f * coordsPerUnit)), nil
}

func (r *reader) coord() (Coord, error) {
	f, err := r.number()
	if err != nil {
		return 0, err
	}
	return toCoord(f)
}

// polygon rounds corners.
func polygon(corners [][2]float64) ([]Point, error) {
	out := make([]Point, len(corners))
	for i, c := range corners {
		x, errX := toCoord(c[0])
		y, errY := toCoord(c[1])
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		out[i] = Point{x, y}
	}
	return out, nil
}

// fields reads an object of numbers by its known keys, of which the required ones must be there.
func (r *reader) fields(into map[string]*float64, required ...string) error {
	seen := map[string]bool{}
	err := r.object(func(key string) (err error) {
		p, ok := into[key]
		if !ok {
			return errUnknownKey
		}
		seen[key] = true
		*p, err = r.number()
		return err
	})
	if err != nil {
		return err
	}
	for _, key := range required {
		if !seen[key] {
			return r.fail(fmt.Errorf("%s is %w", key, ErrMissing))
		}
	}
	return nil
}

// xy reads {"x": …, "y": …}.
func (r *reader) xy() (x, y float64, err error) {
	err = r.fields(map[string]*float64{"x": &x, "y": &y}, "x", "y")
	return x, y, err
}

func (r *reader) point() (*Point, error) {
	x, y, err := r.xy()
	if err != nil {
		return nil, err
	}
	p, err := polygon([][2]float64{{x, y}})
	if err != nil {
		return nil, r.fail(err)
	}
	return &p[0], nil
}

func (r *reader) points(most int) (out []Point, err error) {
	err = r.list(most, func(int) error {
		p, err := r.point()
		if err == nil {
			out = append(out, *p)
		}
		return err
	})
	return out, err
}

func (r *reader) document() (*document, error) {
	d := &document{}
	err := r.object(func(key string) (err error) {
		switch key {
		case "format":
			if d.Format, err = r.text(); err == nil && d.Format != Format {
				err = fmt.Errorf("%w: %q is the one that is read", ErrFormat, Format)
			}
		case "name":
			d.Name, err = r.text()
		case "focus":
			d.Focus, err = r.point()
		case "sections":
			err = r.list(MaxSections, func(int) error {
				s, err := r.section()
				d.Sections = append(d.Sections, s)
				return err
			})
		case "areas":
			err = r.list(MaxAreas, func(int) error {
				a, err := r.area()
				d.Areas = append(d.Areas, a)
				return err
			})
		default:
			return errUnknownKey
		}
		return err
	})
	return d, err
}

func (r *reader) section() (section, error) {
	s := section{path: string(r.path)}
	var c *cabin
	err := r.object(func(key string) (err error) {
		switch key {
		case "name":
			s.Name, err = r.text()
		case "kind":
			s.Kind, err = r.text()
		case "code":
			var code string
			code, err = r.text()
			s.Code = &code
		case "band":
			s.Band, err = r.text()
		case "pool":
			s.Pool, err = r.text()
		case "rows":
			err = r.list(MaxRows, func(int) error {
				w, err := r.row()
				s.Rows = append(s.Rows, w)
				return err
			})
		case "cabin":
			c, err = r.cabin()
		default:
			return errUnknownKey
		}
		return err
	})
	if err != nil || c == nil {
		return s, err
	}
	if len(s.Rows) > 0 || s.Kind != "" && s.Kind != cabinKind {
		return s, r.fail(fmt.Errorf("%w: cabin excludes rows and another kind", ErrValue))
	}
	s.Kind = cabinKind
	s.Rows, err = c.rows(s.path + ".cabin")
	return s, err
}

func (r *reader) row() (row, error) {
	w := row{path: string(r.path)}
	err := r.object(func(key string) (err error) {
		switch key {
		case "label":
			w.Label, err = r.text()
		case "first":
			w.First, err = r.point()
		case "last":
			w.Last, err = r.point()
		case "count":
			w.Count, err = r.integer()
		case "curve":
			w.Curve, err = r.coord()
		case "points":
			w.Points, err = r.points(MaxRowSeats)
		case "gaps":
			err = r.list(MaxRowSeats, func(int) error {
				g, err := r.gap()
				w.Gaps = append(w.Gaps, g)
				return err
			})
		case "numbers":
			w.Numbers, err = r.numbers()
		case "band":
			w.Band, err = r.text()
		case "bands":
			err = r.list(MaxRowSeats, func(int) error {
				b, err := r.bandRange()
				w.Bands = append(w.Bands, b)
				return err
			})
		case "wheelchair":
			w.Wheelchair, err = r.integers()
		case "companion":
			w.Companion, err = r.integers()
		case "exit":
			w.Exit, err = r.boolean()
		default:
			return errUnknownKey
		}
		return err
	})
	return w, err
}

func (r *reader) gap() (gap, error) {
	g := gap{Width: unsaidWidth}
	err := r.object(func(key string) (err error) {
		switch key {
		case "after":
			g.After, err = r.integer()
		case "width":
			if g.Width, err = r.integer(); err == nil && g.Width < 0 {
				err = fmt.Errorf("%w: it must not be below 0", ErrValue)
			}
		default:
			return errUnknownKey
		}
		return err
	})
	return g, err
}

func (r *reader) numbers() (*numbers, error) {
	nu := &numbers{}
	err := r.object(func(key string) (err error) {
		switch key {
		case "start":
			var start int
			start, err = r.integer()
			nu.Start = &start
		case "step":
			if nu.Step, err = r.integer(); err == nil && nu.Step == 0 {
				err = fmt.Errorf("%w: it must not be 0", ErrValue)
			}
		case "skip":
			nu.Skip, err = r.integers()
		case "letters":
			nu.Letters, err = r.text()
		case "list":
			err = r.list(MaxRowSeats, func(int) error {
				s, err := r.text()
				nu.List = append(nu.List, s)
				return err
			})
		case "reversed":
			nu.Reversed, err = r.boolean()
		default:
			return errUnknownKey
		}
		return err
	})
	if nu.Letters == "" && len(nu.List) == 0 && nu.Step == 0 {
		nu.Step = 1
	}
	return nu, err
}

func (r *reader) bandRange() (bandRange, error) {
	var b bandRange
	err := r.object(func(key string) (err error) {
		switch key {
		case "from":
			b.From, err = r.integer()
		case "to":
			b.To, err = r.integer()
		case "band":
			b.Band, err = r.text()
		default:
			return errUnknownKey
		}
		return err
	})
	return b, err
}

func (r *reader) cabin() (*cabin, error) {
	c := &cabin{From: 1, Pitch: coordsPerUnit}
	err := r.object(func(key string) (err error) {
		switch key {
		case "from":
			c.From, err = r.integer()
		case "to":
			c.To, err = r.integer()
		case "skip":
			c.Skip, err = r.integers()
		case "letters":
			c.Letters, err = r.text()
		case "exitRows":
			c.ExitRows, err = r.integers()
		case "pitch":
			c.Pitch, err = r.coord()
		case "at":
			var p *Point
			if p, err = r.point(); err == nil {
				c.At = *p
			}
		default:
			return errUnknownKey
		}
		return err
	})
	return c, err
}

func (r *reader) area() (Area, error) {
	var a Area
	shapes := 0
	err := r.object(func(key string) (err error) {
		var corners [][2]float64
		var x, y, width, height, radius, turn float64
		switch key {
		case "kind":
			var kind string
			kind, err = r.text()
			a.Kind = AreaKind(kind)
			return err
		case "name":
			a.Name, err = r.text()
			return err
		case "capacity":
			a.Capacity, err = r.integer()
			return err
		case "polygon":
			shapes++
			a.Polygon, err = r.points(MaxPolygon)
			return err
		case "rect":
			err = r.fields(map[string]*float64{"x": &x, "y": &y, "width": &width, "height": &height, "rotation": &turn}, "x", "y", "width", "height")
			corners = rectangle(x, y, width, height, turn)
		case "circle":
			err = r.fields(map[string]*float64{"x": &x, "y": &y, "radius": &radius}, "x", "y", "radius")
			corners = ellipse(x, y, radius, radius, 0)
		default:
			return errUnknownKey
		}
		if err != nil {
			return err
		}
		shapes++
		a.Polygon, err = polygon(corners)
		return err
	})
	if err == nil && shapes != 1 {
		err = r.fail(fmt.Errorf("%w: one of rect, circle and polygon", ErrMissing))
	}
	return a, err
}
