package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-project/holdfast/internal/catalog"
)

// AddLayout adds the next version of a layout, or finds the one with the same content.
func (s *Catalog) AddLayout(ctx context.Context, l *catalog.StoredLayout) (version int, err error) {
	err = s.update(ctx, func(t *tx) error {
		err := t.queryRow(`SELECT version FROM layout WHERE id = ? AND hash = ?`, l.ID, l.Hash[:]).Scan(&version)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := t.queryRow(`SELECT coalesce(max(version), 0) + 1 FROM layout WHERE id = ?`, l.ID).Scan(&version); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO layout (id, version, name, hash, seats, document, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			l.ID, version, l.Name, l.Hash[:], l.Seats, l.Document, millis(l.CreatedAt))
		return err
	})
	return version, err
}

// NewestLayout is the newest version of a layout.
func (s *Catalog) NewestLayout(ctx context.Context, id string) (version int, err error) {
	err = s.queryRow(ctx, `SELECT version FROM layout WHERE id = ? ORDER BY version DESC LIMIT 1`, id).Scan(&version)
	return version, noEvent(err)
}

// Layout reads the document of a layout.
func (s *Catalog) Layout(ctx context.Context, ref catalog.LayoutRef) (document []byte, err error) {
	err = s.queryRow(ctx, `SELECT document FROM layout WHERE id = ? AND version = ?`, ref.ID, ref.Version).Scan(&document)
	return document, noEvent(err)
}

func noEvent(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return catalog.ErrNotFound
	}
	return known(err)
}
