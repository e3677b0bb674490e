"""The picture and the page of a search, in the look of `crfit.pictures` and `crfit.pages`.

Panels over the penalty that varies most: the score with its 95 % interval, the number of weights that are
not 0, and the seconds of each candidate; on request the strongest weights along a path. Lines join candidates
that differ only in this penalty. A ring marks the best candidate, a square the one-standard-error choice.
"""

from __future__ import annotations

import base64
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit import pages, pictures
from crfit.engines import EngineObjective
from crfit.errors import OptionError
from crfit.names import brief
from crfit.pages import node, scroll_box, section
from crfit.pictures import LIGHT, MOST_LINES, Theme
from crfit.tuning.path import PathPoint
from crfit.tuning.search import Candidate, Search, shown
from crfit.vectors import to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 2.5  # inches
N_WEIGHTS = 8  # whose values along the path are drawn
#: Titles of scores by metric.
TITLES = {"f1": "F1, %", "accuracy": "accuracy, %", "sequence_accuracy": "sequence accuracy, %"}


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The strongest weights along a path: names, penalties, and their values at each."""

    names: list[str]
    l2: list[float]
    values: NDArray[np.float64]  # [n_names, n_points]


def coefficients(objective: EngineObjective, points: Sequence[PathPoint], at: int = -1) -> Coefficients:
    """The weights of the largest magnitude at point `at` of a path, and their values at all points."""
    weights = np.abs(to_numpy(points[at].weights))
    n = min(N_WEIGHTS, len(weights))
    strongest = np.argsort(-weights, kind="stable")[:n]
    names = [brief(str(objective.layout.describe(int(i), objective.dataset))) for i in strongest]
    values = np.array([to_numpy(point.weights)[strongest] for point in points]).T.reshape(n, len(points))
    return Coefficients(names, [point.l2 for point in points], values)


def draw_search(
    search: Search,
    path: str | os.PathLike[str] | None = None,
    *,
    along: Coefficients | None = None,
    theme: Theme = LIGHT,
) -> Figure:
    """Draw a search as a matplotlib figure, written to `path` if given (.png, .svg or .pdf)."""
    if path is not None:
        pictures.check_picture_name(path)
    if not any(trial.scores for trial in search.trials):
        raise OptionError("search", "no scores", "finish at least one candidate")
    axis = _axis(search)
    lines = _lines(search, axis)
    looks = pictures.looks([""] * len(lines))
    names = pictures.short_names([name for name, _ in lines])
    legend = [
        (name, pictures.legend_line(look, theme)) for name, look in zip(names, looks, strict=True) if name
    ]
    n_rows = 3 + (along is not None)
    words = "Shaded: 95 % interval. Ring: best. Square: strongest penalty within one standard error."
    figure = pictures.headed_figure(
        _ROW * n_rows, theme, title="Search over penalties", words=words, legend=legend
    )
    rows = figure.subplots(n_rows, 1, squeeze=False)[:, 0]
    titles = [TITLES.get(search.metric, search.metric), "weights that are not 0", "seconds per candidate"]
    for axes, title in zip(rows, titles, strict=False):
        pictures.plain_axes(axes, theme, log_x=axis != "candidate", log_y=False)
        axes.set_ylabel(title, color=theme.ink)
        axes.set_xlabel(axis, color=theme.ink)
    for (_, members), look in zip(lines, looks, strict=True):
        x = [_place(search, i, axis) for i in members]
        trials = [search.trials[i] for i in members]
        columns: list[Any] = [search.means[members]]
        columns += [[trial.n_nonzero for trial in trials], [trial.seconds for trial in trials]]
        for axes, values in zip(rows, columns, strict=False):
            pictures.draw_line(axes, x, values, look, theme, marker="o", markersize=4)
        intervals = search.intervals()[members]
        rows[0].fill_between(
            x, intervals[:, 0], intervals[:, 1], color=look.colour(theme), alpha=0.15, linewidth=0
        )
    _mark(rows[0], search, axis, theme)
    if along is not None:
        _draw_coefficients(rows[3], along, theme)
    if path is not None:
        pictures.save_picture(figure, path)
    return figure


def _axis(search: Search) -> str:
    """The penalty with the most values; "candidate" if they are all the same."""
    values = {
        name: {getattr(trial.candidate, name) for trial in search.trials} - {0.0} for name in ("l2", "l1")
    }
    name = max(values, key=lambda name: (len(values[name]), name == "l2"))
    return name if len(values[name]) > 1 else "candidate"


def _place(search: Search, i: int, axis: str) -> float:
    return float(i) if axis == "candidate" else float(getattr(search.trials[i].candidate, axis))


def _lines(search: Search, axis: str) -> list[tuple[str, list[int]]]:
    """Candidates by what they share apart from the axis; in a random search, all as one line."""
    groups: dict[Candidate, list[int]] = {}
    for i, trial in enumerate(search.trials):
        if trial.scores and (axis == "candidate" or _place(search, i, axis) > 0.0):
            l2, l1 = trial.candidate.l2, trial.candidate.l1
            shared = Candidate(
                0.0 if axis == "l2" else l2, 0.0 if axis == "l1" else l1, trial.candidate.options
            )
            groups.setdefault(shared, []).append(i)
    if len(groups) > MOST_LINES:
        everyone = [i for members in groups.values() for i in members]
        return [("", sorted(everyone, key=lambda i: _place(search, i, axis)))]
    other = "l1" if axis == "l2" else "l2"
    varies = len({getattr(shared, other) for shared in groups}) > 1
    found = []
    for shared, members in groups.items():
        words = [f"{other}={getattr(shared, other):g}"] if varies else []
        words += [f"{name}={shown(value)}" for name, value in shared.options]
        name = " ".join(words) if len(groups) > 1 else ""
        found.append((name, sorted(members, key=lambda i: _place(search, i, axis))))
    return found


def _mark(axes: Axes, search: Search, axis: str, theme: Theme) -> None:
    if not search.finished:
        return
    for i, marker, size in ((search.one_standard_error, "s", 9), (search.best, "o", 13)):
        x = _place(search, i, axis)
        if x > 0.0 or axis == "candidate":
            axes.plot(
                [x], [search.means[i]], marker, markersize=size, markerfacecolor="none", color=theme.ink
            )
    known = search.means[~np.isnan(search.means)]
    low = max(float(known.min()), float(known.max()) - 15.0 if search.metric in TITLES else -math.inf)
    high = np.nanmax([known.max(), *search.intervals()[search.finished, 1]])
    margin = 0.08 * max(float(high) - low, 0.1)
    axes.set_ylim(low - margin, float(high) + margin)


def _draw_coefficients(axes: Axes, along: Coefficients, theme: Theme) -> None:
    pictures.plain_axes(axes, theme, log_x=True, log_y=False)
    axes.set_xlabel("l2", color=theme.ink)
    axes.set_ylabel("strongest weights", color=theme.ink)
    looks = pictures.looks([""] * len(along.names))
    for name, values, look in zip(pictures.short_names(along.names), along.values, looks, strict=True):
        line = pictures.draw_line(axes, along.l2, values, look, theme)
        line.set_label(name)
    style: dict[str, Any] = {"fontsize": 7, "frameon": False, "labelcolor": theme.ink, "ncols": 2}
    for text in axes.legend(**style).get_texts():
        text.set_parse_math(False)


# --- the page ----------------------------------------------------------------------------------------------


def write_page(
    search: Search,
    path: str | os.PathLike[str],
    *,
    along: Coefficients | None = None,
    files: Sequence[str] = (),
) -> None:
    """Write the page of a search: what was chosen, the picture, and a table of the candidates."""
    with tempfile.TemporaryDirectory() as folder:
        draw_search(search, picture := Path(folder) / "search.svg", along=along)
        image = base64.b64encode(picture.read_bytes()).decode()
    source = f"data:image/svg+xml;base64,{image}"
    style = "max-width: 100%; width: 46rem"
    drawn = node("figure", node("img", src=source, alt="Score against penalty", style=style))
    links = [part for name in files for part in (" ", node("a", name, href=name))]
    text = pages.page(
        title="Search over penalties",
        header=[node("div", [node("p", words) for words in sentences(search)], class_="verdict")],
        main=[section("curves", "Curves", drawn), section("candidates", "Candidates", _table(search))],
        footer=node("p", "Numbers and pictures:" if links else "", links),
        style="",
    )
    pages.write_page(path, text)


def sentences(search: Search) -> list[str]:
    """What a search found, in words."""
    if not search.finished:
        return ["No candidate was finished."]
    found = []
    for i, what in (
        (search.best, "Best"),
        (search.one_standard_error, "Strongest penalty within one standard error"),
    ):
        low, high = search.intervals()[i]
        score = f"{search.means[i]:.2f} (95 % interval {low:.2f} to {high:.2f})"
        found.append(f"{what}: {search.trials[i].candidate.name}, {score}.")
    n, done = len(search.trials), len(search.finished)
    if done < n:
        found.append(f"{n - done} of {n} candidates were dropped before they had all folds.")
    return found


def _table(search: Search) -> Any:
    rows = sorted(
        enumerate(search.table()),
        key=lambda pair: (pair[1]["error"] is None, -(pair[1]["score"] or -math.inf)),
    )
    head = ["candidate", "score", "interval", "weights", "passes", "seconds", ""]
    body = []
    for i, row in rows:
        known = row["low"] is not None
        interval = f"{row['low']:.2f} to {row['high']:.2f}" if known else "–"
        score = "–" if row["score"] is None else f"{row['score']:.2f}"
        numbers = [score, interval, f"{row['n_nonzero']:,}", f"{row['passes']:.0f}", f"{row['seconds']:.2f}"]
        chosen = search.finished and i == search.best
        name = node("strong", search.trials[i].candidate.name) if chosen else search.trials[i].candidate.name
        cells = [node("td", text, class_="number") for text in numbers]
        dropped = f"dropped {row['dropped']} folds" if row["dropped"] else ""
        body.append(node("tr", node("th", name, scope="row"), cells, node("td", dropped)))
    caption = "Mean score over the folds that were run, and its 95 % interval."
    parts = node("caption", node("span", caption)), node("thead", node("tr", [node("th", h) for h in head]))
    return scroll_box(caption, node("table", *parts, node("tbody", body)))
