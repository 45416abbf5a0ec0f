package bookingtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
)

var errLost = errors.New("the line went dead")

func placedBy(who identity.CustomerID) func(c booking.Command) bool {
	return func(c booking.Command) bool {
		p, ok := c.(*booking.Place)
		return ok && p.Customer == who
	}
}

// poisoned makes the store refuse every batch with a command of the customer.
func (s *stage) poisoned(who identity.CustomerID, how func() error) {
	s.gate.breaks(func(commands []booking.Command) error {
		if slices.ContainsFunc(commands, placedBy(who)) {
			return how()
		}
		return nil
	}, nil)
}

// batchOf runs holds of seats of row B on, so that all of them are one batch; the last error is that of the poisoned customer.
func (s *stage) batchOf(n int, bad identity.CustomerID) (others []error, poisoned error) {
	open := s.gate.close()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.try(s.cinema, newCustomer(), "A5") })
	synctest.Wait()
	others = make([]error, n-1)
	wg.Go(func() { _, poisoned = s.try(s.cinema, bad, "J20") })
	for i := range others {
		wg.Go(func() { _, others[i] = s.try(s.cinema, newCustomer(), code(s.cinema, 20+i)) })
	}
	synctest.Wait()
	open()
	wg.Wait()
	if sizes := s.gate.sizes(); len(sizes) < 2 || sizes[1] != n {
		s.Fatalf("batches of %v: nothing was tried", sizes)
	}
	return others, poisoned
}

