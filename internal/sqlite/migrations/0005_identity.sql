-- +goose Up
CREATE TABLE signing_key (
    kind       TEXT NOT NULL,
    id         INTEGER NOT NULL,
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retires_at INTEGER, -- NULL: not yet known
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;

-- One row: the hash of the admin key, when it was made by the program.
CREATE TABLE admin_key (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    hash BLOB NOT NULL
);
