package venue

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parsed finishes a sample, which is the same as if it had been read from a file.
func parsed(d *document) (*Layout, error) {
	l, err := build(d)
	if err != nil {
		return nil, fmt.Errorf("sample %w", err)
	}
	return l, nil
}

// Cinema is a hall of one section: rows A, B, C, … of perRow seats with an aisle in the middle, slightly bent around the screen;
// the last third is band Premium, the rest Stalls; a wheelchair place with a companion place at each end of row A.
// 10 rows of 20 make an ordinary hall.
func Cinema(rows, perRow int) (*Layout, error) {
	const aisle = 2
	s := section{Name: "Stalls", Band: "Stalls"}
	width := Coord(perRow-1) * coordsPerUnit
	if perRow > 1 {
		width += aisle * coordsPerUnit
	}
	for i := range min(rows, MaxRows) {
		y := Coord(300 + 120*i)
		r := row{Label: letters(i), First: &Point{0, y}, Last: &Point{width, y}, Count: perRow}
		if perRow >= 4 {
			r.Curve = width / 40
			r.Gaps = []gap{{After: perRow / 2, Width: aisle}}
			if i == 0 {
				r.Wheelchair, r.Companion = []int{1, perRow}, []int{2, perRow - 1}
			}
		}
		if i >= rows-rows/3 {
			r.Band = "Premium"
		}
		s.Rows = append(s.Rows, r)
	}
	return parsed(&document{Name: "Cinema hall", Sections: []section{s}, Areas: []Area{{
		Kind: Screen, Name: "Screen", Polygon: []Point{{0, 0}, {width, 0}, {width, 20}, {0, 20}},
	}}})
}

// letters counts A, B, …, Z, AA, AB, …
func letters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letters(i/26-1) + letters(i%26)
}

// Stadium has exactly n seats around an oval field with the stage at its one end: tiers of 18 rows, each a price band, each cut
// into 30 sections 101-130, 201-230, … by aisles; row A of every section of the first tier ends with a wheelchair and a
// companion place. 50,000 seats fill four tiers. Units are metres.
func Stadium(n int) (*Layout, error) {
	const (
		parts       = 30
		rowsPerTier = 18
		tiers       = 4    // the last one grows as far as it must
		halfLong    = 52.0 // of the first row's oval
		halfShort   = 36.0
		rowDepth    = 0.8
		tierGap     = 4.0
		seatWidth   = 0.5
		aisle       = 1.2
	)
	if n < 1 || n > MaxSeats {
		return nil, &PathError{"", fmt.Errorf("%w: a stadium of %d seats, 1 to %d", ErrLimit, n, MaxSeats)}
	}
	var sections []section
	for ring, left := 0, n; left > 0; ring++ {
		tier := min(ring/rowsPerTier, tiers-1)
		inTier := ring - tier*rowsPerTier
		if inTier == 0 {
			for p := range parts {
				sections = append(sections, section{Name: strconv.Itoa(100*(tier+1) + p + 1), Band: "Category " + strconv.Itoa(tier+1)})
			}
		}
		out := float64(ring)*rowDepth + float64(tier)*tierGap
		oval := func(angle float64) (x, y float64) {
			sin, cos := math.Sincos(angle)
			return (halfLong + out) * cos, (halfShort + out) * sin
		}
		for p := 0; p < parts && left > 0; p++ {
			x0, y0 := oval(2 * math.Pi * float64(p) / parts)
			x1, y1 := oval(2 * math.Pi * float64(p+1) / parts)
			xm, ym := oval(2 * math.Pi * (float64(p) + 0.5) / parts)
			chord := math.Hypot(x1-x0, y1-y0)
			ux, uy := (x1-x0)/chord, (y1-y0)/chord
			fit := int((chord - aisle) / seatWidth)
			count := min(fit, left)
			left -= count
			half := float64(count-1) * seatWidth / 2
			mx, my := (x0+x1)/2, (y0+y1)/2
			bend := (xm-mx)*-uy + (ym-my)*ux // of the oval over this section
			sag := bend * (half / (chord / 2)) * (half / (chord / 2))
			mx, my = mx-uy*(bend-sag), my+ux*(bend-sag)
			r := row{
				Label: letters(inTier), Count: count, Curve: metres(sag),
				First: &Point{metres(mx - ux*half), metres(my - uy*half)}, Last: &Point{metres(mx + ux*half), metres(my + uy*half)},
			}
			if tier == 0 && inTier == 0 && count > 3 {
				r.Wheelchair, r.Companion = []int{count}, []int{count - 1}
			}
			s := &sections[tier*parts+p]
			s.Rows = append(s.Rows, r)
		}
	}
	used := sections[:0]
	for _, s := range sections {
		if len(s.Rows) > 0 {
			used = append(used, s)
		}
	}
	return parsed(&document{Name: "Stadium", Sections: used, Areas: []Area{{
		Kind: Stage, Name: "Stage", Polygon: []Point{{3000, -1200}, {4500, -1200}, {4500, 1200}, {3000, 1200}},
	}}})
}

func metres(f float64) Coord { return Coord(math.Round(f * coordsPerUnit)) }

// Cabin is an aircraft cabin whose seats belong to the pool: rows 1 to rows with the same letters, a space for the aisle
// ("ABC DEF"); the two rows over the wing are exit rows of band Extra legroom, the others are of band Standard.
// 30 rows of six make an A320.
func Cabin(rows int, letters, pool string) (*Layout, error) {
	c := cabin{From: 1, To: rows, Letters: letters, Pitch: 130}
	if rows >= 5 {
		c.ExitRows = []int{rows * 2 / 5, rows*2/5 + 1}
	}
	seats, err := c.rows("cabin")
	if err != nil {
		return nil, fmt.Errorf("sample %w", err)
	}
	for i := range seats {
		if seats[i].Exit {
			seats[i].Band = "Extra legroom"
		}
	}
	return parsed(&document{Name: "Cabin " + strings.ReplaceAll(letters, " ", "-"), Sections: []section{{
		Name: "Cabin", Kind: cabinKind, Band: "Standard", Pool: pool, Rows: seats,
	}}})
}
