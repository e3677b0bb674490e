"""From fine weights to the objective of their clusters.

Weights that may be clustered are those of attributes: the first of the vector, free ones such as an intercept
apart. Label n-grams, boundaries and edges are few and move on their own. An objective that knows no layout is
clustered as a whole.

Where the members of a cluster are whole attributes, that is with clustering="rows", or where each attribute
has one weight as in a classifier of two labels, the coarse objective can be evaluated on data whose
attributes are the clusters, made once for a clustering (`AggregatedObjective`); otherwise gradients are
summed over the clusters (`ClusteredObjective`). Both are the same function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from crfit.errors import CapabilityError, OptionError
from crfit.trainers.quasi_newton.change_of_variables import AggregatedObjective, ClusteredObjective, Clusters
from crfit.trainers.quasi_newton.clusterings import chunks, kmeans, row_clusters, row_groups, temporal
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.engines.objective import Objective
    from crfit.layout import Layout

__all__ = ["Aggregate", "ClusteringName", "coarse_objective", "default_factor", "find_clusters"]

ClusteringName: TypeAlias = Literal["chunks", "kmeans", "temporal", "rows"]
Aggregate: TypeAlias = Literal["auto"] | bool

#: Weights per cluster unless the user says so: for classifiers, and for chains of more than one position.
CLASSIFIER_FACTOR, CHAIN_FACTOR = 10, 5

#: Weights per cluster from which merged data pays. Of documents it takes as long to make as a hundred
#: evaluations, which with fifty words to a cluster are twice as fast; of chains as long as four, which with
#: five attributes to a cluster are a third faster.
CLASSIFIER_PAYS, CHAIN_PAYS = 100, 4


def default_factor(objective: Objective) -> int:
    """Weights per cluster that suit an objective."""
    return CHAIN_FACTOR if _has_chains(objective) else CLASSIFIER_FACTOR


def find_clusters(
    objective: Objective,
    w: Vector,
    change: Vector | None,
    clustering: ClusteringName,
    factor: int,
    span: float | None = None,
) -> Clusters | None:
    """Cluster weights; None if all that may be clustered are equal."""
    layout: Layout | None = getattr(objective, "layout", None)
    w = to_numpy(w)
    n = len(w) if layout is None else layout.free.start  # weights that may be clustered come first
    part = w[:n]
    if n == 0 or part.min() == part.max():
        return None
    groups = None
    if clustering == "rows":
        if layout is None:
            remedy = f"{type(objective).__name__} has no attributes: take 'chunks'"
            raise OptionError("clustering", clustering, remedy)
        groups = row_groups(layout, w, factor)
        cmap = row_clusters(layout, groups)
    elif clustering == "chunks":
        cmap = chunks(part, factor, span)
    elif clustering == "kmeans":
        cmap = kmeans(part, factor)
    else:
        if change is None:
            raise OptionError("clustering", clustering, "give the change of the weights")
        cmap = temporal(part, to_numpy(change)[:n], factor)
    n_clusters = int(cmap.max()) + 1
    cmap = np.concatenate((cmap, n_clusters + np.arange(len(w) - len(cmap))))
    if groups is None and layout is not None and _one_weight_each(layout):
        groups = cmap[: layout.n_attributes]
    return Clusters(cmap, groups, objective.xp)


def coarse_objective(
    objective: Objective, clusters: Clusters, base: Vector | None, aggregate: Aggregate
) -> ClusteredObjective:
    """Make the objective of the clusters."""
    pays = (CHAIN_PAYS if _has_chains(objective) else CLASSIFIER_PAYS) * len(clusters)
    if aggregate is True or (aggregate == "auto" and len(clusters.cmap) >= pays):
        try:
            return _aggregated(objective, clusters, base)
        except OptionError as error:  # a CapabilityError is one too
            if aggregate is True:
                # What is refused is not this option, but the groups that it makes.
                why = error.remedy if error.option == "aggregate" else f"{error.value}: {error.remedy}"
                raise OptionError("aggregate", True, f"{why}; take 'auto' or false") from error
    return ClusteredObjective(objective, clusters, base)


def _aggregated(objective: Objective, clusters: Clusters, base: Vector | None) -> AggregatedObjective:
    if clusters.groups is None or not hasattr(objective, "aggregated"):
        raise CapabilityError(
            "aggregate",
            True,
            "clusters are not made of whole attributes: that takes clustering='rows', or a classifier of two "
            "labels",
        )
    return AggregatedObjective(objective, clusters, base)


def _has_chains(objective: Objective) -> bool:
    """Whether sequences of more than one position are known to be there."""
    dataset = getattr(objective, "dataset", None)
    return dataset is not None and not dataset.one_position


def _one_weight_each(layout: Layout) -> bool:
    """Whether each attribute has one weight, for the same label, so that a weight is an attribute."""
    if layout.state_ptr is None or layout.state_labels is None:
        return layout.n_labels == 1
    one_each = bool((np.diff(layout.state_ptr) == 1).all())
    return one_each and (len(layout.state_labels) == 0 or bool(np.ptp(layout.state_labels) == 0))
