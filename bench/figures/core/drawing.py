"""The picture of the group: bars of seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crfit.picture_style import GROUND, INK, QUIET, plain_axes

from bench.figures.base import Results, shown
from bench.figures.core import medians
from bench.figures.core.measuring import OURS, RIVAL, WEIGHTS
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Grey for the other tool; two depths of one blue for ours, apart in lightness and so without colours too.
_GREY, _BLUE, _LIGHT = "#a3a7ad", "#0072b2", "#5fb3e0"


def pictures(results: Results) -> dict[str, Figure]:
    """A panel for all weights and one for observed weights, on one scale of seconds."""
    if not results.where(tool=RIVAL):
        return {}
    ours, theirs = (results.where(measured="iteration", tool=which)[0]["version"] for which in (OURS, RIVAL))
    figure = titled_figure(
        (9.0, 4.0),
        f"Training on {medians.name(results)}, chunking: time of an L-BFGS iteration",
        f"same function, same attributes, same run on {results.machine}: "
        f"crfit {ours} on two threads, python-crfsuite {theirs} on its one",
    )
    panels = figure.subplots(2, 1, sharex=True)
    meanings = {"all": "every (attribute, label) pair", "observed": "pairs seen in training"}
    for axes, weights in zip(panels, WEIGHTS, strict=True):
        _bars(axes, medians.times(results, weights))
        title = f"{medians.label(results, weights)}: {meanings[weights]}"
        axes.set_title(title, loc="left", fontsize=10, color=QUIET, pad=5)
    panels[0].tick_params(labelbottom=False)
    panels[1].set_xlabel("seconds (shorter is better)", color=QUIET)
    return {"core": figure}


def _bars(axes: Axes, seconds: dict[str, float | None]) -> None:
    """Three bars, and at ours how many times they fit into the rival's iteration."""
    plain_axes(axes, log_x=False, log_y=False)
    rival = seconds["rival"]
    rows = [
        ("python-crfsuite, iteration", _GREY, rival, "", ""),
        ("crfit, iteration", _BLUE, seconds["iteration"], "× faster", ""),
        # The rival's log has no time of a gradient alone: the label says what it is compared with.
        ("crfit, value and gradient", _LIGHT, seconds["gradient"], "×", " against the iteration"),
    ]
    for y, (_, colour, length, times, words) in enumerate(rows):
        axes.barh(y, length or 0.0, color=colour, height=0.72)
        beside: dict[str, Any] = {"va": "center", "textcoords": "offset points"}
        spelled = f"{shown(length, '.3f', ' s')}{words}"
        if not times:
            axes.annotate(spelled, (length, y), xytext=(-6, 0), ha="right", color=INK, **beside)
            continue
        beside["bbox"] = {"facecolor": GROUND, "edgecolor": "none", "pad": 1.5}  # over the grid
        ratio = f"{shown(medians.ratio(rival, length), '.1f')}{times}"
        bold = axes.annotate(ratio, (length, y), xytext=(6, 0), color=INK, weight="bold", **beside)
        axes.annotate(spelled, (1, 0.5), xycoords=bold, xytext=(7, 0), color=QUIET, **beside)
    axes.set_yticks(range(3), [row[0] for row in rows], fontsize=9.5)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["bottom"].set_visible(False)
    axes.margins(x=0.02)
