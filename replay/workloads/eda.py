"""Made-up chip-design work, from a seed: people who submit in bursts by day, regressions as arrays by night, more of them toward a freeze.

Each draw depends on the seed and on what it is for: one more day leaves the days before as they were.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from xce.domain.cluster.requirement import Number, Per, Primary, Requirement, Span, Usage
from xce.domain.cluster.resreq import write
from xce.domain.formats.eda import EdaFreeze, EdaNights, EdaParameters, EdaTool
from xce.domain.formats.snapshot import ArrayElement
from xce.replay.draws import chance, delay, draw
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob

_CONTEXT: Final = Context(prec=28)
_SECOND: Final = timedelta(seconds=1)
_HOUR: Final = 3600
_DAY: Final = 86_400
_FRIDAY: Final = 4
_SATURDAY: Final = 5
#: The most seconds between two jobs of one burst.
_APART: Final = 20


def eda(parameters: EdaParameters, seed: int) -> Workload:
    """Return the work; equal parameters and seed give equal jobs."""
    maker = _Maker(parameters, seed)
    jobs = [job for day in range(parameters.days) for job in maker.day(day)]
    jobs.sort(key=lambda job: job.submit)
    return Workload(f"eda, seed {seed}", parameters.start, tuple(jobs), len(jobs))


class _Maker:
    def __init__(self, parameters: EdaParameters, seed: int) -> None:
        self._all = parameters
        self._seed = seed
        self._tools = {tool.name: tool for tool in parameters.tools}
        self._shapes: dict[tuple[str, int, tuple[str, ...]], Shape] = {}

    def day(self, day: int) -> Iterator[WorkloadJob]:
        date = self._all.start + timedelta(days=day)
        yield from self._by_day(day, date)
        if date.weekday() < _SATURDAY:
            yield from self._by_night(day, date, self._all.nights)

    # ------------------------------------------------------------------ people
    def _by_day(self, day: int, date: datetime) -> Iterator[WorkloadJob]:
        wanted = Fraction(self._all.jobs_per_day)
        if date.weekday() >= _SATURDAY:
            wanted *= Fraction(self._all.weekend)
        left, burst = round(wanted), 0
        while left > 0:
            name = f"d{day}b{burst}"
            size = min(left, 1 + self._below(2 * self._all.burst - 1, "size", name))
            yield from self._burst(name, size, day * _DAY + self._second_of_day(name))
            left -= size
            burst += 1

    def _burst(self, name: str, size: int, at: int) -> Iterator[WorkloadJob]:
        """Yield what one person submits in one go: jobs of one tool."""
        tool = self._tool(draw(self._seed, "tool", name))
        user = self._below(self._all.users, "user", name)
        for i in range(size):
            job = f"{name}-{i + 1}"
            yield self._job(
                job,
                tool,
                submit=at,
                user=f"u{user + 1:02}",
                project=f"chip{user % self._all.projects + 1}",
                queue=tool.queue,
                licences=self._licences(tool, job),
            )
            at += self._below(_APART, "apart", job)

    def _second_of_day(self, name: str) -> int:
        """Return when a burst comes: in working hours, with a dip at noon, or at any other time."""
        first, last = self._all.first_hour * _HOUR, self._all.last_hour * _HOUR
        second = draw(self._seed, "second", name)
        if chance(self._all.at_night, self._seed, "at night", name):
            away = int(second * (_DAY - (last - first)))
            return away if away < first else away + last - first
        noon = (first + last) // 2
        at = first + int(second * (last - first))
        if abs(at - noon) < _HOUR // 2 and chance(Decimal("0.5"), self._seed, "noon", name):
            at += _HOUR
        return at

    def _tool(self, drawn: Fraction) -> EdaTool:
        reached = Fraction(0)
        for tool in self._all.tools:
            reached += Fraction(tool.share)
            if drawn < reached:
                return tool
        return self._all.tools[-1]

    # ------------------------------------------------------------- regressions
    def _by_night(self, day: int, date: datetime, nights: EdaNights) -> Iterator[WorkloadJob]:
        factor = _ramp(self._all.freeze, day)
        arrays = Fraction(nights.arrays)
        if date.weekday() == _FRIDAY:
            arrays *= Fraction(nights.friday)
        tool = self._tools.get(nights.tool, self._all.tools[0])
        for number in range(round(arrays)):
            name = f"n{day}a{number}"
            window = (nights.last_hour - nights.first_hour) * _HOUR
            at = day * _DAY + nights.first_hour * _HOUR
            at += self._below(window, "drop", name)
            size = max(1, round(self._size(nights, name) * factor))
            # The elements of an array ask for the same.
            licences = self._licences(tool, name)
            project = f"chip{number % self._all.projects + 1}"
            for index in range(1, size + 1):
                yield self._job(
                    f"{name}[{index}]",
                    tool,
                    submit=at,
                    user=nights.user,
                    project=project,
                    queue=nights.queue,
                    licences=licences,
                    array=ArrayElement(id=name, index=index),
                )

    def _size(self, nights: EdaNights, name: str) -> int:
        """Return how many elements an array has; decimal logarithms do not depend on the machine."""
        low, high = _CONTEXT.ln(nights.smallest), _CONTEXT.ln(nights.largest)
        drawn = draw(self._seed, "elements", name)
        part = _CONTEXT.divide(Decimal(drawn.numerator), Decimal(drawn.denominator))
        return round(_CONTEXT.exp(_CONTEXT.fma(part, _CONTEXT.subtract(high, low), low)))

    # --------------------------------------------------------------------- jobs
    def _job(
        self,
        name: str,
        tool: EdaTool,
        *,
        submit: int,
        user: str,
        project: str,
        queue: str,
        licences: tuple[str, ...],
        array: ArrayElement | None = None,
    ) -> WorkloadJob:
        run_time = (
            min(delay(tool.run_time, self._seed, "run time", name), tool.run_limit) // _SECOND
        )
        if chance(self._all.killed, self._seed, "killed", name):
            run_time = int(run_time * draw(self._seed, "killed after", name))
        of_memory = name if array is None else array.id
        memory = tool.memory[self._below(len(tool.memory), "memory", of_memory)]
        return WorkloadJob(
            id=name,
            submit=submit,
            run_time=max(1, run_time),
            shape=self._shape(tool, memory, licences),
            user=user,
            project=project,
            queue=queue,
            run_limit=tool.run_limit,
            array=array,
        )

    def _licences(self, tool: EdaTool, name: str) -> tuple[str, ...]:
        if tool.feature is None or not chance(tool.licensed, self._seed, "licensed", name):
            return ()
        if not chance(tool.bundle, self._seed, "bundle", name):
            return (tool.feature,)
        more = tool.bundle_max - tool.bundle_min + 1
        count = tool.bundle_min + self._below(more, "bundle size", name)
        ranked = sorted(tool.subfeatures, key=lambda one: draw(self._seed, "subfeature", one, name))
        chosen = set(ranked[:count])
        return (tool.feature, *(one for one in tool.subfeatures if one in chosen))

    def _shape(self, tool: EdaTool, memory: int, licences: tuple[str, ...]) -> Shape:
        key = (tool.name, memory, licences)
        if key not in self._shapes:
            usage = [Usage("mem", Number(Fraction(memory)), Per.TASK)]
            if tool.slots > 1:
                usage.insert(0, Usage("slots", Number(Fraction(tool.slots)), Per.TASK))
            usage += [Usage(one, Number(Fraction(1)), Per.JOB) for one in licences]
            primary = Primary(rusage=tuple(usage), span=Span(one_host=tool.tasks > 1))
            self._shapes[key] = Shape(tool.tasks, write(Requirement((primary,))))
        return self._shapes[key]

    def _below(self, bound: int, *purpose: str) -> int:
        """Return a whole number from 0 up to but not including a bound."""
        return int(draw(self._seed, *purpose) * bound)


def _ramp(freeze: EdaFreeze | None, day: int) -> Fraction:
    """Return how many times as large as usual regressions are."""
    if freeze is None:
        return Fraction(1)
    before = (freeze.day - day) * _DAY
    if before < 0:
        return Fraction(freeze.after)
    length = freeze.ramp // _SECOND
    if before >= length:
        return Fraction(1)
    return 1 + (Fraction(freeze.factor) - 1) * (1 - Fraction(before, length))
