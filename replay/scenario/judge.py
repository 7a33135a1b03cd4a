"""Whether a run is what its scenario expects: each expectation is looked at when it can be told, and its first failure is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from xce.domain.formats.expectations import (
    ExpectAsks,
    Expectation,
    ExpectReason,
    ExpectValue,
    Measure,
)
from xce.domain.values import write_duration
from xce.replay.scenario.gauge import Gauge


@dataclass(slots=True)
class Case:
    """One expectation on its way to a verdict.

    Attributes:
        passed: None: it is not known yet.
        failed_at: when it was first not so.
    """

    expectation: Expectation
    passed: bool | None = None
    found: str = ""
    failed_at: datetime | None = None

    def fail(self, at: datetime, found: str) -> None:
        """Say that it is not so."""
        self.passed, self.failed_at, self.found = False, at, found

    def hold(self, found: str) -> None:
        """Say that it is so."""
        self.passed, self.found = True, found


class Judge:
    """Looks at a run after everything of one time has happened."""

    def __init__(self, expectations: Sequence[Expectation], gauge: Gauge, start: datetime) -> None:
        self.cases = [Case(one) for one in expectations]
        self._gauge = gauge
        self._start = start

    def look(self, now: datetime, next_time: datetime | None) -> None:
        """Look at all that can be told now; the next thing happens at ``next_time``, None: nothing does."""
        for case in self.cases:
            if case.passed is None:
                self._look(case, now - self._start, next_time)

    def end(self, now: datetime) -> None:
        """Give a verdict on everything that is left."""
        for case in self.cases:
            if case.passed is not None:
                continue
            match case.expectation:
                case ExpectAsks():
                    self._judge_asks(case, case.expectation, now)
                case ExpectReason():
                    self._judge_reason(case, case.expectation, now)
                case ExpectValue():
                    self._judge_end(case, case.expectation, now)

    # ----------------------------------------------------------------- on the way
    def _look(self, case: Case, passed: timedelta, next_time: datetime | None) -> None:
        """Look at a case; what holds now does so until the next thing happens."""
        until = None if next_time is None else next_time - self._start
        match case.expectation:
            case ExpectReason(at=at):
                if _covers(at, passed, until):
                    self._judge_reason(case, case.expectation, self._start + at)
            case ExpectValue(at=at) as one if at is not None:
                if _covers(at, passed, until):
                    self._judge_value(case, one, self._start + at)
            case ExpectValue(by=by) as one if by is not None:
                begun = one.after is None or until is None or until > one.after
                if begun and passed <= by:
                    value = self._gauge.value(one)
                    case.found = _number(value)
                    if one.holds(value):
                        case.hold(_number(value))
                if case.passed is None and (until is None or until > by):
                    case.fail(self._start + by, case.found or "it did not come to it")
            case ExpectValue(always=True) as one:
                after = one.after or timedelta(0)
                inside = one.until is None or passed <= one.until
                if inside and (until is None or until > after):
                    value = self._gauge.value(one)
                    if not one.holds(value):
                        case.fail(self._start + max(passed, after), _number(value))
                    else:
                        case.found = _number(value)
            case _:
                pass

    def _judge_value(self, case: Case, one: ExpectValue, at: datetime) -> None:
        value = self._gauge.value(one)
        if one.holds(value):
            case.hold(_number(value))
        else:
            case.fail(at, _number(value))

    def _judge_reason(self, case: Case, one: ExpectReason, at: datetime) -> None:
        found = self._gauge.reason(one.reason_of) or "nothing is said of it"
        if one.says in found:
            case.hold(found)
        else:
            case.fail(at, found)

    # ------------------------------------------------------------------ at the end
    def _judge_asks(self, case: Case, one: ExpectAsks, now: datetime) -> None:
        asks = list(self._gauge.asks(one.provider, one.item))
        found = "; ".join(
            f"{_time(ask.timestamp - self._start)} {ask.amount} {ask.item}" for ask in asks
        )
        for wanted, ask in zip(one.asks, asks, strict=False):
            late = ask.timestamp - self._start - wanted.at
            same = ask.amount == wanted.amount and wanted.item in (None, ask.item)
            if not same or not timedelta(0) <= late <= one.within:
                case.fail(ask.timestamp, found)
                return
        if len(asks) > len(one.asks):
            case.fail(asks[len(one.asks)].timestamp, found)
        elif len(asks) < len(one.asks):
            case.fail(self._start + one.asks[len(asks)].at, found or "none")
        else:
            case.hold(found or "none")

    def _judge_end(self, case: Case, one: ExpectValue, now: datetime) -> None:
        if one.always:
            case.hold(case.found or "always")
        elif one.by is not None:
            case.fail(now, case.found or "it did not come to it")
        elif one.at is not None:
            self._judge_value(case, one, self._start + one.at)
        else:
            self._judge_value(case, one, now)


def words(one: Expectation) -> str:
    """Return an expectation in words."""
    match one:
        case ExpectAsks():
            of = _of(one.provider, one.item)
            asks = "; ".join(
                f"{_time(ask.at)} {ask.amount} {ask.item or ''}".rstrip() for ask in one.asks
            )
            return f"asks{of}: {asks or 'none'}"
        case ExpectReason():
            return f"at {_time(one.at)} of {one.reason_of}: {one.says!r}"
        case ExpectValue():
            return f"{_what(one)} {_bounds(one)} {_when(one)}"


def _what(one: ExpectValue) -> str:
    subject = one.event if one.of is Measure.EVENTS and one.event else one.of.value
    parts = [subject, *(f"{name}={value}" for name, value in one.where.items())]
    if one.shared:
        parts.append(f"of {one.shared}")
    if one.job:
        parts.append(f"of job {one.job}")
    return " ".join(parts) + _of(one.provider, one.item)


def _of(provider: str | None, item: str | None) -> str:
    return "".join(f" of {name}" for name in (provider, item) if name)


def _bounds(one: ExpectValue) -> str:
    bounds = ((" = ", one.equals), (" >= ", one.at_least), (" <= ", one.at_most))
    return " and".join(
        f"{sign}{format(value, 'f')}" for sign, value in bounds if value is not None
    ).strip()


def _when(one: ExpectValue) -> str:
    if one.at is not None:
        return f"at {_time(one.at)}"
    if one.by is not None:
        return f"by {_time(one.by)}"
    if not one.always:
        return "at the end"
    after = "" if one.after is None else f" from {_time(one.after)}"
    until = "" if one.until is None else f" until {_time(one.until)}"
    return f"always{after}{until}"


def _covers(at: timedelta, passed: timedelta, until: timedelta | None) -> bool:
    """Return whether what is so now is what is so at ``at``."""
    return passed <= at and (until is None or at < until)


def _number(value: Decimal | None) -> str:
    return "unknown" if value is None else format(value.normalize(), "f")


def _time(value: timedelta) -> str:
    return write_duration(value)
