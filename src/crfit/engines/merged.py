"""Train with equal attributes merged, and expand the result to all weights.

With l1 = 0 merging does not change the optimum (`crfit.data.merging` has the mathematics):

    dataset, layout  ->  equal attributes merged  ->  train()  ->  w = P u, weights of all attributes

The trainer, callbacks, checkpoints and history see the merged weights, the model has all of them. The
objective and the norm of the gradient are the same for both; the largest entry of the merged gradient can be
larger by a factor of sqrt(n).

Merging pays off if operations on weight vectors take much of the time, for example L-BFGS's curvature pairs
when every (attribute, label) pair has a weight. A pass over the data takes as long as before: positions lose
few occurrences, and the remaining ones get values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.data.dataset import recode
from crfit.data.merging import (
    aggregate_attributes,
    aggregate_layout,
    equal_attributes,
    expand_weights,
    merge_weights,
)
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines import EngineObjective
    from crfit.layout import Layout

#: Allowed values of ``merge``.
MergeOption: TypeAlias = Literal["auto"] | bool

#: "auto" merges only if it removes at least this fraction of the attributes.
MIN_SHARE = 0.1

#: "auto" merges only if it removes this many weights: per attribute occurrence, because merging costs as much
#: as a dozen gradients and only saves work on weights, and in total, because small problems are fast anyway.
MIN_PER_OCCURRENCE = 0.25
MIN_WEIGHTS = 100_000


@dataclass(frozen=True, eq=False)
class Merging:
    """The problem with all attributes, and the objective with merged attributes."""

    dataset: Dataset
    layout: Layout
    groups: NDArray[np.int32]  # of each attribute
    objective: EngineObjective

    @property
    def l1(self) -> float:
        """Strength of the l1 penalty, 0."""
        return self.objective.l1

    @property
    def l2(self) -> float:
        """Strength of the l2 penalty, the same with and without merging."""
        return self.objective.l2

    @property
    def summary(self) -> dict[str, int]:
        """Numbers of merged attributes and weights, as JSON types."""
        return {"attributes": self.objective.layout.n_attributes, "weights": self.objective.n_weights}

    def expand(self, u: Vector) -> Vector:
        """Return the weights of all attributes, float64[layout.n_weights]."""
        return expand_weights(self.layout, self.objective.layout, self.groups, u)

    def merge(self, w: Vector) -> Vector:
        """Return the merged weights that are closest to the weights of all attributes."""
        return merge_weights(self.layout, self.objective.layout, self.groups, w)

    def held_out(self, dataset: Dataset) -> Dataset:
        """Return held-out data with the ids and values of the merged data.

        This is exact at every position: absent members of a group contribute nothing.
        """
        return aggregate_attributes(recode(dataset, self.dataset), self.groups)

    def grad_inf(self, u: Vector) -> float:
        """Return the largest absolute entry of the gradient with respect to all (unmerged) weights."""
        _, gradient = self.objective.value_and_grad(self.objective.xp.asarray(u))
        return float(np.abs(self.expand(gradient)).max(initial=0.0))


def merge_equal(objective: EngineObjective, *, always: bool) -> Merging | None:
    """Merge equal attributes; None if all differ or, unless `always`, if merging saves too little."""
    data, layout = objective.dataset, objective.layout
    enough = max(MIN_WEIGHTS, MIN_PER_OCCURRENCE * data.n_occurrences)
    if not always and (objective.l1 > 0.0 or layout.n_state_weights < enough):
        return None
    groups = equal_attributes(data, layout.n_free)
    merged_layout = aggregate_layout(layout, groups)
    n_merged = layout.n_attributes - merged_layout.n_attributes
    pays = (
        n_merged >= MIN_SHARE * layout.n_attributes and layout.n_weights - merged_layout.n_weights >= enough
    )
    if n_merged == 0 or not (always or pays):
        return None
    merged = objective.aggregated(groups)
    merged.n_merged = n_merged
    return Merging(data, layout, groups, merged)
