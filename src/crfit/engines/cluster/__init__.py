"""Training on a cluster: the sum over shards (`crfit.engines.sharded`), computed by the workers of Dask.

Needs ``pip install "crfit[dask]"`` here and on the workers.
"""

from __future__ import annotations

from typing import Any

from crfit.data.shards import Shards
from crfit.engines.cluster.runner import Cluster, ClusterRunner
from crfit.engines.sharded import ShardedObjective, TermOptions, WorkerReport
from crfit.errors import OptionError
from crfit.layout import Layout
from crfit.layout.features import check_options
from crfit.vectors import Vector

__all__ = ["Cluster", "WorkerReport", "cluster_objective"]


def cluster_objective(
    shards: Shards,
    client: Any,
    layout: Layout | None,
    how: TermOptions,
    *,
    l1: float,
    l2: float,
    toward: Vector | None = None,
    weights: Any = "observed",
    transitions: Any = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> ShardedObjective:
    """The objective on the workers of a cluster; the others are options of `make_layout`."""
    if client is None:
        raise OptionError("client", None, "name the cluster: a distributed.Client, an address or 'local[4]'")
    check_options(shards.n_labels, weights, transitions, boundary, order)
    runner = ClusterRunner(
        shards,
        client if isinstance(client, Cluster) else Cluster(client),
        layout,
        how,
        weights=weights,
        transitions=transitions,
        boundary=boundary,
        order=order,
        n_free=n_free,
    )
    return ShardedObjective(
        shards, runner.layout, runner, l1=l1, l2=l2, n_threads=how.n_threads, toward=toward
    )
