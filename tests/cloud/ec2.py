"""The provider ``ec2`` in this process, in front of a stand-in; no time passes but that which the stand-in takes."""

import atexit
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.cloud.moto import IMAGE, REGION
from xce.adapters.providers.ec2.cloud import Cloud
from xce.adapters.providers.ec2.scripts import SCRIPTS, Scripts
from xce.adapters.providers.ec2.settings import Ec2Settings

TEMPLATE = "c7i-xlarge"
SPOT = "c7i-xlarge-spot"
#: Who wants to know of pauses; a client takes half a second to make, so that it is not one of each test.
_slept: list[list[float]] = [[]]
NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)


def conf(url: str, **changes: Any) -> dict[str, Any]:
    """Return a configuration with one template on demand and one of the spot market."""
    launch = {"InstanceType": "c7i.xlarge", "ImageId": IMAGE}
    return {
        "owner": "lab/cluster-a",
        "region": REGION,
        "endpointUrl": url,
        "attempts": 3,
        "readTimeoutSeconds": 60,
        "visibleWithinSeconds": 2,
        "templates": [
            {"templateId": TEMPLATE, "pricePerHour": "0.1785", "launch": launch},
            {
                "templateId": SPOT,
                "pricePerHour": "0.07",
                "market": "spot",
                "maxPrice": "0.10",
                "launch": launch,
            },
        ],
        **changes,
    }


@dataclass
class Ec2:
    """The provider's scripts as functions; ``slept`` has the pauses that it made."""

    folder: Path
    conf: dict[str, Any]
    now: datetime = NOW
    slept: list[float] = field(default_factory=list[float])
    tags: int = 0

    def __post_init__(self) -> None:
        self.settings = Ec2Settings.model_validate(self.conf)
        self.cloud = cloud_of(self.settings)
        _slept[0] = self.slept
        self.scripts = Scripts(
            self.settings, self.folder, self.cloud, lambda: self.now, self._new_tag
        )

    def call(self, script: str, **given: Any) -> dict[str, Any]:
        return SCRIPTS[script](self.scripts, given)

    def request(self, count: int = 1, tag: str = "tag-1", template: str = TEMPLATE) -> str:
        """Ask for machines; return the id of the request."""
        answer = self.call(
            "requestMachines",
            template={"templateId": template, "machineCount": count},
            requestTag=tag,
        )
        return str(answer["requestId"])

    def status(self, request: str) -> dict[str, Any]:
        return self.statuses([request])[0]

    def statuses(self, requests: list[str]) -> list[dict[str, Any]]:
        answer = self.call("getRequestStatus", requests=[{"requestId": one} for one in requests])
        found: list[dict[str, Any]] = answer["requests"]
        return found

    def machines(self, request: str) -> list[str]:
        """Return the ids of the machines that a request brought."""
        said = self.status(request)["machines"]
        return [one["machineId"] for one in said if one["result"] == "succeed"]

    def give_back(self, machines: list[str], tag: str = "return-1") -> str:
        named = [{"name": one, "machineId": one} for one in machines]
        return str(self.call("requestReturnMachines", machines=named, requestTag=tag)["requestId"])

    def taken_back(self, machines: list[str]) -> dict[str, int]:
        """Return the grace periods of what is taken back, by id."""
        named = [{"name": f"host of {one}", "machineId": one} for one in machines]
        answer = self.call("getReturnRequests", machines=named)
        return {one["machineId"]: one["gracePeriod"] for one in answer["requests"]}

    def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("listMachines")["machines"]
        return found

    def _new_tag(self) -> str:
        self.tags += 1
        return f"made-up-{self.tags}"


@cache
def _cloud_of(url: str, read_timeout_seconds: int, attempts: int) -> Cloud:
    made = conf(url, readTimeoutSeconds=read_timeout_seconds, attempts=attempts)
    cloud = Cloud(Ec2Settings.model_validate(made), lambda seconds: _slept[0].append(seconds))
    atexit.register(cloud.close)
    return cloud


def cloud_of(settings: Ec2Settings) -> Cloud:
    """Return the client; what of the settings is not the client's, or always the same here, makes no other one."""
    return _cloud_of(settings.endpoint_url or "", settings.read_timeout_seconds, settings.attempts)
