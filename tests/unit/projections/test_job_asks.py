"""Which requests were made for a job, without looking through the log."""

from dataclasses import replace

from hypothesis import given as for_all
from hypothesis import strategies as st

from tests.unit.projections.run import Run, cloud, hosts, template
from xce.projections.job_asks import JobAsks


def asked(*jobs: tuple[str, ...]) -> Run:
    run = Run(cloud("aws", template("c4")))
    for number, some in enumerate(jobs, start=1):
        run.do(replace(hosts(f"R{number}", 1), jobs=some))
    return run


def test_a_job_has_all_requests_that_were_made_for_it_oldest_first() -> None:
    run = asked(("1", "2"), ("2",), (), ("3", "2", "3"))

    asks = run.projections.job_asks
    assert (asks.of("1"), asks.of("2"), asks.of("3")) == (("R1",), ("R1", "R2", "R4"), ("R4",))
    assert asks.of("4711") == ()
    assert asks.dropped == 0


def test_of_too_many_the_oldest_requests_are_dropped_whole_and_it_says_up_to_where() -> None:
    run = asked(("1", "2"), ("2", "3"), ("3", "4"))
    few = JobAsks(pairs_max=4)
    few.apply(run.log.read())

    assert (few.of("1"), few.of("2"), few.of("3")) == ((), ("R2",), ("R2", "R3"))
    first = next(r.position for r in run.log.read() if r.event.originator_id == "request:R1")
    assert few.dropped == first


def test_one_request_of_very_many_jobs_is_kept() -> None:
    run = asked(("1",), tuple(str(number) for number in range(20)))
    few = JobAsks(pairs_max=4)
    few.apply(run.log.read())

    assert few.of("7") == ("R2",)


@for_all(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), max_size=8), st.integers(1, 12))
def test_the_index_is_what_the_log_has_behind_what_was_dropped_and_is_resumed_as_kept(
    jobs: list[list[str]], pairs_max: int
) -> None:
    run = asked(*map(tuple, jobs))
    asks = JobAsks(pairs_max)
    asks.apply(run.log.read())
    intended = {
        recorded.event.originator_id: (recorded.position, recorded.event)
        for recorded in run.log.read()
        if recorded.event.originator_id.startswith("request:")
    }

    for job in "abcde":
        wanted = [
            f"R{number}"
            for number, some in enumerate(jobs, start=1)
            if job in some and intended[f"request:R{number}"][0] > asks.dropped
        ]
        assert list(asks.of(job)) == wanted
    resumed = JobAsks(pairs_max)
    resumed.resume(asks.keep())
    assert resumed.state() == asks.state()
