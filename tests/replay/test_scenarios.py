"""Every scenario that comes with the project holds; and broken code does not get past them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import ROOT
from xce.adapters.settings.load import load_scenario, read_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.demand import catalog_pass
from xce.domain.policy import backoff
from xce.domain.provisioning.instance import InstanceState
from xce.projections import catalog, failures
from xce.replay import shell, world
from xce.replay.providers import SimulatedProvider
from xce.replay.scenario.run import Runner, ScenarioRun

SCENARIOS = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
START = "start: 2026-03-01T10:00:00Z\n"


def run_file(path: Path) -> ScenarioRun:
    with open_log(MEMORY) as log:
        return Runner(load_scenario(path), log).run()


def run_text(text: str, seed: int | None = None) -> ScenarioRun:
    with open_log(MEMORY) as log:
        return Runner(read_scenario(text.encode(), "made-up.yaml"), log, seed=seed).run()


def not_met(run: ScenarioRun) -> list[str]:
    return [f"{one.expectation}: found {one.found}" for one in run.verdicts if not one.passed]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_holds(path: Path) -> None:
    scenario = load_scenario(path)

    assert not_met(run_file(path)) == []
    assert scenario.name == path.stem, "its name is that of its file"
    assert scenario.about
    assert scenario.expect


@pytest.mark.parametrize("case", [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 24, 25, 27, 29])  # fmt: skip
def test_a_field_case_with_a_course_in_time_has_its_scenario(case: int) -> None:
    assert [path for path in SCENARIOS if path.name.startswith(f"f{case:02}-")]


def test_the_same_seed_gives_the_same_bytes_and_another_one_another_run() -> None:
    text = (ROOT / "examples" / "scenarios" / "an-evening-with-trouble.yaml").read_text()

    first, again, other = run_text(text), run_text(text), run_text(text, seed=99)

    assert first.result().to_json() == again.result().to_json()
    assert first.moments == again.moments
    assert first.report.log.digest != other.report.log.digest


# ------------------------------------------------------------- broken on purpose
def _true(*args: object, **others: object) -> bool:
    return True


def _false(*args: object, **others: object) -> bool:
    return False


Break = Callable[[pytest.MonkeyPatch], None]


def _in_flight_is_no_supply(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog.LiveCatalog, "_asked", lambda *args: [])
    patch.setattr(catalog.LiveInventory, "in_flight", lambda self: ((), ()))


def _a_look_finds_no_job(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(world.World, "look", lambda self, ones: dict.fromkeys(ones, False))


def _failures_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(failures.Failures, "view", lambda self: ())


def _no_turn_for_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog.LiveCatalog, "_had_its_turn", _false)


def _no_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(backoff, "pause_for", lambda *args: timedelta(0))


def _an_unknown_outcome_is_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shell.Provisioner, "poll", _without_outcomes(shell.Provisioner.poll))


def _without_outcomes(poll: Callable[..., object]) -> Callable[..., object]:
    def broken(self: object, inventory: object, *args: object, **others: object) -> object:
        known = inventory.model_copy(  # type: ignore[attr-defined]  # an Inventory
            update={
                "requests": tuple(
                    entry
                    for entry in inventory.requests  # type: ignore[attr-defined]
                    if entry.provider_request_id is not None
                )
            }
        )
        return poll(self, known, *args, **others)

    return broken


def _measured_values_are_not_learned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog.LiveCatalog, "_measured", lambda self, offer: {})


def _never_joined_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("xce.domain.engine.polling._useless", lambda *args: ())


def _late_answers_are_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("xce.domain.engine.polling._too_late", _true)


def _observations_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(world.Meter, "observe", _true)


def _paid_hours_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("xce.domain.policy.reclaim_hosts.late_in_block", _true, raising=True)


@pytest.mark.parametrize(
    ("broken", "noticed_by"),
    [
        (_in_flight_is_no_supply, "f01-starting-hosts-are-supply"),
        (_never_joined_stay, "f03-hosts-that-never-join"),
        (_an_unknown_outcome_is_nothing, "f04-crash-after-the-call"),
        (_late_answers_are_not_heard, "f05-a-request-that-runs-for-ever"),
        (_no_turn_for_others, "f06-the-fallback-is-reached"),
        (_failures_are_forgotten, "f07-errored-machines-count"),
        (_a_look_finds_no_job, "f10-a-job-slips-in"),
        (_measured_values_are_not_learned, "f17-a-host-smaller-than-promised"),
        (_an_unknown_outcome_is_nothing, "f19-an-answer-that-cannot-be-read"),
        (_observations_are_ignored, "f25-licence-counts-that-disagree"),
    ],
)
def test_what_is_broken_on_purpose_is_noticed(
    monkeypatch: pytest.MonkeyPatch, broken: Break, noticed_by: str
) -> None:
    broken(monkeypatch)
    try:
        found = not_met(run_file(ROOT / "examples" / "scenarios" / f"{noticed_by}.yaml"))
    except AssertionError as error:  # the world itself does not let it happen
        found = [str(error)]

    assert found
