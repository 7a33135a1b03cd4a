"""A controller without its service: stands by, takes over, appends for four clients at once, and says on stdout what happens.

Lines: ``primary EPOCH``, ``saved POSITION:DIGEST`` for each acknowledged append, ``refused`` when the fence stopped it. Ends when it is refused or killed.
"""

import sys
from collections.abc import Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from tests.stories import Story
from xce.adapters.store.election import Role
from xce.adapters.store.group_commit import GroupCommit
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.standby import Standby
from xce.domain.errors import StaleEpochError, TransientError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Head, Recorded

A = TypeVar("A", bound=Aggregate[Any])
CLIENTS = 4
_OUT = Lock()


def say(*words: object) -> None:
    with _OUT:
        print(*words, flush=True)


class Client:
    """What a client's story sees of the log; every append carries the primary's fence."""

    def __init__(self, log: StoredLog, commit: GroupCommit, epoch: int) -> None:
        self._log = log
        self._commit = commit
        self._epoch = epoch

    def get(self, aggregate_class: type[A], aggregate_id: str) -> A:
        return self._log.get(aggregate_class, aggregate_id)

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        recorded = self._commit.append(
            aggregates, fences={**(fences or {}), "primary": self._epoch}
        )
        say("saved", Head(recorded[-1].position, recorded[-1].digest))
        return recorded


def work(client: Client, name: str, lost: Event) -> None:
    """Tell stories until somebody else is the primary; one whose session was ended tries again, as a service would."""
    number = 0
    while not lost.is_set():
        number += 1
        steps = Story(client, f"-{name}-{number}").steps()  # type: ignore[arg-type]  # a story appends and gets
        for step in steps:
            try:
                step()
            except StaleEpochError:
                lost.set()
                return
            except TransientError:
                break  # what became of it, the log knows; the next story has names of its own


def main(place: str, name: str, detection_s: str) -> None:
    with (
        open_log(place, lock_timeout_s=2) as log,
        Standby(log, name=name, detection_s=float(detection_s)) as standby,
    ):
        standby.step()
        say("standing by")
        assert standby.wait(Event()) is Role.PRIMARY
        say("primary", standby.epoch)
        lost = Event()
        with (
            standby.signs(
                on_lost=lambda: None
            ),  # goes on although it knows better: the fence must stop it
            GroupCommit(log, appended=standby.follower.appended) as commit,
        ):
            client = Client(log, commit, standby.epoch)
            threads = [
                Thread(target=work, args=(client, f"{name}{number}", lost))
                for number in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    say("refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
