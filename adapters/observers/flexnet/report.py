"""What a text of ``lmstat`` says, as values. None is unknown, which is neither zero nor free."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final

#: FlexNet prints this number, and a vendor may set any above it, where there is no limit.
NO_LIMIT: Final = 2_147_483_647


class ReportState(StrEnum):
    """How much of what was asked the text answers."""

    OK = "ok"
    #: Every block of a server answered; a node of a triad or a vendor daemon is down.
    DEGRADED = "degraded"
    #: A block is missing, or the text stops early: sums are lower bounds.
    PARTIAL = "partial"
    #: No usable block: no observation.
    UNREACHABLE = "unreachable"


class FeatureKind(StrEnum):
    """What the header of a feature says."""

    COUNTED = "counted"
    UNCOUNTED = "uncounted"
    #: The count is unknown.
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Server:
    """A host of a server block; one entry a host, its name in lower case."""

    host: str
    up: bool
    master: bool


@dataclass(frozen=True, slots=True)
class Vendor:
    """A mention of a vendor daemon."""

    name: str
    up: bool


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of a feature: one version with one end.

    Attributes:
        expiry: None: it never ends, or the text does not say.
        kind: ``floating``, ``nodelocked``, or None where the text does not say.
    """

    version: str
    expiry: date | None
    kind: str | None
    checked_out: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Feature:
    """One line "Users of", with what stands below it; never merged with another.

    Attributes:
        vendor: the daemon, where a detail header names it.
        server: all that stands behind "License server status:".
        issued: None: the header has none.
        in_use_reported: of the header; unused reservations are part of it.
        checked_out: by sessions, lingering ones are part of it.
        reserved: what of the reservations nobody has checked out.
        borrowed: part of ``checked_out`` that lingers.
        queued: wanted by sessions that wait; not in use.
        error: why the count is unknown.
    """

    name: str
    vendor: str | None
    server: str
    kind: FeatureKind
    issued: int | None
    in_use_reported: int | None
    checked_out: int
    reserved: int
    borrowed: int
    queued: int
    error: str | None
    pools: tuple[Pool, ...]

    @property
    def in_use(self) -> int | None:
        """What an observation reports; None: unknown, or without a limit and so never counted."""
        if self.in_use_reported is None:
            return None
        return max(self.checked_out, self.in_use_reported - self.reserved)

    @property
    def free(self) -> int | None:
        """What the server would still give to anybody; None: unknown or without a limit."""
        if self.issued is None or self.in_use_reported is None or self.issued >= NO_LIMIT:
            return None
        return max(0, self.issued - max(self.in_use_reported, self.checked_out))


@dataclass(frozen=True, slots=True)
class Report:
    """A whole text.

    Attributes:
        reported_at: local time of the machine that ran the tool; it says no zone.
        cut: where the text stops before it is finished; None: it does not, as far as it shows.
        starts: when sessions began, by user, the first of each; empty unless one began in an earlier year than the report.
    """

    state: ReportState
    reported_at: datetime | None
    servers: tuple[Server, ...]
    vendors: tuple[Vendor, ...]
    features: tuple[Feature, ...]
    cut: str | None
    starts: tuple[tuple[str, datetime], ...]

    def totals(self) -> dict[str, tuple[int | None, int | None]]:
        """Return issued and in use of each feature that stands at several servers; None: one of them is unknown."""
        at: dict[str, list[Feature]] = {}
        for feature in self.features:
            at.setdefault(feature.name, []).append(feature)
        return {
            name: (
                _sum(each.issued for each in found),
                _sum(each.in_use for each in found),
            )
            for name, found in at.items()
            if len({each.server for each in found}) > 1
        }


def _sum(amounts: Any) -> int | None:
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def document_of(report: Report) -> dict[str, Any]:
    """Return a report as a JSON document; times are local ones of the tool's machine, to the minute."""
    document: dict[str, Any] = {
        "state": report.state.value,
        "reported_at": None if report.reported_at is None else _minute(report.reported_at),
        "servers": [
            {"host": each.host, "state": _up(each.up), "master": each.master}
            for each in report.servers
        ],
        "vendors": [{"vendor": each.name, "state": _up(each.up)} for each in report.vendors],
        "features": [_feature(each) for each in report.features],
    }
    if totals := report.totals():
        document["totals"] = {
            name: {"issued": issued, "in_use": in_use} for name, (issued, in_use) in totals.items()
        }
    if report.starts:
        document["checkout_starts"] = {user: _minute(start) for user, start in report.starts}
    return document


def _feature(feature: Feature) -> dict[str, Any]:
    document: dict[str, Any] = {
        "feature": feature.name,
        "vendor": feature.vendor,
        "server": feature.server,
        "kind": feature.kind.value,
        "issued": feature.issued,
        "in_use_reported": feature.in_use_reported,
        "checked_out": feature.checked_out,
        "reserved": feature.reserved,
        "borrowed": feature.borrowed,
        "queued": feature.queued,
        "in_use": feature.in_use,
        "error": feature.error,
    }
    if len(feature.pools) > 1:
        document["pools"] = [
            {
                "version": pool.version,
                "expiry": None if pool.expiry is None else pool.expiry.isoformat(),
                "type": pool.kind,
                "checked_out": pool.checked_out,
                "reserved": pool.reserved,
            }
            for pool in feature.pools
        ]
    return document


def _up(up: bool) -> str:
    return "up" if up else "down"


def _minute(time: datetime) -> str:
    return time.isoformat(timespec="minutes")
