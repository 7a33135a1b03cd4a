"""The pending jobs in the order in which they are tried, kept up to date from one session to the next."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.requests import Reader, SelectionTypeError, Wanted
from xce.domain.cluster.state import Ground
from xce.domain.cluster.units import UnitSettings
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import PendingJob, Snapshot
from xce.domain.scheduling.allocators import Allocators, unknown
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import ClassKey, Likeness, class_key, class_of
from xce.domain.scheduling.groups import Group, GroupKey, Place, Shape
from xce.domain.scheduling.in_order import InOrder

_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)
#: Texts of requirements that are read before it is time to begin anew.
_TEXTS_MAX: Final = 30_000
#: Jobs in ``joined`` beyond twice those that wait, before those that are gone are taken out: nobody may ask for long.
_JOINED_MORE: Final = 1_000


class KeptQueue:
    """Pending jobs in job order, with their classes.

    A requirement that cannot be read, or compares values of two kinds, is only noted (``is_readable``): a session
    on the whole snapshot says what is wrong with it.

    Attributes:
        places: the jobs in job order.
        changes: how often a job has come or gone.
        joined: jobs that came into a group, for whoever keeps what is written; to be cleared.
        undeclared: pending jobs of each queue that is not declared.
    """

    __slots__ = (
        "_allocators", "_classes", "_groups", "_kinds", "_likeness", "_loose", "_priority", "_queue", "_reader",
        "_shapes", "_texts", "_unreadable", "_wanted", "by_id", "changes", "joined", "places", "undeclared",
    )  # fmt: skip

    def __init__(
        self, snapshot: Snapshot, kinds: Iterable[HostKind], allocators: Allocators
    ) -> None:
        self._allocators = allocators
        self._priority = {queue.name: -queue.priority for queue in snapshot.queues}
        self._reader = Reader(
            UnitSettings.of(snapshot.settings, [pool.name for pool in snapshot.shared])
        )
        self._kinds: dict[HostKind, None] = dict.fromkeys(kinds)
        self._texts: set[str] = set()
        #: Requirements with a selection, each compared with all kinds; False: it compares wrongly with some.
        self._wanted: dict[Wanted, bool] = {}
        self._shapes: dict[ClassKey, Shape] = {}
        self._unreadable: set[str] = set()
        self._queue: list[tuple[PendingJob, JobClass]] | None = None
        self._likeness: Likeness | None = None
        self._classes: dict[ClassKey, JobClass] = {}
        self._groups: dict[GroupKey, Group] = {}
        self.changes = 0
        self.joined: list[Place] = []
        self.undeclared: Counter[str] = Counter()
        places = [self._place(job) for job in snapshot.pending]
        self.places = InOrder(places)
        #: Jobs that came after groups were made, and are in none yet.
        self._loose: list[Place] = []
        self.by_id = {place.job.id: place for place in places}

    @property
    def is_readable(self) -> bool:
        """Return whether every requirement can be read."""
        return not self._unreadable and all(self._wanted.values())

    @property
    def is_overgrown(self) -> bool:
        """Return whether so many requirements were read that it is time to begin anew."""
        return len(self._texts) > _TEXTS_MAX or len(self._classes) > _TEXTS_MAX

    def put(self, job: PendingJob) -> None:
        """Add a job, or put it in the place of the one with its id."""
        if job.id in self.by_id:
            self.remove(job.id)
        place = self.by_id[job.id] = self._place(job)
        if self._likeness is not None:
            self._loose.append(place)
        self.changes += 1
        self._queue = None
        self.places.put(place)

    def remove(self, job_id: str) -> None:
        """Take a job out."""
        place = self.by_id.pop(job_id)
        self.changes += 1
        if place.group is not None:
            group = place.group
            group.remove(place)
            if not group.places:
                del self._groups[group.key]
        self._queue = None
        self.places.remove(place)
        self._unreadable.discard(job_id)
        if place.shape is not None:
            place.shape.jobs -= 1
            if not place.shape.jobs:
                del self._shapes[place.shape.key]
        name = place.job.queue
        if name in self.undeclared:
            self.undeclared[name] -= 1
            if not self.undeclared[name]:
                del self.undeclared[name]

    def see_kinds(self, kinds: Iterable[HostKind]) -> None:
        """Compare every requirement with kinds of hosts that have come."""
        new = [kind for kind in dict.fromkeys(kinds) if kind not in self._kinds]
        if new:
            self._kinds.update(dict.fromkeys(new))
            for wanted in self._wanted:
                self._wanted[wanted] &= _compares(wanted, new)

    def forget_ground(self) -> None:
        """Note that the ground is another one."""
        self._queue = None
        self._classes.clear()
        for shape in self._shapes.values():
            shape.job_class = None
        for group in self._groups.values():
            group.known_class = None

    def queue(
        self, ground: Ground, running: Container[str]
    ) -> Sequence[tuple[PendingJob, JobClass]]:
        """Return the jobs that do not run in job order, with their classes on a ground."""
        if self._queue is None:
            self._queue = [
                (place.job, self._class(place, ground))
                for place in self.places
                if place.job.id not in running
            ]
        return self._queue

    def forget_queue(self) -> None:
        """Note that a job with the id of a pending one runs, or does not any more."""
        self._queue = None

    def make_groups(self, ground: Ground) -> None:
        """Put the jobs in groups that have their classes on a ground."""
        likeness = Likeness(ground)
        if likeness != self._likeness:
            self._likeness = likeness
            self._groups.clear()
            for place in self.places:
                place.group = None
            self._loose = list(self.places)
        for place in self._loose:
            if self.by_id.get(place.job.id) is place and place.group is None:
                self._group_of(place, likeness).put(place)
                self.joined.append(place)
        self._loose.clear()
        if len(self.joined) > _JOINED_MORE + 2 * len(self.places):
            self.joined = [place for place in self.joined if self.by_id.get(place.name) is place]
        for group in self._groups.values():
            if group.known_class is None:
                group.known_class = self._class_of(group.key[0], ground)

    @property
    def has_limits(self) -> bool:
        """Return whether limits or guarantees had a say when the groups were made."""
        return self._likeness is None or self._likeness.has_limits

    @property
    def groups(self) -> Iterable[Group]:
        """Return the groups that were made."""
        return self._groups.values()

    def _group_of(self, place: Place, likeness: Likeness) -> Group:
        shape, job = place.shape, place.job
        assert shape is not None, "every requirement is readable"
        key = (likeness.of(shape.key), job.held, job.waits_for, job.provision, job.queue)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
        return group

    def _class(self, place: Place, ground: Ground) -> JobClass:
        shape = place.shape
        assert shape is not None, "every requirement is readable"
        if shape.job_class is None:
            shape.job_class = self._class_of(Likeness(ground).of(shape.key), ground)
        return shape.job_class

    def _class_of(self, key: ClassKey, ground: Ground) -> JobClass:
        job_class = self._classes.get(key)
        if job_class is None:
            job_class = self._classes[key] = class_of(ground, key, self._allocators)
        return job_class

    def _place(self, job: PendingJob) -> Place:
        shape = self._read(job)
        if shape is None:
            self._unreadable.add(job.id)
        else:
            shape.jobs += 1
        priority = self._priority.get(job.queue)
        if priority is None:
            priority = 0
            self.undeclared[job.queue] += 1
        return Place(
            job, (priority, -job.priority, job.submitted or _BEFORE_ALL, key_of_name(job.id)), shape
        )

    def _read(self, job: PendingJob) -> Shape | None:
        self._texts.add(job.resreq)
        try:
            wanted = self._reader.read(job.resreq)
        except InputError:
            return None
        if wanted.has_selection and wanted not in self._wanted:
            self._wanted[wanted] = _compares(wanted, self._kinds)
        tasks = job.tasks
        most = tasks.min if tasks.max is None else tasks.max
        if wanted.compounds and set(wanted.compounds) != {tasks.min, most}:
            return None
        if job.allocator is not None and unknown(job.allocator, self._allocators):
            return None
        key = class_key(job, wanted)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(key)
        return shape


def _compares(wanted: Wanted, kinds: Iterable[HostKind]) -> bool:
    """Return whether a requirement compares values of one kind only on all these hosts."""
    try:
        wanted.check_kinds(kinds)
    except SelectionTypeError:
        return False
    return True
