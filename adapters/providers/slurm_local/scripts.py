"""The provider ``slurm-local``: real slurmd processes on this machine as cloud hosts of a Slurm, for trying out and for tests.

``xce provider install slurm-local DIR`` writes scripts that run this:

    python -m xce.adapters.providers.slurm_local.scripts requestMachines -f input.json

A host is a record of slurm.conf in state FUTURE: hidden, until its slurmd registers. It goes back by the steps that a cloud needs as well:
no new work, a look whether it is idle, the machine ends, and its record is FUTURE again. No record is ever deleted. What is to be done is on
disk before it is done; the next call of any script ends what a killed one began.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from xce.adapters.providers import program, slurm_commands
from xce.adapters.providers.program import RefusalError
from xce.adapters.providers.slurm_commands import SlurmError

#: Begins the reason of our drains and the comment of our nodes.
OURS: Final = "xce:"
_END_S: Final = 10.0
#: A slurmd that works registers in a second or two; one that slurmctld does not know after this is told to do it again.
JOIN_S: Final = 10.0
_SET: Final = re.compile(r"(\w+)=(\S*)")
_BUSY: Final = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "ALLOC", "MIX", "COMP"})


@dataclass(slots=True)
class State:
    """All that the provider knows: machines by id, requests and returns by theirs."""

    next: int = 1
    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    machines: dict[str, Any] = field(default_factory=dict[str, Any])
    returns: dict[str, Any] = field(default_factory=dict[str, Any])


class Slurm:
    """Slurm's commands about one cluster."""

    def __init__(self, conf: str) -> None:
        self.conf = conf

    def run(self, *words: str) -> str:
        """Run a command and return what it prints."""
        return slurm_commands.run(self.conf, *words)

    def nodes(self) -> dict[str, dict[str, str]]:
        """Return what is known of each node, records included."""
        found: dict[str, dict[str, str]] = {}
        for line in self.run("scontrol", "--future", "-o", "show", "node").splitlines():
            one = dict(_SET.findall(line))
            if "NodeName" in one:
                found[one["NodeName"]] = one
        return found

    def update(self, node: str, *settings: str) -> None:
        """Change a node."""
        self.run("scontrol", "update", f"nodename={node}", *settings)

    def daemon_of(self, node: str) -> int | None:
        """Return the process of a node's slurmd; None: it does not run."""
        found = re.search(r"^SlurmdPidFile\s*=\s*(\S+)", self._own_settings(), re.MULTILINE)
        place = found[1] if found else "/run/slurmd.pid"
        try:
            pid = int(Path(place.replace("%n", node)).read_text())
        except (OSError, ValueError):
            return None
        return pid if is_slurmd(pid) else None

    def _own_settings(self) -> str:
        """Return the configuration as its file says it: that can be read while slurmctld is away."""
        return re.sub(r"=", " = ", Path(self.conf).read_text(encoding="utf-8"))

    def start(self, node: str) -> int | None:
        """Start a node's slurmd and return its process."""
        # -b: as after a boot; without it a second use of the record looks like the first one.
        self.run("slurmd", "-f", self.conf, "-N", node, "-b")
        end = time.monotonic() + _END_S
        while (pid := self.daemon_of(node)) is None and time.monotonic() < end:
            time.sleep(0.05)
        return pid


