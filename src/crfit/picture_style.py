"""How our pictures look: ground, ink, colours and axes.

Lines are told apart by colour and by the name at their end, beyond seven also by their dashes. The colours
are those of Okabe and Ito [1], moved so that each has a contrast of at least 3 to the ground and any two
differ for people with every kind of colour blindness; names take a shade of them with a contrast of 4.5 [2].
Pictures bring their own light ground, so that they read the same on light and on dark pages. Needs matplotlib
where something is drawn: ``pip install 'crfit[plot]'``.

References
----------
[1] M. Okabe, K. Ito. Color Universal Design: how to make figures and presentations that are friendly to
    colorblind people. 2008.
[2] W3C. Web Content Accessibility Guidelines 2.2, criteria 1.4.3 and 1.4.11.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from crfit.atomic import replacing
from crfit.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "DARK_INK",
    "DASHES",
    "GROUND",
    "INK",
    "LINE",
    "QUIET",
    "check_picture_name",
    "colour_of",
    "dashes_of",
    "new_figure",
    "plain_axes",
    "save_picture",
    "shade",
]

GROUND, INK, QUIET, LINE = "#fbfbf9", "#1d1d1f", "#5d6168", "#dcdcd6"
DARK_INK = "#e9eaec"

#: Colour of a line on a light and on a dark ground.
COLOURS = (
    ("#0651b4", "#5a90f2"),  # blue
    ("#b0391a", "#ee7733"),  # vermilion
    ("#2c9a74", "#52c9a4"),  # bluish green
    ("#d65bcb", "#bb74a6"),  # reddish purple
    ("#a98420", "#f0c040"),  # ochre
    ("#462a82", "#a6cdf8"),  # violet, sky blue
    ("#1d1d1f", "#f0f0f2"),  # ink
)
#: Lengths of dash and gap in pixels, for the first seven lines, the next seven, and so on.
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2.5), (8, 3, 2, 3))

_SUFFIXES = (".png", ".svg", ".pdf")


def colour_of(index: int) -> tuple[str, str]:
    """Return the colours of a line on a light and on a dark ground.

    Parameters
    ----------
    index : int
        Number of the line, counted from 0.
    """
    return COLOURS[index % len(COLOURS)]


def dashes_of(index: int) -> tuple[float, ...]:
    """Return lengths of dash and gap of a line in pixels, nothing for an unbroken one.

    Parameters
    ----------
    index : int
        Number of the line, counted from 0.
    """
    return DASHES[index // len(COLOURS) % len(DASHES)]


def shade(colour: str, ink: str, amount: float = 0.3) -> str:
    """Move a colour towards the ink, for text.

    Parameters
    ----------
    colour, ink : str
        As ``#rrggbb``.
    amount : float
        Share of the ink.
    """
    pairs = ((int(colour[i : i + 2], 16), int(ink[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round((1 - amount) * a + amount * b):02x}" for a, b in pairs)


def check_picture_name(path: str | os.PathLike[str]) -> str:
    """Return the format of a picture, from the end of its name.

    Parameters
    ----------
    path : path-like
        File to write.

    Raises
    ------
    OptionError
        The name ends in none that we write.
    """
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in _SUFFIXES:
        raise OptionError("path", os.fspath(path), f"the name must end in one of {', '.join(_SUFFIXES)}")
    return suffix[1:]


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure in our colours.

    Parameters
    ----------
    width, height : float
        In inches.

    Raises
    ------
    ImportError
        matplotlib is not there.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'crfit[plot]'") from None
    layout = ConstrainedLayoutEngine(
        w_pad=0.13, h_pad=0.06
    )  # inches; half of a number may stand out at a side
    return Figure(figsize=(width, height), dpi=150, layout=layout, facecolor=GROUND)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture, as a whole or not at all; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
        What was drawn.
    path : path-like
        File to write; its name ends in .png, .svg or .pdf.
    """
    import matplotlib

    kind = check_picture_name(path)
    unsaid = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
    with matplotlib.rc_context({"svg.hashsalt": "crfit"}), replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind, facecolor=GROUND, metadata=dict.fromkeys(unsaid[kind]))


def plain_axes(axes: Axes, *, log_x: bool, log_y: bool) -> None:
    """Draw axes quietly: faint grid, no box, plain numbers.

    Parameters
    ----------
    axes : Axes
        Where the lines will be.
    log_x, log_y : bool
        Whether an axis is logarithmic.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=7))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.03, y=0.08)
    axes.set_facecolor(GROUND)
    axes.grid(True, which="major", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", color=LINE, labelcolor=QUIET, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(QUIET)
