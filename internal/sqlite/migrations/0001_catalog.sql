-- +goose Up
-- Layouts never change: what differs is a new version.
CREATE TABLE layout (
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    seats      INTEGER NOT NULL,
    document   BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (id, version)
);
CREATE UNIQUE INDEX layout_content ON layout (id, hash);

CREATE TABLE event (
    id             INTEGER PRIMARY KEY,
    slug           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    title          TEXT NOT NULL,
    venue          TEXT NOT NULL,
    city           TEXT NOT NULL,
    country        TEXT NOT NULL,
    time_zone      TEXT NOT NULL,
    starts_at      INTEGER NOT NULL,
    opens_at       INTEGER NOT NULL,
    closes_at      INTEGER NOT NULL,
    currency       TEXT NOT NULL,
    layout_id      TEXT NOT NULL,
    layout_version INTEGER NOT NULL,
    prices         TEXT NOT NULL, -- JSON
    pools          TEXT NOT NULL, -- JSON
    origin         TEXT NOT NULL,
    destination    TEXT NOT NULL,
    policy         TEXT NOT NULL, -- JSON
    places         INTEGER NOT NULL,
    paused         INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    local_date     TEXT NOT NULL, -- day of the start in the venue's zone: a search by date is a search for this text
    price_from     INTEGER NOT NULL,
    available      INTEGER NOT NULL, -- seconds old
    point          INTEGER NOT NULL, -- rises with every change of any event, so that memories can ask for what is new
    list_order     INTEGER NOT NULL  -- second of the start, then bits that keep the events of one second apart: what lists are ordered by
);
CREATE UNIQUE INDEX event_slug ON event (slug);
CREATE UNIQUE INDEX event_point ON event (point);
CREATE UNIQUE INDEX event_list ON event (list_order);
CREATE INDEX event_date ON event (local_date, list_order);
-- With the day in it: a range of days, whose ends are not the same instants everywhere, is passed over to its first match in the index alone.
CREATE INDEX event_days ON event (list_order, local_date);
CREATE INDEX event_kind ON event (kind, list_order, local_date);
-- By far the most frequent search: with everything that a list shows, so that the flights of a route and day are on one or two pages, and not each on its own.
CREATE INDEX event_route ON event (origin, destination, local_date, list_order,
    slug, kind, title, venue, city, country, time_zone, starts_at, opens_at, closes_at, paused, currency, price_from, available) WHERE origin <> '';
CREATE INDEX event_departure ON event (origin, list_order, local_date) WHERE origin <> '';
CREATE INDEX event_arrival ON event (destination, list_order, local_date) WHERE origin <> '';

-- Full text over what people type, as catalog.Terms splits it. The rowid is the event's list_order: so the matches of a common word are met in the order
-- of the list, and its first page costs the same however many there are. The prefix indexes are for the word that is
-- still being typed: without the longer ones, a common word typed in full took 4 ms among 100,000 events. day is the local date as one word.
CREATE VIRTUAL TABLE event_text USING fts5 (title, place, day, content = '', contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 0', prefix = '1 2 3 4 5 6 7 8');
