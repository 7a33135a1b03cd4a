"""What a script leaves running: it neither runs beside the next call nor writes on into an answer that nobody reads any more."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.providers.scripts import ACCEPTS, NOW, hosts, provider
from xce.adapters.providers import call
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.domain.ports import Accepted

ANSWER = """echo '{"requestId": "add-1"}'"""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "kept"
    for pid in _left(tmp_path / "kept"):
        os.kill(pid, signal.SIGKILL)


def _left(kept: Path) -> list[int]:
    return [pid for folder in (kept / "calls").iterdir() for pid in call.left_of(folder)]


def _until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("held", ["", "2>/dev/null", ">/dev/null"])
def test_a_process_that_holds_the_output_after_its_script_has_ended_is_ended(
    tmp_path: Path, kept: Path, held: str
) -> None:
    """It ignores signals, is in a session of its own, and would fill the disk."""
    made = provider(
        tmp_path,
        {
            "requestMachines": f'setsid sh -c \'trap "" TERM HUP; echo x >"$PRO_DATA_DIR/up"; read l\' {held} </dev/zero &\n'
            f'until [ -s "$PRO_DATA_DIR/up" ]; do :; done; {ANSWER}'
        },
    )

    assert made.ask(hosts(), NOW) == Accepted("add-1")

    _until(lambda: _left(kept) == [])


def test_a_process_that_has_let_go_of_the_output_is_left_alone(tmp_path: Path, kept: Path) -> None:
    made = provider(
        tmp_path,
        {"requestMachines": f"setsid sleep 600 >/dev/null 2>&1 &\n{ANSWER}"},
    )

    assert made.ask(hosts(), NOW) == Accepted("add-1")

    assert len(_left(kept)) == 1


def test_a_process_that_lets_go_of_the_output_only_after_the_script_has_ended_is_left_alone(
    tmp_path: Path, kept: Path
) -> None:
    """As each does that is begun in the background at the end: it may not have run at all by then."""
    made = provider(
        tmp_path,
        {
            "requestMachines": f"setsid sh -c 'sleep 0.2; exec sleep 600 >/dev/null 2>&1' &\n{ANSWER}"
        },
    )

    assert made.ask(hosts(), NOW) == Accepted("add-1")

    assert len(_left(kept)) == 1


def test_a_script_whose_shell_was_killed_does_not_run_on_beside_the_next_call(
    tmp_path: Path, kept: Path
) -> None:
    """As the kernel does where memory is short."""
    made = provider(tmp_path, {"requestMachines": 'trap "" TERM HUP; kill -9 $PPID; sleep 600'})

    with pytest.raises(OutcomeUnknownError, match="not known how the script ended"):
        made.ask(hosts(), NOW)

    _until(lambda: _left(kept) == [])


def test_what_an_earlier_process_left_running_without_a_trace_is_ended_first(
    tmp_path: Path, kept: Path
) -> None:
    """The disk was full when its shell began: it could not say that it ran."""
    made = provider(tmp_path, {"requestMachines": ACCEPTS})
    assert made.ask(hosts(), NOW) == Accepted("add-1")
    (folder,) = (kept / "calls").iterdir()
    (folder / "exit").unlink()
    (folder / "process").write_text("")
    left = os.posix_spawn("/bin/sleep", ["sleep", "600"], {call.MARK: str(folder)})
    # A process has no environment to read yet in its very first moment.
    _until(lambda: call.MARK.encode() in Path(f"/proc/{left}/environ").read_bytes())

    with pytest.raises(OutcomeUnknownError):
        provider(tmp_path, {}).ask(hosts(), NOW)

    _until(lambda: os.waitid(os.P_PID, left, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
    assert os.waitpid(left, 0)[1] == signal.SIGKILL
