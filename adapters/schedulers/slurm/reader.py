"""One consistent reading: rules first, then nodes, then jobs.

The jobs are the younger reading. So a node that is closed in the first and has no job in the second is empty, and stays so; and work is
counted by job, wherever a node's own counts stood when they were read. Licences are read before and after the jobs, and the smaller use
counts: a job that ends or starts between two readings is not counted twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from pydantic_core import from_json

from xce.adapters import collector
from xce.adapters.schedulers.slurm import read_jobs, read_nodes, read_rules
from xce.adapters.schedulers.slurm.commands import Run
from xce.adapters.schedulers.slurm.facts import (
    AssociationFact,
    JobFact,
    LicenceFact,
    NodeFact,
    PartitionFact,
    QosFact,
    Readings,
    ReservationFact,
    SettingFacts,
)
from xce.adapters.schedulers.slurm.rest import Rest
from xce.domain.errors import AdapterError, InputError, Problem, TransientError

#: From this version on scontrol writes JSON, and sinfo's JSON is a summary.
_SCONTROL_JSON: Final = (23, 2)
_NODES_JSON: Final = ("scontrol", "show", "node", "--json")
_NO_JSON: Final = ("unrecognized option", "invalid option", "unknown option", "Invalid --json")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Limits:
    at: datetime
    qos: tuple[QosFact, ...]
    associations: tuple[AssociationFact, ...]


class Reader:
    """Reads one Slurm, by its commands or by slurmrestd."""

    def __init__(
        self,
        run: Run,
        *,
        rest: Rest | None = None,
        json: bool = True,
        limits_every: timedelta = timedelta(minutes=1),
    ) -> None:
        """Read by commands, or by ``rest`` what that offers; ``json`` False: the text forms only."""
        self._run = run
        self._rest = rest
        self._json = json
        self._limits_every = limits_every
        self._limits: _Limits | None = None
        self._sinfo_sums_up = False

    def read(self, at: datetime) -> Readings:
        """Return what the cluster shows now.

        Raises:
            TransientError: it cannot be read now.
            PermanentError: the commands are missing.
            InputError: an output has a field of a wrong type; it names command and field.
        """
        with collector.paused():
            return self._read(at)

    def _read(self, at: datetime) -> Readings:
        troubles: list[tuple[str, Problem]] = []
        settings = self._settings(troubles)
        limits = self._limits_of(settings, at, troubles)
        partitions = self._partitions()
        reservations = self._reservations(at)
        before = self._licences()
        nodes = self._nodes(settings)
        jobs, problems = self._jobs()
        troubles += [("jobs", problem) for problem in problems]
        missing = {one.node for job in jobs for one in job.placed} - {one.name for one in nodes}
        if missing:  # joined meanwhile: only those are taken from the second look
            nodes += tuple(node for node in self._nodes(settings) if node.name in missing)
        return Readings(
            at=at,
            nodes=nodes,
            jobs=jobs,
            partitions=partitions,
            licences=least_used(before, self._licences()) if before else (),
            reservations=reservations,
            qos=limits.qos,
            associations=limits.associations,
            settings=settings,
            troubles=tuple(troubles),
        )

    # --------------------------------------------------------------- jobs and nodes
    def _jobs(self) -> tuple[tuple[JobFact, ...], list[Problem]]:
        if self._rest is not None:
            return read_jobs.jobs_of_json(self._rest.get("jobs"), "slurmrestd jobs")
        if self._json:
            found = self._as_json(("squeue", "--json"), read_jobs.jobs_of_json)
            if found is not None:
                return found
        command = ("scontrol", "-d", "-o", "show", "job")
        return read_jobs.jobs_of_text(self._text(command))

    def _nodes(self, settings: SettingFacts) -> tuple[NodeFact, ...]:
        if self._rest is not None:
            return read_nodes.nodes_of_json(self._rest.get("nodes"), "slurmrestd nodes")
        if self._json:
            found = None
            if version_of(settings.version) < _SCONTROL_JSON and not self._sinfo_sums_up:
                found = self._as_json(("sinfo", "--json"), self._nodes_of_sinfo)
            if found is None and self._json:
                found = self._as_json(_NODES_JSON, read_nodes.nodes_of_json)
            if found is not None:
                return found
        return read_nodes.nodes_of_text(self._text(("scontrol", "-o", "show", "node")))

    def _nodes_of_sinfo(self, document: object, command: str) -> tuple[NodeFact, ...] | None:
        if read_nodes.is_summary(document):  # it is newer than its settings say
            self._sinfo_sums_up = True
            return None
        return read_nodes.nodes_of_json(document, command)

    def _as_json(
        self, command: tuple[str, ...], read: Callable[[object, str], T | None]
    ) -> T | None:
        """Return what a command says in JSON; None: this version of it does not, so it is not asked again."""
        shown = " ".join(command)
        try:
            output = self._run(command)
        except TransientError as error:
            if not any(words in str(error) for words in _NO_JSON):
                raise
            self._json = False
            return None
        return read(json_of(output, shown), shown)

    # ------------------------------------------------------------------------ rules
    def _partitions(self) -> tuple[PartitionFact, ...]:
        if self._rest is not None:
            document = self._rest.get("partitions")
            return read_rules.partitions_of_json(document, "slurmrestd partitions")
        return read_rules.partitions_of_text(self._text(("scontrol", "-o", "show", "partition")))

    def _licences(self) -> tuple[LicenceFact, ...]:
        if self._rest is not None:
            document = self._rest.get("licenses")
            return read_rules.licences_of_json(document, "slurmrestd licenses")
        return read_rules.licences_of_text(self._text(("scontrol", "-o", "show", "lic")))

    def _reservations(self, at: datetime) -> tuple[ReservationFact, ...]:
        if self._rest is not None:
            document = self._rest.get("reservations")
            return read_rules.reservations_of_json(document, "slurmrestd reservations", at)
        return read_rules.reservations_of_text(
            self._text(("scontrol", "-o", "show", "reservation"))
        )

    def _settings(self, troubles: list[tuple[str, Problem]]) -> SettingFacts:
        try:
            return read_rules.settings_of_text(self._text(("scontrol", "show", "config")))
        except AdapterError as error:
            if self._rest is None:
                raise
            troubles.append(("scontrol show config", Problem(f"not read: {error}")))
            return SettingFacts(limits_hold=False)

    def _limits_of(
        self, settings: SettingFacts, at: datetime, troubles: list[tuple[str, Problem]]
    ) -> _Limits:
        """Return what slurmdbd limits; while it is away, as it was last read."""
        if not settings.limits_hold:
            return _Limits(at, (), ())
        known = self._limits
        if known is not None and at - known.at < self._limits_every:
            return known
        columns = "cluster,account,user,partition,parentname," + ",".join(
            read_rules.ASSOCIATION_LIMITS
        )
        try:
            qos = self._text(
                ("sacctmgr", "-P", "show", "qos", f"format=name,{','.join(read_rules.QOS_LIMITS)}")
            )
            associations = self._text(("sacctmgr", "-P", "show", "assoc", f"format={columns}"))
        except TransientError as error:
            if known is None:
                raise
            troubles.append(("sacctmgr", Problem(f"limits are those of {known.at}: {error}")))
            return known
        self._limits = _Limits(
            at,
            read_rules.qos_of_text(qos),
            read_rules.associations_of_text(associations, settings.cluster),
        )
        return self._limits

    def _text(self, command: tuple[str, ...]) -> str:
        return self._run(command).decode("utf-8", "replace")


def least_used(
    before: tuple[LicenceFact, ...], after: tuple[LicenceFact, ...]
) -> tuple[LicenceFact, ...]:
    """Return the licences of two readings: totals as they are now, in use as many as in the lesser."""
    known = {one.name: one.used for one in before}
    return tuple(
        replace(one, used=min(one.used, used))
        if one.used is not None and (used := known.get(one.name)) is not None
        else one
        for one in after
    )


def version_of(text: str) -> tuple[int, ...]:
    """Return ``22.05.8`` as numbers; () where it is not known."""
    parts = text.split("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())


def json_of(output: bytes, command: str) -> object:
    """Return a JSON document.

    Raises:
        InputError: it is none.
    """
    try:
        return from_json(output, allow_inf_nan=False)
    except ValueError as error:
        raise InputError.of(command, f"is not JSON: {error}") from None
