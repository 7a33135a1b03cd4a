"""Rules of the core, each changed on purpose: a recording that was made before must not verify any more (SPEC R2)."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import pytest

from xce.domain.cluster import hosts
from xce.domain.demand import catalog_pass
from xce.domain.demand.exactness import Tightening
from xce.domain.demand.idle import idle_supply
from xce.domain.demand.template_choice import Option, best, best_alone
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.session_result import Idle
from xce.domain.formats.snapshot import PendingJob, Queue
from xce.domain.policy import billing, bounds, offers
from xce.domain.policy.backoff import pause_for
from xce.domain.policy.granularity import Sizes
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.picker import in_job_order
from xce.domain.sharing import lending

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Rule:
    """A rule, and how it is changed.

    Attributes:
        kind: what shows it: a session, or a round of the policy.
        paths: how the place of the first difference begins: one of these.
    """

    name: str
    kind: str
    paths: tuple[str, ...]
    change: Callable[[Patch], None]


RULES: Final[list[Rule]] = []


def rule(kind: str, *paths: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def keep(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
        RULES.append(Rule(function.__name__.replace("_", " "), kind, paths, function))
        return function

    return keep


def everywhere(patch: Patch, function: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Put another function in the place of one, in every module that has taken it by its name."""
    name = function.__name__
    for module in [one for path, one in sys.modules.items() if path.startswith("xce.")]:
        if getattr(module, name, None) is function:
            patch.setattr(module, name, other)


def none(*arguments: object, **more: object) -> None:
    return None


# ---------------------------------------------------------------------- sessions
@rule("session", "allocations")
def jobs_are_tried_in_the_opposite_order(patch: Patch) -> None:
    def last_first(pending: list[PendingJob], queues: list[Queue]) -> list[int]:
        return in_job_order(pending, queues)[::-1]

    defaults: tuple[object, ...] = Compiled.__init__.__defaults__ or ()
    changed = tuple(last_first if one is in_job_order else one for one in defaults)
    assert changed != defaults, "it is how a session gets its order"
    patch.setattr(Compiled.__init__, "__defaults__", changed)


@rule("session", "allocations", "reason_sets")
def hosts_are_filled_in_the_opposite_order(patch: Patch) -> None:
    right = hosts.key_of_name

    class Opposite:
        def __init__(self, name: str) -> None:
            self.key = right(name)

        def __lt__(self, other: "Opposite") -> bool:
            return other.key < self.key

    patch.setattr(hosts, "key_of_name", Opposite)


@rule("session", "demand", "pending")
def the_dearest_template_is_chosen(patch: Patch) -> None:
    def dearest(options: list[Option], *more: object) -> Option:
        return max(options, key=lambda option: (option.offer.price or 0) * len(option.used))

    everywhere(patch, best, dearest)
    everywhere(patch, best_alone, dearest)


@rule("session", "demand", "pending")
def hosts_that_are_spare_are_not_dropped(patch: Patch) -> None:
    patch.setattr(Tightening, "tighten", none)


@rule("session", "demand", "pending")
def new_hosts_are_not_filled_with_the_jobs_behind(patch: Patch) -> None:
    patch.setattr(catalog_pass.Pass, "_on_what_is_there", none)


@rule("session", "idle.hosts")
def hosts_are_idle_a_minute_later(patch: Patch) -> None:
    def later(compiled: Compiled, *more: Any) -> Idle:
        found = idle_supply(compiled, *more)
        snapshot = compiled.snapshot
        latest = snapshot.now - snapshot.settings.idle_host_after - timedelta(minutes=1)
        settled = tuple(one for one in found.hosts if one.idle_since <= latest)
        return found.model_copy(update={"hosts": settled})

    everywhere(patch, idle_supply, later)


@rule("session", "idle.counts")
def one_token_less_is_unused(patch: Patch) -> None:
    def less(*given: Any) -> Idle:
        found = idle_supply(*given)
        counts = tuple(one.model_copy(update={"amount": one.amount - 1}) for one in found.counts)
        return found.model_copy(update={"counts": counts})

    everywhere(patch, idle_supply, less)


# ------------------------------------------------------------------------ policy
@rule("round", "decisions")
def the_dearest_offer_is_preferred(patch: Patch) -> None:
    right = offers._preference  # pyright: ignore[reportPrivateUsage]

    def dear_first(offer: offers.Offer) -> tuple[object, ...]:
        waits, priority, unpriced, price, *rest = right(offer)
        assert isinstance(price, int) or hasattr(price, "as_tuple")
        return (waits, priority, unpriced, -price, *rest)  # type: ignore[operator]  # a number

    patch.setattr(offers, "_preference", dear_first)


@rule("round", "decisions")
def an_ask_is_as_large_as_it_likes(patch: Patch) -> None:
    def whole(sizes: Sizes, amount: int) -> list[int]:
        return [amount]

    patch.setattr(Sizes, "split", whole)


@rule("round", "decisions")
def a_budget_may_be_passed_by_one(patch: Patch) -> None:
    right = bounds.CostBound.room

    def one_more(bound: bounds.CostBound, price: Decimal | None) -> int:
        return right(bound, price) + 1

    patch.setattr(bounds.CostBound, "room", one_more)


@rule("round", "decisions")
def hosts_go_back_early_in_a_paid_hour(patch: Patch) -> None:
    patch.setattr(billing, "why_keep_paid", none)


@rule("round", "decisions")
def tokens_go_back_before_their_hold(patch: Patch) -> None:
    patch.setattr(lending, "_too_young", none)


@rule("round", "decisions")
def tokens_go_back_the_cheapest_and_youngest_first(patch: Patch) -> None:
    right = lending._dearest_first  # pyright: ignore[reportPrivateUsage]

    class Opposite:
        def __init__(self, lent: lending.Lent) -> None:
            self.key = right(lent)

        def __lt__(self, other: "Opposite") -> bool:
            return other.key < self.key

    patch.setattr(lending, "_dearest_first", Opposite)


@rule("round", "decisions")
def one_step_more_is_asked(patch: Patch) -> None:
    right = Sizes.up

    def one_step_more(sizes: Sizes, amount: int) -> int:
        return right(sizes, right(sizes, amount) + 1)

    patch.setattr(Sizes, "up", one_step_more)


@rule("round", "decisions")
def pauses_do_not_grow(patch: Patch) -> None:
    def as_the_first(failures: int, settings: PolicySettings) -> timedelta:
        return settings.pause_after_refusal

    everywhere(patch, pause_for, as_the_first)
