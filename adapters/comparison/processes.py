"""Runs in processes of this machine: one process a run, at most so many at once; none outlives the comparison."""

import gc
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final, NoReturn, cast

from xce.adapters.comparison.runs import Run, carry_out
from xce.adapters.deaf import ended_with, start_deaf
from xce.domain.errors import XceError
from xce.domain.formats.comparison import RunOutcome
from xce.replay.workloads.workload import Workload

#: Told the key of a run and how many of its jobs have ended.
Told = Callable[[str, int], None]
#: So often a process says how far it is.
STEPS: Final = 200


@dataclass(frozen=True, slots=True)
class Failed:
    """A run of which nothing came."""

    run: Run
    why: str


@dataclass(frozen=True, slots=True)
class _Started:
    run: Run
    process: SpawnProcess


def in_processes(
    runs: Sequence[Run], workloads: Mapping[str, Workload], processes: int, told: Told
) -> Iterator[RunOutcome | Failed]:
    """Carry runs out and yield what comes of them, as they end; closing the iterator ends those that go on.

    Args:
        runs: what to carry out.
        workloads: by digest.
        processes: at most so many at once.
        told: now and then told how far a run is.
    """
    context = get_context("spawn")
    waiting = deque(runs)
    started: dict[Connection, _Started] = {}
    try:
        while waiting or started:
            while waiting and len(started) < processes:
                run = waiting.popleft()
                pipe: Any = context.Pipe(duplex=False)
                ours, theirs = _ends(pipe)
                process = context.Process(
                    target=_child,
                    args=(run, workloads[run.digest], theirs, os.getpid()),
                    daemon=True,
                )
                start_deaf(process)
                theirs.close()
                started[ours] = _Started(run, process)
            for connection in cast("list[Connection]", wait(list(started))):
                heard = _hear(connection, started[connection], told)
                if heard is not None:
                    one = started.pop(connection)
                    connection.close()
                    one.process.join()
                    yield heard
    finally:
        for connection, one in started.items():
            one.process.terminate()
            one.process.join()
            connection.close()


def _ends(pipe: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """Return the reading and the writing end of a pipe; what they are called differs by platform."""
    return pipe


def _hear(connection: Connection, one: _Started, told: Told) -> RunOutcome | Failed | None:
    """Return what came of a run, None while it goes on."""
    try:
        message: object = connection.recv()
    except (EOFError, OSError):
        one.process.join()
        return Failed(one.run, f"its process ended with {ended_with(one.process.exitcode)}")
    match message:
        case int():
            told(one.run.key, message)
            return None
        case RunOutcome():
            return message
        case _:
            return Failed(one.run, str(message))


def _child(run: Run, workload: Workload, connection: Connection, parent: int) -> None:
    """Carry one run out and say what came of it; without its parent, end."""
    # Many values that live for one session, and next to no cycles.
    gc.set_threshold(50_000, 20, 20)
    step = max(1, run.jobs // STEPS)
    said = 0

    def tell(ended: int) -> None:
        nonlocal said
        if os.getppid() != parent:
            _leave()
        if ended >= said + step:
            said = ended
            connection.send(ended)

    with suppress(BrokenPipeError):
        try:
            outcome = carry_out(run, workload, tell)
        except XceError as error:
            connection.send(str(error))
        else:
            connection.send(outcome)


def _leave() -> NoReturn:
    os._exit(1)
