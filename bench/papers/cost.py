"""Time and cache of gradients, Hessian-vector products and best paths against length, labels and order [1].

Synthetic chains (`bench.corpora.generated`), one thread, in log-domain arithmetic (the paper's) and in scaled
arithmetic (crfit's). All sizes have about the same number of label tuples in all, so they fit equally well
into the processor's caches.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bench import claims
from bench.claims import AT_MOST, Claim, Found
from bench.corpora.generated import chains
from bench.papers.newton_cg.entries import MODES, OUR_MODE, PAPER_MODE, SEE_COST
from bench.papers.newton_cg.measuring import timed
from bench.pictures import Line, Mark, Panel, Picture
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, table_of
from crfit import make_objective
from crfit.engines import make_inference
from crfit.engines.objective import Curvature

TITLE = "Seconds of gradients, Hessian products and best paths against length, labels and order"
PROBLEM = "chains-made"
#: The paper's arithmetic and crfit's.
PAPER, OURS = PAPER_MODE, OUR_MODE
GRADIENT, PRODUCT, BEST_PATH = "gradient", "product", "best path"
CALLS = 5  # timed calls; the median counts
#: Label tuples of all sequences together: cached pair marginals take eight bytes each.
TUPLES, QUICK_TUPLES = 4_000_000, 200_000
#: Tolerance of a measured power: what fits into the processor's caches changes with the size.
MORE = 0.2
#: Columns of the table, lines of the picture: arithmetic, call, name.
COLUMNS = (
    (PAPER, GRADIENT, "gradient, log-domain"),
    (PAPER, PRODUCT, "product, log-domain"),
    (OURS, GRADIENT, "gradient, scaled"),
    (OURS, PRODUCT, "product, scaled"),
    (OURS, BEST_PATH, "best path"),
)
MICRO = 1e6
#: Dotted lines are drawn above the products by this factor.
ABOVE = 1.7


@dataclass(frozen=True)
class Axis:
    """A size that grows while the others stay: (length, labels, order).

    `power` is the paper's, of the length, of the labels, or of L^(k+1) for the order. The measured power is
    taken over the `largest` sizes only; order 1 has its own loops.
    """

    name: str
    words: str
    sizes: tuple[tuple[int, int, int], ...]
    quick: tuple[tuple[int, int, int], ...]
    power: float
    largest: int = 3

    def value(self, row: Row) -> float:
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
    """Median seconds of each call on all sequences, and the bytes of the cache."""
    n_sequences = max(1, tuples // (length * n_labels ** (order + 1)))
    data = chains(n_sequences, length, n_labels)
    facts = {"row": "cost", "length": length, "n_labels": n_labels, "order": order}
    facts["n_sequences"] = n_sequences
    rng = np.random.default_rng(0)
    for mode in (PAPER, OURS):
        _, arithmetic, kept = MODES[mode]
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
    """Seconds of a call, after a first one that allocates."""
    call()
    return statistics.median(timed(call, CALLS))


def by_size(results: Results, axis: Axis) -> dict[float, dict[tuple[str, str], Row]]:
    """Rows of each size by arithmetic and call, with µs and bytes per sequence; smallest size first."""
    sizes: dict[float, dict[tuple[str, str], Row]] = {}
    for row in results.where(axis=axis.name):
        kept = None if row["kept_bytes"] is None else row["kept_bytes"] / row["n_sequences"]
        taken = {"time": MICRO * row["seconds"] / row["n_sequences"], "space": kept}
        sizes.setdefault(axis.value(row), {})[row["mode"], row["measured"]] = {**row, **taken}
    return dict(sorted(sizes.items()))


def _gradient_by_product(mode: str, size: dict[tuple[str, str], Row]) -> float:
    return float(size[mode, GRADIENT]["time"] / size[mode, PRODUCT]["time"])


def power(axis: Axis, points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of log y against log x over the largest sizes; None if there are too few."""
    last = [(math.log(x), math.log(y)) for x, y in points][-axis.largest :]
    if len(last) < axis.largest:
        return None
    return statistics.linear_regression(*zip(*last, strict=True)).slope


