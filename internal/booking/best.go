package booking

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// MaxAlternatives is the most blocks that Alternatives offers.
const MaxAlternatives = 10

// Picture is what the finder sees of an event right now. It may change while the finder looks: then the answer may be stale,
// which the hold will find out.
type Picture interface {
	Free(seat int32) bool
	// FreeInRow counts the free seats of a row (an index into Layout.Rows), so that full rows cost one call.
	FreeInRow(row int32) int
}

// Want is what somebody asks the finder for.
type Want struct {
	Quantity            int
	Section, Band, Pool string // "" for any
	// Wheelchair gives wheelchair and companion places too, and prefers blocks with a wheelchair place. Without it they are
	// never given.
	Wheelchair bool
}

// Finder finds the best available seats of one layout. It is made once per layout and used by any number of goroutines.
//
// Best is the seats together in one row, then no single seat left alone, then closest to the layout's focus. Distances are
// squared and summed over the block's seats, in integers: the same question about the same picture has one answer.
type Finder struct {
	l        *venue.Layout
	traits   []trait   // by seat
	band     []int32   // by seat: index into Layout.Bands
	toFocus  []int64   // prefix sums of the squared distance to the focus; differences are right even where the sums wrap around
	nearest  []int64   // by row: least squared distance of a seat
	rowBands []uint64  // by row: a bit for each band modulo 64, to skip rows without the band
	all      []int32   // rows, nearest first
	inPart   [][]int32 // by section: its rows, nearest first
	around   []circle  // by section
	chords   []chord   // by row
	rowPool  []int32   // by row: number of the pool
	scratch  sync.Pool // *search
	sections map[string]int32
	bands    map[string]int32
	pools    map[string]int32
}

type trait uint8

const (
	joined   trait = 1 << iota // no aisle between this seat and the one before it
	standard                   // neither wheelchair nor companion place
	chair                      // wheelchair place

	// Set while searching, for one picture and one want.
	given // free and asked for
	loose // free and standard: what can be left alone
)

const (
	anyBand = -1
	anyPool = -1
)

// circle holds all seats of a section.
type circle struct{ x, y, radius float64 }

// chord is the straight line from a row's first seat to its last; no seat is farther from it than slack.
type chord struct{ x, y, dx, dy, slack float64 }

// from is how far a point is from the line, not squared.
func (c *chord) from(x, y float64) float64 {
	x, y = x-c.x, y-c.y
	if length := c.dx*c.dx + c.dy*c.dy; length > 0 {
		t := min(1, max(0, (x*c.dx+y*c.dy)/length))
		x, y = x-t*c.dx, y-t*c.dy
	}
	return math.Sqrt(x*x + y*y)
}

// NewFinder prepares the search; it takes about as long as parsing the layout.
func NewFinder(l *venue.Layout) *Finder {
	f := &Finder{
		l: l, traits: make([]trait, len(l.Seats)), band: make([]int32, len(l.Seats)), toFocus: make([]int64, len(l.Seats)+1),
		nearest: make([]int64, len(l.Rows)), rowBands: make([]uint64, len(l.Rows)), all: make([]int32, len(l.Rows)),
		inPart: make([][]int32, len(l.Sections)), around: make([]circle, len(l.Sections)),
		chords: make([]chord, len(l.Rows)), rowPool: make([]int32, len(l.Rows)), pools: map[string]int32{},
		sections: make(map[string]int32, len(l.Sections)), bands: make(map[string]int32, len(l.Bands)),
	}
	f.scratch.New = func() any { return new(search) }
	for i, s := range l.Sections {
		f.sections[s.Name] = int32(i)
		if _, known := f.pools[s.Pool]; !known {
			f.pools[s.Pool] = int32(len(f.pools))
		}
	}
	for i, b := range l.Bands {
		f.bands[b] = int32(i)
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		f.all[i], f.nearest[i] = int32(i), math.MaxInt64
		f.chords[i], f.rowPool[i] = f.chordOf(r), f.pools[l.Sections[r.Section].Pool]
		for _, b := range r.Blocks {
			for no := b.First; no < b.First+b.Count; no++ {
				s := &l.Seats[no]
				f.band[no] = f.bands[s.Band]
				f.rowBands[i] |= bandBit(f.band[no])
				if no > b.First {
					f.traits[no] |= joined
				}
				switch s.Kind {
				case venue.Standard:
					f.traits[no] |= standard
				case venue.Wheelchair:
					f.traits[no] |= chair
				case venue.Companion: // neither: never given unasked, and no reason to prefer a block
				}
				d := f.distance(no, l.Focus)
				f.toFocus[no+1] = f.toFocus[no] + d
				f.nearest[i] = min(f.nearest[i], d)
			}
		}
	}
	slices.SortStableFunc(f.all, func(a, b int32) int { return cmp.Compare(f.nearest[a], f.nearest[b]) })
	for _, r := range f.all {
		s := l.Rows[r].Section
		f.inPart[s] = append(f.inPart[s], r)
	}
	for i := range l.Sections {
		f.around[i] = f.circleOf(f.inPart[i])
	}
	return f
}

