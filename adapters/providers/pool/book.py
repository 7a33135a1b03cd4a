"""The pool's book: an SQLite file. Every answer is durable before it is given, and the same id always gets the same answer.

One transaction a call, begun for writing, so that two sites at the same moment are one after the other. The table ``moves`` only
grows: what was lent, denied, taken back, refused and ended, in order.
"""

import json
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from xce.adapters.providers.pool.rules import Loan, Standing, why_not_back
from xce.domain.errors import InputError, PermanentError, TransientError
from xce.domain.formats.licence_pool import (
    LicencePool,
    PoolCall,
    PooledResource,
    PoolFault,
)
from xce.domain.ports import Refused

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS settings (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS loans (
    grant_id TEXT PRIMARY KEY, site TEXT NOT NULL, resource TEXT NOT NULL, tag TEXT NOT NULL, amount INTEGER NOT NULL,
    returned INTEGER NOT NULL DEFAULT 0, granted_at TEXT NOT NULL, hold_until TEXT, expires_at TEXT,
    CHECK (returned BETWEEN 0 AND amount));
CREATE INDEX IF NOT EXISTS live ON loans (resource) WHERE returned < amount;
CREATE TABLE IF NOT EXISTS asks (site TEXT, tag TEXT, answer TEXT NOT NULL, PRIMARY KEY (site, tag));
CREATE TABLE IF NOT EXISTS returns (
    site TEXT, return_id TEXT, grant_id TEXT, amount INTEGER NOT NULL, refused TEXT, PRIMARY KEY (site, return_id, grant_id));
CREATE TABLE IF NOT EXISTS wishes (
    site TEXT, resource TEXT, amount INTEGER NOT NULL, until TEXT NOT NULL, PRIMARY KEY (site, resource));
CREATE TABLE IF NOT EXISTS moves (
    position INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, site TEXT NOT NULL,
    resource TEXT NOT NULL, subject TEXT NOT NULL, amount INTEGER NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (site TEXT, call TEXT, count INTEGER NOT NULL, PRIMARY KEY (site, call));
"""
#: How long a call waits for another one.
_BUSY_S: Final = 30.0
#: Primary result codes of SQLite of what may pass: a full disk is one of them, or the other.
_PASSES: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
)
_LOAN: Final = "grant_id, site, resource, tag, amount, returned, granted_at, hold_until, expires_at"


@dataclass(frozen=True, slots=True)
class Back:
    """What became of one part of a return; ``refused``: why it was not taken."""

    grant: str
    amount: int
    refused: str | None


@dataclass(frozen=True, slots=True)
class Move:
    """One line of the pool's own history."""

    position: int
    at: datetime
    kind: str
    site: str
    resource: str
    subject: str
    amount: int
    why: str


class PoolBook:
    """One pool. Every method is one transaction; times are UTC."""

    def __init__(self, file: str | Path, *, make: bool = True) -> None:
        """Open a pool; ``make``: also one that does not exist yet.

        Raises:
            InputError: there is no such file.
            TransientError: it cannot be opened now: the disk is full, or somebody has it locked for too long.
            PermanentError: it is no pool, or cannot be made.
        """
        self._file = str(file)
        if not make and not Path(file).is_file():
            raise InputError.of(self._file, "there is no such pool")
        try:
            self._connection = sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = FULL")
            if self._file != ":memory:":
                self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            passes = getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSES
            kind = TransientError if passes else PermanentError
            raise kind(f"{self._file}: no pool can be opened: {error}") from None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ----------------------------------------------------------------- settings
    def apply(self, settings: LicencePool) -> None:
        """Lend by these settings from now on; what is lent stays lent."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO settings VALUES (1, ?)", (settings.to_json(),)
            )

    def settings(self) -> LicencePool:
        """Return the settings.

        Raises:
            InputError: there are none: the file is no pool yet.
        """
        row = self._row("SELECT document FROM settings")
        if row is None:
            raise InputError.of(self._file, "is no pool yet: apply a configuration first")
        return LicencePool.from_json(row[0], self._file)

    def strikes(self, site: str, call: PoolCall) -> tuple[PoolFault, ...]:
        """Count a call of a site; return the faults that strike it, in the order of the settings."""
        with self._transaction():
            faults = [one for one in self.settings().faults if one.concerns(site, call)]
            if not faults:
                return ()
            self._connection.execute(
                "INSERT INTO calls VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
                (site, call.value),
            )
            count = self._row(
                "SELECT count FROM calls WHERE site = ? AND call = ?", site, call.value
            )[0]
            return tuple(one for one in faults if count % one.every == 0)

    # ------------------------------------------------------------------- lending
    def lend(
        self, site: str, tag: str, resource: str, amount: int, least_useful: int, now: datetime
    ) -> Loan | Refused:
        """Lend as much as there is of an amount, or nothing; the same tag gets the same answer and lends nothing more."""
        with self._transaction():
            known = self._row("SELECT answer FROM asks WHERE site = ? AND tag = ?", site, tag)
            if known is not None:
                return self._answered(json.loads(known[0]))
            self._expire(now)
            terms = self.settings().resource(resource)
            answer = self._decide(site, tag, terms, resource, amount, least_useful, now)
            document = (
                {"grant": answer.grant}
                if isinstance(answer, Loan)
                else {"code": answer.code, "why": answer.why, "retry": answer.retry_after_s}
            )
            self._connection.execute(
                "INSERT INTO asks VALUES (?, ?, ?)", (site, tag, json.dumps(document))
            )
            return answer

    def _decide(
        self,
        site: str,
        tag: str,
        terms: PooledResource | None,
        resource: str,
        amount: int,
        least_useful: int,
        now: datetime,
    ) -> Loan | Refused:
        if terms is None or terms.site(site) is None:
            return Refused("UnknownItem", f"{site} borrows no {resource} here")
        standing = self._standing(terms, now)
        part = min(amount, standing.lendable(site))
        part -= part % terms.step
        self._wish(site, terms, amount - part if part >= least_useful else amount, now)
        if part < max(1, least_useful):
            why = f"{part} of {amount} can be lent"
            self._move(now, "denied", site, resource, tag, amount, why)
            return Refused(
                "InsufficientCapacity", why, max(1, round(terms.wish.total_seconds() / 2))
            )
        loan = Loan(
            grant=f"{site}-{tag}",
            site=site,
            resource=resource,
            tag=tag,
            amount=part,
            returned=0,
            granted_at=now,
            hold_until=now + terms.minimum_hold if terms.minimum_hold else None,
            expires_at=None if terms.lease is None else now + terms.lease,
        )
        self._connection.execute(
            f"INSERT INTO loans ({_LOAN}) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)",
            (
                loan.grant, site, resource, tag, part, _text(now), _text(loan.hold_until), _text(loan.expires_at),
            ),
        )  # fmt: skip
        self._move(now, "lent", site, resource, loan.grant, part, "")
        return loan

    def loan(self, grant: str) -> Loan | None:
        """Return a grant; None: there never was one of this id."""
        row = self._row(f"SELECT {_LOAN} FROM loans WHERE grant_id = ?", grant)
        return None if row is None else _loan(row)

    def holdings(self, site: str, now: datetime) -> tuple[Loan, ...]:
        """Return what is lent to a site."""
        with self._transaction():
            self._expire(now)
            rows = self._connection.execute(
                f"SELECT {_LOAN} FROM loans WHERE site = ? AND returned < amount ORDER BY rowid",
                (site,),
            )
            return tuple(_loan(row) for row in rows.fetchall())

    def renew(self, grant: str, now: datetime) -> datetime | None:
        """Put the end of a grant off by another lease, unless the pool wants it back; return when it ends.

        Raises:
            InputError: there is no such grant any more.
        """
        with self._transaction():
            self._expire(now)
            loan = self.loan(grant)
            if loan is None or not loan.left:
                raise InputError.of(self._file, f"has no grant {grant}")
            terms = self.settings().resource(loan.resource)
            if terms is None or terms.lease is None:
                return loan.expires_at
            if self._standing(terms, now).recalled(loan.site):
                return loan.expires_at
            end = now + terms.lease
            self._connection.execute(
                "UPDATE loans SET expires_at = ? WHERE grant_id = ?", (_text(end), grant)
            )
            self._move(now, "renewed", loan.site, loan.resource, grant, loan.left, "")
            return end

    def renew_some(self, site: str, grants: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Put the ends of a site's grants off; return the new ends, of those that were put off."""
        ends: dict[str, datetime] = {}
        for grant in grants:
            loan = self.loan(grant)
            if loan is None or loan.site != site or loan.expires_at is None:
                continue
            try:
                end = self.renew(grant, now)
            except InputError:
                continue  # it has ended
            if end is not None and end > loan.expires_at:
                ends[grant] = end
        return ends

    # ------------------------------------------------------------------- returns
    def give_back(
        self, site: str, return_id: str, parts: dict[str, int], now: datetime
    ) -> tuple[Back, ...]:
        """Take amounts of grants back; the same return id gets the same answer and takes nothing more."""
        with self._transaction():
            known = self.returned(site, return_id)
            if known:
                return known
            self._expire(now)
            made = tuple(
                self._take(site, return_id, grant, amount, now) for grant, amount in parts.items()
            )
            self._connection.executemany(
                "INSERT INTO returns VALUES (?, ?, ?, ?, ?)",
                [(site, return_id, each.grant, each.amount, each.refused) for each in made],
            )
            return made

    def returned(self, site: str, return_id: str) -> tuple[Back, ...]:
        """Return what became of a return; empty: there never was one of this id."""
        rows = self._rows(
            "SELECT grant_id, amount, refused FROM returns WHERE site = ? AND return_id = ? ORDER BY rowid",
            site,
            return_id,
        )
        return tuple(Back(*row) for row in rows)

    def _take(self, site: str, return_id: str, grant: str, amount: int, now: datetime) -> Back:
        loan = self.loan(grant)
        if loan is None or loan.site != site:
            return Back(grant, amount, f"{site} has no grant {grant}")
        terms = self.settings().resource(loan.resource)
        # A resource that is not lent any more takes everything back.
        why = None if terms is None else why_not_back(loan, amount, terms, now)
        if why is None and not 1 <= amount <= loan.left:
            why = f"{loan.left} of grant {grant} are lent, not {amount}"
        if why is None:
            self._connection.execute(
                "UPDATE loans SET returned = returned + ? WHERE grant_id = ?", (amount, grant)
            )
        self._move(
            now, "refused" if why else "back", site, loan.resource, grant, amount, why or return_id
        )
        return Back(grant, amount, why)

    # --------------------------------------------------------------------- views
    def standing(self, resource: str, now: datetime) -> Standing:
        """Return where one resource stands.

        Raises:
            InputError: the pool has no such resource.
        """
        with self._transaction():
            self._expire(now)
            terms = self.settings().resource(resource)
            if terms is None:
                raise InputError.of(self._file, f"has no resource {resource}")
            return self._standing(terms, now)

    def moves(self, after: int = 0) -> tuple[Move, ...]:
        """Return the history behind a position."""
        rows = self._rows(
            "SELECT position, at, kind, site, resource, subject, amount, why FROM moves WHERE position > ? ORDER BY position",
            after,
        )
        return tuple(Move(row[0], datetime.fromisoformat(row[1]), *row[2:]) for row in rows)

    def _standing(self, terms: PooledResource, now: datetime) -> Standing:
        held = self._connection.execute(
            "SELECT site, SUM(amount - returned) FROM loans WHERE resource = ? AND returned < amount GROUP BY site",
            (terms.name,),
        )
        wishes = self._connection.execute(
            "SELECT site, amount FROM wishes WHERE resource = ? AND until > ?",
            (terms.name, _text(now)),
        )
        return Standing(terms, dict(held.fetchall()), dict(wishes.fetchall()))

    # -------------------------------------------------------------------- inside
    def _answered(self, document: dict[str, Any]) -> Loan | Refused:
        if "grant" not in document:
            return Refused(document["code"], document["why"], document["retry"])
        loan = self.loan(document["grant"])
        assert loan is not None, "a grant is never deleted"
        return loan

    def _wish(self, site: str, terms: PooledResource, amount: int, now: datetime) -> None:
        """Remember for a while what a site was denied; a newer ask of it says it anew."""
        self._connection.execute(
            "DELETE FROM wishes WHERE site = ? AND resource = ?", (site, terms.name)
        )
        if amount > 0:
            self._connection.execute(
                "INSERT INTO wishes VALUES (?, ?, ?, ?)",
                (site, terms.name, amount, _text(now + terms.wish)),
            )

    def _expire(self, now: datetime) -> None:
        rows = self._connection.execute(
            f"SELECT {_LOAN} FROM loans WHERE returned < amount AND expires_at <= ?",
            (_text(now),),
        )
        for loan in [_loan(row) for row in rows.fetchall()]:
            self._connection.execute(
                "UPDATE loans SET returned = amount WHERE grant_id = ?", (loan.grant,)
            )
            self._move(now, "ended", loan.site, loan.resource, loan.grant, loan.left, "lease over")

    def _move(
        self,
        at: datetime,
        kind: str,
        site: str,
        resource: str,
        subject: str,
        amount: int,
        why: str,
    ) -> None:
        self._connection.execute(
            "INSERT INTO moves (at, kind, site, resource, subject, amount, why) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (_text(at), kind, site, resource, subject, amount, why),
        )

    def _row(self, sql: str, *values: object) -> Any:
        return next(iter(self._rows(sql, *values)), None)

    def _rows(self, sql: str, *values: object) -> list[Any]:
        """Return what a question finds, outside a transaction or in one.

        Raises:
            TransientError: the file cannot be read now, or is damaged: what is in it is not known.
        """
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise TransientError(f"{self._file}: {error}") from None

    @contextmanager
    def _transaction(self) -> Generator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise TransientError(f"{self._file}: {error}") from None
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):  # the next one to open the file rolls it back
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise TransientError(f"{self._file}: {error}") from None
            raise


def _loan(row: Any) -> Loan:
    grant, site, resource, tag, amount, returned, granted_at, hold_until, expires_at = row
    return Loan(
        grant, site, resource, tag, amount, returned,
        datetime.fromisoformat(granted_at), _time(hold_until), _time(expires_at),
    )  # fmt: skip


def _text(time: datetime | None) -> str | None:
    """Return a time as a text of fixed length, so that texts compare as times do."""
    return None if time is None else time.astimezone(UTC).isoformat(timespec="microseconds")


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def seconds_until(time: datetime | None, now: datetime) -> int:
    """Return whole seconds until a time; 0: it is over, or there is none."""
    if time is None:
        return 0
    return max(0, -(-(time - now) // timedelta(seconds=1)))
