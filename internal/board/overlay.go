package board

import "time"

// Overlay is a board's picture without the seats that commands in flight ask for, so that two choices of one batch do not pick the same. For one goroutine.
type Overlay struct {
	board *Board
	taken []uint64
	list  []int32         // what is in taken, to undo it
	rows  map[int32]int32 // row -> 1 + index of its latest in list
	prev  []int32         // 1 + index of the one before in the same row
	units []int64         // of each pool
}

// NewOverlay makes one with nothing taken; ended holds are free at now.
func NewOverlay(b *Board, now time.Time) *Overlay {
	o := &Overlay{rows: map[int32]int32{}}
	o.Reset(b, now)
	return o
}

// Reset makes it fit for the next batch.
func (o *Overlay) Reset(b *Board, now time.Time) {
	for _, no := range o.list {
		o.taken[no/64] = 0
	}
	o.list, o.prev = o.list[:0], o.prev[:0]
	clear(o.rows)
	if n := len(b.freeBits); n > len(o.taken) {
		o.taken = make([]uint64, n)
	}
	if n := len(b.pools); n > len(o.units) {
		o.units = make([]int64, n)
	}
	clear(o.units)
	o.board = b
	b.catchUp(now)
}

// Take takes seats away from the picture, and a unit each from their pools. For a seat that is not free anyway no unit is taken: its command will be refused.
func (o *Overlay) Take(seats []int32) {
	for _, no := range seats {
		if !o.board.knows(no) || o.has(no) {
			continue
		}
		o.taken[no/64] |= 1 << (no % 64)
		o.list = append(o.list, no)
		row := o.board.rowOf(no)
		o.prev = append(o.prev, o.rows[row])
		o.rows[row] = int32(len(o.list))
		if p := o.board.poolOf(no); p >= 0 && o.board.Free(no) {
			o.units[p]++
		}
	}
}

// TakeUnits takes units of a pool away that are asked for without a seat.
func (o *Overlay) TakeUnits(units []PoolUnits) {
	for _, u := range units {
		if u.Pool >= 0 && int(u.Pool) < len(o.board.pools) {
			o.units[u.Pool] += u.N
		}
	}
}

func (o *Overlay) has(no int32) bool { return o.taken[no/64]&(1<<(no%64)) != 0 }

func (o *Overlay) poolGives(p int16) bool {
	return p < 0 || o.board.pools[p].left.Load() > o.units[p]
}

// Free is Board.Free without what was taken.
func (o *Overlay) Free(no int32) bool {
	return o.board.Free(no) && !o.has(no) && o.poolGives(o.board.poolOf(no))
}

// FreeInRow is Board.FreeInRow without what was taken.
func (o *Overlay) FreeInRow(row int32) int {
	n := 0
	if row < 0 || int(row) >= len(o.board.rowCells) {
		return 0
	}
	for _, c := range o.board.rowCells[row] {
		if o.poolGives(o.board.cells[c].pool) {
			n += int(o.board.cells[c].free.Load())
		}
	}
	for i := o.rows[row]; i != 0; i = o.prev[i-1] {
		if no := o.list[i-1]; o.board.Free(no) && o.poolGives(o.board.poolOf(no)) {
			n--
		}
	}
	return max(0, n)
}

func (b *Board) rowOf(no int32) int32 {
	if b.shape.RowOf == nil {
		return 0
	}
	return b.shape.RowOf[no]
}
