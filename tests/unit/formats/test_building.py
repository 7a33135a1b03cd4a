"""Models that are built without validation are like those that are validated."""

import copy
import pickle

import pytest

from xce.domain.formats.building import all_built, built
from xce.domain.formats.session_result import JobHosts, JobWhy, Pending, Provisioning, ReasonKind


def test_a_built_model_is_equal_to_the_validated_one_in_every_use() -> None:
    provisioning = built(Provisioning, {"templates": {"c4": 2}, "countable": {}, "in_flight": ()})
    values = {
        "job": "1",
        "reason": ReasonKind.LIMIT,
        "reasons": 3,
        "provisioning": provisioning,
        "expanded": None,
    }
    made = built(Pending, values)
    read = Pending.from_json(made.to_json())

    assert made == read
    assert made.to_json() == read.to_json()
    assert made.model_dump() == read.model_dump()
    assert repr(made) == repr(read)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made
    assert made.model_copy(update={"reasons": 4}).reasons == 4
    assert hash(built(JobHosts, {"job": "1", "order": 1, "hosts": 2})) == hash(
        JobHosts(job="1", order=1, hosts=2)
    )


def test_the_first_model_of_a_class_must_have_all_its_fields() -> None:
    class Part(JobHosts):
        """A class of its own, which nobody has built yet."""

    with pytest.raises(AssertionError, match="all fields of Part"):
        built(Part, {"job": "1", "hosts": 2})

    class OtherPart(JobHosts):
        """Another one."""

    with pytest.raises(AssertionError, match="all fields of OtherPart"):
        all_built(OtherPart, [{"job": "1", "hosts": 2}])


def test_models_that_are_built_together_are_equal_to_those_built_one_by_one() -> None:
    rows = [{"job": f"j{number}", "why": "held"} for number in range(3)]

    together = all_built(JobWhy, [dict(row) for row in rows])

    assert together == [built(JobWhy, dict(row)) for row in rows]
    assert together == [JobWhy.model_validate(row) for row in rows]
    assert [made.to_json() for made in together] == [
        JobWhy.model_validate(row).to_json() for row in rows
    ]
    assert [repr(made) for made in together] == [repr(JobWhy.model_validate(row)) for row in rows]
    assert pickle.loads(pickle.dumps(together)) == together
    assert copy.deepcopy(together) == together
    assert all_built(JobWhy, []) == []
