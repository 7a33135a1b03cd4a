"""A rule of the core that is changed on purpose does not get past a recording that was made before (SPEC R2)."""

import pytest

from tests.replay.rich import rich_recording
from tests.replay.rules import RULES, Rule
from xce.domain.formats.policy import DecisionKind
from xce.replay.recording import RecordedSession, RecordingReader
from xce.replay.rounds import RecordedRound
from xce.replay.verification import verify


def test_the_recording_that_the_rules_are_tried_on_verifies() -> None:
    verdict = verify(rich_recording(), "rich")

    assert verdict.mismatch is None
    assert verdict.whole
    assert verdict.counts.sessions == verdict.counts.rounds > 100


def test_every_kind_of_thing_happens_in_it() -> None:
    kinds: set[DecisionKind] = set()
    said: set[str] = set()
    for entry in RecordingReader("rich").entries(rich_recording()):
        if isinstance(entry, RecordedRound):
            kinds.update(one.kind for one in entry.decisions)
        elif isinstance(entry, RecordedSession):
            said.update(name for name in ("allocations", "pending") if entry.result[name])
            said.update(name for name in ("hosts", "counts") if entry.result["idle"][name])
            said.update(name for name in ("countable", "order") if entry.result["demand"][name])

    assert said == {"allocations", "pending", "hosts", "counts", "countable", "order"}
    assert kinds >= {
        DecisionKind.REQUEST, DecisionKind.RETURN, DecisionKind.PAUSE, DecisionKind.HOLD,
    }  # fmt: skip


@pytest.mark.parametrize("changed", RULES, ids=lambda rule: rule.name.replace(" ", "-"))
def test_a_changed_rule_is_found_where_it_first_matters(
    changed: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = rich_recording()
    changed.change(monkeypatch)

    found = verify(lines, "rich").mismatch

    assert found is not None
    assert (found.round is None) == (changed.kind == "session")
    assert found.path.startswith(changed.paths)
    assert found.recorded != found.found
    monkeypatch.undo()
    assert_all_is_well_before(lines, found.session)


def assert_all_is_well_before(lines: tuple[str, ...], session: int) -> None:
    """What comes before the session that was named does verify, with the rule as it is and as it was."""
    marks = [n for n, line in enumerate(lines) if f'"kind":"session","number":{session}' in line]
    assert verify(lines[: marks[0]], "before").mismatch is None


def test_a_difference_that_is_about_a_job_names_it() -> None:
    """Half of the changed rules are first seen at a job; the others at what concerns none or all."""
    named = 0
    for rule in RULES:
        with pytest.MonkeyPatch.context() as patch:
            rule.change(patch)
            found = verify(rich_recording(), "rich").mismatch
        assert found is not None
        named += found.job is not None
        if found.path.startswith(("allocations", "pending", "reason_sets")):
            assert found.job is not None, rule.name

    assert named >= len(RULES) / 2
