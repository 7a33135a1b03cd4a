"""The frame of a provider whose scripts are runs of one program: input, answer and refusal, and a state on disk for one call at a time.

Such a program starts for each call, so this imports little.
"""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Message: TypeAlias = dict[str, Any]
ProviderT = TypeVar("ProviderT")
StateT = TypeVar("StateT", bound="DataclassInstance")


class RefusalError(Exception):
    """The call is refused; the message says why, and with it when to call again may help."""

    def __init__(self, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


def run(
    arguments: Sequence[str],
    scripts: Mapping[str, Callable[[ProviderT, Message], Message]],
    opened: Callable[[], AbstractContextManager[ProviderT]],
    *,
    before: str = "",
) -> int:
    """Run one script, ``SCRIPT -f FILE``, of a provider that is open during the call; return the exit code.

    The answer, or why there is none, goes to standard output. ``before`` names arguments that the program took off before.
    """
    if len(arguments) != 3 or arguments[0] not in scripts or arguments[1] != "-f":
        print(f"wanted: {before}SCRIPT -f FILE", file=sys.stderr)
        return 2
    script, _, file = arguments
    try:
        given = _object(Path(file), "the input")
        with opened() as provider:
            answer = scripts[script](provider, given)
    except RefusalError as error:
        return refuse(error)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return refuse(RefusalError(f"the input is not understood: {error!r}"))
    print(json.dumps(answer))
    return 0


def refuse(error: RefusalError) -> int:
    """Print why there is no answer; return the exit code."""
    said: Message = {"message": str(error)}
    if error.retry_after_s is not None:
        said["retryAfter"] = error.retry_after_s
    print(json.dumps(said))
    return 1


@contextmanager
def kept(
    name: str,
    fresh: Callable[..., StateT],
    made: Callable[[Message, StateT, Callable[[], None]], ProviderT],
) -> Generator[ProviderT]:
    """Give a provider made of its configuration, its state, and how to keep that; only one call at a time has it.

    The configuration is ``NAME.json`` in ``$PRO_CONF_DIR/conf`` or ``$PRO_CONF_DIR``, the state ``NAME.json`` in ``$PRO_DATA_DIR``.
    """
    try:
        folder, data = Path(os.environ["PRO_CONF_DIR"]), Path(os.environ["PRO_DATA_DIR"])
    except KeyError as error:
        raise RefusalError(f"the environment has no {error.args[0]}") from None
    place = data / f"{name}.json"
    try:
        with (data / f"{name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            conf = _object(_configuration(folder, name), "the configuration")
            state = fresh(**_object(place, "the state")) if place.exists() else fresh()
            yield made(conf, state, lambda: _keep(place, state))
    except OSError as error:
        raise RefusalError(str(error)) from None


def _configuration(folder: Path, name: str) -> Path:
    below = folder / "conf" / f"{name}.json"
    return below if below.exists() else folder / f"{name}.json"


def _object(place: Path, what: str) -> Message:
    try:
        found: Any = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RefusalError(f"{what} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise RefusalError(f"{what} is no object")
    return cast("Message", found)


def _keep(place: Path, state: "DataclassInstance") -> None:
    """Write a state so that a power cut leaves the old one or the new one."""
    new = place.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(place)
