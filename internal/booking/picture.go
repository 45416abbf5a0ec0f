package booking

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Shape is the fixed part of an event's board.
func (s *Service) Shape(ctx context.Context, e *catalog.Event) (board.Shape, error) {
	shape := board.Shape{Pools: make([]string, len(e.Pools))}
	for i, p := range e.Pools {
		shape.Pools[i] = p.Name
	}
	if e.Layout == (catalog.LayoutRef{}) {
		return shape, nil
	}
	layout, err := s.catalog.Layout(ctx, e.Layout)
	if err != nil {
		return board.Shape{}, fmt.Errorf("layout of %v: %w", e.ID, err)
	}
	shape.Seats, shape.RowOf, shape.Rows = len(layout.Seats), layout.RowOf, len(layout.Rows)
	shape.SeatPool = make([]int16, len(layout.Seats))
	for no := range layout.Seats {
		pool, ok := e.Pool(layout.Seats[no].Pool)
		if !ok {
			pool = -1
		}
		shape.SeatPool[no] = int16(pool)
	}
	return shape, nil
}

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