func bandBit(band int32) uint64 { return 1 << (uint(band) % 64) }

func (f *Finder) chordOf(r *venue.Row) chord {
	seats := f.l.Seats[r.First:][:r.Count]
	first, last := &seats[0], &seats[len(seats)-1]
	c := chord{x: float64(first.X), y: float64(first.Y), dx: float64(last.X - first.X), dy: float64(last.Y - first.Y)}
	for i := range seats {
		c.slack = max(c.slack, c.from(float64(seats[i].X), float64(seats[i].Y)))
	}
	c.slack++ // for rounding
	return c
}

func (f *Finder) circleOf(rows []int32) circle {
	lowX, lowY, highX, highY := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, r := range rows {
		for _, s := range f.l.Seats[f.l.Rows[r].First:][:f.l.Rows[r].Count] {
			lowX, highX = min(lowX, float64(s.X)), max(highX, float64(s.X))
			lowY, highY = min(lowY, float64(s.Y)), max(highY, float64(s.Y))
		}
	}
	return circle{x: (lowX + highX) / 2, y: (lowY + highY) / 2, radius: math.Hypot(highX-lowX, highY-lowY)/2 + 1}
}

// distance is squared, in hundredths of a layout unit; below 2^53, so that a row of them can be summed up.
func (f *Finder) distance(seat int32, p venue.Point) int64 {
	dx, dy := int64(f.l.Seats[seat].X)-int64(p.X), int64(f.l.Seats[seat].Y)-int64(p.Y)
	return dx*dx + dy*dy
}

// search is the working memory of one question, reused so that a question allocates nothing but its answer.
type search struct {
	f      *Finder
	p      Picture
	want   Want
	band   int32       // the only one, or anyBand
	prefer int32       // the better one, or anyBand
	pool   int32       // the only one, or anyPool; the pool "" is that of the seats without one
	here   venue.Point // what the seats should be near to
	moved  bool        // here is not the focus, whose distances are summed up

	row   []trait // of the row that was loaded, with a blank at each end so that neighbours need no bounds
	first int32   // its first seat
	count int32

	runs  []run
	sizes []int32 // runs by length, at most the wanted quantity
	split []piece // the best split so far
	trial []piece
}

// run is a longest stretch of seats that can be given and are not separated by an aisle.
type run struct {
	row, first, count int32
	used              bool
}

// piece is a part of a split party: so many seats of a run.
type piece struct{ run, count int32 }

// window is a candidate: seats first to first+quantity-1 of a run.
type window struct {
	first   int32
	noChair bool // a wheelchair place was asked for and is not in it
	foreign bool // it has a seat of another band than the preferred one
	alone   int8 // seats that it would leave alone
	far     int64
}

func (a window) compare(b window) int {
	switch {
	case a.noChair != b.noChair:
		return order(a.noChair)
	case a.foreign != b.foreign:
		return order(a.foreign)
	case a.alone != b.alone:
		return cmp.Compare(a.alone, b.alone)
	case a.far != b.far:
		return cmp.Compare(a.far, b.far)
	}
	return cmp.Compare(a.first, b.first)
}

func order(worse bool) int {
	if worse {
		return 1
	}
	return -1
}

