package httpd

import (
	"context"
	"net/http"
	"time"
)

// StreamWriteTimeout is how long a reader of a stream may take to accept one write; a slower one is dropped, and resumes.
const StreamWriteTimeout = 10 * time.Second

// Stream is an answer that goes on for as long as the client listens, such as server-sent events.
type Stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	stop <-chan struct{}
}

// NewStream starts one: the time limits of ordinary answers no longer count, nor does the request as one being worked on. The
// caller sets the fields and bounds how many there are.
func NewStream(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	s := &Stream{w: w, rc: http.NewResponseController(w), stop: Draining(r.Context())}
	// Without this the server's read timeout would end the request's context in the middle of the stream.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if err := s.rc.SetWriteDeadline(time.Now().Add(StreamWriteTimeout)); err != nil {
		return nil, err
	}
	if slot := RequestOf(r.Context()).slot; slot != nil {
		slot()
	}
	return s, nil
}

// Draining is closed when the server wants to stop: end the stream, the client comes back to another server. It is nil, so
// never ready, outside of a Server.
func (s *Stream) Draining() <-chan struct{} { return s.stop }

// Write sends b at once.
func (s *Stream) Write(b []byte) (int, error) {
	if err := s.rc.SetWriteDeadline(time.Now().Add(StreamWriteTimeout)); err != nil {
		return 0, err
	}
	n, err := s.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, s.rc.Flush()
}

type drainKey struct{}

// Draining gives the channel that a Server closes when streams should end; nil outside of one.
func Draining(ctx context.Context) <-chan struct{} {
	stop, _ := ctx.Value(drainKey{}).(chan struct{})
	return stop
}
