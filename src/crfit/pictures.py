"""The style of our pictures, names at the ends of lines, and the picture of a training run.

Lines differ by colour and by the name at their end, beyond seven also by their dashes. The colours are those
of Okabe and Ito [1], adjusted so that each has a contrast of at least 3 to the background and any two differ
under every kind of colour blindness; names use a shade of them with a contrast of 4.5 [2]. Pictures have a
light background of their own, so they look the same on light and dark pages. Drawing needs matplotlib:
``pip install 'crfit[plot]'``.

References
----------
[1] M. Okabe, K. Ito. Color Universal Design: how to make figures and presentations that are friendly to
    colorblind people. 2008.
[2] W3C. Web Content Accessibility Guidelines 2.2, criteria 1.4.3 and 1.4.11.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.errors import OptionError
from crfit.files import replacing
from crfit.training.stopping import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

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
    """Return the colours of a line on a light and a dark background."""
    return COLOURS[index % len(COLOURS)]


def dashes_of(index: int) -> tuple[float, ...]:
    """Return dash and gap lengths of a line in pixels, empty for a solid one."""
    return DASHES[index // len(COLOURS) % len(DASHES)]


def shade(colour: str, ink: str, amount: float = 0.3) -> str:
    """Mix a colour with the ink, for text."""
    pairs = ((int(colour[i : i + 2], 16), int(ink[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round((1 - amount) * a + amount * b):02x}" for a, b in pairs)


def check_picture_name(path: str | os.PathLike[str]) -> str:
    """Return the format of a picture from its suffix; OptionError if we do not write it."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in _SUFFIXES:
        raise OptionError("path", os.fspath(path), f"the name must end in one of {', '.join(_SUFFIXES)}")
    return suffix[1:]


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure in our colours; sizes in inches."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'crfit[plot]'") from None
    layout = ConstrainedLayoutEngine(w_pad=0.13, h_pad=0.06)  # inches; room for half a tick label
    return Figure(figsize=(width, height), dpi=150, layout=layout, facecolor=GROUND)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture atomically; the same figure gives the same bytes."""
    import matplotlib

    kind = check_picture_name(path)
    unsaid = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
    with matplotlib.rc_context({"svg.hashsalt": "crfit"}), replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind, facecolor=GROUND, metadata=dict.fromkeys(unsaid[kind]))


def plain_axes(axes: Axes, *, log_x: bool, log_y: bool) -> None:
    """Style axes: faint grid, no box, plain numbers."""
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


#: Characters of a name beside a line.
LONGEST_NAME = 28

_BESIDE = 9.0  # points between the end of a line and its name


def plain(text: str) -> str:
    """Make a text drawable: single spaces, question marks for bytes that are not UTF-8."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def shortened(name: str, limit: int = LONGEST_NAME) -> str:
    """Make a text plain, and cut its middle out if it is long."""
    name = plain(name)
    if len(name) <= limit:
        return name
    head = limit // 2
    return f"{name[:head].rstrip()}…{name[len(name) - (limit - head - 1) :].lstrip()}"


def short_names(names: Sequence[str], limit: int = LONGEST_NAME) -> list[str]:
    """Shorten names so that they stay different.

    Words that all long names share are left out, the first word only if that is not enough. Names that would
    become equal get a number.
    """
    names = list(map(plain, names))
    long = [set(name.split()) for name in names if len(name) > limit]
    shared = set.intersection(*long) if len(long) > 1 else set()
    short = []
    for name in names:
        candidates = [name, _without(shared, name, 1), _without(shared, name, 0)]
        short.append(next((c for c in candidates if len(c) <= limit), shortened(candidates[-1], limit)))
    return [
        f"{shortened(name, limit - 4)} #{i + 1}" if short.count(name) > 1 else name
        for i, name in enumerate(short)
    ]


def _without(shared: set[str], name: str, n_kept: int) -> str:
    """The name with an ellipsis for each run of shared words, the first few words kept."""
    words: list[str] = []
    for i, word in enumerate(name.split()):
        if i < n_kept or word not in shared:
            words.append(word)
        elif words[-1:] != ["…"]:
            words.append("…")
    return " ".join(words)


