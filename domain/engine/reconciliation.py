"""What a listing of a provider means for our books (SPEC P8): who owns what is there, and what of ours is gone.

A listing may be late in both directions, so nothing is concluded from one reading alone: what is unowned, or missing, counts once two
listings in a row agree, and a listing that takes away a large share is asked again more often (field case F24). Only what carries
the tag of a request of ours is taken over at once. Sightings are a memory of the process, and nothing is lost with them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from xce.domain.engine.accounting import is_name, is_stand_in, stand_in
from xce.domain.engine.calls import GiveBackCall, Step, Steps
from xce.domain.engine.commands import (
    CloseOrphan,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    ExtendGrant,
    LoseGrant,
    LoseInstance,
    LosePart,
    RecordStatus,
    RefuseRequest,
    ReportOrphan,
    ReturnOrphan,
)
from xce.domain.engine.polling import DEFAULTS, is_unknown, machine_of, own_part, record_status
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.lifecycle import LifecycleSettings, OrphanRule
from xce.domain.formats.provider import Kind
from xce.domain.ports import (
    GrantReport,
    Holding,
    IdSource,
    MachineReport,
    MachineResult,
    RequestStatus,
    StatusAnswer,
)
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.orphan import OrphanKind

#: Listings that must agree before something unowned is reported, or something missing is lost.
AGREE: Final = 2
_NO_ORPHANS: Final[Mapping[str, str | None]] = {}


@dataclass(frozen=True, slots=True)
class Sightings:
    """In how many listings in a row something was unowned, or missing; by the provider's id.

    Attributes:
        first: since when something is seen that is unowned.
        less: in how many listings in a row the provider had less of a grant than we count.
        more: what people should know of grants of which it has more; we count ours.
        held: why the last listing's losses were not believed yet; None: they were, or there were none.
    """

    unowned: Mapping[str, int] = field(default_factory=dict[str, int])
    first: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    missing: Mapping[str, int] = field(default_factory=dict[str, int])
    less: Mapping[str, int] = field(default_factory=dict[str, int])
    more: tuple[str, ...] = ()
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything one provider has for us, and when it was asked for."""

    provider: str
    holdings: tuple[Holding, ...]
    asked_at: datetime


def reconcile(
    listing: Listing,
    inventory: Inventory,
    sightings: Sightings,
    ids: IdSource,
    *,
    lifecycle: LifecycleSettings = DEFAULTS,
    orphans: Mapping[str, str | None] = _NO_ORPHANS,
    asking: Collection[str] = frozenset(),
) -> tuple[Steps, Sightings]:
    """Return what follows from a listing, and what to remember of it.

    Args:
        listing: what the provider has.
        inventory: what we have of this provider, read before the listing was asked for.
        sightings: what the listing before left.
        ids: for returns of orphans.
        lifecycle: what the site has set.
        orphans: those that are open, by the provider's id: the id of the return under way, None: none is.
        asking: tags of asks that this process is at.
    """
    listing = _with_stand_ins(listing)
    books = _Books.of(listing, inventory)
    owned = books.owned
    unowned = [
        one for one in listing.holdings if one.theirs not in owned or books.is_of_another(one)
    ]
    adopted, strange = _by_tag(unowned, books.requests)
    seen = {
        one.theirs: sightings.unowned.get(one.theirs, 0) + 1
        for one in (*strange, *(one for ones in adopted.values() for one in ones))
    }
    first = {theirs: sightings.first.get(theirs, listing.asked_at) for theirs in seen}
    missing = {
        theirs: sightings.missing.get(theirs, 0) + 1 for theirs in books.missing(listing, lifecycle)
    }
    surprising = missing.keys() - books.over(listing.asked_at)
    held = _mass_loss(
        {theirs: missing[theirs] for theirs in surprising}, len(books.owned), lifecycle
    )
    over = books.over(listing.asked_at)
    gone = [
        theirs
        for theirs, times in missing.items()
        if theirs in over or (times >= AGREE and held is None)
    ]
    short = books.short(listing, lifecycle)
    less = {theirs: sightings.less.get(theirs, 0) + 1 for theirs in short}
    steps = (
        *_adopt(adopted, books.requests),
        *_look_up(books.requests.values(), adopted, strange, listing, lifecycle, asking),
        *_report(strange, seen, first, listing.provider, orphans, lifecycle, ids),
        *_lose(gone, books, over),
        *_lose_parts(less, short, books),
        *_extend(listing, books),
        *_closed(listing, orphans, books.requests, seen),
    )
    return steps, Sightings(seen, first, missing, less, tuple(books.more(listing)), held)


