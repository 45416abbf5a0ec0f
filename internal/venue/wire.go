package venue

import "encoding/json"

// WireVersion is "v" of the wire form.
const WireVersion = 1

// The wire form is what a browser gets, docs/layouts.md: a row is a line and a numbering rule instead of its seats, and its
// numbers are differences to the row before, which are nearly the same from row to row and so compress to almost nothing.

type wireLayout struct {
	V        int           `json:"v"`
	Name     string        `json:"name"`
	Focus    [2]int32      `json:"focus"`
	Bands    []string      `json:"bands"`
	Sections []wireSection `json:"sections"`
	Areas    []wireArea    `json:"areas"`
}

type wireSection struct {
	Name  string  `json:"name"`
	Code  string  `json:"code"`
	Pool  string  `json:"pool,omitempty"`
	Cabin bool    `json:"cabin,omitempty"`
	Rows  [][]any `json:"rows"` // [label, count, band, start, step, x0, y0, x1, y1, bow x, bow y, extra?]
}

// wireExtra is what few rows have.
type wireExtra struct {
	Gaps    [][2]int `json:"g,omitempty"` // [after, width]
	Bands   [][3]int `json:"b,omitempty"` // [from, to, band] for places of another band
	Kinds   [][2]int `json:"k,omitempty"` // [place, kind] for places that are not standard
	Numbers []string `json:"n,omitempty"` // instead of start and step
	Points  []int32  `json:"p,omitempty"` // dx, dy from seat to seat, instead of the line
	Exit    int      `json:"e,omitempty"`
}

type wireArea struct {
	Kind     AreaKind `json:"kind"`
	Name     string   `json:"name,omitempty"`
	Capacity int      `json:"capacity,omitempty"`
	Points   []int32  `json:"points"` // x, y, then differences from corner to corner
}

// raw: coordinates travel as whole hundredths, not units.
func raw(c Coord) int32 { return int32(c) }

// Wire is the compact form for clients: everything of Seats, Rows, Sections and Areas can be derived from it. The same layout
// always gives the same bytes.
func (l *Layout) Wire() []byte {
	bands := make(map[string]int, len(l.Bands))
	for i, b := range l.Bands {
		bands[b] = i
	}
	sections := make([]wireSection, len(l.Sections))
	rowNo := 0
	for i := range l.Sections {
		s := &l.Sections[i]
		sections[i] = wireSection{Name: s.Name, Code: s.Code, Pool: s.Pool, Cabin: s.Cabin, Rows: make([][]any, s.Rows)}
		var before [6]int32
		for j := range sections[i].Rows {
			sections[i].Rows[j], before = l.wireRow(rowNo, &l.doc.Sections[i].Rows[j], bands, before)
			rowNo++
		}
	}
	areas := make([]wireArea, len(l.Areas))
	for i, a := range l.Areas {
		areas[i] = wireArea{Kind: a.Kind, Name: a.Name, Capacity: a.Capacity, Points: deltas(Point{}, a.Polygon)}
	}
	b, err := json.Marshal(wireLayout{
		V: WireVersion, Name: l.Name, Focus: [2]int32{raw(l.Focus.X), raw(l.Focus.Y)},
		Bands: append([]string{}, l.Bands...), Sections: sections, Areas: areas,
	})
	if err != nil {
		panic(err) // strings, numbers and slices only: cannot fail
	}
	return b
}

func deltas(from Point, points []Point) []int32 {
	out := make([]int32, 0, 2*len(points))
	for _, p := range points {
		out = append(out, raw(p.X-from.X), raw(p.Y-from.Y))
		from = p
	}
	return out
}

// wireRow writes one row; before are the six coordinates of the row before it in the section, and its own are the second result.
func (l *Layout) wireRow(no int, r *row, bands map[string]int, before [6]int32) ([]any, [6]int32) {
	seats := l.Seats[l.Rows[no].First:][:r.Count]
	labels := make([]string, len(seats))
	for i := range seats {
		labels[i] = seats[i].Number
	}
	var extra wireExtra
	start, step, ok := counting(labels)
	if !ok {
		start, step, extra.Numbers = 0, 0, labels
	}
	band := usualBand(seats, bands)
	for i := range seats {
		place, b := i+1, bands[seats[i].Band]
		if n := len(extra.Bands); b != band && n > 0 && extra.Bands[n-1][1] == place-1 && extra.Bands[n-1][2] == b {
			extra.Bands[n-1][1] = place
		} else if b != band {
			extra.Bands = append(extra.Bands, [3]int{place, place, b})
		}
		if k := seats[i].Kind; k != Standard {
			extra.Kinds = append(extra.Kinds, [2]int{place, int(k)})
		}
	}
	for _, g := range r.Gaps {
		extra.Gaps = append(extra.Gaps, [2]int{g.After, g.Width})
	}
	first, last, bow := seats[0], seats[len(seats)-1], r.bow()
	if len(r.Points) > 0 {
		extra.Points = deltas(r.Points[0], r.Points[1:])
	}
	if r.Exit {
		extra.Exit = 1
	}
	now := [6]int32{raw(first.X), raw(first.Y), raw(last.X), raw(last.Y), raw(bow.X), raw(bow.Y)}
	out := append(make([]any, 0, 12), r.Label, r.Count, band, start, step)
	for i := range now {
		out = append(out, now[i]-before[i])
	}
	if !extra.empty() {
		out = append(out, extra)
	}
	return out, now
}

func (e *wireExtra) empty() bool {
	return len(e.Gaps)+len(e.Bands)+len(e.Kinds)+len(e.Numbers)+len(e.Points)+e.Exit == 0
}

// usualBand is the band of most seats, the first such.
func usualBand(seats []Seat, bands map[string]int) int {
	count := make(map[int]int, 1)
	best := bands[seats[0].Band]
	for i := range seats {
		count[bands[seats[i].Band]]++
	}
	for i := range seats {
		if b := bands[seats[i].Band]; count[b] > count[best] {
			best = b
		}
	}
	return best
}
