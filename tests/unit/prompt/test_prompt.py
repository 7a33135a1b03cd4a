"""The prompt: what its commands do, show and refuse."""

import json
from datetime import UTC, datetime

import pytest

from tests.unit.prompt.sites import TEXT, Hands, Talk
from xce.adapters.settings.load import read_scenario
from xce.domain.errors import InputError
from xce.replay.prompt.info import TOPICS
from xce.replay.prompt.play import Site
from xce.replay.prompt.prompt import COMMANDS, Prompt
from xce.replay.recording import RecordingReader
from xce.replay.verification import verify

T = "2026-03-01 "


# ------------------------------------------------------------------------- going on
def test_a_step_is_everything_of_one_time() -> None:
    talk = Talk()

    first = talk.say("step").document
    second = talk.say("step").document

    assert (first["now"], second["now"]) == ("2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z")
    assert [one["what"] for one in first["happened"]] == ["job a1 starts"]


def test_many_steps_are_as_many_single_ones() -> None:
    many, single = Talk("step 12"), Talk(*["step"] * 12)

    assert many.prompt.now == single.prompt.now
    assert many.ask("info events") == single.ask("info events")


@pytest.mark.parametrize(
    ("until", "stands_at", "why"),
    [
        ("until 7min", "10:07:00", f"{T}10:07:00, 7m after the start"),
        ("until 10:07", "10:07:00", f"{T}10:07:00, 7m after the start"),
        ("until 2026-03-01T11:07:00+01:00", "10:07:00", f"{T}10:07:00, 7m after the start"),
        ("7min", "10:07:00", f"{T}10:07:00, 7m after the start"),
        ("until session", "10:00:00", "a session"),
        ("until start b1", "10:09:30", "job b1 starts"),
        ("until end a1", "10:20:00", "job a1 ends"),
        ("until request.intended item=lic", None, "request.intended item=lic"),
        ("until waiting >= 3", None, "waiting >= 3"),
        ("until running of a2=1", None, "running of a2 = 1"),
        ("until borrowed of lic > 0", None, "borrowed of lic > 0"),
        ("until asked of cloud >= 2", None, "asked of cloud >= 2"),
        ("until longest-wait >= 3min", None, "longest-wait >= 180"),
        ("until ended > 99", "12:00:00", "nothing more happens by itself"),
    ],
)
def test_a_run_goes_on_until(until: str, stands_at: str | None, why: str) -> None:
    talk = Talk()

    answer = talk.say(f"run {until}").document

    assert answer["stopped"] == why
    if stands_at is not None:
        assert answer["now"] == f"2026-03-01T{stands_at}Z"


def test_a_run_until_a_measure_stops_at_the_first_moment_at_which_it_holds() -> None:
    talk = Talk()

    talk.say("run until waiting >= 3")
    here = talk.prompt.play("").runner.gauge
    talk2 = Talk()
    seen: list[int] = []
    while talk2.prompt.now != talk.prompt.now:
        talk2.say("step")
        seen.append(len(talk2.prompt.play("").world.cluster.pending()))

    assert len(here.world.cluster.pending()) >= 3
    assert max(seen[:-1]) < 3 <= seen[-1]


def test_what_holds_already_moves_nothing() -> None:
    talk = Talk()

    assert talk.ask("run until waiting = 0") == (
        f"{T}10:00:00: 0 moments, 0 events; holds already: waiting = 0"
    )


def test_time_passes_to_the_one_that_was_asked_for_although_nothing_happens_then() -> None:
    talk = Talk("run until 1h45min")

    answer = talk.say("run 1min").document

    assert answer["now"] == "2026-03-01T11:46:00Z"
    assert talk.say("run 1h").document["now"] == "2026-03-01T12:00:00Z", "the scenario ends then"


def test_an_interrupt_stops_between_two_moments_and_nothing_is_lost() -> None:
    talk, other = Talk(), Talk()
    talk.hands.patience = 10

    stopped = talk.say("run").document
    talk.hands.patience = None
    talk.say("run")
    other.say("run")

    assert (stopped["stopped"], stopped["moments"], stopped["over"]) == ("interrupted", 11, False)
    assert talk.ask("info") == other.ask("info")


