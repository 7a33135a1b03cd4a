"""Which template a new host gets.

Within a priority it is the one of which the price buys most: what the job and the waiting jobs that would
fill the new hosts are worth, for each unit of price. So one large host is taken rather than four small ones
when that serves the same jobs for less, and a small one for the last job.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xce.domain.demand.lookahead import Ahead
from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.supply import Offer


class Option(NamedTuple):
    """So many new hosts of one template, with which a job has a place, and what it takes of each."""

    offer: Offer
    used: Sequence[Mapping[str, int]]


def best_alone(options: Sequence[Option]) -> Option:
    """Return the option that is cheapest for the job alone; unpriced after all priced."""
    return min(
        options,
        key=lambda option: (
            option.offer.price is None,
            (option.offer.price or 0) * len(option.used),
            option.offer.number,
        ),
    )


def best(
    options: Sequence[Option],
    tier: int,
    offers: Sequence[Offer],
    ahead: Ahead,
    candidate: Candidate,
) -> Option:
    """Return the option that serves the job and those behind it for the least.

    Args:
        options: those of one priority.
        tier: number of that priority.
        offers: all templates of it.
        ahead: the waiting jobs.
        candidate: the job that needs the hosts.
    """
    priced = [option for option in options if option.offer.price is not None]
    if len(priced) < 2:
        return best_alone(options)
    prices = ahead.prices(tier, offers)
    own = ahead.worth_of(candidate.job_class, prices)

    def merit(option: Option) -> tuple[float, object, int, int]:
        price = (option.offer.price or 0) * len(option.used)
        fill = ahead.worth_of_fill(option.offer.kind, option.used, tier, candidate.place)
        bought = (own + fill) / float(price) if price > 0 else float("inf")
        return (-bought, price, len(option.used), option.offer.number)

    return min(priced, key=merit)
