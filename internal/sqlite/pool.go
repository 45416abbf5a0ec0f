package sqlite

import (
	"github.com/holdfast-project/holdfast/internal/booking"
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

func (t *tx) lockAllowances(n *booking.Need, r *booking.Rows) error {
	for _, ref := range n.Allowances {
		var units int
		err := t.queryRow(`SELECT units FROM allowance WHERE event_id = ? AND customer = ?`, int64(ref.Event), ref.Customer[:]).Scan(&units)
		if err := missing(err); err != nil {
			return err
		}
		if units != 0 {
			r.Allowances[ref] = units
		}
	}
	return nil
}

// writeAllowances raises a count only up to its limit, and lowers it never below 0 (a CHECK). Lowering is a statement of its own: a CHECK judges the row that an
// INSERT proposes before any ON CONFLICT is looked at.
func (t *tx) writeAllowances(changes []booking.AllowanceChange) error {
	for _, c := range changes {
		var changed int64
		var err error
		if c.Delta < 0 {
			changed, err = t.exec(`UPDATE allowance SET units = units + ? WHERE event_id = ? AND customer = ?`, c.Delta, int64(c.Ref.Event), c.Ref.Customer[:])
		} else {
			changed, err = t.exec(`
				INSERT INTO allowance (event_id, customer, units) SELECT ?1, ?2, ?3 WHERE ?3 <= ?4
				ON CONFLICT (event_id, customer) DO UPDATE SET units = units + ?3 WHERE units + ?3 <= ?4`,
				int64(c.Ref.Event), c.Ref.Customer[:], c.Delta, c.Limit)
		}
		if err := must(changed, err, 1, "allowance"); err != nil {
			return err
		}
	}
	return nil
}
