package venue

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// expand is a client: it derives the seats from the wire form alone, with the arithmetic of a browser (float64 and floor).
func expand(t testing.TB, wire []byte) []Seat {
	t.Helper()
	var w struct {
		V        int
		Bands    []string
		Sections []struct {
			Name, Code, Pool string
			Rows             [][]json.RawMessage
		}
	}
	if err := json.Unmarshal(wire, &w); err != nil || w.V != 1 {
		t.Fatalf("version %d: %v", w.V, err)
	}
	seats := []Seat{}
	for _, section := range w.Sections {
		var line [6]float64
		for _, r := range section.Rows {
			var label string
			var n [11]float64
			var extra struct {
				G, K [][2]int
				B    [][3]int
				N    []string
				P    []float64
			}
			into(t, r[0], &label)
			for i := 1; i < len(n); i++ {
				into(t, r[i], &n[i])
			}
			if len(r) > 11 {
				into(t, r[11], &extra)
			}
			for i := range line {
				line[i] += n[5+i]
			}
			count := int(n[1])
			slot := make([]float64, count)
			last := float64(count - 1)
			for _, g := range extra.G {
				for i := g[0]; i < count; i++ {
					slot[i] += float64(g[1])
				}
				last += float64(g[1])
			}
			x, y := line[0], line[1]
			for i := range count {
				s := Seat{
					No: int32(len(seats)), Section: section.Name, Row: label, Pool: section.Pool, Band: w.Bands[int(n[2])],
					Number: strconv.Itoa(int(n[3]) + i*int(n[4])),
				}
				if extra.N != nil {
					s.Number = extra.N[i]
				}
				for _, b := range extra.B {
					if b[0] <= i+1 && i+1 <= b[1] {
						s.Band = w.Bands[b[2]]
					}
				}
				for _, k := range extra.K {
					if k[0] == i+1 {
						s.Kind = Kind(k[1])
					}
				}
				switch {
				case extra.P != nil && i > 0:
					x, y = x+extra.P[2*i-2], y+extra.P[2*i-1]
				case extra.P == nil && last > 0:
					at := slot[i] + float64(i)
					x = line[0] + divide((line[2]-line[0])*at, last) + divide(4*line[4]*at*(last-at), last*last)
					y = line[1] + divide((line[3]-line[1])*at, last) + divide(4*line[5]*at*(last-at), last*last)
				}
				s.X, s.Y = Coord(x), Coord(y)
				s.Code = clientCode(section.Code, label, s.Number)
				seats = append(seats, s)
			}
		}
	}
	return seats
}

func into(t testing.TB, data json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func divide(a, b float64) float64 { return math.Floor((2*a + b) / (2 * b)) }

func clientCode(prefix, row, number string) string {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	if prefix == "" && row != "" && digit(row[len(row)-1]) != digit(number[0]) {
		return row + number
	}
	code := ""
	for _, part := range []string{prefix, row, number} {
		if part != "" && code != "" {
			code += "-"
		}
		code += part
	}
	return code
}

func TestAClientDerivesEverySeatFromTheWireForm(t *testing.T) {
	t.Parallel()
	for name, l := range someLayouts(t) {
		if diff := cmp.Diff(l.Seats, expand(t, l.Wire())); diff != "" {
			t.Errorf("%s:\n%.2000s", name, diff)
		}
	}
}

// The golden files are for the browser's tests too: a wire form, and the seats that a client must derive from it.
func TestWireFormsAreGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hall", "pretix"} {
		l, _ := parse(t, read(t, name+".json"))
		var seats bytes.Buffer
		seats.WriteString("[\n")
		for i := range l.Seats {
			s := &l.Seats[i]
			b, err := json.Marshal([]any{s.Code, s.Section, s.Row, s.Number, s.Band, s.Pool, s.Kind, int32(s.X), int32(s.Y)})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&seats, "%s%s\n", b, map[bool]string{true: "", false: ","}[i == len(l.Seats)-1])
		}
		seats.WriteString("]\n")
		for suffix, got := range map[string][]byte{".wire.json": append(l.Wire(), '\n'), ".seats.json": seats.Bytes()} {
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", name+suffix), got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, name+suffix)), string(got)); diff != "" {
				t.Errorf("%s%s, -update writes it:\n%s", name, suffix, diff)
			}
		}
	}
}

func TestAStadiumTravelsInThirtyKilobytes(t *testing.T) {
	t.Parallel()
	l, err := Stadium(50_000)
	if err != nil {
		t.Fatal(err)
	}
	wire := l.Wire()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(wire); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > 30_000 {
		t.Errorf("%d bytes, %d of them packed", len(wire), packed.Len())
	}
	if diff := cmp.Diff(l.Seats, expand(t, wire)); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	t.Logf("%d bytes, gzip %d", len(wire), packed.Len())
}
