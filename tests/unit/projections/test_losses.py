"""Hosts that vanished: given events, then how many were lost together, and how many have joined since."""

from tests.unit.projections.run import Run, accept, at, came, cloud, hosts, join, template
from xce.domain.engine.commands import MissJoin, StartDrain


def run_with(count: int) -> Run:
    run = Run(cloud("aws", template()))
    names = [f"m{n}" for n in range(count)]
    run.do(hosts("R1", count), accept("R1"), came("R1", *names, ended=True), at=at(0))
    return run


def lose(run: Run, *machines: str, minute: float) -> None:
    for machine in machines:
        instance = run.instance(f"aws/{machine}")
        instance.lose(why="gone", at=at(minute), by="test", epoch=1)
        run.save(instance)


def losses(run: Run) -> list[tuple[str, int, int]]:
    return [(one.provider, one.hosts, one.joined_since) for one in run.projections.losses.view()]


def test_hosts_that_are_lost_within_an_hour_are_lost_together() -> None:
    run = run_with(5)
    run.do(join("aws/m0"), join("aws/m1"), at=at(5))

    lose(run, "m0", "m2", minute=10)
    lose(run, "m1", minute=50)

    assert losses(run) == [("aws", 3, 0)]
    assert run.projections.losses.view()[0].last_at == at(50)
    lose(run, "m3", minute=75)
    assert losses(run) == [("aws", 1, 0)]


def test_what_was_going_back_or_never_joined_is_no_loss() -> None:
    run = run_with(2)
    run.do(join("aws/m0"), StartDrain("aws/m0", "idle"), MissJoin("aws/m1", "late"), at=at(5))

    lose(run, "m0", "m1", minute=10)

    assert losses(run) == []


def test_hosts_that_join_after_the_last_loss_are_counted() -> None:
    run = run_with(4)
    lose(run, "m0", minute=10)
    run.do(join("aws/m1"), at=at(11))
    lose(run, "m1", minute=12)
    run.do(join("aws/m2"), join("aws/m3"), at=at(13))

    assert losses(run) == [("aws", 2, 2)]
