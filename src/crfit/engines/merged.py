"""The objective with one weight for attributes that are the same, and the way back to all weights.

`crfit.data.merging` has the mathematics: nothing is lost with l1 = 0. The trainer sees fewer weights,

    dataset, layout  ->  equal attributes merged  ->  train()  ->  w = P u, weights of all attributes,

and the model all of them. Callbacks, checkpoints and the history are about the merged weights: the objective
and the norm of the gradient are the same numbers there, the largest entry of the gradient may be larger by
sqrt(n).

It pays where vectors as long as the weights take a good part of the time, as L-BFGS's pairs do when every
(attribute, label) pair has a weight. A pass over the data takes as long as before: positions lose few
occurrences, and the others get values.
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
)
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines import EngineObjective
    from crfit.layout import Layout

#: What ``merge`` may be.
MergeOption: TypeAlias = Literal["auto"] | bool

#: Share of the attributes that must go before "auto" merges.
MIN_SHARE = 0.1

#: Weights that must go before "auto" merges: per attribute occurrence, because merging takes as long as a
#: dozen gradients while an iteration saves on weights alone, and in all, because small problems take no time
#: anyway.
MIN_PER_OCCURRENCE = 0.25
MIN_WEIGHTS = 100_000


@dataclass(frozen=True, eq=False)
class Merging:
    """A problem with all attributes, and the objective of the merged one."""

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
        """Strength of the l2 penalty, the same for all weights and for merged ones."""
        return self.objective.l2

    @property
    def summary(self) -> dict[str, int]:
        """How many attributes and weights were trained, ready for JSON."""
        return {"attributes": self.objective.layout.n_attributes, "weights": self.objective.n_weights}

    def expand(self, u: Vector) -> Vector:
        """Return the weights of all attributes, float64[layout.n_weights]."""
        return expand_weights(self.layout, self.objective.layout, self.groups, u)

    def held_out(self, dataset: Dataset) -> Dataset:
        """Return held-out data in the ids and values of the merged data.

        Exact for every position: members of a group that are absent there add nothing.
        """
        return aggregate_attributes(recode(dataset, self.dataset), self.groups)

    def grad_inf(self, u: Vector) -> float:
        """Return the largest absolute entry of the gradient in all weights."""
        _, gradient = self.objective.value_and_grad(self.objective.xp.asarray(u))
        return float(np.abs(self.expand(gradient)).max(initial=0.0))


def merge_equal(objective: EngineObjective, *, always: bool) -> Merging | None:
    """Merge equal attributes; None if all differ or, unless `always`, if it saves too little."""
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
