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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.claims import AT_MOST, Claim, Found
from bench.corpora.generated import chains
from bench.papers.newton_cg.entries import MODES, OUR_MODE, PAPER_MODE
from bench.papers.newton_cg.measuring import timed
from bench.pictures import Line, Panel, curves_picture
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, table_of
from crfit import make_objective
from crfit.engines import make_inference
from crfit.engines.objective import Curvature
from crfit.pictures import QUIET

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
MICRO = 1e6


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


_LENGTHS = tuple((length, 12, 1) for length in (8, 16, 32, 64, 128, 256))
_LABELS = tuple((32, n_labels, 1) for n_labels in (4, 8, 16, 32, 64))
_ORDERS, _QUICK_ORDERS = (tuple((32, n_labels, order) for order in (1, 2, 3)) for n_labels in (8, 4))
AXES = (
    Axis("length", "length T", _LENGTHS, _LENGTHS[:4], 1.0),
    Axis("n_labels", "labels L", _LABELS, _LABELS[:4], 2.0),
    Axis("order", "order k", _ORDERS, _QUICK_ORDERS, 1.0, largest=2),
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
        asked: dict[str, Any] = {"weights": "all", "order": order, "arithmetic": arithmetic}
        objective = make_objective(data, n_threads=1, **asked)
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
    return statistics.median(timed(call, CALLS))


def by_size(results: Results, axis: Axis) -> dict[float, dict[tuple[str, str], Row]]:
    """Rows by arithmetic and call of each size, from the smallest on, with µs and bytes of a sequence."""
    sizes: dict[float, dict[tuple[str, str], Row]] = {}
    for row in results.where(axis=axis.name):
        kept = None if row["kept_bytes"] is None else row["kept_bytes"] / row["n_sequences"]
        taken = {"time": MICRO * row["seconds"] / row["n_sequences"], "space": kept}
        sizes.setdefault(axis.value(row), {})[row["mode"], row["measured"]] = {**row, **taken}
    return dict(sorted(sizes.items()))


def _products_in_a_gradient(mode: str, size: dict[tuple[str, str], Row]) -> float:
    return float(size[mode, GRADIENT]["time"] / size[mode, PRODUCT]["time"])


def power(axis: Axis, points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of log y against log x over the largest sizes; None where there are too few."""
    last = [(math.log(x), math.log(y)) for x, y in points][-axis.largest :]
    if len(last) < axis.largest:
        return None
    return statistics.linear_regression(*zip(*last, strict=True)).slope


def _powers(results: Results) -> Iterator[Found]:
    """Of time and space against each of the three sizes, in both arithmetics."""
    for what, axis in product(("time", "space"), AXES):
        sizes = by_size(results, axis).items()
        found = {
            mode: power(axis, [(x, size[mode, PRODUCT][what]) for x, size in sizes]) for mode in (PAPER, OURS)
        }
        told = [f"{axis.grows} to the {x:.2f} ({mode})" for mode, x in found.items() if x is not None]
        if sizes:
            yield Found(
                f"{what} against the {axis.words}",
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
    sizes = [size for axis in AXES for size in by_size(results, axis).values()]
    least = min((_products_in_a_gradient(PAPER, size) for size in sizes), default=0.0)
    text = f"With logarithms a gradient takes at least {least:.1f} times as long as a product, at every size."
    return [Check("cheap", text, least > 1.0)]


def tables(results: Results) -> dict[str, str]:
    def of(
        call: tuple[str, str], name: str, heading: str, unit: str = "", factor: float = 1.0
    ) -> Column[Any]:
        return Column(heading, lambda size: factor * size[call][name], ",.1f", unit)

    size_words = "T = {length}, L = {n_labels}, k = {order}"
    columns = [
        Column("µs of a sequence", lambda size: size_words.format(**size[PAPER, GRADIENT])),
        *(of((mode, measured), "time", title) for mode, measured, title in COLUMNS),
        Column("products in a gradient, log", partial(_products_in_a_gradient, PAPER), ".1f"),
        Column("scaled", partial(_products_in_a_gradient, OURS), ".1f"),
        of((PAPER, PRODUCT), "space", "kept, pairs", " kB", 1e-3),
        of((OURS, PRODUCT), "space", "kept, vectors", " kB", 1e-3),
    ]
    return {axis.name: table_of(by_size(results, axis).values(), *columns) for axis in AXES}


def pictures(results: Results) -> dict[str, Figure]:
    words = f"Lines of dots rise as the paper says, as T L^(k+1); one thread of {results.machine}"
    title = "What a sequence takes: gradient, Hessian product, best path"
    panels = []
    for axis in AXES:
        sizes = by_size(results, axis).items()
        lines = [
            Line(name, [(x, size[mode, measured]["time"]) for x, size in sizes], measured == PRODUCT)
            for mode, measured, name in COLUMNS
        ]
        grows = "label tuples at a position, L^(k+1)" if axis.name == "order" else axis.words
        panels.append(Panel(grows, "µs of a sequence", lines, "xy", more=partial(_laws, axis, lines)))
    return {"cost": curves_picture(title, words, panels, columns=3, size=(15.0, 5.2))}


def _laws(axis: Axis, lines: list[Line], axes: Axes) -> None:
    """The paper's slope, from the last point of each line of products."""
    for line in lines:
        if line.strong and line.points:
            end_x, end_y = line.points[-1]
            law = [end_y * (x / end_x) ** axis.power for x, _ in line.points]
            axes.plot([x for x, _ in line.points], law, color=QUIET, linewidth=1.0, linestyle=":", zorder=1)
