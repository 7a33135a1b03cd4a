"""Where the controller is and who asks: from flags, the environment, or a file of one's own."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import typer

from xce.adapters.cli import terminal
from xce.adapters.files import why_unread
from xce.domain.errors import InputError, PermanentError
from xce.domain.formats.base import Format, Name

if TYPE_CHECKING:
    from xce.adapters.client import Client

ADDRESS_DEFAULT: Final = "http://127.0.0.1:8470"
ADDRESS_VARIABLE: Final = "XCE_ADDRESS"
TOKEN_VARIABLE: Final = "XCE_TOKEN"
TOKEN_FILE_VARIABLE: Final = "XCE_TOKEN_FILE"
CONFIG_VARIABLE: Final = "XCECLI_CONFIG"
#: Tries of one call: a person waits.
ATTEMPTS: Final = 3


class OperatorConfig(Format):
    """The file of one's own, in YAML."""

    addresses: tuple[Name, ...] = ()
    token_file: Name | None = None
    ca: Name | None = None
    certificate: Name | None = None
    key: Name | None = None


@dataclass(slots=True)
class Connection:
    """What the flags in front of the command said."""

    addresses: tuple[str, ...] = ()
    token_file: Path | None = None
    ca: Path | None = None
    config: Path | None = None
    local: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    _said: bool = False

    def client(self, *, attempts: int = ATTEMPTS, timeout_s: float = 10.0) -> "Client":
        """Return a client of the controller.

        Raises:
            InputError: a file is missing or wrong, or nobody says who asks.
        """
        try:
            from xce.adapters.client import Client
        except ModuleNotFoundError as error:
            raise PermanentError(
                f"{error.name} is not installed; install xce with its extra: pip install 'xce[controller]'"
            ) from None
        own, folder = self._own()
        certificate = None
        if own.certificate is not None and own.key is not None:
            certificate = (folder / own.certificate, folder / own.key)
        ca = self.ca or (None if own.ca is None else folder / own.ca)
        token = self._token(own, folder)
        if token is None and certificate is None:
            raise InputError.of(
                "token",
                f"who asks? wanted --token-file FILE, {TOKEN_VARIABLE} or {TOKEN_FILE_VARIABLE},"
                " or token_file in the configuration",
            )
        try:
            return Client(
                self._addresses(own),
                token=token,
                ca=ca,
                certificate=certificate,
                timeout_s=timeout_s,
                attempts=attempts,
                on_standby=self._say_who_answers,
            )
        except OSError as error:
            raise InputError.of("certificate", f"certificates cannot be read: {error}") from None

    def _say_who_answers(self, address: str, position: int) -> None:
        """Say once that what is shown may be behind."""
        if not self._said:
            self._said = True
            terminal.err.print(
                f"no primary answers; {address} stands by, and says what the log had up to position {position}",
                soft_wrap=True,
            )

    def _addresses(self, own: OperatorConfig) -> tuple[str, ...]:
        from_environment = tuple(self.environment.get(ADDRESS_VARIABLE, "").split())
        found = self.addresses or from_environment or own.addresses or (ADDRESS_DEFAULT,)
        for address in found:
            if not address.startswith(("http://", "https://")):
                raise InputError.of(
                    "address", f"{address!r} is none; wanted one such as {ADDRESS_DEFAULT}"
                )
        return tuple(address.rstrip("/") for address in found)

    def _token(self, own: OperatorConfig, folder: Path) -> str | None:
        if self.token_file is not None:
            return read_token(self.token_file)
        if (token := self.environment.get(TOKEN_VARIABLE)) is not None:
            return token.strip()
        if (name := self.environment.get(TOKEN_FILE_VARIABLE)) is not None:
            return read_token(Path(name))
        return None if own.token_file is None else read_token(folder / own.token_file)

    def _own(self) -> tuple[OperatorConfig, Path]:
        named = self.config or (
            Path(self.environment[CONFIG_VARIABLE]) if CONFIG_VARIABLE in self.environment else None
        )
        path = named or self._usual()
        if named is None and not path.is_file():
            return OperatorConfig(), path.parent
        from xce.adapters.settings.load import bytes_of, read_model

        return read_model(
            bytes_of(path), str(path), OperatorConfig, lambda _: ()
        ), path.absolute().parent

    def _usual(self) -> Path:
        home = self.environment.get("HOME", "/")
        base = self.environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return Path(base) / "xce" / "xcecli.yaml"


def read_token(path: Path) -> str:
    """Return the token in a file: alone, or as ``xce controller token`` showed it.

    Raises:
        InputError: it cannot be read, or is empty.
    """
    try:
        words = path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.of(str(path), why_unread(error)) from None
    if not words:
        raise InputError.of(str(path), "is empty; wanted a token")
    return words[-1]


def connection_of(context: typer.Context) -> Connection:
    """Return what the flags in front of the command said."""
    return cast("Connection", context.find_root().obj)
