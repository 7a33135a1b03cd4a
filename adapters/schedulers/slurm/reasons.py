"""Slurm's words for why a job waits, and which of them mean that more hosts or tokens would help."""

from enum import StrEnum
from typing import Final


class Waits(StrEnum):
    """What a job waits for, by Slurm."""

    RESOURCES = "resources"
    LICENCES = "licences"
    LIMIT = "limit"
    ARRAY = "array"
    DEPENDENCY = "dependency"
    TIME = "time"
    HELD = "held"
    RESERVATION = "reservation"
    SITE = "site"
    UNKNOWN = "unknown"


#: What counts as demand, if our own model finds that supply is what is missing.
COUNTS: Final = frozenset({Waits.RESOURCES, Waits.LICENCES, Waits.ARRAY})

#: First in line, behind it, not looked at yet; and what Slurm says where no record of slurm.conf that may be used fits.
_RESOURCES = (
    "None", "Resources", "Priority", "ReqNodeNotAvail", "PartitionConfig", "PartitionNodeLimit", "BadConstraints", "Constraints",
    "NodeDown", "Nodes_required_for_job_are_DOWN", "SchedDefer", "WaitingForScheduling", "NodeNotAvail", "Nodes",
)  # fmt: skip
_HELD = (
    "JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "DependencyNeverSatisfied", "MaxRequeue", "JobLaunchFailure",
    "launch_failed_requeued_held", "NonZeroExitCode", "RaisedSignal", "TimeLimit", "SystemFailure", "OutOfMemory",
    "InactiveLimit", "job_requeued_in_held_state",
)  # fmt: skip
_SITE = (
    "PartitionDown", "PartitionInactive", "PartitionTimeLimit", "InvalidAccount", "InvalidQOS", "AccountNotAllowed",
    "QOSNotAllowed", "MpiPortsBusy", "NvidiaImexChannels", "MaxPoweredUpNodes", "Cleaning", "Prolog", "FrontEndDown", "BurstBufferResources", "BurstBufferStageIn",
    "BurstBufferOperation", "DeadLine", "FedJobLock", "NoReservation", "AccountingPolicy",
)  # fmt: skip

_OF_WORD: Final[dict[str, Waits]] = (
    dict.fromkeys(_RESOURCES, Waits.RESOURCES)
    | dict.fromkeys(_HELD, Waits.HELD)
    | dict.fromkeys(_SITE, Waits.SITE)
    | {
        "": Waits.RESOURCES,
        "Licenses": Waits.LICENCES,
        "Dependency": Waits.DEPENDENCY,
        "BeginTime": Waits.TIME,
        "JobArrayTaskLimit": Waits.ARRAY,
        "Reservation": Waits.RESERVATION,
        "ReservationDeleted": Waits.RESERVATION,
        "ReservationNotActive": Waits.RESERVATION,
        "ReservationInvalid": Waits.RESERVATION,
        "QOSUsageThreshold": Waits.LIMIT,
    }
)
_LIMIT_BEGINS: Final = ("QOS", "Assoc", "Max", "Grp", "Limit")


def waits_for(reason: str) -> Waits:
    """Return what a word means; the sentence of the text form counts by its first word."""
    word = reason.strip()
    if word.startswith(("(", "Nodes required", "Nodes_required")):
        return Waits.RESOURCES if "required" in word else Waits.UNKNOWN
    word = word.split(",")[0].strip()
    if known := _OF_WORD.get(word):
        return known
    if word.startswith(("launch failed requeued held", "job requeued in held")):
        return Waits.HELD
    if word.startswith(_LIMIT_BEGINS):
        return Waits.LIMIT
    return Waits.UNKNOWN
