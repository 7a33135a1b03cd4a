"""What the provider ``simulated`` answers to each script, and what it knows. Standard library only; ``simulated.py`` is the program."""

import os
import time
from dataclasses import dataclass, field
from typing import Any, Final, cast

NO_CAPACITY: Final = "InsufficientInstanceCapacity"


@dataclass(slots=True)
class State:
    """All that the provider knows; machines, requests and the like as they stand in the file."""

    calls: dict[str, int] = field(default_factory=dict[str, int])
    next: int = 1
    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    machines: dict[str, Any] = field(default_factory=dict[str, Any])
    grants: dict[str, Any] = field(default_factory=dict[str, Any])
    returns: dict[str, Any] = field(default_factory=dict[str, Any])


class RefusalError(Exception):
    """The call is refused; the message says why."""


class Simulated:
    """One call of one script, on the state as it is while the file is locked."""

    def __init__(self, conf: dict[str, Any], state: State, now: float, faults: set[str]) -> None:
        self.conf = conf
        self.state = state
        self.now = now
        self.faults = faults
        self.capabilities: dict[str, bool] = conf.get("capabilities", {})

    # ----------------------------------------------------------------- what there is
    def get_available_templates(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Return the templates of the configuration."""
        return {"templates": self.conf.get("templates", []), "message": ""}

    def get_provider_description(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Return the description of the configuration."""
        kinds = ["host"] * bool(self.conf.get("templates")) + ["countable"] * bool(
            self.conf.get("resources")
        )
        return {
            "contract": 2,
            "kinds": kinds,
            "capabilities": self.capabilities,
            **self.conf.get("description", {}),
        }

    def get_available_resources(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Return the resources and how much of each is left."""
        return {
            "resources": [
                {**resource, "headroom": self._headroom(resource)}
                for resource in self.conf.get("resources", [])
            ]
        }

    # -------------------------------------------------------------------- requests
    def request_machines(self, given: dict[str, Any]) -> dict[str, Any]:
        """Make machines."""
        template, count = given["template"]["templateId"], int(given["template"]["machineCount"])
        offer = self._known("templates", "templateId", template)
        if count < 1:
            raise RefusalError(f"Error Code: InvalidAmount: asked for {count}")
        tag = self._tag(given)
        if (known := self._request_of(tag)) is not None:
            return {"requestId": known, "message": "known by its tag"}
        room = self._room(offer)
        if room is not None and room < 1:
            raise RefusalError(f"Error Code: {NO_CAPACITY}: no more {template} are to be had")
        wanted = count + 1 if "surplus" in self.faults else count
        wanted = count // 2 if "partial" in self.faults else wanted
        request = self._id("add")
        machines = [
            self._machine(request, template, tag) for _ in range(min(wanted, room or wanted))
        ]
        self.state.requests[request] = {
            "tag": tag,
            "wanted": count,
            "machines": machines,
            "grants": [],
            "ready": self._after("lagSeconds"),
            "stuck": "stuck" in self.faults,
        }
        return {"requestId": request, "message": ""}

    def request_resources(self, given: dict[str, Any]) -> dict[str, Any]:
        """Lend an amount of a resource."""
        offer = self._known("resources", "name", given["resource"])
        tag = self._tag(given)
        if (known := self._request_of(tag)) is not None:
            return {"requestId": known, "message": "known by its tag"}
        amount = min(int(given["amount"]), self._headroom(offer))
        amount = amount // 2 if "partial" in self.faults else amount
        amount -= amount % int(offer.get("step", 1))
        if amount < max(1, int(given.get("leastUseful", 0))):
            raise RefusalError(
                f"Error Code: InsufficientCapacity: {amount} {offer['name']} are free"
            )
        request, grant = self._id("add"), self._id("grant")
        self.state.grants[grant] = {
            "resource": offer["name"],
            "amount": amount,
            "tag": tag,
            "at": self.now,
            "hold": float(offer.get("hold", 0)),
        }
        self.state.requests[request] = {
            "tag": tag,
            "wanted": int(given["amount"]),
            "machines": [],
            "grants": [grant],
            "ready": self._after("lagSeconds"),
            "stuck": "stuck" in self.faults,
        }
        return {"requestId": request, "message": ""}

    def get_request_status(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say where requests and returns are."""
        return {"requests": [self._status(one["requestId"]) for one in given["requests"]]}

    # --------------------------------------------------------------------- returns
    def request_return_machines(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take machines back; one that is gone is gone again."""
        machines = [one["machineId"] for one in given["machines"]]
        if not machines:
            raise RefusalError("no machine is named")
        for machine in machines:
            known = self.state.machines.get(machine)
            if known is None:
                raise RefusalError(f"no machine {machine}")
            if not {"stuck", "return-refused"} & self.faults:
                known["gone"] = min(known["gone"] or 1e12, self._after("returnSeconds"))
        return self._return({"machines": machines, "grants": []})

    def request_return_resources(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take amounts back."""
        for part in given["grants"]:
            known = self.state.grants.get(part["grantId"])
            if known is None or known["amount"] < int(part["amount"]):
                raise RefusalError(f"no such amount of {part['grantId']}")
        if not {"stuck", "return-refused"} & self.faults:
            for part in given["grants"]:
                self.state.grants[part["grantId"]]["amount"] -= int(part["amount"])
        return self._return(
            {"machines": [], "grants": [part["grantId"] for part in given["grants"]]}
        )

    def get_return_requests(self, given: dict[str, Any]) -> dict[str, Any]:
        """Name the machines of the file ``take_back.json``, and those we are asked about that are gone."""
        wanted: dict[str, Any] = self.conf.get("takeBack", {})
        found: list[dict[str, Any]] = []
        for machine, known in self.state.machines.items():
            if machine in wanted and not self._is_gone(known):
                grace = int(wanted[machine])
                found.append({"machine": known["name"], "machineId": machine, "gracePeriod": grace})
        asked = {one["machineId"] for one in given["machines"]}
        for machine in sorted(asked & self.state.machines.keys()):
            if self._is_gone(self.state.machines[machine]):
                found.append(
                    {"machine": self.state.machines[machine]["name"], "machineId": machine}
                )
        return {"requests": found, "message": ""}

    # -------------------------------------------------------------------- listings
    def list_machines(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List all machines that exist."""
        return {
            "machines": [
                {
                    **self._machine_of(machine),
                    "templateId": known["template"],
                    **({"requestTag": known["tag"]} if self.capabilities.get("requestTag") else {}),
                }
                for machine, known in self.state.machines.items()
                if not self._is_gone(known)
            ]
        }

    def list_grants(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List all amounts that are lent."""
        tagged = self.capabilities.get("requestTag")
        return {
            "grants": [
                {**self._grant_of(grant), **({"requestTag": known["tag"]} if tagged else {})}
                for grant, known in self.state.grants.items()
                if known["amount"]
            ]
        }

    def observe_resources(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say how much of each resource is lent."""
        return {
            "resources": [
                {
                    "name": one["name"],
                    "issued": int(one["capacity"]),
                    "inUse": int(one["capacity"]) - self._headroom(one),
                }
                for one in self.conf.get("resources", [])
            ]
        }

    # ---------------------------------------------------------------------- inside
    def _id(self, prefix: str) -> str:
        number = self.state.next
        self.state.next += 1
        return f"{prefix}-{number:04d}"

    def _after(self, what: str) -> float:
        return self.now + float(self.conf.get(what, 0))

    def _known(self, what: str, key: str, name: str) -> dict[str, Any]:
        for offer in self.conf.get(what, []):
            if offer[key] == name:
                return cast("dict[str, Any]", offer)
        raise RefusalError(f"Error Code: UnknownItem: no {name} here")

    def _tag(self, given: dict[str, Any]) -> str:
        return given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG", "")

    def _request_of(self, tag: str) -> str | None:
        if not tag or not self.capabilities.get("requestTag"):
            return None
        return next((id_ for id_, one in self.state.requests.items() if one["tag"] == tag), None)

    def _room(self, offer: dict[str, Any]) -> int | None:
        if not self.conf.get("enforceMaxNumber") or int(offer.get("maxNumber", -1)) < 0:
            return None
        there: int = sum(
            one["template"] == offer["templateId"] and not self._is_gone(one)
            for one in self.state.machines.values()
        )
        room = int(offer["maxNumber"]) - there
        return max(room, 0)

    def _headroom(self, offer: dict[str, Any]) -> int:
        lent = sum(
            one["amount"] for one in self.state.grants.values() if one["resource"] == offer["name"]
        )
        free = int(offer["capacity"]) - int(lent)
        return max(free, 0)

    def _machine(self, request: str, template: str, tag: str) -> str:
        machine = self._id("vm")
        launched = self._after("lagSeconds")
        self.state.machines[machine] = {
            "name": f"{template}-{machine}".lower(),
            "template": template,
            "request": request,
            "tag": tag,
            "launched": launched,
            "ready": launched + float(self.conf.get("bootSeconds", 0)),
            "fails": "fail" in self.faults,
            "joins": not {"fail", "never-join"} & self.faults,
            "gone": None,
        }
        return machine

    def _is_gone(self, machine: dict[str, Any]) -> bool:
        return machine["gone"] is not None and machine["gone"] <= self.now

    def _machine_of(self, machine: str) -> dict[str, Any]:
        known = self.state.machines[machine]
        up = known["ready"] <= self.now
        result = "executing" if not up else "fail" if known["fails"] else "succeed"
        return {
            "machineId": machine,
            "name": known["name"],
            "result": result,
            "status": {"executing": "pending", "fail": "error", "succeed": "running"}[result],
            "privateIpAddress": "",
            "publicIpAddress": "",
            "publicDnsName": "",
            "launchtime": str(int(known["launched"])),
            "message": "did not boot" if result == "fail" else "",
        }

    def _grant_of(self, grant: str) -> dict[str, Any]:
        known = self.state.grants[grant]
        hold = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(known["at"] + known["hold"]))
        return {
            "grantId": grant,
            "resource": known["resource"],
            "amount": known["amount"],
            "holdUntil": hold,
            "result": "succeed",
        }

    def _return(self, what: dict[str, Any]) -> dict[str, Any]:
        made = self._id("ret")
        self.state.returns[made] = {
            **what,
            "done": self._after("returnSeconds"),
            "stuck": "stuck" in self.faults,
            "refused": "return-refused" in self.faults,
        }
        return {"requestId": made, "message": ""}

    def _status(self, id_: str) -> dict[str, Any]:
        if id_ in self.state.returns:
            return self._return_status(id_, self.state.returns[id_])
        known = self.state.requests.get(id_)
        if known is None:
            message = f"no request {id_}"
            return {
                "requestId": id_,
                "status": "complete_with_error",
                "message": message,
                "machines": [],
            }
        ready = known["ready"] <= self.now and not known["stuck"]
        machines = [
            self._machine_of(one)
            for one in known["machines"]
            if self.state.machines[one]["launched"] <= self.now
        ]
        grants = [self._grant_of(one) for one in known["grants"]] if ready else []
        if not ready or any(one["result"] == "executing" for one in machines):
            return {"requestId": id_, "status": "running", "message": "", "machines": machines}
        came = len(machines) + sum(one["amount"] for one in grants)
        short = came < known["wanted"] or any(one["result"] == "fail" for one in machines)
        return {
            "requestId": id_,
            "status": "complete_with_error" if short else "complete",
            "message": f"{known['wanted'] - came} failed, capacity"
            if came < known["wanted"]
            else "",
            "machines": machines,
            "grants": grants,
        }

    def _return_status(self, id_: str, known: dict[str, Any]) -> dict[str, Any]:
        done = known["done"] <= self.now and not known["stuck"]
        result = "executing" if not done else "fail" if known["refused"] else "succeed"
        status = (
            "running" if not done else "complete_with_error" if known["refused"] else "complete"
        )
        said = {"result": result, "message": "kept" if result == "fail" else ""}
        return {
            "requestId": id_,
            "status": status,
            "message": "",
            "machines": [
                {"machineId": one, "name": self.state.machines[one]["name"], **said}
                for one in known["machines"]
            ],
            "grants": [
                {
                    "grantId": one,
                    "resource": self.state.grants[one]["resource"],
                    "amount": 1,
                    **said,
                }
                for one in known["grants"]
            ],
        }
