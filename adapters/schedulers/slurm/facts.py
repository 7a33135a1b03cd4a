"""What was read from a Slurm, the same whichever of its outputs and versions said it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from xce.domain.errors import Problem

#: States in which a job has nodes, by Slurm's names; a completing one has them until its epilog is over.
RUNS = frozenset(
    {"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "RESIZING", "STOPPED"}
)  # fmt: skip
#: States in which a job waits.
WAITS = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)


@dataclass(frozen=True, slots=True)
class Placed:
    """What a job has on one node; memory None: not said."""

    node: str
    cpus: int
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class JobFact:
    """One job record: a job, a component of one, or all elements of an array that still wait together.

    Attributes:
        number: Slurm's own number, which is unique.
        array_tasks: indexes of all waiting elements, as Slurm writes them; "" for everything else.
        het_id: number of the job it is a component of; 0: none.
        states: base state first, then flags.
        reason: Slurm's word; ``words`` its sentence.
        time_limit: minutes; None: none, or that of the partition.
        min_nodes: as asked for; ``max_nodes`` None: any number from there on.
        memory_node: MiB of each node; 0: all of it. ``memory_cpu``: MiB for each cpu.
        memory_unknown: the text, where its unit is not known.
        shared: ``none`` for exclusive, ``user`` for those of one user; "" for neither.
        per_node, per_task, per_job: generic resources.
    """

    number: int
    array_id: int
    array_index: int | None
    array_tasks: str
    array_limit: int | None
    het_id: int
    het_offset: int
    user: str
    account: str
    partitions: tuple[str, ...]
    qos: str
    states: frozenset[str]
    reason: str
    words: str
    dependency: str
    priority: int | None
    submitted: datetime | None
    eligible: datetime | None
    started: datetime | None
    time_limit: int | None
    nodes: str
    tasks: int
    cpus: int
    cpus_per_task: int | None
    min_nodes: int
    max_nodes: int | None
    tasks_per_node: int
    min_cpus_node: int
    memory_node: int | None
    memory_cpu: int | None
    memory_unknown: str
    features: str
    required: str
    excluded: str
    shared: str
    contiguous: bool
    licences: str
    per_node: str
    per_task: str
    per_job: str
    allocated: str
    reservation: str
    placed: tuple[Placed, ...]

    @property
    def id(self) -> str:
        """Return the id that people know: ``7``, ``7_3``, ``7+1``."""
        if self.het_id:
            return f"{self.het_id}+{self.het_offset}"
        if self.array_id and self.array_index is not None:
            return f"{self.array_id}_{self.array_index}"
        return str(self.number)

    @property
    def runs(self) -> bool:
        """Return whether it has nodes."""
        return not self.states.isdisjoint(RUNS)

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits."""
        return not self.runs and not self.states.isdisjoint(WAITS)


@dataclass(frozen=True, slots=True)
class NodeFact:
    """One node; amounts of memory in MiB."""

    name: str
    states: frozenset[str]
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    cpus: int
    threads: int
    memory: int
    cpus_used: int
    memory_used: int
    gres: Mapping[str, int]
    weight: int
    reason: str
    comment: str
    booted: datetime | None
    daemon_started: datetime | None
    last_busy: datetime | None


@dataclass(frozen=True, slots=True)
class PartitionFact:
    """One partition; for one user: a node of it has jobs of one user only."""

    name: str
    nodes: str
    is_up: bool
    tier: int
    is_exclusive: bool
    max_time: int | None
    default_time: int | None
    qos: str
    is_for_one_user: bool = False


@dataclass(frozen=True, slots=True)
class LicenceFact:
    """One licence as this cluster may use it; used None: not said, which is not zero."""

    name: str
    total: int
    used: int | None
    reserved: int
    is_remote: bool


@dataclass(frozen=True, slots=True)
class ReservationFact:
    """Nodes that are kept for somebody."""

    name: str
    nodes: str
    start: datetime
    end: datetime
    is_active: bool


@dataclass(frozen=True, slots=True)
class QosFact:
    """Limits of a quality of service: column of sacctmgr and text."""

    name: str
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AssociationFact:
    """Limits of a user in an account, or of an account ("" for the user)."""

    account: str
    user: str
    partition: str
    parent: str
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """What the whole cluster has set."""

    cluster: str = ""
    version: str = ""
    memory_counts: bool = True
    cores_count: bool = True
    limits_hold: bool = True
    associations_hold: bool = True
    jobs_are_private: bool = False


@dataclass(frozen=True, slots=True)
class Readings:
    """Everything that was read for one view; the jobs after the nodes.

    Attributes:
        at: when the first reading began.
        troubles: what could not be used, by command; it takes jobs out of the demand, never into it.
    """

    at: datetime
    nodes: tuple[NodeFact, ...]
    jobs: tuple[JobFact, ...]
    partitions: tuple[PartitionFact, ...] = ()
    licences: tuple[LicenceFact, ...] = ()
    reservations: tuple[ReservationFact, ...] = ()
    qos: tuple[QosFact, ...] = ()
    associations: tuple[AssociationFact, ...] = ()
    settings: SettingFacts = field(default_factory=SettingFacts)
    troubles: tuple[tuple[str, Problem], ...] = ()


def newest(*readings: tuple[JobFact, ...]) -> tuple[JobFact, ...]:
    """Return the jobs of readings of different age, the oldest first: each job is counted once, as the newest reading has it.

    An element that has left the record of its array since is not waiting in it any more.
    """
    found: dict[int, JobFact] = {}
    for reading in readings:
        for job in reading:
            found[job.number] = job
    return tuple(found.values())
