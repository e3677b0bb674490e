"""The picture of a race: gap and held-out score, against seconds and against passes.

One row a quantity, seconds left and passes right, as in `crfit.pictures`. Lines carry their names at their ends.
A cross ends the line of an entry that diverged, a triangle at the lower edge stands for a gap of 0. Entries
without a point are named below. Needs matplotlib: ``pip install 'crfit[plot]'``.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crfit.pictures import (
    INK,
    QUIET,
    End,
    check_picture_name,
    colour_of,
    dashes_of,
    name_ends,
    new_figure,
    plain,
    plain_axes,
    save_picture,
    short_names,
    shortened,
)
from crfit.racing.quantities import UNITS, Quantity, below_edge, drawn, edges, present
from crfit.racing.result import RaceResult
from crfit.racing.sentences import optimum_words, race_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "draw_race"]

#: Pictures beside ``race.csv``: one for pages and one that scales.
PICTURES = ("race.png", "race.svg")

_WIDTH, _ROW, _AROUND, _NOTE = 11.0, 3.3, 0.8, 0.19  # inches
_NOTE_LENGTH = 130  # characters of a line
_MOST_OPTIMA = 4  # that are told below the panels


def draw_race(result: RaceResult, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the curves of a race.

    Parameters
    ----------
    result : RaceResult
        The race.
    path : path-like, optional
        File to write; its name ends in .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        matplotlib is not there.
    """
    if path is not None:
        check_picture_name(path)
    rows, notes = _rows(result), _notes(result)
    figure = new_figure(_WIDTH, _AROUND + _ROW * len(rows) + _NOTE * len(notes))
    name = race_name(result)
    at_left: dict[str, Any] = {"ha": "left", "x": 0.012, "parse_math": False}
    figure.suptitle(
        "Race of trainers" + (f": {shortened(name, 80)}" if name else ""), color=INK, fontsize=13, **at_left
    )
    figure.supxlabel("\n".join(notes), color=QUIET, fontsize=9, **at_left)
    if rows:
        _draw_panels(figure, result, rows)
    if path is not None:
        save_picture(figure, path)
    return figure


def _draw_panels(figure: Figure, result: RaceResult, rows: Sequence[Quantity]) -> None:
    panels = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    named = []
    for line, quantity in zip(panels, rows, strict=True):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            plain_axes(axes, log_x=True, log_y=quantity.kind == "distance")
            named.append((axes, _draw(axes, result, quantity, unit)))
        line[0].set_ylabel(quantity.title, color=INK)
        line[1].tick_params(labelleft=False)
    for axes, unit in zip(panels[-1], ("seconds", "passes"), strict=True):
        axes.set_xlabel(UNITS[unit], color=INK)
    name_ends(figure, named)


def _rows(result: RaceResult) -> list[Quantity]:
    """The gap, or the objective where there is no F*; and one score."""
    there = {quantity.name: quantity for quantity in present(result)}
    pairs = (("relative_gap", "objective"), ("f1", "accuracy"))
    return [there[next(n for n in names if n in there)] for names in pairs if any(n in there for n in names)]


def _draw(axes: Axes, result: RaceResult, quantity: Quantity, unit: str) -> list[End]:
    """Draw the curves of a panel; return where they end."""
    bounds = edges(result, quantity)
    ends = []
    for index, (curve, name) in enumerate(zip(result.curves, short_names(_labels(result)), strict=True)):
        line = drawn(result, curve, quantity, unit, bounds)
        if not line:
            continue
        last, colour, dashes = line[-1], colour_of(index)[0], dashes_of(index)
        (stroke,) = axes.plot([p.x for p in line], [p.y for p in line], color=colour, linewidth=1.7)
        if dashes:
            stroke.set_dashes(dashes)
        if last.y < bounds.low:  # a score; what is not clipped would be drawn far below the panel
            continue
        marker, size = ("X", 8) if curve.diverged else ("v", 7) if last.at_edge else ("o", 5)
        axes.plot([last.x], [last.y], marker, color=colour, markersize=size, clip_on=False, zorder=3)
        ends.append(End(last.x, last.y, name, colour))
    if quantity.kind == "score":
        axes.set_ylim(bounds.low, bounds.high + 0.08 * max(bounds.high - bounds.low, 0.1))
    return ends


def _labels(result: RaceResult) -> list[str]:
    return [curve.label for curve in result.curves]


def _notes(result: RaceResult) -> list[str]:
    """What F* is, what the marks mean, and which entries have no curve."""
    notes = optimum_words(result)[:_MOST_OPTIMA]
    marks = []
    if any(curve.diverged and curve.points for curve in result.curves):
        marks.append("✕ diverged.")
    if any(below_edge(result, quantity) for quantity in _rows(result)):
        marks.append("▼ at the lower edge: a gap of 0, F* itself.")
    notes += ["  ".join(marks)] if marks else []
    if not any(curve.points for curve in result.curves):
        notes.append("No entry came as far as a first look.")
    for curve, name in zip(result.curves, short_names(_labels(result)), strict=True):
        if not curve.points:
            notes.append(f"{name}: {curve.status.value}. {curve.message}")
    return [line for note in notes for line in textwrap.wrap(plain(note), _NOTE_LENGTH)]
