"""Failures in a row: pauses that grow, a turn for the others, and a single host as a probe afterwards (F03, F06, F07)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from xce.domain.formats.policy import (
    Decision,
    DecisionKind,
    FailureEntry,
    PolicyInput,
    PolicySettings,
)
from xce.domain.formats.provider import Kind
from xce.domain.policy.times import clock, later
from xce.domain.values import natural_key


def pause_for(failures: int, settings: PolicySettings) -> timedelta:
    """Return the pause after the last of so many failures that each lead to one: it doubles with every further one."""
    first = settings.pause_after_refusal
    longest = max(first, settings.longest_pause)
    # Beyond 40 doublings any pause above 0 is the longest.
    doublings = min(max(0, failures - 1), 40)
    return longest if first and first > longest / 2**doublings else first * 2**doublings


def pauses_made(entry: FailureEntry, settings: PolicySettings) -> int:
    """Return how many pauses the failures of an item led to: a refusal to one, as what the provider gave an error code for or never
    ended; others once they are many in a row.
    """
    if entry.refused or entry.at_once:
        return entry.in_a_row
    return max(0, entry.in_a_row - settings.failures_before_pause + 1)


def pauses(inputs: PolicyInput) -> Iterator[Decision]:
    """Yield a pause for each item that was accepted and came to nothing too often in a row, or in a way that says not to ask again at once.

    A refusal is not among them: the pause after it is recorded with the answer.
    """
    kinds = _kinds(inputs)
    for entry in _in_order(inputs):
        length = pause_for(pauses_made(entry, inputs.settings), inputs.settings)
        until = later(entry.last_at, length)
        if entry.refused or not pauses_made(entry, inputs.settings) or until <= inputs.now:
            continue
        kind = kinds.get((entry.provider, entry.item))
        if kind is None or _is_paused(inputs, entry, until):
            continue
        host = kind is Kind.HOST
        yield Decision(
            kind=DecisionKind.PAUSE,
            provider=entry.provider,
            template=entry.item if host else None,
            resource=None if host else entry.item,
            until=until,
            reason=f"{_asks(entry)} came to nothing: {entry.why}",
        )


def _in_order(inputs: PolicyInput) -> list[FailureEntry]:
    return sorted(
        inputs.failures, key=lambda entry: (natural_key(entry.provider), natural_key(entry.item))
    )


def _kinds(inputs: PolicyInput) -> dict[tuple[str, str], Kind]:
    kinds: dict[tuple[str, str], Kind] = {}
    for provider in inputs.providers:
        kinds |= {(provider.name, offer.name): Kind.COUNTABLE for offer in provider.resources}
        kinds |= {(provider.name, offer.template_id): Kind.HOST for offer in provider.templates}
    return kinds


def _is_paused(inputs: PolicyInput, entry: FailureEntry, until: datetime) -> bool:
    return any(
        pause.provider == entry.provider
        and pause.item in (None, entry.item)
        and pause.until >= until
        for pause in inputs.pauses
    )


class BackOff:
    """What the failures of a round's input mean for its asks."""

    def __init__(self, inputs: PolicyInput) -> None:
        self._inputs = inputs
        self._entries = {(entry.provider, entry.item): entry for entry in inputs.failures}

    def had_its_turn(self, provider: str, item: str) -> bool:
        """Return whether others are tried first: after a failure, for twice the pause that it leads or would lead to."""
        entry = self._entries.get((provider, item))
        if entry is None:
            return False
        settings = self._inputs.settings
        length = pause_for(max(1, pauses_made(entry, settings)), settings)
        return self._inputs.now < later(entry.last_at, 2 * length)

    def probing_since(self, provider: str, item: str) -> str | None:
        """Return the failures after which only the least is asked, to see whether it works again; None: there are none."""
        entry = self._entries.get((provider, item))
        if entry is None or not pauses_made(entry, self._inputs.settings):
            return None
        return f"{_asks(entry)} failed, last at {clock(entry.last_at)}"


def _asks(entry: FailureEntry) -> str:
    return f"{entry.in_a_row} {'ask' if entry.in_a_row == 1 else 'asks in a row'}"
