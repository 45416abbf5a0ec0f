package bookingtest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
)

// together runs n people at once, started by one signal, and waits for them.
func together(n int, run func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	wg.Wait()
}

func code(e *catalog.Event, no int) string {
	if e.Layout == cabinRef {
		return cabin().Seats[no].Code
	}
	return hall().Seats[no].Code
}

var crowdTests = []engineTest{
	{"a storm of overlapping holds, payments, releases and ends never sells a seat twice and loses none", func(s *stage) { // C-01, C-03, C-05, C-06
		seed := rand.Uint64()
		s.Logf("seed %d", seed)
		other := s.newService(func(c *booking.Config) { c.Boards, c.Lanes = s.newBoards(), 2 }) // a second process
		var held atomic.Int64
		together(300, func(i int) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			svc := s.svc
			if i%2 == 1 {
				svc = other
			}
			for range 3 {
				who, codes := newCustomer(), []string{}
				for _, no := range random.Perm(200)[:1+random.IntN(4)] {
					codes = append(codes, code(s.cinema, no))
				}
				p, err := svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.cinema, Customer: who, Seats: codes})
				if errors.Is(err, booking.ErrGone) {
					continue
				}
				if err != nil {
					s.Error(err)
					return
				}
				held.Add(1)
				switch random.IntN(4) {
				case 0:
					if _, err := svc.Release(s.Context(), p.Hold.ID, who); err != nil {
						s.Error(err)
					}
				case 1, 2:
					pay, err := svc.Checkout(s.Context(), booking.Pay{Hold: p.Hold.ID, Customer: who, Key: "k", Buyer: booking.Buyer{Email: "a@example.org"}})
					if err != nil {
						s.Error(err)
						return
					}
					if err := s.sim.Act(s.Context(), pay.ID.String(), simulator.Action{Outcome: simulator.Succeed, Callbacks: random.IntN(3), DistinctIDs: true}); err != nil {
						s.Error(err)
					}
				}
				if random.IntN(8) == 0 {
					s.Clock.Add(20 * time.Second)
				}
				if random.IntN(20) == 0 {
					s.sim.RunOnce(s.Context())
				}
			}
		})
		if held.Load() < 50 {
			s.Errorf("only %d holds: nothing was tried", held.Load())
		}
		Audited(s, s.Harness, s.cinema)
		s.Clock.Add(time.Hour)
		for range 3 {
			s.sim.RunOnce(s.Context())
			if _, err := s.svc.ReconcileOnce(s.Context()); err != nil {
				s.Error(err)
			}
		}
		b, left := s.books(s.cinema), []string{}
		for no := range 200 {
			if b.Seats[int32(no)].Status != booking.Sold {
				left = append(left, code(s.cinema, no))
			}
		}
		s.Logf("%d holds, %d seats left to a quiet client", held.Load(), len(left))
		for codes := range slices.Chunk(left, s.cinema.Policy.MaxPlacesPerHold) {
			s.bought(s.hold(s.cinema, newCustomer(), codes...))
		}
		for no, seat := range s.books(s.cinema).Seats {
			if seat.Status != booking.Sold {
				s.Errorf("seat %d can't be sold: %+v", no, seat)
			}
		}
	}},
	{"of a thousand for one seat exactly one gets it, every time", func(s *stage) { // C-02
		for round := range 5 {
			var won, gone atomic.Int64
			together(1000, func(int) {
				switch _, err := s.try(s.cinema, newCustomer(), code(s.cinema, round)); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, booking.ErrGone):
					gone.Add(1)
				default:
					s.Error(err)
				}
			})
			if won.Load() != 1 || gone.Load() != 999 {
				s.Errorf("round %d: %d winners, %d refused", round, won.Load(), gone.Load())
			}
		}
		early, batches := s.watch.count("early"), len(s.gate.sizes())
		if _, err := s.try(s.cinema, newCustomer(), code(s.cinema, 0)); !errors.Is(err, booking.ErrGone) {
			s.Error(err)
		}
		if s.watch.count("early") != early+1 || len(s.gate.sizes()) != batches {
			s.Error("a seat that is known to be gone was asked for in the store")
		}
	}},
	{"no snapshot shows a part of a group", func(s *stage) { // C-05
		done := make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				b, has := s.books(s.cinema), map[[16]byte]int{}
				for _, seat := range b.Seats {
					if seat.Status == booking.Held {
						has[seat.Hold]++
					}
				}
				for hold, n := range has {
					if n != 4 {
						s.Errorf("hold %x has %d of 4 seats", hold, n)
					}
				}
			}
		})
		together(60, func(i int) {
			at := i % 17
			codes := []string{code(s.cinema, at), code(s.cinema, at+1), code(s.cinema, at+2), code(s.cinema, at+3)}
			for range 5 {
				who := newCustomer()
				p, err := s.try(s.cinema, who, codes...)
				if err == nil {
					_, err = s.svc.Release(s.Context(), p.Hold.ID, who)
				}
				if err != nil && !errors.Is(err, booking.ErrGone) {
					s.Error(err)
				}
			}
		})
		close(done)
		reader.Wait()
	}},
	{"when a hold ends exactly one of a hundred takes its seat, and the old buyer's money goes back", func(s *stage) { // C-10, C-33
		old := s.hold(s.cinema, newCustomer(), "B5")
		pay := s.session(old, "pay")
		s.Clock.Set(pay.ExpiresAt)
		if err := s.sim.Act(s.Context(), pay.ID.String(), simulator.Action{Outcome: simulator.Succeed, Callbacks: 1, Delay: 3 * time.Minute}); err != nil {
			s.Fatal(err)
		}
		h, err := s.svc.Hold(s.Context(), old.ID, old.Customer)
		if err != nil {
			s.Fatal(err)
		}
		s.Clock.Set(h.Until.Add(time.Millisecond))
		var won atomic.Int64
		var winner booking.Hold
		together(100, func(int) {
			p, err := s.try(s.cinema, newCustomer(), "B5")
			if err == nil {
				won.Add(1)
				winner = p.Hold
			} else if !errors.Is(err, booking.ErrGone) {
				s.Error(err)
			}
		})
		same(s, "winners", int64(1), won.Load())
		s.Clock.Add(time.Minute)
		s.sim.RunOnce(s.Context())
		s.expect(old, booking.BookingFailed)
		s.bought(winner)
		same(s, "alerts", 1, s.watch.count("alert refund"))
		s.loops()
		same(s, "payment", booking.PaymentRefunded, s.payment(pay.ID).Status)
	}},
	{"the same request under one key, a hundred times at once, is one hold", func(s *stage) { // C-26
		for _, ask := range []booking.PlaceHold{
			{Event: s.cinema, Seats: []string{"B5", "B6"}}, {Event: s.field, Pool: "VIP", Quantity: 4}, {Event: s.cinema, Best: &booking.Best{Quantity: 3}},
			{Event: s.flight, Best: &booking.Best{Quantity: 3, Pool: "ECONOMY"}},
		} {
			ask.Customer, ask.Key = newCustomer(), "once"
			ids := sync.Map{}
			together(100, func(int) {
				p, err := s.svc.PlaceHold(s.Context(), ask)
				if err != nil {
					s.Errorf("%+v: %v", ask, err)
				}
				ids.Store(p.Hold.ID, true)
			})
			n := 0
			ids.Range(func(any, any) bool { n++; return true })
			same(s, "holds", 1, n)
		}
	}},
	{"best available under a key is found again when nothing is left", func(s *stage) { // C-26
		ask := booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Key: "k", Best: &booking.Best{Quantity: 2}}
		first, err := s.svc.PlaceHold(s.Context(), ask)
		if err != nil {
			s.Fatal(err)
		}
		for no := range 200 {
			if _, err := s.try(s.cinema, newCustomer(), code(s.cinema, no)); err != nil && !errors.Is(err, booking.ErrGone) {
				s.Fatal(err)
			}
		}
		again, err := s.svc.PlaceHold(s.Context(), ask)
		if err != nil || again.Hold.ID != first.Hold.ID || !again.Replay || again.Together != first.Together {
			s.Errorf("%+v, %v", again, err)
		}
		ask.Key = "another"
		if _, err := s.svc.PlaceHold(s.Context(), ask); !errors.Is(err, booking.ErrGone) {
			s.Error(err)
		}
	}},
	{"a key with another request is refused, and another customer's key is another key", func(s *stage) { // C-27, C-28
		ask := booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Seats: []string{"B5"}, Key: "k"}
		first, err := s.svc.PlaceHold(s.Context(), ask)
		if err != nil {
			s.Fatal(err)
		}
		other := ask
		other.Seats = []string{"B6"}
		if _, err := s.svc.PlaceHold(s.Context(), other); !errors.Is(err, booking.ErrKeyReused) {
			s.Error(err)
		}
		foreign := other
		foreign.Customer = newCustomer()
		p, err := s.svc.PlaceHold(s.Context(), foreign)
		if err != nil || p.Hold.ID == first.Hold.ID {
			s.Errorf("%v, %v", p.Hold.ID, err)
		}
		elsewhere := ask
		elsewhere.Event, elsewhere.Seats = s.flight, []string{"12A"}
		if _, err := s.svc.PlaceHold(s.Context(), elsewhere); err != nil {
			s.Error(err)
		}
	}},
	{"a customer's limit holds over fifty holds at once", func(s *stage) { // C-54
		who, places := newCustomer(), atomic.Int64{}
		together(50, func(i int) {
			p, err := s.tryUnits(who, "STANDING", 1+i%3)
			if err == nil {
				places.Add(int64(p.Hold.Places))
			} else if !errors.Is(err, booking.ErrCustomerLimit) {
				s.Error(err)
			}
		})
		same(s, "places", int64(8), places.Load())
	}},
	{"units are never oversold at any snapshot, and the last one is sellable", func(s *stage) { // C-55
		var got atomic.Int64
		together(100, func(int) {
			_, err := s.tryUnits(newCustomer(), "STANDING", 3)
			if err == nil {
				got.Add(3)
			} else if !errors.Is(err, booking.ErrGone) {
				s.Error(err)
			}
			n := int64(0)
			for _, b := range s.books(s.field).Pools[0] {
				n += b.Held + b.Sold
			}
			if n > 20 {
				s.Errorf("%d units of 20 are taken", n)
			}
		})
		same(s, "units", int64(18), got.Load())
		for _, n := range []int{2, 1} {
			if _, err := s.tryUnits(newCustomer(), "STANDING", n); n == 2 && err != nil || n == 1 && !errors.Is(err, booking.ErrGone) {
				s.Errorf("%d more: %v", n, err)
			}
		}
	}},
	{"best available for many at once gives no seat twice and splits nobody who need not be", func(s *stage) {
		var mu sync.Mutex
		taken, apart := map[int32]bool{}, 0
		together(48, func(int) {
			p, err := s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Best: &booking.Best{Quantity: 4}})
			if err != nil {
				s.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			side := true
			for i, no := range p.Hold.Seats {
				if taken[no] {
					s.Errorf("seat %d was given twice", no)
				}
				taken[no] = true
				side = side && (i == 0 || no == p.Hold.Seats[i-1]+1) && no/20 == p.Hold.Seats[0]/20
			}
			// An aisle is in the middle of each row, after the tenth seat.
			first, last := p.Hold.Seats[0], p.Hold.Seats[3]
			side = side && first%20/10 == last%20/10
			if side != p.Together {
				s.Errorf("seats %v are together: %v", p.Hold.Seats, p.Together)
			}
			if !p.Together {
				apart++
			}
		})
		same(s, "seats", 192, len(taken))
		s.Logf("%d of 48 parties were split", apart)
		if _, err := s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Best: &booking.Best{Quantity: 8}}); !errors.Is(err, booking.ErrGone) {
			s.Errorf("8 of the 4 seats that are left for all: %v", err)
		}
	}},
	{"best available that replaces a hold may choose its own old seats again", func(s *stage) {
		who := newCustomer()
		ask := booking.PlaceHold{Event: s.cinema, Customer: who, Best: &booking.Best{Quantity: 3}}
		first, err := s.svc.PlaceHold(s.Context(), ask)
		if err != nil {
			s.Fatal(err)
		}
		ask.Replaces = first.Hold.ID
		again, err := s.svc.PlaceHold(s.Context(), ask)
		if err != nil {
			s.Fatal(err)
		}
		same(s, "seats", first.Hold.Seats, again.Hold.Seats)
		if again.Hold.ID == first.Hold.ID {
			s.Error("nothing was replaced")
		}
	}},
	{"best available chooses again when another process was faster and the picture does not know", func(s *stage) {
		if _, err := s.boards.Get(s.Context(), int64(s.cinema.ID)); err != nil {
			s.Fatal(err)
		}
		other := s.newService(func(c *booking.Config) { c.Boards = s.newBoards() })
		for range 2 {
			ask := booking.PlaceHold{Event: s.cinema, Customer: newCustomer(), Best: &booking.Best{Quantity: 3}}
			theirs, err := other.PlaceHold(s.Context(), ask)
			if err != nil {
				s.Fatal(err)
			}
			ask.Customer = newCustomer()
			ours, err := s.svc.PlaceHold(s.Context(), ask)
			if err != nil || ours.Hold.Seats[0] == theirs.Hold.Seats[0] {
				s.Errorf("%v after %v: %v", ours.Hold.Seats, theirs.Hold.Seats, err)
			}
		}
		s.boards.Reload(s.Context(), s.Clock.Now().Add(time.Minute))
	}},
	{"a flight sells 183 of 180: when it is full every seat is refused by its pool and shown as taken", func(s *stage) {
		who := func(n int) identity.CustomerID { return identity.CustomerID{byte(n), 1} }
		for n := range 20 {
			s.bought(s.hold(s.flight, who(n), code(s.flight, 3*n), code(s.flight, 3*n+1), code(s.flight, 3*n+2)))
		}
		for n := range 41 {
			if _, err := s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.flight, Customer: who(n), Pool: "ECONOMY", Quantity: 3}); err != nil {
				s.Fatal(err)
			}
		}
		for _, ask := range []booking.PlaceHold{
			{Seats: []string{code(s.flight, 100)}}, {Pool: "ECONOMY", Quantity: 1}, {Pool: "ECONOMY", Seats: []string{code(s.flight, 101)}},
		} {
			ask.Event, ask.Customer = s.flight, newCustomer()
			_, err := s.svc.PlaceHold(s.Context(), ask)
			gone, ok := errors.AsType[*booking.GoneError](err)
			if !ok {
				s.Fatal(err)
			}
			same(s, "pools", []int{0}, gone.Pools)
			same(s, "seats", 0, len(gone.Seats))
		}
		live, err := s.boards.Get(s.Context(), int64(s.flight.ID))
		if err != nil || live.Free(100) {
			s.Errorf("a free seat of a full pool is shown free: %v", err)
		}
		if _, err := s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.flight, Customer: newCustomer(), Best: &booking.Best{Quantity: 1}}); !errors.Is(err, booking.ErrGone) {
			s.Error(err)
		}
		same(s, "available", 0, live.Available())
	}},
	{"with the sweeper off, units and allowance of ended holds can be had again at once", func(s *stage) { // C-66, C-68
		who := newCustomer()
		for range 2 { // to the customer's limit of 8
			if _, err := s.tryUnits(who, "STANDING", 4); err != nil {
				s.Fatal(err)
			}
		}
		for range 3 { // to the pool's end
			if _, err := s.tryUnits(newCustomer(), "STANDING", 4); err != nil {
				s.Fatal(err)
			}
		}
		if _, err := s.tryUnits(newCustomer(), "STANDING", 1); !errors.Is(err, booking.ErrGone) {
			s.Fatal(err)
		}
		s.Clock.Add(5 * time.Minute) // the last instant of all of them
		if _, err := s.tryUnits(newCustomer(), "STANDING", 1); !errors.Is(err, booking.ErrGone) {
			s.Fatal(err)
		}
		s.Clock.Add(time.Millisecond)
		if _, err := s.tryUnits(who, "VIP", 4); err != nil {
			s.Errorf("a buyer at the limit by own ended holds: %v", err)
		}
		var got atomic.Int64
		together(30, func(int) {
			if _, err := s.tryUnits(newCustomer(), "STANDING", 1); err == nil {
				got.Add(1)
			} else if !errors.Is(err, booking.ErrGone) {
				s.Error(err)
			}
		})
		same(s, "units", int64(20), got.Load())
	}},
	{"lowering a limit ends what is over before it refuses", func(s *stage) { // C-68
		for range 5 {
			if _, err := s.tryUnits(newCustomer(), "STANDING", 4); err != nil {
				s.Fatal(err)
			}
		}
		set := booking.SetPool{Event: s.field.ID, Pool: 0, Capacity: 10}
		if err := s.svc.SetPool(s.Context(), set); !errors.Is(err, booking.ErrLimitBelowTaken) {
			s.Error(err)
		}
		s.Clock.Add(6 * time.Minute)
		if err := s.svc.SetPool(s.Context(), set); err != nil {
			s.Error(err)
		}
	}},
	{"what is asked wrongly is refused with the field and the remedy", func(s *stage) {
		for _, test := range []struct {
			ask           booking.PlaceHold
			code, pointer string
		}{
			{booking.PlaceHold{Event: s.cinema, Seats: []string{"B5", "Z99"}}, "unknown-seat", "/seats/1"},
			{booking.PlaceHold{Event: s.cinema, Seats: []string{"B5", "B5"}}, "duplicate-seat", "/seats/1"},
			{booking.PlaceHold{Event: s.field, Seats: []string{"B5"}}, "unknown-seat", "/seats"},
			{booking.PlaceHold{Event: s.cinema, Seats: []string{"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9"}}, "too-many-places", "/seats"},
			{booking.PlaceHold{Event: s.cinema}, "nothing-asked", ""},
			{booking.PlaceHold{Event: s.field, Pool: "NOWHERE", Quantity: 1}, "unknown-pool", "/pool"},
			{booking.PlaceHold{Event: s.field, Pool: "VIP"}, "nothing-asked", "/quantity"},
			{booking.PlaceHold{Event: s.field, Pool: "VIP", Quantity: -1}, "nothing-asked", "/quantity"},
			{booking.PlaceHold{Event: s.field, Pool: "VIP", Quantity: 5}, "too-many-places", "/quantity"},
			{booking.PlaceHold{Event: s.flight, Pool: "FIRST", Seats: []string{"12A"}}, "pool-mismatch", "/pool"},
			{booking.PlaceHold{Event: s.field, Best: &booking.Best{Quantity: 1}}, "validation", "/best"},
			{booking.PlaceHold{Event: s.cinema, Best: &booking.Best{}}, "nothing-asked", "/best/quantity"},
			{booking.PlaceHold{Event: s.cinema, Best: &booking.Best{Quantity: 9}}, "too-many-places", "/best/quantity"},
			{booking.PlaceHold{Event: s.cinema, Best: &booking.Best{Quantity: 1, Pool: "NOWHERE"}}, "unknown-pool", "/best/pool"},
			{booking.PlaceHold{Event: s.cinema, Best: &booking.Best{Quantity: 1, Section: "Balcony"}}, "validation", "/best/section"},
		} {
			test.ask.Customer = newCustomer()
			_, err := s.svc.PlaceHold(s.Context(), test.ask)
			input, ok := errors.AsType[*booking.InputError](err)
			if !ok || input.Code != test.code || input.Pointer != test.pointer || input.Detail == "" {
				s.Errorf("%+v: %v", test.ask, err)
			}
		}
		same(s, "holds", 0, len(s.books(s.cinema).Holds)+len(s.books(s.field).Holds)+len(s.books(s.flight).Holds))
	}},
	{"a refusal names what is gone and offers what could be taken instead", func(s *stage) {
		s.hold(s.cinema, newCustomer(), "E10", "E11")
		for range 2 { // from the store, then from memory
			_, err := s.try(s.cinema, newCustomer(), "E11", "E12")
			gone, ok := errors.AsType[*booking.GoneError](err)
			if !ok {
				s.Fatal(err)
			}
			same(s, "gone", []int32{seatNo(hall(), "E11")}, gone.Seats)
			if len(gone.Alternatives) == 0 {
				s.Error("no alternatives")
			}
			for _, a := range gone.Alternatives {
				same(s, "places of an alternative", 2, len(a))
			}
		}
		same(s, "refused from memory", 1, s.watch.count("early"))
	}},
	{"a choice that leaves a single seat alone is refused where the event forbids it, from the first hold on", func(s *stage) {
		e := Cinema()
		e.Policy.Orphans = catalog.OrphansForbid
		s.add(e)
		_, err := s.try(e, newCustomer(), "C2", "C3")
		orphan, ok := errors.AsType[*booking.SeatsError](err)
		if !ok || !errors.Is(err, booking.ErrOrphan) {
			s.Fatalf("C1 is left alone: %v", err)
		}
		same(s, "left alone", []int32{seatNo(hall(), "C1")}, orphan.Seats)
		s.hold(e, newCustomer(), "C1", "C2")
	}},
	{"somebody else's hold is not there, and the sale must be open", func(s *stage) { // C-13, C-63
		h := s.hold(s.cinema, newCustomer(), "B5")
		thief := newCustomer()
		_, look := s.svc.Hold(s.Context(), h.ID, thief)
		_, release := s.svc.Release(s.Context(), h.ID, thief)
		_, extend := s.svc.Extend(s.Context(), h.ID, thief)
		stolen := h
		stolen.Customer = thief
		_, pay := s.pay(stolen, "k")
		_, replace := s.svc.PlaceHold(s.Context(), booking.PlaceHold{Event: s.cinema, Customer: thief, Seats: []string{"B6"}, Replaces: h.ID})
		for i, err := range []error{look, release, extend, pay, replace} {
			if !errors.Is(err, booking.ErrNotFound) {
				s.Errorf("%d: %v", i, err)
			}
		}
		soon := Cinema()
		soon.SaleOpensAt = s.Clock.Now().Add(time.Millisecond)
		s.add(soon)
		if _, err := s.try(soon, newCustomer(), "B5"); !errors.Is(err, booking.ErrNotOnSale) {
			s.Error(err)
		}
		s.Clock.Add(time.Millisecond)
		s.hold(soon, newCustomer(), "B5")
	}},
	{"of people who come one after the other while the store is busy, the first gets the seat", func(s *stage) { // C-07
		open := s.gate.close()
		answers := make([]error, 51)
		var wg sync.WaitGroup
		for i := range answers {
			seat := "B5"
			if i == 0 {
				seat = "C5" // it occupies the store
			}
			wg.Go(func() { _, answers[i] = s.try(s.cinema, newCustomer(), seat) })
			synctest.Wait()
		}
		open()
		wg.Wait()
		same(s, "batches", []int{1, 50}, s.gate.sizes())
		for i, err := range answers {
			if i <= 1 && err != nil || i > 1 && !errors.Is(err, booking.ErrGone) {
				s.Errorf("number %d: %v", i, err)
			}
		}
	}},
}
