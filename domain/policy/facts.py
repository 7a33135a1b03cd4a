"""What the entries of the inventory stand for: what exists, what is asked, what is lent to us."""

from typing import Final

from xce.domain.formats.inventory import GrantEntry, InstanceEntry, RequestEntry
from xce.domain.provisioning import grant as grants
from xce.domain.provisioning import instance as instances
from xce.domain.provisioning import request as requests
from xce.domain.provisioning.instance import InstanceState

#: An instance in one of these is there to be used, or will be.
USABLE: Final = frozenset({InstanceState.STARTING, InstanceState.JOINED, InstanceState.DRAINING})


def is_open(request: RequestEntry) -> bool:
    """Return whether the request may still bring something."""
    return request.state in requests.OPEN


def open_amount(request: RequestEntry) -> int:
    """Return what is asked and not answered: nothing once the request is closed, nor for a surplus."""
    if not is_open(request):
        return 0
    return max(0, request.amount - request.granted - request.failed)


def exists(instance: InstanceEntry) -> bool:
    """Return whether the instance exists at its provider: errored, never joined and returning ones do."""
    return instance.state in instances.LIVE


def held(grant: GrantEntry) -> int:
    """Return what the lender has lent and not got back for certain: an amount on its way back counts."""
    return max(0, grant.amount - grant.returned) if grant.state in grants.LIVE else 0


def usable(grant: GrantEntry) -> int:
    """Return what of the grant can be used: not what is on its way back."""
    return max(0, held(grant) - grant.returning)
