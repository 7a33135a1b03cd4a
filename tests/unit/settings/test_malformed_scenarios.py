"""Scenarios that do not fit together: each mistake is said where it stands, before anything runs."""

import pytest

from xce.adapters.settings.load import PROBLEMS_MAX, read_scenario
from xce.domain.errors import InputError

SCENARIO = """name: s
workload:
  jobs:
    - {id: "j[1-6]", run_time: 10min, resreq: "rusage[mem=5]"}
    - {id: after, run_time: 10min, waits_for: [j6]}
"""


def test_the_scenario_that_the_cases_change_is_fit() -> None:
    assert read_scenario(SCENARIO.encode(), "s").name == "s"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rusage[mem=5]", "select[", "s:4: workload.jobs[0].resreq: column 8: expected a name"),
        ("[j6]", "[j7]", "s:5: workload.jobs[1].waits_for[0]: there is no job 'j7'"),
        ("[j6]", "[j6, after]", "s:5: workload.jobs[1].waits_for[1]: job 'after' is one of these"),
    ],
)
def test_a_mistake_is_said_with_its_line(old: str, new: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scenario(SCENARIO.replace(old, new).encode(), "s")

    assert str(caught.value).startswith(says)


def test_jobs_of_a_file_are_not_known_and_may_be_waited_for() -> None:
    text = SCENARIO.replace("[j6]", '["17"]').replace("workload:\n", "workload:\n  file: a.swf\n")

    assert read_scenario(text.encode(), "s").workload.file == "a.swf"


def test_a_document_in_which_everything_is_wrong_is_not_read_to_its_end() -> None:
    text = SCENARIO + "".join(f"key{number}: 1\n" for number in range(2 * PROBLEMS_MAX))

    with pytest.raises(InputError) as caught:
        read_scenario(text.encode(), "s")

    assert len(caught.value.problems) == PROBLEMS_MAX
