"""Short ways to write the parts of a snapshot."""

from typing import Any

from xce.domain.formats.snapshot import Snapshot
from xce.domain.formats.snapshot_check import contradictions

NOW = "2026-03-01T10:00:00Z"


def host(
    name: str, *, slots: int = 1, attributes: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a host; other whole numbers than ``rank`` are totals."""
    totals = {name: more.pop(name) for name in ("mem", "fpga", "gpu") if name in more}
    return {
        "name": name,
        "total": {"slots": slots, **totals},
        "attributes": attributes or {},
        **more,
    }


def job(
    name: str, *, tasks: tuple[int, int] = (1, 1), resreq: str = "", **more: Any
) -> dict[str, Any]:
    """Return a pending job; ``tasks`` are the least and the most."""
    return {"id": name, "tasks": {"min": tasks[0], "max": tasks[1]}, "resreq": resreq, **more}


def template(name: str, *, slots: int, allowed: int = 99, **more: Any) -> dict[str, Any]:
    """Return a template; ``mem`` and ``fpga`` are what it provides."""
    provides = {name: more.pop(name) for name in ("mem", "fpga", "gpu") if name in more}
    return {"id": name, "provides": {"slots": slots, **provides}, "allowed": allowed, **more}


def snapshot(**parts: Any) -> Snapshot:
    """Return a snapshot of these parts that contradicts itself nowhere."""
    whole = Snapshot.model_validate({"format": "xce.snapshot/1", "now": NOW, **parts})
    assert not list(contradictions(whole)), list(contradictions(whole))
    return whole
