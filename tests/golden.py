"""Writes a golden log: every event of this release at least once. ``python -m tests.golden tests/data/logs/NNNN``.

Golden logs are written once, by the release that knows their events, and kept for ever: later releases must read them and arrive at the state
that lies beside them. When an event is added or changed, the next number is written; the files before it are never touched.
"""

import json
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.stories import Story
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.domain.alerts.alert import Alert, AlertKind
from xce.domain.alerts.webhook import Outcome, Webhook
from xce.domain.events.base import Aggregate
from xce.domain.events.document import document_of
from xce.domain.formats.provider import (
    Billing,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.provisioning.configuration import Configuration
from xce.domain.provisioning.decision import Decision, Deed
from xce.domain.provisioning.drain import AtDeadline, Drain
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.receipt import Receipt
from xce.domain.provisioning.refusals import Refusals
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.provisioning.site import Site
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.all import Projections
from xce.projections.document import document_of as document_of_projections

AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
TERM = timedelta(seconds=30)
C4 = TemplateOffer(template_id="c4", max_number=4, provides={"slots": 4, "mem": 16})


def tell(log: StoredLog) -> None:
    """Tell the story that all tests know, and then what it leaves out."""
    Story(log).tell()
    stamp: Any = {"at": AT, "by": "admin/alice"}
    fact: Any = {"at": AT, "by": "provisioner/p9", "epoch": 1}

    description = ProviderDescription(
        name="cloud", kinds=("host", "countable"), capacity=9, templates=(C4,),
        resources=(ResourceOffer(name="tok", capacity=9),),
    )  # fmt: skip
    provider = Provider.describe_first(description=description, **stamp)
    provider.pause(item=None, until=AT + TERM, why="", **stamp)
    provider.resume(item=None, **stamp)
    provider.pause(item="c4", until=AT + TERM, why="no capacity", **stamp)
    provider.resume(item="c4", **stamp)
    lease = ProviderLease.grant(provider="cloud", holder="p9", term=TERM, **stamp)
    log.append([provider, lease])

    request = _ask("R10", Kind.HOST, "c4", 4, fact)
    request.accept(provider_request_id="add-10", **fact)
    request.grant_instance(instance_id="I10", machine="m10", **fact)
    request.grant_instance(instance_id="I11", machine="m11", **fact)
    request.fail_machine(instance_id="I12", machine="m12", why="no boot", **fact)
    request.fall_short(failed=2, why="InsufficientCapacity", **fact)
    request.close(outcome=RequestState.PARTIAL, why="2 of 4", **fact)
    never = _host("I10", "m10", fact)
    never.miss_join(why="10 min are over", **fact)
    failed = _host("I12", "m12", fact)
    failed.miss_join(why="no boot", **fact)
    lost = _host("I11", "m11", fact)
    lost.start_check(
        host="h11", booted_at=AT, attributes={"zone": "a"}, total={"slots": 4, "mem": 16}, **fact
    )
    lost.join(
        host="h11", booted_at=AT, attributes={"zone": "a"}, total={"slots": 4, "mem": 16}, **fact
    )
    lost.start_drain(why="idle", **fact)
    lost.reopen(why="job 7 came", **fact)
    lost.start_drain(why="idle", **fact)
    lost.intend_return(return_id="X10", why="idle", **fact)
    lost.accept_return(return_id="X10", provider_return_id="ret-10", **fact)
    lost.refuse_return(return_id="X10", why="not now", **fact)
    lost.lose(why="gone at the provider", **fact)
    log.append([request, never, failed, lost], fences={"lease:cloud": 1})

    tokens = _ask("R11", Kind.COUNTABLE, "tok", 5, fact)
    tokens.grant_amount(grant_id="G10", amount=5, **fact)
    tokens.close(outcome=RequestState.COMPLETE, why="all came", **fact)
    tokens.settle(why="nothing more will come", **fact)
    resource = ElasticResource.declare(
        resource="tok", owned=2, provider="cloud", max_borrow=8, step=1, **stamp
    )
    resource.borrow(grant_id="G10", amount=5, **stamp)
    resource.set_owned(owned=3, **stamp)
    resource.change_settings(
        provider="cloud", max_borrow=9, step=2, idle_return_after=timedelta(minutes=5), **stamp
    )
    resource.lose_part(grant_id="G10", amount=1, **stamp)
    resource.lose_grant(grant_id="G10", **stamp)
    grant = Grant.grant(
        grant="G10", request_id="R11", provider="cloud", resource="tok", amount=5, hold_until=None,
        expires_at=AT + timedelta(hours=8), price_per_hour=None, **fact,
    )  # fmt: skip
    grant.extend(expires_at=AT + timedelta(hours=9), **fact)
    grant.lose_part(amount=1, why="the lender lists less of it", **fact)
    grant.lose(why="expired", **fact)
    log.append([tokens, resource, grant], fences={"lease:cloud": 1})

    orphan = Orphan.find(
        provider="cloud", theirs="m99", kind=OrphanKind.UNKNOWN_TO_US, tag="R99", why="nobody asked for it", **fact
    )  # fmt: skip
    orphan.intend_return(return_id="X99", why="nobody owns it", **fact)
    orphan.refuse_return(return_id="X99", why="not now", **fact)
    orphan.vanish(why="gone at the provider", **fact)
    ours = Orphan.find(
        provider="cloud", theirs="m98", kind=OrphanKind.UNKNOWN_TO_US, tag=None, why="nobody asked for it", **fact
    )  # fmt: skip
    ours.adopt(owner="admin/alice", **fact)
    let_be = Orphan.find(
        provider="cloud", theirs="m97", kind=OrphanKind.NEVER_JOINED, tag=None, why="did not join", **fact
    )  # fmt: skip
    let_be.dismiss(why="belongs to another cluster", **fact)
    decision = Decision.make(
        decision="D1", provider="cloud", deed=Deed.REQUEST, item="c4", amount=4, reason="4 jobs wait", jobs=["101", "102"],
        demand_position=40, demand_digest="ab" * 32, cost_per_hour=Decimal("0.68"), led_to=["request:R10"], **fact,
    )  # fmt: skip
    receipt = Receipt.give(
        caller="admin/alice", key="k1", content="cd" * 32, versions={"request:R10": 7}, epochs={"cloud": 1}, at=AT
    )  # fmt: skip
    refusals = Refusals.note_first(
        caller="viewer/bob", day="2026-03-02", action="drain", count=1, why="a viewer may not", at=AT
    )  # fmt: skip
    refusals.note(caller="viewer/bob", action="drain", count=3, why="a viewer may not", at=AT)
    log.append([orphan, ours, let_be, decision, receipt, refusals])

    alert = Alert.raise_first(
        kind=AlertKind.ORPHAN, subject="cloud/m99", text="nobody owns it", **stamp
    )
    alert.clear(why="it is not so any more", **stamp)
    alert.raise_again(text="nobody owns it", **stamp)
    webhook = Webhook.tell_first(
        webhook="pager", position=40, outcome=Outcome.DELIVERED, why="", **stamp
    )
    webhook.tell(position=41, outcome=Outcome.REFUSED, why="answered 422", **stamp)
    log.append([alert, webhook])

    log.append([lent_back(fact), *drained(stamp)])
    site = Site.freeze_first(why="power cut", **stamp)
    site.unfreeze(why="power is back", **stamp)
    provider.learn(template="c4", total={"slots": 4, "mem": 15}, host="h11", **stamp)
    configuration = Configuration.change_first(
        daemon="provisioner", digest="ab" * 32, changes=["policy.step: 1 to 2"], **stamp
    )
    evidence = Evidence.keep(
        evidence="E1", provider="cloud", call="request", subject="request:R10", arguments=("-f", "in.json"), exit_code=1,
        milliseconds=840, digest="cd" * 32, output="{}", log="no capacity", step="whole", killed="", **fact,
    )  # fmt: skip
    log.append([site, provider, configuration, evidence])

    lease.release(epoch=1, **stamp)
    lease.regrant(holder="p9", epoch=2, term=TERM, **stamp)
    lease.lapse(epoch=2, **stamp)
    log.append([lease])


def lent_back(fact: Any) -> Grant:
    """Return a grant of which the lender has a part back."""
    grant = Grant.grant(
        grant="G11", request_id="R11", provider="cloud", resource="tok", amount=5, hold_until=None,
        expires_at=None, price_per_hour=None, **fact,
    )  # fmt: skip
    grant.start_return(return_id="X11", amount=2, **fact)
    grant.accept_return(return_id="X11", provider_return_id="back-11", **fact)
    grant.confirm_return(return_id="X11", **fact)
    return grant


def drained(stamp: Any) -> tuple[Drain, ...]:
    """Return drains of hosts: emptied, filled again and ended; taken by a job; past its deadline and called off."""

    def ask(host: str, *, yields: bool) -> Drain:
        return Drain.ask(
            host=host, instance=None, why="new kernel", yields=yields, deadline=AT,
            at_deadline=AtDeadline.WAIT, **stamp,
        )  # fmt: skip

    ended = ask("h1", yields=False)
    ended.look(jobs=[], **stamp)
    ended.look(jobs=["7"], **stamp)
    ended.end(why="it left", **stamp)
    taken = ask("h2", yields=True)
    taken.look(jobs=["8"], **stamp)
    late = ask("h3", yields=False)
    late.look(jobs=["9"], **stamp)
    late.cancel(why="no new kernel", **stamp)
    return ended, taken, late


def _ask(name: str, kind: Kind, item: str, amount: int, fact: Any) -> Request:
    return Request.intend(
        request=name, provider="cloud", kind=kind, item=item, amount=amount, price_per_hour=Decimal("0.17"),
        deadline=AT + timedelta(hours=1), reason="jobs wait", jobs=["101", "102"], demand_position=40,
        hold=timedelta(minutes=10), **fact,
    )  # fmt: skip


def _host(name: str, machine: str, fact: Any) -> Instance:
    return Instance.grant(
        instance=name, request_id="R10", provider="cloud", template="c4", machine=machine, name=None,
        price_per_hour=Decimal("0.17"), billing=Billing(), hold_until=AT, **fact,
    )  # fmt: skip


def state_of(log: StoredLog) -> dict[str, Any]:
    """Return what a log amounts to: each aggregate, and what the projections say, as plain documents."""
    aggregates: dict[str, Aggregate[Any]] = {}
    for recorded in log.read():
        event = recorded.event
        after = event.mutate(aggregates.get(event.originator_id))
        assert after is not None
        aggregates[event.originator_id] = after
    return {
        "head": str(log.head()),
        "aggregates": {name: json.loads(document_of(one)) for name, one in sorted(aggregates.items())},
        "projections": json.loads(
            json.dumps(document_of_projections(Projections.rebuild(log), AT), default=str)
        ),
    }  # fmt: skip


def main(target: str) -> None:
    """Write the log, and the state beside it."""
    path = Path(f"{target}.db")
    with open_log(path) as log:
        tell(log)
        state = state_of(log)
    with closing(
        sqlite3.connect(path)
    ) as connection:  # one file, that can be read where nothing can be written
        connection.execute("PRAGMA journal_mode = DELETE")
    Path(f"{target}.json").write_text(json.dumps(state, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