def test_nothing_more_happens_after_the_end_unless_somebody_does_something() -> None:
    talk = Talk("run")

    assert talk.say("step").document["stopped"] == "nothing more happens by itself"
    talk.say("set owned lic 5")

    assert "shared.owned-set" in talk.ask("info events")


# ------------------------------------------------------------------------- looking
@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_is_shown_at_the_beginning_on_the_way_and_at_the_end(topic: str) -> None:
    talk = Talk("step")

    for line in ("run until 14min", "run until 40min", "run"):
        document = talk.say(f"info {topic}").document
        assert len(document) > 3, "command, branch, now, and what was asked for"
        json.dumps(dict(document))
        assert talk.ask(f"info {topic}")
        talk.say(line)


def test_what_is_shown_is_what_there_is() -> None:
    talk = Talk("run until 14min")
    play = talk.prompt.play("")
    world = play.world

    jobs = talk.say("info jobs").document["jobs"]
    hosts = {one["host"]: one for one in talk.say("info hosts").document["hosts"]}
    shared = talk.say("info shared").document["shared"]
    overview = talk.say("info").document["figures"]

    assert {one["job"] for one in jobs if one["state"] == "waiting"} == {
        job.id for job in world.cluster.pending()
    }
    assert sum(one["jobs"] for one in hosts.values()) == len(world.cluster.running())
    assert hosts["own1"]["uses"]["slots"] == [2, 2]
    assert shared[0]["total"] == shared[0]["owned"] + shared[0]["borrowed"]
    assert overview["waiting"] == str(world.cluster.pending_count)
    assert overview["cost"] == talk.say("info costs").document["cost"]


def test_a_table_for_people_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xce.replay.prompt.info.ROWS_MAX", 2)
    talk = Talk("run until 14min")

    shown = talk.ask("info jobs").splitlines()

    assert len(shown) == 4
    assert shown[-1] == f"and {len(talk.say('info jobs').document['jobs']) - 2} more"


def test_why_tells_the_chain_from_the_reason_to_the_host_that_is_expected() -> None:
    talk = Talk("run until 3min", "step")

    lines = talk.ask("why a2").splitlines()

    assert lines[0].startswith("job a2 waits: ")
    assert any(line.startswith("  asked: 1 of small at cloud as R1") for line in lines)
    assert any(line.startswith("  expected at 2026-03-01 10:") for line in lines)


def test_why_tells_what_the_policy_holds_back() -> None:
    talk = Talk("set policy freeze true", "run until 3min", "step")

    lines = talk.ask("why a2").splitlines()

    assert lines[-1] == "  nothing has been asked for it yet"
    assert lines[-2].startswith("  held: ")
    assert "the settings freeze provisioning" in lines[-2]


def test_why_knows_jobs_that_no_session_tells_of() -> None:
    talk = Talk("step")

    assert talk.ask("why big") == "job big has not been submitted yet, or was taken out"
    talk.say("run until 21min")
    assert talk.ask("why a1").splitlines()[0] == "job a1 has ended"
    assert "it can never run" in talk.ask("why never")


def test_a_trace_is_that_of_the_newest_session() -> None:
    talk = Talk("run until 2min")

    found = talk.say("trace never").document["trace"]

    assert found
    assert all(line.startswith("job never:") for line in found)
    assert "it says nothing of job big" in talk.ask("trace big")


def test_amounts_and_times_are_said_with_their_units() -> None:
    talk = Talk("run until 30min")

    assert "2 of 2 slots, 0 of 8GiB mem" in talk.ask("info hosts")
    (longest,) = [line for line in talk.ask("info").splitlines() if line.startswith("longest-wait")]
    assert longest.endswith(" s")
    assert talk.say("info").document["figures"]["longest-wait"] == longest.split()[1]
    talk.say("fork other")
    assert f"longest-wait {longest.split()[1]} s " in talk.ask("diff main other") + " "


def test_the_configuration_is_shown_as_people_write_it() -> None:
    talk = Talk('set policy budgets \'[{"name": "all", "max_cost_per_hour": "8"}]\'')

    lines = talk.ask("info policy").splitlines()

    assert "freeze no" in lines
    (budgets,) = [line for line in lines if line.startswith("budgets")]
    assert budgets == "budgets name=all max_cost_per_hour=8 zone=UTC"


