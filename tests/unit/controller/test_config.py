"""The controller's configuration: each mistake with its line, and nothing listens where it should not."""

from pathlib import Path

import pytest

from xce.adapters.controller.reload import changes_between
from xce.adapters.controller.service import ControllerService, read_controller_config
from xce.domain.errors import InputError
from xce.domain.formats.alert_settings import AlertSettings, WebhookSettings
from xce.domain.formats.controller_config import ControllerConfig

GOOD = "log: events.db\ntokens: tokens.txt\n"

BAD: list[tuple[str, str, int]] = [
    ("log: events.db\n", "tokens: required field is missing", 1),
    (GOOD + "listn: {}\n", "did you mean listen?", 3),
    (GOOD + "listen: {host: 0.0.0.0}\n", "0.0.0.0 is not loopback", 3),
    (GOOD + "listen:\n  port: 99999\n", "listen.port", 4),
    (GOOD + "listen: {port: \"80\"}\n", "listen.port", 3),
    (GOOD + "tls: {certificate: c.pem}\n", "tls.key: required field is missing", 3),
    (GOOD + "tls:\n  certificate: c.pem\n  key: k.pem\n  clients:\n    - {common_name: a, role: boss, name: b}\n", "role", 7),
    (GOOD + "tls:\n  certificate: c.pem\n  key: k.pem\n  clients:\n    - {common_name: a, role: admin, name: b}\n", "need tls.client_ca", 6),
    (GOOD + "limits:\n  streams: 0\n", "limits.streams", 4),
    (GOOD + "limits:\n  body_kib: many\n", "limits.body_kib", 4),
    (GOOD + "limits: {stream_stall: 0s}\n", "must be above 0", 3),
    (GOOD + "leases: {minimum: 2h}\n", "is longer than leases.maximum", 3),
    (GOOD + "demand_time_to_live: soon\n", "demand_time_to_live", 3),
    (GOOD + "shared:\n  - {name: a, owned: 1}\n  - {name: a, owned: 2}\n", "a is there twice", 5),
    (GOOD + "shared:\n  - {name: a, owned: -1}\n", "shared[0].owned", 4),
    (GOOD + "log: other.db\n", "the key is there twice", 3),
    (GOOD + "\tx: 1\n", "a tab", 3),
    ("- a\n", "wanted a mapping", 1),
    ("", "is empty", 1),
    (GOOD + "password: hunter2\n", "unknown key", 3),
    (GOOD + "alerts:\n  webhooks:\n    - {name: a, url: ftp://x}\n", "is not an address", 5),
    (GOOD + "alerts:\n  webhooks:\n    - {name: a, url: http://x, url_variable: X}\n", "one of them", 5),
    (GOOD + "alerts:\n  webhooks:\n    - {name: a, url: http://x}\n    - {name: a, url: http://y}\n", "a is there twice", 6),
    (GOOD + "alerts:\n  webhooks:\n    - {name: a b, url: http://x}\n", "is not a name", 5),
    (GOOD + "alerts:\n  webhooks:\n    - {name: a, url_variable: $X}\n", "environment variable", 5),
    (GOOD + "alerts: {look: 0s}\n", "must be above 0", 3),
    (GOOD + "alerts: {kinds: [fire]}\n", "alerts.kinds[0]", 3),
    (GOOD + "alerts: {budget_percent: [0]}\n", "alerts.budget_percent[0]", 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "line"), BAD)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, text: str, message: str, line: int
) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read_controller_config(path)

    assert message in str(caught.value)
    assert line in [problem.line for problem in caught.value.problems]
    assert "hunter2" not in str(caught.value)


def test_names_of_files_start_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(GOOD)

    config = read_controller_config(path)

    assert (config.log, config.tokens) == (
        str(tmp_path / "events.db"),
        str(tmp_path / "tokens.txt"),
    )
    assert config.listen.host == "127.0.0.1"


def test_another_address_needs_tls_or_an_explicit_word(tmp_path: Path) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(GOOD + "listen: {host: 0.0.0.0, insecure: true}\n")

    assert read_controller_config(path).listen.insecure


@pytest.mark.parametrize("missing", ["tokens.txt", "c.pem"])
def test_a_file_that_is_missing_is_named_before_anything_is_opened(
    tmp_path: Path, missing: str
) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(GOOD + "tls: {certificate: c.pem, key: k.pem}\n")
    if missing != "tokens.txt":
        (tmp_path / "tokens.txt").write_text("")

    with pytest.raises(InputError, match=missing):
        ControllerService(read_controller_config(path))

    assert not (tmp_path / "events.db").exists()


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"

    with pytest.raises(InputError) as raised:
        read_controller_config(path)

    assert str(raised.value) == f"{path}: cannot be read: No such file or directory"


def test_a_webhook_whose_variable_is_not_set_is_named_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XCE_PAGER_URL", raising=False)
    path = tmp_path / "controller.yaml"
    path.write_text(
        GOOD + "alerts: {webhooks: [{name: pager, url_variable: XCE_PAGER_URL}]}\n", "utf-8"
    )
    (tmp_path / "tokens.txt").write_text("")

    with pytest.raises(
        InputError, match="webhook pager: the environment variable XCE_PAGER_URL is not set"
    ):
        ControllerService(read_controller_config(path))
    monkeypatch.setenv("XCE_PAGER_URL", "hunter2")
    with pytest.raises(InputError, match="XCE_PAGER_URL does not hold an address") as raised:
        ControllerService(read_controller_config(path))
    assert "hunter2" not in str(raised.value)


def test_that_alerts_have_changed_is_said_without_their_addresses(tmp_path: Path) -> None:
    def config(url: str) -> ControllerConfig:
        alerts = AlertSettings(webhooks=(WebhookSettings(name="a", url=url),))
        return ControllerConfig(log="x.db", tokens="t", alerts=alerts)

    changes = changes_between(config("https://x/secret-1"), config("https://x/secret-2"))

    assert changes == ("alerts: changed (from the next start)",)
