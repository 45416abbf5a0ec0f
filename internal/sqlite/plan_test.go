package sqlite

import (
	"strings"
	"testing"
	"time"
)

// Statements of the engine find their rows by a key: none walks through an event, whose tens of thousands of rows would then be read for every command.
// SQLite has no statistics of these tables and chose so for three of them.
func TestStatementsFindTheirRowsByKey(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir(), Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for query, want := range map[string]string{
		paymentsOfHold: "payment_hold (event_id=? AND hold_id=?)",
		voidTicketsOf:  "ticket_once (event_id=? AND booking_id=?)",
		endedHolds + ` AND event_id = ? ORDER BY expires_at LIMIT ?`: "hold_due (expires_at<?)",
		endedHolds + ` ORDER BY expires_at LIMIT ?`:                  "hold_due (expires_at<?)",
		updateSeat:        "PRIMARY KEY (event_id=? AND seat_no=?)",
		someSeats[0]:      "PRIMARY KEY (event_id=? AND seat_no=?)",
		someAllowances[0]: "PRIMARY KEY (event_id=? AND customer=?)",
		freshHolds[0]:     "PRIMARY KEY (event_id=? AND id=?)",
		`SELECT 1 FROM payment WHERE status = 0 AND check_at <= ? ORDER BY check_at`: "payment_due (check_at<?)",
	} {
		args := make([]any, strings.Count(query, "?"))
		rows, err := db.read.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := closing(rows, rows.Err()); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(plan, "; "); !strings.Contains(all, want) {
			t.Errorf("%s\nis planned as %s; want %s", query, all, want)
		}
	}
}
