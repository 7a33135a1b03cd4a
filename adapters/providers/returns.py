"""Returns: in parts of at most 100, each of which the provider takes on under an id of its own; one id of ours for all of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xce.adapters.providers import answers
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.reading import Failed, Unclear
from xce.adapters.providers.requests import accepted_or_refused
from xce.adapters.providers.runner import Reading, Runner
from xce.adapters.providers.statuses import Statuses
from xce.domain.formats.provider_messages import (
    PER_CALL_MAX,
    Given,
    GrantAmount,
    MachineName,
    Machines,
    RequestReturnResources,
)
from xce.domain.formats.script_output import Message
from xce.domain.ports import Accepted, GrantBack, Refused, RequestStatus, ReturnStatus

MACHINES: Final = "requestReturnMachines"
RESOURCES: Final = "requestReturnResources"


@dataclass(frozen=True, slots=True)
class Part:
    """One call: a script, its input, and the provider's ids of what goes back."""

    script: str
    given: Given
    items: tuple[str, ...]


class Returns:
    """What goes back to a provider."""

    def __init__(self, runner: Runner, statuses: Statuses, *, tagged: bool) -> None:
        self._runner = runner
        self._statuses = statuses
        self._tagged = tagged

    def give_back(
        self,
        return_id: str,
        machines: Sequence[str],
        grants: Sequence[GrantBack],
        names: Mapping[str, str],
    ) -> Accepted | Refused:
        """Give machines and amounts back. A part that was accepted is not given back again.

        Raises:
            TransientError: of a part it is not known whether it was accepted; the same call goes on from there.
        """
        with self._runner.alone():
            done: list[tuple[str, tuple[str, ...]]] = []
            refused: dict[str, str] = {}
            first: Refused | None = None
            for number, part in enumerate(self._parts(return_id, machines, grants, names)):
                answer = self._give(part, return_id, f"{return_id}/{number}")
                if isinstance(answer, Accepted):
                    done.append((answer.provider_request_id, part.items))
                else:
                    first = first or answer
                    refused.update(dict.fromkeys(part.items, answer.why))
            self._runner.folder.keep_returned(
                return_id,
                {
                    "parts": [{"id": id_, "items": list(items)} for id_, items in done],
                    "refused": {**refused},
                },
            )
            if not done:
                return first or Refused("NothingToReturn", "no machine and no grant was named")
            return Accepted(packed([id_ for id_, _ in done]))

    def status(self, return_id: str, theirs: str | None) -> ReturnStatus:
        """Return what became of a return, all its parts together.

        Raises:
            TransientError: it is not known now.
        """
        kept = self._runner.folder.returned(return_id)
        parts = _kept_parts(kept) if kept else {}
        if not parts and theirs is not None:
            parts = dict.fromkeys(unpacked(theirs), ())
        if not parts and not kept:
            # Never made, or made elsewhere: nothing is said of anything.
            return ReturnStatus(RequestStatus.COMPLETE_WITH_ERROR)
        heard = self._statuses.of(parts)
        gone: set[str] = set()
        refused = _kept_refusals(kept) if kept else {}
        status = RequestStatus.COMPLETE_WITH_ERROR if refused else RequestStatus.COMPLETE
        for id_, items in parts.items():
            answer = heard[id_]
            if isinstance(answer, Exception):
                raise answer
            part = answers.return_status(answer, items)
            gone |= part.gone
            refused.update(part.refused)
            status = max(status, part.status, key=_WORST.index)
        self._runner.folder.forget(frozenset(gone))
        return ReturnStatus(status, frozenset(gone), tuple(sorted(refused.items())))

    def _give(self, part: Part, return_id: str, key: str) -> Accepted | Refused:
        if not self._runner.has(part.script):
            return Refused("ScriptMissing", f"there is no script {part.script}")
        heard = self._runner.recall(part.script, key, subject=return_id)
        if heard is not None:
            if not isinstance(heard, Unclear):
                try:
                    return self._accepted_or_refused(heard, part.script, key)
                except OutcomeUnknownError:
                    pass
            # A second return of a machine does no harm.
            self._runner.folder.aside(self._runner.folder.kept_call(part.script, key))
        tag = return_id if self._tagged else ""
        heard = self._runner.call(part.script, part.given, subject=return_id, key=key, tag=tag)
        if isinstance(heard, Failed):
            # What it refuses now it may take at the next try.
            self._runner.folder.aside(self._runner.folder.kept_call(part.script, key))
        return self._accepted_or_refused(heard, part.script, key)

    def _accepted_or_refused(self, heard: Reading, script: str, key: str) -> Accepted | Refused:
        answer = accepted_or_refused(heard, script)
        if isinstance(answer, Accepted):
            folder = self._runner.folder
            folder.forget_answer_before(folder.kept_call(script, key), answer.provider_request_id)
        return answer

    def _parts(
        self,
        return_id: str,
        machines: Sequence[str],
        grants: Sequence[GrantBack],
        names: Mapping[str, str],
    ) -> Iterator[Part]:
        folder = self._runner.folder
        tag = return_id if self._tagged else None
        for start in range(0, len(machines), PER_CALL_MAX):
            some = tuple(machines[start : start + PER_CALL_MAX])
            named = tuple(
                MachineName(name=names.get(one) or folder.name_of(one) or one, machine_id=one)
                for one in some
            )
            yield Part(MACHINES, Machines(machines=named, request_tag=tag), some)
        for start in range(0, len(grants), PER_CALL_MAX):
            back = tuple(grants[start : start + PER_CALL_MAX])
            amounts = tuple(GrantAmount(grant_id=one.grant, amount=one.amount) for one in back)
            yield Part(
                RESOURCES,
                RequestReturnResources(grants=amounts, request_tag=return_id),
                tuple(one.grant for one in back),
            )


_WORST: Final = (
    RequestStatus.COMPLETE,
    RequestStatus.COMPLETE_WITH_ERROR,
    RequestStatus.RUNNING,
)


def packed(ids: Sequence[str]) -> str:
    """Return the ids of a return's parts as one: the id itself, or a JSON list of several."""
    return ids[0] if len(ids) == 1 else json.dumps(list(ids))


def unpacked(theirs: str) -> tuple[str, ...]:
    """Return the ids of a return's parts."""
    if theirs.startswith('["'):
        try:
            return tuple(map(str, json.loads(theirs)))
        except ValueError:
            pass
    return (theirs,)


def _kept_parts(kept: Message) -> dict[str, tuple[str, ...]]:
    parts = cast("list[dict[str, object]]", kept.get("parts", []))
    return {str(one["id"]): tuple(map(str, cast("list[str]", one["items"]))) for one in parts}


def _kept_refusals(kept: Message) -> dict[str, str]:
    refused = cast("dict[str, str]", kept.get("refused", {}))
    return dict(refused)
