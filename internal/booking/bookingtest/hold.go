package bookingtest

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/payment"
)

func goneSeats(w *world, r booking.Result, want ...int32) {
	w.Helper()
	gone, ok := errors.AsType[*booking.GoneError](r.Err)
	if !ok {
		w.Fatalf("%v is not a GoneError", r.Err)
	}
	same(w, "seats that are gone", want, gone.Seats)
}

func gonePools(w *world, r booking.Result, want ...int) {
	w.Helper()
	gone, ok := errors.AsType[*booking.GoneError](r.Err)
	if !ok {
		w.Fatalf("%v is not a GoneError", r.Err)
	}
	same(w, "pools that are gone", want, gone.Pools)
}

var placeRules = []rule{
	{"a hold has its places, price, end and ceiling, and is read back as it was placed", func(w *world) { // C-64
		c := w.seats(w.cinema, newCustomer(), 3, 4, 199)
		c.Request = [16]byte{1, 2}
		got := w.ok(c).Hold
		want := booking.Hold{
			ID: c.ID, Customer: c.Customer, Seats: []int32{3, 4, 199}, Places: 3, Price: eur(3 * stallsPrice), State: booking.HoldHeld,
			PlacedAt: w.Clock.Now(), Until: w.Clock.Now().Add(10 * time.Minute), Ceiling: w.Clock.Now().Add(20 * time.Minute), Request: c.Request,
		}
		same(w, "hold", want, got)
		same(w, "hold in the store", want, w.hold(c.ID))
		b := w.books(w.cinema)
		for _, no := range c.Seats {
			same(w, "seat", booking.Seat{Status: booking.Held, Hold: c.ID.Bits, Until: want.Until, Epoch: 1}, b.Seats[no])
		}
		same(w, "allowances", map[identity.CustomerID]int{c.Customer: 3}, b.Allowances)
	}},
	{"a hold with a seat that is gone takes none, and every seat that is gone is named", func(w *world) { // C-05
		w.ok(w.seats(w.cinema, newCustomer(), 2, 4))
		w.ok(&booking.Block{Event: w.cinema.ID, Seats: []int32{6}})
		goneSeats(w, w.no(booking.ErrGone, w.seats(w.cinema, newCustomer(), 1, 2, 3, 4, 5, 6)), 2, 4, 6)
		w.ok(w.seats(w.cinema, newCustomer(), 1, 3, 5))
	}},
	{"of many for one seat in one batch the first wins, and every answer is its own", func(w *world) { // C-07
		var commands []booking.Command
		for range 50 {
			commands = append(commands, w.seats(w.cinema, newCustomer(), 7))
		}
		for i, r := range w.apply(commands...) {
			place := commands[i].(*booking.Place)
			switch {
			case i == 0 && (r.Err != nil || r.Hold.ID != place.ID):
				w.Errorf("the first: %v, hold %v", r.Err, r.Hold.ID)
			case i > 0 && !errors.Is(r.Err, booking.ErrGone):
				w.Errorf("number %d: %v", i, r.Err)
			}
		}
		same(w, "owner", commands[0].(*booking.Place).ID.Bits, w.books(w.cinema).Seats[7].Hold)
	}},
	{"a batch is decided in its order: what one gives back the next can take", func(w *world) {
		first := w.seats(w.cinema, newCustomer(), 1)
		second, third := w.seats(w.cinema, newCustomer(), 1), w.seats(w.cinema, newCustomer(), 1)
		results := w.apply(first, second, &booking.Release{ID: first.ID, Customer: first.Customer}, third)
		for i, want := range []error{nil, booking.ErrGone, nil, nil} {
			if !errors.Is(results[i].Err, want) {
				w.Errorf("command %d: %v, not %v", i, results[i].Err, want)
			}
		}
		same(w, "owner", third.ID.Bits, w.books(w.cinema).Seats[1].Hold)
	}},
	{"a batch may have commands of several events", func(w *world) {
		a, b, c := w.seats(w.cinema, newCustomer(), 1), w.units(w.field, newCustomer(), 0, 2), w.seats(w.flight, newCustomer(), 1, 2)
		for i, r := range w.apply(a, b, c, w.seats(w.cinema, newCustomer(), 1)) {
			if (i == 3) != (r.Err != nil) {
				w.Errorf("command %d: %v", i, r.Err)
			}
		}
	}},
	{"a repetition under the same id is answered as before, another request under it is refused", func(w *world) { // C-26, C-27, C-28
		c := w.seats(w.cinema, newCustomer(), 1, 2)
		c.Request = [16]byte{1}
		first := w.ok(c).Hold
		same(w, "repeated", first, w.replay(c).Hold)
		twice := w.apply(c, c)
		same(w, "repeated twice in a batch", []booking.Hold{first, first}, []booking.Hold{twice[0].Hold, twice[1].Hold})
		other := *c
		other.Request = [16]byte{2}
		w.no(booking.ErrKeyReused, &other)
		foreign := *c
		foreign.Customer = newCustomer()
		w.no(booking.ErrKeyReused, &foreign)
		w.ok(&booking.Release{ID: c.ID, Customer: c.Customer})
		if h := w.replay(c).Hold; h.State != booking.HoldReleased { // C-29: a key is never used up, its hold is
			w.Errorf("repeated after the release: %v", h.State)
		}
	}},
	{"the same batch again, as after an unknown outcome, changes nothing", func(w *world) { // C-17, C-20
		a, b := w.seats(w.cinema, newCustomer(), 1), w.units(w.field, newCustomer(), 0, 3)
		w.apply(a, b)
		before := w.books(w.field)
		again, err := w.Store.Apply(w.Context(), []booking.Command{a, b}, booking.Decide)
		if err != nil || !again.Changes.Empty() || !again.Results[0].Replay || !again.Results[1].Replay {
			w.Errorf("repeated: %v, %+v", err, again)
		}
		same(w, "books", before, w.books(w.field))
	}},
	{"a customer has at most so many places of an event, over holds and bookings", func(w *world) { // C-54
		who := newCustomer() // 8 of a concert
		w.sold(w.units(w.field, who, 0, 4))
		keep := w.units(w.field, who, 1, 3)
		w.ok(keep)
		if r := w.no(booking.ErrCustomerLimit, w.units(w.field, who, 0, 2)); !r.Short {
			w.Error("ended holds may be in the way, yet the lane is not told")
		}
		w.ok(w.units(w.field, who, 0, 1))
		w.no(booking.ErrCustomerLimit, w.units(w.field, who, 0, 1))
		w.ok(w.units(w.field, newCustomer(), 0, 4))
		w.ok(&booking.Release{ID: keep.ID, Customer: who})
		w.ok(w.units(w.field, who, 0, 3))
		other := Field()
		w.AddEvent(w, other)
		w.ok(w.units(other, who, 0, 4))
	}},
	{"the limit of a customer holds inside one batch", func(w *world) { // C-54
		who, done := newCustomer(), 0
		var commands []booking.Command
		for range 20 {
			commands = append(commands, w.units(w.field, who, 0, 1))
		}
		for _, r := range w.apply(commands...) {
			if r.Err == nil {
				done++
			}
		}
		same(w, "holds of one place", 8, done)
	}},
	{"the sale opens and closes at its instants, by the store's clock", func(w *world) { // C-63
		e := Cinema()
		e.SaleOpensAt, e.SaleClosesAt = Start.Add(time.Second), Start.Add(time.Hour) // the clocks go forward in between
		w.AddEvent(w, e)
		w.Clock.Set(e.SaleOpensAt.Add(-time.Millisecond))
		r := w.no(booking.ErrNotOnSale, w.seats(e, newCustomer(), 1))
		if sale, ok := errors.AsType[*booking.SaleError](r.Err); !ok || !sale.OpensAt.Equal(e.SaleOpensAt) {
			w.Errorf("refused with %v", r.Err)
		}
		w.Clock.Set(e.SaleOpensAt)
		w.ok(w.seats(e, newCustomer(), 1))
		w.Clock.Set(e.SaleClosesAt.Add(-time.Millisecond))
		c := w.seats(e, newCustomer(), 2)
		w.ok(c)
		w.Clock.Set(e.SaleClosesAt)
		w.no(booking.ErrSaleClosed, w.seats(e, newCustomer(), 3))
		w.replay(c)
		paused := *w.cinema
		paused.Paused = true
		w.no(booking.ErrPaused, w.seats(&paused, newCustomer(), 3))
	}},
	{"replacing gives the old places back and takes the new ones in one step", func(w *world) {
		old := w.seats(w.cinema, newCustomer(), 1, 2, 3)
		w.ok(old)
		w.Clock.Add(4 * time.Minute)
		c := w.seats(w.cinema, old.Customer, 3, 4)
		c.Replaces = old.ID
		h := w.ok(c).Hold
		same(w, "end", w.Clock.Now().Add(10*time.Minute), h.Until)
		same(w, "ceiling of the first hold", Start.Add(20*time.Minute), h.Ceiling)
		same(w, "state of the old hold", booking.HoldReleased, w.hold(old.ID).State)
		b := w.books(w.cinema)
		for no, want := range map[int32]booking.SeatStatus{1: booking.Available, 2: booking.Available, 3: booking.Held, 4: booking.Held} {
			same(w, "seat", want, b.Seats[no].Status)
		}
		same(w, "allowance", 2, b.Allowances[old.Customer])
		w.replay(c)
	}},
	{"replacing again and again ends at the first hold's ceiling", func(w *world) {
		who := newCustomer()
		last := w.seats(w.cinema, who, 1)
		w.ok(last)
		for i := range int32(3) {
			w.Clock.Add(6 * time.Minute)
			c := w.seats(w.cinema, who, i+2)
			c.Replaces = last.ID
			same(w, "end", Start.Add(min(20*time.Minute, time.Duration(i+1)*6*time.Minute+10*time.Minute)), w.ok(c).Hold.Until)
			last = c
		}
	}},
	{"replacing that is refused leaves the old hold as it is", func(w *world) { // C-05
		old := w.seats(w.cinema, newCustomer(), 1, 2)
		w.ok(old)
		w.ok(w.seats(w.cinema, newCustomer(), 3))
		before := w.books(w.cinema)
		c := w.seats(w.cinema, old.Customer, 2, 3)
		c.Replaces = old.ID
		goneSeats(w, w.no(booking.ErrGone, c), 3)
		same(w, "books", before, w.books(w.cinema))
	}},
	{"only an own hold that is live can be replaced", func(w *world) { // C-13
		old := w.seats(w.cinema, newCustomer(), 1)
		w.ok(old)
		try := func(who identity.CustomerID) *booking.Place {
			c := w.seats(w.cinema, who, 2)
			c.Replaces = old.ID
			return c
		}
		w.no(booking.ErrNotFound, try(newCustomer()))
		unknown := try(old.Customer)
		unknown.Replaces = booking.HoldID(newKey(w.cinema.ID))
		w.no(booking.ErrNotFound, unknown)
		w.Clock.Add(10*time.Minute + time.Millisecond)
		w.no(booking.ErrHoldEnded, try(old.Customer))
		booked := w.seats(w.cinema, old.Customer, 3)
		w.sold(booked)
		c := try(old.Customer)
		c.Replaces = booked.ID
		w.no(booking.ErrAlreadyBooked, c)
	}},
	{"the old units and the old allowance count as free for the hold that replaces", func(w *world) {
		who := newCustomer()
		old := w.units(w.field, who, 1, 4) // VIP has 6
		w.ok(old)
		w.ok(w.units(w.field, who, 0, 4)) // at the limit of 8
		w.ok(w.units(w.field, newCustomer(), 1, 2))
		c := w.units(w.field, who, 1, 3)
		c.Replaces = old.ID
		w.ok(c)
		more := w.units(w.field, who, 1, 4)
		more.Replaces = c.ID
		w.ok(more)
		held, _ := w.taken(w.field, 1)
		same(w, "VIP held", 6, held)
	}},
	{"replacing a hold that is being paid fails its booking, and money that still comes goes back", func(w *world) { // C-32
		old := w.seats(w.cinema, newCustomer(), 1)
		w.ok(old)
		pay := w.ok(w.checkout(old)).Payment
		c := w.seats(w.cinema, old.Customer, 1, 2)
		c.Replaces = old.ID
		w.ok(c)
		p, err := w.Store.Payment(w.Context(), pay.ID)
		if err != nil || p.CheckAt.After(w.Clock.Now()) {
			w.Errorf("the old session is looked at %v, %v", p.CheckAt, err)
		}
		r := w.ok(w.settle(pay.ID, payment.Succeeded))
		if !r.Late || r.Booking.Status != booking.BookingFailed || r.Payment.Status != booking.PaymentRefundDue {
			w.Errorf("late money: %+v", r)
		}
		same(w, "owner", c.ID.Bits, w.books(w.cinema).Seats[1].Hold)
	}},
}

