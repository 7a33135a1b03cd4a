"""Logs of earlier releases (``tests/golden.py``): each still replays, to the state that was written down then."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from tests.conftest import ROOT
from tests.golden import state_of
from tests.postgresql import Server
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import NO_FENCING, NewRow
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError
from xce.domain.events.base import applies
from xce.domain.events.stored import EVENTS, EventRegistry
from xce.domain.provisioning.lease import ProviderLease

FOLDER = ROOT / "tests" / "data" / "logs"
LOGS = sorted(FOLDER.glob("*.db"))


@pytest.fixture(params=LOGS, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a golden log, so that nothing can touch it."""
    return Path(shutil.copy(request.param, tmp_path / request.param.name))


def kept_state(golden: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((FOLDER / golden.name).with_suffix(".json").read_text())
    return state


def require_part(found: object, kept: object, path: str = "") -> None:
    """What was written down is all there; a later release may know more of it."""
    if isinstance(kept, dict):
        assert isinstance(found, dict), path
        mine = cast("dict[str, object]", found)
        for key, value in cast("dict[str, object]", kept).items():
            assert key in mine, f"{path}/{key} is gone"
            require_part(mine[key], value, f"{path}/{key}")
    elif isinstance(kept, list):
        assert isinstance(found, list), path
        ours, theirs = cast("list[object]", found), cast("list[object]", kept)
        assert len(ours) == len(theirs), path
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            require_part(one, other, f"{path}/{number}")
    else:
        assert found == kept, path


def test_there_is_a_golden_log() -> None:
    assert LOGS


def test_a_golden_log_replays_to_its_golden_state(golden: Path) -> None:
    with open_log(golden, read_only=True) as log:
        require_part(state_of(log), kept_state(golden))
        report = verify(log)
    for name in ("storage", "chain", "head", "fences", "readable", "invariant-6", "invariant-8"):
        assert report.check(name).passed, name


def test_a_golden_log_replays_on_postgresql_too(golden: Path, postgresql: Server) -> None:
    with open_log(golden, read_only=True) as old, open_log(postgresql.address()) as log:
        log.recorder.append([NewRow(*row[1:5]) for row in old.recorder.rows()], NO_FENCING)
        require_part(state_of(log), kept_state(golden))


def test_a_golden_log_can_be_gone_on_with(golden: Path) -> None:
    with open_log(golden) as log:
        before = log.head().position
        lease = log.get(ProviderLease, "lease:cloud")
        lease.regrant(
            holder="p2",
            epoch=lease.epoch + 1,
            term=lease.term,
            at=lease.modified_on,
            by="admin/alice",
        )
        log.append([lease])
        assert log.head().position == before + 1
        assert verify(log).check("chain").passed


class Freed(ProviderLease.Event):
    """``ProviderLease.Released`` under another name in another place, as a later release may have it."""

    TOPIC: ClassVar[str] = ProviderLease.Released.TOPIC
    FORMER_TOPICS: ClassVar[tuple[str, ...]] = ProviderLease.Released.FORMER_TOPICS


applies(Freed)(
    lambda lease, event: vars(ProviderLease)["_released"](
        lease,
        ProviderLease.Released.model_validate(event.model_dump()),
    )
)


def test_renaming_a_class_breaks_nothing(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table: Mapping[str, Any] = ProviderLease.TRANSITIONS
    renamed = {("Freed" if name == "Released" else name): row for name, row in table.items()}
    monkeypatch.setattr(Freed, "AGGREGATE", ProviderLease, raising=False)
    monkeypatch.setattr(ProviderLease, "TRANSITIONS", {**table, **renamed})
    classes = [Freed if c is ProviderLease.Released else c for c in EVENTS.event_classes()]
    with open_log(golden, read_only=True, registry=EventRegistry(classes)) as log:
        seen = [type(recorded.event) for recorded in log.read()]
        assert Freed in seen
        assert ProviderLease.Released not in seen
        require_part(state_of(log), kept_state(golden))


def test_an_event_that_is_not_known_stops_with_its_topic_and_position(golden: Path) -> None:
    with open_log(golden, read_only=True) as log:
        position = next(
            r.position for r in log.read() if isinstance(r.event, ProviderLease.Released)
        )
    classes = [c for c in EVENTS.event_classes() if c is not ProviderLease.Released]
    with open_log(golden, read_only=True, registry=EventRegistry(classes)) as log:
        with pytest.raises(BrokenLogError, match=r"event \d+ .*'xce.lease.released'") as caught:
            state_of(log)
        assert caught.value.position == position


def test_the_first_golden_log_has_every_event_of_its_time() -> None:
    """New events go into the next one: ``python -m tests.golden tests/data/logs/NNNN``."""
    with open_log(LOGS[0], read_only=True) as log:
        topics = {row.topic for row in log.recorder.rows()}
    assert len(topics) == 47
    assert topics <= EVENTS.names()


def test_the_newest_golden_log_has_every_event_of_this_release() -> None:
    """Else write the next one: ``python -m tests.golden tests/data/logs/NNNN``."""
    with open_log(LOGS[-1], read_only=True) as log:
        topics = {row.topic for row in log.recorder.rows()}
    assert topics >= {event.TOPIC for event in EVENTS.event_classes()}
