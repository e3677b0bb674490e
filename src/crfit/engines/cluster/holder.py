"""What runs on a worker: terms of some shards, and sums over them.

A `Holder` is a Dask actor. It is asked about *nodes* of the tree in which shards are summed (`TreeSum`): the
vectors of a node, there and back, have an entry for each weight that any of its shards uses.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import crfit
from crfit import vectors
from crfit.data.shards import Shard, Shards
from crfit.engines.objective import Curvature
from crfit.engines.profile import Phases
from crfit.engines.sharded import At, Facts, Fetch, Part, Term, TermOptions, TreeSum
from crfit.layout.sharded import Seen, ShardLayout, seen_features
from crfit.threads import cpu_level
from crfit.vectors import Vector


class Node(NamedTuple):
    """The shards ``first``, ..., ``first + size - 1``."""

    first: int
    size: int

    @property
    def shards(self) -> range:
        """Numbers of its shards."""
        return range(self.first, self.first + self.size)


#: A vector for each node of a request, in single or double precision; anything else is for all nodes.
NodeVectors: TypeAlias = list[NDArray[Any]]


class Request(NamedTuple):
    """A call of `Term` on all shards of some nodes."""

    call: str
    at: At
    nodes: list[Node]
    arguments: list[NodeVectors | float]
    own: dict[int, tuple[Any, ...]] | None  # further arguments by shard
    kept: dict[str, NodeVectors]  # the "point" or "direction", unless sent before
    curvature: tuple[Curvature | None] | None  # what later gradients cache, if that changes
    dtype: str  # of the vectors sent back


class Answer(NamedTuple):
    """The sums of a request for each node; and how long it took."""

    parts: list[tuple[list[float], NDArray[Any] | None]]
    seconds: float
    phases: Phases


class Joined(NamedTuple):
    """A shard as the layout needs it."""

    attributes: NDArray[np.int64]
    edges: NDArray[np.int64] | None
    seen: Seen | None


def union_of(places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Places of the weights that any of the shards of a node uses, ascending."""
    return places[0] if len(places) == 1 else np.unique(np.concatenate(places))


class Holder:
    """Terms of some shards on one worker."""

    def __init__(self, n_threads: int | None) -> None:
        self.n_threads = n_threads
        self._folders: dict[str, Shards] = {}
        self._waiting: dict[int, Shard] = {}  # looked at, not yet loaded
        self._terms: dict[int, Term] = {}
        self._places: dict[int, NDArray[np.int64]] = {}
        self._nodes: dict[Node, tuple[int, list[NDArray[np.int64] | None]]] = {}
        self._kept: dict[tuple[str, Node], Vector] = {}

    def about(self) -> dict[str, str]:
        """What has to be the same everywhere."""
        return {"crfit": crfit.__version__, "kernels": cpu_level()}

    def look(
        self, source: str | dict[int, Shard], ids: list[int], features: dict[str, Any] | None
    ) -> dict[int, Joined]:
        """Read shards; return what the layout of the whole data needs of them, only ids if it is there."""
        found = {}
        for i in ids:
            self._waiting[i] = shard = self._shard(source, i)
            seen = None if features is None else seen_features(shard, **features)
            found[i] = Joined(shard.attributes, shard.edges, seen)
        return found

    def load(
        self,
        source: str | dict[int, Shard],
        parts: dict[int, ShardLayout],
        how: TermOptions,
        curvature: Curvature | None,
    ) -> dict[int, Facts]:
        """Make the terms of shards."""
        how = replace(how, n_threads=self.n_threads)
        for i, part in parts.items():
            shard = self._waiting.pop(i) if i in self._waiting else self._shard(source, i)
            term = Term(shard, part, how)
            term.objective.keep_curvature(curvature)
            self._terms[i], self._places[i] = term, part.places
        return {i: self._terms[i].facts for i in parts}

    def drop(self, ids: list[int]) -> None:
        """Forget shards that another worker has now."""
        for i in ids:
            self._terms.pop(i, None)
            self._places.pop(i, None)
            self._waiting.pop(i, None)
        gone = [node for node in self._nodes if not self._places.keys() >= set(node.shards)]
        for node in gone:
            del self._nodes[node]

    def compute(self, request: Request) -> Answer:
        """The sums over the shards of each node."""
        begin, before = time.perf_counter(), self._phases()
        if request.curvature is not None:
            for term in self._terms.values():
                term.objective.keep_curvature(*request.curvature)
        double = [
            [vector.astype(np.float64, copy=False) for vector in one] if isinstance(one, list) else one
            for one in request.arguments
        ]
        if request.call == "gradient":
            self._kept.clear()  # of the last point
            first = double[0]
            assert isinstance(first, list)
            self._kept = {("point", node): w for node, w in zip(request.nodes, first, strict=True)}
        for name, vectors_ in request.kept.items():
            for node, vector in zip(request.nodes, vectors_, strict=True):
                self._kept[name, node] = vector.astype(np.float64, copy=False)
        parts = []
        with vectors.use_threads(self.n_threads or 1):
            for k, node in enumerate(request.nodes):
                arguments = [one[k] if isinstance(one, list) else one for one in double]
                parts.append(self._sum(request, node, arguments))
        return Answer(parts, time.perf_counter() - begin, self._phases() - before)

    def each(self, call: str, ids: list[int]) -> dict[int, Any]:
        """What a call of `Term` without arguments returns for each shard."""
        return {i: getattr(self._terms[i], call)() for i in ids}

    def _sum(
        self, request: Request, node: Node, arguments: list[Any]
    ) -> tuple[list[float], NDArray[Any] | None]:
        if node not in self._nodes:
            places = [self._places[i] for i in node.shards]
            union = union_of(places)
            alone = node.size == 1
            own = [None if alone else np.searchsorted(union, one).astype(np.int64) for one in places]
            self._nodes[node] = len(union), own
        n_weights, indices = self._nodes[node]
        total = TreeSum(n_weights, request.dtype)
        for i, index in zip(node.shards, indices, strict=True):
            given = [_at(one, index) if isinstance(one, np.ndarray) else one for one in arguments]
            further = () if request.own is None else request.own[i]
            part: Part = self._terms[i].compute(
                request.call, request.at, self._fetch(node, index), *given, *further
            )
            total.add(part, index)
        return total.result()

    def _fetch(self, node: Node, index: NDArray[np.int64] | None) -> Fetch:
        return lambda name: _at(self._kept[name, node], index)

    def _shard(self, source: str | dict[int, Shard], i: int) -> Shard:
        if isinstance(source, dict):
            return source[i]
        if source not in self._folders:
            self._folders[source] = Shards.open(source)
        return self._folders[source].load(i)

    def _phases(self) -> Phases:
        return sum((term.objective.phases for term in self._terms.values()), Phases())


def _at(vector: Vector, index: NDArray[np.int64] | None) -> Vector:
    return vector if index is None else vector[index]
