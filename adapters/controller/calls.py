"""One call of the REST interface: what came in, what goes out, and what all endpoints share: pages, tags, keys."""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from xce.adapters.controller.live import LiveController
from xce.adapters.controller.problems import RefusedCallError
from xce.adapters.controller.standby_reads import ALLOW, STANDBY_HEADER, StandbyReads
from xce.adapters.controller.turn import Turn
from xce.adapters.controller.views import Views
from xce.domain.engine.authorisation import Action
from xce.domain.engine.messages import Caller
from xce.domain.errors import InputError
from xce.domain.events.recorded import Recorded
from xce.domain.formats.base import Format, Name, problems_of
from xce.domain.formats.controller_config import ControllerConfig
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.observation import Observation
from xce.domain.formats.rest import PAGE_DEFAULT, PAGE_MAX
from xce.domain.formats.simulated_provider import Zone
from xce.domain.formats.standing import StandingReport
from xce.domain.ports import EventLog
from xce.domain.values import natural_key

T = TypeVar("T")

#: A report of a provisioner, or of a scheduler without a session, that is older says nothing any more.
STANDING_LIVES_S: Final = 300.0
#: Time zones of one call.
ZONES_MAX: Final = 16
#: Longest idempotency key.
KEY_MAX: Final = 128
_KEY = re.compile(r"[!-~]{1,128}", re.ASCII)
_TAG = re.compile(r'"(\d{1,15})"', re.ASCII)
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)
_ZONES: Final[TypeAdapter[tuple[str, ...]]] = TypeAdapter(tuple[Zone, ...])


@dataclass(slots=True)
class Board:
    """What was posted and the controller does not compute with: the newest snapshot, as text, and observations."""

    snapshot: str | None = None
    snapshot_position: int = 0
    #: The hosts of that snapshot, by name; None: none was posted.
    hosts: frozenset[str] | None = None
    #: The newest report of each provisioner, and when it came, on the monotonic clock.
    standing: dict[str, tuple[StandingReport, float]] = field(
        default_factory=dict[str, tuple[StandingReport, float]]
    )
    #: Why each scheduler can hold no session, and when it said so; gone once it has published one.
    no_session: dict[str, tuple[NoSession, float]] = field(
        default_factory=dict[str, tuple[NoSession, float]]
    )
    #: The newest look of each source at each resource.
    observations: dict[tuple[str, str], Observation] = field(
        default_factory=dict[tuple[str, str], Observation]
    )

    def standing_at(self, elapsed_s: float) -> dict[str, StandingReport]:
        """Return the reports of provisioners that are not too old."""
        kept = dict(self.standing)
        return {by: one for by, (one, at_s) in kept.items() if elapsed_s - at_s < STANDING_LIVES_S}

    def no_session_at(self, elapsed_s: float) -> dict[str, NoSession]:
        """Return why schedulers can hold no session, as those said that are not too old."""
        kept = dict(self.no_session)
        return {by: one for by, (one, at_s) in kept.items() if elapsed_s - at_s < STANDING_LIVES_S}


class Reads(Protocol):
    """Who answers what is in the log."""

    @property
    def log(self) -> EventLog:
        """The log itself."""
        ...

    def read(self, question: Callable[[Views], T]) -> T:
        """Return what a question makes of the views."""
        ...

    def events_after(self, position: int, limit: int) -> list[Recorded]:
        """Return the next events behind a position."""
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """What every endpoint works on."""

    turn: Turn
    config: ControllerConfig
    board: Board = field(default_factory=Board)

    @property
    def live(self) -> LiveController:
        """The controller at work.

        Raises:
            NotPrimaryError: this process stands by.
        """
        return self.turn.serving()


