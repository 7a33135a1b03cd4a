"""What those who read see of a controller at work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from xce.adapters.controller.feed import Published
from xce.domain.formats.shared_report import SharedReport
from xce.projections.all import Projections


@dataclass(frozen=True, slots=True)
class Views:
    """All that can be read, at one position.

    Attributes:
        now: for what depends on the time, such as costs.
        lease_left_s: seconds until the term of each held lease ends.
        occupied: what is in use of each shared resource, as reported.
        reports: what else the scheduler reported of each.
        primary: epoch of this controller as the primary; 0: it is none.
        session: the newest session result; None: none, or it is older than its time to live.
    """

    projections: Projections
    now: datetime
    lease_left_s: Mapping[str, float]
    occupied: Mapping[str, int | None]
    session: Published | None
    reports: Mapping[str, SharedReport] = field(default_factory=dict[str, SharedReport])
    primary: int = 0
