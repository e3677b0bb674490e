"""What a gradient, a Hessian product and a best path take as sequences, label sets and orders grow [1].

    time     microseconds of a sequence against its length T, the labels L and the order k, one thread
    space    bytes that are kept of a sequence for products
    law      whether a product grows as T L^(k+1), in the paper's arithmetic (logarithms, pair marginals kept)
             and in crfit's (scaled, forward and backward vectors kept)

Chains are made (`bench.corpora.generated`), with as many of them as give the same number of label tuples in
all, so that sizes differ and what fits into which memory does not. The quick version has fewer and smaller
ones.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench.claims import AT_MOST, Claim, Found
from bench.corpora.generated import chains
from bench.papers.newton_cg.entries import MODES, OUR_MODE, PAPER_MODE
from bench.pictures import draw_lines, labelled_axes, titled_figure
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import markdown
from crfit import make_objective
from crfit.engines import make_inference
from crfit.engines.objective import Curvature
from crfit.pictures import QUIET, End, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Seconds of gradients, Hessian products and best paths against length, labels and order"
PROBLEM = "chains-made"
#: The paper's arithmetic and crfit's.
PAPER, OURS = PAPER_MODE, OUR_MODE
GRADIENT, PRODUCT, BEST_PATH = "gradient", "product", "best path"
CALLS = 5  # timed; their median counts
#: Label tuples of all sequences together: kept pair marginals take eight bytes for each.
TUPLES, QUICK_TUPLES = 4_000_000, 200_000
#: By how much a measured power may be above the paper's: what fits into which cache changes with sizes.
MORE = 0.2
#: What is shown, and drawn: arithmetic, what was called, and its name.
COLUMNS = (
    (PAPER, GRADIENT, "gradient, log"),
    (PAPER, PRODUCT, "product, log, pairs kept"),
    (OURS, GRADIENT, "gradient, scaled"),
    (OURS, PRODUCT, "product, scaled, vectors kept"),
    (OURS, BEST_PATH, "best path"),
)
MICRO, KILO = 1e6, 1e3


@dataclass(frozen=True)
class Axis:
    """A size that grows while the others stay, from small to large: (length, labels, order).

    `power` is the paper's, of the length, of the labels, or of L^(k+1), which grows with the order. A
    measured power is taken over the `largest` sizes: a bound says nothing about small ones, and order 1 has
    loops of its own, from which no line leads on.
    """

    name: str
    words: str
    sizes: tuple[tuple[int, int, int], ...]
    quick: tuple[tuple[int, int, int], ...]
    power: float
    largest: int = 3

    def value(self, row: Row) -> float:
        """What the power is of."""
        return float(row["n_labels"] ** (row["order"] + 1) if self.name == "order" else row[self.name])

    @property
    def grows(self) -> str:
        return "L^(k+1)" if self.name == "order" else self.words[-1]


def _lengths(*values: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((length, 12, 1) for length in values)


def _labels(*values: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((32, n_labels, 1) for n_labels in values)


def _orders(n_labels: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((32, n_labels, order) for order in (1, 2, 3))


AXES = (
    Axis("length", "length T", _lengths(8, 16, 32, 64, 128, 256), _lengths(8, 16, 32, 64), 1.0),
    Axis("n_labels", "labels L", _labels(4, 8, 16, 32, 64), _labels(4, 8, 16, 32), 2.0),
    Axis("order", "order k", _orders(8), _orders(4), 1.0, largest=2),
)


def tasks(quick: bool) -> list[Task]:
    tuples = QUICK_TUPLES if quick else TUPLES
    made = []
    for axis in AXES:
        sizes = " ".join("-".join(map(str, size)) for size in (axis.quick if quick else axis.sizes))
        made.append(Task(axis.name, PROBLEM, {"axis": axis.name, "sizes": sizes, "tuples": tuples}, 300.0))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    for text in task.settings["sizes"].split():
        length, n_labels, order = map(int, text.split("-"))
        yield from _measured(length, n_labels, order, task.settings["tuples"])


def _measured(length: int, n_labels: int, order: int, tuples: int) -> Iterator[Row]:
    """Median seconds of each call on all sequences, and what is kept for a product."""
    n_sequences = max(1, tuples // (length * n_labels ** (order + 1)))
    data = chains(n_sequences, length, n_labels)
    facts = {"row": "cost", "length": length, "n_labels": n_labels, "order": order}
    facts["n_sequences"] = n_sequences
    rng = np.random.default_rng(0)
    for mode in (PAPER, OURS):
        arithmetic, kept = MODES[mode]
        objective = make_objective(
            data,
            weights="all",
            order=order,
            n_threads=1,
            arithmetic=arithmetic,  # type: ignore[arg-type]
        )
        w, v = (rng.normal(size=objective.n_weights) * scale for scale in (0.1, 1.0))
        out = np.empty_like(w)
        told = {**facts, "mode": mode}
        gradient = partial(objective.value_and_grad, w, out=out)
        yield {**told, "measured": GRADIENT, "seconds": _median(gradient)}
        objective.keep_curvature(Curvature(**kept))
        gradient()
        seconds = _median(partial(objective.hvp, v, out=out))
        yield {**told, "measured": PRODUCT, "seconds": seconds, "kept_bytes": objective.curvature_bytes}
        if mode == OURS:
            inference = make_inference(data, objective.layout, w, n_threads=1)
            yield {**told, "measured": BEST_PATH, "seconds": _median(inference.viterbi)}


def _median(call: Callable[[], object]) -> float:
    """Seconds of a call, after one that makes the tables."""
    call()
    taken = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def per_sequence(results: Results, axis: Axis, mode: str, measured: str) -> list[tuple[Row, float]]:
    """Rows from the smallest to the largest size, with the microseconds of a sequence."""
    rows = results.where(axis=axis.name, mode=mode, measured=measured)
    found = [(row, MICRO * row["seconds"] / row["n_sequences"]) for row in rows]
    return sorted(found, key=lambda pair: axis.value(pair[0]))


def power(axis: Axis, points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of log y against log x over the largest sizes; None where there are too few."""
    last = [(math.log(x), math.log(y)) for x, y in points][-axis.largest :]
    if len(last) < axis.largest:
        return None
    return statistics.linear_regression(*zip(*last, strict=True)).slope


