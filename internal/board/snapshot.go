package board

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/andybalholm/brotli/matchfinder"
	"github.com/klauspost/compress/gzip"
)

// Levels of compression, chosen for speed: a version lives for a quarter of a second when a sale is on. Of 50,000 seats both take about 0.1 ms. Lower levels of
// gzip give up on a mixed map and leave it as long as it was; higher ones of both win a few percent for several times the work.
const (
	gzipLevel   = 5
	brotliLevel = 4
)

// Snapshot is one version of the picture. It never changes; its encodings are made when first asked for, once.
type Snapshot struct {
	Version int64   // rises; the Unix milliseconds of its tick or one more than the version before
	ETag    string  // weak, quotes included: all encodings of a version are the same picture
	Pools   []int64 // units left, by index in the Shape's Pools

	seats  int
	packed []byte // 2 bits a seat, low bits first
	board  *Board // for the names of the pools

	plain, zipped, brotlied, event lazyBytes
}

type lazyBytes struct {
	once sync.Once
	b    []byte
}

func (l *lazyBytes) get(encode func() []byte) []byte {
	l.once.Do(func() { l.b = encode() })
	return l.b
}

// Status is the shown state of a seat.
func (s *Snapshot) Status(no int32) Status {
	return Status(s.packed[no/4]>>(no%4*2)) & 3
}

// States is the shown state of every seat.
func (s *Snapshot) States() []Status {
	all := make([]Status, s.seats)
	for no := range all {
		all[no] = s.Status(int32(no))
	}
	return all
}

// JSON is {"version":N,"seats":"<base64, 2 bits a seat in layout order, low bits first>","pools":{"STANDING":311}}. As with Gzip and Brotli, the bytes are
// shared by everybody: they may be written, not changed.
func (s *Snapshot) JSON() []byte { return s.plain.get(s.encode) }

// Gzip is JSON as Content-Encoding gzip.
func (s *Snapshot) Gzip() []byte {
	return s.zipped.get(func() []byte {
		var out bytes.Buffer
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(&out)
		compress(w, s.JSON())
		return out.Bytes()
	})
}

// compress writes to a Buffer, which can't fail.
func compress(w io.WriteCloser, b []byte) {
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
}

// Brotli is JSON as Content-Encoding br.
func (s *Snapshot) Brotli() []byte {
	return s.brotlied.get(func() []byte {
		var out bytes.Buffer
		w := brotliWriters.Get().(*matchfinder.Writer)
		defer brotliWriters.Put(w)
		w.Reset(&out)
		compress(w, s.JSON())
		return out.Bytes()
	})
}

var (
	gzipWriters = sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzipLevel)
		if err != nil {
			panic(err) // the level is a constant
		}
		return w
	}}
	brotliWriters = sync.Pool{New: func() any { return brotli.NewWriterV2(nil, brotliLevel) }}
)

func (s *Snapshot) encode() []byte {
	b := make([]byte, 0, 64+base64.StdEncoding.EncodedLen(len(s.packed))+32*len(s.Pools))
	b = append(b, `{"version":`...)
	b = strconv.AppendInt(b, s.Version, 10)
	b = append(b, `,"seats":"`...)
	b = base64.StdEncoding.AppendEncode(b, s.packed)
	b = append(b, `","pools":{`...)
	b = s.board.appendPools(b, s.Pools, nil)
	return append(b, "}}"...)
}

// appendPools appends "NAME":units of all pools, or of those that differ from before.
func (b *Board) appendPools(out []byte, left, before []int64) []byte {
	comma := false
	for p, n := range left {
		if before != nil && before[p] == n {
			continue
		}
		if comma {
			out = append(out, ',')
		}
		comma = true
		out = append(out, b.pools[p].key...)
		out = strconv.AppendInt(out, n, 10)
	}
	return out
}

func (b *Board) newSnapshot(version int64, packed []byte, left []int64) *Snapshot {
	return &Snapshot{
		Version: version, ETag: `W/"` + strconv.FormatInt(version, 36) + `"`, Pools: left,
		seats: len(b.seats), packed: packed, board: b,
	}
}

// firstSnapshot looks at every seat; later ones only at what was touched.
func (b *Board) firstSnapshot(version int64) {
	packed := make([]byte, (len(b.seats)+3)/4)
	for no := range b.seats {
		setPacked(packed, int32(no), b.shown(int32(no)))
	}
	b.forgetTouched()
	b.current.Store(b.newSnapshot(version, packed, b.left()))
}

func (b *Board) left() []int64 {
	left := make([]int64, len(b.pools))
	for p := range b.pools {
		left[p] = b.pools[p].remains()
	}
	return left
}

func (b *Board) forgetTouched() {
	for _, no := range b.touched {
		b.touchedBit[no/64] = 0
	}
	b.touched = b.touched[:0]
	b.dirty.Store(false)
}

// shown is what people see: a free seat of a pool that has nothing left is not for sale.
func (b *Board) shown(no int32) Status {
	s := &b.seats[no]
	if !s.free() {
		return s.status
	}
	if p := b.poolOf(no); p >= 0 && b.pools[p].remains() == 0 {
		return Blocked
	}
	return Available
}

func setPacked(packed []byte, no int32, s Status) {
	shift := no % 4 * 2
	packed[no/4] = packed[no/4]&^(3<<shift) | byte(s)<<shift
}

// Snapshot gives the picture at now, at most TickEvery old. A reader finds it ready, or makes the next version if one is due.
func (b *Board) Snapshot(now time.Time) *Snapshot {
	if !b.due(now) {
		return b.current.Load()
	}
	b.tickMu.Lock()
	defer b.tickMu.Unlock()
	if b.due(now) { // others may have waited for the same tick
		b.tick(now)
	}
	return b.current.Load()
}

func (b *Board) due(now time.Time) bool {
	// The difference is negative for a late caller, and very much so after the clock was set back.
	since := now.UnixMilli() - b.lastTick.Load()
	if tick := TickEvery.Milliseconds(); -tick < since && since < tick {
		return false
	}
	return b.dirty.Load() || ceilMillis(now) > b.nextEnd.Load()
}

// States is the shown state of every seat, of the version that Snapshot gives.
func (b *Board) States(now time.Time) []Status { return b.Snapshot(now).States() }

// change is a seat that looks different now.
type change struct {
	no     int32
	status Status
}

// tick makes the next version, if anything looks different, and tells the streams; tickMu is held.
func (b *Board) tick(now time.Time) {
	old := b.current.Load()
	b.mu.Lock()
	b.advance(ceilMillis(now))
	b.endsChanged()
	left := b.left()
	for p := range left {
		if b.pools[p].tied && (left[p] == 0) != (old.Pools[p] == 0) {
			for no := range b.seats {
				if b.poolOf(int32(no)) == int16(p) {
					b.touch(int32(no))
				}
			}
		}
	}
	var changes []change
	for _, no := range b.touched {
		if s := b.shown(no); s != old.Status(no) {
			changes = append(changes, change{no, s})
		}
	}
	b.forgetTouched()
	b.mu.Unlock()
	b.lastTick.Store(now.UnixMilli())
	if len(changes) == 0 && slices.Equal(left, old.Pools) {
		return
	}
	packed := old.packed
	if len(changes) > 0 {
		packed = slices.Clone(packed)
	}
	for _, c := range changes {
		setPacked(packed, c.no, c.status)
	}
	next := b.newSnapshot(max(now.UnixMilli(), old.Version+1), packed, left)
	b.stream.publish(b, next, b.frame(old, next, changes))
}
