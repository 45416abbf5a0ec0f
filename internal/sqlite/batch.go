package sqlite

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Store is the engine's store on a DB.
type Store struct{ *DB }

var _ booking.Store = (*Store)(nil)

// NewStore makes one.
func NewStore(db *DB) *Store { return &Store{db} }

// Apply runs a batch. BEGIN IMMEDIATE is the one lock of this engine: whatever order rows are read in after it, nobody else writes.
func (s *Store) Apply(ctx context.Context, commands []booking.Command, decide booking.Decider) (booking.Applied, error) {
	var a booking.Applied
	err := s.update(ctx, func(t *tx) error {
		rows, err := t.lock(booking.NeedOf(commands), s.clock())
		if err != nil {
			return err
		}
		a.Now = rows.Now
		a.Changes, a.Results = decide(rows, commands)
		return t.write(a.Changes, a.Now)
	})
	if isConstraint(err) {
		err = fmt.Errorf("%w: %w", booking.ErrGuard, err)
	}
	return a, err
}

// lock reads what a batch needs.
func (t *tx) lock(n booking.Need, now time.Time) (*booking.Rows, error) {
	r := booking.NewRows()
	r.Now = now
	for _, step := range []func(*booking.Need, *booking.Rows) error{
		t.lockPayments, t.lockHolds, t.lockNotices, t.lockQuotes, t.lockRefunds, t.lockSeats, t.lockPools, t.lockAllowances,
	} {
		if err := step(&n, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// write writes every change under its guard; the first one that does not hold ends it with ErrGuard, and the transaction is rolled back.
func (t *tx) write(c *booking.Changes, now time.Time) error {
	for _, step := range []func() error{
		func() error { return t.writePayments(c.Payments) },
		func() error { return t.writeBookings(c.Bookings) },
		func() error { return t.writeHolds(c.Holds) },
		func() error { return t.writeSeats(c.Seats, now) },
		func() error { return t.writeBuckets(c.Buckets) },
		func() error { return t.writeAllowances(c.Allowances) },
		func() error { return t.writeNotices(c.Notices, now) },
		func() error { return t.writeQuotes(c.Quotes) },
		func() error { return t.writeRefunds(c.Refunds) },
		func() error { return t.voidTickets(c.VoidTickets) },
		func() error { return t.writeMessages(c.Messages, now) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// must is ErrGuard unless a statement changed as many rows as the batch has.
func must(changed int64, err error, want int, what string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if changed != int64(want) {
		return fmt.Errorf("%w: %s: %d of %d", booking.ErrGuard, what, changed, want)
	}
	return nil
}

// groups cuts a list, sorted by event, into the runs of one event each: one statement serves a run.
func groups[T any](list []T, event func(*T) catalog.EventID) [][]T {
	var out [][]T
	for len(list) > 0 {
		n := 1
		for n < len(list) && event(&list[n]) == event(&list[0]) {
			n++
		}
		out = append(out, list[:n])
		list = list[n:]
	}
	return out
}

// array builds the JSON arrays by which one statement gets many rows.
type array []byte

func (a *array) close() { *a = append(*a, ']') }

func (a *array) comma() {
	if n := len(*a); (*a)[n-1] != '[' {
		*a = append(*a, ',')
	}
}

func (a *array) int(v int64) { a.comma(); *a = strconv.AppendInt(*a, v, 10) }

// bits writes bytes as hex, for unhex() in the statement.
func (a *array) bits(b [16]byte) {
	a.comma()
	*a = append(*a, '"')
	*a = hex.AppendEncode(*a, b[:])
	*a = append(*a, '"')
}

// millis and instant convert times; the database keeps unix milliseconds.
func millis(t time.Time) int64 { return t.UnixMilli() }

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// seatsJSON and unitsJSON are how lists are kept in a row.
func seatsJSON(seats []int32) []byte {
	b := []byte{'['}
	for i, no := range seats {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(no), 10)
	}
	return append(b, ']')
}

func unitsJSON(units []booking.Units) []byte {
	b := []byte{'['}
	for i, u := range units {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"p":%d,"b":%d,"n":%d}`, u.Pool, u.Bucket, u.N)
	}
	return append(b, ']')
}

func parseSeats(text []byte) ([]int32, error) {
	var out []int32
	n, digits := int32(0), false
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			n, digits = n*10+int32(c-'0'), true
		case c == ',' || c == ']':
			if digits {
				out = append(out, n)
			}
			n, digits = 0, false
		case c != '[':
			return nil, fmt.Errorf("seats of a hold: %q", text)
		}
	}
	return out, nil
}

// bits16 reads an id column.
type bits16 [16]byte

// Scan implements sql.Scanner.
func (b *bits16) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*b = bits16{}
		return nil
	case []byte:
		if len(v) == 16 {
			copy(b[:], v)
			return nil
		}
	}
	return fmt.Errorf("an id column holds %T, not 16 bytes", v)
}
