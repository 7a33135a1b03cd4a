"""What a batch system is to do, as a document: ``xce.scheduler-orders/1``, for schedulers in any language."""

from typing import Literal

from pydantic import Field

from xce.domain.formats.base import Count, Format, Name, Time
from xce.domain.formats.session_result import Allocation
from xce.domain.formats.snapshot import Attribute
from xce.domain.ports import SchedulerOrders


class Expected(Format):
    """A host on its way."""

    instance: Name
    machine: Name | None
    name: Name | None
    template: Name
    since: Time
    attributes: dict[Name, Attribute]
    provides: dict[Name, Count]


class OrdersDocument(Format):
    """Wishes for now; they replace those of the document before. Doing one twice does no harm."""

    format: Literal["xce.scheduler-orders/1"] = "xce.scheduler-orders/1"
    position: Count = Field(description="log position of the session")
    close: tuple[Name, ...] = Field(
        default=(), description="hosts that take no new work; show their state as draining then"
    )
    open: tuple[Name, ...] = Field(
        default=(), description="hosts that were draining and take work again"
    )
    remove: tuple[Name, ...] = Field(default=(), description="hosts whose machines are gone")
    requeue: tuple[Name, ...] = Field(
        default=(), description="jobs that go back into the queue: their host's deadline has passed"
    )
    start: tuple[Allocation, ...] = Field(
        default=(), description="jobs that start now, where you let the session place them"
    )
    expected: tuple[Expected, ...] = Field(default=(), description="hosts on their way")


def document_of(orders: SchedulerOrders) -> OrdersDocument:
    """Return orders as a document."""
    return OrdersDocument(
        position=orders.position,
        close=orders.close,
        open=orders.open,
        remove=orders.remove,
        requeue=orders.requeue,
        start=orders.start,
        expected=tuple(
            Expected(
                instance=one.instance,
                machine=one.machine,
                name=one.name,
                template=one.template,
                since=one.since,
                attributes=dict(one.attributes),
                provides=dict(one.provides),
            )
            for one in orders.expected
        ),
    )
