"""Runs a provider through the contract, with and without faults, and gives back what that made."""

from functools import partial
from pathlib import Path
from typing import Final

from xce.adapters.providers.check.countable import try_countable
from xce.adapters.providers.check.faults import try_faults
from xce.adapters.providers.check.findings import CheckReport, Outcome
from xce.adapters.providers.check.hosts import try_hosts
from xce.adapters.providers.check.trial import Trial, is_executable
from xce.adapters.providers.describing import read_description
from xce.adapters.providers.runner import Runner
from xce.domain.formats.provider_messages import (
    Nothing,
    ObserveResourcesAnswer,
    understood,
)
from xce.domain.formats.script_provider import ScriptSettings

_STATUS: Final = "getRequestStatus"
#: What a provider of hosts, and one of countable resources, cannot do without.
_HOSTS: Final = ("getAvailableTemplates", "requestMachines", _STATUS, "requestReturnMachines")
_COUNTABLE: Final = (
    "getAvailableResources",
    "requestResources",
    _STATUS,
    "requestReturnResources",
)


def check_provider(
    settings: ScriptSettings, folder: Path, *, wait_s: float, tag: str
) -> CheckReport:
    """Try everything and return what was found.

    Args:
        settings: of the provider; its call limit is kept.
        folder: an empty folder for what the scripts keep.
        wait_s: how long the check waits for a request or return to end.
        tag: what its requests are tagged with, never used before.
    """
    trial = Trial(Runner(settings, folder), wait_s, tag)
    left: tuple[str, ...] = ()
    if _try_scripts(trial):
        _try_description(trial)
        trial.before = trial.listed() or frozenset()
        try:
            template = try_hosts(trial) if trial.runner.has("requestMachines") else None
            try_faults(trial, template)
            try_countable(trial)
            _try_observation(trial)
        finally:
            left = trial.clean_up()
    if left:
        trial.findings.broken("cleaning up", "not all that the check made went back")
    return CheckReport(
        folder=settings.folder,
        fit=trial.findings.fit,
        supports=_supported(trial),
        findings=tuple(trial.findings.all),
        left=left,
    )


def _try_scripts(trial: Trial) -> bool:
    """Return whether there is anything to try."""
    runner, findings = trial.runner, trial.findings
    hosts = any(runner.has(name) for name in _HOSTS if name != _STATUS)
    countable = any(runner.has(name) for name in _COUNTABLE if name != _STATUS)
    if not hosts and not countable:
        findings.broken(
            "scripts",
            "there is none of the contract, neither in the folder nor in scripts/ below it",
        )
        return False
    wanted = dict.fromkeys((*(_HOSTS if hosts else ()), *(_COUNTABLE if countable else ())))
    for name in wanted:
        if not runner.has(name):
            findings.broken("scripts", f"there is no {name}")
    for name, path in list(runner.scripts.items()):
        if not is_executable(path):
            findings.broken("scripts", f"{path.name} cannot be executed")
            del runner.scripts[name]
    if findings.fit:
        findings.ok("scripts", f"{len(runner.scripts)} of the contract")
    if hosts and not runner.has("getReturnRequests"):
        findings.add("take-backs", Outcome.UNSUPPORTED, "there is no getReturnRequests")
    return True


def _try_description(trial: Trial) -> None:
    script = "getProviderDescription"
    if not trial.runner.has(script):
        trial.findings.add("description", Outcome.UNSUPPORTED, "contract version 1")
        return
    name = trial.runner.settings.name
    told = trial.read(script, Nothing(), "description", lambda said: read_description(said, name))
    if told is None:
        return
    trial.description = told
    trial.findings.ok("description", f"contract version {trial.description.contract}")


def _try_observation(trial: Trial) -> None:
    script = "observeResources"
    if not trial.runner.has(script):
        return
    reader = partial(understood, ObserveResourcesAnswer)
    if trial.read(script, Nothing(), "observation", reader) is not None:
        trial.findings.ok("observation")


def _supported(trial: Trial) -> tuple[str, ...]:
    works = {one.what for one in trial.findings.all if one.outcome is Outcome.OK}
    works -= {one.what for one in trial.findings.all if one.outcome is Outcome.BROKEN}
    names = {
        "request": "hosts",
        "borrowing": "countable resources",
        "request tags": "request tags",
        "listing": "listing",
        "health check": "health checks",
        "list of grants": "list of grants",
        "renewals": "renewals",
        "take-backs": "take-backs",
        "observation": "observation",
    }
    return tuple(said for what, said in names.items() if what in works)