func (f *Finder) begin(w Want, p Picture) *search {
	s := f.scratch.Get().(*search)
	s.f, s.p, s.want, s.band, s.prefer, s.pool, s.here, s.moved = f, p, w, anyBand, anyBand, anyPool, f.l.Focus, false
	return s
}

func (s *search) end() {
	s.p = nil
	s.f.scratch.Put(s)
}

// rows gives the rows that can have what is wanted, nearest to the focus first; ok is false for an unknown section, band or pool.
func (s *search) rows() (rows []int32, ok bool) {
	rows = s.f.all
	if s.want.Section != "" {
		part, known := s.f.sections[s.want.Section]
		if !known {
			return nil, false
		}
		rows = s.f.inPart[part]
	}
	if s.want.Band != "" {
		band, known := s.f.bands[s.want.Band]
		if !known {
			return nil, false
		}
		s.band = band
	}
	if s.want.Pool != "" {
		pool, known := s.f.pools[s.want.Pool]
		if !known {
			return nil, false
		}
		s.pool = pool
	}
	return rows, true
}

// has says whether a row can have at least so many wanted seats, by what costs little to know.
func (s *search) has(row int32, least int) bool {
	if s.band >= 0 && s.f.rowBands[row]&bandBit(s.band) == 0 {
		return false
	}
	if s.pool >= 0 && s.f.rowPool[row] != s.pool {
		return false
	}
	return s.p.FreeInRow(row) >= least
}

// load reads one row of the picture, once: everything decided about the row sees the same seats.
func (s *search) load(row int32) {
	r := &s.f.l.Rows[row]
	s.first, s.count = r.First, r.Count
	s.row = append(s.row[:0], 0)
	for i, t := range s.f.traits[r.First : r.First+r.Count] {
		no := r.First + int32(i)
		if s.p.Free(no) {
			if t&standard != 0 {
				t |= loose
			}
			if (t&standard != 0 || s.want.Wheelchair) && (s.band < 0 || s.f.band[no] == s.band) {
				t |= given
			}
		}
		s.row = append(s.row, t)
	}
	s.row = append(s.row, 0, 0)
}

// nextRun finds the next run of the loaded row from offset from on; count 0 when there is none.
func (s *search) nextRun(from int32) (start, count int32) {
	start = from
	for start < s.count && s.row[start+1]&given == 0 {
		start++
	}
	end := start
	for end < s.count && s.row[end+1]&given != 0 && (end == start || s.row[end+1]&joined != 0) {
		end++
	}
	return start, end - start
}

// far is the summed squared distance of seats first to first+n-1.
func (s *search) far(first, n int32) int64 {
	if !s.moved {
		return s.f.toFocus[first+n] - s.f.toFocus[first]
	}
	sum := int64(0)
	for no := first; no < first+n; no++ {
		sum += s.f.distance(no, s.here)
	}
	return sum
}

// bestIn finds the best n seats inside a run of the loaded row. noChair only counts where wheelchair places are wanted.
func (s *search) bestIn(start, count, n int32) window {
	var best window
	lastChair, lastForeign := int32(-1), int32(-1)
	next := start
	for i := start; i+n <= start+count; i++ {
		for ; next < i+n; next++ {
			if s.row[next+1]&chair != 0 {
				lastChair = next
			}
			if s.prefer >= 0 && s.f.band[s.first+next] != s.prefer {
				lastForeign = next
			}
		}
		w := window{
			first: s.first + i, noChair: s.want.Wheelchair && lastChair < i, foreign: lastForeign >= i,
			alone: s.alone(i, n), far: s.far(s.first+i, n),
		}
		if i == start || w.compare(best) < 0 {
			best = w
		}
	}
	return best
}

// alone counts the seats beside a window that would be left between it and the next taken seat or aisle, and were not alone
// before. Wheelchair and companion places do not count as company, because they are not for everybody, nor as left alone.
func (s *search) alone(i, n int32) (count int8) {
	at := s.row[i+1:] // at[0] is the first seat of the window
	if at[0]&(joined|loose) == joined|loose && s.row[i]&loose != 0 && (s.row[i]&joined == 0 || s.row[i-1]&loose == 0) {
		count++
	}
	last, next, after := at[n-1], at[n], at[n+1]
	if last&loose != 0 && next&(joined|loose) == joined|loose && after&(joined|loose) != joined|loose {
		count++
	}
	return count
}