def _with_stand_ins(listing: Listing) -> Listing:
    """Return a listing in which every id is one that a record can hold."""
    if all(is_name(f"{listing.provider}/{one.theirs}") for one in listing.holdings):
        return listing
    holdings = tuple(
        one
        if is_name(one.theirs) and is_name(f"{listing.provider}/{one.theirs}")
        else replace(one, theirs=stand_in(one.theirs), name="")
        for one in listing.holdings
    )
    return replace(listing, holdings=holdings)


# ----------------------------------------------------------------------- books
@dataclass(frozen=True, slots=True)
class _Books:
    """What we have of one provider, by the provider's ids."""

    instances: dict[str, InstanceEntry]
    grants: dict[str, GrantEntry]
    requests: dict[str, RequestEntry]
    listed: frozenset[str]

    @classmethod
    def of(cls, listing: Listing, inventory: Inventory) -> "_Books":
        name = listing.provider
        mine = [e for e in inventory.instances if e.provider == name]
        # Of a machine that is there again, while its earlier return is not confirmed, the listing is about the newer one.
        mine.sort(key=lambda e: (e.state is not InstanceState.RETURNING, e.granted_at))
        return cls(
            {machine_of(e): e for e in mine},
            {own_part(e.id, name): e for e in inventory.grants if e.provider == name},
            {e.id: e for e in inventory.requests if e.provider == name},
            frozenset(one.theirs for one in listing.holdings),
        )

    def is_of_another(self, one: Holding) -> bool:
        """Return whether a machine is there again, for another request, while our return of it is not confirmed."""
        entry = self.instances.get(one.theirs)
        return (
            entry is not None
            and entry.state is InstanceState.RETURNING
            and one.tag is not None
            and one.tag != entry.request
            and one.tag in self.requests
        )

    @property
    def owned(self) -> Collection[str]:
        return {**self.instances, **self.grants}.keys()

    def short(self, listing: Listing, lifecycle: LifecycleSettings) -> dict[str, int]:
        """Return how much less is listed of grants than is ours and not going back, of those old enough to be listed rightly."""
        young = listing.asked_at - lifecycle.lookup_settle
        found: dict[str, int] = {}
        for one in listing.holdings:
            entry = self.grants.get(one.theirs)
            if entry is not None and entry.granted_at <= young:
                missing = entry.amount - entry.returned - entry.returning - one.amount
                if missing > 0:
                    found[one.theirs] = missing
        return found

    def more(self, listing: Listing) -> Iterator[str]:
        """Yield what is listed of grants beyond all that we count."""
        for one in listing.holdings:
            entry = self.grants.get(one.theirs)
            if entry is not None and one.amount > entry.amount - entry.returned:
                left = entry.amount - entry.returned
                yield f"{one.amount} of grant {one.theirs} are listed, and {left} are known"

    def over(self, at: datetime) -> set[str]:
        """Return the grants whose terms had ended by a time: that these are not listed is no surprise."""
        return {
            theirs
            for theirs, entry in self.grants.items()
            if entry.expires_at is not None and entry.expires_at <= at
        }

    def missing(self, listing: Listing, lifecycle: LifecycleSettings) -> list[str]:
        """Return what we have and the listing has not, old enough to be in it."""
        young = listing.asked_at - lifecycle.lookup_settle
        since = {
            **{theirs: entry.granted_at for theirs, entry in self.instances.items()},
            **{theirs: entry.granted_at for theirs, entry in self.grants.items()},
        }
        return [theirs for theirs, at in since.items() if theirs not in self.listed and at <= young]


