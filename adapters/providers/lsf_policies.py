"""From the policies of the LSF resource connector to budgets of ours."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from xce.adapters.providers.lsf_files import LsfPolicy
from xce.domain.formats.policy import LONGEST_RATE
from xce.domain.formats.script_provider import ScriptSettings

#: The account under which the imported configuration asks all its hosts.
_ACCOUNT: Final[str] = ScriptSettings.model_fields["account"].default
_LONGEST_MIN: Final = LONGEST_RATE // timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Known:
    """What a policy can name; None: nobody knows."""

    providers: frozenset[str]
    templates: frozenset[str] | None


def budgets_of(
    policies: Iterable[LsfPolicy], known: Known, warnings: list[str]
) -> list[dict[str, Any]]:
    """Return the budgets that say what the policies do; what cannot be said is a warning, never dropped silently."""
    budgets: list[dict[str, Any]] = []
    for policy in policies:
        warnings.extend(f"policy {policy.name}: {text}" for text in _warnings(policy, known))
        bounds = _bounds(policy)
        if bounds and (not policy.accounts or _ACCOUNT in policy.accounts):
            name = _free(policy.name, {budget["name"] for budget in budgets})
            budgets.append({"name": name, **_scope(policy), **bounds})
    return budgets


def _bounds(policy: LsfPolicy) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if policy.max_number is not None and policy.max_number >= 0:
        bounds["max_hosts"] = policy.max_number
    if policy.step is not None and 0 < policy.step[1] <= _LONGEST_MIN:
        count, minutes = policy.step
        bounds["max_asked"] = {"hosts": count, "within": f"{minutes}min"}
    return bounds


def _scope(policy: LsfPolicy) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    if len(policy.providers) == 1:
        scope["provider"] = policy.providers[0]
    elif policy.providers:
        scope["providers"] = list(policy.providers)
    if policy.templates:
        scope["templates"] = list(policy.templates)
    return scope


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no budget has: LSF allows one twice."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _warnings(policy: LsfPolicy, known: Known) -> Iterator[str]:
    if policy.script:
        yield f"UserDefinedScriptPath {policy.script} is not called; what it decides has to be set by hand"
    if policy.step is not None and not 0 < policy.step[1] <= _LONGEST_MIN:
        count, minutes = policy.step
        yield (
            f"StepValue {count}:{minutes} has to be set by hand;"
            f" wanted 1 to {_LONGEST_MIN} minutes, which is how long asks are remembered"
        )
    if policy.accounts and _bounds(policy):
        names = ", ".join(policy.accounts)
        if _ACCOUNT in policy.accounts:
            yield (
                f"it is for the accounts {names}; all hosts are asked under one account a provider,"
                f" {_ACCOUNT} unless set, so it counts them all"
            )
        else:
            yield (
                f"it is for the accounts {names}, and no host is asked under them;"
                " set account of a provider, and a budget for that provider, by hand"
            )
    for name in policy.providers:
        if name not in known.providers:
            yield f"hostProviders.json has no provider {name}"
    for name in policy.templates:
        if known.templates is not None and name not in known.templates:
            yield f"no provider has a template {name}"
