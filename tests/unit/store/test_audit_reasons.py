"""Decisions and orphans in the audit tables: which decision and which demand a thing came from, and what is nobody's."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.aggregates import AT, FACT
from xce.adapters.store import audit
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.domain.provisioning.decision import Decision, Deed
from xce.domain.provisioning.orphan import ENDED, Orphan, OrphanKind

DIGEST = "ab" * 32
WHEN = AT.isoformat().replace("+00:00", "Z")


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


def ask(database: str, sql: str) -> list[tuple[Any, ...]]:
    return list(audit.query(database, sql).rows)


def test_a_request_has_its_decision_and_the_decision_its_demand(database: str) -> None:
    with open_log(":memory:") as log:
        decision = Decision.make(
            decision="D1", provider="aws", deed=Deed.REQUEST, item="c4", amount=2, reason="2 hosts of c4 wanted",
            jobs=["101", "102"], demand_position=7, demand_digest=DIGEST, cost_per_hour=None,
            led_to=["request:R1", "request:R2"], **FACT,
        )  # fmt: skip
        log.append([decision])
        audit.catch_up(log, database)

    assert ask(
        database,
        "SELECT f.aggregate, d.id, d.by, d.at, d.deed, d.reason, d.jobs, d.demand_position, d.demand_digest"
        " FROM decision_effects f JOIN decisions d ON d.id = f.decision WHERE f.aggregate = 'request:R2'",
    ) == [
        ("request:R2", "D1", FACT["by"], WHEN, "request", "2 hosts of c4 wanted", '["101", "102"]', 7, DIGEST)
    ]  # fmt: skip


def test_an_orphan_is_said_until_somebody_owns_it(database: str) -> None:
    with open_log(":memory:") as log:

        def state() -> tuple[Any, ...]:
            audit.catch_up(log, database)
            ((*row,),) = ask(
                database,
                "SELECT state, return_id, owner, ended_at IS NULL, why, found_at = reported_at FROM orphans",
            )
            assert row[0] == saved(log).state.value
            assert row[3] == (saved(log).state not in ENDED)
            return tuple(row)

        orphan = Orphan.find(
            provider="aws", theirs="i-7", kind=OrphanKind.UNKNOWN_TO_US, tag=None, why="listed", **FACT
        )  # fmt: skip
        log.append([orphan])
        assert state() == ("reported", None, None, 1, "listed", 1)
        orphan.intend_return(return_id="B1", why="nobody's", **FACT)
        log.append([orphan])
        assert state() == ("returning", "B1", None, 1, "nobody's", 1)
        orphan.refuse_return(return_id="B1", why="not now", **FACT)
        log.append([orphan])
        assert state() == ("reported", None, None, 1, "not now", 1)
        orphan.vanish(why="not listed", **FACT)
        log.append([orphan])
        assert state() == ("gone", None, None, 0, "not listed", 1)
        orphan.find_again(
            kind=OrphanKind.UNKNOWN_TO_US, tag="R1", why="listed again",
            at=AT.replace(hour=AT.hour + 1), by=FACT["by"], epoch=FACT["epoch"],
        )  # fmt: skip
        log.append([orphan])
        assert state() == ("reported", None, None, 1, "listed again", 0)
        orphan.adopt(owner="instance:aws/i-7", **FACT)
        log.append([orphan])
        assert state() == ("adopted", None, "instance:aws/i-7", 0, "listed again", 0)


def saved(log: StoredLog) -> Orphan:
    return log.get(Orphan, "orphan:aws/i-7")
