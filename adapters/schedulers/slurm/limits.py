"""Limits that slurmdbd keeps, as limits of ours; and whether they explain why Slurm lets a job wait.

A quality of service has no place in our model, so jobs under one that limits something are in a queue of their own: ``partition:qos``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xce.adapters.schedulers.slurm import text
from xce.adapters.schedulers.slurm.facts import AssociationFact, QosFact
from xce.adapters.schedulers.slurm.lists import amounts
from xce.domain.errors import Problem
from xce.domain.formats.snapshot import Limit, LimitScope

_RESOURCE: Final = {"cpu": "slots", "mem": "mem", "node": "hosts"}
_IGNORED: Final = frozenset({"billing", "energy", "pages", "vmem", "fs/disk", "fs/lustre"})
_PER: Final[Mapping[str, LimitScope | None]] = {
    "GrpTRES": None, "GrpJobs": None, "MaxTRESPU": LimitScope.USER, "MaxJobsPU": LimitScope.USER,
    "MaxTRESPA": LimitScope.PROJECT, "MaxJobsPA": LimitScope.PROJECT, "MaxJobs": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Around:
    """Whom limits can hold for: what the jobs of this view have.

    Attributes:
        queues: of each queue, its partition and its limiting quality of service ("" for none).
        partition_qos: of each partition that has one of its own.
        people: user and account of each job.
        shared: licences of the cluster.
    """

    queues: Mapping[str, tuple[str, str]]
    partition_qos: Mapping[str, str]
    people: frozenset[tuple[str, str]]
    shared: frozenset[str]


def limits_of(
    qos: Iterable[QosFact], associations: Sequence[AssociationFact], around: Around
) -> tuple[tuple[Limit, ...], list[tuple[str, Problem]]]:
    """Return the limits that hold for any job of this view, and what of them cannot be counted."""
    troubles: list[tuple[str, Problem]] = []
    found: list[Limit] = []
    for one in qos:
        queues = tuple(
            queue
            for queue, (partition, name) in around.queues.items()
            if one.name in (name, around.partition_qos.get(partition))
        )
        if queues:
            found += _entries(f"qos {one.name}", one.limits, around, troubles, {"queues": queues})
    children = _children(associations)
    accounts = {account for _, account in around.people}
    for entry in associations:
        whom = _whom(entry, children, accounts, around)
        if whom is not None and entry.limits:
            who = f"account {entry.account}" + (f" user {entry.user}" if entry.user else "")
            if entry.partition:
                who += f" partition {entry.partition}"
            kept = {
                column: amount
                for column, amount in entry.limits.items()
                if entry.user
                or not column.startswith("Max")  # of an account: each user's row has it too
            }
            found += _entries(who, kept, around, troubles, whom)
    names = Counter[str]()
    for place, limit in enumerate(found):
        names[limit.name] += 1
        if names[limit.name] > 1:
            found[place] = limit.model_copy(update={"name": f"{limit.name} ({names[limit.name]})"})
    return tuple(found), troubles


def _whom(
    entry: AssociationFact,
    children: Mapping[str, list[str]],
    accounts: set[str],
    around: Around,
) -> dict[str, tuple[str, ...]] | None:
    """Return the conditions of a row's limits; None: no job of this view is meant."""
    whom: dict[str, tuple[str, ...]] = {}
    if entry.user:
        if (entry.user, entry.account) not in around.people:
            return None
        whom = {"users": (entry.user,), "projects": (entry.account,)}
    else:
        below = tuple(name for name in _below(entry.account, children) if name in accounts)
        if not below:
            return None
        whom = {"projects": below}
    if entry.partition:
        queues = tuple(q for q, (name, _) in around.queues.items() if name == entry.partition)
        if not queues:
            return None
        whom["queues"] = queues
    return whom


def _children(associations: Iterable[AssociationFact]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in associations:
        if entry.parent and not entry.user:
            found.setdefault(entry.parent, []).append(entry.account)
    return found


def _below(account: str, children: Mapping[str, list[str]]) -> Iterator[str]:
    seen = {account}
    waiting = [account]
    while waiting:
        name = waiting.pop()
        yield name
        for child in children.get(name, ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)


def _entries(
    who: str,
    limits: Mapping[str, str],
    around: Around,
    troubles: list[tuple[str, Problem]],
    whom: Mapping[str, tuple[str, ...]],
) -> Iterator[Limit]:
    for column, written in limits.items():
        for name, amount in ({"": written} if "TRES" not in column else amounts(written)).items():
            resource = "jobs" if not name else _resource(name, around.shared)
            if resource is None:
                continue
            try:
                number = text.mebibytes(amount) if resource == "mem" else text.number(amount)
            except ValueError as error:
                troubles.append(("sacctmgr", Problem(f"{who}: {column}: {name}: {error}")))
                continue
            if number is None:
                continue
            yield Limit.model_validate(
                {
                    "name": f"{who} {column}" + (f" {name}" if name else ""),
                    "resource": resource,
                    "amount": number,
                    "per": _PER[column],
                    **whom,
                }
            )


def _resource(name: str, shared: frozenset[str]) -> str | None:
    if name in _IGNORED:
        return None
    if name.startswith("license/"):
        licence = name.removeprefix("license/")
        return licence if licence in shared else None
    return _RESOURCE.get(name) or name.removeprefix("gres/")