@dataclass(frozen=True)
class End:
    """Where a line ends, and what to write there."""

    x: float
    y: float
    name: str
    colour: str


def name_ends(figure: Figure, panels: Sequence[tuple[Axes, Sequence[End]]]) -> None:
    """Write the names of lines at their ends without overlap, each with a thin line to its end.

    Where a name would cover the end of another line, it and its close neighbours form a column to the right.
    Call it last: names are placed for the limits and sizes that the axes have by then. Sets: the right limits
    of the axes, further out so that all names fit.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # gives the axes their size, which is kept from now on
        figure.set_layout_engine("none")
    named = [_Names(axes, ends, figure.dpi) for axes, ends in panels if ends]
    for _ in range(2):
        for names in named:  # panels may share an axis
            names.make_room()
        for names in named:
            names.place()


class _Names:
    """The names in one panel."""

    def __init__(self, axes: Axes, ends: Sequence[End], dpi: float) -> None:
        self.axes, self.ends = axes, ends
        self.texts = [_text(axes, end) for end in ends]
        self.after = [end.x for end in ends]  # a name stands to the right of this
        self.points = 72 / dpi  # of a pixel
        boxes = [_box(text) for text in self.texts]
        self.widths = [box.width + 1.3 * _BESIDE / self.points for box in boxes]
        self.height = 1.05 * max(box.height for box in boxes)

    def make_room(self) -> None:
        """Move the right limit out until every name ends before it.

        With u the place of an end between the limits on the axis' scale, and W the width of the axes, the
        name fits if (u - low) / (high - low) W + width <= W.
        """
        scale = self.axes.xaxis.get_transform()
        total = self.axes.get_window_extent().width
        low, high = scale.transform(self.axes.get_xlim())
        for x, width in zip(self.after, self.widths, strict=True):
            u = float(scale.transform([x])[0])
            high = max(high, low + (u - low) * total / max(total - width, 0.25 * total))
        self.axes.set_xlim(right=float(scale.inverted().transform([high])[0]))

    def place(self) -> None:
        """Move names apart; those that cover an end move out with their neighbours, the next time."""
        to_pixels = self.axes.transData.transform
        at = to_pixels([(end.x, end.y) for end in self.ends])
        left = to_pixels([(x, end.y) for x, end in zip(self.after, self.ends, strict=True)])[:, 0]
        low, high = self.axes.transAxes.transform([(0, 0), (1, 1)])[:, 1]
        for members, first in spread([y for _, y in at], self.height, low, high):
            covering = False
            for k, i in enumerate(members):
                middle = first + k * self.height
                offset = left[i] - at[i][0] + _BESIDE / self.points, middle - at[i][1]
                self.texts[i].set_position((offset[0] * self.points, offset[1] * self.points))
                covering |= any(
                    left[i] + 1 < x < left[i] + self.widths[i] and abs(y - middle) < 0.7 * self.height
                    for j, (x, y) in enumerate(at)
                    if i != j
                )
            if covering:
                furthest = max(self.ends[i].x for i in members)
                self.after = [furthest if i in members else x for i, x in enumerate(self.after)]


def spread(
    wanted: Sequence[float], distance: float, low: float, high: float
) -> list[tuple[list[int], float]]:
    """Move numbers at least `distance` apart, and into an interval, as little as possible and in order.

    Numbers that are too close form a block at equal distances around the mean of where they want to be;
    blocks that touch become one. Returns the blocks: indices of their members, ascending, and the place of
    the first. The lower bound is exceeded if there is not room for all.
    """
    blocks: list[tuple[list[int], float]] = []

    def first_place(members: Sequence[int]) -> float:
        mean = sum(wanted[i] - k * distance for k, i in enumerate(members)) / len(members)
        return min(max(mean, low), high - (len(members) - 1) * distance)

    for i in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        members = [i]
        while blocks and blocks[-1][1] + len(blocks[-1][0]) * distance > first_place(members):
            members = blocks.pop()[0] + members
        blocks.append((members, first_place(members)))
    return blocks


def _text(axes: Axes, end: End) -> Annotation:
    text = axes.annotate(
        end.name,
        (end.x, end.y),
        xytext=(_BESIDE, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=shade(end.colour, INK),
        parse_math=False,
        annotation_clip=False,
        bbox={"facecolor": GROUND, "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        # From the middle of the left edge of the name, whatever its length.
        arrowprops={
            "arrowstyle": "-",
            "linewidth": 0.7,
            "color": end.colour,
            "shrinkA": 2,
            "shrinkB": 3,
            "relpos": (0, 0.5),
        },
    )
    text.set_in_layout(False)
    return text


def _box(text: Annotation) -> Bbox:
    """Where a text is, in pixels, without its leader."""
    from matplotlib.text import Text

    return Text.get_window_extent(text)


@dataclass(frozen=True)
class _Row:
    """One quantity: title of its axis, value of a step (None if it has none), spelling of the last value."""

    title: str
    value: Callable[[Progress], float | None]
    spelled: Callable[[float], str]
    log: bool


def plot_history(
    history: Sequence[Progress],
    path: str | os.PathLike[str],
    *,
    title: str = "",
    optimum: float | None = None,
    metric: str = "dev_f1",
) -> None:
    """Draw a training run to a .png, .svg or .pdf file.

    One row per quantity, against seconds (left) and passes (right): F above `optimum`, or above its own
    lowest value; the largest gradient entry; `metric`, a held-out score in ``Progress.extra``, if any. Axes
    are logarithmic but for the score, so that the first second can be seen as well as the last.
    """
    check_picture_name(path)
    rows = [row for row in _rows(history, optimum, metric) if len(_points(history, row, "seconds")[0]) > 1]
    if not rows:
        raise OptionError("history", f"{len(history)} steps", "give at least two evaluated steps")
    figure = new_figure(10.0, 1.0 + 2.6 * len(rows))
    table = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    ends = []
    for i, (row, line) in enumerate(zip(rows, table, strict=True)):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            ends.append((axes, [_draw(axes, row, colour_of(i)[0], *_points(history, row, unit))]))
        line[0].set_ylabel(row.title, color=INK)
        line[1].tick_params(labelleft=False)
    for axes, name in zip(table[-1], ("seconds in the trainer", "passes over the data"), strict=True):
        axes.set_xlabel(name, color=INK)
    figure.suptitle(title, color=INK, fontsize=13, parse_math=False)
    name_ends(figure, ends)
    save_picture(figure, path)


def _rows(history: Sequence[Progress], optimum: float | None, metric: str) -> list[_Row]:
    values = [p.objective for p in history if p.objective is not None and p.finite]
    lowest = optimum if optimum is not None else min(values, default=0.0)

    def gap(step: Progress) -> float | None:
        return None if step.objective is None else step.objective - lowest

    def spelled(value: float) -> str:
        return f"F = {lowest:,.2f}" if optimum is None else f"{value:.2g}"

    name = "lowest" if optimum is None else "optimum"
    score = metric.removeprefix("dev_").replace("f1", "F1")
    return [
        _Row(f"objective above its {name}", gap, spelled, log=True),
        _Row("largest gradient entry", lambda step: step.grad_inf, lambda v: f"{v:.2g}", log=True),
        _Row(
            f"{score} on held-out data", lambda step: step.extra.get(metric), lambda v: f"{v:.2f}", log=False
        ),
    ]


def _points(history: Sequence[Progress], row: _Row, unit: str) -> tuple[list[float], list[float]]:
    """Where the quantity is known, and positive if its axis is logarithmic."""
    found = [
        (float(getattr(step, unit)), value)
        for step in history
        if step.finite and (value := row.value(step)) is not None and (value > 0 or not row.log)
    ]
    found = [(x, value) for x, value in found if x > 0]
    return [x for x, _ in found], [value for _, value in found]


def _draw(axes: Axes, row: _Row, colour: str, x: list[float], y: list[float]) -> End:
    """Draw a quantity; return its last point."""
    plain_axes(axes, log_x=True, log_y=row.log)
    axes.plot(x, y, color=colour, linewidth=1.6, solid_capstyle="round")
    axes.plot(x[-1:], y[-1:], "o", color=colour, markersize=5)
    return End(x[-1], y[-1], row.spelled(y[-1]), colour)
