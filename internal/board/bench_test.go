package board

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

func soldOut(seats int) *Board {
	var n News
	random := rand.New(rand.NewPCG(1, 2))
	for no := range int32(seats) {
		n.Seats = append(n.Seats, Seat{No: no, Status: Status(1 + random.IntN(2)), Until: until(1 << 40), Holder: uint64(no), Epoch: 1})
	}
	n.Buckets = []Bucket{{Room: 100, Sold: 100}}
	return New(Shape{Seats: seats, Pools: []string{"STANDING"}}, n, t0)
}

func BenchmarkRefuseSeats(b *testing.B) {
	x := soldOut(50_000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		seats := []int32{17, 18}
		for pb.Next() {
			if gone, _ := x.Refuse(seats, nil, 1, 0, t0); len(gone) == 0 {
				b.Fail()
			}
		}
	})
}

func BenchmarkRefuseUnits(b *testing.B) {
	x := soldOut(0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		units := []PoolUnits{{0, 2}}
		for pb.Next() {
			if _, gone := x.Refuse(nil, units, 1, 0, t0); len(gone) == 0 {
				b.Fail()
			}
		}
	})
}

// Refusing while a lane tells of 500 seats again and again.
func BenchmarkRefuseWhileSelling(b *testing.B) {
	x := soldOut(50_000)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		var n News
		for no := range int32(500) {
			n.Seats = append(n.Seats, Seat{No: no, Status: Held, Until: until(1 << 40)})
		}
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for e := int32(2); !stop.Load(); e++ {
			for i := range n.Seats {
				n.Seats[i].Epoch = e
			}
			x.Apply(n, t0)
			<-pace.C
		}
	}()
	b.RunParallel(func(pb *testing.PB) {
		seats := []int32{17, 18}
		for pb.Next() {
			x.Refuse(seats, nil, 1, 0, t0)
		}
	})
	stop.Store(true)
	<-done
}

func BenchmarkSnapshotServed(b *testing.B) {
	x := soldOut(50_000)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if len(x.Snapshot(t0).Gzip()) == 0 {
				b.Fail()
			}
		}
	})
}

func BenchmarkRegistryLookup(b *testing.B) {
	r := NewRegistry(Config{Now: func() time.Time { return t0 }})
	e := &entry{board: soldOut(0)}
	r.boards[1] = e
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Lookup(1)
		}
	})
}

func BenchmarkApply500Seats(b *testing.B) {
	x := New(plain(50_000), News{}, t0)
	n := News{Seats: make([]Seat, 500)}
	b.ReportAllocs()
	for i := range b.N {
		for k := range n.Seats {
			n.Seats[k] = Seat{No: int32((i*500 + k) % 50_000), Status: Held, Until: until(int64(i) + 600_000), Epoch: int32(i + 1)}
		}
		x.Apply(n, at(int64(i)))
	}
}

func BenchmarkTickOf500SeatsAmong50000(b *testing.B) {
	x := New(plain(50_000), News{}, t0)
	n := News{Seats: make([]Seat, 500)}
	for i := range b.N {
		for k := range n.Seats {
			n.Seats[k] = Seat{No: int32((i*500 + k) % 50_000), Status: Status(2 - i/100%2*2), Epoch: int32(i + 1)}
		}
		x.Apply(n, at(int64(i)*250))
		x.Snapshot(at(int64(i) * 250))
	}
}

func BenchmarkEncode50000Seats(b *testing.B) {
	s := soldOut(50_000).Snapshot(t0)
	for name, encode := range map[string]func(*Snapshot) []byte{"json": (*Snapshot).JSON, "gzip": (*Snapshot).Gzip, "brotli": (*Snapshot).Brotli} {
		b.Run(name, func(b *testing.B) {
			var size int
			for range b.N {
				fresh := Snapshot{Version: s.Version, Pools: s.Pools, seats: s.seats, packed: s.packed, board: s.board}
				if name != "json" {
					fresh.plain.b = s.JSON()
					fresh.plain.once.Do(func() {})
				}
				size = len(encode(&fresh))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

func BenchmarkReload50000Seats(b *testing.B) {
	x := soldOut(50_000)
	var n News
	for no, s := range x.seats {
		n.Seats = append(n.Seats, Seat{No: int32(no), Status: s.status, Until: s.until, Holder: s.holder, Epoch: s.epoch})
	}
	for b.Loop() {
		x.Reload(n, x.BeginReload(), t0)
	}
}

func BenchmarkFreeOf50000Seats(b *testing.B) {
	x := soldOut(50_000)
	o := NewOverlay(x, t0)
	for b.Loop() {
		n := 0
		for no := range int32(50_000) {
			if o.Free(no) {
				n++
			}
		}
		if n != 0 {
			b.Fail()
		}
	}
}
