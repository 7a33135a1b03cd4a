"""What a job needs, as an exact value: the model behind the requirement language (``resreq``).

A requirement is the first of several alternatives that works (ALTER); an alternative is one primary
request or all of several (COMPOUND). Nothing nests deeper. Amounts are exact: a number and, where
it was written, its unit; what a bare number means is a setting of the reading, not of the requirement.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction


class Comparison(StrEnum):
    """How two values of a selection are compared."""

    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the language with its size suffix as written ("GiB" is kept as "GiB"), "" for none."""

    value: Fraction
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Compare:
    """``name OP literal``. ``column``: 1-based place of the name in the text; not part of equality or printing."""

    name: str
    op: Comparison
    literal: str | Number | bool
    column: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Compare):
            return NotImplemented
        return (self.name, self.op, self.literal, type(self.literal)) == (
            other.name, other.op, other.literal, type(other.literal),
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.op, self.literal))


@dataclass(frozen=True, slots=True)
class Flag:
    """A bare name: true where the attribute is the flag true, or a total above zero."""

    name: str


@dataclass(frozen=True, slots=True)
class Defined:
    """``defined(name)``: true where the host has the attribute or the total."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """``!x``."""

    operand: "Selection"


@dataclass(frozen=True, slots=True)
class All:
    """``a && b && ...``, two or more."""

    operands: tuple["Selection", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """``a || b || ...``, two or more."""

    operands: tuple["Selection", ...]


Selection = Compare | Flag | Defined | Not | All | AnyOf


class Per(StrEnum):
    """What an amount of ``rusage`` is taken once for each of."""

    TASK = "task"
    HOST = "host"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Usage:
    """``name=amount/per`` of ``rusage``: of a host consumable or of a shared resource.

    ``column``: 1-based place of the name in the text; not part of equality or printing.
    """

    name: str
    amount: Number
    per: Per = Per.TASK
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Span:
    """How tasks spread: all on one host, exactly ``ptile`` a host (the last may have fewer), one a host, or any way.

    At most one of the three holds.
    """

    one_host: bool = False
    ptile: int | None = None
    one_task_a_host: bool = False


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of ``order[...]``: totals or attributes, ascending unless ``-name``."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Primary:
    """One request: hosts that match, what tasks take, how they spread.

    ``tasks``: its own task count inside a COMPOUND (``n*{...}``); None: the job's.
    """

    select: Selection | None = None
    rusage: tuple[Usage, ...] = ()
    span: Span = Span()
    same: tuple[str, ...] = ()
    order: tuple[OrderKey, ...] = ()
    exclusive: bool = False
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Compound:
    """All of several primaries, each with its own task count; the counts add up to the job's tasks."""

    parts: tuple[Primary, ...]


Alternative = Primary | Compound


@dataclass(frozen=True, slots=True)
class Requirement:
    """The first alternative that works; at least one."""

    alternatives: tuple[Alternative, ...] = (Primary(),)