class SlurmLocal:
    """One call of one script, on the state as it is while the file is locked."""

    def __init__(
        self, conf: dict[str, Any], state: State, keep: Callable[[], None], now: float
    ) -> None:
        self._conf = conf
        self._state = state
        self._keep = keep
        self._now = now
        self._slurm = Slurm(conf["slurmConf"])

    # ------------------------------------------------------------------- what there is
    def get_provider_description(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Say what it can."""
        return {
            "contract": 2,
            "kinds": ["host"],
            "capabilities": {"requestTag": True, "listing": True, "partialReturns": True},
            **self._conf.get("description", {}),
        }

    def get_available_templates(self, _given: dict[str, Any]) -> dict[str, Any]:
        """Return the kinds of host, as Slurm will show them."""
        return {"templates": [template_of(one) for one in self._conf["templates"]], "message": ""}

    # ------------------------------------------------------------------------ requests
    def request_machines(self, given: dict[str, Any]) -> dict[str, Any]:
        """Start slurmd on records that are free."""
        wanted = str(given["template"]["templateId"])
        count = int(given["template"]["machineCount"])
        tag = str(given.get("requestTag") or os.environ.get("XCE_REQUEST_TAG", ""))
        for known, one in self._state.requests.items():
            if tag and one["tag"] == tag:
                return {"requestId": known, "message": "known by its tag"}
        template = next((t for t in self._conf["templates"] if t["templateId"] == wanted), None)
        if template is None:
            raise RefusalError(f"Error Code: UnknownItem: no {wanted} here")
        if count < 1:
            raise RefusalError(f"Error Code: InvalidAmount: asked for {count}")
        records = self._free(template)[:count]
        if not records:
            raise RefusalError(
                f"Error Code: InsufficientCapacity: all records of {wanted} are used"
            )
        request = self._id("add")
        machines: list[str] = []
        for node in records:
            machine = f"{node}.{self._state.next}"
            self._state.next += 1
            self._state.machines[machine] = {
                "node": node, "template": wanted, "tag": tag, "launched": self._now,
                "pid": None, "ending": "", "gone": False,
            }  # fmt: skip
            machines.append(machine)
        self._state.requests[request] = {"tag": tag, "machines": machines}
        self._keep()
        self.mend()
        return {"requestId": request, "message": ""}

    def _free(self, template: dict[str, Any]) -> list[str]:
        """Return the records that no machine uses, those that were used last at the end: Slurm has forgotten the others' machines."""
        machines = self._state.machines.values()
        used = {one["node"] for one in machines if not one["gone"]}
        last = {one["node"]: number for number, one in enumerate(machines)}
        known = self._slurm.nodes()
        free = [
            name
            for name in names_of(template["nodes"])
            if name not in used and "FUTURE" in known.get(name, {}).get("State", "")
        ]
        return sorted(free, key=lambda name: last.get(name, -1))

    def get_request_status(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say where requests and returns are."""
        self.mend()
        return {"requests": [self._status(str(one["requestId"])) for one in given["requests"]]}

    def _status(self, request: str) -> dict[str, Any]:
        if (back := self._state.returns.get(request)) is not None:
            reports = [self._going(machine, back["refused"]) for machine in back["machines"]]
        elif (known := self._state.requests.get(request)) is not None:
            reports = [self._report(machine) for machine in known["machines"]]
        else:
            return {"requestId": request, "status": "complete_with_error", "message": "not known"}
        results = {one["result"] for one in reports}
        status = "complete_with_error" if "fail" in results else "complete"
        if "executing" in results:
            status = "running"
        return {"requestId": request, "status": status, "message": "", "machines": reports}

    def _report(self, machine: str) -> dict[str, Any]:
        known = self._state.machines[machine]
        result = "executing" if known["pid"] is None else "succeed"
        if known["pid"] is None and known["ending"]:
            result = "fail"
        return {
            "machineId": machine,
            "name": known["node"],
            "result": result,
            "launchtime": str(int(known["launched"])),
            "message": known["ending"],
        }

    def _going(self, machine: str, refused: dict[str, str]) -> dict[str, Any]:
        known = self._state.machines[machine]
        why = refused.get(machine, "")
        result = "fail" if why else "succeed" if known["gone"] else "executing"
        return {"machineId": machine, "name": known["node"], "result": result, "message": why}

    # ------------------------------------------------------------------------- returns
    def request_return_machines(self, given: dict[str, Any]) -> dict[str, Any]:
        """End machines that run no job; one that does is refused."""
        machines = [str(one["machineId"]) for one in given["machines"]]
        unknown = [machine for machine in machines if machine not in self._state.machines]
        if unknown or not machines:
            raise RefusalError(f"no machine {unknown[0]}" if unknown else "no machine is named")
        refused = {m: why for m in machines if (why := self._why_not(self._state.machines[m]))}
        for machine in machines:
            if machine not in refused:
                self._state.machines[machine]["ending"] = "goes back"
        request = self._id("back")
        self._state.returns[request] = {"machines": machines, "refused": refused}
        self._keep()
        self.mend()
        return {"requestId": request, "message": ""}

    def _why_not(self, known: dict[str, Any]) -> str:
        """Return why a machine cannot end now; "": it takes no work and has none."""
        if known["gone"] or known["ending"]:
            return ""
        node = known["node"]
        before = self._slurm.nodes().get(node, {}).get("State", "FUTURE")
        if before.startswith("FUTURE"):
            return ""
        if "DRAIN" not in before:
            self._slurm.update(node, "state=drain", f"reason={OURS} goes back")
        shown = self._slurm.nodes().get(node, {})
        busy = (
            _BUSY & set(re.split(r"[+*]", shown.get("State", ""))) or shown.get("CPUAlloc") != "0"
        )
        if not busy:
            return ""
        if "DRAIN" not in before:
            self._slurm.update(node, "state=resume")
        return f"a job runs on {node}"

    def get_return_requests(self, given: dict[str, Any]) -> dict[str, Any]:
        """Name the machines that we are asked about and that have ended."""
        self.mend()
        found: list[dict[str, Any]] = []
        for one in given["machines"]:
            known = self._state.machines.get(str(one["machineId"]))
            if known is not None and known["gone"]:
                found.append({"machine": known["node"], "machineId": one["machineId"]})
        return {"requests": found, "message": ""}

    def list_machines(self, _given: dict[str, Any]) -> dict[str, Any]:
        """List all machines that exist."""
        self.mend()
        return {
            "machines": [
                {
                    **self._report(machine),
                    "templateId": known["template"],
                    "requestTag": known["tag"],
                }
                for machine, known in self._state.machines.items()
                if not known["gone"]
            ]
        }

    # ---------------------------------------------------------------------------- mend
    def mend(self) -> None:
        """Do what is still to be done: start, notice what has ended by itself, end."""
        for machine, known in self._state.machines.items():
            if known["gone"]:
                continue
            try:
                if known["pid"] is None and not known["ending"]:
                    self._launch(known)
                elif not known["ending"] and not is_slurmd(known["pid"]):
                    self._follow(known)
                if known["ending"]:
                    self._end(known)
            except SlurmError as error:  # later, then
                print(f"{machine}: {error}", file=sys.stderr)
        try:
            self._make_known()
        except SlurmError as error:
            print(error, file=sys.stderr)

    def _launch(self, known: dict[str, Any]) -> None:
        node = known["node"]
        known["pid"] = self._slurm.daemon_of(node) or self._slurm.start(node)
        known["called"] = self._now
        self._keep()

    def _follow(self, known: dict[str, Any]) -> None:
        """Find the slurmd that has taken a machine over (from 23.11 on one that is to register again starts anew), or note its end."""
        pid = self._slurm.daemon_of(known["node"])
        if pid is None and self._now - known.get("again", 0.0) < JOIN_S:
            return  # it is about to
        known["pid"] = pid or known["pid"]
        if pid is None:
            known["ending"] = "its slurmd has ended"
        self._keep()

    def _make_known(self) -> None:
        """See to it that Slurm knows each live machine: a slurmctld that was killed may have forgotten a node, or which machine it is."""
        live = {m: one for m, one in self._state.machines.items() if not one["gone"] and not one["ending"]}  # fmt: skip
        shown = self._slurm.nodes() if live else {}
        for machine, known in live.items():
            record = shown.get(known["node"])
            if record is None:
                continue
            if record["State"].startswith("FUTURE"):
                self._register_again(known)
            elif record.get("Comment") != f"{OURS}{machine}":
                self._slurm.update(known["node"], f"comment={OURS}{machine}")

    def _register_again(self, known: dict[str, Any]) -> None:
        """Let the slurmd of a machine register, if it has had time to; Slurm refuses to set such a record by a command."""
        if known["pid"] is None or self._now - known.get("called", 0.0) < JOIN_S:
            return
        known["called"] = known["again"] = self._now
        self._keep()
        call_again(known["pid"])

    def _end(self, known: dict[str, Any]) -> None:
        """End a machine and all that runs on it, then make its record FUTURE again."""
        node, pid = known["node"], known["pid"]
        if pid is None or not is_slurmd(pid):
            pid = self._slurm.daemon_of(node)
        if pid is not None:
            end_process(pid, is_slurmd)
        if not self._slurm.nodes().get(node, {}).get("State", "FUTURE").startswith("FUTURE"):
            if known["ending"] != "goes back":  # what runs there goes into the queue again
                self._slurm.update(node, "state=down", f"reason={OURS} {known['ending']}")
                end_steps(self._slurm.conf, node)
            self._slurm.update(node, "comment=")
            self._slurm.update(node, "state=future")
        known["gone"] = True
        self._keep()

    def _id(self, prefix: str) -> str:
        number = self._state.next
        self._state.next += 1
        return f"{prefix}-{number:04d}"


# ------------------------------------------------------------------------------ templates
def names_of(text: str) -> list[str]:
    """Return the names of a list such as ``small[1-3]`` or ``a1,a2``."""
    names: list[str] = []
    for before, low, high, name in re.findall(r"([^,\[\]]+)\[(\d+)-(\d+)\]|([^,\[\]]+)", text):
        if name:
            names.append(name)
        else:
            names += [f"{before}{n:0{len(low)}d}" for n in range(int(low), int(high) + 1)]
    return names


def template_of(one: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the configuration as the contract writes it."""
    attributes: dict[str, list[str]] = {
        "ncpus": ["Numeric", str(one["cpus"])],
        "ncores": ["Numeric", "1"],
        "mem": ["Numeric", str(one["memory"])],
    }
    for feature in one.get("features", []):
        attributes[feature] = ["Boolean", "1"]
    for name, amount in one.get("gres", {}).items():
        attributes[name] = ["Numeric", str(amount)]
    attributes.update(one.get("attributes", {}))
    price = {"priceInfo": str(one["price"])} if "price" in one else {}
    return {
        "templateId": one["templateId"],
        "maxNumber": len(names_of(one["nodes"])),
        "priority": int(one.get("priority", 0)),
        "attributes": attributes,
        **price,
    }


# ------------------------------------------------------------------------------ processes
def call_again(pid: int) -> None:
    """Let a slurmd register again; what runs below it goes on."""
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return


def is_slurmd(pid: int) -> bool:
    """Return whether a process is a slurmd that runs."""
    try:
        if Path(f"/proc/{pid}/comm").read_text().strip() != "slurmd":
            return False
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end_process(pid: int, is_it: Callable[[int], bool]) -> None:
    """End a process: asked first, then forced."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + _END_S
        while is_it(pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
            if time.monotonic() > end:
                break
            time.sleep(0.05)


def end_steps(conf: str, node: str) -> None:
    """End what jobs left on a machine that is no more: only step daemons of this cluster and node are touched."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "comm").read_text().strip() != "slurmstepd":
                continue
            below = _below(int(place.name))
            told = [Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in below]
        except OSError:
            continue
        if any(
            f"SLURMD_NODENAME={node}".encode() in words and f"SLURM_CONF={conf}".encode() in words
            for words in told
        ):
            for pid in (int(place.name), *below):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def _below(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in children for each in (int(child), *_below(int(child)))]


# ------------------------------------------------------------------------------------ main
SCRIPTS: Final[dict[str, Callable[[SlurmLocal, dict[str, Any]], dict[str, Any]]]] = {
    "getProviderDescription": SlurmLocal.get_provider_description,
    "getAvailableTemplates": SlurmLocal.get_available_templates,
    "requestMachines": SlurmLocal.request_machines,
    "getRequestStatus": SlurmLocal.get_request_status,
    "requestReturnMachines": SlurmLocal.request_return_machines,
    "getReturnRequests": SlurmLocal.get_return_requests,
    "listMachines": SlurmLocal.list_machines,
}


def main(arguments: list[str]) -> int:
    """Run one script."""
    return program.run(arguments, SCRIPTS, partial(program.kept, "slurm-local", State, _made))


def _made(conf: dict[str, Any], state: State, keep: Callable[[], None]) -> SlurmLocal:
    return SlurmLocal(conf, state, keep, time.time())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
