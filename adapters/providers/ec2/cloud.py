"""Calls of the EC2 API: a bounded number of attempts, each of which may be repeated; and machines as they are seen."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from xce.adapters.providers.ec2.errors import (
    LIBRARY_ERRORS,
    THROTTLED,
    UNREACHABLE,
    LibraryError,
    RefusedError,
    UnansweredError,
    read_error,
)
from xce.adapters.providers.ec2.settings import Ec2Settings

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.literals import InstanceTypeType
    from mypy_boto3_ec2.type_defs import (
        DescribeInstancesRequestTypeDef,
        FilterTypeDef,
        InstanceTypeDef,
        InstanceTypeInfoTypeDef,
    )

T = TypeVar("T")
#: Values of one filter; EC2 takes 200.
FILTER_MAX: Final = 100
_PAGE: Final = 500
_PAGES_MAX: Final = 200
_TYPES_MAX: Final = 100
_PAUSE_MAX_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance as EC2 shows it.

    Attributes:
        state: ``pending``, ``running``, ``shutting-down``, ``terminated``, ``stopping`` or ``stopped``.
        reason_code: why it is in its state, where that is known: ``Server.InsufficientInstanceCapacity``.
    """

    id: str
    state: str
    tags: Mapping[str, str]
    launched_at: datetime | None = None
    private_dns: str = ""
    private_ip: str = ""
    public_ip: str = ""
    public_dns: str = ""
    reason_code: str = ""
    reason: str = ""
    is_spot: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """EC2 takes a machine away; ``at``: when it said so of a spot machine, and else when it will."""

    machine: str
    at: datetime
    is_spot: bool


