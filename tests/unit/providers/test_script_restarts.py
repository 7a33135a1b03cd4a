"""What becomes of a call whose caller died, or was frozen: found again after its end, certainly never made, or not made any more."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.unit.providers.scripts import (
    ACCEPTS,
    COUNT,
    NOW,
    hosts,
    prints,
    provider,
    runs,
    status_of,
    write_scripts,
)
from xce.adapters.providers import call
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.errors import TransientError
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Accepted, RequestStatus

CALLER = """
    import sys
    from datetime import UTC, datetime
    from pathlib import Path
    from xce.adapters.providers.script_provider import ScriptProvider
    from xce.domain.formats.provider import Kind
    from xce.domain.formats.script_provider import ScriptSettings
    from xce.domain.ports import Ask
    folder = Path(sys.argv[1])
    made = ScriptProvider(ScriptSettings(name="p", folder=str(folder / "provider")), folder / "kept")
    now = datetime(2026, 3, 2, tzinfo=UTC)
    made.ask(Ask("R1", Kind.HOST, "t1", 1), now) if sys.argv[2] == "ask" else made.status("add-1", now)
"""


@pytest.mark.parametrize(
    ("what", "script", "answer"),
    [
        ("ask", "requestMachines", '{"requestId": "add-1"}'),
        ("status", "getRequestStatus", status_of([])),
    ],
)
def test_what_a_script_says_after_its_caller_was_killed_is_found_again(
    tmp_path: Path, what: str, script: str, answer: str
) -> None:
    body = COUNT + 'touch "$PRO_DATA_DIR/begun"; read line <"$PRO_DATA_DIR/go"; ' + prints(answer)
    data = tmp_path / "kept" / "data"
    provider(tmp_path, {script: body})
    os.mkfifo(data / "go")
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CALLER), str(tmp_path), what])
    _until(lambda: (data / "begun").exists())
    caller.send_signal(signal.SIGKILL)
    caller.wait(60)
    (data / "go").write_text("on\n")

    made = provider(tmp_path, {})

    if what == "ask":
        assert made.ask(hosts(), NOW) == Accepted("add-1")
        assert made.recall("R1") == Accepted("add-1")
        assert made.recall("R2") is None
    else:
        assert made.status("add-1", NOW).status is RequestStatus.COMPLETE
    assert runs(tmp_path) == 1


def test_an_ask_whose_script_never_began_is_made(tmp_path: Path) -> None:
    made = provider(tmp_path, {"requestMachines": ACCEPTS})
    made.ask(hosts(), NOW)
    (folder,) = (tmp_path / "kept/calls").iterdir()
    for name in ("process", "exit", "stdout", "stderr"):
        (folder / name).unlink()
    assert call.never_ran(folder)

    assert provider(tmp_path, {}).ask(hosts(), NOW) == Accepted("add-1")
    assert runs(tmp_path) == 2


@pytest.mark.parametrize("left_s", [60.0, 0.0])
def test_a_script_begins_only_while_its_caller_may_act(tmp_path: Path, left_s: float) -> None:
    write_scripts(tmp_path / "provider", {"requestMachines": COUNT + ACCEPTS})
    settings = ScriptSettings(name="p", folder=str(tmp_path / "provider"))
    made = ScriptProvider(settings, tmp_path / "kept", left_s=lambda: left_s)

    if left_s:
        assert made.ask(hosts(), NOW) == Accepted("add-1")
        return
    with pytest.raises(TransientError, match="was not started"):
        made.ask(hosts(), NOW)
    assert not (tmp_path / "kept/data/runs").exists()
    assert made.recall("R1") is None, "it is certain that it was not asked"


def test_after_another_start_of_the_machine_a_run_without_a_trace_is_unknown(
    tmp_path: Path,
) -> None:
    made = provider(tmp_path, {"requestMachines": ACCEPTS})
    made.ask(hosts(), NOW)
    (folder,) = (tmp_path / "kept/calls").iterdir()
    for name in ("process", "exit"):
        (folder / name).unlink()
    (folder / "boot").write_text("another")

    with pytest.raises(OutcomeUnknownError):
        provider(tmp_path, {}).ask(hosts(), NOW)
    assert runs(tmp_path) == 1


def _until(done: object) -> None:
    assert callable(done)
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.01)
