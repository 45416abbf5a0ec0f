package sqlite

import (
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

func (t *tx) lockPools(n *booking.Need, r *booking.Rows) error {
	for _, ref := range n.Pools {
		rows, err := t.query(`
			SELECT bucket, capacity, overbook, held, sold, epoch FROM pool_bucket
			WHERE event_id = ? AND pool = ? ORDER BY bucket`, int64(ref.Event), ref.Pool)
		if err != nil {
			return err
		}
		for rows.Next() {
			var b booking.Bucket
			if err := rows.Scan(&b.Bucket, &b.Capacity, &b.Overbook, &b.Held, &b.Sold, &b.Epoch); err != nil {
				return closing(rows, err)
			}
			r.Pools[ref] = append(r.Pools[ref], b)
		}
		if err := closing(rows, rows.Err()); err != nil {
			return err
		}
	}
	return nil
}

// writeBuckets moves counts, never sets them: the table's CHECKs judge the sum as it is in the database.
func (t *tx) writeBuckets(changes []booking.BucketChange) error {
	for _, c := range changes {
		capacity, overbook := any(nil), any(nil)
		if c.Limits {
			capacity, overbook = c.New.Capacity, c.New.Overbook
		}
		changed, err := t.exec(`
			UPDATE pool_bucket SET held = held + ?4, sold = sold + ?5,
				capacity = coalesce(?6, capacity), overbook = coalesce(?7, overbook), epoch = epoch + 1
			WHERE event_id = ?1 AND pool = ?2 AND bucket = ?3`,
			int64(c.Ref.Event), c.Ref.Pool, c.Bucket, c.Held, c.Sold, capacity, overbook)
		if err := must(changed, err, 1, "pool"); err != nil {
			return err
		}
	}
	return nil
}

var (
	someAllowances = overRows(`SELECT customer, units FROM allowance WHERE event_id = ? AND customer IN (`, `?`, `)`)
	// Raised only up to the limit, whether the row is new or not. A new row of its own and an old one are judged by two conditions.
	raiseAllowances = overRows(`
		WITH j (event_id, customer, units) AS (VALUES `, `(?, ?, ?)`, `)
		INSERT INTO allowance (event_id, customer, units) SELECT event_id, customer, units FROM j WHERE j.units <= ?
		ON CONFLICT (event_id, customer) DO UPDATE SET units = allowance.units + excluded.units WHERE allowance.units + excluded.units <= ?`)
)

func (t *tx) lockAllowances(n *booking.Need, r *booking.Rows) error {
	for _, run := range groups(n.Allowances, func(ref *booking.AllowanceRef) catalog.EventID { return ref.Event }) {
		err := someAllowances.each(len(run), func(query string, from, to int) error {
			args := []any{int64(run[0].Event)}
			for i := range run[from:to] {
				args = append(args, run[from+i].Customer[:])
			}
			rows, err := t.query(query, args...)
			if err != nil {
				return err
			}
			for rows.Next() {
				ref := booking.AllowanceRef{Event: run[0].Event}
				var units int
				if err := rows.Scan((*bits16)(&ref.Customer), &units); err != nil {
					return closing(rows, err)
				}
				r.Allowances[ref] = units
			}
			return closing(rows, rows.Err())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeAllowances raises counts only up to their limit, and lowers them never below 0 (a CHECK). Lowering is a statement of its own: a CHECK judges the row that
// an INSERT proposes before any ON CONFLICT is looked at.
func (t *tx) writeAllowances(changes []booking.AllowanceChange) error {
	var raised []booking.AllowanceChange
	for _, c := range changes {
		if c.Delta >= 0 {
			raised = append(raised, c)
			continue
		}
		changed, err := t.exec(`UPDATE allowance SET units = units + ? WHERE event_id = ? AND customer = ?`, c.Delta, int64(c.Ref.Event), c.Ref.Customer[:])
		if err := must(changed, err, 1, "allowance"); err != nil {
			return err
		}
	}
	for len(raised) > 0 {
		n := 1 // as many as have the same limit
		for n < len(raised) && raised[n].Limit == raised[0].Limit {
			n++
		}
		err := raiseAllowances.each(n, func(query string, from, to int) error {
			args := make([]any, 0, 3*(to-from)+2)
			for _, c := range raised[from:to] {
				args = append(args, int64(c.Ref.Event), c.Ref.Customer[:], c.Delta)
			}
			changed, err := t.exec(query, append(args, raised[0].Limit, raised[0].Limit)...)
			return must(changed, err, to-from, "allowances")
		})
		if err != nil {
			return err
		}
		raised = raised[n:]
	}
	return nil
}
