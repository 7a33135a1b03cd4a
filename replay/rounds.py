"""Rounds of the policy in a recording: each as what is different from the round before, and what was decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Format, Name
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.policy import Decision, Decisions, PolicyInput
from xce.domain.formats.sameness import is_same
from xce.domain.formats.session_result import Demand, Idle

Entry = TypeVar("Entry", RequestEntry, InstanceEntry, GrantEntry)

#: A round may be about a session that is this far back: a newer one was not heard of yet.
SESSIONS_BACK: Final = 16


class Entries(Format, Generic[Entry]):
    """What is different in one list of the inventory: entries go, change in their place, or come at the end."""

    removed: tuple[Name, ...] = ()
    put: tuple[Entry, ...] = ()
    order: tuple[Name, ...] | None = None


class InventoryChanges(Format):
    """What is different in the inventory; null: that list is the same."""

    requests: Entries[RequestEntry] | None = None
    instances: Entries[InstanceEntry] | None = None
    grants: Entries[GrantEntry] | None = None

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
def changed_fields(before: PolicyInput, after: PolicyInput, *, said: bool) -> list[str]:
    """Return the fields to write; ``said``: demand and idle supply are known from a session."""
    known = _BY_PARTS | (_OF_SESSION if said else frozenset[str]())
    return [
        name
        for name in PolicyInput.model_fields
        if name in _ALWAYS
        or (name not in known and not is_same(getattr(before, name), getattr(after, name)))
    ]


def inventory_changes(before: Inventory, after: Inventory) -> InventoryChanges:
    """Return what makes one inventory of the one before."""
    if before is after:
        return _NO_CHANGES
    return InventoryChanges(
        requests=_entries(Entries[RequestEntry], before.requests, after.requests),
        instances=_entries(Entries[InstanceEntry], before.instances, after.instances),
        grants=_entries(Entries[GrantEntry], before.grants, after.grants),
    )


_NO_CHANGES: Final = InventoryChanges()
_ALWAYS: Final = frozenset({"now", "position", "computed_at"})
_BY_PARTS: Final = frozenset({"format", "inventory"})
_OF_SESSION: Final = frozenset({"demand", "idle"})


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
    before: PolicyInput,
    changed: PolicyInput,
    changes: InventoryChanges,
    said: tuple[Demand, Idle] | None,
) -> PolicyInput:
    """Return the input that follows on the one before.

    Args:
        before: the one before.
        changed: has the fields that were written, and no other.
        changes: of the inventory.
        said: demand and idle supply, where a session said them.

    Raises:
        InputError: the changes belong to another round.
    """
    update: dict[str, object] = {name: getattr(changed, name) for name in changed.model_fields_set}
    if said is not None:
        update["demand"], update["idle"] = said
    if changes != _NO_CHANGES:
        inventory = before.inventory
        update["inventory"] = Inventory.model_construct(
            requests=_applied(inventory.requests, changes.requests),
            instances=_applied(inventory.instances, changes.instances),
            grants=_applied(inventory.grants, changes.grants),
        )
    return before.model_copy(update=update)


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
        before = self.last or PolicyInput(now=inputs.now)
        fields = changed_fields(before, inputs, said=session is not None)
        changes = inventory_changes(before.inventory, inputs.inventory)
        self.last = inputs
        parts = [f'"kind":"round","number":{number}']
        if session is not None:
            parts.append(f'"session":{session}')
        if digest is not None:
            parts.append(f'"digest":"{digest}"')
        parts.append(f'"input":{inputs.model_dump_json(include=set(fields))}')
        if changes != _NO_CHANGES:
            parts.append(f'"inventory":{changes.to_json()}')
        decided = Decisions.of(*decisions).model_dump_json(include={"decisions"})[1:-1]
        if decided != self._text:
            parts.append(decided)
            self._text = decided
        return "{" + ",".join(parts) + "}"

    def read(
        self,
        number: int,
        changed: PolicyInput,
        changes: InventoryChanges,
        decisions: Decisions | None,
        *,
        session: int | None,
        digest: str | None,
        said: tuple[Demand, Idle] | None,
    ) -> RecordedRound:
        """Return the round of a line.

        Args:
            number: from 1.
            changed: the fields that are other than in the round before, and no other.
            changes: what is different in the inventory.
            decisions: None: they are as in the round before.
            session: that it names.
            digest: that it names.
            said: demand and idle supply of that session.

        Raises:
            InputError: it does not belong here.
        """
        before = self.last or PolicyInput(now=changed.now)
        self.last = next_input(before, changed, changes, said)
        self._decided = decisions or self._decided
        return RecordedRound(number, session, digest, self.last, self._decided.decisions)
