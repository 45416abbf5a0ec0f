// Package sqlite is the embedded store: one file, one writer, many readers, no cgo.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync/atomic"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Limits of a database.
const (
	readers       = 4    // connections for reading; they never wait for the writer
	busyTimeoutMs = 5000 // another program on the file (a backup) may hold the lock for so long
	cacheKiB      = 64 << 10
	// The write-ahead log is folded into the file when it has so many pages of 4 KiB, and cut back to this size afterwards.
	checkpointPages = 4000
	walLimitBytes   = 64 << 20
)

// DB is an open database file. Everything that writes goes through one connection, so no writer ever meets SQLITE_BUSY
// from this process; readers see the last commit without waiting.
type DB struct {
	write *sql.DB
	read  *sql.DB

	commits, statements atomic.Int64
}

// Options of Open. The zero value is safe.
type Options struct {
	// Relaxed trades the last commits before a power loss (synchronous=NORMAL instead of FULL) for speed; a crash of the
	// process loses nothing either way.
	Relaxed bool
}

// Open opens or makes the database holdfast.db in dir and brings its schema up to date.
func Open(ctx context.Context, dir string, o Options) (*DB, error) {
	return openFile(ctx, filepath.Join(dir, "holdfast.db"), o)
}

func openFile(ctx context.Context, path string, o Options) (*DB, error) {
	sync := "FULL"
	if o.Relaxed {
		sync = "NORMAL"
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeoutMs), "journal_mode(WAL)", "synchronous(" + sync + ")",
		"temp_store(MEMORY)", fmt.Sprintf("cache_size(-%d)", cacheKiB),
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages), fmt.Sprintf("journal_size_limit(%d)", walLimitBytes),
	}
	dsn := func(extra ...string) string {
		v := url.Values{"_pragma": append(extra, pragmas...), "_txlock": {"immediate"}}
		return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + v.Encode()
	}
	db := &DB{}
	var err error
	if db.write, err = sql.Open("sqlite", dsn()); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// One writer: a second connection would only wait for the first inside SQLite, where waiting is not fair.
	db.write.SetMaxOpenConns(1)
	db.write.SetMaxIdleConns(1)
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("schema of %s: %w", path, err), db.write.Close())
	}
	if db.read, err = sql.Open("sqlite", dsn("query_only(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.write.Close())
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	return db, nil
}

func (db *DB) migrate(ctx context.Context) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db.write, dir, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// Close waits for what runs and closes the file; the write-ahead log is folded in.
func (db *DB) Close() error {
	return errors.Join(db.read.Close(), db.write.Close())
}

// Ping says whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.queryRow(ctx, `SELECT 1`).Scan(&one)
}

// Commits counts committed write transactions, Statements the statements sent, since the start.
func (db *DB) Commits() int64    { return db.commits.Load() }
func (db *DB) Statements() int64 { return db.statements.Load() }

// update runs f in one transaction that has the write lock from its beginning. An error of f or of the commit rolls back.
func (db *DB) update(ctx context.Context, f func(*tx) error) error {
	// The context ends the wait for the writer, never a transaction under way: a batch carries other people's commands.
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	sqlTx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	if err := f(&tx{Tx: sqlTx, db: db}); err != nil {
		return errors.Join(err, sqlTx.Rollback())
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	db.commits.Add(1)
	return nil
}

// tx counts the statements of a transaction.
type tx struct {
	*sql.Tx
	db *DB
}

func (t *tx) exec(query string, args ...any) (changed int64, err error) {
	t.db.statements.Add(1)
	r, err := t.Exec(query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	t.db.statements.Add(1)
	return t.Query(query, args...)
}

func (db *DB) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	db.statements.Add(1)
	return db.read.QueryContext(ctx, query, args...)
}

func (db *DB) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	db.statements.Add(1)
	return db.read.QueryRowContext(ctx, query, args...)
}

// isUnique says whether err is the violation of a primary key or unique index.
func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isCheck says whether err is the violation of a CHECK.
func isCheck(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_CHECK
}
