"""The pool's scripts: recalls, terms that are put off, and faults for trials."""

import json
import sqlite3
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from xce.adapters.cli.pool import app
from xce.adapters.providers.pool import scripts
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.licence_pool import LicencePool
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Accepted, Ask, RenewingProvider

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


class Trial:
    """A pool in a file; its scripts run in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.book = folder / "pool.db"

    def apply(self, *faults: dict[str, Any], **values: Any) -> None:
        resource = {"name": "lic", "size": 8, "sites": [{"name": "a"}, {"name": "b"}], **values}
        document = {"format": "xce.pool/1", "resources": [resource], "faults": faults}
        with PoolBook(self.book) as book:
            book.apply(LicencePool.model_validate(document))

    def call(self, site: str, script: str, **given: Any) -> Any:
        """Return what a script says; None: nothing."""
        place = self.folder / "input.json"
        place.write_text(json.dumps(given))
        said = StringIO()
        with redirect_stdout(said):
            scripts.main([str(self.book), site, script, "-f", str(place)])
        return json.loads(said.getvalue()) if said.getvalue() else None

    def ask(self, site: str, tag: str, amount: int) -> Any:
        return self.call(site, "requestResources", resource="lic", amount=amount, requestTag=tag)

    def back(self, site: str, tag: str, grant: str, amount: int) -> Any:
        parts = [{"grantId": grant, "amount": amount}]
        return self.call(site, "requestReturnResources", grants=parts, requestTag=tag)

    def held(self, site: str) -> int:
        with PoolBook(self.book) as book:
            return book.standing("lic", NOW).has(site)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_a_recall_is_said_as_the_amount_to_fall_to(trial: Trial) -> None:
    trial.apply()

    def recalled_to() -> int | None:
        (offer,) = trial.call("a", "getAvailableResources")["resources"]
        return offer.get("recalledTo")  # type: ignore[no-any-return]

    trial.ask("a", "R1", 8)
    assert recalled_to() is None
    assert "InsufficientCapacity" in trial.ask("b", "R1", 3)["message"]
    assert recalled_to() == 5
    trial.back("a", "B1", "a-R1", 3)
    assert recalled_to() is None, "what b was denied is free now"


def test_the_caller_of_scripts_hears_recalls_and_puts_terms_off(trial: Trial) -> None:
    trial.apply(lease="30min")
    scripts.install(trial.book, "a", trial.folder / "a")
    settings = ScriptSettings(name="pool", folder=str(trial.folder / "a"))
    provider = ScriptProvider(settings, trial.folder / "state")
    assert isinstance(provider, RenewingProvider)
    assert provider.describe(NOW) is not None
    assert isinstance(provider.ask(Ask("R1", Kind.COUNTABLE, "lic", 8), NOW), Accepted)
    held = next(iter(provider.holdings(NOW) or ()))
    ((grant, end),) = provider.renew(("a-R1", "a-R9"), NOW).ends
    assert (grant, held.expires_at is not None and end >= held.expires_at) == ("a-R1", True)
    trial.ask("b", "R1", 3)
    described = provider.describe(NOW)
    assert described is not None
    assert [offer.recalled_to for offer in described.resources] == [5]
    assert provider.renew(("a-R1",), NOW).ends == (), "what it wants back is not put off"


def test_a_pool_without_terms_puts_none_off(trial: Trial) -> None:
    trial.apply()
    trial.ask("a", "R1", 8)
    assert trial.call("a", "renewResources", grants=[{"grantId": "a-R1"}]) == {"grants": []}


@pytest.mark.parametrize("call", ["ask", "return"])
def test_of_a_lost_answer_what_was_asked_is_done_and_once(trial: Trial, call: str) -> None:
    trial.apply({"fault": "lost", "call": call, "every": 2})
    asked = [trial.ask("a", "R1", 4) for _ in range(2)]
    back = [trial.back("a", "B1", "a-R1", 3) for _ in range(2)]
    assert (asked[1] is None, back[1] is None) == (call == "ask", call == "return")
    assert (asked[0] is None, back[0] is None) == (False, False)
    assert trial.held("a") == 1
    with PoolBook(trial.book) as book:
        assert [move.kind for move in book.moves()] == ["lent", "back"]


def test_a_refused_return_changes_nothing_and_the_next_one_is_taken(trial: Trial) -> None:
    trial.apply({"fault": "refuse", "call": "return", "site": "a"})
    trial.ask("a", "R1", 4)
    assert "Error Code: Trial" in trial.back("a", "B1", "a-R1", 4)["message"]
    assert trial.held("a") == 4
    trial.apply()
    assert "requestId" in trial.back("a", "B1", "a-R1", 4)
    assert trial.held("a") == 0


def test_a_late_answer_is_the_right_one_and_wrong_counts_are_one_less(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("xce.adapters.providers.pool.scripts.time.sleep", waited.append)
    trial.apply(
        {"fault": "late", "call": "ask", "after": "7s"},
        {"fault": "wrong", "call": "list"},
    )
    assert trial.ask("a", "R1", 4)["requestId"] == "a-R1"
    assert trial.ask("a", "R2", 1)["requestId"] == "a-R2"
    assert waited == [7.0, 7.0]
    assert [one["amount"] for one in trial.call("a", "listGrants")["grants"]] == [3]


def test_faults_of_one_site_are_not_those_of_another(trial: Trial) -> None:
    trial.apply({"fault": "refuse", "call": "ask", "site": "b"})
    assert "requestId" in trial.ask("a", "R1", 1)
    assert "requestId" not in trial.ask("b", "R1", 1)


@pytest.mark.parametrize("amount", [2**64, 2**70, -(2**70), float("inf"), float("nan")])
def test_amounts_that_no_book_can_hold_are_refused_and_nothing_is_lent(
    trial: Trial, amount: Any
) -> None:
    trial.apply()
    trial.ask("a", "R1", 4)

    asked = trial.ask("a", "R2", amount)
    back = trial.back("a", "B1", "a-R1", amount)

    assert "not understood" in asked["message"] or "can be lent" in asked["message"]
    assert "not understood" in back["message"] or "requestId" in back
    assert trial.held("a") == 4


def test_less_than_nothing_does_not_go_back_of_what_is_not_lent_any_more_either(
    trial: Trial,
) -> None:
    trial.apply()
    trial.ask("a", "R1", 4)
    trial.back("a", "B1", "a-R1", 3)
    trial.apply(name="other")

    trial.back("a", "B2", "a-R1", -2)

    with PoolBook(trial.book) as book:
        loan = book.loan("a-R1")
        assert loan is not None
        assert loan.left == 1


QUESTIONS: dict[str, dict[str, Any]] = {
    "listGrants": {},
    "getAvailableResources": {},
    "getRequestStatus": {"requests": [{"requestId": "a-R1"}]},
    "requestResources": {"resource": "lic", "amount": 1, "requestTag": "R2"},
    "requestReturnResources": {"grants": [{"grantId": "a-R1", "amount": 1}], "requestTag": "B1"},
    "renewResources": {"grants": [{"grantId": "a-R1"}]},
    "observeResources": {},
}


@pytest.mark.parametrize("script", QUESTIONS)
def test_a_book_that_is_damaged_answers_that_it_is_and_never_that_nothing_is_lent(
    trial: Trial, script: str
) -> None:
    trial.apply(lease="1h")
    trial.ask("a", "R1", 4)
    # Given all pages behind the first, with what is lent, overwritten.
    connection = sqlite3.connect(trial.book)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = trial.book.read_bytes()
    trial.book.write_bytes(content[:page] + b"\xff" * (len(content) - page))

    said = trial.call("a", script, **QUESTIONS[script])

    assert set(said) == {"message"}
    assert "malformed" in said["message"]


@pytest.mark.parametrize("script", QUESTIONS)
def test_a_book_that_is_not_there_answers_that_it_is_not_and_is_not_made(
    trial: Trial, script: str
) -> None:
    """Its disk is not mounted, perhaps: what is made under the place of the mount hides nothing and lends nothing."""
    said = trial.call("a", script, **QUESTIONS[script])

    assert said == {"message": f"input: {trial.book}: there is no such pool"}
    assert not trial.book.exists()


def test_a_pool_that_cannot_be_opened_because_the_disk_is_full_may_be_tried_again(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.apply()
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def connect(*arguments: object, **more: object) -> sqlite3.Connection:
        raise full

    monkeypatch.setattr(sqlite3, "connect", connect)

    with pytest.raises(TransientError, match="disk is full"):
        PoolBook(trial.book)


def test_scripts_are_not_made_for_a_site_that_the_pool_lends_nothing_to(tmp_path: Path) -> None:
    Trial(tmp_path).apply()
    folder = tmp_path / "scripts"

    result = CliRunner().invoke(app, ["scripts", str(tmp_path / "pool.db"), "sita-a", str(folder)])

    assert isinstance(result.exception, InputError)
    assert "lends nothing to sita-a; it lends to a, b" in str(result.exception)
    assert not folder.exists()