def _powers(results: Results) -> Iterator[Found]:
    """Powers of time and space against each of the three sizes, in both arithmetics."""
    for what, axis in product(("time", "space"), AXES):
        sizes = by_size(results, axis).items()
        found = {
            name: power(axis, [(x, size[mode, PRODUCT][what]) for x, size in sizes])
            for name, mode in ((claims.THEIRS, PAPER), (claims.OURS, OURS))
        }
        told = [f"{x:.2f} {claims.brief(name)}" for name, x in found.items() if x is not None]
        if sizes:
            yield Found(
                f"{what} against the {axis.words}",
                found if None not in found.values() else None,
                "; ".join(told),
                f"power of {axis.grows}: {axis.power:g}",
                (SEE_COST,),
                factor=axis.power + MORE,
            )


CLAIMS = (
    Claim(
        "a Hessian-vector product takes O(T L^(k+1)) time and space",
        "the power with which it grows, over the largest sizes,",
        AT_MOST,
        _powers,
        factor=None,
        also=f"{MORE:g} more is allowed, because what fits into the processor's caches changes with the size",
    ),
)


def checks(results: Results) -> list[Check]:
    """In log-domain arithmetic a product is cheaper than a gradient at every size."""
    sizes = [size for axis in AXES for size in by_size(results, axis).values()]
    least = min((_gradient_by_product(PAPER, size) for size in sizes), default=0.0)
    text = f"In log-domain arithmetic a gradient takes at least {least:.1f} times as long as a product."
    return [Check("cheap", text, least > 1.0)]


def tables(results: Results) -> dict[str, str]:
    def of(
        call: tuple[str, str], name: str, heading: str, unit: str = "", factor: float = 1.0
    ) -> Column[Any]:
        return Column(heading, lambda size: factor * size[call][name], ",.1f", unit)

    size_words = "T = {length}, L = {n_labels}, k = {order}"
    columns = [
        Column("µs per sequence", lambda size: size_words.format(**size[PAPER, GRADIENT])),
        *(of((mode, measured), "time", title) for mode, measured, title in COLUMNS),
        Column("gradient / product, log-domain", partial(_gradient_by_product, PAPER), ".1f"),
        Column("gradient / product, scaled", partial(_gradient_by_product, OURS), ".1f"),
        of((PAPER, PRODUCT), "space", "cache, log-domain", " kB", 1e-3),
        of((OURS, PRODUCT), "space", "cache, scaled", " kB", 1e-3),
    ]
    sizes = [size for axis in AXES for size in by_size(results, axis).values()]
    return {"sizes": table_of({columns[0].value(size): size for size in sizes}.values(), *columns)}


def pictures(results: Results) -> dict[str, Picture]:
    words = f"Dotted lines have the paper's slope, T L^(k+1). One thread of {results.machine}."
    panels = []
    for axis in AXES:
        sizes = by_size(results, axis).items()
        lines = [
            Line(name, [(x, size[mode, measured]["time"]) for x, size in sizes], name, measured == PRODUCT)
            for mode, measured, name in COLUMNS
        ]
        grows = "label tuples at a position, L^(k+1)" if axis.name == "order" else axis.words
        panels.append(Panel(grows, "µs per sequence", lines, "xy", marks=_laws(axis, lines)))
    return {"cost": Picture("Time of a gradient, a Hessian product and a best path", words, panels)}


def _laws(axis: Axis, lines: list[Line]) -> list[Mark]:
    """The paper's slope, a little above each line of products, which would hide it."""
    made = []
    for line in lines:
        if line.strong and line.points:
            end_x, end_y = line.points[-1]
            law = [(x, ABOVE * end_y * (x / end_x) ** axis.power) for x, _ in line.points]
            made.append(Mark(law, "dots"))
    return made