var lifeRules = []rule{
	{"a hold lives until its very end, and not after", func(w *world) { // C-10
		c := w.seats(w.cinema, newCustomer(), 1, 2)
		until := w.ok(c).Hold.Until
		w.Clock.Set(until)
		goneSeats(w, w.no(booking.ErrGone, w.seats(w.cinema, newCustomer(), 1)), 1)
		w.replay(&booking.Expire{ID: c.ID})
		w.Clock.Add(time.Millisecond)
		w.no(booking.ErrHoldEnded, &booking.Extend{Event: w.cinema, ID: c.ID, Customer: c.Customer})
		w.no(booking.ErrHoldEnded, w.checkout(c))
		next := w.seats(w.cinema, newCustomer(), 1)
		w.ok(next) // C-68: nobody swept
		w.no(booking.ErrHoldEnded, &booking.Extend{Event: w.cinema, ID: c.ID, Customer: c.Customer})
		same(w, "owner", next.ID.Bits, w.books(w.cinema).Seats[1].Hold)
		same(w, "epoch", 2, w.books(w.cinema).Seats[1].Epoch)
	}},
	{"a confirm in the last instant sells, and one after it gives the money back, whether or not the seat was retaken", func(w *world) { // C-11, C-12, C-32, C-33
		pay := func(no int32) (*booking.Place, *booking.Settle) {
			c := w.seats(w.cinema, newCustomer(), no)
			w.ok(c)
			return c, w.settle(w.ok(w.checkout(c)).Payment.ID, payment.Succeeded)
		}
		_, last := pay(1)
		_, late := pay(2)
		lost, retaken := pay(3)
		w.Clock.Set(w.hold(lost.ID).Until)
		if r := w.ok(last); r.Late || r.Booking.Status != booking.BookingConfirmed {
			w.Errorf("in the last instant: %+v", r)
		}
		w.Clock.Add(time.Millisecond)
		next := w.seats(w.cinema, newCustomer(), 3)
		for i, r := range w.apply(late, next, retaken) {
			if i != 1 && (!r.Late || r.Booking.Status != booking.BookingFailed || r.Payment.Status != booking.PaymentRefundDue || r.Payment.Owed != stallsPrice) {
				w.Errorf("late payment %d: %+v", i, r)
			}
		}
		b := w.books(w.cinema)
		same(w, "owner", next.ID.Bits, b.Seats[3].Hold)
		same(w, "refunds", 2, len(b.Refunds))
	}},
	{"every order of confirm, retake and expire leaves one owner", func(w *world) { // C-12
		for i, order := range permutations(3) {
			no := int32(10 + i)
			c := w.seats(w.cinema, newCustomer(), no)
			w.ok(c)
			settle := w.settle(w.ok(w.checkout(c)).Payment.ID, payment.Succeeded)
			w.Clock.Set(w.hold(c.ID).Until.Add(time.Millisecond))
			steps := []booking.Command{settle, w.seats(w.cinema, newCustomer(), no), &booking.Expire{ID: c.ID}}
			for _, step := range order {
				w.ok(steps[step])
			}
			same(w, "owner", steps[1].(*booking.Place).ID.Bits, w.books(w.cinema).Seats[no].Hold)
			w.audit()
		}
	}},
	{"a release by anyone else has no effect", func(w *world) { // C-13
		c := w.seats(w.cinema, newCustomer(), 1)
		w.ok(c)
		w.no(booking.ErrNotFound, &booking.Release{ID: c.ID, Customer: newCustomer()})
		w.no(booking.ErrNotFound, &booking.Release{ID: booking.HoldID(newKey(w.cinema.ID)), Customer: c.Customer})
		w.no(booking.ErrNotFound, &booking.Extend{Event: w.cinema, ID: c.ID, Customer: newCustomer()})
		foreign := w.checkout(c)
		foreign.Customer = newCustomer()
		w.no(booking.ErrNotFound, foreign)
		same(w, "state", booking.HoldHeld, w.hold(c.ID).State)
	}},
	{"a release is idempotent, and after the seat was retaken it does not free it", func(w *world) { // C-14
		c := w.seats(w.cinema, newCustomer(), 1, 2)
		release := &booking.Release{ID: c.ID, Customer: c.Customer}
		w.ok(c)
		w.ok(release)
		w.replay(release)
		w.apply(release, release)
		old := w.seats(w.cinema, newCustomer(), 1, 2)
		w.ok(old)
		w.Clock.Add(10*time.Minute + time.Millisecond)
		next := w.seats(w.cinema, newCustomer(), 1)
		w.ok(next)
		w.ok(&booking.Release{ID: old.ID, Customer: old.Customer})
		b := w.books(w.cinema)
		same(w, "owner", next.ID.Bits, b.Seats[1].Hold)
		same(w, "the seat nobody retook", booking.Available, b.Seats[2].Status)
	}},
	{"a booked hold can't be released, extended, expired or paid again", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1)
		w.sold(c)
		w.no(booking.ErrAlreadyBooked, &booking.Release{ID: c.ID, Customer: c.Customer})
		w.no(booking.ErrAlreadyBooked, &booking.Extend{Event: w.cinema, ID: c.ID, Customer: c.Customer})
		w.no(booking.ErrAlreadyBooked, w.checkout(c))
		w.Clock.Add(time.Hour)
		w.replay(&booking.Expire{ID: c.ID})
		goneSeats(w, w.no(booking.ErrGone, w.seats(w.cinema, newCustomer(), 1)), 1)
		w.no(booking.ErrNotFound, &booking.Expire{ID: booking.HoldID(newKey(w.cinema.ID))})
	}},
	{"an ended hold of seats and units is settled once, however often it is swept", func(w *world) { // C-66
		c := w.seats(w.flight, newCustomer(), 1, 2)
		w.ok(c)
		w.Clock.Add(10*time.Minute + time.Millisecond)
		next := w.seats(w.flight, newCustomer(), 1)
		w.ok(next)
		held, _ := w.taken(w.flight, 0)
		same(w, "units before the sweep", 3, held)
		w.apply(&booking.Expire{ID: c.ID}, &booking.Expire{ID: c.ID})
		w.replay(&booking.Expire{ID: c.ID})
		held, _ = w.taken(w.flight, 0)
		same(w, "units after it", 1, held)
		same(w, "allowances", map[identity.CustomerID]int{next.Customer: 1}, w.books(w.flight).Allowances)
		same(w, "state", booking.HoldExpired, w.hold(c.ID).State)
	}},
	{"more time is added up to the ceiling, on the hold and on its seats", func(w *world) {
		c := w.seats(w.cinema, newCustomer(), 1, 2)
		w.ok(c)
		extend := &booking.Extend{Event: w.cinema, ID: c.ID, Customer: c.Customer}
		for _, want := range []time.Duration{15 * time.Minute, 20 * time.Minute} {
			same(w, "end", Start.Add(want), w.ok(extend).Hold.Until)
			same(w, "end of a seat", Start.Add(want), w.books(w.cinema).Seats[2].Until)
		}
		w.no(booking.ErrCeiling, extend)
		w.Clock.Set(Start.Add(20 * time.Minute))
		goneSeats(w, w.no(booking.ErrGone, w.seats(w.cinema, newCustomer(), 2)), 2)
		none := Cinema()
		none.Policy.ExtendTTL = 0
		c = w.seats(none, newCustomer(), 1)
		w.ok(c)
		w.no(booking.ErrCeiling, &booking.Extend{Event: none, ID: c.ID, Customer: c.Customer})
	}},
	{"the last step of more time is cut at the ceiling", func(w *world) {
		e := Cinema()
		e.Policy.Ceiling = 13 * time.Minute
		c := w.seats(e, newCustomer(), 1)
		w.ok(c)
		extend := &booking.Extend{Event: e, ID: c.ID, Customer: c.Customer}
		same(w, "end", Start.Add(13*time.Minute), w.ok(extend).Hold.Until)
		w.no(booking.ErrCeiling, extend)
	}},
	{"every unsold seat can be bought after a storm whose holds all ended, with no sweeper", func(w *world) { // C-03, C-68
		all := func(command func(no int32) booking.Command) {
			var commands []booking.Command
			for no := range int32(200) {
				commands = append(commands, command(no))
			}
			for i, r := range w.apply(commands...) {
				if r.Err != nil {
					w.Errorf("seat %d: %v", i, r.Err)
				}
			}
		}
		all(func(no int32) booking.Command { return w.seats(w.cinema, newCustomer(), no) })
		w.Clock.Add(time.Hour)
		var bought [200]*booking.Place
		var sessions [200]*booking.Checkout
		all(func(no int32) booking.Command { bought[no] = w.seats(w.cinema, newCustomer(), no); return bought[no] })
		all(func(no int32) booking.Command { sessions[no] = w.checkout(bought[no]); return sessions[no] })
		all(func(no int32) booking.Command { return w.settle(sessions[no].Payment, payment.Succeeded) })
		for no, seat := range w.books(w.cinema).Seats {
			same(w, "owner", booking.Seat{Status: booking.Sold, Hold: bought[no].ID.Bits, Epoch: 3}, seat)
		}
	}},
}

