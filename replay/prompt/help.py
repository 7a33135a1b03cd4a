"""What the commands of a prompt are for, and how it says so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xce.domain.errors import InputError
from xce.replay.prompt.answers import Answer, Table, table
from xce.replay.prompt.words import known


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """What a command is for.

    Attributes:
        usage: how it is typed.
        example: that can be typed at any time, or stands for one.
    """

    usage: str
    about: str
    example: str


class Manual:
    """The commands of one prompt, by name."""

    def __init__(self, commands: Mapping[str, CommandHelp], topics: Iterable[str]) -> None:
        """``topics`` are what ``info`` can show."""
        self._commands = commands
        self._topics = topics

    def misused(self, command: str) -> InputError:
        """Return the error that says how a command is typed."""
        return InputError.of(command, f"wanted: {self._commands[command].usage}")

    def help(self, words: list[str]) -> Answer:
        """Answer ``help``: a line for each command, or one with its example."""
        if len(words) > 1:
            raise self.misused("help")
        commands = self._commands
        chosen = [known("help", "command", words[0], commands)] if words else list(commands)
        rows = [(commands[name].usage, commands[name].about) for name in chosen]
        parts: list[str | Table] = [table("COMMAND MEANING", rows)]
        if words:
            parts = [
                *(f"{usage}: {about}" for usage, about in rows),
                f"example: {commands[chosen[0]].example}",
            ]
            if chosen == ["info"]:
                parts.append(f"topics: {', '.join(self._topics)}")
        document = {
            name: {"usage": commands[name].usage, "about": commands[name].about} for name in chosen
        }
        return Answer({"commands": document}, tuple(parts))

    def quit(self, words: list[str]) -> Answer:
        """Answer ``quit``."""
        if words:
            raise self.misused("quit")
        return Answer({}, (), over=True)
