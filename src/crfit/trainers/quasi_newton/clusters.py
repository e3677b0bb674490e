"""Clusters of weights that move together, and the objective on them.

A clustering is a map ``cmap`` from weights to clusters. With `factor` c there are about d / c clusters:

    chunks    weights in order of size, cut into runs of c                                      [1]
    kmeans    Lloyd's method on the weights, from d / c quantiles; clusters vary in size         [1]
    temporal  weights and their last changes, scaled to one variance: tiles of a plane
    rows      attributes by their weights for all labels: tiles of that space, cmap(a, y) = (c(a), y)

*Tiles* are chunks in several dimensions: points are sorted and cut along the first coordinate, each slab
along the second, and so on, along the last into runs of c. The number of cuts along a coordinate is
proportional to its spread, so tiles are about equally wide in all directions. Slabs are equal parts of the
sum of (x_{i+1} - x_i)^(2/(q+2)) over sorted points, q the number of coordinates: the density of centres that
k-means tends to [2], which keeps the few large weights in small clusters. k-means itself would compare d / c
centres with d points; tiles take one sort per coordinate and handle millions of weights. For rows the
coordinates are principal components, widest first, so the directions in which attributes differ most get the
cuts.

Every sort is stable: equal weights, of which there are many at the start, always fall into the same clusters.
Clusters are numbered by their first weight, so clusters of one weight give the identity.

Only weights of penalised attributes are clustered; they come first in the vector. Label n-grams, boundaries
and edges are few and stay single. An objective without a layout is clustered as a whole. If clusters consist
of whole attributes (clustering="rows", or one weight per attribute as in a classifier with two labels), the
coarse objective can be evaluated on data whose attributes are the clusters (`AggregatedObjective`); otherwise
gradients are summed over clusters (`ClusteredObjective`). Both are the same function.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
[2] P. Zador (1982). Asymptotic quantization error of continuous signals and the quantization dimension. IEEE
    Transactions on Information Theory 28, 139-149.
"""

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.engines.objective import Objective
from crfit.errors import CapabilityError, OptionError
from crfit.layout import Layout
from crfit.trainers.quasi_newton.change_of_variables import AggregatedObjective, ClusteredObjective, Clusters
from crfit.vectors import Vector, to_numpy

#: Maximum number of rounds of Lloyd's method; centres from quantiles hardly move after a few.
MAX_LLOYD = 20

#: With more labels, rows are compared in this many random directions.
MAX_COLUMNS = 32

ClusterMap = NDArray[np.int64]


def chunks(w: Vector, factor: int, span: float | None = None) -> ClusterMap:
    """Sort weights and cut them into runs of at most `factor`: ``ceil(d / factor)`` clusters.

    `span`, the largest difference between weights of a run, makes more clusters of the few extreme weights.
    """
    order = np.argsort(w, kind="stable")
    if span is None:
        run_of_rank = np.arange(len(w)) // factor
    else:
        ordered = w[order]
        # The run starting at rank r ends before rank r + factor or the first weight beyond `span`.
        ends = np.minimum(
            np.arange(len(w)) + factor, np.searchsorted(ordered, ordered + span, side="right")
        ).tolist()
        starts_run = np.zeros(len(w), dtype=np.int64)
        rank = 0
        while rank < len(w):
            starts_run[rank] = 1
            rank = ends[rank]
        run_of_rank = np.cumsum(starts_run) - 1
    return _by_first_member(_unsorted(run_of_rank, order))


def kmeans(w: Vector, factor: int) -> ClusterMap:
    """Lloyd's method in one dimension, from ``ceil(d / factor)`` quantiles; some clusters may end up empty.

    On sorted weights a cluster is an interval between the midpoints of neighbouring centres, and its mean a
    difference of running sums: a round costs k binary searches.
    """
    d = len(w)
    order = np.argsort(w, kind="stable")
    ordered = w[order]
    running = np.concatenate(([0.0], np.cumsum(ordered)))
    bounds = np.append(np.arange(0, d, factor), d)  # first rank of each cluster, and the end
    for _ in range(MAX_LLOYD):
        centres = np.diff(running[bounds]) / np.diff(bounds)
        inner = np.searchsorted(ordered, 0.5 * (centres[1:] + centres[:-1]))
        moved = np.concatenate(([0], inner, [d]))
        moved = moved[np.diff(moved, prepend=-1) > 0]  # drop empty clusters
        if np.array_equal(moved, bounds):
            break
        bounds = moved
    run_of_rank = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return _by_first_member(_unsorted(run_of_rank, order))


def temporal(w: Vector, change: Vector, factor: int) -> ClusterMap:
    """Cluster weights by their values and last changes: `tiles` of the plane, with equal variances."""
    spreads = float(w.std()), float(change.std())
    scale = spreads[0] / spreads[1] if spreads[1] > 0.0 else 0.0
    return tiles(np.stack([w, scale * change], axis=1), factor)


