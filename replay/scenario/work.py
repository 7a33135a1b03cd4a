"""The jobs of a scenario: inline ones, a file's and a generator's together, and which of their attempts fail."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from xce.domain.formats.scenario import JobFailures, Scenario, ScenarioJobs
from xce.replay.draws import chance, delay, draw
from xce.replay.workloads.eda_day import eda_day
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob

_SECOND = timedelta(seconds=1)


def workload_of(scenario: Scenario, file: Workload | None, seed: int) -> Workload:
    """Return all jobs of a scenario, by submit time; ``file`` has those of its file, from its own second 0 on."""
    jobs = [job for group in scenario.workload.jobs for job in _inline(group, seed)]
    records = len(jobs)
    parts = [] if file is None else [file]
    if scenario.workload.generator is not None:
        parts.append(eda_day(seed))
    for part in parts:
        jobs += part.jobs
        records += part.records
    if scenario.workload.failures is not None:
        jobs = [_failing(job, scenario.workload.failures, seed) for job in jobs]
    jobs.sort(key=lambda job: job.submit)
    return Workload(
        scenario.name,
        scenario.start,
        tuple(jobs),
        records,
        () if file is None else file.left_out,
        () if file is None else file.notes,
    )


def _inline(group: ScenarioJobs, seed: int) -> Iterator[WorkloadJob]:
    for number, job in enumerate(group.ids()):
        yield WorkloadJob(
            id=job,
            submit=(group.submit + number * group.every) // _SECOND,
            run_time=delay(group.run_time, seed, "run time", job) // _SECOND,
            shape=Shape(group.tasks, group.resreq, group.exclusive),
            user=group.user,
            project=group.project,
            queue=group.queue,
            run_limit=group.run_limit,
            priority=group.priority,
            held=group.held,
            waits_for=group.waits_for,
        )


def _failing(job: WorkloadJob, rule: JobFailures, seed: int) -> WorkloadJob:
    """Return a job with its failures: each attempt by itself, after a drawn part of its run time."""
    failures: list[int] = []
    for attempt in range(rule.tries):
        key = f"{job.id} {attempt}"
        if not chance(rule.share, seed, "job failure", key):
            return replace(job, failures=tuple(failures))
        failures.append(int(draw(seed, "job failure after", key) * job.run_time))
    return replace(job, failures=tuple(failures), given_up=True)
