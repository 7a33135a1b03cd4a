"""Several provisioners take turns by leases of the real controller: never two at once, and whoever writes has the newest epoch."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.adapters.settings.load import read_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.engine.commands import Command, DescribeProvider, OpenRequest
from xce.domain.engine.controller import Controller
from xce.domain.engine.messages import Answer, Caller, Order, Role
from xce.domain.errors import StaleEpochError
from xce.domain.events import ids
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.scenario import Provisioners
from xce.domain.ports import EventLog
from xce.domain.provisioning.lease import ProviderLease
from xce.replay.agenda import CountedIds
from xce.replay.members import Member, Members
from xce.replay.scenario.run import Runner

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
THREE = Provisioners(names=("A", "B", "C"), lease_term=timedelta(seconds=30))
PROVIDERS = ("cloud", "pool")


class Site:
    """A controller over a log, and three provisioners."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.controller = Controller(log)
        self.members = Members(THREE, PROVIDERS, CountedIds())
        self.seconds = 0.0
        admin = Caller(Role.ADMIN, "a")
        for name in PROVIDERS:
            self.order(admin, (DescribeProvider(ProviderDescription(name=name)),), {})

    def order(
        self, caller: Caller, commands: tuple[Command, ...], epochs: Mapping[str, int]
    ) -> Answer:
        at = START + timedelta(seconds=self.seconds)
        answer = self.controller.perform(
            Order(commands=commands, caller=caller, at=at, elapsed_s=self.seconds, epochs=epochs)
        )
        self._append()
        return answer

    def beat(self, reach: str = "ABC") -> list[str]:
        at = START + timedelta(seconds=self.seconds)
        self.controller.tick(at=at, elapsed_s=self.seconds)
        self._append()
        return list(self.members.keep_leases(self.order, self.seconds, lambda name: name in reach))

    def acting(self) -> list[str]:
        return [one for one in THREE.names if self.members.of(one).acts(self.seconds)]

    def epoch(self, provider: str) -> int:
        return self.log.get(ProviderLease, ids.lease_id(provider)).epoch

    def intends(self, member: Member, request: str) -> None:
        """Have a member write an intent."""
        assert member.caller is not None
        until = START + timedelta(days=1)
        intent = OpenRequest(request, "cloud", Kind.HOST, "T", 3, None, until, "a test", (), 0)
        self.order(member.caller, (intent,), member.epochs)

    def _append(self) -> None:
        change = self.controller.take()
        if change:
            self.log.append(change.aggregates, fences=change.fences)
        self.controller.appended()


def test_the_first_one_leads_and_keeps_leading() -> None:
    with open_log(MEMORY) as log:
        site = Site(log)

        assert site.beat() == ["A"]
        for _ in range(20):
            site.seconds += 10
            assert site.beat() == []

        assert (site.acting(), site.epoch("cloud"), site.epoch("pool")) == (["A"], 1, 1)


def test_one_that_does_not_reach_the_controller_leads_until_its_own_count_is_over() -> None:
    with open_log(MEMORY) as log:
        site = Site(log)
        site.beat()

        site.seconds = 29.9
        assert (site.beat("BC"), site.acting()) == ([], ["A"])
        site.seconds = 30.0
        assert site.acting() == []
        assert (site.beat("BC"), site.acting()) == (["B"], ["B"])
        site.seconds = 40.0
        assert (site.beat(), site.acting()) == ([], ["B"])


def test_what_the_last_leader_writes_under_its_epoch_is_refused() -> None:
    with open_log(MEMORY) as log:
        site = Site(log)
        site.beat()
        site.intends(site.members.of("A"), "R1")
        site.seconds = 30.0
        site.beat("BC")
        before = log.head().position

        with pytest.raises(StaleEpochError, match="epoch 1 was superseded by epoch 2"):
            site.intends(site.members.of("A"), "R2")

        assert log.head().position == before


@given(
    st.lists(
        st.tuples(st.sampled_from((1, 5, 10, 29, 30, 31, 90)), st.sets(st.sampled_from("ABC"))),
        max_size=25,
    )
)
def test_however_they_reach_the_controller_there_are_never_two_and_who_acts_has_the_epoch(
    course: list[tuple[int, set[str]]],
) -> None:
    with open_log(MEMORY) as log:
        site = Site(log)
        for seconds, reach in course:
            site.seconds += seconds
            before = site.acting()
            new = site.beat("".join(reach))

            acting = site.acting()
            assert len(acting) <= 1
            assert set(new) <= set(acting) - set(before)
            for name in acting:
                assert site.members.of(name).epochs == {one: site.epoch(one) for one in PROVIDERS}
            if reach:
                assert acting, "somebody who can takes what is free"


SHORT = """name: short
until: 20min
provisioners: {names: [A, B], lease_term: 60s}
providers:
  - name: cloud
    templates: [{template_id: T, max_number: 9, price_per_hour: 1.00, provides: {slots: 1}}]
    simulation: {lead_time: {lag: 0s, boot: 1min, join: 0s}}
workload: {jobs: [{id: j1, submit: 65s, run_time: 2min}]}
timeline: [{at: 61s, do: %s, provisioner: A, lasts: 15s}]
expect:
  - {of: events, event: xce.lease.granted, equals: 1}
  - {of: events, event: xce.lease.regranted, equals: 0}
  - {asks: [{at: 65s, amount: 1}], within: 41s}
  - {of: ended, equals: 1}
"""


@pytest.mark.parametrize("trouble", ["isolate", "stall"])
def test_a_leader_that_is_back_before_its_lease_is_over_does_what_is_to_be_done(
    trouble: str,
) -> None:
    with open_log(MEMORY) as log:
        run = Runner(read_scenario((SHORT % trouble).encode(), "short.yaml"), log).run()

    assert [one.expectation for one in run.verdicts if not one.passed] == []