// Best finds the best seats for w. They are in layout order. together is false when the party had to be split, because no row has
// so many seats beside each other: then it is in as few groups as possible, of sizes as even as possible, close to each
// other. ok is false only when fewer matching seats than wanted are free, or none were wanted.
func (f *Finder) Best(w Want, p Picture) (seats []int32, together, ok bool) {
	if w.Quantity < 1 || w.Quantity > len(f.l.Seats) {
		return nil, false, false
	}
	s := f.begin(w, p)
	defer s.end()
	rows, known := s.rows()
	if !known {
		return nil, false, false
	}
	if w.Quantity <= venue.MaxRowSeats {
		if best, found := s.block(rows); found {
			return sequence(best.first, w.Quantity), true, true
		}
	}
	seats = s.divide(rows)
	return seats, false, seats != nil
}

func sequence(first int32, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = first + int32(i)
	}
	return out
}

// block finds the best window of one row. Rows come nearest first, so it can stop when even a perfect block of the next row would lose.
func (s *search) block(rows []int32) (best window, found bool) {
	n := int32(s.want.Quantity)
	for _, row := range rows {
		if found && !best.noChair && best.alone == 0 && int64(n)*s.f.nearest[row] > best.far {
			break
		}
		if !s.has(row, s.want.Quantity) {
			continue
		}
		s.load(row)
		for start, count := s.nextRun(0); count > 0; start, count = s.nextRun(start + count) {
			if count < n {
				continue
			}
			if w := s.bestIn(start, count, n); !found || w.compare(best) < 0 {
				best, found = w, true
			}
		}
	}
	return best, found
}

// anchors: a split is tried from so many first groups, the best by themselves. More find little and cost a pass each.
const anchors = 4

// divide splits the party over the fewest runs: taking the longest ones says how many that are. From each anchor, the other groups
// are the nearest ones that keep that number reachable. nil when fewer seats than wanted are free.
func (s *search) divide(rows []int32) []int32 {
	n := s.want.Quantity
	s.collect(rows)
	groups := s.groups(n)
	if groups == 0 {
		return nil
	}
	first := s.anchors(n, groups)
	bestCost := int64(math.MaxInt64)
	s.split = s.split[:0]
	for _, a := range first {
		if a < 0 {
			break
		}
		if cost := s.from(a, n, groups); cost < bestCost || len(s.split) == 0 {
			bestCost = cost
			s.split = append(s.split[:0], s.trial...)
		}
	}
	out := make([]int32, 0, n)
	for _, piece := range s.split {
		r := s.runs[piece.run]
		s.load(r.row)
		w := s.bestIn(r.first-s.first, r.count, piece.count)
		for i := range piece.count {
			out = append(out, w.first+i)
		}
	}
	slices.Sort(out)
	return out
}

// collect finds all runs.
func (s *search) collect(rows []int32) {
	n := int32(s.want.Quantity)
	s.runs = s.runs[:0]
	s.sizes = slices.Grow(s.sizes[:0], int(n)+1)[:n+1]
	clear(s.sizes)
	for _, row := range rows {
		if !s.has(row, 1) {
			continue
		}
		s.load(row)
		for start, count := s.nextRun(0); count > 0; start, count = s.nextRun(start + count) {
			s.runs = append(s.runs, run{row: row, first: s.first + start, count: count})
			s.sizes[min(count, n)]++
		}
	}
}

// groups is the least number of runs that have n seats, 0 when all have fewer.
func (s *search) groups(n int) (count int) {
	for size := len(s.sizes) - 1; size > 0; size-- {
		for range s.sizes[size] {
			count++
			if n -= size; n <= 0 {
				return count
			}
		}
	}
	return 0
}

// longest is the number of seats in the k longest unused runs.
func (s *search) longest(k int) (seats int) {
	for size := len(s.sizes) - 1; size > 0 && k > 0; size-- {
		take := min(k, int(s.sizes[size]))
		seats += take * size
		k -= take
	}
	return seats
}