@dataclass(frozen=True, slots=True)
class Call:
    """One call, of a known caller, with a body of a bounded size."""

    service: Service
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    #: Answers in place of the primary, for a caller who takes what may be behind.
    standby: StandbyReads | None = None

    @property
    def reads(self) -> Reads:
        """Who answers what is in the log: the primary, or this controller that stands by.

        Raises:
            NotPrimaryError: this process stands by, and the caller wants the primary.
        """
        return self.service.live if self.standby is None else self.standby

    @property
    def live(self) -> LiveController:
        """The controller at work.

        Raises:
            NotPrimaryError: this process stands by.
        """
        return self.service.live

    def name(self, parameter: str) -> str:
        """Return a name from the path.

        Raises:
            InputError: it is too long, or has control characters.
        """
        try:
            return _NAME.validate_python(self.path[parameter])
        except ValidationError as error:
            raise InputError(f"the path, {parameter}", problems_of(error)) from None

    def key(self) -> str | None:
        """Return the idempotency key.

        Raises:
            RefusedCallError: it is none.
        """
        text = self.headers.get("idempotency-key")
        if text is not None and not _KEY.fullmatch(text):
            raise RefusedCallError(
                f"Idempotency-Key: wanted 1 to {KEY_MAX} printable ASCII characters without blanks"
            )
        return text

    def version(self) -> int | None:
        """Return the version that the caller has read; None: it does not matter.

        Raises:
            RefusedCallError: the header is not one of our tags.
        """
        text = self.headers.get("if-match")
        if text is None or text.strip() == "*":
            return None
        found = _TAG.fullmatch(text.strip())
        if found is None:
            raise RefusedCallError('If-Match: wanted an ETag that was given before, such as "3"')
        return int(found[1])

    def has(self, etag: str) -> bool:
        """Return whether the caller has this answer already, by ``If-None-Match``."""
        given = self.headers.get("if-none-match", "")
        return etag in [one.strip().removeprefix("W/") for one in given.split(",")]

    def number(self, parameter: str, default: int, largest: int) -> int:
        """Return a whole number from the query.

        Raises:
            RefusedCallError: it is none, or too large.
        """
        text = self.query.get(parameter)
        if text is None:
            return default
        if not _NUMBER.fullmatch(text) or int(text) > largest:
            raise RefusedCallError(f"{parameter}: wanted a whole number up to {largest}")
        return int(text)

    def flag(self, parameter: str, default: bool) -> bool:
        """Return a flag from the query.

        Raises:
            RefusedCallError: it is neither true nor false.
        """
        text = self.query.get(parameter)
        if text not in (None, "true", "false"):
            raise RefusedCallError(f"{parameter}: wanted true or false")
        return default if text is None else text == "true"

    def zones(self, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the time zones of the query, each once.

        Raises:
            RefusedCallError: one is none, or they are too many.
        """
        text = self.query.get("zones")
        if not text:
            return default
        names = tuple(dict.fromkeys(text.split(",")))
        if len(names) > ZONES_MAX:
            raise RefusedCallError(f"zones: wanted at most {ZONES_MAX}")
        try:
            return _ZONES.validate_python(names)
        except ValidationError as error:
            raise RefusedCallError(f"zones: {problems_of(error)[0].message}") from None

    def limit(self) -> int:
        """Return how many entries a page may have.

        Raises:
            RefusedCallError: below 1, or above the largest page.
        """
        limit = self.number("limit", PAGE_DEFAULT, PAGE_MAX)
        if limit < 1:
            raise RefusedCallError(f"limit: wanted 1 to {PAGE_MAX}")
        return limit

    def page(
        self, entries: Sequence[T], name: Callable[[T], str]
    ) -> tuple[tuple[T, ...], str | None]:
        """Return one page of entries by name, and the cursor of the next one; entries may come and go between pages.

        Raises:
            RefusedCallError: the cursor or the limit is none.
        """
        limit = self.limit()
        ordered = sorted(entries, key=lambda entry: natural_key(name(entry)))
        if (cursor := self.query.get("cursor")) is not None:
            after = natural_key(_decoded(cursor))
            ordered = [entry for entry in ordered if natural_key(name(entry)) > after]
        items = tuple(ordered[:limit])
        more = len(ordered) > limit
        return items, _encoded(name(items[-1])) if more else None


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise RefusedCallError("cursor: wanted one that was given as next") from None


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes out: a document, or a text that is one."""

    document: Format | None = None
    text: str | None = None
    status: int = 200
    etag: str | None = None

    def body(self) -> bytes:
        """Return the bytes."""
        if self.text is not None:
            return self.text.encode()
        return b"" if self.document is None else self.document.to_json().encode()


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path, the query or the headers."""

    name: str
    where: str
    description: str
    schema: Mapping[str, object]
    required: bool = False


def _text(longest: int = 256) -> Mapping[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": longest}


LIMIT: Final = Parameter(
    "limit",
    "query",
    "entries of one page",
    {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
)
CURSOR: Final = Parameter("cursor", "query", "`next` of the page before", _text(1024))
IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    "header",
    "the same key again gives the same answer and does nothing; of the caller's choice, such as a UUID",
    {"type": "string", "pattern": "^[!-~]{1,128}$"},
)
IF_MATCH: Final = Parameter(
    "If-Match", "header", "ETag that was read: refused with 412 if it has changed since", _text(20)
)

IF_NONE_MATCH: Final = Parameter(
    "If-None-Match",
    "header",
    "ETag that was given before: 304 if the answer is the same",
    _text(200),
)


STANDBY: Final = Parameter(
    STANDBY_HEADER.title().replace("Xce", "XCE"),
    "header",
    "allow: a controller that stands by may answer, from what it has read of the log",
    {"type": "string", "enum": [ALLOW]},
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row of the interface.

    Attributes:
        action: what the caller's role must allow; for commands the state machine looks again. None: each command of an order by itself.
        open: answered without a token.
        large: the body may be as large as a snapshot.
        anywhere: answered by a controller that stands by, too.
        followed: of the log alone, so that one that stands by can answer it to a caller who takes what may be behind.
        examples: path parameters that exist nowhere, for tests and docs.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    answer: type[Format] | None
    action: Action | None = None
    body: type[Format] | None = None
    parameters: tuple[Parameter, ...] = ()
    open: bool = False
    large: bool = False
    stream: bool = False
    anywhere: bool = False
    followed: bool = False

    @property
    def conditional(self) -> bool:
        """Whether the answer is a document that is left out for a caller who has it; single things are tagged by their version."""
        return self.method == "GET" and self.answer is not None and not self.open

    @property
    def plain_path(self) -> str:
        """The path as OpenAPI writes it."""
        return self.path.replace(":path}", "}")

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names in the path."""
        return tuple(re.findall(r"\{(\w+)", self.path))
