"""What people and the world do to a simulated site while it runs: the timeline of a scenario."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from xce.domain.formats.base import Count, Duration, Format, Money, Name, Total
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.simulated_provider import Behaviour, CallKind
from xce.domain.formats.snapshot import Settings
from xce.domain.provisioning.drain import AtDeadline


class CrashAt(StrEnum):
    """Where the process ends at its next ask."""

    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"


class _Act(Format):
    """Base of the interventions."""

    at: Duration = Field(description="after the start; before what happens by itself at that time")


class SetTemplate(_Act):
    """A provider offers a template otherwise; what is not given stays."""

    do: Literal["set-template"]
    provider: Name
    template: Name
    price_per_hour: Money | None = None
    max_number: Annotated[StrictInt, Field(ge=-1)] | None = None
    priority: StrictInt | None = None


class SetBehaviour(_Act):
    """A simulated provider behaves otherwise from then on."""

    do: Literal["set-behaviour"]
    provider: Name
    simulation: Behaviour


class CutOff(_Act):
    """A provider does not answer for a while."""

    do: Literal["cut-off"]
    provider: Name
    lasts: Duration = Field(description="how long")
    calls: tuple[CallKind, ...] = Field(
        default=tuple(CallKind), description="which calls; default: all"
    )


class KillHost(_Act):
    """A host dies, and its jobs are queued again; a provisioned one's machine ends."""

    do: Literal["kill-host"]
    host: Name


class TakeBackHost(_Act):
    """A provider says that it takes a machine back, and does so after the notice."""

    do: Literal["take-back-host"]
    host: Name
    notice: Duration = timedelta(minutes=2)


class SetOwned(_Act):
    """An administrator sets what is owned of a shared resource."""

    do: Literal["set-owned"]
    shared: Name
    owned: Count


class SetLimit(_Act):
    """An administrator sets the amount of a limit."""

    do: Literal["set-limit"]
    limit: Name = Field(description="its name")
    amount: Total = Field(description="of what it limits")


class SetPolicy(_Act):
    """Another policy from then on; what is not given stays, budgets are given as a whole."""

    do: Literal["set-policy"]
    policy: PolicyConfig = Field(description="keys of the policy, as in a configuration")


class SetSession(_Act):
    """Sessions decide otherwise from then on; what is not given stays."""

    do: Literal["set-session"]
    session: Settings = Field(description="keys of the session, as in a configuration")


class Freeze(_Act):
    """An administrator freezes the site: nothing new is asked, drained or given back."""

    do: Literal["freeze"]
    why: str = "by the scenario"


class Unfreeze(_Act):
    """An administrator ends the freeze."""

    do: Literal["unfreeze"]
    why: str = "by the scenario"


class Drain(_Act):
    """An administrator drains a host."""

    do: Literal["drain"]
    host: Name
    why: str = "by the scenario"
    deadline: Duration | None = Field(default=None, description="from then; null: there is none")
    at_deadline: AtDeadline = AtDeadline.WAIT


class Open(_Act):
    """An administrator lets a drained host take work again."""

    do: Literal["open"]
    host: Name
    why: str = "by the scenario"


class Pause(_Act):
    """An administrator pauses a provider, or one template or resource of it."""

    do: Literal["pause"]
    provider: Name
    item: Name | None = None
    lasts: Duration


class Resume(_Act):
    """An administrator ends a pause."""

    do: Literal["resume"]
    provider: Name
    item: Name | None = None


class CancelJob(_Act):
    """A user takes a job out, whether it waits or runs."""

    do: Literal["cancel-job"]
    job: Name


class SlipIn(_Act):
    """From then on: when a provisioned host is next closed for its return, the batch system has just started a job on it."""

    do: Literal["slip-in"]
    job: Name = Field(description="id of the new job, of one slot")
    run_time: Duration
    host: Name | None = Field(default=None, description="null: whichever host is closed first")


class Restart(_Act):
    """The controller and its provisioner end at once, and begin anew from the log after a while."""

    do: Literal["restart"]
    lasts: Duration = Field(default=timedelta(0), description="how long nobody is there")
    forgets: tuple[Name, ...] = Field(
        default=(),
        description="topics of events that the release which begins does not know: if the log has one, it does not serve",
    )


class Crash(_Act):
    """From then on: the process ends at its next ask, before or after the call, and begins anew after a while."""

    do: Literal["crash"]
    point: CrashAt
    lasts: Duration = Field(default=timedelta(0), description="how long nobody is there")


class Stall(_Act):
    """From then on: a provisioner stands still at its next ask, before it writes it down, and then goes on where it stood, whoever leads by then."""

    do: Literal["stall"]
    provisioner: Name = Field(description="one of several: `provisioners`")
    lasts: Duration = Field(description="how long it stands still")


class Isolate(_Act):
    """A provisioner does not reach the controller for a while: it renews no lease."""

    do: Literal["isolate"]
    provisioner: Name = Field(description="one of several: `provisioners`")
    lasts: Duration = Field(description="how long")


class SetClockBack(_Act):
    """Somebody sets the wall clock of the process's machine back."""

    do: Literal["set-clock-back"]
    by: Duration = Field(description="by how much, from what it shows")


class DelayDemand(_Act):
    """What sessions say comes late to the provisioner for a while: it decides on what was so before."""

    do: Literal["delay-demand"]
    by: Duration = Field(description="how much later")
    lasts: Duration = Field(description="for what is said until then")


class SetOutside(_Act):
    """Users outside the cluster take this much of a feature from then on."""

    do: Literal["set-outside"]
    server: Name
    feature: Name
    amount: Count


class BlindServer(_Act):
    """A licence server cannot be looked at for a while."""

    do: Literal["blind-server"]
    server: Name
    lasts: Duration


#: Anything that can be done, told apart by ``do``.
Intervention = Annotated[
    SetTemplate | SetBehaviour | CutOff | KillHost | TakeBackHost | SetOwned | SetLimit
    | SetPolicy | SetSession | Freeze | Unfreeze | Drain | Open
    | Pause | Resume | CancelJob | SlipIn | Restart | Crash | Stall | Isolate | SetClockBack
    | DelayDemand | SetOutside | BlindServer,
    Field(discriminator="do"),
]  # fmt: skip