def _by_tag(
    unowned: list[Holding], requests: Mapping[str, RequestEntry]
) -> tuple[dict[str, list[Holding]], list[Holding]]:
    """Return what carries the tag of a request that is known, by request, and the others."""
    adopted: dict[str, list[Holding]] = {}
    strange: list[Holding] = []
    for one in unowned:
        request = requests.get(one.tag or "")
        if request is not None and request.kind is one.kind and not is_stand_in(one.theirs):
            adopted.setdefault(request.id, []).append(one)
        else:
            strange.append(one)
    return adopted, strange


def _mass_loss(missing: Mapping[str, int], owned: int, lifecycle: LifecycleSettings) -> str | None:
    few = max(lifecycle.mass_loss_least - 1, int(lifecycle.mass_loss_share * owned))
    repeated = sum(1 for times in missing.values() if times >= lifecycle.mass_loss_listings)
    if len(missing) <= few or repeated == len(missing):
        return None
    return f"{len(missing)} of {owned} are missing at once: asked again before it is believed"


# -------------------------------------------------------------------- adoption
def _adopt(
    adopted: Mapping[str, list[Holding]], requests: Mapping[str, RequestEntry]
) -> Iterator[Step]:
    """Take over what carries a tag of ours, whatever has become of its request."""
    for request, found in adopted.items():
        if not is_unknown(requests[request]):
            yield from record_status(request, _brought(found, RequestStatus.RUNNING))


def _look_up(
    requests: Collection[RequestEntry],
    adopted: Mapping[str, list[Holding]],
    strange: list[Holding],
    listing: Listing,
    lifecycle: LifecycleSettings,
    asking: Collection[str],
) -> Iterator[Step]:
    """Say what asks without an outcome have done, as far as the listing shows it."""
    for entry in requests:
        if not is_unknown(entry) or entry.id in asking:
            continue
        found = adopted.get(entry.id, [])
        settled = listing.asked_at - entry.asked_at >= lifecycle.lookup_settle
        amount = sum(one.amount for one in found) + entry.granted
        if amount >= entry.amount:
            yield from record_status(entry.id, _brought(found, RequestStatus.COMPLETE))
        elif not settled:
            if found:
                yield from record_status(entry.id, _brought(found, RequestStatus.RUNNING))
        elif amount:
            why = f"looked up: {amount} of {entry.amount} carry its tag"
            ended = _brought(found, RequestStatus.COMPLETE_WITH_ERROR, why)
            yield from record_status(entry.id, ended)
        elif not any(_may_be_of(one, entry, lifecycle) for one in strange):
            why = "looked up: nothing at the provider carries its tag, so nothing was made"
            yield Step((RefuseRequest(entry.id, why),))


def _may_be_of(one: Holding, entry: RequestEntry, lifecycle: LifecycleSettings) -> bool:
    """Return whether something that says nothing of its request may have been made by this one: then nothing is concluded.

    Clocks differ, and many providers tell whole seconds: it may seem to be older than the ask.
    """
    if one.tag is not None or one.kind is not entry.kind:
        return False
    if one.item is not None and one.item not in (entry.template, entry.resource):
        return False
    return one.launched_at is None or one.launched_at >= entry.asked_at - lifecycle.clocks_apart


def _brought(found: list[Holding], status: RequestStatus, why: str = "") -> StatusAnswer:
    machines = tuple(
        MachineReport(
            one.theirs,
            one.name if is_name(one.name) else one.theirs,
            MachineResult.SUCCEED,
            one.launched_at,
        )
        for one in found
        if one.kind is Kind.HOST
    )
    grants = tuple(
        GrantReport(one.theirs, one.item, one.amount, one.hold_until, one.expires_at)
        for one in found
        if one.kind is Kind.COUNTABLE and one.item is not None
    )
    return StatusAnswer(status, machines, grants, why)


