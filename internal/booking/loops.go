package booking

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-project/holdfast/internal/payment"
)

// Loops are the engine's background work: how often, and how much at a time. Zero fields take the defaults.
type Loops struct {
	Times                             // when providers are asked about pending payments
	SweepEvery          time.Duration // 15 s
	SweepBatch          int           // 500 holds
	ReconcileEvery      time.Duration // 60 s at most; sooner when AskAfter is shorter
	ReconcileBatch      int           // 200 payments
	RefundEvery         time.Duration // 1 s
	RefundBatch         int           // 100
	RefundLease         time.Duration // 1 min: how long another process leaves a claimed refund alone
	ProviderTimeout     time.Duration // 10 s for one call
	ProviderConcurrency int           // 64 calls at once in each loop: each also waits for its lane
	KeepNotices         time.Duration // 7 days; providers repeat a notice for up to 3
}

func (l Loops) withDefaults() Loops {
	or := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	count := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.AskBeforeEnd, 30*time.Second)
	or(&l.AskAfter, 15*time.Minute)
	or(&l.SweepEvery, 15*time.Second)
	// A payment is due to the second, so the loop that looks for due ones is quicker than the times it serves.
	or(&l.ReconcileEvery, min(5*time.Second, l.AskAfter))
	or(&l.RefundEvery, time.Second)
	or(&l.RefundLease, time.Minute)
	or(&l.ProviderTimeout, 10*time.Second)
	or(&l.KeepNotices, 7*24*time.Hour)
	count(&l.SweepBatch, 500)
	count(&l.ReconcileBatch, 200)
	count(&l.RefundBatch, 100)
	count(&l.ProviderConcurrency, 64)
	return l
}

// Loop is one of the engine's background jobs.
type Loop struct {
	Name  string
	Every time.Duration
	// RunOnce does what is due, at most one batch of it, and says how much that was. A full batch means that there may be more.
	RunOnce func(context.Context) (n int, err error)
	Batch   int
}

