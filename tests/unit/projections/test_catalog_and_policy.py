"""What is demanded of the catalog is what the policy asks for: nothing of it is held, whatever templates and providers share."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.projections.run import START, Run, cloud, hosts, template
from xce.domain.formats.policy import DecisionKind, PolicyInput
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.snapshot import PendingJob, Snapshot, Tasks
from xce.domain.policy.decide import decide
from xce.domain.policy.lines import line_id
from xce.domain.scheduling.session import run_session

_PROVIDES = {
    "c4": {"slots": 4},
    "c8": {"slots": 8},
    "f4": {"slots": 4, "fpga": 1},
}
_WANTED = ("rusage[slots=4]", "rusage[slots=3]", "rusage[slots=8]", "rusage[slots=4,fpga=1]")


@st.composite
def providers(draw: st.DrawFn) -> list[ProviderDescription]:
    """Draw up to three providers with some of the same templates, at one price or another."""
    return [
        cloud(
            name,
            *(
                template(
                    one,
                    draw(st.sampled_from(["0.17", "0.17", "0.25", None])),
                    max_number=draw(st.sampled_from([-1, -1, 0, 1, 2])),
                    provides=_PROVIDES[one],
                )
                for one in draw(
                    st.lists(st.sampled_from([*_PROVIDES]), min_size=1, max_size=3, unique=True)
                )
            ),
            capacity=draw(st.sampled_from([3, 2, 1, 0, 5, None])),
            priority=draw(st.sampled_from([0, 5])),
        )
        for name in draw(st.sampled_from([("aws",), ("aws", "gcp"), ("aws", "gcp", "own")]))
    ]


@st.composite
def waiting(draw: st.DrawFn) -> list[PendingJob]:
    """Draw jobs of one task, and now and then a gang or parts on several hosts."""
    jobs = [
        PendingJob(id=f"{number}", resreq=draw(st.sampled_from(_WANTED)))
        for number in range(1, 1 + draw(st.integers(1, 7)))
    ]
    if draw(st.booleans()):
        gang = PendingJob(id="g", resreq="rusage[slots=3] span[hosts=-1]", tasks=Tasks(min=3))
        parts = PendingJob(
            id="p",
            resreq="1*{rusage[slots=4,fpga=1]} + 1*{rusage[slots=8]}",
            tasks=Tasks(min=2),
        )
        jobs.insert(0, draw(st.sampled_from([gang, parts])))
    return jobs


@given(providers(), waiting(), st.integers(0, 2))
def test_the_policy_asks_for_all_that_is_demanded(
    offered: Sequence[ProviderDescription], pending: Sequence[PendingJob], asked: int
) -> None:
    run = Run(*offered)
    first = offered[0].templates[0]
    price = None if first.price_per_hour is None else str(first.price_per_hour)
    if asked:
        run.do(hosts("R1", asked, first.template_id, of=offered[0].name, price=price))
    catalog = run.catalog()
    snapshot = Snapshot(
        format="xce.snapshot/1",
        now=START,
        position=run.projections.position,
        pending=tuple(pending),
        catalog=catalog,
    )
    demand = run_session(snapshot).demand

    decisions = decide(
        PolicyInput(
            now=START,
            position=run.projections.position,
            demand=demand,
            providers=run.projections.catalog.descriptions(),
            inventory=run.projections.inventory.view(),
        )
    ).decisions

    assert [one.reason for one in decisions if one.kind is DecisionKind.HOLD] == []
    prices = {(p.name, t.template_id): p.price_of(t) for p in offered for t in p.templates}
    given = Counter[str]()
    lines = {line.id for line in catalog.templates}
    for one in decisions:
        if one.kind is DecisionKind.REQUEST:
            item = one.template or ""
            line = item if item in lines else line_id(item, prices[one.provider or "", item])
            given[line] += one.count or 0
    assert given == Counter({host.template: host.count for host in demand.hosts})
