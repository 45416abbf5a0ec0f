package board

import (
	"encoding/base64"
	"errors"
	"strconv"
	"sync"
)

// RingFrames is how many versions back a stream can be resumed, and how far a slow subscriber may fall behind before it is dropped.
const RingFrames = 64

// Errors of a subscription; the client connects again, with the last version that it has.
var (
	ErrSlow    = errors.New("the subscriber fell too far behind")
	ErrEvicted = errors.New("the board was put away")
)

// Frame is one server-sent event, encoded once for all: id is the version; event "snapshot" has the data of Snapshot.JSON, event "delta"
// {"version":N,"from":M,"seats":[[no,status],…],"pools":{…}}: what makes version N out of version M; pools are those that changed.
type Frame struct {
	Version int64
	Bytes   []byte // shared: to be written, not changed

	from int64
}

// stream is the last frames of a board. Subscribers keep their own place in it, so a slow one costs nothing but its place.
type stream struct {
	mu      sync.RWMutex
	ring    []Frame // frame n is at n % RingFrames
	made    uint64  // frames ever made
	wake    chan struct{}
	readers int
	closed  bool
}

// frame encodes the step from one version to the next: as a delta, or as a snapshot when that is shorter.
func (b *Board) frame(old, next *Snapshot, changes []change) Frame {
	snapshotLen := base64.StdEncoding.EncodedLen(len(next.packed)) + 128
	f := Frame{Version: next.Version, from: old.Version}
	if len(changes)*len(`[0,0],`) > snapshotLen {
		f.Bytes = next.frame()
		return f
	}
	out := make([]byte, 0, 128+10*len(changes))
	out = append(out, "id: "...)
	out = strconv.AppendInt(out, next.Version, 10)
	out = append(out, "\nevent: delta\ndata: {\"version\":"...)
	out = strconv.AppendInt(out, next.Version, 10)
	out = append(out, `,"from":`...)
	out = strconv.AppendInt(out, old.Version, 10)
	out = append(out, `,"seats":[`...)
	for i, c := range changes {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '[')
		out = strconv.AppendInt(out, int64(c.no), 10)
		out = append(out, ',', '0'+byte(c.status), ']')
	}
	out = append(out, `],"pools":{`...)
	out = b.appendPools(out, next.Pools, old.Pools)
	out = append(out, "}}\n\n"...)
	f.Bytes = out
	return f
}

// frame is the snapshot as a server-sent event.
func (s *Snapshot) frame() []byte {
	return s.event.get(func() []byte {
		data := s.JSON()
		out := make([]byte, 0, len(data)+64)
		out = append(out, "id: "...)
		out = strconv.AppendInt(out, s.Version, 10)
		out = append(out, "\nevent: snapshot\ndata: "...)
		out = append(out, data...)
		return append(out, "\n\n"...)
	})
}

// publish makes a version the current one, for readers and streams in the same instant.
func (s *stream) publish(b *Board, next *Snapshot, f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.current.Store(next)
	if len(s.ring) < RingFrames {
		s.ring = append(s.ring, f)
	} else {
		s.ring[s.made%RingFrames] = f
	}
	s.made++
	close(s.wake)
	s.wake = make(chan struct{})
}

// Subscription is one reader of a board's stream, for one goroutine. The number of them is bounded by whoever bounds the connections.
type Subscription struct {
	stream *stream
	first  Frame // the snapshot to begin with, if any
	next   uint64
	closed bool
}

// Subscribe follows the board from a version on (0: from the beginning): with the frames missed since, or else with a snapshot and what follows it.
// Close it in the end: a board with subscribers is never evicted.
func (b *Board) Subscribe(after int64) *Subscription {
	s := &b.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers++
	sub := &Subscription{stream: s, next: s.made}
	current := b.current.Load()
	if after == current.Version {
		return sub
	}
	for n := s.made - uint64(len(s.ring)); n < s.made; n++ {
		if s.ring[n%RingFrames].from == after {
			sub.next = n
			return sub
		}
	}
	sub.first = Frame{Version: current.Version, Bytes: current.frame()}
	return sub
}

// Poll gives the next frame; or, when there is none yet, a channel that is closed as soon as it is worth asking again. Errors: ErrSlow, ErrEvicted.
func (s *Subscription) Poll() (Frame, <-chan struct{}, error) {
	if f := s.first; f.Bytes != nil {
		s.first = Frame{}
		return f, nil, nil
	}
	st := s.stream
	st.mu.RLock()
	defer st.mu.RUnlock()
	switch behind := st.made - s.next; {
	case st.closed:
		return Frame{}, nil, ErrEvicted
	case behind > RingFrames:
		return Frame{}, nil, ErrSlow
	case behind == 0:
		return Frame{}, st.wake, nil
	}
	f := st.ring[s.next%RingFrames]
	s.next++
	return f, nil, nil
}

// Close ends it; more than once does no harm.
func (s *Subscription) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.stream.mu.Lock()
	s.stream.readers--
	s.stream.mu.Unlock()
}

// Subscribers counts those who follow the board.
func (b *Board) Subscribers() int {
	b.stream.mu.RLock()
	defer b.stream.mu.RUnlock()
	return b.stream.readers
}

// close ends the stream, unless it is followed and force is not set. Whoever subscribes to a closed board is told at once.
func (b *Board) close(force bool) bool {
	s := &b.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers > 0 && !force {
		return false
	}
	if !s.closed {
		s.closed = true
		close(s.wake)
		s.wake = make(chan struct{})
	}
	return true
}
