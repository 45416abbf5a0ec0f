package booking

import (
	"cmp"
	"slices"
)

// compact sorts every list into the lock order and drops repetitions.
func (n *Need) compact() {
	n.Payments = unique(n.Payments, func(a, b PaymentID) int { return compareKeys(Key(a), Key(b)) })
	n.Holds = unique(n.Holds, func(a, b HoldID) int { return compareKeys(Key(a), Key(b)) })
	n.Repeats = unique(n.Repeats, func(a, b HoldID) int { return compareKeys(Key(a), Key(b)) })
	n.Quotes = unique(n.Quotes, func(a, b QuoteID) int { return compareKeys(Key(a), Key(b)) })
	n.Refunds = unique(n.Refunds, func(a, b RefundID) int { return compareKeys(Key(a), Key(b)) })
	n.Notices = unique(n.Notices, func(a, b NoticeRef) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
	})
	n.Seats = unique(n.Seats, func(a, b SeatRef) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.No, b.No)) })
	n.Pools = unique(n.Pools, func(a, b PoolRef) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Pool, b.Pool)) })
	n.Allowances = unique(n.Allowances, func(a, b AllowanceRef) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), slices.Compare(a.Customer[:], b.Customer[:]))
	})
}

func unique[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), slices.Compare(a.Bits[:], b.Bits[:]))
}

// AddHold names what a loaded hold has, so that a store can go on to lock it: its seats, pools and its customer's allowance.
func (n *Need) AddHold(h *Hold) {
	for _, no := range h.Seats {
		n.Seats = append(n.Seats, SeatRef{h.ID.Event, no})
	}
	for _, u := range h.Units {
		n.Pools = append(n.Pools, PoolRef{h.ID.Event, u.Pool})
	}
	n.Allowances = append(n.Allowances, AllowanceRef{h.ID.Event, h.Customer})
}

// Compact sorts what AddHold appended into the lock order again.
func (n *Need) Compact() { n.compact() }
