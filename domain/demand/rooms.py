"""How many more hosts there may be of each template, as hosts are opened one after the other.

A host takes from its template, and from the first of its template's draws that has room. Templates that draw on one
capacity leave less for one another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from xce.domain.demand.offer import Offer


class Rooms:
    """What is left of each template and of each capacity.

    Attributes:
        left: by number of the template, how many more hosts of it there may be if no others come. To be read only.
        capacities: by name, how many more hosts may draw on it.
        are_shared: whether hosts of one template may leave less room for another: a capacity is short of what its
            templates could be together.
    """

    __slots__ = ("_allowed", "_most", "_offers", "_users", "are_shared", "capacities", "left")

    def __init__(self, offers: Sequence[Offer], capacities: Mapping[str, int]) -> None:
        """Make them; ``offers``: all templates, by number."""
        self.capacities = dict(capacities)
        self._offers = {offer.number: offer for offer in offers if offer.template.draws}
        #: Of those that draw: how many more they may be themselves, and what each of their draws has left.
        self._allowed = {
            number: 0 if offer.is_paused else offer.allowed
            for number, offer in self._offers.items()
        }
        self._most = {
            number: [draw.most for draw in offer.template.draws]
            for number, offer in self._offers.items()
        }
        self._users: dict[str, list[int]] = {}
        for number, offer in self._offers.items():
            for draw in offer.template.draws:
                if draw.capacity is not None:
                    self._users.setdefault(draw.capacity, []).append(number)
        self.left = [0 if offer.is_paused else offer.allowed for offer in offers]
        for number in self._offers:
            self._see(number)
        self.are_shared = any(
            len(users) > 1 and sum(self.left[number] for number in users) > self.capacities[name]
            for name, users in self._users.items()
        )

    def copy(self) -> "Rooms":
        """Return the same, to try something."""
        made = Rooms.__new__(Rooms)
        made._offers, made._users, made.are_shared = self._offers, self._users, self.are_shared
        made.left = self.left[:]
        made.capacities = self.capacities.copy()
        made._allowed = self._allowed.copy()
        made._most = {number: most[:] for number, most in self._most.items()}
        return made

    def take(self, offer: Offer, hosts: int = 1) -> None:
        """Open hosts of a template that has room for them."""
        number = offer.number
        if number not in self._offers:
            self.left[number] -= hosts
            return
        for _ in range(hosts):
            self._draw(number)

    def take_all(self, offers: Iterable[Offer]) -> bool:
        """Open hosts as far as there is room, and return whether there was for all of them."""
        for offer in offers:
            if self.left[offer.number] <= 0:
                return False
            self.take(offer)
        return True

    def hold(self, offers: Sequence[Offer]) -> bool:
        """Return whether there is room for all these hosts, opened one after the other."""
        left = self.left
        if any(count > left[offer.number] for offer, count in Counter(offers).items()):
            return False
        return not self._offers or self.copy().take_all(offers)

    def _draw(self, number: int) -> None:
        """Take from the first draw of a template that has room."""
        most, capacities = self._most[number], self.capacities
        self._allowed[number] -= 1
        for place, draw in enumerate(self._offers[number].template.draws):
            name = draw.capacity
            if most[place] > 0 and (name is None or capacities[name] > 0):
                most[place] -= 1
                if name is None:
                    break
                capacities[name] -= 1
                for user in self._users[name]:
                    self._see(user)
                return
        self._see(number)

    def _see(self, number: int) -> None:
        """Say anew what is left of a template that draws."""
        room = 0
        for draw, most in zip(self._offers[number].template.draws, self._most[number], strict=True):
            name = draw.capacity
            room += most if name is None else min(most, self.capacities[name])
        self.left[number] = min(self._allowed[number], room)
