"""A configuration that is read anew while the controller serves."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.running import TOKENS, Running
from tests.service.test_rest import good
from xce.adapters.controller.access import token_line
from xce.adapters.controller.reload import changes_between
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError
from xce.domain.formats.controller_config import ControllerConfig


def write(folder: Path, **changes: Any) -> Path:
    document = {"log": "events.db", "tokens": "tokens.txt", "listen": {"port": 0}, **changes}
    path = folder / "controller.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return path


def configured(admin: httpx.Client) -> list[dict[str, Any]]:
    events = good(admin.get("/v1/events?limit=1000"))["items"]
    return [one for one in events if one["name"] == "xce.configuration.changed"]


def test_a_change_works_at_once_and_is_an_event(service: Running, tmp_path: Path) -> None:
    service.service.reload(write(tmp_path, shared=[{"name": "lic", "owned": 4}]))
    path = write(tmp_path, shared=[{"name": "lic", "owned": 6}])

    changes = service.service.reload(path)

    assert changes == ("shared: lic.owned: 4 -> 6",)
    assert good(service.admin.get("/v1/shared/lic"))["total"] == 6
    event = configured(service.admin)[-1]
    assert (event["by"], event["data"]["changes"]) == ("admin/configuration", list(changes))
    assert event["aggregate"] == "configuration:controller"
    site = good(service.admin.get("/v1/site"))
    assert site["configurations"] == {"controller": event["data"]["digest"]}


def test_the_same_configuration_again_is_no_event(service: Running, tmp_path: Path) -> None:
    path = write(tmp_path, shared=[{"name": "lic", "owned": 4}])
    service.service.reload(path)

    assert service.service.reload(path) == ()
    assert len(configured(service.admin)) == 1


def test_a_wrong_file_changes_nothing(service: Running, tmp_path: Path) -> None:
    before = service.service.config

    with pytest.raises(InputError, match="owned"):
        service.service.reload(write(tmp_path, shared=[{"name": "lic", "owned": -1}]))

    assert service.service.config is before
    assert configured(service.admin) == []


def test_a_token_that_is_taken_out_is_not_known_any_more(service: Running, tmp_path: Path) -> None:
    viewer = service.as_(Role.VIEWER)
    assert viewer.get("/v1/status").status_code == 200
    admin = token_line(Caller(Role.ADMIN, "admin-1"), TOKENS[Role.ADMIN])
    (tmp_path / "tokens.txt").write_text(f"{admin}\n")

    service.service.reload(write(tmp_path))

    assert viewer.get("/v1/status").status_code == 401
    assert service.admin.get("/v1/status").status_code == 200


def test_what_waits_for_a_start_says_so() -> None:
    old = ControllerConfig.model_validate(
        {"log": "a", "tokens": "t", "shared": [{"name": "x", "owned": 1}]}
    )
    new = ControllerConfig.model_validate(
        {"log": "a", "tokens": "t", "demand_time_to_live": "1min", "shared": [{"name": "y", "owned": 2}]}
    )  # fmt: skip

    assert changes_between(old, new) == (
        'demand_time_to_live: "5m" -> "1m" (from the next start)',
        "shared: x is not configured any more; it stays declared",
        "shared: y is new, 2 owned",
    )
