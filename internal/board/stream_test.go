package board

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// client applies frames as a page would.
type client struct {
	version   int64
	states    []Status
	pools     map[string]int64
	snapshots int
}

func (c *client) read(t rapid.TB, f Frame) {
	t.Helper()
	lines := strings.Split(string(f.Bytes), "\n")
	if len(lines) != 5 || lines[3] != "" || lines[4] != "" || lines[0] != "id: "+strconv.FormatInt(f.Version, 10) {
		t.Fatalf("not one server-sent event: %q", f.Bytes)
	}
	data := strings.TrimPrefix(lines[2], "data: ")
	switch lines[1] {
	case "event: snapshot":
		var s struct {
			Version int64
			Seats   string
			Pools   map[string]int64
		}
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			t.Fatal(err)
		}
		packed, err := base64.StdEncoding.DecodeString(s.Seats)
		if err != nil {
			t.Fatal(err)
		}
		c.version, c.pools, c.snapshots = s.Version, s.Pools, c.snapshots+1
		c.states = make([]Status, mixedShape().Seats)
		for no := range c.states {
			c.states[no] = Status(packed[no/4]>>(no%4*2)) & 3
		}
	case "event: delta":
		var d struct {
			Version, From int64
			Seats         [][2]int
			Pools         map[string]int64
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatal(err)
		}
		if d.From != c.version || d.Version <= d.From {
			t.Fatalf("delta from %d to %d for a client at %d", d.From, d.Version, c.version)
		}
		c.version = d.Version
		for _, s := range d.Seats {
			c.states[s[0]] = Status(s[1])
		}
		for p, n := range d.Pools {
			c.pools[p] = n
		}
	default:
		t.Fatalf("unknown event: %q", f.Bytes)
	}
	if c.version != f.Version {
		t.Fatalf("frame %d says version %d", f.Version, c.version)
	}
}

func (c *client) drain(t rapid.TB, s *Subscription) error {
	t.Helper()
	for {
		f, wait, err := s.Poll()
		if err != nil || wait != nil {
			return err
		}
		c.read(t, f)
	}
}

func (c *client) check(t rapid.TB, s *Snapshot) {
	t.Helper()
	want := map[string]int64{}
	for p, name := range mixedShape().Pools {
		want[name] = s.Pools[p]
	}
	if diff := cmp.Diff(s.States(), c.states) + cmp.Diff(want, c.pools); diff != "" || c.version != s.Version {
		t.Fatalf("client at %d, board at %d (-want +got):\n%s", c.version, s.Version, diff)
	}
}

// C-57
func TestDeltasFromAnyVersionOnEndInTheSnapshot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newTruth()
		b := New(m.shape, m.full(), t0)
		clients := make([]client, 3)
		subs := make([]*Subscription, len(clients))
		for i := range subs {
			subs[i] = b.Subscribe(0)
		}
		ms := int64(0)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			ms += rapid.Int64Range(0, 500).Draw(t, "passes")
			b.Apply(m.step(t, ms), at(ms))
			if rapid.Bool().Draw(t, "read") {
				b.Snapshot(at(ms))
			}
			i := rapid.IntRange(0, len(subs)-1).Draw(t, "client")
			c := &clients[i]
			switch rapid.IntRange(0, 3).Draw(t, "does") {
			case 0: // goes away and comes back with its last version
				subs[i].Close()
				subs[i] = b.Subscribe(c.version)
			case 1, 2:
				if err := c.drain(t, subs[i]); errors.Is(err, ErrSlow) {
					subs[i].Close()
					subs[i] = b.Subscribe(c.version)
				} else if err != nil {
					t.Fatal(err)
				}
				if c.version == b.current.Load().Version {
					c.check(t, b.current.Load())
				}
			}
		}
		s := b.Snapshot(at(ms + 1000))
		for i := range clients {
			if errors.Is(clients[i].drain(t, subs[i]), ErrSlow) {
				subs[i] = b.Subscribe(clients[i].version)
				clients[i].drain(t, subs[i])
			}
			clients[i].check(t, s)
		}
	})
}

// C-57: a gap that the ring does not bridge ends in a snapshot; one that it does, in deltas.
func TestASlowSubscriberIsDroppedAndResumes(t *testing.T) {
	t.Parallel()
	b := New(mixedShape(), News{}, t0)
	var slow, quick client
	slowSub, quickSub := b.Subscribe(0), b.Subscribe(0)
	slow.drain(t, slowSub)
	change := func(e int32) {
		b.Apply(held(0, until(int64(e)*1000+2000*int64(e%2)), 1, e), at(int64(e)*1000))
		b.Apply(News{Seats: []Seat{{No: 1, Status: Status(e % 2 * 2), Epoch: e}}}, at(int64(e)*1000))
		b.Snapshot(at(int64(e) * 1000))
		if err := quick.drain(t, quickSub); err != nil {
			t.Fatal(err)
		}
	}
	for e := range int32(RingFrames) {
		change(e + 1)
	}
	early := b.Subscribe(slow.version)
	change(RingFrames + 1)
	if _, _, err := slowSub.Poll(); !errors.Is(err, ErrSlow) {
		t.Fatalf("%d frames behind: %v, want ErrSlow", RingFrames+1, err)
	}
	if _, _, err := early.Poll(); !errors.Is(err, ErrSlow) {
		t.Errorf("a resumed one that fell behind: %v, want ErrSlow", err)
	}
	for _, sub := range []*Subscription{slowSub, early, early} {
		sub.Close()
	}
	again := b.Subscribe(slow.version)
	slow.drain(t, again)
	if slow.check(t, b.current.Load()); slow.snapshots != 2 {
		t.Errorf("%d snapshots, want a second one for a gap that is too long", slow.snapshots)
	}
	again.Close()
	for e := range int32(10) {
		change(RingFrames + 2 + e)
	}
	again = b.Subscribe(slow.version)
	slow.drain(t, again)
	if slow.check(t, b.current.Load()); slow.snapshots != 2 || quick.snapshots != 1 {
		t.Errorf("%d and %d snapshots, want deltas for a gap that the ring has", slow.snapshots, quick.snapshots)
	}
	quickSub.Close()
	again.Close()
	if n := b.Subscribers(); n != 0 {
		t.Errorf("%d subscribers after all went", n)
	}
	if len(b.stream.ring) != RingFrames {
		t.Errorf("%d frames kept", len(b.stream.ring))
	}
}

func TestAChangeOfEverythingTravelsAsASnapshot(t *testing.T) {
	t.Parallel()
	b := New(plain(4000), News{}, t0)
	sub := b.Subscribe(b.Snapshot(t0).Version)
	defer sub.Close()
	var n News
	for no := range int32(4000) {
		n.Seats = append(n.Seats, Seat{No: no, Status: Sold, Epoch: 1})
	}
	b.Apply(n, at(300))
	b.Snapshot(at(300))
	f, _, err := sub.Poll()
	if err != nil || !strings.Contains(string(f.Bytes), "event: snapshot") || len(f.Bytes) > 4000/3+200 {
		t.Errorf("%d bytes, %v", len(f.Bytes), err)
	}
}
