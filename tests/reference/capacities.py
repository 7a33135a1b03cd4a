"""Random capacities that templates share: one or two, with room for few hosts, and templates that draw on none, one or both."""

from collections.abc import Sequence

from hypothesis import strategies as st

from xce.domain.formats.snapshot import Capacity, Draw, Template

NAMES = ("pool", "other")


@st.composite
def capacities(draw: st.DrawFn, rooms: Sequence[int]) -> tuple[Capacity, ...]:
    """Draw capacities with one of these rooms; in half of the cases there are none."""
    many = draw(st.sampled_from([0, 0, 1, 2]))
    return tuple(Capacity(name=name, room=draw(st.sampled_from(rooms))) for name in NAMES[:many])


@st.composite
def drawing(
    draw: st.DrawFn, template: Template, among: Sequence[Capacity], most: Sequence[int]
) -> Template:
    """Draw where the hosts of a template come from; mostly of the first capacity."""
    if not among:
        return template
    names = [capacity.name for capacity in among]
    ways: list[Sequence[str | None]] = [
        names[:1],
        names[:1],
        names,
        names[::-1],
        [None, *names[:1]],
    ]
    ways += [[*names[-1:], None], names[-1:], []]
    return template.model_copy(
        update={
            "draws": tuple(
                Draw(capacity=name, most=draw(st.sampled_from(most)))
                for name in draw(st.sampled_from(ways))
            )
        }
    )
