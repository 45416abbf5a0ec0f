package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
)

// A clean stop leaves one file: whoever copies holdfast.db alone then has everything.
func TestCloseFoldsTheLogIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	err = db.update(t.Context(), func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO admin_key (one, hash) VALUES (1, x'00')`)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "holdfast.db-wal")); err == nil {
		t.Errorf("the write-ahead log is still there, with %d bytes", info.Size())
	}
}

// A full disk is not the caller's mistake: the answer is "try again", nothing of the transaction is there, and when there is room again everything goes on.
func TestFullDiskIsUnavailable(t *testing.T) {
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
	limit := func(pages int) {
		w := <-db.writer
		defer func() { db.writer <- w }()
		if _, err := w.conn.ExecContext(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Fatal(err)
		}
	}
	grow := func() error {
		return db.update(t.Context(), func(tx *tx) error {
			_, err := tx.exec(`INSERT INTO layout (id, version, name, hash, seats, document, created_at) VALUES ('a', 1, 'a', x'', 0, zeroblob(1000000), 0)`)
			return err
		})
	}
	limit(1) // SQLite takes the present size instead
	if err := grow(); !errors.Is(err, booking.ErrUnavailable) {
		t.Errorf("a full disk is %v, want ErrUnavailable", err)
	}
	limit(1 << 30)
	if err := grow(); err != nil {
		t.Errorf("after there is room again: %v", err)
	}
}
