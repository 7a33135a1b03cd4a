"""What is fed with made-up texts: every reader of what scripts print, and of files that providers have. Each says what it made of a text, in a word.

A reader may refuse, with an error of its own kind that it promises; anything else that it raises is a finding.
"""

import json
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.provisioner.rig import Process, Site, pass_time
from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from xce.adapters.observers.flexnet.parser import parse
from xce.adapters.observers.looking import read_numbers
from xce.adapters.providers import call, command, simulated
from xce.adapters.providers.call import Limits, Ran
from xce.adapters.providers.ec2.settings import CONF, Ec2Settings
from xce.adapters.providers.evidence import Evidence
from xce.adapters.providers.folder import ProviderFolder
from xce.adapters.providers.lsf_files import (
    read_host_providers,
    read_policies,
    read_queues,
    read_templates,
)
from xce.adapters.providers.lsf_import import import_lsf
from xce.adapters.providers.script_provider import ScriptProvider
from xce.adapters.providers.simulated_answers import RefusalError
from xce.adapters.provisioner.service import read_provisioner_config
from xce.domain.engine.commands import RecordJoin
from xce.domain.engine.messages import Role
from xce.domain.errors import AdapterError, InputError, XceError
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_output import without_codes
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Ask, GrantBack
from xce.domain.provisioning.instance import InstanceState

NOW: Final = datetime(2026, 3, 2, 8, tzinfo=UTC)
#: Where a text that a reader is fed with is kept meanwhile; memory, where the machine has such a place.
_FAST: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass(frozen=True)
class Target:
    """A reader, and texts that it understands."""

    name: str
    seeds: tuple[bytes, ...]
    feed: Callable[[bytes], str]


# ----------------------------------------------------------------- what scripts print
_MACHINES: Final = [
    {"machineId": "vm-1", "name": "burst-0-1", "result": "succeed", "status": "RUNNING", "privateIpAddress": "10.0.0.1",
     "publicIpAddress": None, "launchtime": 1770000000, "message": "", "rcAccount": "default"},
    {"machineId": "vm-2", "name": "", "result": "executing", "launchtime": "2026-03-02T08:00:00Z", "requestTag": "R1"},
    {"machineId": "", "name": "n3", "result": "fail", "message": "Error Code: InsufficientInstanceCapacity", "launchtime": "1770000000"},
]  # fmt: skip
_GRANTS: Final = [
    {"grantId": "g-1", "resource": "lic_sim", "amount": 4, "holdUntil": "2026-03-02T09:00:00Z", "expiresAt": None, "result": "succeed"},
]  # fmt: skip
_TEMPLATES: Final = {
    "templates": [
        {"templateId": "c4", "maxNumber": "-1", "priority": "3", "priceInfo": "price:0.17,unit:hour", "rank": 1, "userData": "a=b",
         "attributes": {"ncpus": ["Numeric", "2"], "ncores": ["Numeric", 4], "mem": ["Numeric", "8192"], "type": ["String", "X86"],
                        "burst": ["Boolean", "1"]}},
        {"templateId": "c8", "maxNumber": 10, "attributes": {"nram": ["Numeric", "4096"]}, "instanceTags": "x=y"},
    ]
}  # fmt: skip
_DESCRIPTION: Final = {
    "contract": 2, "kinds": ["host", "countable"], "capabilities": {"requestTag": True, "listing": True}, "capacity": 10,
    "cost": "0.20", "priority": 3, "leadTime": {"p50": 60, "p95": "2m"}, "granularity": {"minimum": 1, "step": 2},
    "minimumHold": 60, "billing": {"unit": "hour", "minimum": "1m"}, "region": "r", "zone": "z", "attributes": {"rack": "A7"},
}  # fmt: skip
_ANSWERS: Final[dict[str, tuple[Any, ...]]] = {
    "getAvailableTemplates": (_TEMPLATES, {"templates": []}),
    "requestMachines": ({"requestId": "add-1", "message": ""}, {"message": "Error Code: X: no", "retryAfter": 60}),
    "getRequestStatus": (
        {"requests": [{"requestId": "add-1", "status": "complete", "message": "", "machines": _MACHINES}]},
        {"requests": {"requestId": "add-1", "status": "running", "grants": _GRANTS}},
    ),
    "requestReturnMachines": ({"requestId": "ret-1", "message": ""},),
    "getReturnRequests": ({"requests": [{"machine": "burst-0-1", "machineId": "vm-1", "gracePeriod": "120"}, {"machine": "alien"}]},),
    "getProviderDescription": (_DESCRIPTION,),
    "listMachines": ({"machines": _MACHINES},),
    "getAvailableResources": ({"resources": [{"name": "lic_sim", "headroom": 4, "step": 2, "price": "0.50", "hold": 60}]},),
    "requestResources": ({"requestId": "add-1", "message": ""},),
    "requestReturnResources": ({"requestId": "ret-1", "message": ""},),
    "listGrants": ({"grants": _GRANTS},),
    "observeResources": ({"resources": [{"name": "lic_sim", "issued": 24, "inUse": 7, "at": "2026-03-02T08:00:00Z"}]},),
}  # fmt: skip
_ABOUT_HOSTS: Final = (
    "getAvailableTemplates",
    "requestMachines",
    "getRequestStatus",
    "requestReturnMachines",
    "getReturnRequests",
    "getProviderDescription",
    "listMachines",
)