def _powers(results: Results) -> Iterator[Found]:
    """Of time and space against each of the three sizes, in both arithmetics."""
    for space in (False, True):
        for axis in AXES:
            if not results.where(axis=axis.name):
                continue
            found = {}
            for mode in (PAPER, OURS):
                rows = per_sequence(results, axis, mode, PRODUCT)
                kept = [(axis.value(r), r["kept_bytes"] / r["n_sequences"] if space else y) for r, y in rows]
                found[mode] = power(axis, kept)
            told = [f"{axis.grows} to the {x:.2f} ({mode})" for mode, x in found.items() if x is not None]
            yield Found(
                f"{'space' if space else 'time'} against the {axis.words}",
                found if None not in found.values() else None,
                "; ".join(told),
                f"{axis.grows} to the {axis.power:g}",
                (f"{axis.name}.md", "cost.png"),
                factor=axis.power + MORE,
            )


CLAIMS = (
    Claim(
        "a Hessian product takes O(T L^(k+1)) time and space",
        "the power by which it grows, over the largest sizes,",
        AT_MOST,
        _powers,
        factor=None,
        also=f"it may be {MORE:g} above, for what fits into which cache changes with sizes",
    ),
)


def checks(results: Results) -> list[Check]:
    """A product is cheaper than a gradient with logarithms at every size, which is why it was thought of."""
    pairs = [
        pair
        for axis in AXES
        for pair in zip(
            *(per_sequence(results, axis, PAPER, name) for name in (GRADIENT, PRODUCT)), strict=True
        )
    ]
    least = min((gradient / product for (_, gradient), (_, product) in pairs), default=0.0)
    words = (
        f"With logarithms a gradient takes at least {least:.1f} times as long as a product, at every size."
    )
    return [Check("cheap", words, least > 1.0)]


def tables(results: Results) -> dict[str, str]:
    return {axis.name: _sizes(results, axis) for axis in AXES}


def _sizes(results: Results, axis: Axis) -> str:
    headings = ["µs of a sequence", *(title for *_, title in COLUMNS)]
    headings += ["products in a gradient, log", "scaled", "kept, pairs", "kept, vectors"]
    columns = [per_sequence(results, axis, mode, measured) for mode, measured, _ in COLUMNS]
    rows = []
    for cells in zip(*columns, strict=True):
        row, seconds = cells[0][0], [value for _, value in cells]
        kept = [cells[n][0]["kept_bytes"] / row["n_sequences"] / KILO for n in (1, 3)]
        rows.append(
            [
                f"T = {row['length']}, L = {row['n_labels']}, k = {row['order']}",
                *(f"{value:,.1f}" for value in seconds),
                f"{seconds[0] / seconds[1]:.1f}",
                f"{seconds[2] / seconds[3]:.1f}",
                *(f"{value:,.1f} kB" for value in kept),
            ]
        )
    return markdown(headings, rows)


def pictures(results: Results) -> dict[str, Figure]:
    words = f"Lines of dots rise as the paper says, as T L^(k+1); one thread of {results.machine}"
    figure = titled_figure((15.0, 5.2), "What a sequence takes: gradient, Hessian product, best path", words)
    panels = zip(figure.subplots(1, 3), AXES, strict=True)
    name_ends(figure, [(axes, _draw(axes, results, axis)) for axes, axis in panels])
    return {"cost": figure}


def _draw(axes: Axes, results: Results, axis: Axis) -> list[End]:
    grows = "label tuples at a position, L^(k+1)" if axis.name == "order" else axis.words
    labelled_axes(axes, grows, "µs of a sequence", log_x=True, log_y=True)
    lines = []
    for mode, measured, title in COLUMNS:
        points = [(axis.value(row), value) for row, value in per_sequence(results, axis, mode, measured)]
        lines.append((title, points, measured == PRODUCT))
        if measured == PRODUCT and points:
            end_x, end_y = points[-1]
            law = [end_y * (x / end_x) ** axis.power for x, _ in points]
            axes.plot([x for x, _ in points], law, color=QUIET, linewidth=1.0, linestyle=":", zorder=1)
    return draw_lines(axes, lines)
