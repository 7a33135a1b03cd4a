"""Observers of every kind: what they make of a tool that fails, hangs or floods, and how often they look."""

import json
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from xce.adapters.observers import run as running
from xce.adapters.observers.looking import Command, FlexNet, Looker, observer_of, read_numbers
from xce.adapters.observers.run import run
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.observers import (
    CommandObserver,
    FeatureMapping,
    FlexNetObserver,
    RecordedObserver,
)

NOW = datetime(2026, 5, 12, 14, 7, tzinfo=UTC)


class Standing:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time


def flexnet(*servers: str) -> FlexNetObserver:
    return FlexNetObserver(
        kind="flexnet",
        name="o",
        servers=servers,
        features=(FeatureMapping(resource="sim", feature="F"),),
    )


TEXT = HEAD + server() + users("F", 20, 3) + pool("F") + session(end=", 3 licenses") + "\n"


def test_flexnet_asks_every_server_once_and_sums() -> None:
    calls: list[tuple[str, ...]] = []

    def tool(arguments: tuple[str, ...], limit_s: float) -> tuple[bytes, int]:
        calls.append(arguments)
        return TEXT.replace("27020@keys", arguments[-1]).encode(), 3

    (made,) = FlexNet(flexnet("1@a", "2@b"), Standing(), tool).look(4)
    assert calls == [
        ("lmutil", "lmstat", "-a", "-c", "1@a"),
        ("lmutil", "lmstat", "-a", "-c", "2@b"),
    ]
    assert (made.in_use, made.sequence, made.quality) == (6, 4, Quality.OK)


def test_the_text_of_a_tool_that_ended_needs_no_blank_line_at_its_end() -> None:
    def tool(arguments: tuple[str, ...], limit_s: float) -> tuple[bytes, int]:
        return TEXT.rstrip("\n").encode() + b"\n", 0

    (made,) = FlexNet(flexnet("1@a"), Standing(), tool).look(1)
    assert (made.quality, made.in_use) == (Quality.OK, 3)


def test_a_tool_that_hangs_is_no_observation() -> None:
    def tool(arguments: tuple[str, ...], limit_s: float) -> tuple[bytes, int]:
        raise TransientError("lmutil had no end after 20 s")

    (made,) = FlexNet(flexnet("1@a"), Standing(), tool).look(1)
    assert (made.quality, made.in_use) == (Quality.UNREACHABLE, None)


def command(text: bytes, code: int = 0) -> dict[str, Observation]:
    config = CommandObserver(kind="command", name="o", command=("x",), resources=("a", "b"))
    looked = Command(config, Standing(), lambda *_: (text, code)).look(1)
    return {each.resource: each for each in looked}


def test_a_command_says_numbers_in_either_form() -> None:
    made = command(
        b'{"resources": [{"name": "a", "inUse": 7, "issued": 20, "matched": {"j1": 2}}]}'
    )
    assert (made["a"].in_use, made["a"].issued, made["a"].matched) == (7, 20, {"j1": 2})
    assert (made["b"].quality, made["b"].in_use) == (Quality.UNREACHABLE, None)
    assert command(b'{"a": 7, "b": 0}')["b"].in_use == 0


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"nonsense", b'{"a": -1}', b'{"a": 1.5}', b'{"a": true}']
)
def test_a_command_that_says_something_else_is_no_observation(text: bytes) -> None:
    made = command(text)
    assert {each.quality for each in made.values()} == {Quality.UNREACHABLE}


def test_a_command_that_fails_is_no_observation_whatever_it_printed() -> None:
    assert command(b'{"a": 7}', code=1)["a"].in_use is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["resources", "name", "in_use", "matched", "x"]), inner)
    ),
    max_leaves=8,
)


@given(st.binary(max_size=200) | _JSON.map(lambda document: json.dumps(document).encode()))
def test_whatever_a_command_prints_is_read_or_refused(text: bytes) -> None:
    with suppress(InputError):
        for values in read_numbers(text).values():
            assert (values.get("in_use") or 0) >= 0


def test_recorded_observations_come_once_their_time_has_come(tmp_path: Path) -> None:
    clock = Standing()
    lines = [
        Observation(
            resource="a", source="o", quality=Quality.OK, in_use=number,
            observed_at=NOW + timedelta(minutes=number), received_at=NOW + timedelta(minutes=number),
        ).to_json()
        for number in (1, 2)
    ]  # fmt: skip
    (tmp_path / "seen.jsonl").write_text("\n".join(lines))
    config = RecordedObserver(kind="recorded", name="o", file="seen.jsonl")
    observer = observer_of(config, tmp_path, clock)
    assert observer.look(1) == ()
    clock.time += timedelta(minutes=1)
    assert [each.in_use for each in observer.look(2)] == [1]
    assert observer.look(3) == ()


def test_nobody_looks_more_often_than_its_interval() -> None:
    looks: list[int] = []

    def tool(*_: Any) -> tuple[bytes, int]:
        looks.append(1)
        return TEXT.encode(), 0

    taken: list[int] = []
    looker = Looker(
        [FlexNet(flexnet("1@a"), Standing(), tool)],
        lambda found: taken.append(found[0].sequence),
        first=100,
    )
    due = [looker.step(now_s) for now_s in (0.0, 10.0, 59.9, 60.0, 61.0)]
    assert due == [60.0, 60.0, 60.0, 120.0, 120.0]
    assert taken == [100, 101]
    assert len(looks) == 2


def test_an_interval_below_half_a_minute_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 30s"):
        FlexNetObserver.model_validate({**flexnet("a").model_dump(), "interval": "29s"})


def test_a_tool_runs_without_our_environment_and_in_its_own_group() -> None:
    script = (
        "import os, json; print(json.dumps([os.environ['LC_ALL'], os.getpgrp() == os.getpid()]))"
    )
    text, code = run([sys.executable, "-c", script], 60)
    assert (json.loads(text), code) == (["C", True], 0)


def test_a_tool_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    script = f"sleep 300 & echo $! >{mark}.part; mv {mark}.part {mark}; wait"
    with pytest.raises(TransientError, match="no end after"):
        run(["/bin/sh", "-c", script], 2)
    if mark.exists():
        child = int(mark.read_text())
        end = time.monotonic() + 60  # killed it is; to die it needs its turn on a busy machine
        while not _has_ended(child):
            assert time.monotonic() < end
            time.sleep(0.01)  # between looks, never instead of one


def _has_ended(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_a_tool_that_prints_without_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "OUTPUT_MAX", 1000)
    with pytest.raises(TransientError, match="printed more than 1000 bytes"):
        run(["/bin/sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxx; done"], 60)


def test_a_tool_that_is_not_there_is_an_error_to_try_again() -> None:
    with pytest.raises(TransientError, match="cannot be started"):
        run(["/no/such/lmutil"], 5)