def clean(script: str) -> bytes:
    """Return what a script answers when all is well."""
    return json.dumps(_ANSWERS[script][0]).encode()


def printed(answer: Any) -> Iterator[bytes]:
    """Yield an answer as scripts print such: clean, as a Python literal, behind a warning, with a comma too many."""
    clean = json.dumps(answer)
    yield clean.encode()
    yield repr(answer).encode()
    yield b"warning: the setting can't be used {here}\n\n" + clean.encode() + b"\n"
    yield clean.replace("}", ",}", 1).encode()


class Scripted:
    """A real script provider whose scripts print what it is told, with an exit code."""

    def __init__(self, folder: Path) -> None:
        (folder / "scripts").mkdir()
        for name in _ANSWERS:
            (folder / "scripts" / name).touch()
        self.texts = {name: clean(name) for name in _ANSWERS}
        self.exit_code = 0
        self.heard: list[Evidence] = []
        settings = ScriptSettings(name="cloud", folder=str(folder), keep_calls=100)
        self.provider = ScriptProvider(settings, folder / "kept", on_call=self.heard.append)

    def run(
        self,
        script: Path,
        given: str,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits,
        left_s: Callable[[], float] | None = None,
    ) -> Ran:
        """Stand in for the run of a script; its folder is as a run would have left it."""
        text = self.texts[script.name]
        folder.mkdir()
        for name, content in (("input.json", given.encode()), ("stdout", text), ("exit", b"%d" % self.exit_code)):  # fmt: skip
            (folder / name).write_bytes(content)
        return Ran((str(script), "-f", "x"), self.exit_code, text, text[:1000], seconds=0.1)

    def uses(self) -> dict[str, Callable[[str], object]]:
        """Return what the port lets one do, by the script that is asked; each use has a key of its own."""
        port = self.provider
        return {
            "getAvailableTemplates": lambda key: port.describe(NOW),
            "requestMachines": lambda key: port.ask(Ask(key, Kind.HOST, "c4", 2), NOW),
            "getRequestStatus": lambda key: port.statuses([f"add-{key}", "add-1"], NOW),
            "requestReturnMachines": lambda key: port.give_back(key, ("vm-1",), (), NOW),
            "getReturnRequests": lambda key: port.take_backs({"vm-1": "burst-0-1"}, NOW),
            "getProviderDescription": lambda key: port.describe(NOW),
            "listMachines": lambda key: port.holdings(NOW),
            "getAvailableResources": lambda key: port.describe(NOW),
            "requestResources": lambda key: port.ask(Ask(key, Kind.COUNTABLE, "lic_sim", 2), NOW),
            "requestReturnResources": lambda key: port.give_back(
                key, (), (GrantBack("g", 1),), NOW
            ),
            "listGrants": lambda key: port.holdings(NOW),
            "observeResources": lambda key: port.observe(NOW),
        }


@contextmanager
def scripted() -> Generator[Scripted]:
    """Give a provider whose scripts are not run."""
    real = call.run
    with tempfile.TemporaryDirectory(dir=_FAST) as folder:
        made = Scripted(Path(folder))
        call.run = made.run
        try:
            yield made
        finally:
            call.run = real


class PortTarget:
    """Feeds one script's output through the whole port, and after it a clean one, which must be understood."""

    def __init__(self, script: str) -> None:
        self.script = script

    def __call__(self, text: bytes) -> str:
        with scripted() as place:
            use = place.uses()[self.script]
            place.provider.describe(NOW)
            place.heard.clear()
            shape = ""
            place.texts[self.script] = text
            for exit_code in (0, 1):
                place.exit_code = exit_code
                shape += self._used(use, f"R{exit_code}")
            place.exit_code = 0
            place.texts[self.script] = clean(self.script)
            assert use("R9") is not None, "a clean answer after it is not understood any more"
            for said in place.heard:
                assert without_codes(said.output) == said.output, "a terminal code is kept"
                assert len(said.output) <= place.provider.settings.evidence_limit + 4
            return shape + "".join(sorted({said.step for said in place.heard}))

    @staticmethod
    def _used(use: Callable[[str], object], key: str) -> str:
        try:
            found = use(key)
        except AdapterError as error:
            return f"{type(error).__name__} {error.code};"
        json.dumps(repr(found)).encode()  # nothing in it that cannot be written
        return f"{type(found).__name__};"


