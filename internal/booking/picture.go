package booking

import (
	"slices"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// withOwn is a picture in which the places of the hold that is being replaced count as free.
type withOwn struct {
	*board.Overlay
	own    []int32
	layout *venue.Layout
}

// Free says whether a seat can be had.
func (p withOwn) Free(seat int32) bool {
	return p.Overlay.Free(seat) || slices.Contains(p.own, seat)
}

// FreeInRow counts the free seats of a row.
func (p withOwn) FreeInRow(row int32) int {
	n := p.Overlay.FreeInRow(row)
	for _, seat := range p.own {
		if p.layout.RowOf[seat] == row && !p.Overlay.Free(seat) {
			n++
		}
	}
	return n
}
