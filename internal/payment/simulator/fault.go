package simulator

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-project/holdfast/internal/payment"
)

// Call is one of the calls to the provider that can be made to fail.
type Call int

// The calls.
const (
	CallOpen Call = iota
	CallLook
	CallClose
	CallRefund
	calls // how many there are
)

// Fault is what is wrong with the next calls of a kind.
type Fault struct {
	// Times is how many calls are hit; less than zero: all from now on.
	Times int
	// Delay makes them slow. A caller that gives up meanwhile gets payment.ErrUnavailable with its context's error.
	Delay time.Duration
	// Refuse does none of the work and answers payment.ErrUnavailable.
	Refuse bool
	// Lose does the work, then loses the answer: payment.ErrUnavailable after the Delay.
	Lose bool
}

// Break queues a fault for a call; those queued before it come first. Repair takes all away.
func (s *Simulator) Break(c Call, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[c] = append(s.faults[c], f)
}

// Repair ends all faults.
func (s *Simulator) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = [calls][]Fault{}
}

func (s *Simulator) nextFault(c Call) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.faults[c]) > 0 {
		f := &s.faults[c][0]
		if f.Times < 0 {
			return *f, true
		}
		if f.Times > 0 {
			f.Times--
			return *f, true
		}
		s.faults[c] = s.faults[c][1:]
	}
	return Fault{}, false
}

func (s *Simulator) faulty(ctx context.Context, c Call, work func() error) error {
	f, broken := s.nextFault(c)
	if !broken {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", payment.ErrUnavailable, err)
		}
		return work()
	}
	if f.Lose {
		// The customer's money moves whether or not anybody still waits for the answer.
		_ = work()
	}
	if err := pause(ctx, f.Delay); err != nil {
		return fmt.Errorf("%w: %w", payment.ErrUnavailable, err)
	}
	if f.Lose || f.Refuse {
		return fmt.Errorf("%w: no answer", payment.ErrUnavailable)
	}
	return work()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
