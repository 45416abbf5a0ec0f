package board

// end is the instant at which something is over by itself.
type end struct {
	until int64  // Unix milliseconds
	key   uint64 // seat number or holder
}

// ends is a binary min-heap by until. Entries are never taken out of the middle: one that no longer says the truth is passed over when its time comes,
// and prune keeps their number within twice the true ones.
type ends []end

func (h *ends) push(e end) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2].until > e.until {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = e
	*h = s
}

func (h *ends) pop() end {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) > 0 {
		s.sink(0, last)
	}
	return top
}

// sink puts e into the hole at i.
func (h ends) sink(i int, e end) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].until < h[child].until {
			child++
		}
		if h[child].until >= e.until {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}

// pruneSlack keeps small heaps from being pruned all the time.
const pruneSlack = 64

// prune drops what keep refuses, when more than half of the entries are known to be stale.
func (h *ends) prune(live int, keep func(end) bool) {
	if len(*h) <= 2*live+pruneSlack {
		return
	}
	s := (*h)[:0]
	for _, e := range *h {
		if keep(e) {
			s = append(s, e)
		}
	}
	for i := len(s)/2 - 1; i >= 0; i-- {
		s.sink(i, s[i])
	}
	*h = s
}
