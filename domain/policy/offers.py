"""Who offers what is wanted, in the order in which it is tried, and why an offer is not tried now."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from math import lcm
from typing import Final, NamedTuple

from xce.domain.formats.policy import Pause, PolicyInput, SharedTerms
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.policy import spot
from xce.domain.policy.backoff import BackOff
from xce.domain.policy.bounds import Bound, Bounds
from xce.domain.policy.granularity import Sizes
from xce.domain.policy.lines import line_id
from xce.domain.policy.purses import UNBOUNDED
from xce.domain.policy.times import clock, later
from xce.domain.values import natural_key

#: Why a pause was made is what a provider said: text of any length.
_WHY_SHOWN: Final = 200


class Before(NamedTuple):
    """An offer at an earlier moment of the round."""

    asked: int
    used: int
    stopped: str | None
    served: int


@dataclass(slots=True)
class Offer:
    """One provider's offer of one template or resource, and what this round asks of it.

    Attributes:
        item: the template or resource, by its own name.
        closed: why nothing is asked of it now, whatever the bounds; None: it is open.
        waits: it failed of late, and the others have their turn first.
        asked: the amount to ask, a possible size.
        used: what of it is wanted; the rest is there for the sake of its size.
        stopped: why it gave less than was wanted of it, when it first did.
        served: (amount, jobs) of the lots in ``used``, in job order.
    """

    provider: ProviderDescription
    kind: Kind
    item: str
    price: Decimal | None
    sizes: Sizes
    bounds: list[Bound]
    closed: str | None
    waits: bool = False
    asked: int = 0
    used: int = 0
    stopped: str | None = None
    served: list[tuple[int, tuple[str, ...]]] = field(
        default_factory=list[tuple[int, tuple[str, ...]]]
    )

    @property
    def surplus(self) -> int:
        """What is asked beyond what is wanted, for the sake of the size."""
        return self.asked - self.used

    def take(self, amount: int, jobs: tuple[str, ...]) -> int:
        """Ask for as much of ``amount`` as is possible, and return how much that is."""
        spare = self.surplus
        if amount > spare and self.closed is None:
            room = self.asked + self.room()
            target = self.sizes.up(self.asked + amount - spare)
            target = target if target <= room else self.sizes.down(room)
            if target > self.asked:
                for bound in self.bounds:
                    bound.take(target - self.asked, self.price)
                spare += target - self.asked
                self.asked = target
        taken = min(amount, spare)
        if taken < amount and self.stopped is None:
            self.stopped = self._why_no_more()
        if taken:
            self.used += taken
            self.served.append((taken, jobs))
        return taken

    def before(self) -> "Before":
        """Return what ``undo`` needs to take back all that is asked from now on."""
        return Before(self.asked, self.used, self.stopped, len(self.served))

    def undo(self, before: "Before") -> None:
        """Take back what was asked since."""
        for bound in self.bounds:
            bound.take(before.asked - self.asked, self.price)
        self.asked, self.used, self.stopped, count = before
        del self.served[count:]

    def room(self) -> int:
        """Return how many more its bounds allow."""
        return min((bound.room(self.price) for bound in self.bounds), default=UNBOUNDED)

    def _why_no_more(self) -> str:
        if self.closed is not None:
            return self.closed
        tightest = min(self.bounds, key=lambda bound: bound.room(self.price))
        why = tightest.why(self.price)
        if room := tightest.room(self.price):
            return f"{why}; room for {room}, and it gives {self.sizes.step} or a multiple, {self.sizes.minimum} at least"
        return why


def offers_of(
    inputs: PolicyInput, kind: Kind, item: str, project: str | None, bounds: Bounds
) -> list[Offer]:
    """Return the offers of a line or resource: by the provider's priority, then price (unpriced last), then name.

    ``project``: whose budgets pay for what is asked of them; None: those of no project.
    """
    found = (
        _template_offers(inputs, item, project, bounds)
        if kind is Kind.HOST
        else _resource_offers(inputs, item, project, bounds)
    )
    offers = _in_order(inputs, found)
    rule = spot.rule_of(inputs, item) if kind is Kind.HOST else None
    if rule is not None:
        offers += _in_order(inputs, _template_offers(inputs, rule.on_demand, project, bounds))
        offers.sort(key=lambda offer: offer.waits)
    return offers


def _in_order(inputs: PolicyInput, found: Iterable[Offer]) -> list[Offer]:
    back_off = BackOff(inputs)
    offers = list(found)
    for offer in offers:
        offer.waits = back_off.had_its_turn(offer.provider.name, offer.item)
    return sorted(offers, key=_preference)


def _preference(offer: Offer) -> tuple[object, ...]:
    unpriced = offer.price is None
    name = natural_key(offer.provider.name)
    return (
        offer.waits,
        -offer.provider.priority,
        unpriced,
        offer.price or 0,
        name,
        natural_key(offer.item),
    )


def _template_offers(
    inputs: PolicyInput, line: str, project: str | None, bounds: Bounds
) -> Iterable[Offer]:
    pairs = [(provider, offer) for provider in inputs.providers for offer in provider.templates]
    found = [pair for pair in pairs if pair[1].template_id == line] or [
        (provider, offer)
        for provider, offer in pairs
        if line_id(offer.template_id, provider.price_of(offer)) == line
    ]
    return [_template_offer(inputs, provider, offer, project, bounds) for provider, offer in found]


def _template_offer(
    inputs: PolicyInput,
    provider: ProviderDescription,
    offer: TemplateOffer,
    project: str | None,
    bounds: Bounds,
) -> Offer:
    most = inputs.settings.max_per_request
    grain = provider.granularity
    sizes = Sizes.of(grain.minimum, grain.step, most)
    closed = _paused(inputs.pauses, provider.name, offer.template_id, inputs.now)
    if closed is None and not sizes.possible:
        closed = (
            f"asks are of at least {sizes.minimum} in steps of {sizes.step},"
            f" and the settings allow {most} in one request"
        )
    return Offer(
        provider,
        Kind.HOST,
        offer.template_id,
        provider.price_of(offer),
        sizes,
        bounds.of_template(provider, offer, project),
        closed,
    )


def _resource_offers(
    inputs: PolicyInput, resource: str, project: str | None, bounds: Bounds
) -> Iterable[Offer]:
    for provider in inputs.providers:
        for offer in provider.resources:
            if offer.name == resource:
                yield _resource_offer(inputs, provider, offer, project, bounds)


def _resource_offer(
    inputs: PolicyInput,
    provider: ProviderDescription,
    offer: ResourceOffer,
    project: str | None,
    bounds: Bounds,
) -> Offer:
    unknown = offer.capacity is None
    step = offer.step
    closed = _paused(inputs.pauses, provider.name, offer.name, inputs.now)
    for terms in inputs.shared:
        if terms.name == offer.name:
            step = lcm(step, terms.step)
            closed = closed or _too_soon(terms, inputs.now)
    if closed is None and offer.recalled_to is not None:
        closed = f"it wants what it lends to fall to {offer.recalled_to}"
    return Offer(
        provider,
        Kind.COUNTABLE,
        offer.name,
        provider.price_of(offer),
        Sizes.of(step, step),
        [] if unknown else bounds.of_resource(provider, offer, project),
        closed if closed is not None or not unknown else "its capacity is unknown",
    )


def _too_soon(terms: SharedTerms, now: datetime) -> str | None:
    """Return until when demand has to last before more is borrowed, if that is not over."""
    if terms.wanted_since is None or now - terms.wanted_since >= terms.borrow_after:
        return None
    return f"the demand has to last until {clock(later(terms.wanted_since, terms.borrow_after))}"


def _paused(pauses: Iterable[Pause], provider: str, item: str, now: datetime) -> str | None:
    """Return until when and why an offer is paused; the pause that lasts longest says it."""
    holding = [
        pause
        for pause in pauses
        if pause.provider == provider and pause.item in (None, item) and pause.until > now
    ]
    if not holding:
        return None
    longest = max(holding, key=lambda pause: (pause.until, pause.why, pause.item or ""))
    return f"paused until {clock(longest.until)}: {longest.why[:_WHY_SHOWN]}"
