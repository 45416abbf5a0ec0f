-- +goose Up
-- One place of a booking. The id follows from booking and ordinal, so issuing twice changes nothing.
CREATE TABLE ticket (
    event_id   INTEGER NOT NULL,
    id         BLOB NOT NULL,
    booking_id BLOB NOT NULL,
    ordinal    INTEGER NOT NULL,
    seat       TEXT NOT NULL, -- code; empty: a unit of the pool
    pool       TEXT NOT NULL,
    holder     TEXT NOT NULL,
    code       TEXT NOT NULL,
    status     INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2), -- valid, used, void
    issued_at  INTEGER NOT NULL,
    PRIMARY KEY (event_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ticket_once ON ticket (event_id, booking_id, ordinal);
