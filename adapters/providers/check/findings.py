"""What a check of a provider found, as a value."""

from enum import StrEnum

from pydantic import StrictBool

from xce.domain.formats.base import Format


class Outcome(StrEnum):
    """How one trial ended. Only what is broken makes a provider unfit."""

    OK = "ok"
    NOTED = "noted"
    BROKEN = "broken"
    UNSUPPORTED = "not supported"
    NOT_TRIED = "not tried"


class Finding(Format):
    """One trial."""

    what: str
    outcome: Outcome
    detail: str = ""


class CheckReport(Format):
    """The answer of ``xce provider check --json``.

    Attributes:
        supports: beyond the least that is needed.
        left: what the check made at the provider and could not give back, for a person to see to.
    """

    folder: str
    fit: StrictBool
    supports: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    left: tuple[str, ...] = ()


class Findings:
    """Collects findings in the order of the trials."""

    def __init__(self) -> None:
        self.all: list[Finding] = []

    def add(self, what: str, outcome: Outcome, detail: str = "") -> None:
        """Note one; the same twice is one."""
        finding = Finding(what=what, outcome=outcome, detail=detail)
        if finding not in self.all:
            self.all.append(finding)

    def ok(self, what: str, detail: str = "") -> None:
        """Note what works."""
        self.add(what, Outcome.OK, detail)

    def noted(self, what: str, detail: str) -> None:
        """Note what is unusual and harmless."""
        self.add(what, Outcome.NOTED, detail)

    def broken(self, what: str, detail: str) -> None:
        """Note what breaks the contract."""
        self.add(what, Outcome.BROKEN, detail)

    def skipped(self, what: str, detail: str) -> None:
        """Note what could not be tried."""
        self.add(what, Outcome.NOT_TRIED, detail)

    @property
    def fit(self) -> bool:
        """Return whether nothing is broken."""
        return all(finding.outcome is not Outcome.BROKEN for finding in self.all)
