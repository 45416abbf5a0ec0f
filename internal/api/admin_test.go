package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/api/client"
)

const asStaff = "Authorization: Bearer " + adminKey

func TestLayoutIsAddedOnceForTheSameContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	document := []byte(`{"format":"holdfast-layout/1","name":"Tiny","sections":[{"name":"Stalls","rows":[{"label":"A","count":4,"first":{"x":0,"y":0},"last":{"x":3,"y":0}}]}]}`)
	l, err := w.admin.AddLayout(ctx, document)
	if err != nil {
		t.Fatal(err)
	}
	if l.Version != 1 || l.Seats != 4 {
		t.Errorf("got %+v", l)
	}
	if again, err := w.admin.AddLayout(ctx, document); err != nil || cmp.Diff(l, again) != "" {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	_, err = w.admin.AddLayout(ctx, []byte(`{"format":"holdfast-layout/1","name":"Tiny","sections":[{"name":"Stalls","rows":[{"label":"A","count":0}]}]}`))
	if p := problem(t, err); p.Status != 422 || p.Errors[0].Pointer != "#/sections/0/rows/0" {
		t.Errorf("a row without seats: %+v", p)
	}
	for body, status := range map[string]int{`{"name":`: 400, ``: 400, `{"what":1}`: 422, strings.Repeat(" ", 8<<20) + "{}": 413} {
		if a := w.send(http.MethodPost, "/v1/admin/layouts", body, asStaff); a.status != status {
			t.Errorf("%.20q: %d, want %d: %s", body, a.status, status, a.body)
		}
	}
}

func TestEventIsMadeOrEveryFaultNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.festival("taken", 10, nil)
	good := `{"kind":"concert","slug":"new","title":"New","venue":{"name":"Hall","city":"Berlin","timeZone":"Europe/Berlin"},"startsAt":"2026-06-01T18:00:00Z",` +
		`"saleOpensAt":"2026-05-01T00:00:00Z","saleClosesAt":"2026-06-01T18:00:00Z","currency":"EUR","pools":[{"pool":"STANDING","capacity":10,"overbook":0,"price":100}],` +
		`"policy":{"holdSeconds":60,"waitingRoom":{"enabled":false},"cancellation":[],"orphans":"allow"}}`
	a := w.send(http.MethodPost, "/v1/admin/events", good, asStaff)
	if a.status != 201 || a.field("slug") != "new" || a.header.Get("Location") != "/v1/admin/events/"+a.field("id").(string) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	e, err := w.client.Event(context.Background(), "new")
	if err != nil || e.Policy.HoldSeconds != 60 || e.Policy.WaitingRoom.Enabled || len(e.Policy.Cancellation) != 0 || e.Policy.Orphans != "allow" {
		t.Errorf("its policy: %+v, %v", e.Policy, err)
	}
	for name, c := range map[string]struct {
		old, new string
		status   int
		pointer  string
	}{
		"slug taken":       {`"slug":"new"`, `"slug":"taken"`, 409, ""},
		"bad slug":         {`"slug":"new"`, `"slug":"No Way"`, 422, "#/slug"},
		"unknown kind":     {`"kind":"concert"`, `"kind":"opera"`, 422, "#/kind"},
		"no title":         {`"title":"New",`, ``, 422, "#/title"},
		"unknown zone":     {"Europe/Berlin", "Europe/Atlantis", 422, "#/venue/timeZone"},
		"unknown currency": {`"EUR"`, `"EUX"`, 422, "#/currency"},
		"no layout":        {`"currency"`, `"layoutId":"nowhere","currency"`, 422, "#/layoutId"},
		"negative stock":   {`"capacity":10`, `"capacity":-1`, 422, "#/pools/0/capacity"},
		"times as text":    {`"2026-06-01T18:00:00Z","currency"`, `"soon","currency"`, 422, "#/saleClosesAt"},
		"unknown field":    {`"title"`, `"titel":"x","title"`, 422, "#/titel"},
		"unknown policy":   {`"holdSeconds":60`, `"holdMinutes":1`, 422, "#/policy/holdMinutes"},
		"silly policy":     {`"holdSeconds":60`, `"holdSeconds":0`, 422, "#/policy/holdSeconds"},
	} {
		body := strings.Replace(strings.Replace(good, c.old, c.new, 1), `"slug":"new"`, `"slug":"new-2"`, 1)
		a := w.send(http.MethodPost, "/v1/admin/events", body, asStaff)
		if a.status != c.status || c.pointer != "" && !strings.Contains(a.body, `"pointer":"`+c.pointer+`"`) {
			t.Errorf("%s: %d, want %d %s: %s", name, a.status, c.status, c.pointer, a.body)
		}
	}
}

func TestEventIsEditedByWhoSawItsLastVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.festival("festival", 10, plenty())
	_, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Pool: "STANDING", Quantity: 4})
	w.must(err)
	e, err := w.admin.Event(ctx, event)
	w.must(err)
	title, starts, more, hold, fewer := "Renamed", began.Add(20*24*time.Hour), int64(20), 600, int64(3)
	first, err := w.admin.EditEvent(ctx, event, e.ETag, client.EventEdit{
		Title: &title, StartsAt: &starts, Pools: []client.PoolEdit{{Pool: "STANDING", Capacity: &more}}, Policy: &client.PolicyPatch{HoldSeconds: &hold},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	now, err := w.admin.Event(ctx, event)
	w.must(err)
	if now.Title != title || !now.StartsAt.Equal(starts) || now.Pools[0].Available != 16 || now.Stocks[0].Capacity != 20 || now.Policy.HoldSeconds != 600 || now.ETag != first.ETag ||
		now.ETag == e.ETag {
		t.Errorf("after the edit: %+v", now)
	}
	_, err = w.admin.EditEvent(ctx, event, e.ETag, client.EventEdit{Title: &title})
	if p := problem(t, err); p.Status != 412 {
		t.Errorf("an edit of the old version: %+v", p)
	}
	if a := w.send(http.MethodPatch, "/v1/admin/events/"+event, `{"title":"x"}`, asStaff); a.status != 428 {
		t.Errorf("an edit of no version: %d %s", a.status, a.body)
	}
	_, err = w.admin.EditEvent(ctx, event, now.ETag, client.EventEdit{Title: &title, Pools: []client.PoolEdit{{Pool: "STANDING", Capacity: &fewer}}})
	if p := problem(t, err); p.Status != 409 || p.Code != "limit-below-taken" {
		t.Errorf("below what is held: %+v", p)
	}
	empty := ""
	_, err = w.admin.EditEvent(ctx, event, now.ETag, client.EventEdit{Title: &empty, Pools: []client.PoolEdit{{Pool: "STANDING", Capacity: new(int64(30))}}})
	if p := problem(t, err); p.Status != 422 {
		t.Errorf("an edit that is refused as a whole: %+v", p)
	}
	w.pass(time.Second)
	if after, err := w.admin.Event(ctx, event); err != nil || after.ETag != now.ETag || after.Pools[0].Available != 16 {
		t.Errorf("refused edits left %+v, %v", after, err)
	}
	_, err = w.admin.EditEvent(ctx, event, now.ETag, client.EventEdit{Pools: []client.PoolEdit{{Pool: "VIP"}}})
	if p := problem(t, err); p.Status != 422 || p.Errors[0].Pointer != "#/pools/0/pool" {
		t.Errorf("an unknown pool: %+v", p)
	}
}

// Two who edit the same version at once: one is refused, and the engine sells what the event says, not what the refused one wanted.
func TestEditsAtOnceLeaveOneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.festival("festival", 1000, plenty())
	for round := range 20 {
		e, err := w.admin.Event(ctx, event)
		w.must(err)
		var edits sync.WaitGroup
		for _, capacity := range []int64{int64(100 + round), int64(900 + round)} {
			edits.Go(func() {
				_, err := w.admin.EditEvent(ctx, event, e.ETag, client.EventEdit{Pools: []client.PoolEdit{{Pool: "STANDING", Capacity: &capacity}}})
				var refused *client.Problem
				if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusPreconditionFailed) {
					t.Error(err)
				}
			})
		}
		edits.Wait()
		now, err := w.admin.Event(ctx, event)
		w.must(err)
		if s, err := w.admin.Stats(ctx, event); err != nil || s.Pools[0].Available != now.Stocks[0].Capacity {
			t.Fatalf("round %d: the event says %d, the engine sells %+v, %v", round, now.Stocks[0].Capacity, s.Pools[0], err)
		}
	}
	if r, err := w.admin.Audit(ctx, event); err != nil || !r.OK {
		t.Errorf("the audit: %+v, %v", r, err)
	}
}

func TestBlockedSeatsAreNotForSale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.cinema("cinema", plenty())
	w.must(w.admin.Block(ctx, event, []string{"A5", "A6"}))
	w.must(w.admin.Block(ctx, event, []string{"A6"}))
	_, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"A5"}})
	if p := problem(t, err); p.Code != client.CodePlacesGone {
		t.Errorf("a blocked seat: %+v", p)
	}
	_, err = w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"B5"}})
	w.must(err)
	p := problem(t, w.admin.Block(ctx, event, []string{"B4", "B5"}))
	if p.Status != 409 || p.Code != "seats-taken" || !cmp.Equal(p.Seats, []string{"B5"}) {
		t.Errorf("blocking a held seat: %+v", p)
	}
	if p := problem(t, w.admin.Block(ctx, event, []string{"Z99"})); p.Status != 422 || p.Errors[0].Pointer != "#/seats/0" {
		t.Errorf("blocking a seat that is not there: %+v", p)
	}
	if s, err := w.admin.Stats(ctx, event); err != nil || s.Total != (client.Counts{Available: 197, Held: 1, Blocked: 2}) {
		t.Errorf("the numbers: %+v, %v", s, err)
	}
	w.must(w.admin.Unblock(ctx, event, []string{"A5", "A6"}))
	if _, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Seats: []string{"A5"}}); err != nil {
		t.Errorf("an unblocked seat: %v", err)
	}
}

func TestNumbersOfAnEventAddUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.flight("flight", plenty())
	w.buy(w.guest(), event, client.HoldRequest{Seats: []string{"1A", "1B"}})
	_, err := w.guest().PlaceHold(ctx, event, client.HoldRequest{Pool: "ECONOMY", Quantity: 3})
	w.must(err)
	want := client.PoolCounts{Pool: "ECONOMY", Capacity: 180, Overbook: 3, Available: 178, Held: 3, Sold: 2}
	s, err := w.admin.Stats(ctx, event)
	if err != nil || s.Pools[0] != want {
		t.Errorf("got %+v, %v", s, err)
	}
	w.pass(11 * time.Minute) // the hold is over, and nobody has swept it
	want.Available, want.Held = 181, 0
	s, err = w.admin.Stats(ctx, event)
	if err != nil || s.Pools[0] != want || s.Bands[0].Sold+s.Bands[1].Sold != 2 {
		t.Errorf("after the hold's time: %+v, %v", s, err)
	}
}

func TestStaffFindAndRefundBookings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	event := w.cinema("cinema", plenty())
	me := w.guest()
	b, other := w.buy(me, event, client.HoldRequest{Seats: []string{"A5"}}), w.buy(w.guest(), event, client.HoldRequest{Seats: []string{"B5"}})
	code := b.Tickets[0].Code
	other20 := "A"
	if code[20] == 'A' {
		other20 = "B"
	}
	forged := code[:20] + other20 + code[21:]
	for name, q := range map[string]struct {
		email, code string
		want        int
	}{
		"mail in another case": {"ADA@example.org", "", 2}, "another mail": {"eve@example.org", "", 0}, "booking id": {"", b.BookingID, 1},
		"ticket id": {"", b.Tickets[0].TicketID, 1}, "code": {"", b.Tickets[0].Code, 1}, "nonsense": {"", "nonsense", 0},
		"forged code": {"", forged, 0},
	} {
		list, err := w.admin.FindBookings(ctx, q.email, q.code)
		if err != nil || len(list) != q.want || q.want == 1 && list[0].BookingID != b.BookingID {
			t.Errorf("%s: %d bookings, %v, want %d", name, len(list), err, q.want)
		}
	}
	_, err := w.admin.FindBookings(ctx, "", "")
	if p := problem(t, err); p.Status != 422 {
		t.Errorf("asking for nothing: %+v", p)
	}
	seen, err := w.admin.Booking(ctx, b.BookingID)
	if err != nil || len(seen.Payments) != 1 || seen.Payments[0].Status != "succeeded" || seen.Payments[0].Charged.Amount != 1200 || seen.CustomerID == "" {
		t.Errorf("the booking: %+v, %v", seen, err)
	}
	too := int64(1201)
	_, err = w.admin.Refund(ctx, b.BookingID, &too, "a mistake")
	if p := problem(t, err); p.Status != 422 || p.Errors[0].Pointer != "#/amount" {
		t.Errorf("more than was charged: %+v", p)
	}
	half := int64(600)
	done, err := w.admin.Refund(ctx, b.BookingID, &half, "a mistake")
	if err != nil || done.Status != "cancelled" || done.Reason != "a mistake" || done.Refund.Amount != 600 || done.Payments[0].Owed.Amount != 600 || done.Tickets[0].Status != "void" {
		t.Errorf("half of it: %+v, %v", done, err)
	}
	_, err = w.admin.Refund(ctx, b.BookingID, nil, "again")
	if p := problem(t, err); p.Status != 409 {
		t.Errorf("again: %+v", p)
	}
	if whole, err := w.admin.Refund(ctx, other.BookingID, nil, "moved"); err != nil || whole.Refund.Amount != 1200 {
		t.Errorf("all of it: %+v, %v", whole, err)
	}
	if mine, err := me.Booking(ctx, b.BookingID); err != nil || mine.Status != "cancelled" || mine.Reason != "a mistake" {
		t.Errorf("as the buyer sees it: %+v, %v", mine, err)
	}
	if r, err := w.admin.Audit(ctx, event); err != nil || !r.OK || len(r.Violations) != 0 {
		t.Errorf("the audit: %+v, %v", r, err)
	}
}

func TestTicketKeysCheckCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.send(http.MethodGet, "/v1/keys/tickets", "")
	keys, ok := a.field("items").([]any)
	if a.status != 200 || !ok || len(keys) != 1 || keys[0].(map[string]any)["algorithm"] != "Ed25519" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
