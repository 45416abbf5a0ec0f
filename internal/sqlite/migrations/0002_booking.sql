-- +goose Up
-- Times are unix milliseconds. Ids are 16 random bytes; with the event in front they are unique over all shards.

-- A seat without a row was never touched and is available: events of 50,000 seats cost nothing until they sell.
-- No index but the key: everything else changes with every hold.
CREATE TABLE seat (
    event_id   INTEGER NOT NULL,
    seat_no    INTEGER NOT NULL,
    status     INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3),
    hold_id    BLOB,
    expires_at INTEGER,
    epoch      INTEGER NOT NULL,
    PRIMARY KEY (event_id, seat_no),
    CHECK ((status IN (1, 2)) = (hold_id IS NOT NULL)),
    CHECK ((status = 1) = (expires_at IS NOT NULL))
) WITHOUT ROWID;

CREATE TABLE pool_bucket (
    event_id INTEGER NOT NULL,
    pool     INTEGER NOT NULL,
    bucket   INTEGER NOT NULL,
    capacity INTEGER NOT NULL CHECK (capacity >= 0),
    overbook INTEGER NOT NULL CHECK (overbook >= 0),
    held     INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    sold     INTEGER NOT NULL DEFAULT 0 CHECK (sold >= 0),
    epoch    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (event_id, pool, bucket),
    CHECK (held + sold <= capacity + overbook)
) WITHOUT ROWID;

CREATE TABLE hold (
    event_id   INTEGER NOT NULL,
    id         BLOB NOT NULL,
    customer   BLOB NOT NULL,
    seats      TEXT NOT NULL, -- JSON array of seat numbers
    units      TEXT NOT NULL, -- JSON array of {p, b, n}
    places     INTEGER NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    currency   TEXT NOT NULL,
    state      INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    placed_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ceiling_at INTEGER NOT NULL,
    prolonged  INTEGER NOT NULL DEFAULT 0,
    request    BLOB NOT NULL,
    PRIMARY KEY (event_id, id)
) WITHOUT ROWID;
CREATE INDEX hold_due ON hold (expires_at) WHERE state = 0;

CREATE TABLE allowance (
    event_id INTEGER NOT NULL,
    customer BLOB NOT NULL,
    units    INTEGER NOT NULL CHECK (units >= 0),
    PRIMARY KEY (event_id, customer)
) WITHOUT ROWID;

-- A booking has the id of the hold that it was made from.
CREATE TABLE booking (
    event_id     INTEGER NOT NULL,
    id           BLOB NOT NULL,
    customer     BLOB NOT NULL,
    status       INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3),
    amount       INTEGER NOT NULL CHECK (amount >= 0),
    currency     TEXT NOT NULL,
    email        TEXT NOT NULL COLLATE NOCASE,
    buyer        TEXT NOT NULL, -- JSON
    seats        TEXT NOT NULL,
    units        TEXT NOT NULL,
    places       INTEGER NOT NULL,
    refund       INTEGER NOT NULL DEFAULT 0,
    reason       TEXT NOT NULL DEFAULT '',
    cancelled_by BLOB,
    sequence     INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (event_id, id)
) WITHOUT ROWID;
CREATE INDEX booking_customer ON booking (customer, created_at);
CREATE INDEX booking_email ON booking (email, created_at);

CREATE TABLE payment (
    event_id         INTEGER NOT NULL,
    id               BLOB NOT NULL,
    hold_id          BLOB NOT NULL,
    provider         TEXT NOT NULL,
    reference        TEXT, -- NULL until the provider answered
    url              TEXT NOT NULL DEFAULT '',
    amount           INTEGER NOT NULL,
    currency         TEXT NOT NULL,
    status           INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
    charged          INTEGER NOT NULL DEFAULT 0,
    charged_currency TEXT NOT NULL DEFAULT '',
    owed             INTEGER NOT NULL DEFAULT 0,
    refunded         INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    check_at         INTEGER NOT NULL,
    checks           INTEGER NOT NULL DEFAULT 0,
    request          BLOB NOT NULL,
    PRIMARY KEY (event_id, id),
    CHECK (refunded <= owed AND owed <= charged)
) WITHOUT ROWID;
CREATE UNIQUE INDEX payment_reference ON payment (provider, reference);
CREATE INDEX payment_hold ON payment (event_id, hold_id);
CREATE INDEX payment_due ON payment (check_at) WHERE status = 0;

-- Ids of notices that were applied: the same notice is applied once.
CREATE TABLE payment_notice (
    provider  TEXT NOT NULL,
    notice_id TEXT NOT NULL,
    seen_at   INTEGER NOT NULL,
    PRIMARY KEY (provider, notice_id)
) WITHOUT ROWID;
CREATE INDEX payment_notice_seen ON payment_notice (seen_at);

CREATE TABLE refund (
    event_id   INTEGER NOT NULL,
    id         BLOB NOT NULL,
    payment_id BLOB NOT NULL,
    provider   TEXT NOT NULL,
    reference  TEXT NOT NULL,
    cause      TEXT NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount > 0),
    currency   TEXT NOT NULL,
    done       INTEGER NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX refund_once ON refund (event_id, payment_id, cause);
CREATE INDEX refund_due ON refund (next_at) WHERE done = 0;

-- A promise of what a cancellation gives back.
CREATE TABLE quote (
    event_id   INTEGER NOT NULL,
    id         BLOB NOT NULL,
    booking_id BLOB NOT NULL,
    refund     INTEGER NOT NULL,
    currency   TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, id)
) WITHOUT ROWID;
