package simulator

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
)

// Repetition of a callback that is not answered 2xx: after RetryFirst, then twice as long each time up to RetryMost, MaxAttempts in all (about nine minutes).
// What is not told by then is the reconciler's to find out.
const (
	RetryFirst  = 500 * time.Millisecond
	RetryMost   = time.Minute
	MaxAttempts = 16

	callbackTimeout = 15 * time.Second
	maxAnswerBytes  = 4 << 10 // read of an answer, so that the connection can be used again
)

// callback is one telling of a notice.
type callback struct {
	key      callbackKey
	noticeID string
	due      time.Time
	sequence uint64
	attempts int
	at       time.Time
	status   payment.Status
	charged  money.Money
}

type callbackKey struct {
	payment string
	action  int // the payment's how manyeth, from 1
	number  int // of the action, from 0
}

func noticeID(paymentID string, action, number int) string {
	return "ntc_" + paymentID + "_" + strconv.Itoa(action) + "_" + strconv.Itoa(number)
}

// dueHeap has the callback that is due first at 0; equal ones in the order in which they were queued.
type dueHeap []*callback

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if c := h[i].due.Compare(h[j].due); c != 0 {
		return c < 0
	}
	return h[i].sequence < h[j].sequence
}

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(*callback)) }

func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// newClient never follows a redirect: a signed notice goes where it was meant to go or nowhere.
func newClient(workers int) *http.Client {
	return &http.Client{
		Timeout:       callbackTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run tells what is due, Workers callbacks at once, until ctx is done. What it could not tell by then stays for the next Run, also of another process.
func (s *Simulator) Run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	work := make(chan *callback)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(work)
	for range s.config.Workers {
		workers.Go(func() {
			for cb := range work {
				s.tell(ctx, cb)
			}
		})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		cb, wait := s.pop()
		if cb == nil {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-s.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			s.putBack(cb, cb.due)
			return
		case work <- cb:
		}
	}
}

// RunOnce tells what is due now, Workers at once, each once, and returns how many were answered 2xx.
func (s *Simulator) RunOnce(ctx context.Context) int {
	var batch []*callback
	for cb, _ := s.pop(); cb != nil; cb, _ = s.pop() {
		batch = append(batch, cb)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		told int
	)
	slots := make(chan struct{}, s.config.Workers)
	for _, cb := range batch {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if s.tell(ctx, cb) {
				mu.Lock()
				told++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return told
}

// pop takes the first callback if it is due, otherwise it says how long to wait for it.
func (s *Simulator) pop() (cb *callback, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return nil, time.Hour // a push wakes earlier
	}
	if wait := s.due[0].due.Sub(s.config.Now()); wait > 0 {
		return nil, wait
	}
	s.onTheWay++
	return heap.Pop(&s.due).(*callback), 0
}

func (s *Simulator) putBack(cb *callback, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onTheWay--
	cb.due = due
	s.push(cb)
}

// tell tries once, and says whether it was answered 2xx. The callback is then done, given up, or back in the heap.
func (s *Simulator) tell(ctx context.Context, cb *callback) bool {
	err := s.post(ctx, cb)
	kind := recordTold
	if err != nil {
		if ctx.Err() != nil {
			s.putBack(cb, cb.due) // stopped, not refused
			return false
		}
		cb.attempts++
		log := s.config.Logger.With(slog.String("payment", cb.key.payment), slog.Int("attempt", cb.attempts), slog.Any("error", err))
		if cb.attempts < MaxAttempts {
			log.DebugContext(ctx, "callback not taken")
			s.putBack(cb, s.config.Now().Add(min(RetryFirst<<(cb.attempts-1), RetryMost)))
			return false
		}
		log.WarnContext(ctx, "callback given up")
		kind = recordGaveUp
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onTheWay--
	// If this cannot be written the notice comes once more after a restart, which its receiver has to bear anyway.
	if werr := s.record(record{Kind: kind, Payment: cb.key.payment, At: s.config.Now(), Action: cb.key.action, Number: cb.key.number}); werr != nil {
		s.config.Logger.ErrorContext(ctx, "callback not written down", slog.String("payment", cb.key.payment), slog.Any("error", werr))
	}
	return err == nil
}

func (s *Simulator) post(ctx context.Context, cb *callback) error {
	url := s.config.CallbackURL()
	if url == "" {
		return errors.New("no address to tell to yet")
	}
	body, err := json.Marshal(cb.body())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	payment.Sign(req.Header, s.config.Secrets, cb.noticeID, s.config.Now(), body)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswerBytes)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// noticeBody is the body of a notice.
type noticeBody struct {
	Type      string     `json:"type"` // payment.succeeded, payment.failed
	Timestamp time.Time  `json:"timestamp"`
	Data      noticeData `json:"data"`
}

type noticeData struct {
	Payment   string      `json:"payment"`
	Reference string      `json:"reference"`
	Charged   money.Money `json:"charged,omitzero"`
}

const typePrefix = "payment."

func (cb *callback) body() noticeBody {
	return noticeBody{
		Type:      typePrefix + string(cb.status),
		Timestamp: cb.at.UTC(),
		Data:      noticeData{Payment: cb.key.payment, Reference: reference(cb.key.payment), Charged: cb.charged},
	}
}

// ReadNotice verifies and reads a callback. See payment.Provider.
func (s *Simulator) ReadNotice(h http.Header, body []byte, now time.Time) (payment.Notice, error) {
	id, _, err := payment.Verify(s.config.Secrets, h, body, now)
	if err != nil {
		return payment.Notice{}, err
	}
	var b noticeBody
	// The cause is not wrapped: it would quote the body.
	if err := json.Unmarshal(body, &b); err != nil {
		return payment.Notice{}, fmt.Errorf("%w: the body is not a notice", payment.ErrNotAuthentic)
	}
	n := payment.Notice{ID: id, PaymentID: b.Data.Payment, Reference: b.Data.Reference, Charged: b.Data.Charged, At: b.Timestamp}
	switch b.Type {
	case typePrefix + string(payment.Succeeded):
		n.Status = payment.Succeeded
	case typePrefix + string(payment.Failed):
		n.Status = payment.Failed
	default:
		return payment.Notice{ID: id, Status: payment.Unknown, At: b.Timestamp}, nil
	}
	if n.PaymentID == "" || n.Reference == "" || (n.Status == payment.Succeeded) != (n.Charged.Amount > 0) {
		return payment.Notice{}, fmt.Errorf("%w: the body is not a notice", payment.ErrNotAuthentic)
	}
	return n, nil
}
