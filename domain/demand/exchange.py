"""A cheaper set of new hosts for the same jobs, looked for by exchanging hosts.

The greedy choice of templates looks one host ahead. Here whole sets are compared: all hosts of one template,
one host for another, one for two. Each set is filled with the jobs in job order, so only sets that hold them
are taken. The search is bounded by a count of placed tasks, so that it is the same everywhere.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Final

from xce.domain.demand.offer import Offer
from xce.domain.demand.packed_proof import PackedProof
from xce.domain.demand.rooms import Rooms

#: Tasks placed while looking for cheaper sets, and sets looked at.
_TASKS_MAX: Final = 2_000
_SETS_MAX: Final = 400
#: So many hosts are exchanged, those opened last.
EXCHANGED_MAX: Final = 12


def cheaper(
    proof: PackedProof, order: Sequence[Offer], offers: Sequence[Offer], rooms: Rooms
) -> list[Offer]:
    """Return the cheapest hosts found that hold all tasks, the given ones if none are cheaper.

    Of many hosts only the last are exchanged: those before them hold what they hold.

    Args:
        proof: the tasks on new hosts.
        order: the hosts that hold them now, all priced and of one priority.
        offers: all templates of that priority.
        rooms: how many hosts there may be of each.
    """
    start = max(0, len(order) - EXCHANGED_MAX)
    kept, best = list(order[:start]), list(order[start:])
    rooms = rooms.copy()
    rooms.take_all(kept)
    limit = proof.spent + _TASKS_MAX
    looked_at = 0
    found = True
    while found:
        found = False
        for other in _others(best, [offer for offer in offers if offer.price is not None]):
            looked_at += 1
            if looked_at > _SETS_MAX or proof.spent > limit:
                return kept + best
            if price_of(other) >= price_of(best):
                continue
            # With the cheap ones first, small jobs leave the dear ones to those that fit nowhere else.
            cheap_first = sorted(other, key=lambda offer: offer.price or Decimal(0))
            if rooms.hold(other) and proof.holds(other, start):
                best, found = other, True
                break
            if cheap_first != other and rooms.hold(cheap_first) and proof.holds(cheap_first, start):
                best, found = cheap_first, True
                break
    return kept + best


def price_of(order: Sequence[Offer]) -> Decimal:
    """Return what hosts cost per hour; unpriced ones nothing."""
    return sum((offer.price or Decimal(0) for offer in order), Decimal(0))


def _others(order: list[Offer], offers: Sequence[Offer]) -> Iterator[list[Offer]]:
    """Yield sets that may be cheaper: all of one template, one host for one, one for two, two for one."""
    total = price_of(order)
    kinds = {offer.kind: offer for offer in reversed(offers)}
    for offer in kinds.values():
        hosts = 1
        while offer.price is not None and offer.price * hosts < total and hosts <= len(order) * 4:
            yield [offer] * hosts
            hosts += 1
            if offer.price == 0 and hosts > len(order):
                break
    for place, old in enumerate(order):
        for offer in kinds.values():
            if offer.price is not None and old.price is not None and offer.price < old.price:
                yield [*order[:place], offer, *order[place + 1 :]]
    for place in range(len(order)):
        for other in range(place + 1, len(order)):
            rest = [*order[place + 1 : other], *order[other + 1 :]]
            pair = price_of([order[place], order[other]])
            for offer in kinds.values():
                if offer.price is not None and offer.price < pair:
                    yield [*order[:place], offer, *rest]
    for place, old in enumerate(order):
        for first, second in product(kinds.values(), repeat=2):
            if price_of([first, second]) < price_of([old]):
                yield [*order[:place], first, second, *order[place + 1 :]]