class DaemonTarget:
    """Lets the daemon hear one script's strange output in the middle of its work: it goes on, and all that follows can be recorded."""

    def __init__(self, script: str) -> None:
        self.script = script

    def __call__(self, text: bytes) -> str:
        site = Site()
        try:
            with scripted() as place:
                process = Process(site, place.provider)
                process.begin()
                site.say(2)
                place.texts[self.script] = text
                shape = self._lives(process, 2)
                place.texts[self.script] = clean(self.script)
                self._lives(process, 1)
                for entry in site.inventory.instances:
                    if entry.state is InstanceState.STARTING and entry.machine is not None:
                        site.do(Role.SCHEDULER, RecordJoin(entry.id, "h1", site.clock.now(), {}, {}))  # fmt: skip
                        break
                site.say(idle=site.idle())
                place.texts[self.script] = text
                shape += self._lives(process, 2)
            for event in site.events():
                assert "\0" not in repr(event), "not every store takes it"
            return shape + ",".join(sorted({type(one).__name__ for one in site.events()}))
        finally:
            site.close()

    @staticmethod
    def _lives(process: Process, ticks: int) -> str:
        for _ in range(ticks):
            try:
                process.driver.describe()
                process.tick()
                process.site.look_at_drains()
            except XceError as error:
                return f"{type(error).__name__} {error.code};"
            pass_time(process.site, 3)
        return ""


def _port_targets() -> Iterator[Target]:
    for script, answers in _ANSWERS.items():
        seeds = tuple(text for answer in answers for text in printed(answer))
        yield Target(script, seeds, PortTarget(script))
        if script in _ABOUT_HOSTS:
            yield Target(f"daemon {script}", seeds, DaemonTarget(script))


# ------------------------------------------------------------------- files of providers
def _refused(read: Callable[[], object]) -> str:
    try:
        return f"{type(read()).__name__}"
    except InputError as error:
        return str(error).rpartition(": ")[2][:40]


@contextmanager
def _file(name: str, text: bytes) -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir=_FAST) as folder:
        path = Path(folder) / name
        path.write_bytes(text)
        yield path


def _read_as_file(read: Callable[[Path], object], name: str, text: bytes) -> str:
    with _file(name, text) as path:
        return _refused(lambda: read(path))


_PROVIDERS: Final = {"providers": [{"name": "aws", "type": "awsProv", "confPath": "aws", "scriptPath": "aws", "scriptOption": "-Dx=1"}]}  # fmt: skip
_POLICIES: Final = {
    "UserDefinedScriptPath": "", "Policies": [
        {"Name": "P1", "Consumer": {"rcAccount": ["all"], "templateName": ["c4"], "provider": ["aws"]}, "MaxNumber": "100", "StepValue": "5:10"},
    ],
}  # fmt: skip
_QUEUES: Final = b"Begin Queue\nQUEUE_NAME = normal # the usual\nRC_DEMAND_POLICY = THRESHOLD[[5, 10] [1,60] [100]]\nPRIORITY=30\nEnd Queue\n"  # fmt: skip


def _imported(name: str, text: bytes) -> str:
    """Import a whole resource connector of which one file is strange."""
    with tempfile.TemporaryDirectory(dir=_FAST) as made:
        folder = Path(made)
        (folder / "aws" / "conf").mkdir(parents=True)
        files: dict[str, bytes] = {
            "hostProviders.json": json.dumps(_PROVIDERS).encode(),
            "aws/conf/awsprov_templates.json": json.dumps(_TEMPLATES).encode(),
            "policy_config.json": json.dumps({"Policies": _POLICIES["Policies"]}).encode(),
            "lsb.queues": _QUEUES,
        } | {name: text}
        for place, content in files.items():
            (folder / place).write_bytes(content)

        def whole() -> object:
            made = import_lsf(folder, "site")
            (folder / "made.yaml").write_text(made.provisioner)
            read_provisioner_config(folder / "made.yaml")
            return made

        return _refused(whole)


_CONFIG: Final = b"""name: p1
controller: {addresses: ["http://127.0.0.1:7000"], token_file: token}
scripts:
  - name: cloud
    folder: cloud
    call_limit: 5s
    environment: {ZONE: "a"}
    description: {name: cloud, contract: 1, templates: [{template_id: c4, price_per_hour: "0.17", provides: {slots: 4}}]}
policy: {request_deadline: 15min, budgets: [{name: all, max_hosts: 3}]}
rhythm: {lease_term: 30s, poll: 30s}
"""


