"""Pictures: figures with a heading, lines with names at their ends, gaps against seconds or passes.

A stored picture names the config.json that it was drawn with, so that `check` sees when it is out of date.
There is no date in it: the same results give the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.setting import digest
from crfit.files import replacing
from crfit.pictures import GROUND, INK, QUIET, End, colour_of, dashes_of, name_ends, new_figure, plain_axes
from crfit.racing.result import Curve, RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KEY = "Source"
TOP = 10.0  # the largest gap that is drawn
ROOM = 6.0  # all lines end near the bottom; below it is room for their names
AXES = {"seconds": "seconds of training", "passes": "passes over the data"}
RELATIVE_GAP = "relative gap (F − F*) / F*"
DASHED = (0, (4, 3))


def save(figure: Figure, path: Path, config: Path) -> None:
    """Write a picture as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        metadata = {"Software": None, _KEY: digest(config)}
        figure.savefig(unfinished, format="png", facecolor=GROUND, metadata=metadata)


def drawn_from(path: Path) -> str | None:
    """Digest that a picture names, None if it names none.

    A PNG file is a signature of eight bytes, then chunks: length, four letters, that many bytes, checksum.
    """
    data, at = path.read_bytes(), 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        key, _, value = data[at + 8 : at + 8 + length].partition(b"\0")
        if data[at + 4 : at + 8] == b"tEXt" and key == _KEY.encode():
            return value.decode("latin-1")
        at += length + 12
    return None


def titled_figure(size: tuple[float, float], title: str, words: str) -> Figure:
    """An empty figure, in inches, with a heading and a line of small print below it."""
    width, height = size
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - 0.72 / height), w_pad=0.08)
    left = 0.1 / width
    figure.text(left, 1 - 0.32 / height, title, fontsize=14, weight="bold", color=INK)
    figure.text(left, 1 - 0.58 / height, words, fontsize=9, color=QUIET)
    return figure


def labelled_axes(axes: Axes, x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Axes:
    """Plain axes with labels."""
    plain_axes(axes, log_x=log_x, log_y=log_y)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    return axes


def note(
    axes: Axes, words: str, place: tuple[float, float], shift: tuple[float, float], ha: str, **more: Any
) -> None:
    """Small words beside a place, shifted by so many points, on a ground that hides lines."""
    style = {"fontsize": 8, "color": INK, "zorder": 5, "textcoords": "offset points", **more}
    box = {"facecolor": GROUND, "edgecolor": "none", "alpha": 0.8, "pad": 0.4}
    axes.annotate(words, place, xytext=shift, ha=ha, bbox=box, **style).set_in_layout(False)


def gap_points(
    race: RaceResult, curve: Curve, unit: str, bottom: float, top: float = TOP
) -> list[tuple[float, float]]:
    """Seconds or passes with relative gaps, from where a panel begins to where it ends."""
    drawn = []
    for point in curve.points:
        gap, x = race.gap(curve, point, relative=True), getattr(point, unit)
        if x > 0 and gap is not None and gap <= top:
            drawn.append((x, max(gap, bottom)))
            if gap <= bottom:
                break
    return drawn


@dataclass(frozen=True)
class GapLine:
    """A line of a picture of gaps: its name, and a curve of a race, which knows the optimum."""

    name: str
    race: RaceResult
    curve: Curve
    strong: bool = False


def gap_picture(
    title: str,
    words: str,
    lines: Sequence[GapLine],
    *,
    unit: str = "seconds",
    mark: float | None = None,
    bottom: float = 1e-6,
) -> Figure:
    """Draw lines in the order of their colours; `mark` is a gap that has a line across."""
    figure = titled_figure((9.0, 4.6), title, words)
    axes = labelled_axes(figure.subplots(), AXES[unit], RELATIVE_GAP, log_x=True, log_y=True)
    drawn = [(line.name, gap_points(line.race, line.curve, unit, bottom), line.strong) for line in lines]
    ends = draw_lines(axes, drawn)
    if mark is not None:
        axes.axhline(mark, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    axes.set_ylim(bottom / ROOM, TOP * 2)
    name_ends(figure, [(axes, ends)])
    return figure


def draw_lines(axes: Axes, lines: Iterable[tuple[str, Sequence[tuple[float, float]], bool]]) -> list[End]:
    """Draw lines, each with its name, its points and whether it is strong; gives where their names go."""
    ends = []
    for number, (name, points, strong) in enumerate(lines):
        if not points:
            continue
        x, y = zip(*points, strict=True)
        colour = colour_of(number)[0]
        width, order = (2.6, 3) if strong else (1.6, 2)
        (stroke,) = axes.plot(x, y, color=colour, linewidth=width, zorder=order)
        if dashes_of(number):
            stroke.set_dashes(dashes_of(number))
        ends.append(End(x[-1], y[-1], name, colour))
    return ends
