"""xce: automatic resource provisioning for batch clusters.

What an embedding program needs is listed in ``__all__`` and loaded on first use, so that
``import xce.domain...`` never pulls in an adapter.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xce.adapters.client import Client as Client
    from xce.adapters.controller.embedded import Controller as Controller
    from xce.domain.formats.policy import Decisions as Decisions
    from xce.domain.formats.policy import PolicyInput as PolicyInput
    from xce.domain.formats.session_result import SessionResult as SessionResult
    from xce.domain.formats.snapshot import Snapshot as Snapshot
    from xce.domain.policy.decide import decide as decide
    from xce.domain.ports import Clock as Clock
    from xce.domain.ports import EventLog as EventLog
    from xce.domain.ports import Provider as Provider
    from xce.domain.ports import SchedulerSource as SchedulerSource
    from xce.domain.scheduling.plans import Allocator as Allocator
    from xce.domain.scheduling.plans import ListedPlans as ListedPlans
    from xce.domain.scheduling.session import run_session as run_session
    from xce.projections.all import Projections as Projections

#: Name to module; the same names as above.
_EXPORTS: dict[str, str] = {
    "Allocator": "xce.domain.scheduling.plans",
    "Client": "xce.adapters.client",
    "Clock": "xce.domain.ports",
    "Controller": "xce.adapters.controller.embedded",
    "Decisions": "xce.domain.formats.policy",
    "EventLog": "xce.domain.ports",
    "ListedPlans": "xce.domain.scheduling.plans",
    "PolicyInput": "xce.domain.formats.policy",
    "Projections": "xce.projections.all",
    "Provider": "xce.domain.ports",
    "SchedulerSource": "xce.domain.ports",
    "SessionResult": "xce.domain.formats.session_result",
    "Snapshot": "xce.domain.formats.snapshot",
    "decide": "xce.domain.policy.decide",
    "run_session": "xce.domain.scheduling.session",
}

__all__ = [
    "Allocator",
    "Client",
    "Clock",
    "Controller",
    "Decisions",
    "EventLog",
    "ListedPlans",
    "PolicyInput",
    "Projections",
    "Provider",
    "SchedulerSource",
    "SessionResult",
    "Snapshot",
    "decide",
    "run_session",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'xce' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
