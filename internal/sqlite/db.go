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
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-project/holdfast/internal/booking"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Limits of a database.
const (
	readers       = 4    // connections for reading; they never wait for the writer
	busyTimeoutMs = 5000 // another program on the file (a backup) may hold the lock for so long
	cacheKiB      = 64 << 10
	// The write-ahead log is folded into the file when it has so many pages of 4 KiB, and cut back to this size afterwards.
	// Rarely is better: a page that changes often is then copied once for many changes.
	checkpointPages = 16_000
	walLimitBytes   = 64 << 20
)

// DB is an open database file. Everything that writes goes through one connection, so no writer ever meets SQLITE_BUSY
// from this process; readers see the last commit without waiting.
type DB struct {
	write  *sql.DB
	read   *sql.DB
	writer chan *writer // holds the one writer while it is free: waiting for it is first come, first served

	now                 func() time.Time
	prepared            sync.Map // query -> *sql.Stmt, for reading
	commits, statements atomic.Int64
}

// writer is the writing connection with the statements that were prepared on it. The texts are constants of this package, so there are few.
type writer struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

// Options of Open.
type Options struct {
	Now func() time.Time // the clock of this store; required
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
	// Whoever can read the file can sign tokens and tickets. SQLite gives its log the same permissions.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db := &DB{now: o.Now, writer: make(chan *writer, 1)}
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
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.read.Close(), db.write.Close())
	}
	db.writer <- &writer{conn: conn, prepared: map[string]*sql.Stmt{}}
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

// Close waits for the transaction under way and closes the file; the write-ahead log is folded in.
func (db *DB) Close() error {
	w := <-db.writer
	// database/sql does not know of statements that were prepared on a connection of ours: left open, they keep SQLite from folding the log in.
	var err error
	for _, s := range w.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, w.conn.Close(), db.read.Close(), db.write.Close())
}

// Ping says whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.queryRow(ctx, `SELECT 1`).Scan(&one)
}

// Commits counts committed write transactions, Statements the statements sent, since the start.
func (db *DB) Commits() int64    { return db.commits.Load() }
func (db *DB) Statements() int64 { return db.statements.Load() }

// clock is the store's time: the process' clock in whole milliseconds. Read inside a transaction it is read after the (one) lock was taken.
func (db *DB) clock() time.Time { return db.now().Truncate(time.Millisecond).UTC() }

// update runs f in one transaction that has the write lock from its beginning. An error of f or of the commit rolls back.
func (db *DB) update(ctx context.Context, f func(*tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err // or the select would sometimes go on
	}
	var w *writer
	select {
	case w = <-db.writer:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { db.writer <- w }()
	// The context ends the wait for the writer, never a transaction under way: a batch carries other people's commands.
	t := &tx{db: db, w: w, ctx: context.WithoutCancel(ctx)}
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", known(err))
	}
	t.writes = 0 // SQLite counts the last change before BEGIN as BEGIN's
	committed := false
	defer func() {
		if committed {
			return
		}
		if _, e := t.exec("ROLLBACK"); e != nil { // also on a panic of f: the connection must come back clean
			err = errors.Join(err, fmt.Errorf("rollback: %w", e))
		}
	}()
	if err := f(t); err != nil {
		return known(err)
	}
	if t.writes == 0 {
		return nil // nothing to make durable: rolling back what was only read costs no sync
	}
	if _, err := t.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", known(err))
	}
	committed = true
	db.commits.Add(1)
	return nil
}

// tx is a transaction on the writing connection.
type tx struct {
	db     *DB
	w      *writer
	ctx    context.Context
	writes int64 // rows changed so far
}

// stmt prepares a statement once for the life of the connection: parsing costs more than running most of ours.
func (t *tx) stmt(query string) (*sql.Stmt, error) {
	t.db.statements.Add(1)
	if s := t.w.prepared[query]; s != nil {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err == nil {
		t.w.prepared[query] = s
	}
	return s, err
}

func (t *tx) exec(query string, args ...any) (changed int64, err error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	changed, err = r.RowsAffected()
	t.writes += changed
	return changed, err
}

func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(t.ctx, args...)
}

func (t *tx) queryRow(query string, args ...any) *sql.Row {
	s, err := t.stmt(query)
	if err != nil {
		return t.w.conn.QueryRowContext(t.ctx, query, args...) // gives the error to Scan
	}
	return s.QueryRowContext(t.ctx, args...)
}

// reader prepares a reading statement once; database/sql prepares it again on each of its connections.
func (db *DB) reader(ctx context.Context, query string) (*sql.Stmt, error) {
	db.statements.Add(1)
	if s, ok := db.prepared.Load(query); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := db.read.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, ok := db.prepared.LoadOrStore(query, s); ok {
		return other.(*sql.Stmt), s.Close()
	}
	return s, nil
}

func (db *DB) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := db.reader(ctx, query)
	if err != nil {
		return nil, known(err)
	}
	rows, err := s.QueryContext(ctx, args...)
	return rows, known(err)
}

func (db *DB) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := db.reader(ctx, query)
	if err != nil {
		return db.read.QueryRowContext(ctx, query, args...) // gives the error to Scan
	}
	return s.QueryRowContext(ctx, args...)
}

// isConstraint says whether err is the violation of any constraint.
func isConstraint(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// known names the errors of SQLite after which nothing is wrong with what was asked, only with the disk, the file or the machine: booking.ErrUnavailable.
// All others pass.
func known(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok || errors.Is(err, booking.ErrUnavailable) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", booking.ErrUnavailable, err)
	}
	return err
}