var poolRules = []rule{
	{"units come from the preferred bucket, else from any that has them all, else from several", func(w *world) { // C-55
		take := func(n int64, prefer int) []booking.Units {
			c := w.units(w.field, newCustomer(), 0, n) // 4 buckets of 5
			c.Bucket = prefer
			return w.ok(c).Hold.Units
		}
		u := func(bucket int, n int64) booking.Units { return booking.Units{Bucket: bucket, N: n} }
		same(w, "first", []booking.Units{u(1, 4)}, take(4, 1))
		same(w, "no room in the preferred one", []booking.Units{u(2, 4)}, take(4, 1))
		same(w, "a bucket beyond the last", []booking.Units{u(3, 3)}, take(3, 7))
		same(w, "from the next that has them", []booking.Units{u(0, 4)}, take(4, 3))
		same(w, "from several", []booking.Units{u(3, 2), u(0, 1), u(1, 1)}, take(4, 3))
		gonePools(w, w.no(booking.ErrGone, w.units(w.field, newCustomer(), 0, 2)), 0)
		same(w, "the last unit", []booking.Units{u(2, 1)}, take(1, 0))
		r := w.no(booking.ErrGone, w.units(w.field, newCustomer(), 0, 1))
		if gonePools(w, r, 0); !r.Short {
			w.Error("ended holds may be in the way, yet the lane is not told")
		}
	}},
	{"a hold may have units of several pools, all or none", func(w *world) { // C-05
		both := func(standing, vip int64) *booking.Place {
			c := w.units(w.field, newCustomer(), 0, standing)
			c.Units, c.Places = append(c.Units, booking.UnitsWant{Pool: 1, N: vip}), int(standing+vip)
			return c
		}
		w.ok(both(2, 2))
		w.ok(w.units(w.field, newCustomer(), 1, 3))
		gonePools(w, w.no(booking.ErrGone, both(2, 2)), 1)
		w.sold(both(2, 1))
		held, sold := w.taken(w.field, 0)
		same(w, "standing", []int64{2, 2}, []int64{held, sold})
	}},
	{"a flight sells 183 of 180: when the pool is full it is named, though seats look free", func(w *world) {
		w.flight.Policy.MaxPlacesPerCustomer = 200
		for n := int64(0); n < 183; n += 3 {
			if n < 150 {
				w.ok(w.seats(w.flight, newCustomer(), int32(n), int32(n+1), int32(n+2)))
			} else {
				w.sold(w.units(w.flight, newCustomer(), 0, 3))
			}
		}
		r := w.no(booking.ErrGone, w.seats(w.flight, newCustomer(), 170))
		goneSeats(w, r)
		gonePools(w, r, 0)
		r = w.no(booking.ErrGone, w.seats(w.flight, newCustomer(), 1, 170))
		goneSeats(w, r, 1)
		gonePools(w, r, 0)
	}},
	{"units of holds whose time is over stay counted until they are settled, and the store names those holds", func(w *world) { // C-66, C-68
		c := w.units(w.field, newCustomer(), 1, 4)
		w.ok(c)
		other := w.units(w.field, newCustomer(), 0, 4)
		w.ok(other)
		w.Clock.Add(5*time.Minute + time.Millisecond)
		alive := w.units(w.field, newCustomer(), 1, 1)
		w.ok(alive)
		if r := w.no(booking.ErrGone, w.units(w.field, newCustomer(), 1, 4)); !r.Short {
			w.Error("not short")
		}
		ended, err := w.Store.EndedHolds(w.Context(), booking.EndedHolds{Event: w.field.ID, Pools: []int{1}, Limit: 10})
		same(w, "ended holds of the pool", []booking.HoldID{c.ID}, ended)
		ended, err2 := w.Store.EndedHolds(w.Context(), booking.EndedHolds{Event: w.field.ID, Customers: []identity.CustomerID{other.Customer}, Limit: 10})
		same(w, "ended holds of the customer", []booking.HoldID{other.ID}, ended)
		if err := errors.Join(err, err2); err != nil {
			w.Fatal(err)
		}
		results := w.apply(&booking.Expire{ID: c.ID}, w.units(w.field, newCustomer(), 1, 4))
		if results[1].Err != nil {
			w.Errorf("with the ended hold settled in front: %v", results[1].Err)
		}
	}},
	{"units are never more than capacity and overbooking in one batch", func(w *world) { // C-55
		var commands []booking.Command
		for range 30 {
			commands = append(commands, w.units(w.field, newCustomer(), 0, 1))
		}
		done := 0
		for _, r := range w.apply(commands...) {
			if r.Err == nil {
				done++
			}
		}
		same(w, "holds", 20, done)
	}},
}

