"""How many more hosts can be asked of whom: of an offer by itself, and of a provider's capacity, which its offers share."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from xce.domain.formats.provider import ProviderDescription, TemplateOffer
from xce.domain.formats.snapshot import Capacity, Draw, Template
from xce.domain.policy.granularity import Sizes
from xce.domain.values import natural_key

#: Room where neither template nor provider has a limit of its own.
UNLIMITED: Final = 1_000_000

#: A provider, and a template that it offers.
Offered = tuple[ProviderDescription, TemplateOffer]


class Room:
    """What the limits leave beyond the hosts that exist or are asked, in sizes that can be asked."""

    def __init__(self, used: Mapping[tuple[str, str], int]) -> None:
        """Make it; ``used``: hosts by provider and template."""
        self._used = used
        self._here = Counter[str]()
        for (provider, _), count in used.items():
            self._here[provider] += count

    def of(self, provider: ProviderDescription, template: TemplateOffer) -> int:
        """Return how many more hosts can be asked of an offer, if none is asked of the others."""
        own, together = self.alone(provider, template), self.together(provider)
        return own if together is None else min(own, together)

    def alone(self, provider: ProviderDescription, template: TemplateOffer) -> int:
        """Return how many more hosts can be asked of an offer, its provider's capacity aside."""
        room = UNLIMITED
        if template.max_number >= 0:
            room = template.max_number - self._used.get((provider.name, template.template_id), 0)
        return _possible(provider, room)

    def together(self, provider: ProviderDescription) -> int | None:
        """Return how many more hosts can be asked of a provider, of all its templates together; None: no bound."""
        if provider.capacity is None:
            return None
        return _possible(provider, provider.capacity - self._here[provider.name])

    def draws(self, offers: Iterable[Offered]) -> tuple[Draw, ...]:
        """Return where the hosts of these offers come from, in their order; nothing if no capacity bounds them."""
        found = tuple(
            Draw.model_construct(
                capacity=None if provider.capacity is None else provider.name,
                most=self.alone(provider, template),
            )
            for provider, template in offers
        )
        return found if any(draw.capacity is not None for draw in found) else ()

    def capacities(
        self, templates: Iterable[Template], providers: Mapping[str, ProviderDescription]
    ) -> tuple[Capacity, ...]:
        """Return what is left of the capacities that templates draw on."""
        drawn = {
            draw.capacity
            for template in templates
            for draw in template.draws
            if draw.capacity is not None
        }
        left = ((name, self.together(providers[name])) for name in sorted(drawn, key=natural_key))
        return tuple(
            Capacity.model_construct(name=name, room=room)
            for name, room in left
            if room is not None
        )


def _possible(provider: ProviderDescription, room: int) -> int:
    """Return the most that can be asked of a provider within a room."""
    grain = provider.granularity
    return Sizes.of(grain.minimum, grain.step).down(max(0, room))