// Run repeats a loop until ctx ends. A failing round is reported and tried again at the next.
func (l Loop) Run(ctx context.Context, failed func(loop string, err error)) {
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	for {
		for ctx.Err() == nil {
			n, err := l.RunOnce(ctx)
			if err != nil && ctx.Err() == nil {
				failed(l.Name, err)
			}
			if err != nil || n < l.Batch {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// BackgroundLoops are the jobs that a process must run. Any number of processes may; none of them does anything twice.
func (s *Service) BackgroundLoops() []Loop {
	return []Loop{
		{Name: "sweep", Every: s.loops.SweepEvery, RunOnce: s.SweepOnce, Batch: s.loops.SweepBatch},
		{Name: "reconcile", Every: s.loops.ReconcileEvery, RunOnce: s.ReconcileOnce, Batch: s.loops.ReconcileBatch},
		{Name: "refund", Every: s.loops.RefundEvery, RunOnce: s.RefundOnce, Batch: s.loops.RefundBatch},
		{Name: "forget", Every: time.Hour, RunOnce: s.forgetOnce, Batch: forgetBatch},
	}
}

// Run runs all background loops until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var g errgroup.Group
	for _, l := range s.BackgroundLoops() {
		g.Go(func() error {
			l.Run(ctx, s.loopFailed)
			return nil
		})
	}
	_ = g.Wait() // loops return no errors: they report them
}

func (s *Service) loopFailed(loop string, err error) {
	s.watch.LoopFailed(loop, err)
	s.log.Error("background loop", "loop", loop, "error", err)
}

// SweepOnce settles holds whose time is over. Nothing waits for it: their places are free already.
func (s *Service) SweepOnce(ctx context.Context) (int, error) {
	ended, err := s.store.EndedHolds(ctx, EndedHolds{Limit: s.loops.SweepBatch})
	if err != nil {
		return 0, err
	}
	var g errgroup.Group
	for _, id := range ended {
		g.Go(func() error {
			_, err := s.do(ctx, &Expire{ID: id})
			return err
		})
	}
	return len(ended), g.Wait()
}

// ReconcileOnce asks the providers about payments that have been pending for too long, whose holds are about to end, or have ended.
func (s *Service) ReconcileOnce(ctx context.Context) (int, error) {
	due, err := s.store.DuePayments(ctx, s.loops.ReconcileBatch)
	if err != nil {
		return 0, err
	}
	var g errgroup.Group
	g.SetLimit(s.loops.ProviderConcurrency)
	for _, d := range due {
		g.Go(func() error { return s.ask(ctx, d) })
	}
	return len(due), g.Wait()
}

// ask looks a payment up at its provider and applies the answer. Once its hold is over or booked by another payment, the session is closed first,
// so that nobody can pay for nothing.
func (s *Service) ask(ctx context.Context, d DuePayment) error {
	c := &Settle{Payment: d.Payment.ID, Closed: !d.Held}
	provider := s.pay[d.Payment.Provider]
	if provider == nil {
		return errors.Join(ErrNoProvider, s.postpone(ctx, c))
	}
	call, cancel := context.WithTimeout(ctx, s.loops.ProviderTimeout)
	defer cancel()
	var err error
	if d.Held {
		c.State, err = provider.Look(call, d.Payment.ID.String())
	} else {
		c.State, err = provider.Close(call, d.Payment.ID.String())
		if errors.Is(err, payment.ErrUnknownPayment) {
			c.State, err = payment.State{Status: payment.Unknown}, nil
		}
	}
	if err != nil {
		s.watch.Asked("failed")
		return errors.Join(err, s.postpone(ctx, c))
	}
	s.watch.Asked(string(c.State.Status))
	_, err = s.settle(ctx, c)
	return err
}

// postpone sets the next time to ask, later each time.
func (s *Service) postpone(ctx context.Context, c *Settle) error {
	c.State, c.Closed = payment.State{Status: payment.Pending}, false
	_, err := s.settle(ctx, c)
	return err
}

// RefundOnce gives back the money that is owed. What the provider does not take is tried again, later each time, for ever:
// money that is not ours is never written off.
func (s *Service) RefundOnce(ctx context.Context) (int, error) {
	due, err := s.store.ClaimRefunds(ctx, s.loops.RefundBatch, s.loops.RefundLease)
	if err != nil {
		return 0, err
	}
	var g errgroup.Group
	g.SetLimit(s.loops.ProviderConcurrency)
	for _, r := range due {
		g.Go(func() error { return s.refundOne(ctx, r) })
	}
	return len(due), g.Wait()
}

func (s *Service) refundOne(ctx context.Context, r Refund) error {
	done := &Refunded{Refund: r.ID, Payment: r.Payment}
	err := ErrNoProvider
	if provider := s.pay[r.Provider]; provider != nil {
		call, cancel := context.WithTimeout(ctx, s.loops.ProviderTimeout)
		defer cancel()
		err = provider.Refund(call, payment.RefundRequest{
			RefundID: r.ID.String(), PaymentID: r.Payment.String(), Reference: r.Reference, Amount: r.Amount,
		})
	}
	switch {
	case err == nil:
		s.watch.Refund("done")
	case errors.Is(err, payment.ErrDeclined):
		done.Failed = true
		s.watch.Refund("declined")
		s.watch.Alert("refund-declined", r.ID.String())
		s.log.Error("the provider declined a refund; a person must look", "refund", r.ID, "payment", r.Payment, "amount", r.Amount, "error", err)
	default:
		done.Failed = true
		s.watch.Refund("failed")
		s.log.Warn("refund not done yet", "refund", r.ID, "payment", r.Payment, "attempts", r.Attempts, "error", err)
	}
	_, err = s.do(ctx, done)
	return err
}

const forgetBatch = 1000

func (s *Service) forgetOnce(ctx context.Context) (int, error) {
	return s.store.ForgetNotices(ctx, s.Now().Add(-s.loops.KeepNotices), forgetBatch)
}

// Lag says how far the loops are behind, for metrics and alerts.
func (s *Service) Lag(ctx context.Context) (Lag, error) { return s.store.Lag(ctx) }
