package board

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
)

func TestASnapshotSaysWhatTheContractSaysInEveryEncoding(t *testing.T) {
	t.Parallel()
	b := New(Shape{Seats: 6, Pools: []string{"STANDING", `odd "name"`}}, News{
		Seats:   []Seat{{No: 1, Status: Held, Until: until(9999), Epoch: 1}, {No: 2, Status: Sold, Epoch: 1}, {No: 3, Status: Blocked, Epoch: 1}, {No: 5, Status: Sold, Epoch: 1}},
		Buckets: []Bucket{{Pool: 0, Room: 311}, {Pool: 1, Room: 5, Sold: 7}},
	}, t0)
	s := b.Snapshot(t0)
	var got struct {
		Version int64
		Seats   string
		Pools   map[string]int64
	}
	if err := json.Unmarshal(s.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(got.Seats)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte{0b11_10_01_00, 0b10_00}, packed); diff != "" {
		t.Errorf("2 bits a seat, low bits first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"STANDING": 311, `odd "name"`: 0}, got.Pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if got.Version != t0.UnixMilli() || got.Version != s.Version {
		t.Errorf("version %d, want the first to be the time in milliseconds", got.Version)
	}
	// The compressors are reused: what an earlier version left in them must not show.
	New(plain(50_000), News{}, t0).Snapshot(t0).Gzip()
	New(plain(50_000), News{}, t0).Snapshot(t0).Brotli()
	zr, err := gzip.NewReader(bytes.NewReader(s.Gzip()))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"gzip": zr, "brotli": brotli.NewReader(bytes.NewReader(s.Brotli()))} {
		if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, s.JSON()) {
			t.Errorf("%s does not decode to the JSON: %v", name, err)
		}
	}
	if &s.Gzip()[0] != &s.Gzip()[0] || &s.Brotli()[0] != &s.Brotli()[0] || &s.JSON()[0] != &s.JSON()[0] {
		t.Error("an encoding is made more than once")
	}
	if empty := New(Shape{}, News{}, t0).Snapshot(t0).JSON(); string(empty) != `{"version":`+string(json.Number("1935432000000"))+`,"seats":"","pools":{}}` {
		t.Errorf("of nothing: %s", empty)
	}
}

// C-58: how late the picture may be is bounded by a tick, and so is the work.
func TestAChangeIsVisibleAfterOneTickAtMostAndVersionsAreNoMoreThanFourASecond(t *testing.T) {
	t.Parallel()
	b := New(plain(100), News{}, t0)
	versions := map[int64]bool{}
	for ms := int64(1); ms <= 4000; ms++ {
		if ms%10 == 0 {
			b.Apply(held(int32(ms/10%100), until(1<<40), 1, int32(ms)), at(ms))
		}
		s := b.Snapshot(at(ms))
		versions[s.Version] = true
		if seen := ms - TickEvery.Milliseconds(); seen >= 10 && seen <= 1000 && s.Status(int32(seen/10%100)) != Held {
			t.Fatalf("at %d ms the change at %d ms is not visible", ms, seen/10*10)
		}
	}
	if len(versions) > 4*4+1 {
		t.Errorf("%d versions in 4 s", len(versions))
	}
}

func TestAVersionStandsForOnePictureAndRises(t *testing.T) {
	t.Parallel()
	b := New(plain(4), News{}, t0)
	first := b.Snapshot(t0)
	if b.Snapshot(at(10_000)) != first {
		t.Error("another version though nothing changed")
	}
	b.Apply(held(1, until(20_000), 1, 1), at(10_000))
	b.Apply(News{Seats: []Seat{{No: 1, Epoch: 2}}}, at(10_100))
	if b.Snapshot(at(10_200)) != first {
		t.Error("another version though all looks the same again")
	}
	b.Apply(held(1, until(20_000), 1, 3), at(10_200))
	second := b.Snapshot(at(10_500))
	if second.Version <= first.Version || second.ETag == first.ETag || first.Status(1) != Available || second.Status(1) != Held {
		t.Errorf("first %d %s, second %d %s", first.Version, first.ETag, second.Version, second.ETag)
	}
	// The clock was set back: versions rise all the same, and ends are seen.
	b.Apply(held(2, until(-90_000), 1, 1), at(-100_000))
	third := b.Snapshot(at(-99_000))
	if third.Version <= second.Version || third.Status(2) != Held {
		t.Errorf("after the clock was set back: version %d, seat %v", third.Version, third.Status(2))
	}
	if fourth := b.Snapshot(at(-80_000)); fourth.Version <= third.Version || fourth.Status(2) != Available {
		t.Errorf("after the clock was set back: version %d, seat %v", fourth.Version, fourth.Status(2))
	}
	if again := New(plain(4), News{}, at(20_000)).Snapshot(at(20_000)); again.Version <= second.Version {
		t.Error("a restart went back in versions")
	}
}
