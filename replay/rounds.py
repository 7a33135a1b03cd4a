"""Rounds of the policy in a recording: each as what is different from the round before, and what was decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Count, Format, Name, Time
from xce.domain.formats.delta import is_same
from xce.domain.formats.policy import (
    AskedEntry,
    Budget,
    Decision,
    Decisions,
    FailureEntry,
    GrantEntry,
    InstanceEntry,
    Inventory,
    Pause,
    PolicyInput,
    PolicySettings,
    RequestEntry,
    SharedTerms,
)
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.session_result import Demand, Idle

Entry = TypeVar("Entry", RequestEntry, InstanceEntry, GrantEntry)
AnyFormat = TypeVar("AnyFormat", bound=Format)

#: A round may be about a session that is this far back: a newer one was not heard of yet.
SESSIONS_BACK: Final = 16


class Entries(Format, Generic[Entry]):
    """What is different in one list of the inventory: entries go, change in their place, or come at the end."""

    removed: tuple[Name, ...] = ()
    put: tuple[Entry, ...] = ()
    order: tuple[Name, ...] | None = None


class RoundChanges(Format):
    """What is different from the input of the round before; of the first round: from an empty one. Null: it is the same."""

    now: Time
    position: Count = 0
    computed_at: Time | None = None
    demand: Demand | None = None
    idle: Idle | None = None
    providers: tuple[ProviderDescription, ...] | None = None
    requests: Entries[RequestEntry] | None = None
    instances: Entries[InstanceEntry] | None = None
    grants: Entries[GrantEntry] | None = None
    budgets: tuple[Budget, ...] | None = None
    pauses: tuple[Pause, ...] | None = None
    asked: tuple[AskedEntry, ...] | None = None
    failures: tuple[FailureEntry, ...] | None = None
    shared: tuple[SharedTerms, ...] | None = None
    settings: PolicySettings | None = None

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the canonical JSON text; fields that have their default are left out."""
        return self.model_dump_json(indent=indent, exclude_defaults=True)


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """One round: what it was given, and what it decided.

    Attributes:
        number: from 1.
        session: the number of the session whose demand it was about; None: of one that is not in the recording.
        digest: of that session's result, where it came over the network.
        decisions: as JSON.
    """

    number: int
    session: int | None
    digest: str | None
    inputs: PolicyInput
    decisions: tuple[Decision, ...]


# ------------------------------------------------------------------ what is different
def round_changes(before: PolicyInput, after: PolicyInput, *, demand: bool) -> RoundChanges:
    """Return what makes one input of the one before; ``demand``: with demand and idle supply, unless a session says them."""
    old, new = before.inventory, after.inventory
    is_as_before = not demand or (
        is_same(before.demand, after.demand) and is_same(before.idle, after.idle)
    )
    return RoundChanges(
        now=after.now,
        position=after.position,
        computed_at=after.computed_at,
        demand=None if is_as_before else after.demand,
        idle=None if is_as_before else after.idle,
        providers=_other(before.providers, after.providers),
        requests=_entries(Entries[RequestEntry], old.requests, new.requests),
        instances=_entries(Entries[InstanceEntry], old.instances, new.instances),
        grants=_entries(Entries[GrantEntry], old.grants, new.grants),
        budgets=_other(before.budgets, after.budgets),
        pauses=_other(before.pauses, after.pauses),
        asked=_other(before.asked, after.asked),
        failures=_other(before.failures, after.failures),
        shared=_other(before.shared, after.shared),
        settings=None if is_same(before.settings, after.settings) else after.settings,
    )


def _other(
    before: tuple[AnyFormat, ...], after: tuple[AnyFormat, ...]
) -> tuple[AnyFormat, ...] | None:
    return None if is_same(before, after) else after


