"""The one place that knows matplotlib (extra ``report``): figures outside its global state, in one style.

Its modules are loaded by name when a picture is drawn: a report without pictures must not need them.
"""

import io
import warnings
from datetime import datetime
from importlib import import_module
from typing import Any, Final, Self

_WIDTH, _HEIGHT = 10.4, 3.1

INK: Final = "#1f2933"
MUTED: Final = "#7b8794"
GREY: Final = "#c3ccd5"
BLUE: Final = "#3f7fbf"
RED: Final = "#c8443a"
#: Colours that stay apart for readers who see few (Okabe and Ito), by template in the order of their names.
APART: Final = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#6b5b95",
    "#8a8a8a",
)

_STYLE: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "grid.color": "#e6eaee",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name with a dollar sign is a name
}


#: The ends of a time axis.
Span = tuple[datetime, datetime]


class Canvas:
    """One figure; everything is drawn inside its ``with``, where the style holds."""

    def __init__(self, name: str, panels: int = 1, height: float = _HEIGHT) -> None:
        matplotlib: Any = import_module("matplotlib")
        self._style = matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"xce {name}"})
        self._panels = panels
        self._height = height
        self._figure: Any = None
        self.axes: list[Any] = []

    def __enter__(self) -> Self:
        self._style.__enter__()
        figure: Any = import_module("matplotlib.figure")
        backend: Any = import_module("matplotlib.backends.backend_svg")
        self._figure = figure.Figure(
            figsize=(_WIDTH, self._height), layout="constrained" if self._panels > 1 else "none"
        )
        if self._panels == 1:
            # The same left end for all, so that times stand below one another on the page.
            self._figure.subplots_adjust(
                left=0.065, right=0.97, top=1 - 0.26 / self._height, bottom=0.46 / self._height
            )
        backend.FigureCanvasSVG(self._figure)
        self.axes = [self._figure.add_subplot(1, self._panels, i + 1) for i in range(self._panels)]
        return self

    def __exit__(self, *error: object) -> None:
        self._style.__exit__(*error)

    def make_room_below(self) -> None:
        """Make room for a label of the horizontal axis, which axes over time do without."""
        self._figure.subplots_adjust(bottom=0.62 / self._height)

    def svg(self) -> str:
        """Return the SVG element, without the XML head that HTML has no place for."""
        text = io.StringIO()
        with warnings.catch_warnings():
            # Texts stay texts in the SVG: whether the reader's fonts have a character is not ours to say.
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            self._figure.savefig(
                text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True
            )
        whole = text.getvalue()
        return whole[whole.index("<svg") :].strip()


def finish(
    axes: Any, label: str, when: Span, *, top: float | None, logarithmic: bool = False
) -> None:
    """Give axes over time their label, dates and legend.

    Args:
        axes: of a canvas.
        label: what the values are.
        when: the ends of the time axis.
        top: the end of the value axis; None: where the values end.
        logarithmic: whether values above one are.
    """
    dates: Any = import_module("matplotlib.dates")
    ticker: Any = import_module("matplotlib.ticker")
    locator = dates.AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set_xlim(*when)
    axes.set_ylabel(label)
    if logarithmic:
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
    else:
        axes.yaxis.set_major_locator(ticker.MaxNLocator(nbins=5, integer=True))
        axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(thousands))
    corner = "left" if not axes.get_title(loc="left") else "right"
    axes.legend(
        loc=f"lower {corner}",
        bbox_to_anchor=(0 if corner == "left" else 1, 1.0),
        ncols=8,
        fontsize=8.5,
        borderaxespad=0,
        handlelength=1.2,
        columnspacing=1.4,
    )


def thousands(value: float, place: int) -> str:
    """Return a value as an axis shows it."""
    return f"{value:,.2f}".rstrip("0").rstrip(".").replace(",", "\u202f")
