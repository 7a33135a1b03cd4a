"""Which template a new host gets.

Within a priority it is the one of which the price buys most: what the job and the waiting jobs that would
fill the new hosts are worth, for each unit of price. So one large host is taken rather than four small ones
when that serves the same jobs for less, and a small one for the last job.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from xce.domain.cluster.kinds import HostKind
from xce.domain.demand.lookahead import Ahead
from xce.domain.demand.offer import Offer
from xce.domain.demand.sorting_out import Candidate

#: More than rounding can make of equal numbers.
_CLOSE: Final = 1e-9


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
    bounds = ahead.bounds(tier)
    is_single = candidate.job_class.least == 1
    chosen, best_merit = priced[0], None
    seen: set[HostKind] = set()
    for option in sorted(priced, key=lambda each: (-bounds[each.offer.number], each.offer.number)):
        if option.offer.kind in seen:
            continue  # the same hosts for a price that is not lower
        seen.add(option.offer.kind)
        price = (option.offer.price or 0) * len(option.used)
        if price > 0:
            bound = bounds[option.offer.number]
            if not is_single:
                # What a gang takes of hosts that are there counts for the new ones too.
                bound += max(0.0, own - ahead.worth_of_used(option.used, prices)) / float(price)
            if best_merit is not None and -best_merit[0] > bound + _CLOSE:
                continue  # nothing that fills it can be worth more for its price
            fill = ahead.worth_of_fill(option.offer.kind, option.used, tier, candidate.place)
            bought = (own + fill) / float(price)
        else:
            bought = float("inf")
        merit = (-bought, price, len(option.used), option.offer.number)
        if best_merit is None or merit < best_merit:
            chosen, best_merit = option, merit
    return chosen
