"""Finding hosts with room in stretches gives what looking at each host would."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from xce.domain.cluster.stretches import Stretches, first_of

_AMOUNTS = st.fixed_dictionaries(
    {"mem": st.integers(0, 6), "slots": st.integers(0, 4)}, optional={"gpu": st.integers(0, 2)}
)


class Hosts(RuleBasedStateMachine):
    """Hosts whose amounts go up and down, and that come and go at the end."""

    @initialize(size=st.sampled_from([0, 31, 33, 70, 1030]), data=st.data())
    def start(self, size: int, data: st.DataObject) -> None:
        """Begin with hosts that have a little of everything, every third one not in the list."""
        self.seed = data.draw(st.integers(0, 5))
        self.free: dict[str, list[int]] = {"mem": [], "slots": [], "gpu": []}
        self.hosts: list[int] = []
        self.barred: set[int] = set()
        self.count = 0
        self.stretches = Stretches(self.hosts)
        self.add(size)

    @rule(count=st.sampled_from([1, 2, 40]))
    def add(self, count: int) -> None:
        """Add hosts at the end."""
        for place in range(self.count, self.count + count):
            for number, column in enumerate(self.free.values()):
                column.append((place * 7 + self.seed * number) % (4 + number) % 4)
            if place % 3 != 2:
                self.hosts.append(place)
        self.count += count

    @rule(count=st.sampled_from([1, 3, 50]))
    def remove(self, count: int) -> None:
        """Take hosts off the end."""
        self.count = max(0, self.count - count)
        for column in self.free.values():
            del column[self.count :]
        while self.hosts and self.hosts[-1] >= self.count:
            self.hosts.pop()
        self.barred = {place for place in self.barred if place < self.count}
        self.stretches.cut(len(self.hosts))

    @rule(amounts=_AMOUNTS, start=st.sampled_from([0, 0, 5, 32, 40]), take=st.booleans())
    def look(self, amounts: dict[str, int], start: int, *, take: bool) -> None:
        """Look for a host; it is the one that is found by looking at each. Take the amounts, as many times as fit."""
        wanted = tuple(sorted(amounts.items()))
        rows = [(self.free[name], amount) for name, amount in wanted]
        for _ in range(20):
            expected = first_of(self.hosts, start, len(self.hosts), rows, self.barred)
            found = self.stretches.first_fit(start, wanted, self.free, self.barred, 0)
            assert found == expected
            if found < 0 or not take:
                break
            for name, amount in wanted:
                self.free[name][self.hosts[found]] -= amount

    @rule(amounts=_AMOUNTS)
    def look_past_others(self, amounts: dict[str, int]) -> None:
        """Look past hosts that are barred only this once: what is found then is not remembered."""
        wanted = tuple(sorted(amounts.items()))
        rows = [(self.free[name], amount) for name, amount in wanted]
        barred = {*self.barred, *self.hosts[::2]}
        expected = first_of(self.hosts, 0, len(self.hosts), rows, barred)
        assert self.stretches.first_fit(0, wanted, self.free, barred, None) == expected

    @rule(amounts=_AMOUNTS)
    def list_all(self, amounts: dict[str, int]) -> None:
        """List all hosts with room; they are those that are found by looking at each."""
        wanted = tuple(sorted(amounts.items()))
        found = self.stretches.all_fits(wanted, self.free, self.barred, 2**60)
        assert found == [
            place
            for place in self.hosts
            if place not in self.barred
            and all(self.free[name][place] >= amount for name, amount in wanted)
        ]

    @rule(place=st.integers(0, 1100), name=st.sampled_from(["mem", "slots", "gpu"]))
    def give_back(self, place: int, name: str) -> None:
        """Let an amount go up."""
        if place < self.count:
            self.free[name][place] += 2
            self.stretches.went_up([place])

    @rule(place=st.integers(0, 1100))
    def bar(self, place: int) -> None:
        """Bar a host for good."""
        if place < self.count:
            self.barred.add(place)

    @rule()
    def copy(self) -> None:
        """Go on with a copy."""
        hosts = self.hosts[:]
        self.stretches = self.stretches.copy(hosts)
        self.hosts = hosts

    @invariant()
    def the_list_is_its_own(self) -> None:
        """The stretches look at the list that hosts are added to."""
        if hasattr(self, "stretches"):
            assert self.stretches.hosts is self.hosts


TestHosts = Hosts.TestCase


@given(st.integers(1, 3))
def test_a_full_cluster_is_passed_over_without_looking_at_each_host(rounds: int) -> None:
    """Given 4,096 full hosts that were looked at once, then only the free one behind them is looked at."""
    looked_at: set[int] = set()

    class Column(list[int]):
        def __getitem__(self, place: int) -> int:  # type: ignore[override]
            looked_at.add(place)
            return super().__getitem__(place)

    free = {"slots": Column([0] * 4096 + [1])}
    stretches = Stretches([*range(4097)])
    assert stretches.first_fit(0, (("slots", 1),), free, (), 0) == 4096
    looked_at.clear()
    for wanted in range(1, rounds + 1):
        assert stretches.first_fit(0, (("slots", wanted),), free, (), 0) in (4096, -1)
    assert looked_at == {4096}
