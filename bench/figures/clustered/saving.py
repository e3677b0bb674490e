"""What lossless merging saves: attributes with the same occurrences are one variable, with the same optimum.

Both forms of the data are measured in turns: a gradient, an iteration of L-BFGS with a full memory, and the
default trainer to a gap. The search for equal attributes and the making of the merged data come on top.

Positions with the same attributes share their scores in the native core, in both forms, where that pays; how
many different ones there are is counted.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from crfit.dataset.equal_rows import distinct_tokens
from crfit.dataset.merging import aggregate_attributes, aggregate_layout, equal_attributes

import crfit
from bench.figures.base import Row
from bench.figures.clustered.running import GAP
from bench.optimum import StoredOptimum
from bench.problems import Loaded
from bench.setting import THREADS
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning

__all__ = ["FORMS", "SAVING", "saving"]

SAVING = "saving"  # value of the column ``row``
FORMS = ("as it is", "merged")
GRADIENTS, ROUNDS = 5, 3
#: Iterations of L-BFGS that count: the memory of ten pairs is full.
FIRST, LAST = 11, 20


def saving(loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    """A row for each form."""
    begin = time.perf_counter()
    groups = equal_attributes(loaded.train)
    searched = time.perf_counter() - begin
    merged = aggregate_attributes(loaded.train, groups)
    made = time.perf_counter() - begin - searched
    plain = loaded.objective(THREADS)
    fewer = crfit.make_objective(
        merged, aggregate_layout(plain.layout, groups), l2=loaded.problem.l2, n_threads=THREADS
    )
    objectives = dict(zip(FORMS, (plain, fewer), strict=True))
    for objective in objectives.values():
        objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    measured: dict[str, dict[str, list[float]]] = {form: {} for form in FORMS}
    for _ in range(ROUNDS):
        for form, objective in objectives.items():
            found = measured[form]
            found.setdefault("gradient_seconds", []).extend(_gradients(objective))
            found.setdefault("iteration_seconds", []).extend(_iterations(objective))
    for form, objective in objectives.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            stop = crfit.Stop(objective=best.objective * (1.0 + GAP), max_passes=1000)
            result = crfit.train(objective, "auto", stop=stop)
        yield {
            "row": SAVING,
            "form": form,
            "n_attributes": objective.dataset.n_attributes,
            "n_weights": objective.n_weights,
            "n_occurrences": objective.dataset.n_occurrences,
            "n_positions": objective.dataset.n_tokens,
            "n_distinct": len(distinct_tokens(objective.dataset)[1]),
            **{name: statistics.median(values) for name, values in measured[form].items()},
            "training_seconds": result.seconds,
            "training_passes": result.passes,
            "end_gap": result.objective / best.objective - 1.0,
            "search_seconds": searched if form == FORMS[1] else 0.0,
            "making_seconds": made if form == FORMS[1] else 0.0,
        }


def _gradients(objective: EngineObjective) -> Iterator[float]:
    w = np.random.default_rng(0).normal(size=objective.n_weights) * 0.1
    out = np.empty_like(w)
    call: Callable[[], object] = partial(objective.value_and_grad, w, out=out)
    for _ in range(GRADIENTS):
        begin = time.perf_counter()
        call()
        yield time.perf_counter() - begin


def _iterations(objective: EngineObjective) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        history = crfit.train(objective, "lbfgs", stop=crfit.Stop(grad_inf=0.0, max_iter=LAST)).history
    ends = [step.seconds for step in history if step.iteration >= FIRST - 1]
    return [after - before for before, after in pairwise(ends)]
