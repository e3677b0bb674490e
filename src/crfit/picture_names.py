"""Names of lines in a picture: short, different, and at the ends of the lines without covering each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.picture_style import GROUND, INK, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

__all__ = ["LONGEST_NAME", "End", "name_ends", "plain", "short_names", "shortened", "spread"]

#: Characters of a name beside a line.
LONGEST_NAME = 28

_BESIDE = 9.0  # points between the end of a line and its name


def plain(text: str) -> str:
    """Make a text one that can be drawn: single spaces, and a question mark for what is no character.

    Parameters
    ----------
    text : str
        Any; labels may hold bytes that are no UTF-8.
    """
    return " ".join(text.encode("utf-8", "replace").decode().split())


def shortened(name: str, limit: int = LONGEST_NAME) -> str:
    """Make a text plain, and take out its middle if it is long.

    Parameters
    ----------
    name : str
        Any text.
    limit : int
        Characters to keep, the ellipsis counted.
    """
    name = plain(name)
    if len(name) <= limit:
        return name
    head = limit // 2
    return f"{name[:head].rstrip()}…{name[len(name) - (limit - head - 1) :].lstrip()}"


def short_names(names: Sequence[str], limit: int = LONGEST_NAME) -> list[str]:
    """Shorten names that stand side by side, so that they stay different.

    In long ones, words that all long ones share are left out, the first only if that is not enough. Those
    that would become equal get a number.

    Parameters
    ----------
    names : sequence of str
        Any texts.
    limit : int
        Characters to keep.
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
    """The name with an ellipsis for each run of shared words after the first few."""
    words: list[str] = []
    for i, word in enumerate(name.split()):
        if i < n_kept or word not in shared:
            words.append(word)
        elif words[-1:] != ["…"]:
            words.append("…")
    return " ".join(words)


@dataclass(frozen=True)
class End:
    """Where a line ends, and what to write there.

    Parameters
    ----------
    x, y : float
        The last point of the line.
    name : str
        Text beside it.
    colour : str
        Of the line; the text takes a shade of it.
    """

    x: float
    y: float
    name: str
    colour: str


def name_ends(figure: Figure, panels: Sequence[tuple[Axes, Sequence[End]]]) -> None:
    """Write the names of lines at their ends, where none covers another, with a thin line to the end.

    Names stand beside the ends of their lines; where one would cover the end of another line, it and its
    close neighbours stand in a column to the right of them. Call it last: names are placed for the limits and
    sizes that the axes have by then. Sets: the right limits of the axes, further out so that all names fit.

    Parameters
    ----------
    figure : Figure
        The whole picture.
    panels : sequence of tuple
        Axes with the ends of their lines.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # only then do axes have a size, which is kept from now on
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
        """Move names apart, and those that cover an end, with their neighbours, further out the next time."""
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
    """Move numbers apart, and into an interval, by as little as possible and without changing their order.

    Numbers that are too close form a block of neighbours at equal distances around the mean of what they
    want; blocks that touch become one.

    Parameters
    ----------
    wanted : sequence of float
        Where each would like to be.
    distance : float
        Between neighbours, at least.
    low, high : float
        Bounds; exceeded at the lower end if there is not room for all.

    Returns
    -------
    list of tuple
        The blocks: indices of their members in ascending order of place, and the place of the first.
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
