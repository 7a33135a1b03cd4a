"""A demand without the names of its jobs: none is left anywhere in it."""

import re

from tests.unit.policy.makers import demand, hosts, units
from xce.domain.formats.session_result import Demand, JobWhy
from xce.replay.anonymous_rounds import jobs_in, renamed_demand

SECRET = Demand.model_validate(
    {
        **demand(
            hosts("c4", 2, ("secret-1", 1, 1), ("secret-2", 2, 1)),
            units("lic", 1, ("secret-3", 3, 1)),
            projects={"chip1": ("secret-1", "secret-4")},
        ).model_dump(),
        "impossible": (JobWhy(job="secret-5", why="secret-5 is too large"),),
        "not_counted": (JobWhy(job="secret-6", why="held"),),
        "not_examined": ("secret-7",),
    }
)


def test_every_job_of_a_demand_is_seen_and_called_otherwise() -> None:
    renamed = renamed_demand(SECRET, lambda name: name.replace("secret", "job"))

    assert sorted(set(jobs_in(SECRET))) == [f"secret-{n}" for n in range(1, 8)]
    assert sorted(set(jobs_in(renamed))) == [f"job-{n}" for n in range(1, 8)]
    assert not re.search("secret", renamed.to_json())
