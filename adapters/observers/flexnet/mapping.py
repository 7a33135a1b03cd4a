"""From the features of a report to the resources of a site: by server, vendor daemon and feature."""

from collections.abc import Iterable
from datetime import datetime

from xce.adapters.observers.flexnet.report import (
    NO_LIMIT,
    Feature,
    FeatureKind,
    Report,
    ReportState,
)
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.observers import FeatureMapping

_QUALITY = {
    ReportState.OK: Quality.OK,
    ReportState.DEGRADED: Quality.DEGRADED,
    ReportState.PARTIAL: Quality.PARTIAL,
    ReportState.UNREACHABLE: Quality.UNREACHABLE,
}


def matches(mapping: FeatureMapping, feature: Feature) -> bool:
    """Return whether a feature is a part of what a mapping means.

    A feature whose vendor no header names, since nobody uses it, matches any vendor: its use is 0 and its amount counts only where
    one feature of this name stands at the server.
    """
    if mapping.any_case:
        if mapping.feature.lower() != feature.name.lower():
            return False
    elif mapping.feature != feature.name:
        return False
    if mapping.server is not None and not _is_at(mapping.server, feature.server):
        return False
    return mapping.vendor is None or feature.vendor is None or mapping.vendor == feature.vendor


def _is_at(server: str, stated: str) -> bool:
    """Return whether ``port@host`` or ``host`` is one of the hosts of a block; hosts have no case."""
    wanted = server.lower()
    nodes = [node.strip().lower() for node in stated.split(",")]
    return any(wanted in (node, node.rpartition("@")[2]) for node in nodes)


def observations(
    reports: Iterable[Report | None],
    mappings: Iterable[FeatureMapping],
    *,
    source: str,
    sequence: int,
    observed_at: datetime,
    received_at: datetime,
) -> tuple[Observation, ...]:
    """Return one observation of each mapped resource; a report that is None is of a server that did not answer."""
    known = [*reports]
    by_resource: dict[str, list[FeatureMapping]] = {}
    for mapping in mappings:
        by_resource.setdefault(mapping.resource, []).append(mapping)
    return tuple(
        _observation(resource, wanted, known, source, sequence, observed_at, received_at)
        for resource, wanted in by_resource.items()
    )


def _observation(
    resource: str,
    wanted: list[FeatureMapping],
    reports: list[Report | None],
    source: str,
    sequence: int,
    observed_at: datetime,
    received_at: datetime,
) -> Observation:
    quality, found, notes = _found(wanted, reports)
    counted = [each for each in found if each.kind is FeatureKind.COUNTED]
    if any(each.kind is FeatureKind.ERROR for each in found):
        notes += [f"{each.name}: {each.error}" for each in found if each.error is not None]
        quality = Quality.PARTIAL if counted else Quality.UNREACHABLE
    if any(each.kind is FeatureKind.UNCOUNTED or (each.issued or 0) >= NO_LIMIT for each in found):
        notes.append("it has no limit")
        quality = Quality.UNREACHABLE
    elif not counted and quality is not Quality.UNREACHABLE:
        notes.append("the report does not name it")
        quality = Quality.UNREACHABLE
    known = quality is not Quality.UNREACHABLE
    whole = quality in (Quality.OK, Quality.DEGRADED)
    return Observation(
        resource=resource,
        source=source,
        sequence=sequence,
        quality=quality,
        in_use=sum(each.in_use or 0 for each in counted) if known else None,
        issued=sum(each.issued or 0 for each in counted) if whole else None,
        queued=sum(each.queued for each in counted) if known else None,
        reserved=sum(each.reserved for each in counted) if known else None,
        lingering=sum(each.borrowed for each in counted) if known else None,
        observed_at=observed_at,
        received_at=received_at,
        note="; ".join(notes)[:500],
    )


def _found(
    wanted: list[FeatureMapping], reports: list[Report | None]
) -> tuple[Quality, list[Feature], list[str]]:
    """Return the features that are the resource, and how well all servers answered."""
    quality = Quality.OK
    by_server: dict[frozenset[str], list[Feature]] = {}
    notes: list[str] = []
    answered = 0
    for report in reports:
        if report is None or report.state is ReportState.UNREACHABLE:
            quality = Quality.PARTIAL
            notes.append("a server did not answer")
            continue
        answered += 1
        if report.cut is not None:
            notes.append(f"the text is cut: {report.cut}")
        if report.state is ReportState.PARTIAL:
            quality = Quality.PARTIAL
        elif report.state is ReportState.DEGRADED and quality is Quality.OK:
            quality = _QUALITY[report.state]
        told: dict[frozenset[str], list[Feature]] = {}
        for feature in report.features:
            if any(matches(mapping, feature) for mapping in wanted):
                told.setdefault(_nodes(feature), []).append(feature)
        for nodes, features in told.items():
            known = by_server.setdefault(nodes, features)
            if _amount(known) != _amount(features):
                quality = Quality.PARTIAL
                notes.append(f"{' and '.join(sorted(nodes))}: two answers differ in what there is")
            by_server[nodes] = max(known, features, key=_use)
    found = [feature for features in by_server.values() for feature in features]
    return (quality if answered else Quality.UNREACHABLE), found, notes


def _nodes(feature: Feature) -> frozenset[str]:
    """Return the nodes of a feature's server: each node of a triad that is asked answers for all of it."""
    return frozenset(node.strip().lower() for node in feature.server.split(","))


def _amount(features: list[Feature]) -> int:
    return sum(each.issued or 0 for each in features)


def _use(features: list[Feature]) -> int:
    return sum(each.in_use or 0 for each in features)
