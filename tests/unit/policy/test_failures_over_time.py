"""F03, F06 and F07 minute by minute: policy, engine, log and projections, with a provider that fails on purpose."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial

from tests.unit.policy.makers import demand, hosts
from tests.unit.projections.run import Run, at, cloud, minutes
from xce.domain.engine.calls import AskCall, GiveBackCall, Steps
from xce.domain.engine.commands import AcceptRequest, ConfirmReturn, RecordStatus
from xce.domain.engine.provisioner import Provisioner
from xce.domain.formats.policy import PolicyInput, PolicySettings
from xce.domain.formats.provider import ProviderDescription, TemplateOffer
from xce.domain.ports import Accepted, MachineReport, MachineResult, Refused, RequestStatus
from xce.domain.ports import StatusAnswer as Status
from xce.domain.provisioning.request import Request
from xce.replay.agenda import CountedIds


def offer(max_number: int = -1) -> TemplateOffer:
    return TemplateOffer(template_id="T", price_per_hour=Decimal(2), max_number=max_number)


def provider(name: str, *, priority: int = 0, max_number: int = -1) -> ProviderDescription:
    return cloud(name, offer(max_number)).model_copy(update={"priority": priority})


@dataclass
class Story:
    """One minute after the other: what is due at the provider, then a round.

    Attributes:
        wanted: hosts that the jobs need in all.
        ask: what the provider does with an ask: a refusal, or machines as they are reported a minute later.
        return_min: how long a return takes.
        asked: (minute, provider, hosts) of each ask.
        most: of hosts that existed at once.
    """

    run: Run
    settings: PolicySettings
    wanted: int
    ask: Callable[[AskCall], Refused | MachineResult]
    ask_min: int = 1
    return_min: int = 2
    asked: list[tuple[int, str, int]] = field(default_factory=list[tuple[int, str, int]])
    most: int = 0
    minute: int = 0

    def __post_init__(self) -> None:
        self._engine = Provisioner(CountedIds())
        self._due: list[tuple[int, Callable[[], None]]] = []

    def pass_minutes(self, count: int) -> None:
        for self.minute in range(count):
            self.run.now = at(self.minute)
            now_due = [act for due, act in self._due if due <= self.minute]
            self._due = [(due, act) for due, act in self._due if due > self.minute]
            for act in now_due:
                act()
            view = self.run.projections.inventory.view()
            self.most = max(self.most, len(view.instances))
            now = at(self.minute)
            self._go(self._engine.poll(view, now, self.settings, looked_at=now))
            self._go(self._engine.round(self._inputs())[1])

    def _inputs(self) -> PolicyInput:
        projections = self.run.projections
        view = projections.inventory.view()
        usable = sum(one.state in ("starting", "joined") for one in view.instances)
        open_asks = sum(
            one.amount - one.granted - one.failed
            for one in view.requests
            if one.state in ("intended", "accepted", "unknown")
        )
        missing = max(0, self.wanted - usable - open_asks)
        return PolicyInput(
            now=at(self.minute),
            position=projections.position,
            demand=demand(hosts("T", missing)) if missing else demand(),
            providers=projections.catalog.descriptions(),
            inventory=view,
            pauses=projections.catalog.pauses(at(self.minute)),
            failures=projections.failures.view(),
            settings=self.settings,
        )

    def _go(self, steps: Steps) -> None:
        for step in steps:
            self.run.attempt(*step.commands)
            for call in step.calls:
                if isinstance(call, AskCall):
                    self._asks(call)
                elif isinstance(call, GiveBackCall):
                    self._later(self.return_min, partial(self._gone, call))

    def _asks(self, call: AskCall) -> None:
        self.asked.append((self.minute, call.provider, call.ask.amount))
        answer = self.ask(call)
        if isinstance(answer, Refused):
            self._later(self.ask_min, lambda: self._answer(call, answer))
        else:
            self._answer(call, Accepted(f"theirs-{call.ask.tag}"))
            self._later(self.ask_min, lambda: self._report(call, answer))

    def _answer(self, call: AskCall, answer: Accepted | Refused) -> None:
        if isinstance(answer, Accepted):
            self.run.do(AcceptRequest(call.ask.tag, answer.provider_request_id))
            return
        failures = self.run.projections.failures.in_a_row(call.provider, call.ask.item)
        now = self.run.now
        self._go(self._engine.answered(call, answer, now, self.settings, failures))

    def _report(self, call: AskCall, result: MachineResult) -> None:
        machines = tuple(
            MachineReport(f"{call.ask.tag}-{n}", f"n-{call.ask.tag}-{n}", result)
            for n in range(call.ask.amount)
        )
        self.run.do(RecordStatus(call.ask.tag, Status(RequestStatus.COMPLETE, machines)))

    def _gone(self, call: GiveBackCall) -> None:
        for ours, _ in call.instances:
            self.run.do(ConfirmReturn(call.return_id, ours))

    def _later(self, after: int, act: Callable[[], None]) -> None:
        self._due.append((self.minute + after, act))


def test_f03_a_template_whose_hosts_never_join_is_asked_twice_then_paused() -> None:
    settings = PolicySettings(
        join_limit=minutes(9),  # granted a minute after the ask
        pause_after_refusal=minutes(30),
        longest_pause=timedelta(hours=2),
        failures_before_pause=2,
    )
    story = Story(
        Run(provider("cloud", max_number=10)), settings, 1, lambda _: MachineResult.SUCCEED
    )

    story.pass_minutes(50)

    assert story.asked == [(0, "cloud", 1), (10, "cloud", 1)]
    (pause,) = story.run.projections.catalog.pauses(at(49))
    assert (pause.item, pause.until) == ("T", at(50))
    assert "2 asks in a row came to nothing" in pause.why


def test_f06_each_eligible_provider_has_its_turn_before_one_is_tried_again() -> None:
    settings = PolicySettings(pause_after_refusal=minutes(5))
    story = Story(
        Run(provider("a1", priority=50), provider("a2", priority=50), provider("b", priority=40)),
        settings,
        1,
        lambda call: (
            MachineResult.SUCCEED
            if call.provider == "b"
            else Refused("InsufficientCapacity", "none left")
        ),
        ask_min=5,
    )

    story.pass_minutes(16)

    assert story.asked == [(0, "a1", 1), (5, "a2", 1), (10, "b", 1)]


def test_f06_a_second_failure_gives_a_longer_pause() -> None:
    settings = PolicySettings(pause_after_refusal=minutes(5))
    story = Story(
        Run(provider("a1")), settings, 1, lambda _: Refused("InsufficientCapacity", "none left")
    )

    story.pass_minutes(60)

    # Each answer comes after a minute; the pauses are of 5, 10, 20 and 40 minutes.
    assert [minute for minute, _, _ in story.asked] == [0, 6, 17, 38]


def test_f07_failed_launches_count_against_the_cap_and_lead_to_a_pause_and_one_probe() -> None:
    settings = PolicySettings(
        pause_after_refusal=minutes(30),
        longest_pause=timedelta(hours=4),
        failures_before_pause=3,
    )
    story = Story(Run(provider("cloud", max_number=4)), settings, 2, lambda _: MachineResult.FAIL)

    story.pass_minutes(60)

    assert story.most <= 4
    assert [amount for _, _, amount in story.asked] == [2, 2, 2, 1]
    last_of_three, probe = story.asked[2][0], story.asked[3][0]
    assert probe == last_of_three + 1 + 30
    assert story.run.projections.inventory.view().instances == ()
    requests = [
        one.event for one in story.run.log.read() if isinstance(one.event, Request.Intended)
    ]
    assert sum(one.amount for one in requests) == 7
