"""Which instance a host is that reports to the cluster: by id or machine, else by name and boot time (field case F21)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from xce.domain.errors import NotFoundError, RejectedError


@dataclass(frozen=True, slots=True)
class Expected:
    """An instance that exists.

    Attributes:
        instance: our id.
        machine: the provider's id.
        name: expected name while it is waited for; None: the provider has not said.
        not_before: when its request was asked: it cannot have booted before.
        host: the name it joined under; None: it is waited for.
    """

    instance: str
    machine: str | None
    name: str | None = None
    not_before: datetime | None = None
    host: str | None = None


def instance_of(
    host: str,
    booted_at: datetime,
    instance: str | None,
    machine: str | None,
    expected: Iterable[Expected],
) -> str:
    """Return the instance that reports.

    Raises:
        NotFoundError: none that we own.
        RejectedError: it says two things of itself, or two instances could be meant.
    """
    all_of_them = list(expected)
    if instance is not None or machine is not None:
        found = [
            one
            for one in all_of_them
            if machine in (None, one.machine)
            and (instance in (None, one.instance) or _is_again(one, instance))
        ]
        # A machine that was lent before under the same id, and whose earlier return is not confirmed yet, is the newer one.
        newer = [one for one in found if one.host is None and _can_be(one, booted_at)]
        if len(newer) == 1 and all(
            one is newer[0] or _is_again(newer[0], one.instance) for one in found
        ):
            found = newer
        what = " and ".join(
            text
            for text in (
                f"instance {instance}" if instance else "",
                f"machine {machine}" if machine else "",
            )
            if text
        )
    else:
        # A dead machine's name may have gone to a new one: a host that booted before the new one was asked for is the dead one.
        found = [
            one
            for one in all_of_them
            if one.host is None and one.name == host and _can_be(one, booted_at)
        ] or [one for one in all_of_them if one.host == host]
        what = f"host {host} booted at {booted_at.isoformat()}"
    if not found:
        raise NotFoundError(f"no instance of ours is {what}")
    if len(found) > 1:
        raise RejectedError(f"{what} could be {' or '.join(one.instance for one in found)}")
    return found[0].instance


def _can_be(one: Expected, booted_at: datetime) -> bool:
    return one.not_before is None or booted_at >= one.not_before


def _is_again(one: Expected, instance: str | None) -> bool:
    """Return whether a host that calls itself by its provider and machine is an instance that was lent before under that id."""
    return (
        instance is not None
        and one.machine is not None
        and instance.endswith(f"/{one.machine}")
        and one.instance.startswith(f"{instance}~")
    )