def test_amounts_in_events_are_shown_as_a_scenario_has_them() -> None:
    said = Talk("run until instance.joined").ask("info events")

    (joined,) = [line for line in said.splitlines() if "instance.joined" in line]
    assert joined.endswith(" total={slots: 2, mem: 8192}")


def test_what_can_be_typed_is_named_whole() -> None:
    said = Talk().wrong("frobnicate")

    assert said.startswith("frobnicate: 'frobnicate' is no command here; there are: load, ")
    assert said.endswith(", quit")


def test_the_room_of_a_template_that_two_offer_at_two_prices_is_known() -> None:
    two = TEXT.replace(
        "  - name: lender\n",
        "  - name: other\n    templates: [{template_id: small, max_number: 3, price_per_hour: 0.3, attributes: {zone: away}, provides: {slots: 2, mem: 8GiB}}]\n"
        "  - name: lender\n",
    )
    talk = Talk()
    talk.prompt.begin(Site(read_scenario(two.encode(), "two.yaml"), seed=None))

    shown = talk.ask("info providers")

    assert "cloud small 0.2 1 6" in shown
    assert "other small 0.3 0 3" in shown


# ------------------------------------------------------------------------- changing
@pytest.mark.parametrize(
    ("line", "topic", "shows"),
    [
        ("set price small 0.35", "providers", "cloud small 0.35"),
        ("set price cloud/small 1", "providers", "cloud small 1 "),
        ("set room small 1", "providers", "cloud small 0.2 1 1"),
        ("set priority large 5", "providers", "cloud large 0.9 5"),
        ("set owned lic 5", "shared", "lic 5 5 0"),
        ("set limit per-user 12", "limits", "per-user slots 12"),
        ("set policy minimum_hold 20min", "policy", "minimum_hold 20m"),
        ("set policy max_per_request 3", "policy", "max_per_request 3"),
        ("set session order strict", "session", "order strict"),
        ("do freeze why='too dear'", "events", "why=too dear"),
        ("do pause provider=cloud lasts=10min", "providers", "2026-03-01 10:10:00 by the scenario"),
    ],
)
def test_what_is_set_is_so_at_once(line: str, topic: str, shows: str) -> None:
    talk = Talk("step")
    before = talk.ask(f"info {topic}")

    talk.say(line)

    assert shows not in before
    assert shows in talk.ask(f"info {topic}")


def test_a_limit_that_is_set_holds_back_jobs() -> None:
    talk = Talk("step", "set limit per-user 1")

    talk.say("run until 10min")

    waiting = {job.id: job for job in talk.prompt.play("").world.cluster.pending()}
    assert {"a2", "a3", "a4"} <= waiting.keys()
    assert "limit per-user" in talk.ask("why a2")


def test_a_provider_does_what_it_is_set_to() -> None:
    talk = Talk(
        "step",
        "set provider cloud templates.small.never_join 1",
        "set provider cloud boot_failure 0",
    )

    talk.say("run until 15min")

    assert "small" not in talk.ask("info hosts")
    behaviour = talk.prompt.play("").world.providers["cloud"].behaviour
    assert str(behaviour.templates["small"].never_join) == "1"
    assert behaviour.lead_time.boot.p95.total_seconds() == 240, "what was not set stays"


def test_a_policy_that_is_set_decides_the_next_round() -> None:
    talk = Talk("step", "set policy observe_only true")

    talk.say("run until 20min")

    assert talk.say("info requests").document["requests"] == []


def test_licences_outside_are_set_by_the_feature() -> None:
    talk = Talk("run until 2min", "set outside lic 2", "run until 5min")

    assert talk.say("info shared").document["shared"][0]["elsewhere"] == 2


# ------------------------------------------------------------------------- branches
def test_a_fork_goes_its_own_way_and_the_first_one_stays_where_it_was() -> None:
    talk = Talk("run until 4min", "fork dearer", "set price small 0.95", "run")

    assert talk.prompt.current == "dearer"
    assert "main at 2026-03-01 10:04:00" in talk.ask("branches")
    talk.say("switch main")
    assert talk.prompt.now == datetime(2026, 3, 1, 10, 4, tzinfo=UTC)
    assert "cloud small 0.2 " in talk.ask("info providers")


