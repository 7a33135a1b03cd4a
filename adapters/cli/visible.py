"""Text of others on a terminal: names, reasons and error messages show what they hold and command nothing.

Names come from snapshots, configurations and providers. A terminal obeys what begins with ESC or U+009B, a bidirectional mark turns
the rest of a line round, and a line separator makes two lines of one: all of these are written as ``\\x1b`` and the like.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text


def visible(text: str) -> str:
    """Return a text in which every character that is not printed for itself is written as its escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def cell(text: str) -> Text:
    """Return a text as one cell of a table or one line."""
    return Text(visible(text))


class PlainConsole(Console):
    """A console that takes texts as they are, without markup, and writes nothing but visible characters and its own styles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is written; line ends stay."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control or text.isprintable() or text == "\n":
                yield segment
            else:
                lines = "\n".join(visible(line) for line in text.split("\n"))
                yield Segment(lines, style)
