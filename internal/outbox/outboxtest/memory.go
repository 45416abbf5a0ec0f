// Package outboxtest has the contract that every outbox.Store keeps, and a store in memory that keeps it.
package outboxtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/outbox"
)

// Memory is a store without a database. Like PostgreSQL, and unlike SQLite, it lets transactions overlap: a position is given
// when a row is written, the row is seen when its transaction commits.
type Memory struct {
	mu   sync.Mutex
	last int64
	rows map[int64]row
}

type row struct {
	outbox.Message
	nextAt time.Time
}

var _ outbox.Store = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{rows: make(map[int64]row)} }

// Take is described at outbox.Store.
func (s *Memory) Take(ctx context.Context, now time.Time, limit int) ([]outbox.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make(map[string]bool)
	var due []outbox.Message
	for _, id := range s.positions() {
		r := s.rows[id]
		switch {
		case r.nextAt.After(now):
			waiting[r.Key] = true
		case !waiting[r.Key] && len(due) < limit:
			due = append(due, r.Message)
		}
	}
	return due, nil
}

// Settle is described at outbox.Store.
func (s *Memory) Settle(ctx context.Context, published []int64, failed []outbox.Failure) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range published {
		delete(s.rows, id)
	}
	for _, f := range failed {
		if r, ok := s.rows[f.ID]; ok {
			r.Attempts++
			r.nextAt = f.NextAt
			s.rows[f.ID] = r
		}
	}
	return nil
}

// Lag is described at outbox.Store.
func (s *Memory) Lag(ctx context.Context, now time.Time) (rows int, oldest time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		oldest = max(oldest, now.Sub(r.CreatedAt))
	}
	return len(s.rows), oldest, nil
}

// Begin starts a transaction.
func (s *Memory) Begin() Tx { return &memoryTx{store: s} }

func (s *Memory) positions() []int64 {
	ids := make([]int64, 0, len(s.rows))
	for id := range s.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

type memoryTx struct {
	store   *Memory
	written []row
}

func (tx *memoryTx) Insert(m outbox.Message) error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	tx.store.last++
	m.ID, m.Attempts = tx.store.last, 0
	tx.written = append(tx.written, row{Message: m})
	return nil
}

func (tx *memoryTx) Commit() error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	for _, r := range tx.written {
		tx.store.rows[r.ID] = r
	}
	tx.written = nil
	return nil
}

func (tx *memoryTx) Rollback() error {
	tx.written = nil
	return nil
}
