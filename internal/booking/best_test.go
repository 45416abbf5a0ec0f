package booking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// seatMap is a picture that a test can draw.
type seatMap struct {
	l    *venue.Layout
	free []bool
}

func (m *seatMap) Free(seat int32) bool { return m.free[seat] }

func (m *seatMap) FreeInRow(row int32) (n int) {
	r := m.l.Rows[row]
	for _, f := range m.free[r.First : r.First+r.Count] {
		if f {
			n++
		}
	}
	return n
}

func parseLayout(t interface{ Fatalf(string, ...any) }, text string) *venue.Layout {
	l, _, err := venue.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return l
}

// drawHall makes a small hall with aisles, bands, pools and wheelchair places anywhere, on a coarse grid so that distances tie.
func drawHall(t *rapid.T) *venue.Layout {
	var b strings.Builder
	b.WriteString(`{"format":"holdfast-layout/1","name":"Hall","focus":{"x":4,"y":0},"sections":[`)
	for s := range rapid.IntRange(1, 3).Draw(t, "sections") {
		if s > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"S%d","band":"B0","pool":%q,"rows":[`, s, rapid.SampledFrom([]string{"", "P", "Q"}).Draw(t, "pool"))
		for r := range rapid.IntRange(1, 4).Draw(t, "rows") {
			if r > 0 {
				b.WriteByte(',')
			}
			n := rapid.IntRange(2, 9).Draw(t, "count")
			y := rapid.IntRange(1, 6).Draw(t, "y")
			fmt.Fprintf(&b, `{"label":"%d","first":{"x":%d,"y":%d},"last":{"x":%d,"y":%d},"count":%d`, r, s*10, y, s*10+n-1, y, n)
			if gap := rapid.IntRange(0, n-1).Draw(t, "gap"); gap > 0 {
				fmt.Fprintf(&b, `,"gaps":[{"after":%d,"width":0}]`, gap)
			}
			if from := rapid.IntRange(0, n).Draw(t, "band"); from > 0 {
				fmt.Fprintf(&b, `,"bands":[{"from":%d,"to":%d,"band":"B1"}]`, from, rapid.IntRange(from, n).Draw(t, "to"))
			}
			if chair := rapid.IntRange(0, n-1).Draw(t, "chair"); chair > 0 {
				fmt.Fprintf(&b, `,"wheelchair":[%d],"companion":[%d]`, chair, chair+1)
			}
			b.WriteByte('}')
		}
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return parseLayout(t, b.String())
}

func drawMap(t *rapid.T, l *venue.Layout) *seatMap {
	density := rapid.IntRange(1, 10).Draw(t, "density")
	m := &seatMap{l: l, free: make([]bool, len(l.Seats))}
	for i := range m.free {
		m.free[i] = rapid.IntRange(1, 10).Draw(t, "free") <= density
	}
	return m
}

func drawWant(t *rapid.T) Want {
	return Want{
		Quantity:   rapid.IntRange(1, 7).Draw(t, "quantity"),
		Section:    rapid.SampledFrom([]string{"", "", "S0", "S1"}).Draw(t, "want section"),
		Band:       rapid.SampledFrom([]string{"", "", "B0", "B1"}).Draw(t, "want band"),
		Pool:       rapid.SampledFrom([]string{"", "", "P"}).Draw(t, "want pool"),
		Wheelchair: rapid.Bool().Draw(t, "wheelchair"),
	}
}

// wish is a want with the pool of a refused seat, which also means "no pool".
type wish struct {
	Want
	samePool bool
}

func (w wish) fits(s *venue.Seat) bool {
	return (!w.samePool || w.Pool == s.Pool) && (w.Section == "" || w.Section == s.Section) && (w.Band == "" || w.Band == s.Band) && (w.Pool == "" || w.Pool == s.Pool) &&
		(w.Wheelchair || s.Kind == venue.Standard)
}

// singles are the free standard seats without a free standard neighbour in their block, when taken are not free any more.
func singles(m *seatMap, taken []int32) map[int32]bool {
	open := func(no int32) bool {
		return m.free[no] && m.l.Seats[no].Kind == venue.Standard && !slices.Contains(taken, no)
	}
	out := map[int32]bool{}
	for _, r := range m.l.Rows {
		for _, b := range r.Blocks {
			for no := b.First; no < b.First+b.Count; no++ {
				if open(no) && !(no > b.First && open(no-1)) && !(no+1 < b.First+b.Count && open(no+1)) {
					out[no] = true
				}
			}
		}
	}
	return out
}

func leftAlone(m *seatMap, taken []int32) (out []int32) {
	before := singles(m, nil)
	for no := range singles(m, taken) {
		if !before[no] {
			out = append(out, no)
		}
	}
	slices.Sort(out)
	return out
}

// oracle ranks every block of n seats there is, by the words of the specification.
func oracle(m *seatMap, w wish, near venue.Point, preferBand string) (best []int32) {
	var bestRank []int64
	for _, r := range m.l.Rows {
		for _, b := range r.Blocks {
			for from := b.First; from+int32(w.Quantity) <= b.First+b.Count; from++ {
				var block []int32
				foreign, noChair, far := int64(0), int64(0), int64(0)
				if w.Wheelchair {
					noChair = 1
				}
				for no := from; no < from+int32(w.Quantity); no++ {
					s := &m.l.Seats[no]
					if !m.free[no] || !w.fits(s) {
						break
					}
					if preferBand != "" && s.Band != preferBand {
						foreign = 1
					}
					if s.Kind == venue.Wheelchair {
						noChair = 0
					}
					dx, dy := int64(s.X-near.X), int64(s.Y-near.Y)
					far += dx*dx + dy*dy
					block = append(block, no)
				}
				if len(block) < w.Quantity {
					continue
				}
				rank := []int64{noChair, foreign, int64(len(leftAlone(m, block))), far}
				if best == nil || slices.Compare(rank, bestRank) < 0 {
					best, bestRank = block, rank
				}
			}
		}
	}
	return best
}

// fewestGroups is the least number of stretches that w can be split over, 0 if too few seats are free.
func fewestGroups(m *seatMap, w wish) (groups int) {
	var runs []int
	for _, r := range m.l.Rows {
		for _, b := range r.Blocks {
			run := 0
			for no := b.First; no < b.First+b.Count; no++ {
				if m.free[no] && w.fits(&m.l.Seats[no]) {
					run++
					continue
				}
				runs = append(runs, run)
				run = 0
			}
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	left := w.Quantity
	for _, run := range slices.Backward(runs) {
		if run == 0 {
			return 0
		}
		groups++
		if left -= run; left <= 0 {
			return groups
		}
	}
	return 0
}

func groupsOf(f *Finder, seats []int32) int {
	groups := 1
	for i := 1; i < len(seats); i++ {
		if !f.Together(seats[i-1 : i+1]) {
			groups++
		}
	}
	return groups
}

func checkParty(t *rapid.T, m *seatMap, w wish, seats []int32) {
	if len(seats) != w.Quantity || !slices.IsSorted(seats) || len(slices.Compact(slices.Clone(seats))) != len(seats) {
		t.Fatalf("%v are not %d different seats in order", seats, w.Quantity)
	}
	for _, no := range seats {
		if !m.free[no] || !w.fits(&m.l.Seats[no]) {
			t.Fatalf("seat %s is not free or not wanted by %+v", m.l.Seats[no].Code, w)
		}
	}
}

// C-56
func TestBestIsWhatEveryBlockComparedGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawHall(t)
		f := NewFinder(l)
		for range 3 { // the same working memory for several questions
			m, w := drawMap(t, l), wish{Want: drawWant(t)}
			seats, together, ok := f.Best(w.Want, m)
			want, groups := oracle(m, w, l.Focus, ""), fewestGroups(m, w)
			switch {
			case ok != (groups > 0):
				t.Fatalf("ok %t, but %d groups would do for %+v", ok, groups, w)
			case together != (want != nil):
				t.Fatalf("together %t, but the best block is %v", together, want)
			case together && !slices.Equal(seats, want):
				t.Fatalf("%v, want %v for %+v", seats, want, w)
			}
			if !ok {
				continue
			}
			checkParty(t, m, w, seats)
			if got := groupsOf(f, seats); got != groups {
				t.Fatalf("%v is in %d groups, %d would do", seats, got, groups)
			}
		}
	})
}

// C-56
func TestAlternativesAreFreeBlocksAndTheFirstIsTheNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawHall(t)
		f, m := NewFinder(l), drawMap(t, l)
		first := rapid.Int32Range(0, int32(len(l.Seats)-1)).Draw(t, "gone")
		gone := []int32{first}
		if int(first)+1 < len(l.Seats) && rapid.Bool().Draw(t, "two") {
			gone = append(gone, first+1)
		}
		asked := &l.Seats[first]
		w := wish{Want{Quantity: rapid.IntRange(1, 5).Draw(t, "n"), Pool: asked.Pool}, true}
		var x, y int
		for _, no := range gone {
			w.Wheelchair = w.Wheelchair || l.Seats[no].Kind != venue.Standard
			x, y = x+int(l.Seats[no].X), y+int(l.Seats[no].Y)
		}
		here := venue.Point{X: venue.Coord(x / len(gone)), Y: venue.Coord(y / len(gone))}
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		got := f.Alternatives(gone, w.Quantity, m, limit)
		if len(got) > limit {
			t.Fatalf("%d blocks, limit %d", len(got), limit)
		}
		seen := map[int32]bool{}
		for _, block := range got {
			checkParty(t, m, w, block)
			for _, no := range block {
				if seen[no] {
					t.Fatalf("seat %d is offered twice in %v", no, got)
				}
				seen[no] = true
			}
		}
		best := oracle(m, w, here, asked.Band)
		switch groups := fewestGroups(m, w); {
		case best == nil && groups == 0 && got != nil:
			t.Fatalf("%v out of too few seats", got)
		case best == nil && groups > 0 && len(got) != 1:
			t.Fatalf("%v, want one split party", got)
		case best != nil && (len(got) == 0 || !slices.Equal(got[0], best)):
			t.Fatalf("%v, want %v first", got, best)
		}
	})
}

func TestLeavesOrphanGivesExactlyTheSeatsThatBecomeSingle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawHall(t)
		m := drawMap(t, l)
		var seats []int32
		for no, free := range m.free {
			if free && rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				seats = append(seats, int32(no))
			}
		}
		seats = rapid.Permutation(seats).Draw(t, "order")
		if diff := cmp.Diff(leftAlone(m, seats), NewFinder(l).LeavesOrphan(seats, m)); diff != "" {
			t.Fatalf("taking %v (-want +got):\n%s", seats, diff)
		}
	})
}

// flicker changes its mind at every look, as a board under a rush may.
type flicker struct{ r *rand.Rand }

func (f flicker) Free(int32) bool     { return f.r.IntN(2) == 0 }
func (f flicker) FreeInRow(int32) int { return f.r.IntN(9) }

func TestFinderKeepsItsPromiseOfSizeWhileThePictureChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawHall(t)
		f, w := NewFinder(l), drawWant(t)
		p := flicker{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		seats, _, ok := f.Best(w, p)
		if ok != (len(seats) == w.Quantity) || len(slices.Compact(slices.Clone(seats))) != len(seats) {
			t.Fatalf("%v for %+v, ok %t", seats, w, ok)
		}
		for _, block := range f.Alternatives([]int32{0}, w.Quantity, p, 3) {
			if len(block) != w.Quantity {
				t.Fatalf("%v, want %d seats", block, w.Quantity)
			}
		}
	})
}

const hallOfTwoRows = `{"format":"holdfast-layout/1","name":"Hall","focus":{"x":4.5,"y":0},"sections":[{"name":"Hall","rows":[
	{"label":"A","first":{"x":0,"y":2},"last":{"x":9,"y":2},"count":10,"gaps":[{"after":5,"width":0}]},
	{"label":"B","first":{"x":0,"y":3},"last":{"x":9,"y":3},"count":10,"gaps":[{"after":5,"width":0}],"wheelchair":[1],"companion":[2]}]}]}`

// draw makes a picture from one text a row: o is free, anything else is not.
func draw(t *testing.T, l *venue.Layout, rows ...string) *seatMap {
	t.Helper()
	text := strings.Join(rows, "")
	if len(text) != len(l.Seats) {
		t.Fatalf("%d characters for %d seats", len(text), len(l.Seats))
	}
	m := &seatMap{l: l, free: make([]bool, len(text))}
	for i := range text {
		m.free[i] = text[i] == 'o'
	}
	return m
}

func codes(l *venue.Layout, seats []int32) string {
	var out []string
	for _, no := range seats {
		out = append(out, l.Seats[no].Code)
	}
	return strings.Join(out, " ")
}

func TestBest(t *testing.T) {
	t.Parallel()
	l := parseLayout(t, hallOfTwoRows)
	f := NewFinder(l)
	for _, tc := range []struct {
		name     string
		rows     [2]string
		want     Want
		seats    string
		together bool
	}{
		{"front middle first", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 3}, "A3 A4 A5", true},
		{"an aisle divides", [2]string{"xxxxoooxxx", "xxxxoxxxxx"}, Want{Quantity: 3}, "A5 A6 A7", false},
		{"nobody is left alone where avoidable", [2]string{"xxoooxxxxx", "xxooxxxxxx"}, Want{Quantity: 2}, "B3 B4", true},
		{"better one left alone than a split party", [2]string{"xxoooxxxxx", "xxxxxxxxxx"}, Want{Quantity: 2}, "A4 A5", true},
		{"wheelchair places are not for everybody", [2]string{"xxxxxxxxxx", "ooxxxxxxxx"}, Want{Quantity: 1}, "", false},
		{"wheelchair place with companion", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 2, Wheelchair: true}, "B1 B2", true},
		{"a split is even and near", [2]string{"oooxxxxxoo", "xxxxxxxxoo"}, Want{Quantity: 4}, "A9 A10 B9 B10", false},
		{"too few", [2]string{"oooxxxxxxx", "xxxxxxxxxx"}, Want{Quantity: 4}, "", false},
		{"nothing", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 0}, "", false},
		{"less than nothing", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: -3}, "", false},
		{"more than there are", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 1 << 40}, "", false},
		{"an unknown section", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 1, Section: "Balcony"}, "", false},
		{"an unknown band", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 1, Band: "Gold"}, "", false},
		{"an unknown pool", [2]string{"oooooooooo", "oooooooooo"}, Want{Quantity: 1, Pool: "GOLD"}, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seats, together, ok := f.Best(tc.want, draw(t, l, tc.rows[:]...))
			if codes(l, seats) != tc.seats || together != tc.together || ok != (tc.seats != "") {
				t.Errorf("%q together %t ok %t, want %q together %t", codes(l, seats), together, ok, tc.seats, tc.together)
			}
		})
	}
}

func TestAlternatives(t *testing.T) {
	t.Parallel()
	l := parseLayout(t, hallOfTwoRows)
	f := NewFinder(l)
	m := draw(t, l, "ooxxxooooo", "xxxooxxxoo")
	gone := []int32{3, 4} // A4 A5
	var got []string
	for _, block := range f.Alternatives(gone, 2, m, 3) {
		got = append(got, codes(l, block))
	}
	if diff := cmp.Diff([]string{"B4 B5", "A6 A7", "A1 A2"}, got); diff != "" {
		t.Error(diff)
	}
	if got := f.Alternatives(gone, 6, m, 3); len(got) != 1 || f.Together(got[0]) {
		t.Errorf("%v, want one split party", got)
	}
	for name, none := range map[string][][]int32{
		"nothing asked": f.Alternatives(nil, 2, m, 3),
		"no seats":      f.Alternatives(gone, 0, m, 3),
		"too many":      f.Alternatives(gone, 12, m, 3),
		"no limit":      f.Alternatives(gone, 2, m, 0),
	} {
		if none != nil {
			t.Errorf("%s: %v", name, none)
		}
	}
}

// stadium has 50,000 seats of which about so many per thousand are free, scattered.
func stadium(b *testing.B, freePerMille int) (*Finder, *countedMap) {
	l, err := venue.Stadium(50_000)
	if err != nil {
		b.Fatal(err)
	}
	m := &countedMap{seatMap: seatMap{l: l, free: make([]bool, len(l.Seats))}, inRow: make([]int, len(l.Rows))}
	r := rand.New(rand.NewPCG(1, 2))
	for no := range m.free {
		if r.IntN(1000) < freePerMille {
			m.free[no] = true
			m.inRow[l.RowOf[no]]++
		}
	}
	return NewFinder(l), m
}

// countedMap knows the free seats of each row without counting, as a board does.
type countedMap struct {
	seatMap
	inRow []int
}

func (m *countedMap) FreeInRow(row int32) int { return m.inRow[row] }

func BenchmarkBest(b *testing.B) {
	for _, free := range []struct {
		name     string
		perMille int
	}{{"empty", 990}, {"half", 500}, {"scattered", 150}, {"last", 5}} {
		f, m := stadium(b, free.perMille)
		for _, n := range []int{2, 4, 8} {
			b.Run(fmt.Sprintf("%s/%d", free.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, ok := f.Best(Want{Quantity: n}, m); !ok {
						b.Fatal("not found")
					}
				}
			})
		}
	}
}

func BenchmarkAlternatives(b *testing.B) {
	for _, perMille := range []int{990, 500, 5, 0} {
		f, m := stadium(b, perMille)
		b.Run(fmt.Sprintf("%d", perMille), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Alternatives([]int32{25_000, 25_001}, 2, m, 3)
			}
		})
	}
}
