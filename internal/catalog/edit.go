package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/venue"
)

// Edit changes an event; zero and nil fields leave it as it is. What holds were placed for stays: their price is frozen, and pools never fall below what is
// held and sold, which the engine sees to before the catalog is told.
type Edit struct {
	Version      int              `json:"version,omitempty"` // that the edit is meant for; 0: whichever is current
	Title        *string          `json:"title,omitempty"`
	Venue        *Venue           `json:"venue,omitempty"`
	StartsAt     *time.Time       `json:"startsAt,omitempty"`
	SaleOpensAt  *time.Time       `json:"saleOpensAt,omitempty"`
	SaleClosesAt *time.Time       `json:"saleClosesAt,omitempty"`
	Prices       map[string]int64 `json:"prices,omitempty"` // over the present ones
	Pools        []PoolEdit       `json:"pools,omitempty"`
	Policy       *PolicyDraft     `json:"policy,omitempty"` // over the present one
	Paused       *bool            `json:"paused,omitempty"`
}

// PoolEdit changes the pool of that name.
type PoolEdit struct {
	Pool     string `json:"pool"`
	Capacity *int64 `json:"capacity,omitempty"`
	Overbook *int64 `json:"overbook,omitempty"`
	Price    *int64 `json:"price,omitempty"`
}

// edited is a copy of e with the edit done and the next version, or FieldErrors. l is the event's layout.
func (e *Event) edited(x *Edit, l *venue.Layout) (*Event, error) {
	n := *e
	n.Version++
	n.Prices, n.Pools = maps.Clone(e.Prices), slices.Clone(e.Pools)
	n.Policy.Cancellation = slices.Clone(e.Policy.Cancellation)
	if x.Title != nil {
		n.Title = *x.Title
	}
	if x.Venue != nil {
		n.Venue = *x.Venue
	}
	if x.StartsAt != nil {
		n.StartsAt = second(*x.StartsAt)
	}
	if x.SaleOpensAt != nil {
		n.SaleOpensAt = nextSecond(*x.SaleOpensAt)
	}
	if x.SaleClosesAt != nil {
		n.SaleClosesAt = second(*x.SaleClosesAt)
	}
	// A sale that was to close at the start goes on doing so.
	if x.StartsAt != nil && x.SaleClosesAt == nil && e.SaleClosesAt.Equal(e.StartsAt) {
		n.SaleClosesAt = n.StartsAt
	}
	if n.Prices == nil {
		n.Prices = map[string]int64{}
	}
	maps.Copy(n.Prices, x.Prices)
	var c checks
	at := make([]int, len(n.Pools)) // where in the edit a pool is
	for i := range x.Pools {
		p := &x.Pools[i]
		no, ok := n.Pool(p.Pool)
		if !ok {
			c.fail("/pools/"+strconv.Itoa(i)+"/pool", "is %q, which the event does not have; pools can't be added to it", p.Pool)
			continue
		}
		at[no] = i
		for _, f := range []struct{ to, from *int64 }{
			{&n.Pools[no].Capacity, p.Capacity}, {&n.Pools[no].Overbook, p.Overbook}, {&n.Pools[no].Price, p.Price},
		} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
	}
	if x.Policy != nil {
		x.Policy.over(&n.Policy)
	}
	if x.Paused != nil {
		n.Paused = *x.Paused
	}
	var whole checks
	whole.event(&n, l)
	for _, f := range whole.found {
		c.found = append(c.found, FieldError{repoint(f.Pointer, at), f.Detail})
	}
	return &n, c.err()
}

// repoint turns a pointer into the event's pools into one into the edit's, where the edit has the pool.
func repoint(pointer string, at []int) string {
	rest, ok := strings.CutPrefix(pointer, "/pools/")
	no, field, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(no)
	if !ok || err != nil || i >= len(at) {
		return pointer
	}
	return fmt.Sprintf("/pools/%d/%s", at[i], field)
}
