"""The tables of a log on PostgreSQL.

Schema 1, in a schema (namespace) of its own::

    about          one row: version of the tables
    stored_events  position PRIMARY KEY, originator_id, originator_version, topic, state (JSON as bytes), digest (SHA-256)
    log_head       one row: position and digest of the last event; changes: moves of fences that came without an event
    fences         name, epoch
    seat           one row: the primary, see ``seat.py``
    snapshots      what was folded, by position and projection, see ``snapshots.py``; may be emptied at any time

Made once, whole or not at all, by whoever comes first: the others wait at an advisory lock.
"""

from typing import Final, LiteralString

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from xce.adapters.store.postgresql.sessions import Session, Sessions, rows_of, translated
from xce.domain.errors import InputError, PermanentError
from xce.domain.events.digest import GENESIS

SCHEMA_VERSION: Final = 1

#: First half of the keys of our advisory locks ("xce1"); the second says what for.
LOCK_CLASS: Final = 0x78636531

_CREATE: Final[LiteralString] = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE {schema}.about (
    id integer PRIMARY KEY CHECK (id = 1),
    version integer NOT NULL
);
CREATE TABLE {schema}.stored_events (
    position bigint PRIMARY KEY CHECK (position > 0),
    originator_id text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL CHECK (originator_version > 0),
    topic text NOT NULL,
    state bytea NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT stored_events_version UNIQUE (originator_id, originator_version)
);
CREATE TABLE {schema}.log_head (
    id integer PRIMARY KEY CHECK (id = 1),
    position bigint NOT NULL,
    digest bytea NOT NULL,
    changes bigint NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE {schema}.fences (
    name text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL
);
CREATE TABLE {schema}.seat (
    id integer PRIMARY KEY CHECK (id = 1),
    epoch bigint NOT NULL,
    beat bigint NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    application text NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE {schema}.snapshots (
    position bigint NOT NULL,
    digest bytea NOT NULL,
    code text NOT NULL,
    name text NOT NULL,
    kept bytea NOT NULL,
    sum bytea NOT NULL,
    PRIMARY KEY (position, name)
);
INSERT INTO {schema}.log_head VALUES (1, 0, {genesis}, 0);
INSERT INTO {schema}.about VALUES (1, {version});
"""


def query(schema: str, text: LiteralString) -> bytes:
    """Return a statement with ``{schema}`` put in."""
    return SQL(text).format(schema=Identifier(schema)).as_bytes(None)


def open_tables(sessions: Sessions) -> None:
    """Make sure that the tables are there and of this release; make them where nothing is, unless for reading only.

    Raises:
        InputError: there is no log, or one of another release.
        PermanentError: the tables cannot be made.
        TransientError: the server cannot be reached.
    """
    session = sessions.connect()
    try:
        version = _version(session, sessions)
        if version is None:
            if sessions.read_only:
                raise InputError.of(
                    sessions.address.shown,
                    f"holds no log: there are no tables in its schema {sessions.address.schema!r}",
                )
            version = _create(session, sessions)
        _require(version, sessions)
    except psycopg.Error as error:
        raise translated(error, sessions.address.shown) from None
    finally:
        session.close()


def _require(version: int, sessions: Sessions) -> None:
    if version != SCHEMA_VERSION:
        raise InputError.of(
            sessions.address.shown,
            f"was written by another release: its schema is {version}, this release reads {SCHEMA_VERSION}",
        )


def _version(session: Session, sessions: Sessions) -> int | None:
    schema, shown = sessions.address.schema, sessions.address.shown
    names = {
        str(name)
        for (name,) in rows_of(
            session, b"SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        )
    }
    if not names:
        return None
    if "about" not in names:
        raise InputError.of(
            shown, f"is not a log: the tables in its schema {schema!r} are of another program"
        )
    try:
        rows = rows_of(session, query(schema, "SELECT version FROM {schema}.about"))
        for table in ("stored_events", "log_head", "fences", "seat", "snapshots"):
            if table not in names:
                raise InputError.of(shown, f"is not a whole log: no table {schema}.{table}")
    except (psycopg.errors.UndefinedColumn, psycopg.errors.InsufficientPrivilege) as error:
        raise InputError.of(
            shown, f"cannot be read as a log: {error.diag.message_primary}"
        ) from None
    if len(rows) != 1:
        raise InputError.of(shown, f"is not a log: {schema}.about has {len(rows)} rows")
    return int(rows[0][0])


def _create(session: Session, sessions: Sessions) -> int:
    schema, shown = sessions.address.schema, sessions.address.shown
    if session.info.parameter_status("server_encoding") != "UTF8":
        raise PermanentError(f"{shown}: a log needs a database with the encoding UTF8")
    try:
        with session.transaction():
            session.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK_CLASS, f"create {schema}")
            )
            made = _version(session, sessions)  # by somebody else meanwhile
            if made is not None:
                return made
            session.execute(
                SQL(_CREATE)
                .format(
                    schema=Identifier(schema),
                    genesis=Literal(GENESIS),
                    version=Literal(SCHEMA_VERSION),
                )
                .as_bytes(None),
                prepare=False,
            )
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermanentError(
            f"{shown}: the tables cannot be made: {error.diag.message_primary}"
        ) from None
    return SCHEMA_VERSION
