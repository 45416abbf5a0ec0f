package board

import (
	"slices"
	"time"
)

// Refuse names what a hold asks for and surely cannot have at now: seats that are sold, blocked, or held by another with time left; pools that cannot give the
// units. What `mine` (a repetition) or `replaces` have themselves counts as free; 0 is no hold. Nothing is granted: an empty answer means "ask the store".
//
// It is the hot path of a sold-out event. It allocates only if what is gone does not stand side by side; else gone is a part of `seats` itself.
func (b *Board) Refuse(seats []int32, units []PoolUnits, mine, replaces uint64, now time.Time) (gone []int32, pools []int16) {
	ms := ceilMillis(now)
	if len(units) > 0 {
		b.catchUp(now)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i, no := range seats {
		if b.knows(no) && !b.seats[no].refuses(mine, replaces, ms) {
			continue
		}
		// gone is lent out of seats while what is gone stands side by side; its capacity ends with it, so append copies.
		switch {
		case len(gone) == 0:
			gone = seats[i : i+1 : i+1]
		case &gone[0] == &seats[i-len(gone)]:
			gone = seats[i-len(gone) : i+1 : i+1]
		default:
			gone = append(gone, no)
		}
	}
	for i, u := range units {
		if slices.ContainsFunc(units[:i], func(x PoolUnits) bool { return x.Pool == u.Pool }) {
			continue
		}
		for _, x := range units[i+1:] {
			if x.Pool == u.Pool {
				u.N += x.N
			}
		}
		if u.Pool >= 0 && int(u.Pool) < len(b.pools) {
			if u.N <= b.pools[u.Pool].left.Load()+b.has(u.Pool, mine, replaces) {
				continue
			}
			if len(pools) == 0 {
				pools = b.poolNo[u.Pool : u.Pool+1 : u.Pool+1]
				continue
			}
		}
		pools = append(pools, u.Pool)
	}
	return gone, pools
}

// has counts the units of a pool that the own holds have, with time left: those of ended holds are free for anybody.
func (b *Board) has(p int16, mine, replaces uint64) (n int64) {
	for i, holder := range [2]uint64{mine, replaces} {
		if i == 1 && replaces == mine {
			break
		}
		if c := b.claims[holder]; c != nil && !c.over {
			for _, u := range c.units {
				if u.Pool == p {
					n += u.N
				}
			}
		}
	}
	return n
}

func (s *seat) refuses(mine, replaces uint64, ms int64) bool {
	switch s.status {
	case Available:
		return false
	case Held:
		own := s.holder != 0 && (s.holder == mine || s.holder == replaces)
		return ms <= s.until && !own
	case Sold:
		// Sold to the asking hold itself: a repetition of a request that was paid for meanwhile. The store answers it as before.
		return mine == 0 || s.holder != mine
	default:
		return true
	}
}
