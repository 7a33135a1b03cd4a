"""The provider ``simulated``: every script of the contract over one small state file, with faults on demand. Standard library only.

``xce provider install simulated DIR`` writes scripts that run this:

    python -m xce.adapters.providers.simulated requestMachines -f input.json

The configuration is ``simulated.json`` in ``$PRO_CONF_DIR/conf`` or ``$PRO_CONF_DIR``, the state is in ``$PRO_DATA_DIR``. A file ``now``
there holds the time as seconds since 1970, for tests that let time pass; else it is the machine's.

A fault is ``{"fault": "lost", "script": "requestMachines", "calls": [2]}``: the second call of that script. Without ``calls`` it is every
call. ``FAULTS`` lists them.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from xce.adapters.providers.simulated_answers import NO_CAPACITY, RefusalError, Simulated, State

FAULTS: Final[dict[str, str]] = {
    "refuse": "exit code 1 and an error code (`code`), nothing is done",
    "throttled": "exit code 1 and Error Code: RequestLimitExceeded, nothing is done",
    "partial": "half of what is asked comes",
    "surplus": "one more than asked comes",
    "fail": "the machines fail instead of booting",
    "never-join": "the machines boot, and whoever plays the hosts sees that they never join",
    "stuck": "requests and returns made by the call run for ever",
    "return-refused": "the return is accepted, and each machine of it fails",
    "lost": "it is done, and nothing is printed",
    "suspect": "it is done and said, and the exit code is 1",
    "garbage": "it is done, and what is printed is no JSON",
    "two": "it is done, and two answers with different ids are printed",
    "noise": "warnings before the answer",
    "literal": "the answer is a Python literal",
    "flood": "it prints without end, nothing is done",
    "slow": "it takes `seconds` longer",
    "hang": "it never ends, nothing is done",
    "hang-after": "it is done, and then it never ends",
}
#: A fault `slow` sleeps for less than this.
_SECONDS_MAX: Final = 1e8

SCRIPTS: Final[dict[str, Callable[[Simulated, dict[str, Any]], dict[str, Any]]]] = {
    "getAvailableTemplates": Simulated.get_available_templates,
    "requestMachines": Simulated.request_machines,
    "getRequestStatus": Simulated.get_request_status,
    "requestReturnMachines": Simulated.request_return_machines,
    "getReturnRequests": Simulated.get_return_requests,
    "getProviderDescription": Simulated.get_provider_description,
    "listMachines": Simulated.list_machines,
    "getAvailableResources": Simulated.get_available_resources,
    "requestResources": Simulated.request_resources,
    "requestReturnResources": Simulated.request_return_resources,
    "listGrants": Simulated.list_grants,
    "observeResources": Simulated.observe_resources,
}


def main(arguments: list[str]) -> int:
    """Run one script."""
    if len(arguments) != 3 or arguments[0] not in SCRIPTS or arguments[1] != "-f":
        print("wanted: SCRIPT -f FILE", file=sys.stderr)
        return 2
    script = arguments[0]
    try:
        given = json.loads(Path(arguments[2]).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        print(json.dumps({"message": f"the input cannot be read: {error}"}))
        return 1
    data = Path(os.environ["PRO_DATA_DIR"])
    try:
        conf = _configuration(Path(os.environ["PRO_CONF_DIR"]))
    except RefusalError as error:
        print(json.dumps({"message": f"simulated.json: {error}"}))
        return 1
    with (data / "simulated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = _load(data / "simulated.json")
        count = state.calls[script] = state.calls.get(script, 0) + 1
        rules = [rule for rule in conf.get("faults", []) if _strikes(rule, script, count)]
        faults = {rule["fault"] for rule in rules}
        _save(data / "simulated.json", state)
    _before(rules, faults)
    with (data / "simulated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = _load(data / "simulated.json")
        try:
            answer = SCRIPTS[script](Simulated(conf, state, _now(data), faults), given)
        except RefusalError as error:
            print(json.dumps({"message": str(error)}))
            return 1
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            print(json.dumps({"message": f"the input is not understood: {error!r}"}))
            return 1
        _save(data / "simulated.json", state)
    return _say(answer, faults)


def _before(rules: list[dict[str, Any]], faults: set[str]) -> None:
    for rule in rules:
        if rule["fault"] == "slow":
            time.sleep(float(rule.get("seconds", 1)))
        if rule["fault"] == "refuse":
            print(json.dumps({"message": f"Error Code: {rule.get('code', NO_CAPACITY)}: refused"}))
            raise SystemExit(1)
    if "throttled" in faults:
        print(json.dumps({"message": "Error Code: RequestLimitExceeded: too many requests"}))
        raise SystemExit(1)
    if "hang" in faults:
        _hang()
    while "flood" in faults:
        sys.stdout.write("x" * 65536)


def _say(answer: dict[str, Any], faults: set[str]) -> int:
    if "hang-after" in faults:
        _hang()
    if "lost" in faults:
        return 0
    if "noise" in faults:
        print("warning: the setting 'zone' can't be used {here}\n")
    if "garbage" in faults:
        print("<html>502 Bad Gateway</html>")
    elif "literal" in faults:
        print(repr(answer))
    else:
        print(json.dumps(answer))
    if "two" in faults:
        print(json.dumps({**answer, "requestId": "add-other"}))
    return 1 if "suspect" in faults else 0


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


def _configuration(folder: Path) -> dict[str, Any]:
    for path in (folder / "conf" / "simulated.json", folder / "simulated.json"):
        if path.is_file():
            try:
                conf: Any = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise RefusalError(str(error)) from None
            if not isinstance(conf, dict):
                raise RefusalError(f"wanted an object, found {conf!r}")
            found = cast("dict[str, Any]", conf)
            _check_faults(found.get("faults", []))
            return found
    raise SystemExit(f"there is no simulated.json in {folder}")


def _check_faults(rules: Any) -> None:
    if not isinstance(rules, list):
        raise RefusalError(f"faults: wanted a list, found {rules!r}")
    entries = cast("list[object]", rules)
    for number, rule in enumerate(entries):
        if why := _wrong_with(rule):
            raise RefusalError(f"faults[{number}]: {why}")


def _wrong_with(rule: Any) -> str:
    """Return what is wrong with a fault of the configuration; "": nothing."""
    if not isinstance(rule, dict):
        return f'wanted an object such as {{"fault": "lost"}}, found {rule!r}'
    read = cast("dict[str, Any]", rule)
    fault, script, calls = read.get("fault"), read.get("script"), read.get("calls")
    seconds = read.get("seconds", 1)
    if not isinstance(fault, str) or fault not in FAULTS:
        return f"fault: wanted one of {', '.join(FAULTS)}, found {fault!r}"
    if "script" in read and (not isinstance(script, str) or script not in SCRIPTS):
        return f"script: wanted one of {', '.join(SCRIPTS)}, found {script!r}"
    if calls is not None and not _are_numbers(calls):
        return f"calls: wanted a list of numbers such as [2], found {calls!r}"
    if not isinstance(seconds, int | float) or not 0 <= seconds < _SECONDS_MAX:
        return f"seconds: wanted a number from 0 on, found {seconds!r}"
    return ""


def _are_numbers(calls: Any) -> bool:
    if not isinstance(calls, list):
        return False
    entries = cast("list[object]", calls)
    return all(type(one) is int for one in entries)


def _strikes(rule: dict[str, Any], script: str, count: int) -> bool:
    calls = rule.get("calls")
    return rule.get("script", script) == script and (calls is None or count in calls)


def _now(data: Path) -> float:
    try:
        return float((data / "now").read_text())
    except FileNotFoundError:
        return time.time()


def _load(path: Path) -> State:
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return State()


def _save(path: Path, state: State) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(state)), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