// take marks a run as used and says how many seats to take from it for n seats in k runs: an even share, as long as the others
// can give the rest.
func (s *search) take(i int32, n, k int) int {
	r := &s.runs[i]
	r.used = true
	s.sizes[min(int(r.count), len(s.sizes)-1)]--
	return min(int(r.count), n-(k-1), max((n+k-1)/k, n-s.longest(k-1)))
}

func (s *search) putBack(i int32) {
	s.runs[i].used = false
	s.sizes[min(int(s.runs[i].count), len(s.sizes)-1)]++
}

// anchors gives the runs to try first, filled up with -1.
func (s *search) anchors(n, groups int) (best [anchors]int32) {
	var quality [anchors]window
	for i := range best {
		best[i] = -1
	}
	least := n - s.longest(groups-1) // shorter runs would make one group more
	for i := range s.runs {
		r := &s.runs[i]
		if int(r.count) < least {
			continue
		}
		w := window{first: r.first, noChair: s.want.Wheelchair && !s.chairIn(r), far: s.toRun(r)}
		at := int32(i)
		for j := range best {
			if best[j] < 0 || w.compare(quality[j]) < 0 {
				best[j], at = at, best[j]
				quality[j], w = w, quality[j]
			}
			if at < 0 {
				break
			}
		}
	}
	return best
}

func (s *search) chairIn(r *run) bool {
	for no := r.first; no < r.first+r.count; no++ {
		if s.f.traits[no]&chair != 0 {
			return true
		}
	}
	return false
}

// toRun is the squared distance of the middle of a run.
func (s *search) toRun(r *run) int64 {
	return s.f.distance(r.first+r.count/2, s.here)
}

// from builds a split in s.trial that begins with run a, and says what it costs: how far its people are from where they want to be and from a.
func (s *search) from(a int32, n, groups int) (cost int64) {
	middle := s.runs[a].first + s.runs[a].count/2
	there := venue.Point{X: s.f.l.Seats[middle].X, Y: s.f.l.Seats[middle].Y}
	s.trial = s.trial[:0]
	cost = s.toRun(&s.runs[a]) * int64(n)
	for i, k := a, groups; ; {
		count := s.take(i, n, k)
		s.trial = append(s.trial, piece{run: i, count: int32(count)})
		cost += s.f.distance(s.runs[i].first+s.runs[i].count/2, there) * int64(count)
		n, k = n-count, k-1
		if k == 0 {
			break
		}
		least, nearest := n-s.longest(k-1), int64(math.MaxInt64)
		for j := range s.runs {
			r := &s.runs[j]
			if r.used || int(r.count) < least {
				continue
			}
			if d := s.f.distance(r.first+r.count/2, there); d < nearest {
				i, nearest = int32(j), d
			}
		}
	}
	for _, p := range s.trial {
		s.putBack(p.run)
	}
	return cost
}

// Alternatives finds blocks of n free seats that can be offered when the asked seats are gone: one from each stretch of free
// seats, those of the first asked seat's band before others, nearest to the asked seats first. All are of the first asked
// seat's pool, or of none like it; wheelchair and companion places are offered only if one was asked for. When there is no such block, it offers
// one split party; nil when too few seats are free.
func (f *Finder) Alternatives(gone []int32, n int, p Picture, limit int) [][]int32 {
	limit = min(limit, MaxAlternatives)
	if len(gone) == 0 || n < 1 || n > len(f.l.Seats) || limit < 1 {
		return nil
	}
	w, home := Want{Quantity: n}, f.l.RowOf[gone[0]]
	var x, y int64
	for _, no := range gone {
		x, y = x+int64(f.l.Seats[no].X), y+int64(f.l.Seats[no].Y)
		w.Wheelchair = w.Wheelchair || f.traits[no]&standard == 0
	}
	s := f.begin(w, p)
	defer s.end()
	s.here = venue.Point{X: venue.Coord(x / int64(len(gone))), Y: venue.Coord(y / int64(len(gone)))}
	s.moved, s.pool = true, f.rowPool[home]
	var room [MaxAlternatives]window
	found := room[:0]
	if n <= venue.MaxRowSeats {
		s.prefer = f.band[gone[0]]
		found = s.near(found, home, limit)
		s.prefer = anyBand
	}
	if len(found) == 0 {
		s.band = f.band[gone[0]]
		seats := s.divide(f.all)
		if seats == nil {
			s.band = anyBand
			seats = s.divide(f.all)
		}
		if seats == nil {
			return nil
		}
		return [][]int32{seats}
	}
	out := make([][]int32, len(found))
	for i := range found {
		out[i] = sequence(found[i].first, n)
	}
	return out
}

