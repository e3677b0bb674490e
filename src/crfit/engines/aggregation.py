"""The objective in which the attributes of a group share their weights.

The weights u of the groups determine those of their members (`crfit.data.merging`),

    w = r + P u,   (P u)[a, y] = u[groups[a], y] / sqrt(n_g),   scores = x.r + x~.u

with n_g the size of group g. The values x~ of the groups and the scores x.r of a constant part r,
float64[N, Y], are computed once, so an evaluation costs as much as on data with one attribute per group. The
value equals F(w), minus ``(l2/2) |r|^2`` if r is orthogonal to the span of the groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.data.merging import aggregate_attributes, aggregate_layout
from crfit.errors import CapabilityError, OptionError
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.engine_objective import EngineObjective
    from crfit.layout import Layout

#: Size of the products of one block of positions: 8 MB of float64.
BLOCK = 2**20


def aggregate_objective(
    objective: EngineObjective, groups: ArrayLike, base: Vector | None = None
) -> EngineObjective:
    """The objective of the groups (int[A], 0 to G - 1) on the same engine; `base` is r above."""
    if objective.centre is not None or objective.l2_scale is not None:
        what = "pulls toward old weights" if objective.l2_scale is None else "has an l2 per group"
        remedy = f"{what}, which groups cannot share: use lbfgs or newton_cg"
        raise CapabilityError("objective", type(objective).__name__, remedy)
    offsets = objective.offsets
    if base is not None:
        _check_base(objective, base)
        constant = position_scores(objective.dataset, objective.layout, base)
        offsets = constant if offsets is None else offsets + constant
    engine: Any = type(objective)
    aggregated: EngineObjective = engine(
        aggregate_attributes(objective.dataset, groups),
        aggregate_layout(objective.layout, groups),
        l1=objective.l1,
        l2=objective.l2,
        n_threads=objective.n_threads,
        arithmetic=objective.arithmetic,
        offsets=offsets,
        constraints=objective.constraints,
    )
    return aggregated


def _check_base(objective: EngineObjective, base: Vector) -> None:
    if "offsets" not in objective.capabilities:
        raise CapabilityError("engine", type(objective).__name__, "lacks constant scores: leave base out")
    if base.shape != (objective.n_weights,):
        raise OptionError("base", f"shape {base.shape}", f"give {objective.n_weights} weights")
    if base[objective.layout.n_state_weights :].any():
        raise OptionError("base", "weights of label n-grams", "only weights of attributes can be constant")


def position_scores(dataset: Dataset, layout: Layout, w: Vector) -> NDArray[np.float64]:
    """Scores of the labels at each position from attribute weights only, float64[N, Y]."""
    table, labels = _weight_table(layout, w)
    scores = np.zeros((dataset.n_tokens, layout.n_labels))
    n_occurrences, values = len(dataset.attr_ids), dataset.attr_values
    step = max(1, BLOCK // max(1, len(labels)))
    for begin in range(0, n_occurrences, step):
        span = slice(begin, min(begin + step, n_occurrences))
        products = table[dataset.attr_ids[span]]  # [block, labels]
        if values is not None:
            products = products * values[span, None]
        tokens = np.searchsorted(dataset.attr_ptr, np.arange(span.start, span.stop), side="right") - 1
        first = np.flatnonzero(np.diff(tokens, prepend=-1))
        scores[tokens[first, None], labels] += np.add.reduceat(products, first, axis=0)
    return scores


def _weight_table(layout: Layout, w: Vector) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Weights by attribute and label, float64[A, L], and the L labels that have weights."""
    A, Y = layout.n_attributes, layout.n_labels
    state = w[: layout.n_state_weights]
    if layout.state_ptr is None or layout.state_labels is None:
        return state.reshape(A, Y), np.arange(Y)
    labels = np.unique(layout.state_labels).astype(np.int64)
    table = np.zeros((A, len(labels)))
    attributes = np.repeat(np.arange(A), np.diff(layout.state_ptr))
    table[attributes, np.searchsorted(labels, layout.state_labels)] = state
    return table, labels
