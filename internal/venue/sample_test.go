package venue

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func count(l *Layout, of func(*Seat) bool) (n int) {
	for i := range l.Seats {
		if of(&l.Seats[i]) {
			n++
		}
	}
	return n
}

func TestCinemaIsAHallWithAnAisleAndPlacesForWheelchairs(t *testing.T) {
	t.Parallel()
	l, err := Cinema(10, 20)
	if err != nil {
		t.Fatal(err)
	}
	checkLayout(t, l)
	if len(l.Seats) != 200 || len(l.Sections) != 1 || len(l.Rows) != 10 || len(l.Rows[3].Blocks) != 2 {
		t.Errorf("%d seats, %d sections, %d rows", len(l.Seats), len(l.Sections), len(l.Rows))
	}
	if chairs, companions := count(l, func(s *Seat) bool { return s.Kind == Wheelchair }), count(l, func(s *Seat) bool { return s.Kind == Companion }); chairs != 2 || companions != 2 {
		t.Errorf("%d wheelchair, %d companion places", chairs, companions)
	}
	if stalls, premium := count(l, func(s *Seat) bool { return s.Band == "Stalls" }), count(l, func(s *Seat) bool { return s.Band == "Premium" }); stalls != 140 || premium != 60 {
		t.Errorf("%d Stalls, %d Premium", stalls, premium)
	}
	if no, ok := l.SeatByCode("F5"); !ok || l.Seats[no].Kind != Standard {
		t.Error("there is no seat F5")
	}
	for _, size := range [][2]int{{1, 1}, {1, 2}, {2, 3}, {40, 5}} {
		l, err := Cinema(size[0], size[1])
		if err != nil || len(l.Seats) != size[0]*size[1] {
			t.Errorf("%v: %v", size, err)
		}
	}
	if _, err := Cinema(0, 20); !errors.Is(err, ErrMissing) {
		t.Errorf("no rows: %v", err)
	}
	if _, err := Cinema(10, -1); !errors.Is(err, ErrMissing) {
		t.Errorf("no seats: %v", err)
	}
}

func TestStadiumHasExactlyTheSeatsAskedFor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5, 100, 999, 10_000, 50_000, MaxSeats} {
		l, err := Stadium(n)
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if len(l.Seats) != n {
			t.Errorf("%d seats, want %d", len(l.Seats), n)
		}
		checkLayout(t, l)
	}
	for _, n := range []int{0, -1, MaxSeats + 1} {
		if _, err := Stadium(n); !errors.Is(err, ErrLimit) {
			t.Errorf("%d: %v", n, err)
		}
	}
	l, err := Stadium(50_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Sections) != 120 || strings.Join(l.Bands, ",") != "Category 1,Category 2,Category 3,Category 4" {
		t.Errorf("%d sections, bands %v", len(l.Sections), l.Bands)
	}
	if _, ok := l.SeatByCode("101-F-5"); !ok {
		t.Error("there is no seat 101-F-5")
	}
}

func TestStadiumSeatsStandApart(t *testing.T) {
	t.Parallel()
	l, err := Stadium(50_000)
	if err != nil {
		t.Fatal(err)
	}
	const nearest = 40 // hundredths of a metre
	grid := map[[2]int][]*Seat{}
	for i := range l.Seats {
		s := &l.Seats[i]
		cell := [2]int{int(math.Floor(float64(s.X) / nearest)), int(math.Floor(float64(s.Y) / nearest))}
		for dx := -1; dx <= 1; dx++ {
			for dy := -1; dy <= 1; dy++ {
				for _, o := range grid[[2]int{cell[0] + dx, cell[1] + dy}] {
					if d := math.Hypot(float64(s.X-o.X), float64(s.Y-o.Y)); d < nearest {
						t.Fatalf("%s and %s are %.0f cm apart", s.Code, o.Code, d)
					}
				}
			}
		}
		grid[cell] = append(grid[cell], s)
	}
}

func TestCabinHasRowsOfLettersWithAnAisle(t *testing.T) {
	t.Parallel()
	l, err := Cabin(30, "ABC DEF", "ECONOMY")
	if err != nil {
		t.Fatal(err)
	}
	checkLayout(t, l)
	if len(l.Seats) != 180 || count(l, func(s *Seat) bool { return s.Pool == "ECONOMY" }) != 180 || !l.Sections[0].Cabin {
		t.Errorf("%d seats in %+v", len(l.Seats), l.Sections)
	}
	no, ok := l.SeatByCode("12C")
	if !ok {
		t.Fatal("there is no seat 12C")
	}
	if r := l.Rows[l.RowOf[no]]; !r.Exit || r.Blocks[0] != (Block{r.First, 3}) || no != r.First+2 {
		t.Errorf("row 12: %+v", r)
	}
	if _, err := Cabin(0, "ABC", "Y"); !errors.Is(err, ErrValue) {
		t.Errorf("no rows: %v", err)
	}
	if _, err := Cabin(3, "", "Y"); !errors.Is(err, ErrValue) {
		t.Errorf("no letters: %v", err)
	}
}
