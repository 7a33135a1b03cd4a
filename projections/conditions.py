"""What is not as it should be: pure functions of the views and of what daemons reported, one for each kind of alert."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from xce.domain.alerts.alert import AlertKind
from xce.domain.engine.alerting import Condition
from xce.domain.events.base import cut
from xce.domain.formats.alert_settings import AlertSettings
from xce.domain.formats.config import SharedPool
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.policy import Pause
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.standing import BudgetUse, StandingReport
from xce.domain.policy import money
from xce.domain.provisioning.lease import LeaseState
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import OPEN
from xce.domain.values import natural_key
from xce.projections.all import Projections
from xce.projections.reasons import OrphanRow

#: Orphans of one provider that are alerted of one by one; more of them are one alert together.
ORPHANS_EACH: Final = 20
#: Bounds of budgets that are used up again and again, as they are meant to be.
_RATES: Final = frozenset({"max_asked"})
#: The bound that is of hosts; the others are of money.
_HOSTS: Final = "max_hosts"
#: Longest subject.
_SUBJECT_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Look:
    """All that a look at the site sees.

    Attributes:
        reports: what the scheduler reported of shared resources; empty: nothing yet.
        pools: shared resources of the configuration.
        standing: the newest report of each provisioner that is not too old; empty: there is none.
        no_session: of each scheduler that can hold no session: why, as it said last.
        has_session: whether there is a session that is not too old.
    """

    projections: Projections
    now: datetime
    settings: AlertSettings
    reports: Mapping[str, SharedReport] = field(default_factory=dict[str, SharedReport])
    pools: tuple[SharedPool, ...] = ()
    standing: Mapping[str, StandingReport] = field(default_factory=dict[str, StandingReport])
    no_session: Mapping[str, NoSession] = field(default_factory=dict[str, NoSession])
    has_session: bool = False


def conditions(look: Look) -> tuple[Condition, ...]:
    """Return what is not as it should be, of the kinds that the site wants to know of."""
    return tuple(one for kind in look.settings.kinds for one in _FINDERS[kind](look))


def unknown(look: Look) -> frozenset[AlertKind]:
    """Return the kinds of which a look knows nothing, since nobody has reported."""
    found: set[AlertKind] = set()
    if not look.standing:
        found |= {AlertKind.BUDGET, AlertKind.MASS_LOSS}
    if not look.reports:
        found.add(AlertKind.DRIFT)
    if not look.no_session and not look.has_session:
        found.add(AlertKind.NO_SESSION)
    return frozenset(found)


# ----------------------------------------------------------------------- budgets
def _budgets(look: Look) -> Iterator[Condition]:
    worst: dict[tuple[str, str], BudgetUse] = {}
    for report in look.standing.values():
        for use in report.budgets:
            if use.bound in _RATES:
                continue
            key = use.budget, use.bound
            if key not in worst or _share(use) > _share(worst[key]):
                worst[key] = use
    for use in worst.values():
        for percent in look.settings.budget_percent:
            if use.used and money.times(use.used, 100) >= money.times(use.limit, percent):
                yield Condition(
                    AlertKind.BUDGET,
                    f"{use.budget} {use.bound} {percent}%"[-_SUBJECT_MAX:],
                    f"budget {use.budget}: {_used(use)} ({use.bound}) used, which is {percent} % or more",
                )


def _used(use: BudgetUse) -> str:
    if use.bound == _HOSTS:
        return f"{use.used:.0f} of {use.limit:.0f} hosts"
    return f"{money.plain(use.used)} of {money.plain(use.limit)}"


def _share(use: BudgetUse) -> tuple[bool, Fraction]:
    """Return how full a budget is, for comparison; one of nothing is full at once."""
    if not use.limit:
        return bool(use.used), Fraction(0)
    return False, Fraction(use.used) / Fraction(use.limit)


# ----------------------------------------------------------------------- orphans
_KINDS: Final = {
    OrphanKind.UNKNOWN_TO_US: "nobody owns it",
    OrphanKind.UNKNOWN_TO_PROVIDER: "its provider does not know it",
    OrphanKind.NEVER_JOINED: "it never joined",
}


def _orphans(look: Look) -> Iterator[Condition]:
    by_provider: dict[str, list[OrphanRow]] = {}
    for row in look.projections.reasons.orphans():
        by_provider.setdefault(row.provider, []).append(row)
    for provider, rows in by_provider.items():
        for row in rows[:ORPHANS_EACH]:
            yield Condition(
                AlertKind.ORPHAN,
                f"{provider}/{row.theirs}"[:_SUBJECT_MAX],
                cut(f"{row.theirs} at {provider}: {_KINDS[row.kind]}: {row.why}"),
            )
        if len(rows) > ORPHANS_EACH:
            yield Condition(
                AlertKind.ORPHAN,
                f"{provider} (more)"[:_SUBJECT_MAX],
                f"{len(rows)} orphans at {provider}; the first {ORPHANS_EACH} are alerted of by themselves",
            )


# ------------------------------------------------------------------------ pauses
def _paused(look: Look) -> Iterator[Condition]:
    """A provider that is paused as a whole, or of which everything that it offers is."""
    pauses: dict[str, list[Pause]] = {}
    for pause in look.projections.catalog.pauses(look.now):
        pauses.setdefault(pause.provider, []).append(pause)
    for one in look.projections.catalog.descriptions():
        mine = pauses.get(one.name, [])
        whole = next((pause for pause in mine if pause.item is None), None)
        offered = {offer.template_id for offer in one.templates} | {
            offer.name for offer in one.resources
        }
        if whole is not None:
            text = f"provider {one.name} is paused until {_clock(whole.until)}: {whole.why}"
        elif offered and offered <= {pause.item for pause in mine}:
            first = min(mine, key=lambda pause: (pause.until, natural_key(pause.item or "")))
            text = (
                f"all that provider {one.name} offers is paused, {first.item} until"
                f" {_clock(first.until)}: {first.why}"
            )
        else:
            continue
        yield Condition(AlertKind.PAUSED, one.name, cut(text))


# ------------------------------------------------------------------------- drift
def _drift(look: Look) -> Iterator[Condition]:
    for pool in look.pools:
        report = look.reports.get(pool.name)
        if report is None or report.drift is None or report.drift_since is None:
            continue
        if look.now - report.drift_since < pool.drift_alert_after:
            continue
        what = "in use and not booked" if report.drift > 0 else "booked and not in use"
        yield Condition(
            AlertKind.DRIFT,
            pool.name,
            f"{abs(report.drift)} of {pool.name} are {what}, since {_clock(report.drift_since)}",
        )


# --------------------------------------------------------------------- mass loss
def _mass_loss(look: Look) -> Iterator[Condition]:
    found: dict[str, str] = {}
    lost = look.projections.alerts.losses(look.now, look.settings.lost_within)
    for provider, number in Counter(loss.provider for loss in lost).items():
        if number >= look.settings.lost_hosts:
            last = max(loss.at for loss in lost if loss.provider == provider)
            found[provider] = (
                f"{number} hosts of {provider} were lost at once, the last at {_clock(last)}"
            )
    for reporter, report in look.standing.items():
        for held in report.held_back:
            found[held.provider] = f"{held.provider}, as {reporter} sees it: {held.why}"
    for provider, text in found.items():
        yield Condition(AlertKind.MASS_LOSS, provider, cut(text))


def _taken_over(look: Look) -> Iterator[Condition]:
    """A take-over happens once: it is raised by whoever took over, and stays for a while."""
    for row in look.projections.alerts.raised():
        if row.kind is AlertKind.TAKEN_OVER and look.now - row.raised < look.settings.takeover_for:
            yield Condition(row.kind, row.subject, row.text)


def _unattended(look: Look) -> Iterator[Condition]:
    """A provider that has something of ours, and on which nobody acts: all who declared it are away, or declare it no more."""
    inventory = look.projections.inventory.view()
    held: dict[str, Counter[str]] = {}
    for what, entries in (
        ("host", inventory.instances),
        ("grant", inventory.grants),
        ("request", (one for one in inventory.requests if one.state in OPEN)),
    ):
        for entry in entries:
            held.setdefault(entry.provider, Counter())[what] += 1
    for provider, counts in held.items():
        lease = look.projections.leases.of(provider)
        if lease is not None and lease.state is LeaseState.HELD:
            continue
        has = " and ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())
        since = (
            "" if lease is None else f", since {_clock(lease.since)}; {lease.holder} was the last"
        )
        yield Condition(
            AlertKind.UNATTENDED,
            provider,
            cut(f"nobody acts on {provider}, which has {has} of ours{since}"),
            look.settings.unattended_after,
        )


def _no_session(look: Look) -> Iterator[Condition]:
    for scheduler, report in look.no_session.items():
        yield Condition(
            AlertKind.NO_SESSION,
            scheduler,
            cut(f"{scheduler} holds no session, so demand is unknown: {report.why}"),
            look.settings.no_session_after,
        )


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_FINDERS: Final[Mapping[AlertKind, Callable[[Look], Iterable[Condition]]]] = {
    AlertKind.BUDGET: _budgets,
    AlertKind.ORPHAN: _orphans,
    AlertKind.PAUSED: _paused,
    AlertKind.DRIFT: _drift,
    AlertKind.MASS_LOSS: _mass_loss,
    AlertKind.TAKEN_OVER: _taken_over,
    AlertKind.UNATTENDED: _unattended,
    AlertKind.NO_SESSION: _no_session,
}
