"""Parts of a campaign in processes of this machine, which are deaf to key presses and end with the campaign."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from os import getpid
from typing import Any, Generic, TypeVar, cast

from xce.adapters.deaf import ended_with, start_deaf
from xce.domain.errors import PermanentError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class _Worker(Generic[T]):
    process: SpawnProcess
    part: T


def in_processes(work: Callable[[T, int], R], parts: Sequence[T], processes: int) -> Iterator[R]:
    """Do the work of each part and yield what came of it, as they end; closing the iterator ends the processes.

    Args:
        work: given a part and the id of this process; a function of a module.
        parts: what is to be done.
        processes: at most so many at once.

    Raises:
        PermanentError: a process ended before its part did.
    """
    context = get_context("spawn")
    waiting = deque(parts)
    workers: dict[Connection, _Worker[T]] = {}
    try:
        while waiting and len(workers) < processes:
            pipe: Any = context.Pipe()
            ours: Connection = pipe[0]
            theirs: Connection = pipe[1]
            process = context.Process(target=_serve, args=(work, theirs, getpid()), daemon=True)
            start_deaf(process)
            theirs.close()
            part = waiting.popleft()
            workers[ours] = _Worker(process, part)
            ours.send(part)
        while workers:
            for connection in cast("list[Connection]", wait(list(workers))):
                worker = workers[connection]
                result = _hear(connection, worker)
                if waiting:
                    worker.part = waiting.popleft()
                    connection.send(worker.part)
                else:
                    del workers[connection]
                    connection.close()
                    worker.process.join()
                yield cast("R", result)
    finally:
        for connection, worker in workers.items():
            worker.process.terminate()
            worker.process.join()
            connection.close()


def _hear(connection: Connection, worker: "_Worker[Any]") -> object:
    try:
        return connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        raise PermanentError(
            f"a process ended with {ended_with(worker.process.exitcode)} before its part {worker.part} did"
        ) from None


def _serve(work: "Callable[[Any, int], Any]", connection: Connection, parent: int) -> None:
    """Do parts until there are no more; the other end closes when its process ends, however it does."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(work(connection.recv(), parent))
