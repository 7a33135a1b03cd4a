"""What a live driver made the snapshots of its sessions of, in a recording: each as what is different from the one before."""

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import problems_of
from xce.domain.formats.delta import (
    Delta,
    Named,
    Numbered,
    difference,
    key_of,
    unchecked,
)
from xce.domain.formats.rest import Observations, Supply
from xce.domain.formats.sameness import is_same
from xce.domain.formats.snapshot import Snapshot
from xce.replay import line_checks

#: Fields of a supply that are written always.
_ALWAYS: Final = frozenset({"position", "now"})


@dataclass(frozen=True, slots=True)
class Seen:
    """What the next session's snapshot is made of.

    Attributes:
        view: what the batch system showed; None: it had a name twice, and is not kept.
        begins: by a driver that remembers nothing before it.
    """

    view: Snapshot | None
    supply: Supply
    observations: Observations | None
    begins: bool


class Views:
    """What is kept from one view to the next, by who writes and who reads."""

    def __init__(self) -> None:
        self._view: Snapshot | None = None
        self._supply: Supply | None = None
        self._observations: Observations | None = None
        #: What was read of the supply, by field.
        self._fields: dict[str, Any] = {}

    def line(
        self,
        view: Snapshot | None,
        supply: Supply,
        observations: Observations | None,
        *,
        begins: bool,
    ) -> str:
        """Return a line of JSON, without its end."""
        parts = ['"kind":"seen"']
        if begins:
            parts.append('"begins":true')
        if view is None or _names_twice(view):
            self._view = None
        else:
            if self._view is None or begins:
                parts.append(f'"view":{view.to_json()}')
            else:
                parts.append(f'"delta":{difference(self._view, view).to_json()}')
            self._view = view
        before = self._supply
        fields = {
            name
            for name in Supply.model_fields
            if before is None
            or name in _ALWAYS
            or not is_same(getattr(before, name), getattr(supply, name))
        }
        self._supply = supply
        parts.append(f'"supply":{supply.model_dump_json(include=fields)}')
        if not is_same(self._observations, observations):
            self._observations = observations
            text = "null" if observations is None else observations.to_json()
            parts.append(f'"observations":{text}')
        return "{" + ",".join(parts) + "}"

    def copy(self) -> "Views":
        """Return another one that has kept the same."""
        other = copy(self)
        other._fields = dict(self._fields)
        return other

    def read(self, line: dict[str, Any], source: str) -> Seen:
        """Return what a line says.

        Raises:
            InputError: it does not belong here.
        """
        if "view" in line:
            self._view = _view_of(json.dumps(line["view"]), source)
        elif "delta" not in line:
            self._view = None
        elif self._view is None:
            raise InputError.of(source, "a delta with no view before it")
        else:
            problems: list[Problem] = []
            delta = Delta.from_json(json.dumps(line["delta"]), source)
            self._view = unchecked(self._view, delta, problems)
            if problems:
                raise InputError(source, problems)
        self._fields.update(line_checks.document(line["supply"], "supply"))
        supply = Supply.from_json(json.dumps(self._fields), source)
        if "observations" in line:
            text = json.dumps(line["observations"])
            self._observations = (
                None if line["observations"] is None else Observations.from_json(text, source)
            )
        return Seen(self._view, supply, self._observations, bool(line.get("begins")))


def _view_of(text: str, source: str) -> Snapshot:
    """Return a view: it may name what only the log declares, so it need not be right as a snapshot."""
    try:
        return Snapshot.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise InputError(source, problems_of(error)) from None


def _names_twice(view: Snapshot) -> bool:
    """Return whether a list has a name twice: then changes by name do not say what it was."""
    lists: tuple[Sequence[Named | Numbered], ...] = (
        view.hosts, view.shared, view.queues, view.limits, view.quotas, view.groups, view.running, view.pending,
    )  # fmt: skip
    return any(len({key_of(item) for item in items}) < len(items) for items in lists)
