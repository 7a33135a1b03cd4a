"""Random small snapshots that meet the corners: tiny hosts, short counts, little room, equal prices.

Most of them leave some jobs waiting that the catalog can help, so that most examples have a demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from hypothesis import strategies as st

from tests.reference.capacities import capacities, drawing
from tests.reference.requirements import requirements
from xce.domain.cluster.resreq import write
from xce.domain.formats.snapshot import (
    ArrayElement,
    Catalog,
    Countable,
    Group,
    Host,
    HostState,
    HostUse,
    InFlight,
    InFlightCount,
    InFlightHost,
    Limit,
    LimitScope,
    MemoryUnit,
    OrderMode,
    PendingJob,
    Queue,
    Quota,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
    Tasks,
    Template,
)
from xce.domain.formats.snapshot_check import contradictions

NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
USERS = ("u1", "u2")
QUEUES = ("fast", "normal")
SHARED = ("lic", "tok")
T = TypeVar("T")


@dataclass(frozen=True)
class Features:
    """What the snapshots may hold beyond hosts, jobs, counts and a catalog."""

    spans: bool = False
    compounds: bool = False
    limits: bool = True
    quotas: bool = False
    odd_hosts: bool = False
    most_tasks: int = 4
    most_hosts: int = 3


#: The first acceptance: no spans, no compounds, but limits, arrays, task ranges and every kind of count.
WITHOUT_SPANS = Features()
EVERYTHING = Features(spans=True, compounds=True, quotas=True, odd_hosts=True)
#: Few wide jobs on more hosts: the plans matter.
GANGS = Features(spans=True, compounds=True, most_tasks=9, most_hosts=7)


def rarely(value: st.SearchStrategy[T], otherwise: T, *, one_in: int = 5) -> st.SearchStrategy[T]:
    """Draw ``otherwise`` in most cases; the simplest example has it."""
    return st.integers(0, one_in - 1).flatmap(
        lambda n: value if n == one_in - 1 else st.just(otherwise)
    )


@st.composite
def snapshots(draw: st.DrawFn, features: Features = WITHOUT_SPANS) -> Snapshot:
    """Draw a snapshot that contradicts itself nowhere."""
    hosts = draw(_hosts(features))
    shared = draw(_shared())
    groups = (Group(name="g1", users=("u1",)), Group(name="g2", users=("u1", "u2")))
    snapshot = Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        position=7,
        hosts=hosts,
        shared=shared,
        queues=draw(_queues()),
        limits=draw(_limits(hosts)) if features.limits else (),
        quotas=draw(_quotas()) if features.quotas else (),
        groups=groups,
        running=draw(_running(hosts, shared)),
        pending=draw(_pending(features)) + draw(_crowd()),
        catalog=draw(_catalog(hosts)),
        settings=draw(_settings(features)),
    )
    assert not list(contradictions(snapshot)), list(contradictions(snapshot))
    return snapshot


def attributes() -> st.SearchStrategy[dict[str, bool | int | Decimal | str]]:
    """Draw attributes of a host or template; some may be missing."""
    return st.fixed_dictionaries(
        {"zone": st.sampled_from(["a", "b"])},
        optional={
            "type": st.sampled_from(["x", "x", "y"]),
            "gen": st.sampled_from([1, 2, Decimal("2.5")]),
            "ssd": st.booleans(),
        },
    )


def totals(slots: Sequence[int], mem: Sequence[int]) -> st.SearchStrategy[dict[str, int]]:
    """Draw what a host has: few slots, a little memory (MiB), now and then a device."""
    return st.fixed_dictionaries(
        {"slots": st.sampled_from(slots), "mem": st.sampled_from(mem)},
        optional={"gpu": st.integers(0, 2)},
    )


@st.composite
def _hosts(draw: st.DrawFn, features: Features) -> tuple[Host, ...]:
    names = st.sampled_from(["h1", "h2", "h10", "a3", "a12", "b", "b0"])
    few = st.lists(names, unique=True, min_size=1, max_size=features.most_hosts)
    chosen: list[str] = draw(few.flatmap(lambda names: rarely(st.just([]), names, one_in=8)))
    return tuple(draw(_host(name, features)) for name in chosen)


@st.composite
def _host(draw: st.DrawFn, name: str, features: Features) -> Host:
    odd = features.odd_hosts
    ago = st.sampled_from([timedelta(minutes=5), timedelta(hours=1), timedelta(hours=3)])
    return Host(
        name=name,
        state=draw(rarely(st.sampled_from(HostState), HostState.OPEN, one_in=8)),
        attributes=draw(attributes()),
        total=draw(totals([1, 2, 0, 3, 4], [4, 2, 8, 1])),
        instance=draw(rarely(st.just(f"i-{name}"), None, one_in=2)),
        idle_since=draw(rarely(ago.map(lambda length: NOW - length), None, one_in=2)),
        available_until=NOW + draw(ago) if odd and draw(rarely(st.just(True), False)) else None,
        rank=draw(rarely(st.integers(-1, 1), 0)),
        exclusive_to=draw(rarely(st.sampled_from(USERS), None, one_in=8)) if odd else None,
    )


@st.composite
def _shared(draw: st.DrawFn) -> tuple[Shared, ...]:
    found: list[Shared] = []
    for name in SHARED:
        owned, borrowed = draw(st.integers(0, 4)), draw(rarely(st.integers(1, 4), 0, one_in=3))
        found.append(
            Shared(
                name=name,
                total=owned + borrowed,
                used_elsewhere=draw(rarely(st.sampled_from([None, 1, 2]), 0)),
                owned=draw(st.sampled_from([owned, owned, None])),
                borrowed=borrowed,
                peak_need=draw(st.none() | st.integers(0, 6)),
            )
        )
    return tuple(found)


@st.composite
def _queues(draw: st.DrawFn) -> tuple[Queue, ...]:
    pairs = st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0, 10, 60])), min_size=1, max_size=2
    )
    return (
        Queue(
            name="normal",
            priority=10,
            demand_threshold=draw(rarely(pairs.map(tuple), (), one_in=8)),
        ),
        Queue(name="fast", priority=draw(st.sampled_from([10, 20])), demand_threshold=()),
    )


@st.composite
def _limits(draw: st.DrawFn, hosts: Sequence[Host]) -> tuple[Limit, ...]:
    names = [host.name for host in hosts] + ["new-1"]
    scopes = st.sampled_from(LimitScope)
    return tuple(
        Limit(
            name=f"limit {number}",
            resource=draw(st.sampled_from(["jobs", "slots", "hosts", "mem", "lic", "tok"])),
            amount=draw(st.integers(0, 5)),
            users=draw(rarely(st.just(("u1",)), None)),
            groups=draw(rarely(st.sampled_from([("g1",), ("g1", "g2")]), None, one_in=8)),
            projects=draw(rarely(st.just(("p",)), None, one_in=8)),
            queues=draw(rarely(st.just(("fast",)), None)),
            hosts=draw(
                rarely(st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple), None)
            ),
            arrays=draw(rarely(st.just(("arr",)), None, one_in=8)),
            per=draw(rarely(scopes | st.tuples(scopes, scopes), None, one_in=2)),
        )
        for number in range(draw(rarely(st.integers(1, 2), 0, one_in=2)))
    )


@st.composite
def _quotas(draw: st.DrawFn) -> tuple[Quota, ...]:
    if not draw(rarely(st.just(True), False, one_in=3)):
        return ()
    guaranteed = draw(st.integers(0, 4))
    return (
        Quota(
            name="quota 1",
            group=draw(st.sampled_from(["g1", "g2"])),
            resource=draw(st.sampled_from(["slots", "lic", "mem"])),
            guaranteed=guaranteed,
            maximum=draw(st.none() | st.integers(guaranteed, 6)),
        ),
    )


@st.composite
def _running(
    draw: st.DrawFn, hosts: Sequence[Host], shared: Sequence[Shared]
) -> tuple[RunningJob, ...]:
    jobs: list[RunningJob] = []
    for number in range(draw(rarely(st.integers(1, 3), 0, one_in=2)) if hosts else 0):
        on = draw(
            st.lists(
                st.sampled_from([host.name for host in hosts]), unique=True, min_size=1, max_size=2
            )
        )
        uses = st.fixed_dictionaries(
            {"slots": st.integers(0, 2)}, optional={"mem": st.integers(0, 2)}
        )
        jobs.append(
            RunningJob(
                id=f"r{number}",
                user=draw(st.sampled_from(USERS)),
                project=draw(rarely(st.just("p"), "default")),
                queue=draw(st.sampled_from(QUEUES)),
                hosts=tuple(HostUse(name=name, tasks=1, uses=draw(uses)) for name in on),
                shared=draw(
                    rarely(st.fixed_dictionaries({"lic": st.integers(1, 3)}), {}, one_in=2)
                ),
                exclusive=draw(rarely(st.just(True), False, one_in=10)),
                array=draw(_elements()),
            )
        )
    return tuple(jobs)


def _elements() -> st.SearchStrategy[ArrayElement | None]:
    element = st.builds(
        ArrayElement,
        id=st.just("arr"),
        index=st.integers(1, 3),
        limit=st.none() | st.integers(1, 2),
    )
    return rarely(element, None, one_in=8)


@st.composite
def _shape(draw: st.DrawFn, features: Features) -> PendingJob:
    requirement, tasks = draw(
        requirements(
            spans=features.spans, compounds=features.compounds, most_tasks=features.most_tasks
        )
    )
    most = tasks + draw(rarely(st.integers(1, 2), 0, one_in=4))
    fixed = any(hasattr(alternative, "parts") for alternative in requirement.alternatives)
    return PendingJob(
        id="shape",
        tasks=Tasks(min=tasks, max=tasks if fixed else draw(st.sampled_from([most, most, None]))),
        resreq=write(requirement),
        exclusive=draw(rarely(st.just(True), False, one_in=12)) if features.spans else False,
        run_limit=draw(
            rarely(st.sampled_from([timedelta(minutes=30), timedelta(hours=2)]), None, one_in=2)
        ),
    )


@st.composite
def _pending(draw: st.DrawFn, features: Features) -> tuple[PendingJob, ...]:
    """Draw jobs of few shapes, so that equal jobs meet."""
    shapes = draw(st.lists(_shape(features), min_size=1, max_size=3))
    ids = draw(
        st.lists(
            st.sampled_from(["1", "2", "3", "10", "11", "12[1]", "12[10]", "r0"]),
            unique=True,
            min_size=1,
            max_size=7,
        )
    )
    ago = st.sampled_from([timedelta(0), timedelta(minutes=10), timedelta(hours=2)])
    return tuple(
        draw(st.sampled_from(shapes)).model_copy(
            update={
                "id": job,
                "user": draw(st.sampled_from(USERS)),
                "project": draw(rarely(st.just("p"), "default")),
                "queue": draw(st.sampled_from(["normal", "normal", "fast", "undeclared"])),
                "priority": draw(rarely(st.integers(0, 2), 0, one_in=3)),
                "submitted": NOW - draw(ago) if draw(st.booleans()) else None,
                "held": draw(rarely(st.just(True), False, one_in=12)),
                "waits_for": draw(
                    rarely(st.sampled_from([("r0",), ("1", "2"), ("gone",)]), (), one_in=12)
                ),
                "provision": not draw(rarely(st.just(True), False, one_in=12)),
                "array": draw(_elements()),
            }
        )
        for job in ids
    )


@st.composite
def _crowd(draw: st.DrawFn) -> tuple[PendingJob, ...]:
    """Draw a few ordinary jobs that most templates could serve."""
    shapes = [
        ("", 1),
        ("", 2),
        ("rusage[mem=2]", 1),
        ("rusage[slots=2,lic=1]", 1),
        ("rusage[slots=3]", 2),
    ]
    resreq, tasks = draw(st.sampled_from(shapes))
    return tuple(
        PendingJob(
            id=f"{number}", tasks=Tasks(min=tasks), resreq=resreq, user=draw(st.sampled_from(USERS))
        )
        for number in range(20, 20 + draw(rarely(st.integers(1, 4), 0, one_in=2)))
    )


@st.composite
def _catalog(draw: st.DrawFn, hosts: Sequence[Host]) -> Catalog:
    ids = draw(st.sampled_from([("t1", "t2"), ("t1",), ("t2", "t10"), ("t1", "t2", "t10")]))
    ids = draw(rarely(st.just(()), ids, one_in=10))
    shared = draw(capacities([2, 1, 3, 4, 0]))
    templates = tuple(draw(drawing(draw(_template(name)), shared, [9, 2, 1, 3, 0])) for name in ids)
    flying = st.builds(
        InFlightHost,
        id=st.sampled_from(
            ["f1", "f2", "f10", *(host.instance for host in hosts if host.instance)]
        ),
        template=st.sampled_from(ids or ("none",)),
        expected_name=rarely(st.just("new-1"), None, one_in=3),
    )
    headroom = st.sampled_from([2, 4, 1, 0, 3, None])
    counts = st.builds(InFlightCount, name=st.sampled_from(SHARED), amount=st.integers(0, 2))
    return Catalog(
        templates=templates,
        capacities=shared,
        countable=tuple(
            Countable(
                name=name,
                headroom=draw(headroom),
            )
            for name in SHARED
            if draw(st.integers(0, 3)) < 3
        ),
        in_flight=InFlight(
            hosts=tuple(
                draw(
                    rarely(
                        st.lists(flying, min_size=1, max_size=2, unique_by=lambda host: host.id),
                        [],
                        one_in=3,
                    )
                )
            )
            if ids
            else (),
            counts=tuple(draw(rarely(st.lists(counts, min_size=1, max_size=2), [], one_in=3))),
        ),
    )


@st.composite
def _template(draw: st.DrawFn, name: str) -> Template:
    return Template(
        id=name,
        attributes=draw(attributes()),
        provides=draw(totals([4, 2, 3, 1, 8], [16, 8, 4, 2])),
        allowed=draw(st.sampled_from([3, 2, 1, 5, 4, 0])),
        priority=draw(rarely(st.just(10), 0, one_in=4)),
        price_per_hour=draw(
            st.sampled_from([Decimal("0.10"), Decimal("0.10"), Decimal("0.25"), None])
        ),
        paused_until=draw(
            rarely(st.sampled_from([NOW, NOW + timedelta(hours=1)]), None, one_in=10)
        ),
    )


@st.composite
def _settings(draw: st.DrawFn, features: Features) -> Settings:
    units: st.SearchStrategy[dict[str, MemoryUnit | None]] = st.sampled_from(
        [{"mem": MemoryUnit.KIB}, {"mem": None}, {"mem": MemoryUnit.MIB}]
    )
    return Settings(
        order=draw(rarely(st.just(OrderMode.STRICT), OrderMode.SKIP, one_in=6)),
        catalog_pass_cap=draw(rarely(st.integers(0, 3), 100, one_in=10)),
        units=draw(rarely(units, {}, one_in=10)),
    )
