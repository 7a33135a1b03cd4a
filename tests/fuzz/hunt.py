"""Feeds readers with texts that are made up, more of them from those that led to something new; keeps what breaks one."""

import resource
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Final

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import Target

#: Texts that led to something new; beyond so many, an old one makes room.
_CORPUS_MAX: Final = 400
#: Shapes that are remembered; a reader that says something new each time teaches nothing.
_SHAPES_MAX: Final = 3000


@dataclass(frozen=True)
class Finding:
    """A text that a reader did not survive, or did not read within its bound of CPU time."""

    target: str
    text: bytes
    why: str


@dataclass
class Hunt:
    """One reader, and what was tried on it."""

    target: Target
    seed: str
    #: CPU seconds that one text of at most 64 KiB may take; far above what any needs.
    patience_s: float = 20.0
    #: Told of a finding at once.
    tell: Callable[[Finding], None] = lambda finding: None
    findings: list[Finding] = field(default_factory=list[Finding])
    tried: int = 0
    slowest_s: float = 0.0

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed} {self.target.name}")
        self._corpus = list(self.target.seeds)
        self._shapes: set[str] = set()
        self._reasons: set[str] = set()

    def seeds(self) -> None:
        """Feed what the reader understands."""
        for text in self.target.seeds:
            self._feed(text)

    def once(self) -> None:
        """Feed one text that is made up."""
        text = mutated(self._random, self._random.choice(self._corpus), self._corpus)
        shape = self._feed(text)
        if shape not in self._shapes and len(self._shapes) < _SHAPES_MAX:
            self._shapes.add(shape)
            if len(self._corpus) >= _CORPUS_MAX:
                at = self._random.randrange(len(self.target.seeds), _CORPUS_MAX)
                del self._corpus[at]
            self._corpus.append(text)

    def _feed(self, text: bytes) -> str:
        began = time.process_time()
        self.tried += 1
        try:
            shape = self.target.feed(text)
        except Exception as error:  # noqa: BLE001 - this is what is hunted
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._found(
                text,
                f"{type(error).__name__} {where.name}:{where.lineno}",
                "".join(traceback.format_exception(error)),
            )
            shape = "finding"
        took = time.process_time() - began
        self.slowest_s = max(self.slowest_s, took)
        if took > self.patience_s:
            self._found(text, "slow", f"it took {took:.1f} s of CPU time")
        return shape

    def _found(self, text: bytes, key: str, why: str) -> None:
        if key not in self._reasons:
            self._reasons.add(key)
            self.findings.append(Finding(self.target.name, text, why))
            self.tell(self.findings[-1])


def peak_mib() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def name_of(finding: Finding) -> str:
    """Return a name for a file with the text of a finding."""
    return f"{finding.target.replace('/', '_').replace(' ', '_')}-{sha256(finding.text).hexdigest()[:12]}"


def hunt_for(
    hunts: list[Hunt], seconds: float, say: Callable[[str], None], every_s: float = 60.0
) -> None:
    """Hunt in turns until the time is over, and say now and then how far it is."""
    for one in hunts:
        one.seeds()
    began = time.monotonic()
    said = began
    while time.monotonic() - began < seconds:
        for one in hunts:
            for _ in range(20):
                one.once()
        if time.monotonic() - said >= every_s:
            said = time.monotonic()
            count, found = sum(one.tried for one in hunts), sum(len(one.findings) for one in hunts)
            say(
                f"{said - began:.0f} s: {count} texts, {found} findings, at most {peak_mib():.0f} MiB"
            )
