"""Training with one weight for attributes that are the same, and the way back to all weights.

`crfit.data.merging` has the mathematics: nothing is lost with l1 = 0. Who trains sees fewer weights,

    dataset, layout  ->  equal attributes merged  ->  train()  ->  w = P u, weights of all attributes,

and who tags sees none of it. Callbacks, checkpoints and the history are about the merged weights: the
objective and the norm of the gradient are the same numbers there, the largest entry of the gradient may be
larger by sqrt(n).

It pays where vectors as long as the weights take a good part of the time, as L-BFGS's pairs do when every
(attribute, label) pair has a weight. A pass over the data takes as long as before: positions lose few
occurrences, and the others get values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import trainers
from crfit.data.dataset import recode
from crfit.data.merging import (
    aggregate_attributes,
    aggregate_layout,
    equal_attributes,
    expand_weights,
    project_weights,
)
from crfit.errors import OptionError
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines import EngineObjective
    from crfit.layout import Layout
    from crfit.trainers import Trainer
    from crfit.training.records import RunState

__all__ = ["MergeOption", "Merging", "choose_merging"]

#: What ``merge`` may be.
MergeOption: TypeAlias = Literal["auto"] | bool

#: Share of the attributes that must fall away before "auto" merges.
MIN_SHARE = 0.1

#: Weights that must fall away, for "auto": so many for each attribute occurrence, because merging takes as
#: long as a dozen gradients while an iteration saves on weights alone, and so many at all, because small
#: problems take no time anyway.
MIN_PER_OCCURRENCE = 0.25
MIN_WEIGHTS = 100_000

#: How far, relative to the largest weight, members of a group may differ in a starting point.
SAME_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Merging:
    """A problem with all attributes, and the objective of the merged one.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences with all attributes.
    layout : Layout
        Of all weights.
    groups : int32 array of shape (A,)
        Group of each attribute.
    objective : EngineObjective
        On the merged data.
    """

    dataset: Dataset
    layout: Layout
    groups: NDArray[np.int32]
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
        """Give the weights of all attributes, float64[layout.n_weights].

        Parameters
        ----------
        u : float64[objective.n_weights]
            Merged weights.
        """
        return expand_weights(self.layout, self.objective.layout, self.groups, u)

    def project(self, w: Vector) -> Vector:
        """Give the merged weights nearest to given ones, float64[objective.n_weights].

        Parameters
        ----------
        w : float64[layout.n_weights]
            Weights of all attributes.
        """
        return project_weights(self.layout, self.objective.layout, self.groups, w)

    def held_out(self, dataset: Dataset) -> Dataset:
        """Give held-out data in the ids and values of the merged data.

        Exact for every position: members of a group that are absent there add nothing.

        Parameters
        ----------
        dataset : Dataset
            With any alphabets.
        """
        return aggregate_attributes(recode(dataset, self.dataset), self.groups)

    def grad_inf(self, u: Vector) -> float:
        """Give the largest absolute entry of the gradient in all weights.

        Parameters
        ----------
        u : float64[objective.n_weights]
            Merged weights.
        """
        _, gradient = self.objective.value_and_grad(self.objective.xp.asarray(u))
        return float(np.abs(self.expand(gradient)).max(initial=0.0))


def choose_merging(
    objective: EngineObjective,
    trainer: Trainer,
    merge: MergeOption,
    w0: Vector | None = None,
    state: RunState | None = None,
) -> Merging | None:
    """Merge equal attributes if that is wanted, and worth it.

    Parameters
    ----------
    objective : EngineObjective
        With all attributes.
    trainer : Trainer
        Which is to minimise it.
    merge : {"auto", True, False}
        "auto" merges for trainers that are registered so, where a tenth of the attributes falls away and
        enough weights do; a resumed run goes on as it began.
    w0 : array of float64 [n_weights], optional
        Starting point.
    state : RunState, optional
        The run to go on with.

    Returns
    -------
    Merging or None
        None if the objective is to be minimised as it is.

    Raises
    ------
    OptionError
        True cannot be done, or the run to go on with has another setting.
    """
    wanted = _wanted(objective, trainer, merge, state)
    if wanted is False:
        return None
    data, layout = objective.dataset, objective.layout
    groups = equal_attributes(data, layout.n_free)
    merged_layout = aggregate_layout(layout, groups)
    n_merged = layout.n_attributes - merged_layout.n_attributes
    if n_merged == 0 or (wanted == "auto" and not _pays(data, layout, merged_layout)):
        return None
    if merge is True and state is not None and not _was_merged(state):
        remedy = "the run to go on with was not merged: leave it out, or begin a new run"
        raise OptionError("merge", merge, remedy)
    start = None if w0 is None else _checked_start(w0, layout)
    if w0 is not None and start is None:
        return None  # `train` refuses it
    if start is not None and not _is_shared(start, layout, merged_layout, groups):
        if wanted == "auto":
            return None
        remedy = "equal attributes have different weights there: leave merge out, or w0"
        raise OptionError("merge", merge, remedy)
    merged = objective.aggregated(groups)
    merged.n_merged = n_merged
    return Merging(data, layout, groups, merged)


def _was_merged(state: RunState) -> bool:
    return state.facts.get("n_merged", 0) > 0


def _wanted(
    objective: EngineObjective, trainer: Trainer, merge: MergeOption, state: RunState | None
) -> MergeOption:
    """What the user and the run to go on with say: True, False, or "auto" where it may pay."""
    if merge != "auto" and not isinstance(merge, bool):
        raise OptionError("merge", merge, "give True, False or 'auto'")
    if merge is False and state is not None and _was_merged(state):
        remedy = "the run to go on with was merged: leave it out, or begin a new run"
        raise OptionError("merge", merge, remedy)
    if merge is True and objective.l1 > 0.0:
        remedy = "with l1 > 0 merged weights would be penalised more: take l1=0, or leave it out"
        raise OptionError("merge", merge, remedy)
    if merge != "auto":
        return merge
    if state is not None:
        return _was_merged(state)
    return "auto" if _may_pay(objective, trainer) else False


def _may_pay(objective: EngineObjective, trainer: Trainer) -> bool:
    """Whether it is worth while to look for equal attributes."""
    info = trainers.info_of(trainer)
    if info is None or not info.merges or objective.l1 > 0.0:
        return False
    return objective.layout.n_state_weights >= _enough_weights(objective.dataset)


def _pays(dataset: Dataset, layout: Layout, merged_layout: Layout) -> bool:
    """Whether enough falls away."""
    fewer = layout.n_attributes - merged_layout.n_attributes
    fewer_weights = layout.n_weights - merged_layout.n_weights
    return fewer >= MIN_SHARE * layout.n_attributes and fewer_weights >= _enough_weights(dataset)


def _enough_weights(dataset: Dataset) -> float:
    return max(MIN_WEIGHTS, MIN_PER_OCCURRENCE * dataset.n_occurrences)


def _checked_start(w0: object, layout: Layout) -> Vector | None:
    """A starting point as an array; None if it is none."""
    try:
        w = np.asarray(to_numpy(w0), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return w if w.shape == (layout.n_weights,) and np.isfinite(w).all() else None


def _is_shared(w: Vector, layout: Layout, merged_layout: Layout, groups: NDArray[np.int32]) -> bool:
    """Whether equal attributes have equal weights."""
    nearest = expand_weights(layout, merged_layout, groups, project_weights(layout, merged_layout, groups, w))
    return bool(np.abs(w - nearest).max(initial=0.0) <= SAME_WEIGHT * np.abs(w).max(initial=0.0))
