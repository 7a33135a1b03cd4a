"""A pool as scripts of the version 2 contract: ``python -m xce.adapters.providers.pool.scripts BOOK SITE SCRIPT -f FILE``.

``xce pool scripts BOOK SITE DIR`` writes the folder. A file ``now`` in ``$PRO_DATA_DIR`` holds the time as seconds since 1970, for
trials that let time pass; else it is the machine's.
"""

import os
import shlex
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from xce.adapters.clock import SystemClock
from xce.adapters.providers.pool.book import PoolBook, seconds_until
from xce.adapters.providers.pool.provider import PoolProvider
from xce.adapters.providers.pool.rules import Loan
from xce.adapters.providers.program import RefusalError, run
from xce.domain.errors import InputError, XceError
from xce.domain.formats.licence_pool import PoolCall, PoolFault, PoolFaultKind
from xce.domain.formats.provider import Kind
from xce.domain.ports import Ask, GrantBack, Refused

_SCRIPT: Final = """#!/bin/sh
exec {python} -I -m xce.adapters.providers.pool.scripts {book} {site} {name} "$@"
"""


class _Face:
    """The scripts of one site."""

    def __init__(self, book: PoolBook, site: str, now: datetime) -> None:
        self._book = book
        self._site = site
        self._provider = PoolProvider(book, site)
        self._now = now

    def strikes(self, call: PoolCall) -> tuple[PoolFault, ...]:
        """Return what goes wrong with this call in a trial."""
        return self._book.strikes(self._site, call)

    def description(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say what it can."""
        made = self._provider.describe(self._now)
        assert made is not None
        return {
            "contract": 2,
            "kinds": ["countable"],
            "capabilities": {
                "requestTag": True,
                "listing": True,
                "partialReturns": made.capabilities.partial_returns,
            },
        }

    def resources(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List what can be borrowed."""
        return {"resources": [*self._offers()]}

    def _offers(self) -> list[dict[str, Any]]:
        offers: list[dict[str, Any]] = []
        made = self._provider.describe(self._now)
        assert made is not None
        for one in made.resources:
            standing = self._book.standing(one.name, self._now)
            offers.append(
                {
                    "name": one.name,
                    "capacity": one.capacity,
                    "headroom": standing.lendable(self._site),
                    "step": one.step,
                    "hold": int(one.minimum_hold.total_seconds()),
                    **({} if one.recalled_to is None else {"recalledTo": one.recalled_to}),
                    **({} if one.price_per_hour is None else {"price": str(one.price_per_hour)}),
                }
            )
        return offers

    def request(self, given: dict[str, Any]) -> dict[str, Any]:
        """Borrow."""
        tag = given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG")
        if not tag:
            raise RefusalError("Error Code: NoTag: an ask needs a requestTag")
        ask = Ask(
            str(tag),
            Kind.COUNTABLE,
            str(given["resource"]),
            int(given["amount"]),
            int(given.get("leastUseful", 0)),
        )
        answer = self._provider.ask(ask, self._now)
        if isinstance(answer, Refused):
            raise RefusalError(f"Error Code: {answer.code}: {answer.why}", answer.retry_after_s)
        return {"requestId": answer.provider_request_id, "message": ""}

    def status(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say where requests and returns are."""
        return {"requests": [self._status_of(str(one["requestId"])) for one in given["requests"]]}

    def _status_of(self, request: str) -> dict[str, Any]:
        back = self._book.returned(self._site, request)
        if back:
            return {
                "requestId": request,
                "status": "complete_with_error" if any(b.refused for b in back) else "complete",
                "machines": [],
                "grants": [
                    {
                        "grantId": each.grant,
                        "resource": self._resource_of(each.grant),
                        "amount": each.amount,
                        "result": "fail" if each.refused else "succeed",
                        "message": each.refused or "",
                    }
                    for each in back
                ],
            }
        loan = self._book.loan(request)
        if loan is None or loan.site != self._site:
            message = f"no request {request}"
            return {"requestId": request, "status": "complete_with_error", "message": message}
        return {
            "requestId": request,
            "status": "complete",
            "machines": [],
            "grants": [_grant(loan, loan.amount)],
        }

    def _resource_of(self, grant: str) -> str:
        loan = self._book.loan(grant)
        return "" if loan is None else loan.resource

    def give_back(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take amounts back; the return's tag makes a repeat the same return."""
        grants = tuple(
            GrantBack(str(one["grantId"]), int(one["amount"])) for one in given["grants"]
        )
        tag = given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG")
        if not tag:
            raise RefusalError("Error Code: NoTag: a return needs a requestTag")
        # A long return comes in several calls with one tag.
        parts = " ".join(f"{each.grant}:{each.amount}" for each in grants)
        return_id = f"back-{tag}-{crc32(parts.encode()):08x}"
        answer = self._provider.give_back(return_id, (), grants, self._now)
        assert not isinstance(answer, Refused)
        return {"requestId": answer.provider_request_id, "message": ""}

    def renew(self, given: dict[str, Any]) -> dict[str, Any]:
        """Put the ends of grants off; those that are not named end when they would have."""
        wanted = tuple(str(one["grantId"]) for one in given["grants"])
        renewed = self._provider.renew(wanted, self._now)
        return {
            "grants": [
                {"grantId": grant, "expiresAt": end.isoformat()} for grant, end in renewed.ends
            ]
        }

    def grants(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List what is lent to the site."""
        loans = self._book.holdings(self._site, self._now)
        return {"grants": [{**_grant(loan, loan.left), "requestTag": loan.tag} for loan in loans]}

    def observe(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say what is issued to the site; what of it is in use a pool does not see."""
        held: dict[str, int] = {}
        for loan in self._book.holdings(self._site, self._now):
            held[loan.resource] = held.get(loan.resource, 0) + loan.left
        return {"resources": [{"name": name, "issued": amount} for name, amount in held.items()]}


#: Those about hosts are not there: an empty list of templates would mean that nothing is known now.
SCRIPTS: Final[dict[str, Callable[[_Face, dict[str, Any]], dict[str, Any]]]] = {
    "getRequestStatus": _Face.status,
    "getProviderDescription": _Face.description,
    "getAvailableResources": _Face.resources,
    "requestResources": _Face.request,
    "requestReturnResources": _Face.give_back,
    "renewResources": _Face.renew,
    "listGrants": _Face.grants,
    "observeResources": _Face.observe,
}


#: What each of them is called for, to the faults of the settings.
CALLS: Final = {
    "getRequestStatus": PoolCall.STATUS,
    "getProviderDescription": PoolCall.DESCRIBE,
    "getAvailableResources": PoolCall.DESCRIBE,
    "requestResources": PoolCall.ASK,
    "requestReturnResources": PoolCall.RETURN,
    "renewResources": PoolCall.RENEW,
    "listGrants": PoolCall.LIST,
    "observeResources": PoolCall.STATUS,
}


def install(book: Path, site: str, folder: Path) -> tuple[str, ...]:
    """Write the scripts of one site; return their names.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "conf").mkdir(exist_ok=True)
        for name in SCRIPTS:
            path = folder / "scripts" / f"{name}.sh"
            path.write_text(
                _SCRIPT.format(
                    python=shlex.quote(sys.executable),
                    book=shlex.quote(str(book.resolve())),
                    site=shlex.quote(site),
                    name=name,
                ),
                encoding="utf-8",
            )
            path.chmod(0o755)
    except OSError as error:
        raise InputError.of(str(folder), f"cannot be written: {error.strerror or error}") from None
    return tuple(SCRIPTS)


def main(arguments: list[str]) -> int:
    """Run one script."""
    book, site, *call = [*arguments, "", ""] if len(arguments) < 2 else arguments
    scripts = {name: partial(_called, name) for name in SCRIPTS}
    try:
        return run(call, scripts, partial(_opened, Path(book), site), before="BOOK SITE ")
    except _LostError:
        return 0


class _LostError(Exception):
    """What was asked is done, and nothing is said."""


def _called(name: str, face: _Face, given: dict[str, Any]) -> dict[str, Any]:
    """Do one call, with what goes wrong with it in a trial."""
    call = CALLS[name]
    strikes = face.strikes(call)
    kinds = {one.fault for one in strikes}
    for one in strikes:
        if one.fault is PoolFaultKind.LATE:
            time.sleep(one.after.total_seconds())
    if PoolFaultKind.REFUSE in kinds:
        raise RefusalError("Error Code: Trial: refused for a trial")
    answer = SCRIPTS[name](face, given)
    if PoolFaultKind.LOST in kinds:
        raise _LostError
    if PoolFaultKind.WRONG in kinds and call is PoolCall.LIST:
        less = [{**one, "amount": one["amount"] - 1} for one in answer["grants"]]
        return {"grants": [one for one in less if one["amount"]]}
    return answer


@contextmanager
def _opened(book: Path, site: str) -> Generator[_Face]:
    try:
        with PoolBook(book, make=False) as opened:
            yield _Face(opened, site, _now())
    except XceError as error:
        raise RefusalError(f"{error.code}: {error}") from None
    except OSError as error:
        raise RefusalError(str(error)) from None


def _grant(loan: Loan, amount: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "grantId": loan.grant,
        "resource": loan.resource,
        "amount": amount,
        "result": "succeed",
    }
    if loan.hold_until is not None and seconds_until(loan.hold_until, loan.granted_at):
        document["holdUntil"] = loan.hold_until.isoformat()
    if loan.expires_at is not None:
        document["expiresAt"] = loan.expires_at.isoformat()
    return document


def _now() -> datetime:
    data = os.environ.get("PRO_DATA_DIR")
    place = None if data is None else Path(data) / "now"
    if place is not None and place.exists():
        return datetime.fromtimestamp(float(place.read_text()), UTC)
    return SystemClock().now()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
