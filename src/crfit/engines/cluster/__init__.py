"""Training on a cluster: the sum over shards (`crfit.engines.sharded`), computed by the workers of Dask.

Needs ``pip install "crfit[dask]"`` here and on the workers.
"""

from crfit.engines.cluster.runner import Cluster, WorkerReport

__all__ = ["Cluster", "WorkerReport"]