var laneTests = []engineTest{
	{"one command that the store refuses harms no other of its batch", func(s *stage) { // C-08
		for i, how := range []func() error{
			func() error { return booking.ErrGuard }, func() error { return errLost }, func() error { panic("a fault of ours") },
		} {
			s.Clock.Add(time.Hour) // the seats of the round before are free again
			bad := newCustomer()
			s.poisoned(bad, how)
			others, err := s.batchOf(64, bad)
			if err == nil {
				s.Errorf("%d: the poisoned command was done", i)
			}
			for n, err := range others {
				if err != nil {
					s.Errorf("%d: number %d: %v", i, n, err)
				}
			}
			same(s, "batches tried one by one", i+1, s.watch.count("single"))
			if i == 0 { // the batch, 64 single ones, and the poisoned one three times
				same(s, "tries", 1+1+63+3, len(s.gate.sizes()))
			}
		}
	}},
	{"a batch whose outcome is unknown is run again, and nobody gets places twice", func(s *stage) { // C-17, C-20
		var lost atomic.Int64
		s.gate.breaks(nil, func([]booking.Command) error {
			if lost.Add(1) <= 2 {
				return errors.Join(booking.ErrUnavailable, errLost)
			}
			return nil
		})
		h := s.hold(s.cinema, newCustomer(), "B5", "B6")
		same(s, "tries", int64(3), lost.Load())
		same(s, "epoch", 1, s.books(s.cinema).Seats[h.Seats[0]].Epoch)
		s.gate.breaks(nil, func([]booking.Command) error { return booking.ErrUnavailable })
		ask := booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Seats: []string{"C5"}, Key: "k"}
		if _, err := s.svc.PlaceHold(s.Context(), ask); !errors.Is(err, booking.ErrUnavailable) {
			s.Error(err)
		}
		s.gate.breaks(nil, nil)
		p, err := s.svc.PlaceHold(s.Context(), ask) // the client comes again under its key
		if err != nil || !p.Replay {
			s.Errorf("%+v, %v", p, err)
		}
		same(s, "holds", 2, len(s.books(s.cinema).Holds))
	}},
	{"an absent store is said to be absent, not that places are gone, and nothing is done", func(s *stage) { // C-18, C-21
		s.gate.breaks(func([]booking.Command) error { return booking.ErrUnavailable }, nil)
		if _, err := s.try(s.cinema, newCustomer(), "B5"); !errors.Is(err, booking.ErrUnavailable) {
			s.Error(err)
		}
		s.gate.breaks(nil, nil)
		s.hold(s.cinema, newCustomer(), "B5")
	}},
	{"a hold that nobody waits for any more is released, unless its client will ask again", func(s *stage) {
		s.hold(s.cinema, newCustomer(), "A5") // the catalog and all are warm
		open := s.gate.close()
		ctx, leave := context.WithCancel(s.Context())
		keyed, loose := newCustomer(), newCustomer()
		ask := booking.PlaceHold{Event: s.cinema, Customer: keyed, Seats: []string{"C5"}, Key: "k"}
		var wg sync.WaitGroup
		for _, p := range []booking.PlaceHold{{Event: s.cinema, Customer: loose, Seats: []string{"B5"}}, ask} {
			wg.Go(func() {
				if _, err := s.svc.PlaceHold(ctx, p); !errors.Is(err, context.Canceled) {
					s.Errorf("after leaving: %v", err)
				}
			})
			synctest.Wait()
		}
		leave()
		wg.Wait()
		open()
		synctest.Wait()
		b := s.books(s.cinema)
		same(s, "the loose one's seat", booking.Available, b.Seats[seatNo(hall(), "B5")].Status)
		same(s, "the keyed one's seat", booking.Held, b.Seats[seatNo(hall(), "C5")].Status)
		same(s, "allowance of the loose one", 0, b.Allowances[loose])
		if p, err := s.svc.PlaceHold(s.Context(), ask); err != nil || !p.Replay {
			s.Errorf("asked again: %+v, %v", p, err)
		}
		if _, err := s.svc.PlaceHold(ctx, ask); !errors.Is(err, context.Canceled) {
			s.Errorf("who has left already: %v", err)
		}
	}},
	{"a full lane refuses at once, and a hot event leaves room for its neighbours", func(s *stage) { // C-21
		const ofEvent, ofLane = 6144, 8192
		open := s.gate.close()
		var wg sync.WaitGroup
		var busy, done [2]atomic.Int64
		send := func(which int, e *catalog.Event, n int) {
			for range n {
				wg.Go(func() {
					_, err := s.svc.Release(s.Context(), booking.HoldID(newKey(e.ID)), identity.CustomerID{})
					switch {
					case errors.Is(err, booking.ErrBusy):
						busy[which].Add(1)
					case errors.Is(err, booking.ErrNotFound):
						done[which].Add(1)
					default:
						s.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		send(0, s.cinema, 1) // on its way
		send(0, s.cinema, ofEvent+10)
		same(s, "refused of the hot event", int64(10), busy[0].Load())
		send(1, s.field, ofLane-ofEvent+7)
		same(s, "refused of its neighbour", int64(7), busy[1].Load())
		open()
		wg.Wait()
		same(s, "answered", []int64{ofEvent + 1, ofLane - ofEvent}, []int64{done[0].Load(), done[1].Load()})
		s.hold(s.cinema, newCustomer(), "B5")
	}},
	{"a hot event delays its neighbours by one batch at most", func(s *stage) {
		open := s.gate.close()
		var wg sync.WaitGroup
		release := func(e *catalog.Event) {
			wg.Go(func() {
				_, _ = s.svc.Release(s.Context(), booking.HoldID(newKey(e.ID)), identity.CustomerID{})
			})
		}
		release(s.cinema)
		synctest.Wait()
		for range 3000 {
			release(s.cinema)
		}
		synctest.Wait()
		release(s.field)
		release(s.flight)
		synctest.Wait()
		open()
		wg.Wait()
		quiet := 0
		for _, c := range s.gate.batches[1] {
			if c.EventID() != s.cinema.ID {
				quiet++
			}
		}
		same(s, "quiet events in the next batch", 2, quiet)
		same(s, "its size", 512, len(s.gate.batches[1]))
		if n := len(s.gate.batches); n > 8 {
			s.Errorf("%d batches for 3,003 commands", n)
		}
	}},
	{"many quiet events share a batch", func(s *stage) {
		var events []*catalog.Event
		for range 100 {
			events = append(events, s.add(Cinema()))
		}
		open := s.gate.close()
		var wg sync.WaitGroup
		for i, e := range append([]*catalog.Event{s.cinema}, events...) {
			wg.Go(func() { s.hold(e, newCustomer(), "B5") })
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		open()
		wg.Wait()
		same(s, "batches", []int{1, 100}, s.gate.sizes())
	}},
	{"closing answers what was accepted and refuses what comes after", func(s *stage) { // C-59
		open := s.gate.close()
		errs := make([]error, 20)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = s.try(s.cinema, newCustomer(), code(s.cinema, 20+i)) })
		}
		synctest.Wait()
		wg.Go(s.svc.Close)
		synctest.Wait()
		if _, err := s.try(s.cinema, newCustomer(), "J1"); !errors.Is(err, booking.ErrBusy) {
			s.Errorf("after closing: %v", err)
		}
		open()
		wg.Wait()
		same(s, "errors", make([]error, len(errs)), errs)
		same(s, "holds", 20, len(s.books(s.cinema).Holds))
		s.svc = s.newService(func(*booking.Config) {})
	}},
	{"each seat is linearizable: holds, releases and reads of many people at once", func(s *stage) { // C-04
		// Without boards a refusal is the store's own; what reads see is the store as well.
		blind := s.newService(func(c *booking.Config) {
			c.Boards = board.NewRegistry(board.Config{Now: s.Clock.Now, Load: func(context.Context, int64) (board.Shape, board.News, error) {
				return board.Shape{}, board.News{}, errLost
			}})
		})
		s.linearizable(blind, true)
	}},
	{"each seat is linearizable for those who only hold and release, with refusals from memory", func(s *stage) { // C-04
		if _, err := s.boards.Get(s.Context(), int64(s.cinema.ID)); err != nil {
			s.Fatal(err)
		}
		s.linearizable(s.svc, false)
	}},
}

// seatCall is one operation on one seat.
type seatCall struct {
	kind byte // 'h'old, 'r'elease, 'l'ook
	by   [16]byte
}

type seatAnswer struct {
	ok bool
	by [16]byte // who has the seat, for a look
}

var seatModel = porcupine.Model{
	Init: func() any { return [16]byte{} },
	Step: func(state, in, out any) (bool, any) {
		owner, call, answer := state.([16]byte), in.(seatCall), out.(seatAnswer)
		switch call.kind {
		case 'h':
			if answer.ok != (owner == [16]byte{}) {
				return false, owner
			}
			if answer.ok {
				owner = call.by
			}
			return true, owner
		case 'r':
			if owner == call.by {
				owner = [16]byte{}
			}
			return true, owner
		default:
			return answer.by == owner, owner
		}
	},
}

func (s *stage) linearizable(svc *booking.Service, look bool) {
	const people, rounds, places = 12, 40, 4
	var mu sync.Mutex
	var clock atomic.Int64
	calls := map[int32][]porcupine.Operation{}
	note := func(client int, seats []int32, in seatCall, begin int64, out func(no int32) seatAnswer) {
		end := clock.Add(1)
		mu.Lock()
		defer mu.Unlock()
		for _, no := range seats {
			calls[no] = append(calls[no], porcupine.Operation{ClientId: client, Input: in, Call: begin, Output: out(no), Return: end})
		}
	}
	together(people, func(client int) {
		for round := range rounds {
			first := int32(20 + (client*7+round*3)%places)
			if look && round%5 == 4 {
				begin := clock.Add(1)
				b := s.books(s.cinema)
				note(client, []int32{first}, seatCall{kind: 'l'}, begin, func(no int32) seatAnswer { return seatAnswer{by: b.Seats[no].Hold} })
				continue
			}
			who := newCustomer()
			begin := clock.Add(1)
			p, err := svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.cinema, Customer: who, Seats: []string{code(s.cinema, int(first))}})
			if err != nil && !errors.Is(err, booking.ErrGone) {
				s.Error(err)
				return
			}
			note(client, []int32{first}, seatCall{'h', p.Hold.ID.Bits}, begin, func(int32) seatAnswer { return seatAnswer{ok: err == nil} })
			if err == nil {
				begin = clock.Add(1)
				if _, err := svc.Release(s.Context(), p.Hold.ID, who); err != nil {
					s.Error(err)
				}
				note(client, []int32{first}, seatCall{'r', p.Hold.ID.Bits}, begin, func(int32) seatAnswer { return seatAnswer{ok: true} })
			}
		}
	})
	for no, history := range calls {
		won := 0
		for _, op := range history {
			if op.Input.(seatCall).kind == 'h' && op.Output.(seatAnswer).ok {
				won++
			}
		}
		if won < 3 {
			s.Errorf("seat %d was held %d times: nothing was tried", no, won)
		}
		if !porcupine.CheckOperations(seatModel, history) {
			s.Errorf("the %d operations on seat %d are not linearizable", len(history), no)
		}
	}
}
