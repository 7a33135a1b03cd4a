"""Scripts that print what would forge log lines, clear terminals or give secrets away: none of it gets into the daemon's log, or the durable one."""

import json
import signal
import time
from pathlib import Path

from tests.crash.nursery import Nursery
from tests.provisioner.test_daemon import PATIENCE_S, demand_for
from tests.service.running import TOKENS, running
from tests.unit.providers.scripts import write_scripts
from xce.adapters.client import Client
from xce.adapters.store.open import open_log
from xce.domain.engine.messages import Role

FORGED = '{"event": "forged", "level": "info", "timestamp": "2026-03-02T08:00:00Z"}'
HOSTILE = f"""
printf '\\033[2J\\033]0;title\\007\\nthe key is %s\\n%s\\n' "$CLOUD_KEY" '{FORGED}' >&2
printf 'Error Code: Sold\\033[31mOut: \\r\\n%s %s' "$CLOUD_KEY" '{FORGED}'
exit 1
"""
TEMPLATES = json.dumps(
    {
        "templates": [{"templateId": "c4", "attributes": {"ncpus": ["Numeric", "4"]}}],
        "message": f"\x1b[31m\n{FORGED}",
    }
)
KEY = "s3cr3t-of-the-cloud"


def test_what_scripts_print_forges_no_log_line_and_clears_no_terminal(tmp_path: Path) -> None:
    write_scripts(
        tmp_path / "cloud",
        {
            "getAvailableTemplates": f"cat <<'END'\n{TEMPLATES}\nEND",
            "requestMachines": HOSTILE,
            "getReturnRequests": HOSTILE,
        },
    )
    (tmp_path / "token").write_text(TOKENS[Role.ADMIN])
    config = tmp_path / "p1.yaml"
    log = config.with_suffix(".log")
    with running(tmp_path) as controller, Nursery({"CLOUD_KEY": KEY}) as nursery:
        config.write_text(
            f"name: p1\ncontroller: {{addresses: ['{controller.address}'], token_file: token}}\n"
            "scripts: [{name: cloud, folder: cloud, secrets: [CLOUD_KEY]}]\n"
            "rhythm: {lease_term: 3s, poll: 1s, round: 1s, review: 1s}\n"
        )
        daemon = nursery.start(config, "provisioner")
        with Client(controller.address, token=TOKENS[Role.ADMIN]) as client:
            client.publish_session(demand_for(1, 0))
            deadline = time.monotonic() + PATIENCE_S
            while '"outcome": "refused"' not in log.read_text():
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            daemon.signal(signal.SIGTERM)
            assert daemon.wait() == 0
            pauses = [pause for one in client.providers() for pause in one.pauses]

    raw = log.read_bytes()
    entries = [json.loads(line) for line in raw.splitlines()]
    assert {"running", "provider answered", "stopped"} <= {one["event"] for one in entries}
    assert "forged" not in {one["event"] for one in entries}
    assert [why for why in (one.why for one in pauses) if "SoldOut" in why]
    with open_log(tmp_path / "events.db", read_only=True) as durable:
        events = "".join(repr(one.event) for one in durable.read())
    assert "the key is [hidden]" in events
    for text in (raw.decode(), events):
        assert KEY not in text
        assert "\x1b" not in text
        assert "\\x1b" not in text
        assert "\\u001b" not in text
