"""The tasks of the group, one for each size that grows, and how each is measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from crfit.curvature import Curvature

from bench.corpora.made_chains import chains
from bench.figures.base import Row, Task
from bench.figures.newton_cg.measuring import MODES
from bench.setting import Setting
from crfit import make_objective
from crfit.engines import make_inference

__all__ = ["AXES", "BEST_PATH", "GRADIENT", "OURS", "PAPER", "PRODUCT", "Axis", "Size", "measure", "tasks"]

PROBLEM = "chains-made"
#: The paper's arithmetic and crfit's, as `newton_cg` names them.
PAPER, OURS = "log, pairs kept", "scaled, vectors kept"
GRADIENT, PRODUCT, BEST_PATH = "gradient", "product", "best path"
CALLS = 5  # timed; their median counts
#: Label tuples of all sequences together: kept pair marginals take eight bytes for each.
TUPLES, QUICK_TUPLES = 4_000_000, 200_000


@dataclass(frozen=True)
class Size:
    """A chain: its positions, its labels, and how many of those before it a label looks at."""

    length: int
    n_labels: int
    order: int

    @property
    def tuples(self) -> int:
        """Of labels that meet at a position."""
        return int(self.n_labels ** (self.order + 1))


@dataclass(frozen=True)
class Axis:
    """A size that grows while the others stay.

    Parameters
    ----------
    name : str
        In ids of tasks, in rows and as the name of a table.
    words : str
        What grows.
    sizes, quick : tuple of Size
        From small to large; those of the quick version.
    power : float
        Of what grows, that the paper gives: with the order grows L^(k+1).
    """

    name: str
    words: str
    sizes: tuple[Size, ...]
    quick: tuple[Size, ...]
    power: float

    def value(self, row: Row) -> float:
        """What the power is of."""
        if self.name == "order":
            return float(row["n_labels"] ** (row["order"] + 1))
        return float(row[self.name])


def _lengths(*values: int) -> tuple[Size, ...]:
    return tuple(Size(length, 12, 1) for length in values)


def _labels(*values: int) -> tuple[Size, ...]:
    return tuple(Size(32, n_labels, 1) for n_labels in values)


def _orders(n_labels: int) -> tuple[Size, ...]:
    return tuple(Size(32, n_labels, order) for order in (1, 2, 3))


AXES = (
    Axis("length", "length T", _lengths(8, 16, 32, 64, 128, 256), _lengths(8, 16, 32, 64), 1.0),
    Axis("n_labels", "labels L", _labels(4, 8, 16, 32, 64), _labels(4, 8, 16, 32), 2.0),
    Axis("order", "order k", _orders(8), _orders(4), 1.0),
)


def tasks(quick: bool) -> list[Task]:
    tuples = QUICK_TUPLES if quick else TUPLES
    return [
        Task(
            axis.name,
            PROBLEM,
            {
                "axis": axis.name,
                "sizes": " ".join(
                    f"{s.length}-{s.n_labels}-{s.order}" for s in (axis.quick if quick else axis.sizes)
                ),
                "tuples": tuples,
            },
            300.0,
        )
        for axis in AXES
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    for text in task.settings["sizes"].split():
        yield from _measured(Size(*map(int, text.split("-"))), task.settings["tuples"])


def _measured(size: Size, tuples: int) -> Iterator[Row]:
    """Median seconds of each call on all sequences, and what is kept for a product."""
    n_sequences = max(1, tuples // (size.length * size.tuples))
    data = chains(n_sequences, size.length, size.n_labels)
    facts = {"row": "cost", "length": size.length, "n_labels": size.n_labels, "order": size.order}
    facts["n_sequences"] = n_sequences
    rng = np.random.default_rng(0)
    for mode in (PAPER, OURS):
        arithmetic, kept = MODES[mode]
        objective = make_objective(
            data,
            weights="all",
            order=size.order,
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
        product = partial(objective.hvp, v, out=out)
        yield {
            **told,
            "measured": PRODUCT,
            "seconds": _median(product),
            "kept_bytes": objective.curvature_bytes,
        }
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
