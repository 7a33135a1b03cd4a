"""The waiting tasks of a group: found, taken and given back as in a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.cluster.requests import reader_of
from xce.domain.cluster.state import Scope
from xce.domain.demand.waiting_tasks import Group


def group_of(amounts: list[int], tasks: list[int]) -> Group:
    selector = reader_of({}, ()).read("").alternatives[0][0].selector
    group = Group(Scope(0, selector, (None, None)), {}, 0, 0)
    group.jobs, group.left, group.amounts = list(range(len(amounts))), tasks[:], amounts[:]
    group.close()
    return group


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2)), min_size=1, max_size=2200),
    st.data(),
)
def test_the_next_task_that_fits_is_the_one_that_a_plain_search_finds(
    jobs: list[tuple[int, int]], data: st.DataObject
) -> None:
    amounts, left = [amount for amount, _ in jobs], [tasks for _, tasks in jobs]
    group = group_of(amounts, left)
    taken: list[int] = []
    for _ in range(data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(["find", "take", "take many", "give back", "take all"])):
            case "take":
                places = [at for at in range(len(left)) if left[at]][:3]
            case "take many":
                least = data.draw(st.integers(0, 9))
                places = [at for at in range(len(left)) if left[at] and amounts[at] <= least]
            case "give back":
                for at in taken:
                    group.give_back(at)
                    left[at] += 1
                taken, places = [], []
            case "take all":
                group.take_all()
                taken += [at for at, tasks in enumerate(left) for _ in range(tasks)]
                left, places = [0] * len(left), []
            case _:
                places = []
        for at in places:
            group.take(at)
            left[at] -= 1
            taken.append(at)
        start, most = data.draw(st.integers(0, len(jobs) - 1)), data.draw(st.integers(0, 9))
        fitting = (at for at in range(start, len(jobs)) if left[at] and amounts[at] <= most)
        assert group.find(start, most) == next(fitting, -1)
        assert group.head == next((at for at in range(len(jobs)) if left[at]), len(jobs))
        assert group.count == sum(left)
        assert group.total == sum(map(int.__mul__, left, amounts))