// near adds the best windows to found, at most limit. It goes from the asked row outwards through its section, then through the
// other sections, and looks only into rows that could have something nearer than what was found.
func (s *search) near(found []window, home int32, limit int) []window {
	part := s.f.l.Rows[home].Section
	section := &s.f.l.Sections[part]
	first, end := section.FirstRow, section.FirstRow+section.Rows
	for up, down := home, home+1; up >= first || down < end; up, down = up-1, down+1 {
		if up >= first {
			found = s.nearIn(found, up, limit)
		}
		if down < end {
			found = s.nearIn(found, down, limit)
		}
	}
	x, y := float64(s.here.X), float64(s.here.Y)
	for i := range s.f.around {
		c, other := &s.f.around[i], &s.f.l.Sections[i]
		if int32(i) == part || !s.canBeat(found, limit, math.Sqrt((c.x-x)*(c.x-x)+(c.y-y)*(c.y-y))-c.radius) {
			continue
		}
		for row := other.FirstRow; row < other.FirstRow+other.Rows; row++ {
			found = s.nearIn(found, row, limit)
		}
	}
	return found
}

// canBeat says whether seats at least so far away may be better than the worst that was found: if that has any flaw, they may.
func (s *search) canBeat(found []window, limit int, away float64) bool {
	if len(found) < limit {
		return true
	}
	w := found[limit-1]
	return w.noChair || w.foreign || w.alone > 0 || away <= 0 || float64(s.want.Quantity)*away*away <= float64(w.far)
}

func (s *search) nearIn(found []window, row int32, limit int) []window {
	n := int32(s.want.Quantity)
	c := &s.f.chords[row]
	if !s.canBeat(found, limit, c.from(float64(s.here.X), float64(s.here.Y))-c.slack) || !s.has(row, s.want.Quantity) {
		return found
	}
	s.load(row)
	for start, count := s.nextRun(0); count > 0; start, count = s.nextRun(start + count) {
		if count < n {
			continue
		}
		w := s.bestIn(start, count, n)
		at, _ := slices.BinarySearchFunc(found, w, window.compare)
		if at == limit {
			continue
		}
		if len(found) == limit {
			found = found[:limit-1]
		}
		found = slices.Insert(found, at, w)
	}
	return found
}

// LeavesOrphan gives the free seats that taking these would leave alone between taken seats or aisles and that were not alone
// before, in layout order. Wheelchair and companion places are neither company nor left alone, as in Best.
func (f *Finder) LeavesOrphan(seats []int32, p Picture) []int32 {
	company := func(no int32) bool {
		return f.traits[no]&standard != 0 && !slices.Contains(seats, no) && p.Free(no)
	}
	var out []int32
	for _, no := range seats {
		if f.traits[no]&standard == 0 {
			continue
		}
		if f.before(no) && company(no-1) && !(f.before(no-1) && company(no-2)) {
			out = append(out, no-1)
		}
		if f.before(no+1) && company(no+1) && !(f.before(no+2) && company(no+2)) {
			out = append(out, no+1)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// before says whether a seat is beside the one before it.
func (f *Finder) before(no int32) bool {
	return int(no) < len(f.traits) && f.traits[no]&joined != 0
}

// Together says whether seats, in layout order, are beside each other with no aisle between them.
func (f *Finder) Together(seats []int32) bool {
	for i := 1; i < len(seats); i++ {
		if seats[i] != seats[i-1]+1 || !f.before(seats[i]) {
			return false
		}
	}
	return true
}
