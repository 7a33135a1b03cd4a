"""What a configuration changes of a workload, wherever it comes from: a part of it, licences on top, denser, longer.

In this order: the part is taken by the times of the source, licences by the times of submission in the source, and only then
are times scaled.
"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.domain.cluster.requirement import (
    Alternative,
    Compound,
    Number,
    Per,
    Primary,
    Requirement,
    Usage,
)
from xce.domain.cluster.resreq import parse, write
from xce.domain.formats.config import WorkloadConfig
from xce.domain.formats.workload_rules import CutRule, LicenceRule, ScaleRule
from xce.replay.draws import chance
from xce.replay.workloads.workload import Workload, WorkloadJob

_SECOND: Final = timedelta(seconds=1)


def shaped(workload: Workload, config: WorkloadConfig, seed: int) -> Workload:
    """Return the workload as configured; by an empty configuration it is what it was."""
    if config.cut != CutRule():
        workload = _cut(workload, config.cut)
    if config.licences:
        workload = _licensed(workload, config.licences, seed)
    if config.scale != ScaleRule():
        workload = _scaled(workload, config.scale)
    return workload


def _cut(workload: Workload, rule: CutRule) -> Workload:
    first = _first(workload) + rule.skip // _SECOND
    last = None if rule.length is None else first + rule.length // _SECOND
    jobs = tuple(
        job for job in workload.jobs if first <= job.submit and (last is None or job.submit < last)
    )
    records = workload.records - len(workload.jobs) + len(jobs)
    return replace(workload, jobs=jobs, records=records)


def _licensed(workload: Workload, rules: tuple[LicenceRule, ...], seed: int) -> Workload:
    known: dict[tuple[str, tuple[str, ...]], str] = {}
    of = {rule.feature: rule for rule in rules}

    def licensed(job: WorkloadJob) -> WorkloadJob:
        at = workload.start + job.submit * _SECOND
        features = tuple(
            name
            for name, rule in of.items()
            if chance(rule.share_at(at), seed, "licence", name, job.id)
        )
        if not features:
            return job
        key = (job.shape.resreq, features)
        if key not in known:
            known[key] = _with_licences(job.shape.resreq, [of[name] for name in features])
        return replace(job, shape=replace(job.shape, resreq=known[key]))

    return replace(workload, jobs=tuple(licensed(job) for job in workload.jobs))


def _with_licences(resreq: str, rules: list[LicenceRule]) -> str:
    """Return a requirement that also takes tokens for the job, in every alternative once."""
    usage = tuple(Usage(rule.feature, Number(Fraction(rule.tokens)), Per.JOB) for rule in rules)

    def licensed(one: Alternative) -> Alternative:
        match one:
            case Primary():
                return replace(one, rusage=(*one.rusage, *usage))
            case Compound(parts=parts):
                first = replace(parts[0], rusage=(*parts[0].rusage, *usage))
                return Compound((first, *parts[1:]))

    requirement = parse(resreq)
    return write(Requirement(tuple(licensed(one) for one in requirement.alternatives)))


def _scaled(workload: Workload, rule: ScaleRule) -> Workload:
    first = _first(workload)

    def scaled(job: WorkloadJob) -> WorkloadJob:
        limit = job.run_limit
        return replace(
            job,
            submit=first + _times(job.submit - first, 1 / Fraction(rule.arrivals)),
            run_time=_longer(job.run_time, rule.run_times),
            run_limit=None
            if limit is None
            else timedelta(seconds=_longer(limit // _SECOND, rule.run_times)),
        )

    return replace(workload, jobs=tuple(scaled(job) for job in workload.jobs))


def _longer(seconds: int, factor: Decimal) -> int:
    """Return a scaled length of time; what took time takes at least a second."""
    return max(min(seconds, 1), _times(seconds, Fraction(factor)))


def _times(seconds: int, factor: Fraction) -> int:
    return round(seconds * factor)  # half to even, exact


def _first(workload: Workload) -> int:
    return min((job.submit for job in workload.jobs), default=0)