def test_the_difference_names_session_job_and_field_and_sums_both_up() -> None:
    talk = Talk(
        "run until 4min", "fork dearer", "set price small 0.95", "run", "switch main", "run"
    )

    found = talk.say("diff main dearer").document

    first = found["first"]
    assert first["job"] is not None
    assert first["path"].startswith(("demand.", "decisions[", "pending["))
    assert first["left"] != first["right"]
    assert None not in first["sessions"]
    assert found["figures"]["main"]["cost"] != found["figures"]["dearer"]["cost"]
    assert "first difference: main session" in talk.ask("diff main dearer")


def test_branches_of_which_nothing_is_different_do_not_differ() -> None:
    talk = Talk("run until 4min", "fork same", "run", "switch main", "run")

    assert talk.say("diff main same").document["first"] is None
    assert talk.ask("diff main same").startswith("no session and no decision differs\n")


def test_an_order_that_only_wakes_a_session_is_no_difference() -> None:
    talk = Talk(
        "run until 4min", "fork same", "set policy max_per_request 99", "run", "switch main", "run"
    )

    assert talk.say("diff main same").document["first"] is None


def test_branches_are_compared_as_far_as_both_go() -> None:
    talk = Talk("run until 4min", "fork further", "run until 1h")

    assert talk.ask("diff main").startswith(
        "no session and no decision differs up to 2026-03-01 10:04:00\n"
    )


def test_a_branch_that_is_made_again_can_be_interrupted_and_nothing_has_changed() -> None:
    talk = Talk("run until 30min", "fork other", "run")
    talk.hands.patience = 3

    assert talk.wrong("switch main") == "switch: interrupted; everything is as it was before"
    talk.hands.patience = None

    assert talk.prompt.current == "other"
    assert talk.prompt.now == datetime(2026, 3, 1, 12, tzinfo=UTC)


# ------------------------------------------------------------------------ recordings
def test_a_recording_of_a_branch_says_the_same_again() -> None:
    talk = Talk(
        "run until 4min", "fork other", "set price small 0.95", "set limit per-user 4", "run"
    )

    counts = talk.say("record other.rec").document
    lines = talk.hands.recordings["other.rec"]
    verdict = verify(lines, "other.rec")

    assert verdict.mismatch is None
    assert verdict.whole
    assert verdict.counts.sessions == counts["sessions"] > 10
    assert (
        verdict.counts.events == counts["events"] == len(talk.prompt.play("").runner.gauge.events)
    )


def test_a_recording_ends_where_one_stands() -> None:
    talk = Talk("run until 9min", "record half.rec", "run")

    reader = RecordingReader("half.rec")
    for _ in reader.entries(talk.hands.recordings["half.rec"]):
        pass

    assert 0 < reader.counts.events < len(talk.prompt.play("").runner.gauge.events)


