package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast-project/holdfast/internal/identity"
)

// Keys is the key store on a DB.
type Keys struct{ *DB }

var _ identity.KeyStore = (*Keys)(nil)

// NewKeys makes one.
func NewKeys(db *DB) *Keys { return &Keys{db} }

// Keys returns all keys that were ever added.
func (s *Keys) Keys(ctx context.Context) ([]identity.Key, error) {
	rows, err := s.query(ctx, `SELECT kind, id, secret, created_at, retires_at FROM signing_key`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []identity.Key
	for rows.Next() {
		var k identity.Key
		var created int64
		var retires sql.NullInt64
		if err := rows.Scan(&k.Kind, &k.ID, &k.Secret, &created, &retires); err != nil {
			return nil, err
		}
		k.CreatedAt = instant(created)
		if retires.Valid {
			k.RetiresAt = instant(retires.Int64)
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// AddKey adds a key, or sets when the one of that kind and id retires: who adds a first key second goes on with the one that is there.
func (s *Keys) AddKey(ctx context.Context, k identity.Key) error {
	return s.update(ctx, func(t *tx) error {
		retires := sql.NullInt64{Int64: millis(k.RetiresAt), Valid: !k.RetiresAt.IsZero()}
		_, err := t.exec(`
			INSERT INTO signing_key (kind, id, secret, created_at, retires_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (kind, id) DO UPDATE SET retires_at = excluded.retires_at`,
			k.Kind, k.ID, k.Secret, millis(k.CreatedAt), retires)
		return err
	})
}

// AdminKey gives the hash of the admin key that was made at first start, making it by create when there is none yet. fresh says that it was.
func (s *Keys) AdminKey(ctx context.Context, create func() identity.AdminKeyHash) (hash identity.AdminKeyHash, fresh bool, err error) {
	err = s.update(ctx, func(t *tx) error {
		var stored []byte
		err := t.queryRow(`SELECT hash FROM admin_key WHERE one = 1`).Scan(&stored)
		if err := missing(err); err != nil {
			return err
		}
		if err == nil {
			if copy(hash[:], stored) != len(hash) {
				return fmt.Errorf("the stored hash of the admin key has %d bytes, not %d", len(stored), len(hash))
			}
			return nil
		}
		hash, fresh = create(), true
		_, err = t.exec(`INSERT INTO admin_key (one, hash) VALUES (1, ?)`, hash[:])
		return err
	})
	return hash, fresh, err
}
