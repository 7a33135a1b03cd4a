"""What ``xcecli`` does: each is one order, durable when the command returns."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import completion
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import show
from xce.domain.engine.commands import DismissOrphan, GiveUpRequest
from xce.domain.errors import InputError, NotFoundError, RejectedError
from xce.domain.formats.rest import DrainWish, HostAnswer, OrderAnswer
from xce.domain.provisioning.drain import AtDeadline
from xce.domain.provisioning.instance import InstanceState
from xce.domain.values import read_duration

if TYPE_CHECKING:
    from xce.adapters.client import Client

WhyOption = Annotated[str, typer.Option("--why", help="The reason, for those who read the log.")]
DeadlineOption = Annotated[
    str | None, typer.Option("--deadline", metavar="TIME", help="From now, such as 30min.")
]
PolicyOption = Annotated[
    AtDeadline,
    typer.Option("--at-deadline", help="What happens to jobs that still run then."),
]


def _do(
    context: typer.Context,
    order: Callable[["Client"], OrderAnswer],
    done: str,
    already: str,
    *,
    as_json: bool,
) -> None:
    with connection_of(context).client() as client:
        answer = order(client)
    if as_json:
        terminal.write_json(answer.to_json())
    else:
        show(done if answer.changed else already)


def _do_host(
    context: typer.Context,
    order: Callable[["Client"], HostAnswer],
    host: str,
    done: str,
    already: str,
    *,
    as_json: bool,
) -> None:
    with connection_of(context).client() as client:
        answer = order(client)
    if as_json:
        terminal.write_json(answer.to_json())
        return
    show(f"host {host}: {done if answer.changed else already}")
    if not answer.confirmed:
        show(
            f"nobody has confirmed that the cluster has a host {host}: no snapshot of a scheduler has told of it"
        )


def _length(text: str, option: str) -> timedelta:
    try:
        length = read_duration(text)
    except ValueError as error:
        raise InputError.of(option, str(error)) from None
    if length <= timedelta(0):
        raise InputError.of(option, "wanted a time above 0")
    return length


def _wish(deadline: str | None, at_deadline: AtDeadline) -> DrainWish:
    if deadline is None:
        if at_deadline is not AtDeadline.WAIT:
            raise InputError.of("--at-deadline", "needs --deadline")
        return DrainWish()
    at = datetime.now(UTC) + _length(deadline, "--deadline")
    return DrainWish(deadline=at.replace(microsecond=0), at_deadline=at_deadline)


def drain(
    context: typer.Context,
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST", autocompletion=completion.HOSTS, help="Its name in the cluster."
        ),
    ],
    why: WhyOption = "drained by hand",
    deadline: DeadlineOption = None,
    at_deadline: PolicyOption = AtDeadline.WAIT,
    as_json: terminal.JsonOption = False,
) -> None:
    """Close a host to new work; a provisioned one goes back when it is empty, an own one stays closed."""
    wish = _wish(deadline, at_deadline)
    _do_host(
        context,
        lambda client: client.drain(host, why, wish),
        host,
        "asked: takes no new work once the scheduler has obeyed; xcecli drains shows how far it is",
        "it was being drained already; xcecli drains shows how far it is",
        as_json=as_json,
    )


def open_host(
    context: typer.Context,
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST", autocompletion=completion.DRAINED, help="Its name in the cluster."
        ),
    ],
    why: WhyOption = "opened by hand",
    as_json: terminal.JsonOption = False,
) -> None:
    """Let a host that was drained take work again."""
    _do_host(
        context,
        lambda client: client.open_host(host, why),
        host,
        "asked: takes work again once the scheduler has obeyed",
        "it was open already",
        as_json=as_json,
    )


def give_back(
    context: typer.Context,
    instance: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE",
            autocompletion=completion.INSTANCES,
            help="As xcecli instances names it.",
        ),
    ],
    why: WhyOption = "returned by hand",
    deadline: DeadlineOption = None,
    at_deadline: PolicyOption = AtDeadline.WAIT,
    as_json: terminal.JsonOption = False,
) -> None:
    """Give a host back to its provider: it takes no new work, and goes when its jobs have ended."""
    wish = _wish(deadline, at_deadline)
    with connection_of(context).client() as client:
        entry = client.instance(instance)
        if entry.host is None or entry.state not in (InstanceState.JOINED, InstanceState.DRAINING):
            raise RejectedError(_cannot_return(instance, entry.state))
        answer = client.drain(entry.host, why, wish)
    if as_json:
        terminal.write_json(answer.to_json())
    else:
        show(
            f"host {entry.host}: asked: takes no new work once the scheduler has obeyed, and goes back when it is empty"
        )


def _cannot_return(instance: str, state: InstanceState) -> str:
    match state:
        case InstanceState.STARTING:
            return (
                f"instance {instance} has not joined yet; it goes back by itself if it never does"
            )
        case InstanceState.RETURNING | InstanceState.NEVER_JOINED:
            return f"instance {instance} is {state}: its provisioner gives it back"
        case _:
            return f"instance {instance} is {state}"


def pause(
    context: typer.Context,
    provider: Annotated[
        str,
        typer.Argument(metavar="PROVIDER", autocompletion=completion.PROVIDERS, help="Its name."),
    ],
    item: Annotated[
        str | None,
        typer.Option(
            "--item",
            autocompletion=completion.ITEMS,
            help="One template or resource; else all of it.",
        ),
    ] = None,
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long.")] = "1h",
    why: WhyOption = "paused by hand",
    as_json: terminal.JsonOption = False,
) -> None:
    """Ask nothing of a provider for a while; what it has lent stays."""
    until = (datetime.now(UTC) + _length(for_, "--for")).replace(microsecond=0)

    def paused(client: "Client") -> OrderAnswer:
        if item is not None:
            _look_whether_offered(client, provider, item)
        return client.pause(provider, until, why, item)

    _do(
        context,
        paused,
        f"nothing is asked of {f'{item} at ' if item else ''}{provider} until {until:%Y-%m-%d %H:%M:%S UTC}",
        "it was paused until then already",
        as_json=as_json,
    )


def _look_whether_offered(client: "Client", provider: str, item: str) -> None:
    """Stop where the provider says what it offers, and the item is not among it: a pause of it would hold nothing up."""
    said = next((one for one in client.providers() if one.name == provider), None)
    if said is None:
        return  # the controller says that there is none
    offers = said.description
    names = [one.template_id for one in offers.templates]
    names += [one.name for one in offers.resources]
    if names and item not in names:
        raise NotFoundError(f"{provider} offers no {item}; it offers {', '.join(names)}")


def resume(
    context: typer.Context,
    provider: Annotated[
        str,
        typer.Argument(metavar="PROVIDER", autocompletion=completion.PROVIDERS, help="Its name."),
    ],
    item: Annotated[
        str | None,
        typer.Option(
            "--item",
            autocompletion=completion.ITEMS,
            help="The pause of one template or resource; else only the pause of the whole provider ends.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """End a pause before its time."""
    _do(
        context,
        lambda client: client.resume(provider, item),
        f"{f'{item} at ' if item else ''}{provider} may be asked again",
        "it was not paused"
        if item
        else "it was not paused as a whole; --item ends the pause of one template or resource",
        as_json=as_json,
    )


def freeze(
    context: typer.Context, why: WhyOption = "frozen by hand", as_json: terminal.JsonOption = False
) -> None:
    """Ask, drain and give back nothing new, anywhere, until it is unfrozen; what is under way is followed to its end."""
    _do(
        context,
        lambda client: client.freeze(why),
        "frozen: nothing new is asked, drained or given back",
        "it was frozen already",
        as_json=as_json,
    )


def unfreeze(
    context: typer.Context,
    why: WhyOption = "unfrozen by hand",
    as_json: terminal.JsonOption = False,
) -> None:
    """Let the policy act again."""
    _do(
        context,
        lambda client: client.unfreeze(why),
        "the policy acts again",
        "it was not frozen",
        as_json=as_json,
    )


def dismiss(
    context: typer.Context,
    orphan: Annotated[
        str,
        typer.Argument(
            metavar="ORPHAN", autocompletion=completion.ORPHANS, help="As xcecli orphans names it."
        ),
    ],
    why: WhyOption = "none of ours",
    as_json: terminal.JsonOption = False,
) -> None:
    """Say that an orphan is none of ours; it is not reported again."""
    with connection_of(context).client() as client:
        found = next((one for one in client.orphans() if one.id == orphan), None)
        if found is None:
            raise RejectedError(f"there is no open orphan {orphan}")
        answer = client.command(DismissOrphan(found.provider, found.theirs, why))
    if as_json:
        terminal.write_json(answer.to_json())
    else:
        show(f"{orphan} is not reported again")


def cancel(
    context: typer.Context,
    request: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST",
            autocompletion=completion.REQUESTS,
            help="As xcecli requests names it.",
        ),
    ],
    why: WhyOption = "given up by hand",
    as_json: terminal.JsonOption = False,
) -> None:
    """Give an ask up: what has not come is not counted on any more; what comes late is still ours."""
    _do(
        context,
        lambda client: client.command(GiveUpRequest(request, why)),
        f"request {request} is given up",
        f"request {request} was over already",
        as_json=as_json,
    )