def _entries(
    kind: type[Entries[Entry]], before: Sequence[Entry], after: Sequence[Entry]
) -> Entries[Entry] | None:
    if before is after:
        return None
    old = {entry.id: entry for entry in before}
    new = {entry.id: entry for entry in after}
    removed = tuple(name for name in old if name not in new)
    put = tuple(e for name, e in new.items() if name not in old or not is_same(old[name], e))
    natural = [name for name in old if name in new]
    natural += [name for name in new if name not in old]
    order = None if natural == list(new) else tuple(new)
    if not removed and not put and order is None:
        return None
    return kind(removed=removed, put=put, order=order)


# ------------------------------------------------------------------ and back
def next_input(
    before: PolicyInput, changes: RoundChanges, said: tuple[Demand, Idle] | None
) -> PolicyInput:
    """Return the input that changes make of the one before; ``said``: demand and idle supply, where a session said them.

    Raises:
        InputError: the changes belong to another round.
    """
    demand, idle = (
        (changes.demand or before.demand, changes.idle or before.idle) if said is None else said
    )
    inventory = before.inventory
    return before.model_copy(
        update={
            "now": changes.now,
            "position": changes.position,
            "computed_at": changes.computed_at,
            "demand": demand,
            "idle": idle,
            "inventory": Inventory.model_construct(
                requests=_applied(inventory.requests, changes.requests),
                instances=_applied(inventory.instances, changes.instances),
                grants=_applied(inventory.grants, changes.grants),
            ),
            **{name: value for name in _WHOLE if (value := getattr(changes, name)) is not None},
        }
    )


_WHOLE: Final = ("providers", "budgets", "pauses", "asked", "failures", "shared", "settings")


def _applied(entries: tuple[Entry, ...], changes: Entries[Entry] | None) -> tuple[Entry, ...]:
    if changes is None:
        return entries
    known: dict[str, Entry] = {entry.id: entry for entry in entries}
    for name in changes.removed:
        if known.pop(name, None) is None:
            raise InputError("inventory", [Problem(f"{name!r} is not there", "removed")])
    known.update((entry.id, entry) for entry in changes.put)
    if changes.order is None:
        return tuple(known.values())
    if set(changes.order) != known.keys():
        raise InputError("inventory", [Problem("names other entries than there are", "order")])
    return tuple(known[name] for name in changes.order)


class Rounds:
    """What is kept from one round to the next, by who writes and who reads."""

    def __init__(self) -> None:
        self.last: PolicyInput | None = None
        self._text: str | None = None
        self._decided = Decisions()

    def line(
        self,
        number: int,
        inputs: PolicyInput,
        decisions: Iterable[Decision],
        *,
        session: int | None,
        digest: str | None,
    ) -> str:
        """Return a round as a line of JSON, without its end."""
        changes = round_changes(
            self.last or PolicyInput(now=inputs.now), inputs, demand=session is None
        )
        self.last = inputs
        parts = [f'"kind":"round","number":{number}']
        if session is not None:
            parts.append(f'"session":{session}')
        if digest is not None:
            parts.append(f'"digest":"{digest}"')
        parts.append(f'"input":{changes.to_json()}')
        decided = Decisions.of(*decisions).model_dump_json(include={"decisions"})[1:-1]
        if decided != self._text:
            parts.append(decided)
            self._text = decided
        return "{" + ",".join(parts) + "}"

    def read(
        self,
        number: int,
        changes: RoundChanges,
        decisions: Decisions | None,
        *,
        session: int | None,
        digest: str | None,
        said: tuple[Demand, Idle] | None,
    ) -> RecordedRound:
        """Return the round of a line.

        Args:
            number: from 1.
            changes: what is different from the round before.
            decisions: None: they are as in the round before.
            session: that it names.
            digest: that it names.
            said: demand and idle supply of that session.

        Raises:
            InputError: it does not belong here.
        """
        before = self.last or PolicyInput(now=changes.now)
        self.last = next_input(before, changes, said)
        self._decided = decisions or self._decided
        return RecordedRound(number, session, digest, self.last, self._decided.decisions)