def _simulated_faults(text: bytes) -> str:
    """Read ``simulated.json`` as its scripts do."""
    with _file("simulated.json", text) as path:
        try:
            return type(simulated._configuration(path.parent)).__name__  # pyright: ignore[reportPrivateUsage] - its scripts may sleep
        except RefusalError as error:
            return str(error)[:20]


def _ec2(text: bytes) -> str:
    return _refused(lambda: Ec2Settings.from_json(text, "ec2.json"))


_COMMAND: Final = {
    "rule": {"run": ["x", "{template.templateId}", "{machines.*.machineId}"], "answer": {"requestId": "job.id", "message": "=made"}},
    "given": {"template": {"templateId": "c4"}, "machines": [{"machineId": "a"}, {"machineId": "b"}]},
    "printed": {"job": {"id": "7"}},
}  # fmt: skip


def _command(text: bytes) -> str:
    """Fill a command's arguments and shape what it printed, with the errors that its program answers."""
    try:
        whole = json.loads(text)
        rule, given = whole["rule"], whole["given"]
        command.arguments_of(rule["run"], given, "f")
        return type(command._shaped(rule, whole["printed"], given)).__name__  # pyright: ignore[reportPrivateUsage] - without the command
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        return type(error).__name__


def _own_folder(text: bytes) -> str:
    """Go on with a folder of ours in which a file was damaged: it must be as if it were not there."""
    with tempfile.TemporaryDirectory(dir=_FAST) as made:
        folder = ProviderFolder(Path(made))
        folder.keep_answer("add-1", {})
        folder.keep_returned("B1", {})
        folder.keep_description({})
        damaged = [*Path(made).glob("answers/*"), *Path(made).glob("returns/*")]
        for path in (*damaged, Path(made) / "kept.json", Path(made) / "names.jsonl"):
            path.write_bytes(text)
        again = ProviderFolder(Path(made))
        found = (again.answer("add-1"), again.returned("B1"), again.description())
        again.learn({"vm-1": "n1"})
        assert again.name_of("vm-1") == "n1"
        again.forget(frozenset({"vm-1"}))
        return "".join(type(one).__name__ for one in found)


_LMSTAT: Final = (
    HEAD
    + server()
    + users("simA", 10, 3)
    + pool("simA")
    + "".join(session(handle=number) for number in (1, 2, 3))
    + "\n"
    + users("simB", 4, 0)
).encode()


def _lmstat(text: bytes) -> str:
    found = parse(text.decode(errors="replace"))
    return f"{len(found.features)}"


def targets() -> tuple[Target, ...]:
    """Return all of them."""

    def as_file(name: str, read: Callable[[Path], object], *seeds: Any) -> Target:
        texts = tuple(one if isinstance(one, bytes) else json.dumps(one).encode() for one in seeds)
        return Target(name, texts, partial(_read_as_file, read, name))

    def as_import(name: str, seed: Any) -> Target:
        text = seed if isinstance(seed, bytes) else json.dumps(seed).encode()
        return Target(f"import {name}", (text,), partial(_imported, name))

    bare_policies = {"Policies": _POLICIES["Policies"]}
    return (
        *_port_targets(),
        as_file("hostProviders.json", read_host_providers, _PROVIDERS),
        as_file("prov_templates.json", read_templates, _TEMPLATES),
        as_file("policy_config.json", read_policies, bare_policies, _POLICIES),
        as_file("lsb.queues", read_queues, _QUEUES),
        as_import("hostProviders.json", _PROVIDERS),
        as_import("aws/conf/awsprov_templates.json", _TEMPLATES),
        as_import("policy_config.json", bare_policies),
        as_import("lsb.queues", _QUEUES),
        as_file("provisioner.yaml", read_provisioner_config, _CONFIG),
        Target(
            "simulated.json",
            (
                json.dumps(
                    {"templates": [], "faults": [{"fault": "slow", "seconds": 2, "calls": [1]}]}
                ).encode(),
            ),
            _simulated_faults,
        ),
        Target("ec2.json", (json.dumps(CONF).encode(),), _ec2),
        Target("command.json", (json.dumps(_COMMAND).encode(),), _command),
        Target(
            "own folder",
            (
                json.dumps({"parts": [{"id": "a", "items": ["b"]}]}).encode(),
                b'["vm-1", "n1"]\n["vm-2", "n2"]\n',
            ),
            _own_folder,
        ),
        Target(
            "observer",
            (
                json.dumps({"resources": [{"name": "simA", "in_use": 3, "issued": 10}]}).encode(),
                b'{"simA": 3}',
            ),
            lambda text: _refused(lambda: read_numbers(text)),
        ),
        Target("lmstat", (_LMSTAT,), _lmstat),
    )