def row_groups(layout: Layout, w: Vector, factor: int) -> ClusterMap:
    """Cluster attributes by their weights for all labels, int64[A]; a pair without a weight counts as 0.

    Unpenalised attributes, such as an intercept, come last, in single clusters.
    """
    rows = _rows(layout, w)
    n_bound = layout.n_attributes - layout.n_free
    centred = rows[:n_bound] - rows[:n_bound].mean(axis=0) if n_bound else rows[:0]
    _, axes = np.linalg.eigh(centred.T @ centred)
    groups = tiles(centred @ axes[:, ::-1], factor)
    n_groups = int(groups.max()) + 1 if n_bound else 0
    return np.concatenate((groups, n_groups + np.arange(layout.n_free)))


def row_clusters(layout: Layout, groups: ClusterMap) -> ClusterMap:
    """Cluster of each state weight when attributes are clustered, ``cmap(a, y) = (groups[a], y)``.

    If all attributes of a group have the same labels, this is the weight order of the merged data.
    """
    attributes, labels = _features(layout)
    codes = groups[attributes] * layout.n_labels + labels
    used = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=bool)
    used[codes] = True
    cmap: ClusterMap = (np.cumsum(used) - 1)[codes]
    return cmap


def tiles(points: NDArray[np.float64], factor: int) -> ClusterMap:
    """Sort and cut `points`, float64[n, q], along one coordinate after the other, widest first.

    Tiles have at most `factor` points, so there are at least ``n / factor``, and up to half more if points
    are sparse.
    """
    n = len(points)
    cell = np.zeros(n, dtype=np.int64)
    cuts = _cuts(points.std(axis=0), n / factor) if n else []
    for column, n_cuts in enumerate(cuts):
        order = _sorted_within(cell, points[:, column])
        cells = cell[order]
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        sizes = np.diff(starts, append=n)
        if column == len(cuts) - 1:
            part = (np.arange(n) - np.repeat(starts, sizes)) // factor
        else:
            steps = np.diff(points[order, column], prepend=0.0)
            steps[starts] = 0.0
            way = np.cumsum(steps ** (2.0 / (len(cuts) + 2)))
            way -= np.repeat(way[starts], sizes)
            length = way[starts + sizes - 1]
            n_parts = np.minimum(n_cuts, -(-sizes // factor))
            density = n_parts / np.where(length > 0.0, length, 1.0)
            part = np.minimum(way * np.repeat(density, sizes), np.repeat(n_parts - 1, sizes)).astype(np.int64)
        is_first = np.zeros(n, dtype=np.int64)
        is_first[1:] = (part[1:] != part[:-1]) | (cells[1:] != cells[:-1])
        cell = _unsorted(np.cumsum(is_first), order)
    return _by_first_member(cell)


def _sorted_within(cell: ClusterMap, x: NDArray[np.float64]) -> NDArray[np.intp]:
    """Order of points by cell, and by `x` within a cell; stable."""
    order = np.argsort(x, kind="stable")
    cells = cell[order]
    if len(cells) and int(cells.max()) < 2**16:
        cells = cells.astype(np.uint16)  # NumPy then uses a radix sort
    return order[np.argsort(cells, kind="stable")]


def _cuts(spreads: NDArray[np.float64], n_tiles: float) -> list[int]:
    """Number of cuts along each coordinate: proportional to its spread, `n_tiles` in all, at least one.

    Narrow coordinates, which would get less than two cuts, are dropped from the end.
    """
    used = max(1, int(np.count_nonzero(spreads > 0.0)))
    while used > 1:
        logs = np.log(spreads[:used])
        shares = np.exp(logs - logs.mean() + math.log(n_tiles) / used)
        if shares[-1] >= 2.0:
            return [round(share) for share in shares]
        used -= 1
    return [max(1, math.ceil(n_tiles))]


def _rows(layout: Layout, w: Vector) -> NDArray[np.float64]:
    """Weights by attribute and label, float64[A, Y], or by attribute and random direction if Y is large."""
    A, Y = layout.n_attributes, layout.n_labels
    attributes, labels = _features(layout)
    state = w[: layout.n_state_weights]
    if Y <= MAX_COLUMNS:
        rows = np.zeros((A, Y))
        rows[attributes, labels] = state
        return rows
    directions = np.random.default_rng(0).choice((-1.0, 1.0), size=(MAX_COLUMNS, Y))
    columns = [np.bincount(attributes, state * sign[labels], minlength=A) for sign in directions]
    return np.stack(columns, axis=1)


def _features(layout: Layout) -> tuple[ClusterMap, ClusterMap]:
    """Attribute and label of each state weight."""
    A, Y = layout.n_attributes, layout.n_labels
    if layout.state_ptr is None or layout.state_labels is None:
        return np.repeat(np.arange(A), Y), np.tile(np.arange(Y), A)
    return np.repeat(np.arange(A), np.diff(layout.state_ptr)), layout.state_labels.astype(np.int64)


def _unsorted(of_rank: ClusterMap, order: NDArray[np.intp]) -> ClusterMap:
    """From sorted order back to the order of the weights."""
    of_weight = np.empty(len(order), dtype=np.int64)
    of_weight[order] = of_rank
    return of_weight


def _by_first_member(cmap: ClusterMap) -> ClusterMap:
    """Number clusters 0, 1, ... by their first weights."""
    n = int(cmap.max()) + 1 if len(cmap) else 0
    first = np.empty(n, dtype=np.int64)
    first[cmap[::-1]] = np.arange(len(cmap))[::-1]  # the last write wins
    is_first = np.zeros(len(cmap), dtype=bool)
    is_first[first] = True
    number = np.cumsum(is_first)[first] - 1
    renumbered: ClusterMap = number[cmap]
    return renumbered


ClusteringName: TypeAlias = Literal["chunks", "kmeans", "temporal", "rows"]
Aggregate: TypeAlias = Literal["auto"] | bool

#: Default number of weights per cluster: for classifiers, and for sequences.
CLASSIFIER_FACTOR, CHAIN_FACTOR = 10, 5

#: Aggregated data saves time from this many weights per cluster on. For documents, building it takes as long
#: as a hundred evaluations, which become twice as fast with fifty words per cluster; for sequences, as long
#: as four evaluations, which become a third faster with five attributes per cluster.
CLASSIFIER_PAYS, CHAIN_PAYS = 100, 4


def default_factor(objective: Objective) -> int:
    """Default number of weights per cluster."""
    return CHAIN_FACTOR if _has_chains(objective) else CLASSIFIER_FACTOR


def find_clusters(
    objective: Objective,
    w: Vector,
    change: Vector | None,
    clustering: ClusteringName,
    factor: int,
    span: float | None = None,
) -> Clusters | None:
    """Cluster weights; None if all weights to cluster are equal.

    `change` is the last change of the weights, for "temporal"; `factor` counts attributes for "rows".
    """
    layout: Layout | None = getattr(objective, "layout", None)
    w = to_numpy(w)
    n = len(w) if layout is None else layout.free.start  # weights to cluster come first
    part = w[:n]
    if n == 0 or part.min() == part.max():
        return None
    groups = None
    if clustering == "rows":
        if layout is None:
            remedy = f"{type(objective).__name__} has no attributes: use 'chunks'"
            raise OptionError("clustering", clustering, remedy)
        groups = row_groups(layout, w, factor)
        cmap = row_clusters(layout, groups)
    elif clustering == "chunks":
        cmap = chunks(part, factor, span)
    elif clustering == "kmeans":
        cmap = kmeans(part, factor)
    else:
        if change is None:
            raise OptionError("clustering", clustering, "needs the last change of the weights")
        cmap = temporal(part, to_numpy(change)[:n], factor)
    n_clusters = int(cmap.max()) + 1
    cmap = np.concatenate((cmap, n_clusters + np.arange(len(w) - len(cmap))))
    if groups is None and layout is not None and _one_weight_each(layout):
        groups = cmap[: layout.n_attributes]
    return Clusters(cmap, groups, objective.xp)


def coarse_objective(
    objective: Objective, clusters: Clusters, base: Vector | None, aggregate: Aggregate
) -> ClusteredObjective:
    """Make the objective of the clusters; `base`, orthogonal to their span, is added to the weights.

    `aggregate`: whether to build data whose attributes are the clusters. True: OptionError if impossible;
    "auto": if possible and clusters are large enough to save time.
    """
    pays = (CHAIN_PAYS if _has_chains(objective) else CLASSIFIER_PAYS) * len(clusters)
    if aggregate is True or (aggregate == "auto" and len(clusters.cmap) >= pays):
        try:
            return _aggregated(objective, clusters, base)
        except OptionError as error:  # a CapabilityError is one too
            if aggregate is True:
                # The error is about the groups, not about this option.
                why = error.remedy if error.option == "aggregate" else f"{error.value}: {error.remedy}"
                raise OptionError("aggregate", True, f"{why}; use 'auto' or false") from error
    return ClusteredObjective(objective, clusters, base)


def _aggregated(objective: Objective, clusters: Clusters, base: Vector | None) -> AggregatedObjective:
    if clusters.groups is None or not hasattr(objective, "aggregated"):
        raise CapabilityError(
            "aggregate",
            True,
            "clusters do not consist of whole attributes: use clustering='rows', or a classifier with two "
            "labels",
        )
    return AggregatedObjective(objective, clusters, base)


def _has_chains(objective: Objective) -> bool:
    """Whether any sequence has more than one position."""
    dataset = getattr(objective, "dataset", None)
    return dataset is not None and not dataset.one_position


def _one_weight_each(layout: Layout) -> bool:
    """Whether each attribute has exactly one weight, all for the same label."""
    if layout.state_ptr is None or layout.state_labels is None:
        return layout.n_labels == 1
    one_each = bool((np.diff(layout.state_ptr) == 1).all())
    return one_each and (len(layout.state_labels) == 0 or bool(np.ptp(layout.state_labels) == 0))
