"""Which template a new host gets."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.supply import Offer


class Option(NamedTuple):
    """So many new hosts of one template, with which a job has a place."""

    offer: Offer
    hosts: int


def cheapest(
    options: Sequence[Option], room: Mapping[int, int], waiting: Sequence[Candidate]
) -> Option:
    """Return the option that serves the job and those behind it at the lowest price."""
    return min(
        options,
        key=lambda option: (
            option.offer.price is None,
            (option.offer.price or 0) * option.hosts,
            option.hosts,
            option.offer.number,
        ),
    )
