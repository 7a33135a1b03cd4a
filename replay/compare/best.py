"""Which policy is best by what. Only runs that left the fewest jobs behind are in the race: doing less is no saving."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from xce.domain.formats.comparison import Best, Figures, RunOutcome

#: Figures that are compared, and whether less is better.
LESS_IS_BETTER: Final[dict[str, bool]] = {
    "cost": True,
    "wait_mean": True,
    "wait_p95": True,
    "wait_max": True,
    "own_use": False,
    "obtained_use": False,
    "borrowed_use": False,
    "waste": True,
    "violations": True,
    "not_as_expected": True,
}


def best_of(outcomes: Iterable[RunOutcome]) -> tuple[Best, ...]:
    """Return the best policies by workload and figure, where the policies differ in it."""
    groups: dict[str, list[RunOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.workload, []).append(outcome)
    return tuple(
        Best(workload=workload, figure=figure, policies=policies)
        for workload, group in groups.items()
        for figure, less in LESS_IS_BETTER.items()
        if (policies := _best(_whole(group), figure, less=less))
    )


def _whole(group: Sequence[RunOutcome]) -> list[RunOutcome]:
    fewest = min(outcome.figures.jobs_not_ended for outcome in group)
    return [outcome for outcome in group if outcome.figures.jobs_not_ended == fewest]


def _best(group: Sequence[RunOutcome], figure: str, *, less: bool) -> tuple[str, ...]:
    values = {
        outcome.policy: value
        for outcome in group
        if (value := value_of(outcome.figures, figure)) is not None
    }
    if len(set(values.values())) < 2:
        return ()
    wanted = (min if less else max)(values.values())
    return tuple(policy for policy, value in values.items() if value == wanted)


def value_of(figures: Figures, figure: str) -> Decimal | None:
    """Return one figure as a number, None where there is none."""
    value = getattr(figures, figure)
    return None if value is None else Decimal(value)
