"""The provider ``slurm-licences``: moves licences to a Slurm cluster, and back.

``xce provider install slurm-licences DIR`` writes scripts that run this:

    python -m xce.adapters.providers.slurm_licences.scripts requestResources -f input.json

Two ways, by the configuration. ``shared``: slurmdbd holds the pool and each cluster's part of it in whole percents. Parts nobody has are
taken first, then what a giver does not use. ``local``: the amount stands in ``Licenses=`` of slurm.conf, and slurmctld reads it anew.

Who gives is lowered first and looked at again; only then the taker is raised. So a crash in between leaves tokens that nobody may use, never
tokens that two may use. Each step is on disk before it is done; the next call of any script ends what a killed one began.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from xce.adapters.providers import program
from xce.adapters.providers.program import RefusalError
from xce.adapters.providers.slurm_commands import SlurmError
from xce.adapters.providers.slurm_licences.pools import Local, Shared


@dataclass(slots=True)
class State:
    """All that the provider knows. A move is a step of a grant or a return, until it is done."""

    next: int = 1
    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    grants: dict[str, Any] = field(default_factory=dict[str, Any])
    returns: dict[str, Any] = field(default_factory=dict[str, Any])
    moves: dict[str, Any] = field(default_factory=dict[str, Any])


class SlurmLicences:
    """One call of one script, on the state as it is while the file is locked."""

    def __init__(self, conf: dict[str, Any], state: State, keep: Callable[[], None]) -> None:
        self._conf = conf
        self._state = state
        self._keep = keep

    def _way(self, name: str) -> Shared | Local:
        for one in self._conf["licences"]:
            if one["name"] == name:
                return Local(one) if "slurmConf" in one else Shared(one)
        raise RefusalError(f"Error Code: UnknownItem: no {name} here")

    # ------------------------------------------------------------------- what there is
    def description(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say what it can."""
        return {
            "contract": 2,
            "kinds": ["countable"],
            "capabilities": {"requestTag": True, "listing": True, "partialReturns": True},
        }

    def resources(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List what can be borrowed."""
        self.mend()
        found: list[dict[str, Any]] = []
        for one in self._conf["licences"]:
            way, lent = self._way(one["name"]), self._lent(one["name"])
            told = {key: one[key] for key in ("price", "hold", "step") if key in one}
            room = way.headroom()
            found.append({"name": one["name"], "capacity": lent + room, "headroom": room, **told})
        return {"resources": found}

    def _lent(self, name: str) -> int:
        return sum(g["amount"] for g in self._state.grants.values() if g["resource"] == name)

    # ------------------------------------------------------------------------ requests
    def request(self, given: dict[str, Any]) -> dict[str, Any]:
        """Begin to move tokens here."""
        name, tag = str(given["resource"]), str(given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG", ""))  # fmt: skip
        for known, one in self._state.requests.items():
            if tag and one["tag"] == tag:
                return {"requestId": known, "message": "known by its tag"}
        self.mend()
        if self._state.moves:
            raise RefusalError("Error Code: Busy: an earlier move has not ended")
        way = self._way(name)
        steps = way.plan(int(given["amount"]))
        level = way.level(way.taker)
        total = sum(step["percents"] for step in steps)
        amount = way.amount(level + total) - way.amount(level)
        if amount < max(1, int(given.get("leastUseful", 0))):
            raise RefusalError(
                f"Error Code: InsufficientCapacity: {amount} {name} can be moved now"
            )
        request, grant = self._id("add"), self._id("grant")
        self._state.requests[request] = {"tag": tag, "grant": grant, "why": ""}
        self._state.grants[grant] = {"resource": name, "amount": 0, "tag": tag, "from": []}
        for step in steps:
            self._state.moves[self._id("move")] = {
                "kind": "take", "resource": name, "grant": grant, "request": request, **step,
                "giver_from": way.level(step["giver"]) if step["giver"] else 0, "taker_from": None, "stage": "lower",
            }  # fmt: skip
        self._keep()
        self.mend()
        return {"requestId": request, "message": ""}

    def status(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say where requests and returns are."""
        self.mend()
        return {"requests": [self._status(str(one["requestId"])) for one in given["requests"]]}

    def _status(self, request: str) -> dict[str, Any]:
        if (back := self._state.returns.get(request)) is not None:
            parts = [{**one, "result": one["result"] or "executing"} for one in back["grants"]]
            results = {one["result"] for one in parts}
            ended = "complete_with_error" if "fail" in results else "complete"
            status = "running" if "executing" in results else ended
            return {"requestId": request, "status": status, "machines": [], "grants": parts}
        known = self._state.requests.get(request)
        if known is None:
            return {"requestId": request, "status": "complete_with_error", "message": "not known"}
        if any(move["request"] == request for move in self._state.moves.values()):
            return {"requestId": request, "status": "running", "machines": [], "grants": []}
        grant = self._state.grants[known["grant"]]
        came = known.get("came", 0)
        told = {"grantId": known["grant"], "resource": grant["resource"], "amount": came, "result": "succeed"}  # fmt: skip
        return {
            "requestId": request,
            "status": "complete" if came else "complete_with_error",
            "message": known["why"],
            "machines": [],
            "grants": [told] if came else [],
        }

    # ------------------------------------------------------------------------- returns
    def give_back(self, given: dict[str, Any]) -> dict[str, Any]:
        """Begin to move tokens back to where they came from."""
        tag = str(given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG", ""))
        parts = [(str(one["grantId"]), int(one["amount"])) for one in given["grants"]]
        asked = [[grant, amount] for grant, amount in parts]
        for known, one in self._state.returns.items():
            if tag and one["tag"] == tag and one["asked"] == asked:
                return {"requestId": known, "message": "known by its tag"}
        for grant, amount in parts:
            known_grant = self._state.grants.get(grant)
            if known_grant is None or known_grant["amount"] < amount or amount < 1:
                raise RefusalError(f"no such amount of {grant}")
        request = self._id("back")
        told = [{"grantId": g, "amount": a, "resource": self._state.grants[g]["resource"], "result": "", "message": ""} for g, a in parts]  # fmt: skip
        self._state.returns[request] = {"tag": tag, "asked": asked, "grants": told}
        for number, (grant, amount) in enumerate(parts):
            self._state.moves[self._id("move")] = {
                "kind": "back", "resource": self._state.grants[grant]["resource"], "grant": grant, "request": request,
                "entry": number, "amount": amount, "percents": None, "taker_from": None, "to": None, "stage": "lower",
            }  # fmt: skip
        self._keep()
        self.mend()
        return {"requestId": request, "message": ""}

    # -------------------------------------------------------------------- listings
    def grants(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List what is lent."""
        self.mend()
        return {
            "grants": [
                {"grantId": name, "resource": one["resource"], "amount": one["amount"], "requestTag": one["tag"]}
                for name, one in self._state.grants.items()
                if one["amount"]
            ]
        }  # fmt: skip

    def observe(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say what the cluster may use and what its jobs hold."""
        found: list[dict[str, Any]] = []
        for one in self._conf["licences"]:
            way = self._way(one["name"])
            issued = way.amount(way.level(way.taker))
            found.append({"name": one["name"], "issued": issued, "inUse": way.use(way.taker)})
        return {"resources": found}

    # ---------------------------------------------------------------------------- mend
    def mend(self) -> None:
        """End what was begun, in its order; what Slurm cannot do now is done by a later call."""
        for name, move in list(self._state.moves.items()):
            try:
                (self._take if move["kind"] == "take" else self._back)(name, move)
            except SlurmError as error:
                print(f"{name}: {error}", file=sys.stderr)
                return

    def _take(self, name: str, move: dict[str, Any]) -> None:
        """Lower the giver, look, raise the taker."""
        way, giver = self._way(move["resource"]), move["giver"]
        if move["stage"] == "lower" and giver:
            lowered = move["giver_from"] - move["percents"]
            if way.level(giver) != lowered:
                if way.level(giver) != move["giver_from"]:
                    return self._give_up(name, move, f"somebody changed what {giver} has")
                way.set(giver, lowered)
            if not way.fits(giver, lowered):  # a job of the giver has started meanwhile
                way.set(giver, move["giver_from"])
                return self._give_up(name, move, f"{giver} uses it now")
        if move["stage"] == "lower":
            move.update(stage="raise", taker_from=way.level(way.taker))
            self._keep()
        before = int(move["taker_from"])
        after = before + int(move["percents"])
        if way.level(way.taker) != after and way.is_too_much(move["percents"]):
            return self._give_up(name, move, "somebody else was given it meanwhile")
        way.set(way.taker, after)
        came = way.amount(after) - way.amount(before)
        grant = self._state.grants[move["grant"]]
        grant["amount"] += came
        grant["from"].append([giver, move["percents"]])
        request = self._state.requests[move["request"]]
        request["came"] = request.get("came", 0) + came
        del self._state.moves[name]
        self._keep()
        return None

    def _give_up(self, name: str, move: dict[str, Any], why: str) -> None:
        self._state.requests[move["request"]]["why"] = why
        del self._state.moves[name]
        self._keep()

    def _back(self, name: str, move: dict[str, Any]) -> None:
        """Lower the taker, look, raise who gave."""
        way, grant = self._way(move["resource"]), self._state.grants[move["grant"]]
        entry = self._state.returns[move["request"]]["grants"][move["entry"]]
        if move["stage"] == "lower":
            if move.get("taker_from") is None:
                level = way.level(way.taker)
                whole = move["amount"] == grant["amount"]
                owed = sum(percents for _, percents in grant["from"])
                percents = owed if whole else _fewer(way, level, move["amount"], owed)
                move.update(taker_from=level, percents=percents)
                self._keep()
            before = int(move["taker_from"])
            lowered = before - int(move["percents"])
            way.set(way.taker, lowered)
            if not way.fits(way.taker, lowered):  # jobs hold it
                way.set(way.taker, before)
                entry.update(result="fail", message="jobs hold it")
                del self._state.moves[name]
                self._keep()
                return
            move.update(stage="raise", to=self._owed(way, grant, move["percents"]))
            self._keep()
        givers: list[list[Any]] = move["to"] or []
        for giver, level, _ in givers:
            way.set(giver, level)
        for giver, _, percents in givers:
            _take_off(grant["from"], giver, percents)
        _take_off(grant["from"], None, move["percents"] - sum(p for _, _, p in givers))
        grant["amount"] -= move["amount"]
        entry.update(result="succeed")
        del self._state.moves[name]
        self._keep()

    @staticmethod
    def _owed(way: Shared | Local, grant: dict[str, Any], percents: int) -> list[list[Any]]:
        """Return each giver, its level after it has its part back, and the part."""
        found: list[list[Any]] = []
        for giver, part in reversed(grant["from"]):
            part = min(part, percents)
            percents -= part
            if giver is not None and part:
                known = next((one for one in found if one[0] == giver), None)
                if known is None:
                    found.append([giver, way.level(giver) + part, part])
                else:
                    known[1] += part
                    known[2] += part
        return found

    def _id(self, prefix: str) -> str:
        number = self._state.next
        self._state.next += 1
        return f"{prefix}-{number:04d}"


def _fewer(way: Shared | Local, level: int, amount: int, most: int) -> int:
    """Return the percents to take off so that at most an amount of tokens leaves; a part that is no whole percent stays."""
    had = way.amount(level)
    return max(p for p in range(most + 1) if had - way.amount(level - p) <= amount)


def _take_off(parts: list[list[Any]], giver: str | None, percents: int) -> None:
    for part in reversed(parts):
        if part[0] == giver:
            taken = min(part[1], percents)
            part[1] -= taken
            percents -= taken
    parts[:] = [part for part in parts if part[1]]


# ------------------------------------------------------------------------------------ main
SCRIPTS: Final[dict[str, Callable[[SlurmLicences, dict[str, Any]], dict[str, Any]]]] = {
    "getRequestStatus": SlurmLicences.status,
    "getProviderDescription": SlurmLicences.description,
    "getAvailableResources": SlurmLicences.resources,
    "requestResources": SlurmLicences.request,
    "requestReturnResources": SlurmLicences.give_back,
    "listGrants": SlurmLicences.grants,
    "observeResources": SlurmLicences.observe,
}


def main(arguments: list[str]) -> int:
    """Run one script."""
    opened = partial(program.kept, "slurm-licences", State, SlurmLicences)
    return program.run(arguments, SCRIPTS, opened)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
