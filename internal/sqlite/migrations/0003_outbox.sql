-- +goose Up
-- Facts that must travel; written in the transaction that made them true. AUTOINCREMENT: an id is never given twice, so order is order of commit.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    topic      TEXT NOT NULL,
    type       TEXT NOT NULL,
    key        TEXT NOT NULL,
    message_id TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    payload    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX outbox_message ON outbox (key, topic, sequence);
CREATE INDEX outbox_retry ON outbox (key, next_at) WHERE next_at > 0;