# --------------------------------------------------------------------------- mistakes
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("stp", "stp: 'stp' is no command here; did you mean step?"),
        ("step -1", "step: '-1' is no number; wanted a whole one, at least 1"),
        ("step 1 2", "step: wanted: step [N]"),
        ("run until", "run until: wanted a time, session, start JOB, end JOB, an event, or a measure with a bound"),
        ("run until 25:00", "run until: '25:00' is no time; wanted a length after the start such as 2h30min, a time of day such as 11:30, or such as 2026-03-01T11:30:00Z"),
        ("run until 2026-03-01T11:30:00", "run until: '2026-03-01T11:30:00' says no time zone; wanted Z or +01:00 at its end"),
        ("run until wating = 0", "run until: 'wating' is no measure, time or event here; did you mean waiting?"),
        ("run until waiting", "run until: wanted a bound after waiting, such as: waiting >= 1; found nothing"),
        ("run until free >= 1", "run until: free of what? Wanted: free of NAME"),
        ("run until free of lik >= 1", "run until: 'lik' is no shared resource here; did you mean lic?"),
        ("run until waiting >= many", "run until: 'many' is no number"),
        ("run until waiting >= 1e999999999999999", "run until: '1e999999999999999' is no number"),
        ("run until waiting >= 1e-999999999999999", "run until: '1e-999999999999999' is no number"),
        ("run until waiting >= NaN", "run until: 'NaN' is no number"),
        ("run until 9999-12-31T23:59:59-23:00", "run until: '9999-12-31T23:59:59-23:00' is out of range in UTC"),
        ("set policy spare " + "[" * 50_000, None),
        ("run until mean-wait of a1 > 3", "run until: mean-wait is of everything; wanted no name"),
        ("run until start", "run until: start of which job? Wanted: start JOB"),
        ("run until request.intendet", "run until: 'request.intendet' is no event here; did you mean request.intended?"),
        ("run until request.closed outcome", "run until: 'outcome' is no KEY=VALUE"),
        ("run sideways", "run: 'sideways' is not a duration; wanted a text such as '90s', '15min', '1h30m' or '2d'"),
        ("info job", "info: 'job' is no topic here; did you mean jobs?"),
        ("why nevre", "why: 'nevre' is no job here; did you mean never?"),
        ("trace", "trace: wanted: trace JOB"),
        ("set", "set: wanted one of price, room, priority, owned, limit, outside, policy, session, provider"),
        ("set prise small 1", "set: 'prise' is no thing that can be set here; did you mean price?"),
        ("set price smal 1", "set: 'smal' is no template here; did you mean small?"),
        ("set price small", "set price: wanted: set price TEMPLATE PRICE"),
        ("set price small cheap", "set price: price_per_hour: 'cheap' is not money; wanted a decimal string such as \"0.17\""),
        ("set owned lik 3", "set owned: 'lik' is no shared resource here; there are: lic"),
        ("set policy minimum_hod 3min", "set policy: 'minimum_hod' is no key here; did you mean minimum_hold?"),
        ("set policy minimum_hold soon", "set policy: minimum_hold: 'soon' is not a duration; wanted a text such as '90s', '15min', '1h30m' or '2d'"),
        ("set provider cloud boot_failures 1", "set provider: 'boot_failures' is no key here; did you mean boot_failure?"),
        ("do", None),
        ("do kill-hots host=own1", "do: 'kill-hots' is no act here; did you mean kill-host?"),
        ("do kill-host hots=own1", None),
        ("do kill-host host=own9", "do kill-host: 'own9' is no host here; did you mean own1?"),
        ("do take-back-host host=own1", "do: not possible: take-back-host host=own1"),
        ("do freeze at=3min", "do freeze: 'at' is not said here: it is done now"),
        ("fork main", "fork: 'main' is there already; wanted another name"),
        ("switch other", "switch: 'other' is no branch here; there are: main"),
        ("diff main", "diff: 'main' is the same twice; wanted two branches"),
        ("record", "record: wanted: record FILE"),
        ("load nowhere.yaml", "nowhere.yaml: cannot be read: No such file or directory"),
        ("help stp", "help: 'stp' is no command here; did you mean step?"),
        ("quit now", "quit: wanted: quit"),
        ("do freeze why='open", "do freeze why='open: a quote is not closed"),
    ],
)  # fmt: skip
def test_a_mistake_says_what_was_wanted_and_changes_nothing(line: str, says: str | None) -> None:
    talk = Talk("run until 9min")
    before = (talk.prompt.now, talk.ask("info events"), talk.prompt.branches, talk.prompt.current)

    said = talk.wrong(line)

    assert says is None or said == says
    assert (talk.prompt.now, talk.ask("info events"), talk.prompt.branches, talk.prompt.current) == before  # fmt: skip


def test_before_anything_is_loaded_it_says_how_to_begin() -> None:
    prompt = Prompt(Hands())

    words = {
        "step": "",
        "run": "",
        "info": "",
        "branches": "",
        "set": "price small 1",
        "do": "freeze",
    }
    for name in COMMANDS.keys() - {"load", "help", "quit"}:
        with pytest.raises(InputError, match="nothing is loaded; try: load SCENARIO"):
            prompt.carry_out(f"{name} {words.get(name, 'x')}")

    assert prompt.carry_out("help") is not None
    assert prompt.carry_out("load workshop.yaml") is not None
    assert prompt.is_loaded


def test_blank_lines_and_remarks_are_no_commands() -> None:
    talk = Talk()

    assert talk.prompt.carry_out("  \n") is None
    assert talk.prompt.carry_out("# a remark") is None
    assert talk.say("step 2 # two of them").document["moments"] == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_is_one(name: str) -> None:
    talk = Talk("step")

    shown = talk.ask(f"help {name}")

    assert COMMANDS[name].usage in shown
    assert COMMANDS[name].example.split()[0] == name
    assert COMMANDS[name].usage in talk.ask("help")
