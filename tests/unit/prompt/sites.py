"""A small site for the tests of the prompt, and hands without a keyboard."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from xce.adapters.settings.load import read_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import InputError
from xce.domain.ports import EventLog
from xce.replay.prompt.answers import Answer, Table
from xce.replay.prompt.play import Site
from xce.replay.prompt.prompt import Prompt
from xce.replay.recording import RecordingWriter

#: Two kinds of hosts of one cloud, tokens that a pool lends and a server shows, one own host, and a limit.
TEXT = """name: workshop
about: For the tests of the prompt.
start: 2026-03-01T10:00:00Z
until: 2h
cluster:
  hosts: [{name: own1, attributes: {zone: home}, total: {slots: 2, mem: 8GiB}}]
  shared: [{name: lic, owned: 2, provider: lender, max_borrow: 4, observer: server, idle_return_after: 10min}]
  limits: [{name: per-user, resource: slots, amount: 8, per: user}]
providers:
  - name: cloud
    lead_time: {p50: 2min, p95: 5min}
    templates:
      - {template_id: small, max_number: 6, priority: 1, price_per_hour: 0.20, attributes: {zone: away}, provides: {slots: 2, mem: 8GiB}}
      - {template_id: large, max_number: 2, priority: 1, price_per_hour: 0.90, attributes: {zone: away}, provides: {slots: 8, mem: 64GiB}}
    simulation:
      lead_time: {lag: 20s, boot: {p50: 90s, p95: 4min}, join: 10s}
      boot_failure: 0.1
  - name: lender
    kinds: [countable]
    resources: [{name: lic, capacity: 4, price_per_hour: 2.00}]
servers:
  - name: server
    features: [{name: lic, linger: 1min}]
workload:
  jobs:
    - {id: "a[1-6]", every: 3min, run_time: 20min, tasks: 2, user: ann}
    - {id: "b[1-4]", submit: 5min, every: 1min, run_time: {p50: 10min, p95: 30min}, resreq: "rusage[lic=1]", user: bob}
    - {id: big, submit: 12min, run_time: 15min, tasks: 4, resreq: "rusage[mem=10240] span[hosts=1]", user: cy}
    - {id: never, submit: 1min, run_time: 5min, resreq: "select[fpga]", user: cy}
session: {idle_host_after: 5min}
expect:
  - {of: ended, equals: 11}
"""


def the_site(seed: int | None = None) -> Site:
    return Site(read_scenario(TEXT.encode(), "workshop.yaml"), seed=seed)


@dataclass
class Hands:
    """See ``Outside``: nothing is read, recordings are kept in memory.

    Attributes:
        patience: an interrupt comes after so many moments; None: never.
    """

    recordings: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    patience: int | None = None

    def load(self, words: tuple[str, ...]) -> Site:
        if words != ("workshop.yaml",):
            raise InputError.of(words[0], "cannot be read: No such file or directory")
        return the_site()

    def new_log(self) -> EventLog:
        return open_log(MEMORY)

    @contextmanager
    def new_recording(self, path: str, site: Site) -> Generator[RecordingWriter]:
        lines = self.recordings[path] = []
        writer = RecordingWriter(
            lines.append,
            by="a test",
            release="0",
            at=datetime(2026, 3, 1, tzinfo=UTC),
            config=site.scenario.config(site.seed).model_dump(mode="json"),
        )
        yield writer
        writer.end()

    def is_interrupted(self) -> bool:
        if self.patience is None:
            return False
        self.patience -= 1
        return self.patience < 0


class Talk:
    """A prompt at the small site, to be talked to line by line."""

    def __init__(self, *lines: str, seed: int | None = None) -> None:
        self.hands = Hands()
        self.prompt = Prompt(self.hands)
        self.prompt.begin(the_site(seed))
        for line in lines:
            self.say(line)

    def say(self, line: str) -> Answer:
        answer = self.prompt.carry_out(line)
        assert answer is not None
        return answer

    def ask(self, line: str) -> str:
        """Return an answer as people read it; cells of tables are parted by one blank."""
        lines: list[str] = []
        for part in self.say(line).parts:
            lines += [part] if isinstance(part, str) else lines_of(part)
        return "\n".join(lines)

    def wrong(self, line: str) -> str:
        """Return what is said of a line that is wrong."""
        try:
            self.say(line)
        except InputError as error:
            return str(error)
        raise AssertionError(f"{line!r} is not wrong")


def lines_of(table: Table) -> list[str]:
    return [" ".join(row) for row in (table.headings, *table.rows)]