var readRules = []rule{
	{"ended holds come longest ended first, at most so many, of any event", func(w *world) {
		var ids []booking.HoldID
		for i := range int32(3) {
			c := w.seats(w.cinema, newCustomer(), i)
			w.ok(c)
			ids = append(ids, c.ID)
			w.Clock.Add(time.Second)
		}
		c := w.seats(w.flight, newCustomer(), 1)
		w.ok(c)
		w.Clock.Add(10 * time.Minute) // the flight's hold is at its very end
		got, err := w.Store.EndedHolds(w.Context(), booking.EndedHolds{Limit: 10})
		if err != nil {
			w.Fatal(err)
		}
		same(w, "ended", ids, got)
		w.Clock.Add(time.Second)
		got, err = w.Store.EndedHolds(w.Context(), booking.EndedHolds{Limit: 2})
		if err != nil {
			w.Fatal(err)
		}
		same(w, "the first two", ids[:2], got)
		got, err = w.Store.EndedHolds(w.Context(), booking.EndedHolds{Event: w.flight.ID, Limit: 2})
		if err != nil {
			w.Fatal(err)
		}
		same(w, "of one event", []booking.HoldID{c.ID}, got)
		lag, err := w.Store.Lag(w.Context())
		if err != nil || lag.Sweep != 4*time.Second {
			w.Errorf("lag of the sweep: %v, %v", lag.Sweep, err)
		}
	}},
	{"what is not there is ErrNotFound, and lists of it are empty", func(w *world) {
		k := newKey(w.cinema.ID)
		_, hold := w.Store.Hold(w.Context(), booking.HoldID(k))
		_, book := w.Store.Booking(w.Context(), booking.BookingID(k))
		_, pay := w.Store.Payment(w.Context(), booking.PaymentID(k))
		for _, err := range []error{hold, book, pay} {
			if !errors.Is(err, booking.ErrNotFound) {
				w.Errorf("%v", err)
			}
		}
		pays, err := w.Store.PaymentsOf(w.Context(), booking.HoldID(k))
		if err != nil || len(pays) != 0 {
			w.Errorf("payments: %v, %v", pays, err)
		}
		now, err := w.Store.Now(w.Context())
		if err != nil || !now.Equal(w.Clock.Now()) {
			w.Errorf("the store's clock says %v, %v", now, err)
		}
	}},
	{"bookings are found by customer and by mail address whatever its case, newest first", func(w *world) {
		who := newCustomer()
		var ids []booking.BookingID
		for i := range int32(3) {
			c := w.seats(w.cinema, who, i)
			ids = append([]booking.BookingID{w.sold(c).Booking.ID}, ids...)
			w.Clock.Add(time.Second)
		}
		w.sold(w.seats(w.flight, newCustomer(), 1))
		id := func(list []booking.Booking, err error) (out []booking.BookingID) {
			if err != nil {
				w.Fatal(err)
			}
			for _, b := range list {
				out = append(out, b.ID)
			}
			return out
		}
		same(w, "of the customer", ids, id(w.Store.BookingsOf(w.Context(), who, 10)))
		same(w, "the newest two", ids[:2], id(w.Store.BookingsOf(w.Context(), who, 2)))
		same(w, "of the address", 4, len(id(w.Store.FindBookings(w.Context(), "ada@EXAMPLE.org", 10))))
		same(w, "of another", 0, len(id(w.Store.FindBookings(w.Context(), "ada@example.com", 10))))
	}},
	{"the picture for boards is what the books say", func(w *world) {
		held := w.ok(w.seats(w.flight, newCustomer(), 1, 2)).Hold
		sold := w.sold(w.seats(w.flight, newCustomer(), 3))
		w.ok(&booking.Block{Event: w.flight.ID, Seats: []int32{9}})
		ended := w.seats(w.flight, newCustomer(), 4)
		w.ok(ended)
		w.ok(&booking.Release{ID: ended.ID, Customer: ended.Customer})
		got, err := w.Store.Picture(w.Context(), w.flight.ID)
		if err != nil {
			w.Fatal(err)
		}
		b := w.books(w.flight)
		var want board.News
		for _, no := range []int32{1, 2, 3, 4, 9} {
			want.Seats = append(want.Seats, booking.BoardSeat(no, b.Seats[no]))
		}
		for _, k := range b.Pools[0] {
			want.Buckets = append(want.Buckets, booking.BoardBucket(0, k))
		}
		want.Claims = []board.Claim{booking.BoardClaim(&held)}
		slices.SortFunc(got.Seats, func(a, b board.Seat) int { return int(a.No - b.No) })
		same(w, "picture", want, got)
		same(w, "statuses", []board.Status{board.Held, board.Held, board.Sold, board.Available, board.Blocked},
			[]board.Status{got.Seats[0].Status, got.Seats[1].Status, got.Seats[2].Status, got.Seats[3].Status, got.Seats[4].Status})
		same(w, "holder of a sold seat", sold.Hold.ID.Holder(), got.Seats[2].Holder)
	}},
	{"books are a snapshot of one event", func(w *world) {
		w.sold(w.seats(w.cinema, newCustomer(), 1))
		b := w.books(w.flight)
		same(w, "others", 0, len(b.Seats)+len(b.Holds)+len(b.Bookings)+len(b.Payments)+len(b.Pending))
		same(w, "of the cinema", 1, len(w.books(w.cinema).Pending))
	}},
	{"ids lead to their event and read back from their text", func(w *world) {
		k := newKey(w.cinema.ID)
		hold, err1 := booking.ParseHoldID(booking.HoldID(k).String())
		pay, err2 := booking.ParsePaymentID(booking.PaymentID(k).String())
		same(w, "ids", []booking.Key{k, k}, []booking.Key{booking.Key(hold), booking.Key(pay)})
		if err := errors.Join(err1, err2); err != nil {
			w.Error(err)
		}
		if _, err := booking.ParseBookingID(booking.HoldID(k).String()); !errors.Is(err, identity.ErrID) {
			w.Errorf("a hold's id was read as a booking's: %v", err)
		}
		same(w, "event", w.cinema.ID, hold.Event)
	}},
}

// permutations of 0 to n-1.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}
