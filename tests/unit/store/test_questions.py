"""The questions of docs/how-to/question-a-log.md: each is SQL that the tables answer."""

import pytest
from benchmarks.audit import NAMES, questions
from benchmarks.histories import write_history

from xce.adapters.store import audit
from xce.adapters.store.open import open_log

QUESTIONS = dict(questions(NAMES))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    database = str(tmp_path_factory.mktemp("questions") / "audit.db")
    with open_log(":memory:") as log:
        write_history(log, 6_000)
        audit.rebuild(log, database)
    return database


def test_there_are_ten_at_least() -> None:
    assert len(QUESTIONS) >= 10


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_question_of_the_page_is_answered(database: str, title: str) -> None:
    answer = audit.query(database, QUESTIONS[title])

    assert answer.rows, "the history has something to say to each"
    assert not answer.cut


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_question_about_few_reads_few(database: str, title: str) -> None:
    """What names one thing goes by an index: no table is read from end to end."""
    sql = QUESTIONS[title]
    plan = [row[-1] for row in audit.query(database, f"EXPLAIN QUERY PLAN {sql}").rows]

    if any(name in sql for name in NAMES.values()):
        assert not [step for step in plan if step.startswith("SCAN")], plan
