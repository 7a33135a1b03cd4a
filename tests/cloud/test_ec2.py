"""The provider ``ec2`` in front of a stand-in: the life of machines, and what clouds and networks do to it."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.ec2 import NOW, SPOT, TEMPLATE, Ec2
from tests.cloud.moto import CREDENTIALS, Moto
from tests.cloud.proxy import ApiProxy, Fault, Parameters
from xce.adapters.providers.ec2.errors import RefusedError, UnansweredError


# ------------------------------------------------------------------------- the life of machines
def test_machines_come_and_go(provider: Ec2, stand_in: Moto) -> None:
    request = provider.request(3)

    status = provider.status(request)

    assert status["status"] == "complete"
    machines = provider.machines(request)
    assert set(machines) == stand_in.alive()
    assert len(machines) == 3
    assert all(one["name"].startswith("ip-") and one["launchtime"] for one in status["machines"])

    returned = provider.give_back(machines)

    ended = provider.status(returned)
    assert ended["status"] == "complete"
    assert [one["result"] for one in ended["machines"]] == ["succeed"] * 3
    assert stand_in.alive() == set()
    assert provider.listed() == []


def test_machines_carry_their_owner_request_and_template(provider: Ec2, api: ApiProxy) -> None:
    provider.settings = provider.settings.model_copy(update={"tags": {"project": "chip7"}})

    request = provider.request(2, tag="R17")

    (listed, _) = provider.listed()
    assert (listed["requestTag"], listed["templateId"]) == ("R17", TEMPLATE)
    assert listed["machineId"] in provider.machines(request)
    (run,) = api.seen.of("RunInstances")
    assert run["TagSpecification.1.ResourceType"] == "instance"
    assert run["TagSpecification.2.ResourceType"] == "volume"


def test_spot_machines_are_asked_for_at_their_price(provider: Ec2, api: ApiProxy) -> None:
    provider.request(template=SPOT)

    (run,) = api.seen.of("RunInstances")
    assert run["InstanceMarketOptions.MarketType"] == "spot"
    assert run["InstanceMarketOptions.SpotOptions.MaxPrice"] == "0.10"
    assert run["InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior"] == "terminate"


def test_user_data_is_read_from_beside_the_configuration(
    api: ApiProxy, provider: Ec2, tmp_path: Path, make_ec2: Callable[..., Ec2]
) -> None:
    (tmp_path / "init.sh").write_text("#!/bin/sh\necho joined\n")
    template = {**provider.conf["templates"][0], "userDataFile": "init.sh"}
    other = make_ec2(templates=[template])

    other.request()

    assert api.seen.of("RunInstances")[0]["UserData"] == "IyEvYmluL3NoCmVjaG8gam9pbmVkCg=="


def test_templates_have_their_prices_and_the_sizes_that_ec2_knows(provider: Ec2) -> None:
    on_demand, spot = provider.call("getAvailableTemplates")["templates"]

    assert on_demand["priceInfo"] == "0.1785"
    assert on_demand["attributes"] == {
        "type": ["String", "X86_64"],
        "ncpus": ["Numeric", "1"],
        "ncores": ["Numeric", "2"],
        "nthreads": ["Numeric", "2"],
        "mem": ["Numeric", "8192"],
        "spot": ["Boolean", False],
    }
    assert spot["attributes"]["spot"] == ["Boolean", True]


def test_many_machines_are_read_page_by_page(provider: Ec2, api: ApiProxy) -> None:
    provider.request(4)
    provider.request(4, tag="tag-2")

    def one_by_one(parameters: Parameters) -> Parameters:
        return {**parameters, "MaxResults": "1"}

    api.befall(Fault("DescribeInstances", times=2, ask=one_by_one))

    listed = provider.listed()

    assert len({one["machineId"] for one in listed}) == 8
    assert "NextToken" in api.seen.of("DescribeInstances")[-1]


# ---------------------------------------------------------------------------------- tags
def test_a_repeated_tag_is_the_same_request(provider: Ec2, api: ApiProxy, stand_in: Moto) -> None:
    first = provider.request(2)

    again = provider.request(2)

    assert again == first
    assert len(stand_in.alive()) == 2
    assert len(api.seen.of("RunInstances")) == 1


def test_a_repeated_tag_is_the_same_launch_while_ec2_does_not_show_it(
    provider: Ec2, api: ApiProxy, stand_in: Moto
) -> None:
    first = provider.request(2)
    machines = stand_in.alive()
    api.befall(Fault("DescribeInstances", answer=without_machines))

    again = provider.request(2)

    assert again == first
    assert stand_in.alive() == machines
    one, other = api.seen.of("RunInstances")
    assert one["ClientToken"] == other["ClientToken"]


def test_another_tag_is_another_launch(provider: Ec2, stand_in: Moto) -> None:
    assert provider.request(tag="a") != provider.request(tag="b")
    assert len(stand_in.alive()) == 2


def test_two_owners_with_the_same_tag_do_not_see_one_another(
    provider: Ec2, api: ApiProxy, make_ec2: Callable[..., Ec2]
) -> None:
    other = make_ec2(owner="lab/cluster-b")

    mine, theirs = provider.request(), other.request()

    assert not set(provider.machines(mine)) & set(other.machines(theirs))
    assert [one["machineId"] for one in other.listed()] == other.machines(theirs)


@pytest.mark.parametrize("tag", ["tag-*", "tag-?", "a b\\*", "ü" * 300, "x" * 5000])
def test_a_tag_that_ec2_takes_for_a_pattern_or_not_at_all_means_only_itself(
    provider: Ec2, stand_in: Moto, tag: str
) -> None:
    provider.request(tag="tag-1")

    request = provider.request(tag=tag)

    assert provider.request(tag=tag) == request
    assert len(provider.machines(request)) == 1
    assert len(stand_in.alive()) == 2


def test_a_launch_by_another_configuration_that_is_not_shown_is_unknown(
    provider: Ec2, api: ApiProxy
) -> None:
    api.befall(Fault("RunInstances", code="IdempotentParameterMismatch"))

    with pytest.raises(UnansweredError):
        provider.request()


# -------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("theirs", "status", "code"),
    [
        ("InsufficientInstanceCapacity", 500, "InsufficientInstanceCapacity"),
        ("InsufficientFreeAddressesInSubnet", 400, "InsufficientAddressCapacity"),
        ("MaxSpotInstanceCountExceeded", 400, "MaxSpotInstanceCountExceeded"),
        ("VcpuLimitExceeded", 400, "VcpuLimitExceeded"),
        ("SpotMaxPriceTooLow", 400, "SpotMaxPriceTooLow"),
        ("UnauthorizedOperation", 403, "UnauthorizedOperation"),
        ("ExpiredToken", 400, "AuthFailure"),
        ("InvalidAMIID.NotFound", 400, "InvalidAMIID.NotFound"),
    ],
)
def test_a_refusal_has_its_stable_code_and_is_not_tried_again(
    provider: Ec2, api: ApiProxy, stand_in: Moto, theirs: str, status: int, code: str
) -> None:
    api.befall(Fault("RunInstances", code=theirs, status=status))

    with pytest.raises(RefusedError, match=f"Error Code: {code}:") as refused:
        provider.request()

    assert refused.value.code == code
    assert refused.value.retry_after_s is None
    assert len(api.seen.of("RunInstances")) == 1
    assert stand_in.alive() == set()


def test_a_throttled_launch_is_tried_again_after_longer_and_longer_pauses(
    provider: Ec2, api: ApiProxy, stand_in: Moto
) -> None:
    api.befall(Fault("RunInstances", times=2, code="RequestLimitExceeded", status=503))

    request = provider.request()

    assert provider.machines(request) == list(stand_in.alive())
    first, second = provider.slept
    assert 0.5 <= first <= 1 <= second <= 2


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling", "EC2ThrottledException"])
def test_a_launch_that_stays_throttled_is_refused_with_a_time_to_come_again(
    provider: Ec2, api: ApiProxy, code: str
) -> None:
    api.befall(Fault("RunInstances", times=9, code=code, status=503))

    with pytest.raises(RefusedError, match="Error Code: RequestLimitExceeded") as refused:
        provider.request()

    assert refused.value.retry_after_s == 30
    assert len(api.seen.of("RunInstances")) == 3


@pytest.mark.parametrize("template", ["none", ""])
def test_an_unknown_template_is_refused_without_a_call(
    provider: Ec2, api: ApiProxy, template: str
) -> None:
    with pytest.raises(RefusedError, match="there is no template"):
        provider.request(template=template)

    assert api.seen.calls == []


def test_parameters_that_ec2_does_not_have_are_refused(
    provider: Ec2, api: ApiProxy, make_ec2: Callable[..., Ec2]
) -> None:
    launch = {"InstanceType": "c7i.xlarge", "ImageID": "ami-1"}
    templates = [{"templateId": TEMPLATE, "launch": launch}]
    other = make_ec2(templates=templates)

    with pytest.raises(RefusedError, match=r"InvalidParameterValue.*ImageID"):
        other.request()


# --------------------------------------------------------------------------- lost and late answers
@pytest.mark.parametrize("acts", [True, False])
def test_a_launch_whose_answer_is_lost_is_found_again_and_made_once(
    provider: Ec2, api: ApiProxy, stand_in: Moto, acts: bool
) -> None:
    api.befall(Fault("RunInstances", silent=True, acts=acts))

    request = provider.request(2)

    assert set(provider.machines(request)) == stand_in.alive()
    assert len(stand_in.alive()) == 2
    assert len({one["ClientToken"] for one in api.seen.of("RunInstances")}) == 1


@pytest.mark.parametrize("how", [{"silent": True}, {"code": "InternalError", "status": 500}])
def test_a_launch_that_is_never_answered_is_unknown_and_its_tag_finds_it(
    provider: Ec2, api: ApiProxy, stand_in: Moto, how: dict[str, Any]
) -> None:
    api.befall(Fault("RunInstances", times=3, acts=True, **how))

    with pytest.raises(UnansweredError):
        provider.request(2)

    assert len(stand_in.alive()) == 2
    assert set(provider.machines(provider.request(2))) == stand_in.alive()
    assert len(stand_in.alive()) == 2


def test_a_launch_that_was_lost_and_then_throttled_is_unknown_and_not_refused(
    provider: Ec2, api: ApiProxy
) -> None:
    api.befall(Fault("RunInstances", silent=True, acts=True))
    api.befall(Fault("RunInstances", times=2, code="RequestLimitExceeded", status=503))

    with pytest.raises(UnansweredError):
        provider.request()


def test_an_answer_that_comes_too_late_is_asked_for_again(
    provider: Ec2, api: ApiProxy, stand_in: Moto, make_ec2: Callable[..., Ec2]
) -> None:
    hasty = make_ec2(readTimeoutSeconds=1)
    api.befall(Fault("RunInstances", slow=True, acts=True))

    request = hasty.request(2)

    assert set(hasty.machines(request)) == stand_in.alive()
    assert len(stand_in.alive()) == 2


def test_machines_that_ec2_does_not_show_yet_are_waited_for(provider: Ec2, api: ApiProxy) -> None:
    api.befall(Fault("DescribeInstances", times=3, answer=without_machines))

    request = provider.request(2)

    assert len(provider.machines(request)) == 2
    assert sum(provider.slept) == pytest.approx(1.5)


def test_machines_that_ec2_does_not_show_in_time_are_unknown(provider: Ec2, api: ApiProxy) -> None:
    api.befall(Fault("DescribeInstances", times=9, answer=without_machines))

    with pytest.raises(UnansweredError, match="does not show them yet"):
        provider.request()


def test_an_api_that_cannot_be_reached_refuses_and_nothing_is_unknown(
    provider: Ec2, make_ec2: Callable[..., Ec2]
) -> None:
    nowhere = make_ec2(url="http://127.0.0.1:9")

    with pytest.raises(RefusedError, match="Error Code: Unreachable") as refused:
        nowhere.request()

    assert refused.value.retry_after_s == 30


@pytest.mark.parametrize("acts", [True, False])
def test_cut_off_at_any_call_a_life_goes_on_by_its_tags(
    make_ec2: Callable[..., Ec2], api: ApiProxy, stand_in: Moto, acts: bool
) -> None:
    """A clean run counts the calls; then each is the last that is heard of, and the same is asked again."""
    provider = make_ec2(attempts=1)

    def live(number: int) -> None:
        step = 0
        machines: list[str] = []
        while step < 2:
            try:
                if step == 0:
                    request = provider.request(2, tag=f"R{number}")
                    machines = provider.machines(request)
                    assert len(machines) == 2
                    assert set(machines) == stand_in.alive()
                else:
                    returned = provider.give_back(machines, f"B{number}")
                    assert provider.status(returned)["status"] == "complete"
                step += 1
            except (RefusedError, UnansweredError):
                assert cut
                cut.pop()

    cut: list[Fault] = []
    live(0)
    actions = [action for action, _ in api.seen.calls]
    for number, action in enumerate(actions, start=1):
        cut = [Fault("", silent=True, acts=acts)]
        api.befall_call(number, cut[0])
        live(number)
        assert cut == [], action
        assert stand_in.alive() == set()


# ------------------------------------------------------------------------ partial and late machines
def test_a_partial_launch_says_how_many_came(provider: Ec2, api: ApiProxy) -> None:
    api.befall(Fault("RunInstances", ask=lambda parameters: {**parameters, "MaxCount": "2"}))

    request = provider.request(5)

    status = provider.status(request)
    assert status["status"] == "complete_with_error"
    assert status["message"] == "2 of 5 machines came"
    assert len(provider.machines(request)) == 2


def test_a_machine_that_boots_is_on_its_way(provider: Ec2, api: ApiProxy) -> None:
    request = provider.request(2)
    api.befall(
        Fault("DescribeInstances", answer=lambda text: text.replace("running", "pending", 1))
    )

    status = provider.status(request)

    assert status["status"] == "running"
    assert [one["result"] for one in status["machines"]] == ["executing", "succeed"]


def test_a_machine_that_ended_while_it_booted_says_why(provider: Ec2, api: ApiProxy) -> None:
    request = provider.request()

    def ended(text: str) -> str:
        reason = "<stateReason><code>Server.InsufficientInstanceCapacity</code><message>none left</message></stateReason>"
        text = text.replace("<name>running</name>", "<name>terminated</name>")
        text = re.sub(r"<stateReason>.*?</stateReason>", "", text, flags=re.DOTALL)
        return text.replace("</instanceState>", f"</instanceState>{reason}", 1)

    api.befall(Fault("DescribeInstances", answer=ended))

    status = provider.status(request)

    (machine,) = status["machines"]
    assert (status["status"], machine["result"]) == ("complete_with_error", "fail")
    assert machine["message"] == "Error Code: InsufficientInstanceCapacity: none left"


def test_requests_that_nobody_made_are_over_and_have_no_machines(provider: Ec2) -> None:
    request = provider.request()

    known, unknown, odd = provider.statuses([request, "launch:never", "launch:*"])

    assert known["status"] == "complete"
    for one in (unknown, odd):
        assert (one["status"], one["machines"]) == ("complete_with_error", [])


# ------------------------------------------------------------------------------------ returns
def test_a_return_whose_answer_is_lost_is_made_again(
    provider: Ec2, api: ApiProxy, stand_in: Moto
) -> None:
    machines = provider.machines(provider.request(2))
    api.befall(Fault("TerminateInstances", silent=True, acts=True))

    returned = provider.give_back(machines)

    assert provider.status(returned)["status"] == "complete"
    assert stand_in.alive() == set()


def test_a_return_of_what_is_gone_or_was_never_there_is_complete(provider: Ec2) -> None:
    machines = provider.machines(provider.request())
    provider.give_back(machines)

    again = provider.give_back([*machines, "i-0123456789abcdef0"], tag="return-2")

    assert provider.status(again)["status"] == "complete"


def test_a_machine_without_our_tag_is_never_terminated(
    provider: Ec2, api: ApiProxy, stand_in: Moto, make_ec2: Callable[..., Ec2]
) -> None:
    other = make_ec2(owner="lab/cluster-b")
    theirs = other.machines(other.request())
    mine = provider.machines(provider.request())

    returned = provider.give_back([*mine, *theirs])

    status = provider.status(returned)
    assert stand_in.alive() == set(theirs)
    assert status["status"] == "complete_with_error"
    results = {one["machineId"]: one["result"] for one in status["machines"]}
    assert results == {mine[0]: "succeed", theirs[0]: "fail"}


def test_a_return_with_many_machines_of_others_is_refused_whole(
    provider: Ec2, api: ApiProxy, stand_in: Moto, make_ec2: Callable[..., Ec2]
) -> None:
    other = make_ec2(owner="lab/cluster-b")
    theirs = other.machines(other.request(6))

    with pytest.raises(RefusedError, match="NotOwned"):
        provider.give_back(theirs)

    assert stand_in.alive() == set(theirs)


def test_a_machine_that_shuts_down_is_not_gone_yet(provider: Ec2, api: ApiProxy) -> None:
    returned = provider.give_back(provider.machines(provider.request()))
    api.befall(
        Fault("DescribeInstances", answer=lambda text: text.replace("terminated", "shutting-down"))
    )

    assert provider.status(returned)["status"] == "running"
    assert provider.status(returned)["status"] == "complete"


# ---------------------------------------------------------------------------------- take-backs
def test_nothing_is_taken_back_while_all_runs(provider: Ec2) -> None:
    assert provider.taken_back(provider.machines(provider.request(2))) == {}
    assert provider.taken_back([]) == {}


def test_what_others_ended_is_gone(provider: Ec2, stand_in: Moto) -> None:
    lost, kept = provider.machines(provider.request(2))
    stand_in.act("TerminateInstances", **{"InstanceId.1": lost})

    assert provider.taken_back([lost, kept, "i-0123456789abcdef0"]) == {
        lost: 0,
        "i-0123456789abcdef0": 0,
    }


def test_an_interrupted_spot_machine_has_what_is_left_of_two_minutes(
    provider: Ec2, api: ApiProxy
) -> None:
    marked, kept = provider.machines(provider.request(2, template=SPOT))
    at = (NOW - timedelta(seconds=20)).isoformat()
    item = (
        f"<item><instanceId>{marked}</instanceId><status><code>marked-for-termination</code>"
        f"<updateTime>{at}</updateTime></status></item>"
        f"<item><instanceId>{kept}</instanceId><status><code>fulfilled</code>"
        f"<updateTime>{at}</updateTime></status></item>"
    )
    api.befall(
        Fault(
            "DescribeSpotInstanceRequests",
            answer=lambda _: (
                f"<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet>{item}"
                "</spotInstanceRequestSet></DescribeSpotInstanceRequestsResponse>"
            ),
        )
    )

    assert provider.taken_back([marked, kept]) == {marked: 100}


def test_a_machine_on_a_host_that_retires_goes_when_ec2_says(provider: Ec2, api: ApiProxy) -> None:
    retiring, over = provider.machines(provider.request(2))
    at = (NOW + timedelta(hours=1)).isoformat()

    def event(machine: str, text: str) -> str:
        return (
            f"<item><instanceId>{machine}</instanceId><eventsSet><item><code>instance-retirement</code>"
            f"<description>{text}</description><notBefore>{at}</notBefore></item></eventsSet></item>"
        )

    items = event(retiring, "The instance is running on degraded hardware") + event(
        over, "[Completed] The instance was running on degraded hardware"
    )
    api.befall(
        Fault(
            "DescribeInstanceStatus",
            answer=lambda _: (
                f"<DescribeInstanceStatusResponse><instanceStatusSet>{items}"
                "</instanceStatusSet></DescribeInstanceStatusResponse>"
            ),
        )
    )

    assert provider.taken_back([retiring, over]) == {retiring: 3600}


# ------------------------------------------------------------------------------------ secrets
@pytest.mark.parametrize("code", ["UnauthorizedOperation", "SignatureDoesNotMatch", "Odd"])
def test_no_credential_is_in_a_reason(provider: Ec2, api: ApiProxy, code: str) -> None:
    said = " ".join(CREDENTIALS.values())
    api.befall(
        Fault(
            "RunInstances",
            code=code,
            status=403,
            message=f"not you: {said} Encoded authorization failure message: {'x' * 5000}",
        )
    )

    with pytest.raises(RefusedError) as refused:
        provider.request()

    assert not [one for one in CREDENTIALS.values() if one in str(refused.value)]
    assert "xxxx" not in str(refused.value)
    assert len(json.dumps(refused.value.why)) < 1000


def without_machines(_text: str) -> str:
    """Return an answer of DescribeInstances in which nothing is to be seen."""
    return "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
