"""A streaming reader of ``lmstat`` texts: line by line, in memory for features and not for sessions.

A text can be cut anywhere. A last line without its line end is not read, for a number in it may be the beginning of a larger one; a last
feature whose sessions do not add up to its header is left out; both are said in ``Report.cut``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, auto
from typing import BinaryIO, Final

from xce.adapters.observers.flexnet import lines as grammar
from xce.adapters.observers.flexnet.report import (
    Feature,
    FeatureKind,
    Pool,
    Report,
    ReportState,
    Server,
    Vendor,
)

#: Users of whom the start of a session is kept.
STARTS_MAX: Final = 10_000
#: A line longer than this is not one of lmstat.
_LINE_MAX: Final = 1 << 16


def parse(text: str) -> Report:
    """Return what a text says."""
    parser = Parser()
    *lines, rest = text.split("\n")
    parser.feed(lines)
    return parser.finish(rest)


def parse_file(file: BinaryIO) -> Report:
    """Return what a file says, without holding it in memory; bytes that are no UTF-8 are kept apart, not refused."""
    parser = Parser()
    rest = ""

    def whole_lines() -> Iterable[str]:
        nonlocal rest
        while raw := file.readline(_LINE_MAX):
            line = raw.decode("utf-8", "surrogateescape")
            if raw.endswith(b"\n"):
                yield rest + line[:-1] if len(rest) < _LINE_MAX else ""
                rest = ""
            elif len(rest) < _LINE_MAX:
                rest += line

    parser.feed(whole_lines())
    return parser.finish(rest)


class _Part(Enum):
    """Which part of a server block the next line belongs to."""

    BEFORE = auto()
    SERVERS = auto()
    VENDORS = auto()
    FEATURES = auto()


class _Last(Enum):
    """What the last line of a feature was."""

    HEADER = auto()
    DETAIL = auto()
    SESSION = auto()


@dataclass(slots=True)
class _Block:
    """One server, or one triad."""

    name: str
    first_server: int
    up: dict[str, bool] = field(default_factory=dict[str, bool])
    masters: set[str] = field(default_factory=set[str])
    vendors: dict[str, bool] = field(default_factory=dict[str, bool])
    features: int = 0

    def usable(self) -> bool:
        return any(self.up.values()) or self.features > 0

    def dead(self, vendor: str | None) -> bool:
        """Return whether the daemon of a feature is down; where it is not known, whether all are."""
        if vendor is not None and vendor in self.vendors:
            return not self.vendors[vendor]
        return bool(self.vendors) and not any(self.vendors.values())


@dataclass(slots=True)
class _Pool:
    """A pool while it is read."""

    version: str
    expiry: date | None
    kind: str | None = None
    checked_out: int = 0
    reserved: int = 0


class Parser:
    """Fed with lines, in order; ``finish`` returns what they say."""

    def __init__(self) -> None:
        self._reported: datetime | None = None
        self._part = _Part.BEFORE
        self._blocks: list[_Block] = []
        self._servers: list[Server] = []
        self._vendors: list[Vendor] = []
        self._features: list[Feature] = []
        #: A server was asked and did not answer at all.
        self._missing = False
        #: A rule promises one more block.
        self._promised = False
        self._line = 0
        #: Two lines of text stood next to one another; else the text is double spaced, and a blank line says nothing.
        self._single_spaced = False
        self._blank = True
        # The feature being read.
        self._header: grammar.Header | None = None
        self._last = _Last.HEADER
        self._vendor: str | None = None
        self._pools: list[_Pool] = []
        self._seen: set[str] = set()
        self._checked_out = self._reserved = self._borrowed = self._queued = 0
        # Starts of sessions.
        self._starts: dict[str, tuple[int, int, int, int]] = {}
        self._earlier_year = False

    def feed(self, lines: Iterable[str]) -> None:
        """Read whole lines, without their line ends."""
        read = 0
        blank = self._blank
        session = self._session
        other = self._other
        for raw in lines:
            read += 1
            line = raw.rstrip()
            if not line:
                blank = True
                continue
            if not blank:
                self._single_spaced = True
            blank = False
            at = line.rfind(grammar.STARTS)
            if at < 0 or not session(line, at):
                other(line)
        self._line += read
        self._blank = blank

    def finish(self, rest: str = "") -> Report:
        """Return what all lines say; ``rest`` is a last one without its end."""
        cut = self._cut(rest)
        if self._header is not None and not self._is_explained(rest):
            self._header = None
        self._close_feature()
        usable = any(block.usable() for block in self._blocks)
        missing = self._missing or not all(block.usable() for block in self._blocks)
        if not usable:
            state = ReportState.UNREACHABLE
        elif cut is not None or missing:
            state = ReportState.PARTIAL
        elif all(each.up for each in self._servers) and all(each.up for each in self._vendors):
            state = ReportState.OK
        else:
            state = ReportState.DEGRADED
        return Report(
            state,
            self._reported,
            tuple(self._servers),
            tuple(self._vendors),
            tuple(self._features),
            cut,
            tuple(self._dated_starts()),
        )

    # ---------------------------------------------------------------- the end
    def _cut(self, rest: str) -> str | None:
        """Return where the text stops early; None: it does not show that it does."""
        if rest.rstrip("\r"):
            return f"line {self._line + 1} has no end"
        if self._header is not None:
            if not self._is_explained(rest):
                return f"it stops among the users of {self._header.name}"
            return "no blank line ends it" if self._single_spaced and not self._blank else None
        if self._promised:
            return "it stops before a further server"
        if not self._blocks:
            return None if self._missing else "it stops before the first server"
        block = self._blocks[-1]
        if block.up and not any(block.up.values()) and self._part is _Part.SERVERS:
            return None  # nobody of this server answers: nothing follows
        if self._missing and not block.up:
            return None
        return None if block.features else f"it stops before the features of {block.name}"

    def _is_explained(self, rest: str) -> bool:
        """Return whether the last feature is all there.

        A blank line ends it; in a double spaced text that says nothing, and its sessions must explain its header. A header that has no
        users, or an error, stands for itself.
        """
        header = self._header
        assert header is not None
        if rest[:1] in (" ", "\t") or self._last is _Last.DETAIL:
            return False
        if self._last is _Last.HEADER and (header.error is not None or header.in_use == 0):
            return True
        if self._single_spaced:
            return self._blank and not (self._last is _Last.HEADER and header.in_use)
        used = 0 if header.in_use is None else header.in_use
        return self._checked_out + self._reserved >= used

    def _dated_starts(self) -> Iterable[tuple[str, datetime]]:
        if not self._earlier_year or self._reported is None:
            return
        for user, numbers in self._starts.items():
            start = grammar.start_of(*numbers, self._reported)
            if start is not None:
                yield user, start

    # ------------------------------------------------------------------ lines
    def _session(self, line: str, at: int) -> bool:
        """Read a session, if the line is one of a feature."""
        if self._header is None or grammar.VENDOR_STRING.match(line):
            return False
        found = grammar.SESSION_END.match(line, at + len(grammar.STARTS))
        self._last = _Last.SESSION
        if found is None:
            rest = line[at + len(grammar.STARTS) :]
            if self._is_new(line):
                end = grammar.odd_session_end(rest)
                self._check_out(end.licences, end.lingers)
            return True
        month, day, hour, minute, count, left, whole = found.groups()
        key = line[: found.end(4)]
        if key in self._seen:
            return True
        self._seen.add(key)
        amount = int(count) if count else 1
        self._checked_out += amount
        if self._pools:
            self._pools[-1].checked_out += amount
        if whole is not None and int(left or whole) > 0:
            self._borrowed += amount
        self._note_start(line, (int(month), int(day), int(hour), int(minute)))
        return True

    def _check_out(self, amount: int, lingers: bool) -> None:
        self._checked_out += amount
        if self._pools:
            self._pools[-1].checked_out += amount
        if lingers:
            self._borrowed += amount

    def _is_new(self, line: str) -> bool:
        """Return whether a session is not one that stood in another part of the same feature: sessions count, not lines."""
        if line in self._seen:
            return False
        self._seen.add(line)
        return True

    def _note_start(self, line: str, start: tuple[int, int, int, int]) -> None:
        reported = self._reported
        if reported is None:
            return
        if start > (reported.month, reported.day, reported.hour, reported.minute):
            self._earlier_year = True
        if len(self._starts) < STARTS_MAX:
            self._starts.setdefault(line.split(None, 1)[0], start)

    def _other(self, line: str) -> None:
        """Read any line that is no session."""
        if grammar.USERS_OF.match(line):
            self._open_feature(grammar.header_of(line))
        elif found := grammar.SERVER_BLOCK.match(line):
            self._close_feature()
            self._blocks.append(_Block(found[1], len(self._servers)))
            self._part, self._promised = _Part.SERVERS, False
        elif grammar.NO_STATUS.match(line):
            self._close_feature()
            self._missing, self._promised = True, False
        elif grammar.RULE.match(line):
            self._close_feature()
            self._promised = True
        elif grammar.VENDOR_BLOCK.match(line):
            self._close_feature()
            self._part = _Part.VENDORS
        elif grammar.FEATURE_BLOCK.match(line):
            self._close_feature()
            self._part = _Part.FEATURES
        elif self._header is not None:
            self._in_feature(line)
        elif self._part is _Part.SERVERS:
            self._server(line)
        elif self._part is _Part.VENDORS:
            self._daemon(line)
        elif self._part is _Part.BEFORE and self._reported is None:
            self._reported = grammar.status_time(line)

    def _server(self, line: str) -> None:
        if grammar.SERVER_FILES.match(line):
            return
        found = grammar.STATUS.match(line)
        if found is None:
            return
        block, host = self._blocks[-1], found[1].lower()
        up = grammar.SERVER_UP.match(found[2]) is not None
        block.up[host] = block.up.get(host, False) or up
        if grammar.MASTER in found[2]:
            block.masters.add(host)
        entry = Server(host, block.up[host], host in block.masters)
        for place in range(block.first_server, len(self._servers)):
            if self._servers[place].host == host:  # twice, in two cases
                self._servers[place] = entry
                return
        self._servers.append(entry)

    def _daemon(self, line: str) -> None:
        found = grammar.STATUS.match(line)
        if found is None:
            return
        up = grammar.VENDOR_UP.match(found[2]) is not None
        self._vendors.append(Vendor(found[1], up))
        self._require_block()
        vendors = self._blocks[-1].vendors
        vendors[found[1]] = vendors.get(found[1], False) or up

    def _require_block(self) -> None:
        if not self._blocks:  # the beginning of the text is not there
            self._missing = True
            self._blocks.append(_Block("", 0))

    # --------------------------------------------------------------- features
    def _open_feature(self, header: grammar.Header) -> None:
        self._close_feature()
        self._require_block()
        self._part = _Part.FEATURES
        self._blocks[-1].features += 1
        self._header, self._last, self._vendor = header, _Last.HEADER, None
        self._pools = []
        self._seen = set()
        self._checked_out = self._reserved = self._borrowed = self._queued = 0

    def _in_feature(self, line: str) -> None:
        at = line.rfind(grammar.WAITS)
        if at >= 0 and (found := grammar.QUEUE_END.match(line, at + len(grammar.WAITS))):
            self._last = _Last.SESSION
            if self._is_new(line):
                self._queued += int(found[1])
        elif found := grammar.RESERVATION.match(line):
            self._last = _Last.SESSION
            self._reserved += int(found[1])
            if self._pools:
                self._pools[-1].reserved += int(found[1])
        elif found := grammar.DETAIL.match(line):
            self._last = _Last.DETAIL
            self._vendor = self._vendor or found[3]
            self._pools.append(_Pool(found[2], grammar.expiry_of(found[4])))
        elif self._pools and self._pools[-1].kind is None:
            if grammar.NODELOCKED.search(line):
                self._pools[-1].kind = "nodelocked"
            elif grammar.FLOATING.search(line):
                self._pools[-1].kind = "floating"

    def _close_feature(self) -> None:
        header = self._header
        if header is None:
            return
        self._header = None
        block = self._blocks[-1]
        kind, issued, in_use, error = (
            FeatureKind.COUNTED,
            header.issued,
            header.in_use,
            header.error,
        )
        if header.uncounted:
            kind = FeatureKind.UNCOUNTED
        elif error is None and block.dead(self._vendor):
            error, issued, in_use = "its vendor daemon is down", None, None
        if error is not None:
            kind, in_use = FeatureKind.ERROR, None
        self._features.append(
            Feature(
                header.name,
                self._vendor,
                block.name,
                kind,
                issued,
                in_use,
                self._checked_out,
                self._reserved,
                self._borrowed,
                self._queued,
                error,
                tuple(
                    Pool(each.version, each.expiry, each.kind, each.checked_out, each.reserved)
                    for each in self._pools
                ),
            )
        )
