"""What a provider really said, on its way to the log."""

from collections import deque
from typing import Final

from xce.adapters.providers.evidence import Evidence
from xce.domain.engine.commands import RecordEvidence
from xce.domain.provisioning.evidence import TEXT_MAX

#: Calls whose words are kept with one outcome.
EVIDENCE_TOGETHER: Final = 5


class Heard:
    """What a provider said in calls whose outcome is not recorded yet; the newest few."""

    def __init__(self) -> None:
        self._said: deque[Evidence] = deque(maxlen=EVIDENCE_TOGETHER)

    def put(self, evidence: Evidence) -> None:
        """Keep what was said."""
        self._said.append(evidence)

    def take(self) -> tuple[Evidence, ...]:
        """Return what was said, and forget it."""
        said = tuple(self._said)
        self._said.clear()
        return said


def record_of(said: Evidence, provider: str, name: str) -> RecordEvidence:
    """Return the command that keeps what was said, under a name."""
    return RecordEvidence(
        evidence=name,
        provider=provider,
        call=said.script,
        subject=said.subject,
        arguments=said.arguments,
        exit_code=said.exit_code,
        milliseconds=None if said.seconds is None else round(said.seconds * 1000),
        digest=said.digest,
        output=said.output[:TEXT_MAX],
        log=said.log[:TEXT_MAX],
        step=said.step,
        killed=said.why_killed,
    )
