"""The terms of shards that do not all fit into memory.

Each pass makes the terms that are not kept one after the other and drops them again. A thread reads the next
shard and makes its term during the computation, so that two of them are in memory at a time; with many cores
several threads do, because making a term is not parallel in itself. As many terms as fit into the rest of the
memory are kept from pass to pass; they come first, so that reading begins with the pass. Results have the
same bytes however many are kept.

A pass over large data takes long, so a run that should end soon ends between two shards of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_number
from crfit.engines.objective import Curvature
from crfit.engines.profile import Phases
from crfit.engines.sharded import Facts, Runner, ShardedObjective, Term, TermOptions, TreeSum, for_each
from crfit.layout.sharded import make_layout_of_shards, shard_layout
from crfit.threads import memory_limit, resolve_threads
from crfit.training.interrupts import end_pass_if_hurried

if TYPE_CHECKING:
    from crfit.data.shards import Shards
    from crfit.layout import Layout
    from crfit.vectors import Vector

#: Bytes of a term and its index for a byte of its shard, besides residuals of all labels at each position.
TERM_GROWTH = 5.5
#: Share of the memory of the process for data and vectors.
MEMORY_SHARE = 0.5
#: Threads that read: one for so many threads that compute, and at most so many.
THREADS_OF_READER, MAX_READERS = 4, 4
#: Vectors of all weights that are in memory during training: pairs of L-BFGS, points, sums.
VECTORS = 30


class Live(NamedTuple):
    """A term, and the places of its weights."""

    term: Term
    places: NDArray[np.int64]


class StreamingRunner(Runner):
    """Computes in this process; shards that do not fit into memory are read again in each pass.

    `memory` is the number of bytes for terms and vectors.
    """

    def __init__(self, shards: Shards, layout: Layout, options: TermOptions, memory: float) -> None:
        self.shards, self.layout, self.options = shards, layout, options
        self.n_weights, self.phases = layout.n_weights, Phases()
        self._kept = list[Live]()
        self.n_readers = readers_for(options.n_threads)
        self._readers = ThreadPoolExecutor(self.n_readers, "shards")
        self._coming: dict[int, Future[Live]] = {}  # terms that are made, by the number of the shard
        n_kept = kept_shards(shards, layout.n_weights, memory, self.n_readers)
        facts = list[Facts]()

        def meet(i: int, live: Live) -> None:
            facts.append(live.term.facts)
            if i < n_kept:
                self._kept.append(live)

        self._for_all(meet)
        self.facts = facts

    @property
    def n_kept(self) -> int:
        """Number of terms that are in memory from pass to pass."""
        return len(self._kept)

    def sum(
        self, call: str, *arguments: Vector | float, own: Any = None
    ) -> tuple[list[float], Vector | None]:
        """The sums of a call of `Term` over all shards."""
        total = TreeSum(self.n_weights)

        def add(i: int, live: Live) -> None:
            total.add(self._compute(i, live, call, arguments, own), live.places)

        self._for_all(add)
        return total.result()

    def each(self, call: str) -> list[Any]:
        """What a call of `Term` returns for each shard."""
        found = []
        self._for_all(lambda i, live: found.append(self._compute(i, live, call, (), None)))
        return found

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache, in the terms that are kept: others are gone at the next call."""
        for live in self._kept:
            live.term.objective.keep_curvature(for_each(curvature, self.shards.n_shards))

    def close(self) -> None:
        """Stop reading, and free the terms."""
        self._readers.shutdown(cancel_futures=True)
        self._kept.clear()
        self._coming.clear()

    def _compute(self, i: int, live: Live, call: str, arguments: tuple[Any, ...], own: Any) -> Any:
        end_pass_if_hurried()
        objective, places = live.term.objective, live.places
        before = replace(objective.phases)

        def fetch(name: str) -> Vector:
            whole: Vector = getattr(self, name)
            return whole[places]

        given = [one[places] if isinstance(one, np.ndarray) else one for one in arguments]
        further = () if own is None else own[i]
        part = live.term.compute(call, self.at, fetch, *given, *further)
        self.phases += objective.phases - before
        return part

    def _for_all(self, use: Callable[[int, Live], object]) -> None:
        """Call `use` with the number and the term of each shard, in order."""
        n_kept, n = len(self._kept), self.shards.n_shards
        for i in [i for i in self._coming if i >= n_kept + self.n_readers]:  # of a pass that was cut
            self._coming.pop(i).cancel()
        self._read(n_kept)
        for i in range(n_kept):
            use(i, self._kept[i])
        for i in range(n_kept, n):
            live = self._coming.pop(i).result()
            self._read(i + 1)
            use(i, live)
            del live  # before another term is made

    def _read(self, first: int) -> None:
        """Begin to make the terms of the shards from `first` on, as many as there are readers."""
        for i in range(first, min(first + self.n_readers, self.shards.n_shards)):
            if i not in self._coming:
                self._coming[i] = self._readers.submit(self._make, i)

    def _make(self, i: int) -> Live:
        shard = self.shards.load(i)
        part = shard_layout(self.layout, shard.attributes, shard.edges)
        return Live(Term(shard, part, self.options), part.places)


def readers_for(n_threads: int | None) -> int:
    """How many threads read shards."""
    return max(1, min(MAX_READERS, resolve_threads(n_threads) // THREADS_OF_READER))


def kept_shards(shards: Shards, n_weights: int, memory: float, n_readers: int = 1) -> int:
    """How many terms fit into memory: all of them, or some besides the one in use and those that are made."""
    sizes, left = term_bytes(shards), memory - VECTORS * 8 * n_weights
    if sum(sizes) <= left:
        return len(sizes)
    return int(np.searchsorted(np.cumsum(sizes), left - (1 + n_readers) * max(sizes), side="right"))


def term_bytes(shards: Shards) -> list[float]:
    """About how much memory the term of each shard takes."""
    return [TERM_GROWTH * size.n_bytes + 8 * size.n_tokens * (shards.n_labels + 8) for size in shards.sizes]


def fits_as_one(shards: Shards, all_weights: bool, memory: float | None = None) -> bool:
    """Whether training on all shards as one dataset fits into memory.

    `all_weights`: each attribute has a weight for every label; otherwise for one to two of them.
    """
    per_attribute = shards.n_labels if all_weights else min(2, shards.n_labels)
    n_weights = shards.n_attributes * per_attribute + shards.n_labels**2
    limit = memory_to_use() if memory is None else memory
    return sum(term_bytes(shards)) + VECTORS * 8 * n_weights <= limit


def memory_to_use() -> float:
    """Bytes that data and vectors may take unless the user says so: half of what the process may use."""
    limit = memory_limit()
    return math.inf if limit is None else MEMORY_SHARE * limit


def streaming_objective(
    shards: Shards,
    layout: Layout | None,
    how: TermOptions,
    *,
    l1: float,
    l2: float,
    toward: Vector | None = None,
    max_memory: float | None = None,
    **features: Any,
) -> ShardedObjective:
    """The objective of shards in a folder; without a layout, `features` are options of `make_layout`."""
    if max_memory is not None:
        check_number("max_memory", max_memory, at_least=0.0)
    if layout is None:
        loaded = map(shards.load, range(shards.n_shards))  # few are in memory at a time
        layout = make_layout_of_shards(shards, loaded, **features)
    runner = StreamingRunner(shards, layout, how, memory_to_use() if max_memory is None else max_memory)
    return ShardedObjective(shards, layout, runner, l1=l1, l2=l2, n_threads=how.n_threads, toward=toward)
