"""Evidence: what was really said in a call of a provider, beside the outcome that it led to.

So a replay never calls anything, and an auditor can see the words. It is saved in the append of the outcome; a call that changed
nothing leaves none. Secrets are cut out before it comes here.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, applies
from xce.domain.events.transitions import Table, starts
from xce.domain.formats.base import Count, Name

#: Characters of one text; who makes evidence cuts it long before.
TEXT_MAX: Final = 100_000
Text = Annotated[str, Field(max_length=TEXT_MAX)]
#: SHA-256 in hexadecimal.
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Exit = Annotated[int, Field(ge=-1024, le=1024)]


class EvidenceState(StrEnum):
    """Evidence has one state."""

    KEPT = "kept"


TRANSITIONS: Final[Table[EvidenceState]] = {"Kept": starts(EvidenceState.KEPT)}


class Evidence(Aggregate[EvidenceState]):
    """One call of a provider."""

    KIND: ClassVar[str] = ids.EVIDENCE
    TRANSITIONS: ClassVar[Table[EvidenceState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Kept(Event):
        """A call was made, and led to what is saved with it.

        Attributes:
            provider: who was called.
            call: which script, or which call.
            subject: our request or return id, or the provider's; "": everything.
            arguments: how it was called.
            exit_code: null: it was killed, or nobody knows how it ended.
            milliseconds: how long it took; null: it was found again after a restart.
            digest: SHA-256 of the whole output.
            output: the beginning of standard output, without secrets and control codes.
            log: the beginning of standard error, likewise.
            step: what it took to read the output, or why it could not be read.
            killed: why it was killed; "": it was not.
        """

        TOPIC: ClassVar[str] = "xce.evidence.kept"
        provider: Name
        call: Name
        subject: Text
        arguments: tuple[Text, ...]
        exit_code: Exit | None
        milliseconds: Count | None
        digest: Sha256
        output: Text
        log: Text
        step: Text
        killed: Text

    # ------------------------------------------------------------- commands
    @classmethod
    def keep(
        cls,
        *,
        evidence: str,
        provider: str,
        call: str,
        subject: str,
        arguments: tuple[str, ...],
        exit_code: int | None,
        milliseconds: int | None,
        digest: str,
        output: str,
        log: str,
        step: str,
        killed: str,
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Evidence":
        """Return the evidence of one call."""
        return cls._first(
            cls.Kept,
            ids.evidence_id(evidence),
            at=at,
            by=by,
            epoch=epoch,
            provider=provider,
            call=call,
            subject=subject,
            arguments=arguments,
            exit_code=exit_code,
            milliseconds=milliseconds,
            digest=digest,
            output=output,
            log=log,
            step=step,
            killed=killed,
        )

    # ------------------------------------------------------ event functions
    @applies(Kept)
    def _kept(self, event: Kept) -> None:
        self.state = EvidenceState.KEPT
        self.provider = event.provider
        self.kept = event
