package catalog

import (
	"context"
	"errors"
	"time"
)

// Errors of the catalog.
var (
	ErrNotFound  = errors.New("no such event or layout")
	ErrSlugTaken = errors.New("slug is taken by another event")
	ErrVersion   = errors.New("the event was changed by someone else meanwhile")
)

// Limits of a store's lists.
const (
	MaxBatch   = 10_000 // events of one CreateEvents
	MaxChanges = 1_000  // rows of one Changes
)

// Store keeps layouts and events. Every method is one transaction; every store passes the suite in catalogtest. Errors that a store does not know it
// passes on.
type Store interface {
	// CreateEvents adds events with the full stock of their pools, each with its buckets. Those whose slug is taken are left out, and taken names their
	// indexes, rising: so an import can be repeated.
	CreateEvents(ctx context.Context, events []*Event) (taken []int, err error)
	// UpdateEvent replaces the event of e.ID, but neither its slug, its layout nor the stock of its pools, when its version is expected. Else ErrVersion or
	// ErrNotFound.
	UpdateEvent(ctx context.Context, e *Event, expected int) error
	// Event and EventBySlug read one; ErrNotFound.
	Event(ctx context.Context, id EventID) (*Event, error)
	EventBySlug(ctx context.Context, slug string) (*Event, error)

	// Changes lists events that were added or changed after a point, oldest change first, at most MaxChanges. An event changed twice is there once.
	Changes(ctx context.Context, after int64) ([]Change, error)
	// LastChange is the point of the newest change; 0 for none.
	LastChange(ctx context.Context) (int64, error)

	// AddLayout adds the next version of the layout of that id, or finds the version that has the same hash.
	AddLayout(ctx context.Context, l *StoredLayout) (version int, err error)
	// NewestLayout is the newest version of a layout; ErrNotFound.
	NewestLayout(ctx context.Context, id string) (version int, err error)
	// Layout reads the document of one; ErrNotFound.
	Layout(ctx context.Context, ref LayoutRef) (document []byte, err error)

	// Search lists events in the order of their start, those of one second in an order that stays; at most q.Limit+1, so that the caller sees whether more
	// follow. It is one statement. q has passed Query.check.
	Search(ctx context.Context, q *Query) ([]Item, error)
	// SetAvailable says how many places events have left, for searches. Unknown events are passed over.
	SetAvailable(ctx context.Context, left map[EventID]int) error
}

// Change names an event that was added or changed.
type Change struct {
	ID      EventID
	Slug    string
	Version int
	Point   int64 // rises from change to change
}

// StoredLayout is a layout as stores keep it.
type StoredLayout struct {
	ID, Name  string
	Hash      [32]byte // SHA-256 of Document
	Seats     int
	Document  []byte // venue's canonical form
	CreatedAt time.Time
}
