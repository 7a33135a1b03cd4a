"""Everything beside jobs and nodes: partitions, licences, reservations, settings, and limits kept by slurmdbd."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from xce.adapters.schedulers.slurm import text
from xce.adapters.schedulers.slurm.facts import (
    AssociationFact,
    LicenceFact,
    PartitionFact,
    QosFact,
    ReservationFact,
    SettingFacts,
)
from xce.adapters.schedulers.slurm.fields import Fields, WrongFieldError, listed
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import path_of

PARTITIONS_TEXT: Final = "scontrol -o show partition"
LICENCES_TEXT: Final = "scontrol -o show lic"
RESERVATIONS_TEXT: Final = "scontrol -o show reservation"
CONFIG_TEXT: Final = "scontrol show config"
QOS_TEXT: Final = "sacctmgr -n show qos"
ASSOCIATIONS_TEXT: Final = "sacctmgr show assoc"
#: Columns of sacctmgr that say what runs at once; those on submitting, and on usage over time, show in Slurm's reasons only.
QOS_LIMITS: Final = ("GrpTRES", "GrpJobs", "MaxTRESPU", "MaxJobsPU", "MaxTRESPA", "MaxJobsPA")
ASSOCIATION_LIMITS: Final = ("GrpTRES", "GrpJobs", "MaxJobs")

#: What a partition says, from 26.05 on, that gives a job its nodes to itself.
_WHOLE: Final = frozenset({"NODE", "TOPO"})

F = TypeVar("F")


def _each(
    output: str, command: str, key: str, read: Callable[[dict[str, str]], F | None]
) -> tuple[F, ...]:
    found: list[F] = []
    for place, record in enumerate(text.records(output, key)):
        try:
            one = read(record)
        except ValueError as error:
            message = f"{key} {record[key]}: {error}"
            raise InputError(command, [Problem(message, path_of((place,)))]) from None
        if one is not None:
            found.append(one)
    return tuple(found)


def _said(record: dict[str, str], name: str, read: Callable[[str | None], F]) -> F:
    try:
        return read(record.get(name))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


# ---------------------------------------------------------------------- partitions
def partitions_of_text(output: str) -> tuple[PartitionFact, ...]:
    """Return the partitions of ``scontrol -o show partition``.

    Raises:
        InputError: one of them cannot be read.
    """
    return _each(output, PARTITIONS_TEXT, "PartitionName", _partition)


def _partition(record: dict[str, str]) -> PartitionFact:
    return PartitionFact(
        name=record["PartitionName"],
        nodes=text.value(record.get("Nodes")),
        is_up=record.get("State", "UP") in ("UP", "DRAIN") and record.get("State") != "DRAIN",
        tier=_said(record, "PriorityTier", text.number) or 0,
        is_exclusive=record.get("OverSubscribe", "").startswith("EXCLUSIVE")
        or record.get("ExclusiveTopo") == "YES"
        or record.get("Exclusive") in _WHOLE,
        max_time=_said(record, "MaxTime", text.minutes),
        default_time=_said(record, "DefaultTime", text.minutes),
        qos=text.value(record.get("QoS")),
        is_for_one_user=record.get("ExclusiveUser") == "YES" or record.get("Exclusive") == "USER",
    )


def partitions_of_json(document: object, command: str) -> tuple[PartitionFact, ...]:
    """Return the partitions of slurmrestd; flat up to 22.05, in groups from 23.02 on.

    Raises:
        InputError: one of them cannot be read.
    """
    found: list[PartitionFact] = []
    try:
        for one in listed(document, "partitions"):
            groups = isinstance(one.values.get("nodes"), dict)
            if groups:
                states = one.record("partition").words("state")
                fact = PartitionFact(
                    name=one.text("name"),
                    nodes=one.record("nodes").text("configured"),
                    is_up="UP" in states or not states,
                    tier=one.record("priority").whole("tier") or 0,
                    is_exclusive=_gives_whole_nodes(one),
                    max_time=one.record("maximums").whole("time"),
                    default_time=one.record("defaults").whole("time"),
                    qos=one.record("qos").text("assigned"),
                    is_for_one_user=one.record("partition").text("exclusive") == "USER",
                )
            else:
                fact = PartitionFact(
                    name=one.text("name"),
                    nodes=one.text("nodes"),
                    is_up=(one.text("state") or "UP") == "UP",
                    tier=one.whole("priority_tier") or 0,
                    is_exclusive="exclusive" in one.words("flags"),
                    is_for_one_user="exclusive_user" in one.words("flags"),
                    max_time=one.whole("max_time_limit"),
                    default_time=one.whole("default_time_limit"),
                    qos=one.text("qos"),
                )
            if fact.name:
                found.append(fact)
    except WrongFieldError as error:
        raise InputError(command, [error.problem]) from None
    return tuple(found)


def _gives_whole_nodes(partition: Fields) -> bool:
    """Return whether a job of a partition has its nodes to itself: a count of 0 jobs that share one; from 26.05 on a word."""
    if partition.record("partition").text("exclusive").upper() in _WHOLE:
        return True
    most = partition.record("maximums")
    if isinstance(most.values.get("shares"), list):
        return "EXCLUSIVE" in most.words("shares")
    return most.whole("shares") == 0


# ------------------------------------------------------------------------ licences
def licences_of_text(output: str) -> tuple[LicenceFact, ...]:
    """Return the licences of ``scontrol -o show lic``; none where there are none.

    Raises:
        InputError: one of them cannot be read.
    """
    return _each(output, LICENCES_TEXT, "LicenseName", _licence)


def _licence(record: dict[str, str]) -> LicenceFact | None:
    total = _said(record, "Total", text.number)
    used = _said(record, "Used", text.number)
    if total is None or "Nodes" in record:
        return None
    reserved = _said(record, "Reserved", text.number) or 0
    missing = _said(record, "LastDeficit", text.number) or 0
    return LicenceFact(
        record["LicenseName"], total, used, reserved + missing, record.get("Remote") == "yes"
    )


def licences_of_json(document: object, command: str) -> tuple[LicenceFact, ...]:
    """Return the licences of slurmrestd.

    Raises:
        InputError: one of them cannot be read.
    """
    found: list[LicenceFact] = []
    try:
        for one in listed(document, "licenses"):
            total, used = one.whole("Total"), one.whole("Used")
            if not one.text("LicenseName") or total is None or one.text("Nodes"):
                continue  # jobs that ask for it are held: nothing is known of it, or it counts for some nodes only
            reserved = (one.whole("Reserved") or 0) + (one.whole("LastDeficit") or 0)
            found.append(
                LicenceFact(one.text("LicenseName"), total, used, reserved, one.yes("Remote"))
            )
    except WrongFieldError as error:
        raise InputError(command, [error.problem]) from None
    return tuple(found)


# -------------------------------------------------------------------- reservations
def reservations_of_text(output: str) -> tuple[ReservationFact, ...]:
    """Return the reservations of ``scontrol -o show reservation``; none where there are none.

    Raises:
        InputError: one of them cannot be read.
    """
    return _each(output, RESERVATIONS_TEXT, "ReservationName", _reservation)


def _reservation(record: dict[str, str]) -> ReservationFact | None:
    start = _said(record, "StartTime", text.seconds_of)
    end = _said(record, "EndTime", text.seconds_of)
    if start is None or end is None:
        return None
    return ReservationFact(
        record["ReservationName"],
        text.value(record.get("Nodes")),
        datetime.fromtimestamp(start, UTC),
        datetime.fromtimestamp(end, UTC),
        record.get("State") == "ACTIVE",
    )


def reservations_of_json(
    document: object, command: str, at: datetime
) -> tuple[ReservationFact, ...]:
    """Return the reservations of slurmrestd; active are those whose time it is.

    Raises:
        InputError: one of them cannot be read.
    """
    found: list[ReservationFact] = []
    try:
        for one in listed(document, "reservations"):
            start, end = one.time("start_time"), one.time("end_time")
            if not one.text("name") or start is None or end is None:
                continue
            found.append(
                ReservationFact(
                    one.text("name"), one.text("node_list"), start, end, start <= at < end
                )
            )
    except WrongFieldError as error:
        raise InputError(command, [error.problem]) from None
    return tuple(found)


# ------------------------------------------------------------- settings and limits
def settings_of_text(output: str) -> SettingFacts:
    """Return what ``scontrol show config`` says that sessions need; what it does not say is taken as the more careful one."""
    found = text.config(output)
    enforced = {word.strip() for word in found.get("AccountingStorageEnforce", "limits").split(",")}
    parameters = found.get("SelectTypeParameters", "CR_CORE_MEMORY").upper()
    return SettingFacts(
        cluster=text.value(found.get("ClusterName")),
        version=text.value(found.get("SLURM_VERSION")),
        memory_counts="MEMORY" in parameters,
        cores_count="CORE" in parameters or "SOCKET" in parameters,
        jobs_are_private="jobs" in found.get("PrivateData", "").replace(",", " ").split(),
        limits_hold=bool(enforced & {"limits", "qos", "safe", "all"}),
        associations_hold=not enforced <= {"", "none", "(null)"},
    )


def qos_of_text(output: str) -> tuple[QosFact, ...]:
    """Return the qualities of service that limit something, of ``sacctmgr -P show qos``."""
    return tuple(
        QosFact(row["Name"], limits)
        for row in text.tables(output)
        if row.get("Name") and (limits := _limits(row, QOS_LIMITS))
    )


def associations_of_text(output: str, cluster: str) -> tuple[AssociationFact, ...]:
    """Return the associations of a cluster, all of them: an account's limits hold for those below it."""
    return tuple(
        AssociationFact(
            account=row.get("Account", ""),
            user=row.get("User", ""),
            partition=row.get("Partition", ""),
            parent=row.get("ParentName", row.get("Par Name", "")),
            limits=_limits(row, ASSOCIATION_LIMITS),
        )
        for row in text.tables(output)
        if not cluster or row.get("Cluster", cluster) == cluster
    )


def _limits(row: dict[str, str], columns: tuple[str, ...]) -> dict[str, str]:
    return {name: row[name] for name in columns if row.get(name)}