class Cloud:
    """The API of one account and region. Every method raises ``RefusedError``, or ``UnansweredError`` where it is silent.

    ``sleep`` is called between attempts and looks, with seconds.
    """

    def __init__(self, settings: Ec2Settings, sleep: Callable[[float], None]) -> None:
        """Make the client; nothing is called.

        Raises:
            RefusedError: the credentials are not there.
        """
        self._settings = settings
        self._sleep = sleep
        self.secrets: tuple[str, ...] = ()
        try:
            session = boto3.session.Session(
                profile_name=settings.profile, region_name=settings.region
            )
            credentials = session.get_credentials()
            if credentials is not None:
                frozen = credentials.get_frozen_credentials()
                known = (frozen.access_key, frozen.secret_key, frozen.token)
                self.secrets = tuple(one for one in known if one and len(one) >= 6)
            # Attempts are counted here, and not by the library: it would hide that an earlier one had no answer.
            config = Config(
                connect_timeout=settings.connect_timeout_seconds,
                read_timeout=settings.read_timeout_seconds,
                retries={"total_max_attempts": 1, "mode": "standard"},
                user_agent_extra="xce-provider-ec2",
            )
            self._ec2: EC2Client = session.client(  # pyright: ignore[reportUnknownMemberType]
                "ec2", endpoint_url=settings.endpoint_url, config=config
            )
        except (BotoCoreError, ValueError) as error:
            if isinstance(error, BotoCoreError):
                raise self._meant(error, "credentials") from None
            raise RefusedError("InvalidParameterValue", f"the client: {error}") from None

    def close(self) -> None:
        """Close the connections."""
        self._ec2.close()

    # ------------------------------------------------------------------------ looking
    def machines(self, **filters: Sequence[str]) -> list[Machine]:
        """Return the instances that all filters fit, terminated ones as long as EC2 shows them; ``tag__x`` is tag ``xce:x``."""
        wanted: list[FilterTypeDef] = [
            {"Name": _filter_name(name), "Values": list(values)} for name, values in filters.items()
        ]
        asked: DescribeInstancesRequestTypeDef = {"Filters": wanted, "MaxResults": _PAGE}
        found: list[Machine] = []
        for _ in range(_PAGES_MAX):
            page = self._read("DescribeInstances", lambda: self._ec2.describe_instances(**asked))
            for reservation in page["Reservations"]:
                found += map(_machine, reservation.get("Instances", []))
            token = page.get("NextToken", "")
            if not token:
                return found
            asked["NextToken"] = token
        raise RefusedError(THROTTLED, f"more than {_PAGES_MAX} pages of machines")

    def machines_of(self, ids: Sequence[str]) -> dict[str, Machine]:
        """Return the instances of ids by id; those that EC2 does not show are left out."""
        found: dict[str, Machine] = {}
        for some in _some(ids, FILTER_MAX):
            # The filter, since the parameter of the same name makes one unknown id an error of all.
            found.update({one.id: one for one in self.machines(instance_id=some)})
        return found

    def notices(self, machines: Sequence[Machine]) -> list[Notice]:
        """Return which of some running machines EC2 has said that it takes away."""
        found: list[Notice] = []
        for some in _some([one.id for one in machines if one.is_spot], FILTER_MAX):
            found += self._interruptions(some)
        if machines:
            found += self._events(frozenset(one.id for one in machines))
        return found

    def sizes(self, types: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what EC2 says of instance types, by type."""
        found: dict[str, dict[str, Any]] = {}
        for some in _some(types, _TYPES_MAX):
            for one in self._types(some):
                found[one.get("InstanceType", "")] = cast("dict[str, Any]", one)
        return found

    def _types(self, some: Sequence[str]) -> "Sequence[InstanceTypeInfoTypeDef]":
        types = cast("list[InstanceTypeType]", list(some))
        return self._read(
            "DescribeInstanceTypes",
            lambda: self._ec2.describe_instance_types(InstanceTypes=types),
        )["InstanceTypes"]

    def _interruptions(self, some: Sequence[str]) -> Iterator[Notice]:
        answer = self._read(
            "DescribeSpotInstanceRequests",
            lambda: self._ec2.describe_spot_instance_requests(
                Filters=[{"Name": "instance-id", "Values": some}]
            ),
        )
        for request in answer["SpotInstanceRequests"]:
            status, machine = request.get("Status", {}), request.get("InstanceId", "")
            at, marked = status.get("UpdateTime"), status.get("Code", "").startswith("marked-for-")
            if machine in some and at is not None and marked:
                yield Notice(machine, at, is_spot=True)

    def _events(self, wanted: frozenset[str]) -> Iterator[Notice]:
        answer = self._read(
            "DescribeInstanceStatus",
            lambda: self._ec2.describe_instance_status(
                Filters=[{"Name": "event.code", "Values": ["instance-retirement", "instance-stop"]}]
            ),
        )
        for one in answer["InstanceStatuses"]:
            for event in one.get("Events", []):
                at, machine = event.get("NotBefore"), one.get("InstanceId", "")
                # An event that is over is shown for a week.
                over = event.get("Description", "").startswith(("[Completed]", "[Canceled]"))
                if machine in wanted and at is not None and not over:
                    yield Notice(machine, at, is_spot=False)

    # ----------------------------------------------------------------------- changing
    def run(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Launch machines and return their ids; ``ClientToken`` among the parameters makes a repetition the same launch."""
        answer = self._changed("RunInstances", lambda: self._ec2.run_instances(**parameters))
        return tuple(one.get("InstanceId", "") for one in answer.get("Instances", []))

    def see(self, ids: Sequence[str]) -> bool:
        """Wait until EC2 shows new machines; return whether it does, within the time that is set."""
        waited, pause = 0.0, 0.5
        while True:
            if len(self.machines_of(ids)) == len(set(ids)):
                return True
            if waited >= self._settings.visible_within_seconds:
                return False
            self._sleep(pause)
            waited, pause = waited + pause, min(pause * 2, 5.0)

    def tag(self, ids: Sequence[str], key: str, value: str) -> None:
        """Give machines a tag."""
        self._changed(
            "CreateTags",
            lambda: self._ec2.create_tags(Resources=ids, Tags=[{"Key": key, "Value": value}]),
        )

    def terminate(self, ids: Sequence[str]) -> None:
        """Terminate machines; those that are terminated already stay so."""
        self._changed(
            "TerminateInstances", lambda: self._ec2.terminate_instances(InstanceIds=list(ids))
        )

    # --------------------------------------------------------------------- attempts
    def _read(self, action: str, call: Callable[[], T]) -> T:
        try:
            return self._changed(action, call)
        except UnansweredError as error:
            # Nothing is changed by looking.
            raise RefusedError(UNREACHABLE, str(error), retry_after_s=30) from None

    def _changed(self, action: str, call: Callable[[], T]) -> T:
        """Call until there is an answer; a refusal that says nothing of an earlier attempt without answer is none."""
        lost: UnansweredError | None = None
        attempt = 1
        while True:
            try:
                return call()
            except LIBRARY_ERRORS as error:
                meant = self._meant(error, action)
            if isinstance(meant, UnansweredError):
                lost = meant
            elif meant.code != THROTTLED:
                raise meant
            if attempt == self._settings.attempts:
                raise lost or meant
            self._sleep(min(_PAUSE_MAX_S, 2.0 ** (attempt - 1)) * (0.5 + random.random() / 2))
            attempt += 1

    def _meant(self, error: LibraryError, action: str) -> RefusedError | UnansweredError:
        return read_error(error, action, self.secrets)


def _filter_name(name: str) -> str:
    if name.startswith("tag__"):
        return f"tag:xce:{name.removeprefix('tag__')}"
    return name.replace("_", "-")


def _some(items: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), count):
        yield items[start : start + count]


def _machine(one: "InstanceTypeDef") -> Machine:
    reason = one.get("StateReason", {})
    return Machine(
        id=one.get("InstanceId", ""),
        state=one.get("State", {}).get("Name", ""),
        tags={tag.get("Key", ""): tag.get("Value", "") for tag in one.get("Tags", [])},
        launched_at=one.get("LaunchTime"),
        private_dns=one.get("PrivateDnsName", ""),
        private_ip=one.get("PrivateIpAddress", ""),
        public_ip=one.get("PublicIpAddress", ""),
        public_dns=one.get("PublicDnsName", ""),
        reason_code=reason.get("Code", ""),
        reason=reason.get("Message", ""),
        is_spot=one.get("InstanceLifecycle") == "spot",
    )
