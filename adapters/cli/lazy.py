"""Commands that are imported when they are wanted: most of a start is importing what the command does not need."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class PlainCommand(TyperCommand):
    """A command whose usage line has ``FILE`` for what is required; braces would be taken for something to type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words behind the command's name."""
        return [
            piece.replace("{", "", 1).replace("}", "", 1) if piece.startswith("{") else piece
            for piece in super().collect_usage_pieces(ctx)
        ]


def plain(app: typer.Typer) -> typer.Typer:
    """Let every command of an application be a plain one."""
    for command in app.registered_commands:
        if command.cls in (None, TyperCommand):
            command.cls = PlainCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            plain(group.typer_instance)
    return app


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is.

    Attributes:
        module: below ``xce.adapters.cli``.
        attribute: a function, or a group of commands.
        epilog: below the help of a function.
    """

    module: str
    attribute: str = "app"
    epilog: str | None = None

    def load(self, name: str) -> TyperCommand | TyperGroup:
        """Import it and return the command of this name."""
        found = getattr(import_module(f"xce.adapters.cli.{self.module}"), self.attribute)
        if isinstance(found, typer.Typer):
            group = get_group(plain(found))
            group.name = name
            return group
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=PlainCommand, epilog=self.epilog)(found)
        command = get_command(alone)
        assert isinstance(command, TyperCommand), "one function is no group"
        return command


class LazyGroup(TyperGroup):
    """A group whose commands are in a table."""

    table: ClassVar[Mapping[str, Lazy]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        """Return one, imported now; of a name that is none, import all, so that the nearest can be named."""
        for name in [cmd_name] if cmd_name in self.table else self.table:
            if name not in self.commands:
                self.commands[name] = self.table[name].load(name)
        found = self.commands.get(cmd_name)
        assert found is None or isinstance(found, TyperCommand | TyperGroup), "made by load"
        return found
