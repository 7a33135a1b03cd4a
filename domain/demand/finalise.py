"""The end of a session: the demand of all counted jobs together, and why the others are not counted."""

from collections.abc import Container, Sequence

from xce.domain.cluster.hosts import key_of_name
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.solution import Solver
from xce.domain.demand.sorting_out import Waiting, sort_out
from xce.domain.demand.supply import Supply, add_in_flight
from xce.domain.demand.why_not import WhyNot
from xce.domain.demand.writing import Writer, whys
from xce.domain.formats.session_result import Demand, Provisioning, Tightness
from xce.domain.formats.snapshot import DEFAULT_PROJECT, OrderMode
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.placement import Placed

_NOTHING = Demand()


class Finalised:
    """What the catalog pass came to.

    Attributes:
        provisioning: what each counted job waits for, by id.
        placed: where the counted jobs are placed on what is demanded.
    """

    __slots__ = ("demand", "placed", "provisioning")

    def __init__(
        self, demand: Demand, provisioning: dict[str, Provisioning], placed: Sequence[Placed]
    ) -> None:
        self.demand = demand
        self.provisioning = provisioning
        self.placed = placed


def finalise(compiled: Compiled, waiting: Sequence[Waiting]) -> Finalised:
    """Return the demand of a session whose phase 1 is over; its state is used up."""
    if not waiting:
        return Finalised(_NOTHING, {}, ())
    settings = compiled.snapshot.settings
    listed = sort_out(compiled.snapshot, waiting)
    supply = Supply(compiled)
    base = compiled.core
    add_in_flight(base, compiled, supply)
    found = Solver(
        base,
        supply,
        listed.candidates,
        strict=settings.order is OrderMode.STRICT,
        budget=settings.tightness_budget,
    ).solve()

    never = Impossible(compiled, supply)
    not_now = WhyNot(found.catalog, supply)
    impossible: list[tuple[int, str]] = []
    not_counted = listed.not_counted
    for candidate, why in found.left_out:
        lacking = None if candidate.left_out else never.why(candidate.job_class)
        if lacking is not None:
            impossible.append((candidate.place, lacking))
        else:
            not_counted.append((candidate.place, why or not_now.why(candidate.job_class)))
    not_counted.sort()

    writer = Writer(compiled, supply, base, found)
    demand = Demand.model_construct(
        hosts=writer.host_demands(),
        order=writer.order(),
        tight=Tightness.PROVED if found.is_tight else Tightness.BUDGET,
        countable=writer.count_demands(),
        impossible=whys(waiting, impossible),
        not_counted=whys(waiting, not_counted),
        not_examined=tuple([waiting[place][0].id for place in listed.not_examined]),
        projects=_projects(waiting, writer.provisioning),
    )
    return Finalised(demand, writer.provisioning, found.run.placements)


def _projects(waiting: Sequence[Waiting], counted: Container[str]) -> dict[str, tuple[str, ...]]:
    """Return the counted jobs of each project, so that budgets of projects can be kept."""
    found: dict[str, list[str]] = {}
    for job, *_ in waiting:
        if job.project != DEFAULT_PROJECT and job.id in counted:
            found.setdefault(job.project, []).append(job.id)
    return {project: tuple(found[project]) for project in sorted(found, key=key_of_name)}
