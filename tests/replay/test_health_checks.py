"""Simulated providers whose hosts are checked before they take work."""

from decimal import Decimal

from tests.replay.worlds import Finished, demo_config, finish
from xce.domain.provisioning.instance import Instance
from xce.replay.workloads.eda_day import eda_day


def checked(unhealthy: str) -> Finished:
    """Run the demo's day with checks."""
    config = demo_config()
    providers = tuple(
        provider.model_copy(
            update={
                "capabilities": provider.capabilities.model_copy(update={"health_check": True}),
                "simulation": provider.simulation.model_copy(
                    update={"unhealthy": Decimal(unhealthy)}
                ),
            }
        )
        for provider in config.providers
    )
    return finish(config.model_copy(update={"providers": providers}), eda_day(7))


def test_each_host_is_checked_once_and_the_sick_ones_go_back_without_a_job() -> None:
    run = checked("0.3")

    events = [one.event for one in run.events]
    started = {e.originator_id for e in events if isinstance(e, Instance.CheckStarted)}
    joined = {e.originator_id for e in events if isinstance(e, Instance.Joined)}
    sick = {
        e.originator_id
        for e in events
        if isinstance(e, Instance.JoinMissed) and e.why.startswith("its health check failed")
    }
    assert started == joined | sick
    assert not joined & sick
    assert joined
    assert sick
    assert run.report.jobs.ended == run.report.jobs.submitted
    returned = {e.originator_id for e in events if isinstance(e, Instance.Returned)}
    assert sick <= returned