# --------------------------------------------------------------------- orphans
def _report(
    strange: list[Holding],
    seen: Mapping[str, int],
    first: Mapping[str, datetime],
    provider: str,
    orphans: Mapping[str, str | None],
    lifecycle: LifecycleSettings,
    ids: IdSource,
) -> Iterator[Step]:
    """Report what no record owns, found twice; take it over if a request that is over has its tag; give it back if that is set."""
    for one in strange:
        if seen[one.theirs] < AGREE:
            continue
        report = _orphan(provider, one, first[one.theirs])
        if one.theirs not in orphans:
            readable = not is_stand_in(one.theirs)
            if readable and one.tag is not None and is_name(one.tag) and seen[one.theirs] == AGREE:
                late = RecordStatus(one.tag, _brought([one], RequestStatus.RUNNING))
                yield Step((late,), otherwise=(report,))
            else:
                yield Step((report,))
        elif (
            lifecycle.orphans is OrphanRule.RETURN
            and one.kind is Kind.HOST
            and not is_stand_in(one.theirs)
        ):
            return_id = orphans[one.theirs]
            commands: tuple[Command, ...] = ()
            if return_id is None:
                return_id = ids.next_id("B")
                why = "no record of ours owns it"
                commands = (ReturnOrphan(provider, one.theirs, return_id, why),)
            names = ((one.theirs, one.name),) if one.name else ()
            call = GiveBackCall(provider, return_id, orphans=(one.theirs,), names=names)
            yield Step(commands, calls=(call,))


def _orphan(provider: str, one: Holding, first_seen: datetime) -> ReportOrphan:
    tag = one.tag if one.tag is not None and is_name(one.tag) else None
    what = "a machine" if one.kind is Kind.HOST else f"{one.amount} of {one.item}"
    why = f"the provider has {what} that no live record of ours owns"
    item = one.item if one.item is not None and is_name(one.item) else None
    since = first_seen if one.launched_at is None else one.launched_at
    return ReportOrphan(
        provider, one.theirs, OrphanKind.UNKNOWN_TO_US, tag, why, one.kind, item, one.amount, since
    )


def _closed(
    listing: Listing,
    orphans: Mapping[str, str | None],
    requests: Mapping[str, RequestEntry],
    seen: Mapping[str, int],
) -> Iterator[Step]:
    """Close the orphans that are not there any more.

    None is closed while something is there that is not reported yet: an ask may have made it, and counts until it does itself.
    """
    if any(times < AGREE for times in seen.values()):
        return
    listed = {one.theirs for one in listing.holdings}
    tags = {one.tag for one in listing.holdings}
    for theirs in orphans:
        if theirs in listed or theirs in tags:
            continue
        open_request = requests.get(theirs)
        if open_request is None or not is_unknown(open_request):
            yield Step((CloseOrphan(listing.provider, theirs, "the provider does not list it"),))


# ------------------------------------------------------------------------ gone
def _lose(gone: list[str], books: _Books, over: Collection[str]) -> Iterator[Step]:
    why = "the provider does not list it any more"
    for theirs in gone:
        instance, grant = books.instances.get(theirs), books.grants.get(theirs)
        if instance is not None:
            returning = instance.state is InstanceState.RETURNING
            if returning and instance.return_id is not None:
                yield Step((ConfirmReturn(instance.return_id, instance.id),))
            else:
                yield Step((LoseInstance(instance.id, why),))
        elif grant is not None:
            if grant.returning and grant.return_id is not None:
                yield Step((ConfirmGrantReturn(grant.return_id, grant.id),))
            if grant.amount > grant.returned + grant.returning:
                ended = "its term has ended" if theirs in over else why
                yield Step((LoseGrant(grant.id, ended),))


def _lose_parts(less: Mapping[str, int], short: Mapping[str, int], books: _Books) -> Iterator[Step]:
    """Count the lower amount, once two listings have said so."""
    for theirs, missing in short.items():
        if less[theirs] >= AGREE:
            why = f"the provider has {missing} less of it lent than was counted"
            yield Step((LosePart(books.grants[theirs].id, missing, why),))


def _extend(listing: Listing, books: _Books) -> Iterator[Step]:
    """Record the ends that lenders have put off, or set, and of which nobody heard."""
    for one in listing.holdings:
        grant = books.grants.get(one.theirs)
        if grant is None or one.expires_at is None:
            continue
        if grant.expires_at is None or one.expires_at > grant.expires_at:
            yield Step((ExtendGrant(grant.id, one.expires_at),))


def forget(sightings: Sightings) -> Sightings:
    """Return what is left of sightings after a listing that failed: agreement begins anew."""
    return replace(sightings, unowned={}, first={}, missing={}, less={}, more=())
