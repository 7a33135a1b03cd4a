"""The scripts of the contract over the EC2 API. What belongs to a request or return is in the tags of its machines."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from xce.adapters.providers.ec2.cloud import FILTER_MAX, Cloud, Machine
from xce.adapters.providers.ec2.errors import (
    PAUSING,
    RefusedError,
    UnansweredError,
    stable_code,
    without,
)
from xce.adapters.providers.ec2.settings import Ec2Settings, Ec2Template, Market, Names

#: Before the tag of a request, and of a return, in the ids that the caller asks after.
LAUNCH: Final = "launch:"
RETURN: Final = "return:"
#: What cannot be a filter of EC2 as it stands, or is too long for a tag, goes by its digest.
_PLAIN_TAG: Final = re.compile(r"[A-Za-z0-9_.:/=+@-]{1,120}")
#: Machines without our tag that one return can name; more of them, and it is refused.
_STRANGERS_MAX: Final = 5
#: A spot machine is gone so many seconds after it was marked.
_SPOT_NOTICE_S: Final = 120
_THERE: Final = ("pending", "running", "stopping", "stopped")
_GONE: Final = ("shutting-down", "terminated")
#: Words of LSF for architectures.
_TYPES: Final = {"x86_64": "X86_64", "arm64": "AARCH64"}

Answer = dict[str, Any]


class Scripts:
    """One call of one script.

    Every method raises ``RefusedError`` where nothing was done, and ``UnansweredError`` where that is not known.
    """

    def __init__(
        self,
        settings: Ec2Settings,
        folder: Path,
        cloud: Cloud,
        now: Callable[[], datetime],
        new_tag: Callable[[], str],
    ) -> None:
        """``folder`` has what the settings name; ``new_tag`` is for callers that give none."""
        self._settings = settings
        self._folder = folder
        self._cloud = cloud
        self._now = now
        self._new_tag = new_tag

    # ------------------------------------------------------------------ what there is
    def templates(self, _given: Answer) -> Answer:
        """Return the templates of the configuration; EC2 is asked for the sizes that are not in it."""
        asked = {
            kind
            for one in self._settings.templates
            if (kind := _type_of(one)) and not {"ncores", "mem"} <= one.attributes.keys()
        }
        sizes = self._cloud.sizes(sorted(asked)) if asked else {}
        return {
            "templates": [
                _template(one, sizes.get(_type_of(one), {})) for one in self._settings.templates
            ]
        }

    def description(self, _given: Answer) -> Answer:
        """Return what the provider can do, and what the configuration adds."""
        return {
            "contract": 2,
            "kinds": ["host"],
            "region": self._settings.region,
            "billing": {"unit": "second", "minimum": "60s"},
            **self._settings.description,
            "capabilities": {"requestTag": True, "listing": True},
        }

    def listed(self, _given: Answer) -> Answer:
        """Return all machines with the tag of the owner that are not on their way out."""
        found = self._cloud.machines(
            tag__owner=[self._settings.owner], instance_state_name=list(_THERE)
        )
        return {
            "machines": [
                {
                    **self._machine(one),
                    "result": "succeed" if one.state == "running" else "executing",
                    "templateId": one.tags.get("xce:template", ""),
                    "requestTag": one.tags.get("xce:request-tag", ""),
                }
                for one in found
            ]
        }

    # ------------------------------------------------------------------------ requests
    def request(self, given: Answer) -> Answer:
        """Launch machines: up to so many, at least one. The same tag is the same launch."""
        wanted, count = given["template"]["templateId"], int(given["template"]["machineCount"])
        template = self._settings.template(wanted)
        if template is None:
            raise RefusedError("InvalidParameterValue", f"there is no template {wanted!r}")
        if count < 1:
            raise RefusedError("InvalidParameterValue", f"asked for {count} machines")
        tag = str(given.get("requestTag") or self._new_tag())
        key = _key(tag)
        accepted = {"requestId": LAUNCH + key}
        if self._of_launches([key]):
            return {**accepted, "message": "known by its tag"}
        try:
            launched = self._cloud.run(self._parameters(template, count, tag))
        except RefusedError as error:
            if error.theirs != "IdempotentParameterMismatch":
                raise
            # It was launched earlier, by another configuration, and is not shown yet.
            raise UnansweredError(f"launched before, and not to be seen: {error.why}") from None
        if not self._cloud.see(launched):
            raise UnansweredError(
                f"launched {', '.join(launched)}, and EC2 does not show them yet; the same tag finds them"
            )
        short = f": {len(launched)} of {count}" if len(launched) < count else ""
        return {**accepted, "message": f"launched{short}"}

    def _parameters(self, template: Ec2Template, count: int, tag: str) -> Answer:
        tags = {
            "Name": f"xce {self._settings.owner} {template.template_id}"[:256],
            **self._settings.tags,
            **template.tags,
            "xce:owner": self._settings.owner,
            "xce:request": _key(tag),
            "xce:request-tag": tag[:256],
            "xce:template": template.template_id,
            "xce:asked": str(count),
        }
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        made: Answer = {
            **template.launch,
            "MinCount": 1,
            "MaxCount": count,
            "ClientToken": sha256(f"{self._settings.owner}\n{tag}".encode()).hexdigest(),
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": pairs},
                {"ResourceType": "volume", "Tags": pairs},
            ],
        }
        if template.market is Market.SPOT:
            spot: Answer = {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            }
            if template.max_price is not None:
                spot["MaxPrice"] = str(template.max_price)
            made["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot}
        if template.user_data_file is not None:
            try:
                made["UserData"] = (self._folder / template.user_data_file).read_text("utf-8")
            except (OSError, ValueError) as error:
                why = f"userDataFile {template.user_data_file}: {error}"
                raise RefusedError("InvalidUserData", why) from None
        return made

    def status(self, given: Answer) -> Answer:
        """Return where launches and returns are."""
        ids = [str(one["requestId"]) for one in given["requests"]]
        launches = {one.removeprefix(LAUNCH) for one in ids if one.startswith(LAUNCH)}
        returns = {_return_key(one) for one in ids if one.startswith(RETURN)}
        launched = self._of_launches(sorted(launches))
        returned = self._of("return", sorted(returns))
        answers: list[Answer] = []
        for one in ids:
            if one.startswith(RETURN):
                answers.append(self._return_status(one, returned.get(_return_key(one), [])))
            else:
                answers.append(self._launch_status(one, launched.get(one.removeprefix(LAUNCH), [])))
        return {"requests": answers}

    def _launch_status(self, request: str, machines: Sequence[Machine]) -> Answer:
        asked = max((_asked(one) for one in machines), default=1)
        results = [_result(one) for one in machines]
        said = [
            {**self._machine(one), "result": result, "message": self._why(one, result)}
            for one, result in zip(machines, results, strict=True)
        ]
        came = results.count("succeed")
        if "executing" in results:
            return {"requestId": request, "status": "running", "message": "", "machines": said}
        if came >= asked:
            return {"requestId": request, "status": "complete", "message": "", "machines": said}
        message = f"{came} of {asked} machines came" if machines else "no machine carries its tag"
        return {
            "requestId": request,
            "status": "complete_with_error",
            "message": message,
            "machines": said,
        }

    # ------------------------------------------------------------------------- returns
    def give_back(self, given: Answer) -> Answer:
        """Terminate machines that carry the tag of the owner, and no others."""
        ids = list(dict.fromkeys(str(one["machineId"]) for one in given["machines"]))
        if not ids or not all(ids):
            raise RefusedError("InvalidParameterValue", "wanted machines with their ids")
        known = self._cloud.machines_of(ids)
        ours = [one for one in known.values() if self._is_ours(one)]
        strangers = [one.id for one in known.values() if not self._is_ours(one)]
        if len(strangers) > _STRANGERS_MAX:
            raise RefusedError("NotOwned", f"{', '.join(strangers[:20])}: {self._not_owned}")
        key = _key(str(given.get("requestTag") or self._new_tag()))
        live = [one.id for one in ours if one.state not in _GONE]
        if live:
            self._cloud.tag(live, "xce:return", key)
            self._cloud.terminate(live)
        return {"requestId": "!".join([RETURN + key, *strangers]), "message": ""}

    def _return_status(self, request: str, machines: Sequence[Machine]) -> Answer:
        strangers = request.split("!")[1:]
        said = [
            {
                **self._machine(one),
                "result": "succeed" if one.state == "terminated" else "executing",
            }
            for one in machines
        ]
        said += [
            {"machineId": one, "name": one, "result": "fail", "message": self._not_owned}
            for one in strangers
        ]
        status = "complete_with_error" if strangers else "complete"
        if any(one["result"] == "executing" for one in said):
            status = "running"
        return {"requestId": request, "status": status, "message": "", "machines": said}

    def taken_back(self, given: Answer) -> Answer:
        """Return which machines are gone, or will be soon: interrupted spot machines, retired hosts, what others ended."""
        names = {str(one["machineId"]): str(one.get("name", "")) for one in given["machines"]}
        names.pop("", None)
        if not names:
            return {"requests": []}
        known = self._cloud.machines_of(list(names))
        grace: dict[str, int] = {
            one: 0
            for one in names
            if one not in known or known[one].state not in ("pending", "running")
        }
        here = [one for one in known.values() if one.id not in grace]
        now = self._now()
        for notice in self._cloud.notices(here):
            left = (notice.at - now).total_seconds() + (_SPOT_NOTICE_S if notice.is_spot else 0)
            earlier = grace.get(notice.machine)
            seconds = max(0, int(left))
            grace[notice.machine] = seconds if earlier is None else min(earlier, seconds)
        return {
            "requests": [
                {"machine": names[one], "machineId": one, "gracePeriod": seconds}
                for one, seconds in grace.items()
            ]
        }

    # -------------------------------------------------------------------------- inside
    def _of_launches(self, keys: Sequence[str]) -> dict[str, list[Machine]]:
        return self._of("request", keys)

    def _of(self, what: str, keys: Sequence[str]) -> dict[str, list[Machine]]:
        """Return our machines by the value of a tag of ours; no value that EC2 would take for a pattern is asked for."""
        plain = [key for key in keys if _PLAIN_TAG.fullmatch(key)]
        found: dict[str, list[Machine]] = {}
        for start in range(0, len(plain), FILTER_MAX):
            some = plain[start : start + FILTER_MAX]
            filters = {"tag__owner": [self._settings.owner], f"tag__{what}": some}
            for one in self._cloud.machines(**filters):
                found.setdefault(one.tags.get(f"xce:{what}", ""), []).append(one)
        return found

    def _machine(self, one: Machine) -> Answer:
        names = {
            Names.PRIVATE_DNS: one.private_dns,
            Names.PRIVATE_IP: one.private_ip,
            Names.INSTANCE_ID: one.id,
        }
        return {
            "machineId": one.id,
            "name": names[self._settings.names] or one.id,
            "status": one.state,
            "privateIpAddress": one.private_ip,
            "publicIpAddress": one.public_ip,
            "publicDnsName": one.public_dns,
            "launchtime": one.launched_at.isoformat() if one.launched_at else "",
        }

    def _why(self, one: Machine, result: str) -> str:
        if result != "fail":
            return ""
        code = stable_code(one.reason_code)
        said = without(one.reason, self._cloud.secrets) or f"it is {one.state}"
        return f"Error Code: {code}: {said}" if code in PAUSING else said

    def _is_ours(self, one: Machine) -> bool:
        return one.tags.get("xce:owner") == self._settings.owner

    @property
    def _not_owned(self) -> str:
        return f"carries no tag xce:owner={self._settings.owner}, so it is not terminated"


#: Every script that the provider has.
SCRIPTS: Final[Mapping[str, Callable[[Scripts, Answer], Answer]]] = {
    "getAvailableTemplates": Scripts.templates,
    "requestMachines": Scripts.request,
    "getRequestStatus": Scripts.status,
    "requestReturnMachines": Scripts.give_back,
    "getReturnRequests": Scripts.taken_back,
    "getProviderDescription": Scripts.description,
    "listMachines": Scripts.listed,
}


def _key(tag: str) -> str:
    """Return a tag as it can be looked for."""
    if _PLAIN_TAG.fullmatch(tag):
        return tag
    return f"sha256-{sha256(tag.encode()).hexdigest()}"


def _return_key(request: str) -> str:
    return request.removeprefix(RETURN).split("!")[0]


def _asked(one: Machine) -> int:
    text = one.tags.get("xce:asked", "")
    return int(text) if text.isascii() and text.isdigit() else 1


def _result(one: Machine) -> str:
    if one.state == "pending":
        return "executing"
    return "succeed" if one.state == "running" else "fail"


def _type_of(template: Ec2Template) -> str:
    kind = template.launch.get("InstanceType", "")
    return kind if isinstance(kind, str) else ""


def _template(template: Ec2Template, size: Answer) -> Answer:
    attributes = {
        name: [_kind(value), value if isinstance(value, bool) else str(value)]
        for name, value in {
            **_sizes(size),
            "spot": template.market is Market.SPOT,
            **template.attributes,
        }.items()
    }
    made: Answer = {
        "templateId": template.template_id,
        "maxNumber": template.max_number,
        "priority": template.priority,
        "attributes": attributes,
    }
    if template.price_per_hour is not None:
        made["priceInfo"] = str(template.price_per_hour)
    return made


def _sizes(size: Answer) -> dict[str, bool | int | str]:
    """Return attributes in the words of LSF: one processor of so many cores and threads, memory in MiB."""
    found: dict[str, bool | int | str] = {}
    cores = size.get("VCpuInfo", {})
    threads = int(cores.get("DefaultThreadsPerCore", 1))
    if count := cores.get("DefaultCores") or int(cores.get("DefaultVCpus", 0)) // threads:
        found |= {"ncpus": 1, "ncores": int(count), "nthreads": threads}
    if memory := size.get("MemoryInfo", {}).get("SizeInMiB"):
        found["mem"] = int(memory)
    for name in size.get("ProcessorInfo", {}).get("SupportedArchitectures", []):
        if name in _TYPES:
            found["type"] = _TYPES[name]
    return found


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "Boolean"
    return "String" if isinstance(value, str) else "Numeric"
