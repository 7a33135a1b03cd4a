"""Random snapshots of many jobs of few shapes: demands of tens of hosts, as a burst in a real queue makes them."""

from decimal import Decimal

from hypothesis import strategies as st

from tests.reference.capacities import capacities, drawing
from tests.reference.snapshots import NOW, rarely
from xce.domain.formats.snapshot import (
    Catalog,
    Countable,
    Host,
    InFlight,
    InFlightHost,
    Limit,
    LimitScope,
    PendingJob,
    Shared,
    Snapshot,
    Tasks,
    Template,
)

#: Shapes whose tasks each take the first host with room.
SIMPLE = (
    ("", 1),
    ("rusage[mem=4]", 1),
    ("rusage[slots=3]", 1),
    ("rusage[slots=6,mem=1]", 1),
    ("rusage[mem=3,lic=1]", 1),
    ("select[zone==a] rusage[slots=2]", 1),
    ("span[hosts=-1]", 12),
    ("span[hosts=-1] rusage[slots=2]", 40),
)
OTHERS = (
    ("rusage[slots=2,mem=6]", 2),
    ("span[ptile=2]", 4),
    ("span[hosts=1] rusage[mem=1]", 4),
    ("rusage[mem=2/host]", 6),
)


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Draw a burst: two to four shapes, up to 15 jobs of each, and templates with room for tens of hosts."""
    known = draw(st.sampled_from([SIMPLE, SIMPLE[:6], SIMPLE + OTHERS]))
    shapes = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    pending = [
        PendingJob(
            id=f"{number}.{index}",
            user=draw(st.sampled_from(["u1", "u2"])) if index == 0 else "u1",
            priority=draw(st.integers(0, 2)) if index < 2 else 1,
            tasks=Tasks(min=tasks),
            resreq=resreq,
        )
        for number, (resreq, tasks) in enumerate(shapes)
        for index in range(draw(st.integers(1, 15 if tasks < 4 else 5 if tasks < 20 else 1)))
    ]
    ids = draw(st.sampled_from([("t1", "t2"), ("t1",), ("t1", "t2", "t10")]))
    shared = draw(capacities([10, 5, 30, 2]))
    templates = tuple(draw(drawing(draw(_template(name)), shared, [60, 9, 3])) for name in ids)
    flying = draw(rarely(st.integers(1, 4), 0, one_in=2))
    limit = Limit(
        name="limit",
        resource=draw(st.sampled_from(["jobs", "slots", "hosts", "lic"])),
        amount=draw(st.integers(5, 40)),
        per=draw(st.sampled_from([None, LimitScope.USER, LimitScope.QUEUE])),
    )
    return Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        hosts=tuple(
            Host(name=f"h{n}", total={"slots": 4, "mem": 9}, attributes={"zone": "a"})
            for n in range(draw(st.integers(0, 6)))
        ),
        shared=(Shared(name="lic", total=draw(st.integers(0, 8))),),
        limits=(limit,) if draw(st.integers(0, 4)) == 4 else (),
        pending=tuple(pending),
        catalog=Catalog(
            templates=templates,
            capacities=shared,
            countable=(Countable(name="lic", headroom=draw(st.integers(0, 12))),),
            in_flight=InFlight(
                hosts=tuple(InFlightHost(id=f"f{n}", template=ids[0]) for n in range(flying))
            ),
        ),
    )


@st.composite
def _template(draw: st.DrawFn, name: str) -> Template:
    return Template(
        id=name,
        attributes={"zone": draw(st.sampled_from(["a", "a", "b"]))},
        provides={
            "slots": draw(st.sampled_from([4, 2, 8, 16, 1])),
            "mem": draw(st.sampled_from([16, 8, 64, 4])),
        },
        allowed=draw(st.sampled_from([60, 10, 20, 3])),
        priority=draw(rarely(st.just(10), 0, one_in=3)),
        price_per_hour=draw(
            st.sampled_from([Decimal("0.10"), Decimal("0.19"), Decimal("0.40"), None])
        ),
    )
