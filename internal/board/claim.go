package board

// tellClaim takes in one claim: settled is final, and of two ends the later is the newer, as the end of a hold is only ever raised.
func (b *Board) tellClaim(c Claim) {
	at := b.claims[c.Holder]
	if !c.Live {
		if at != nil {
			b.dropClaim(c.Holder, at)
		}
		if b.settled[0] == nil {
			b.settled[0] = map[uint64]struct{}{}
		}
		b.settled[0][c.Holder] = struct{}{}
		return
	}
	for _, known := range b.settled {
		if _, over := known[c.Holder]; over {
			return
		}
	}
	if at == nil {
		at = &claim{until: c.Until - 1, over: true} // as if it had ended before: what follows raises it
		b.claims[c.Holder] = at
	}
	at.told = b.gen
	if c.Until <= at.until {
		return
	}
	if at.over {
		b.setOver(at, false)
	} else {
		b.claimsFor--
	}
	at.until, at.units = c.Until, c.Units
	if b.clock > c.Until {
		b.setOver(at, true)
		return
	}
	b.claimsFor++
	b.claimEnds.push(end{c.Until, c.Holder})
}

func (b *Board) dropClaim(holder uint64, c *claim) {
	if c.over {
		b.setOver(c, false)
	} else {
		b.claimsFor--
	}
	delete(b.claims, holder)
}

// setOver counts the units of a claim whose time is over as free, though its buckets still count them as held; or no longer, because its buckets do not either.
func (b *Board) setOver(c *claim, over bool) {
	c.over = over
	for _, u := range c.units {
		if u.Pool < 0 || int(u.Pool) >= len(b.pools) {
			continue
		}
		p := &b.pools[u.Pool]
		if over {
			p.over += u.N
		} else {
			p.over -= u.N
		}
		b.leftChanged(p)
	}
}
