"""The objective as a sum over shards, which need not be in one memory or on one machine.

    F(w) = sum_i f_i(w[places_i]) + (l2/2) |w|^2 + l1 |w|_1

Each f_i is an ordinary objective without a penalty on the data and the layout of a shard; the penalty is
added once. The sums over shards are taken in a fixed binary tree in their order (`TreeSum`), so the result
has the same bytes whoever computes what, in whatever order the parts arrive:

    [0, 1) [1, 2) [2, 3) [3, 4) [4, 5)   ->   [0, 2) [2, 4) [4, 5)   ->   [0, 4) [4, 5)   ->   [0, 5)

A `Runner` does the work: in this process, with all shards in memory, or elsewhere. It can make a term again
at any moment, because `Term` has nothing that cannot be computed from the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crfit import vectors
from crfit.engines.engine_objective import EngineObjective, SequenceIds, add_l2
from crfit.engines.objective import Curvature, LineFunction
from crfit.engines.profile import Phases
from crfit.errors import CapabilityError
from crfit.layout.constraints import Constraints
from crfit.layout.sharded import ShardLayout, make_layout_of_shards, shard_layout
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.shards import Shard, Shards
    from crfit.engines.weight_groups import GroupKind
    from crfit.layout import Layout

#: What terms offer and sums over them keep; steps on single sequences would need all shards at each.
SUMMED = frozenset(
    {
        *("value", "value_and_grad", "subset", "along", "expectations", "l1"),
        *("hvp", "hessian_diagonal", "feature_totals"),
    }
)


#: Parts of data in one piece on a cluster: the same for any number of workers, so that the bytes are too.
N_SHARDS = 8


@dataclass(frozen=True)
class TermOptions:
    """How the terms are computed; the same for all shards."""

    device: str = "cpu"
    n_threads: int | None = None
    arithmetic: Literal["scaled", "log"] = "scaled"
    constraints: Constraints | None = None
    costs: NDArray[np.float64] | None = None


class Facts(NamedTuple):
    """What the objective has to know of a term."""

    capabilities: frozenset[str]
    limits: tuple[str, ...]
    total_weight: float
    table_bytes: int


class Part(NamedTuple):
    """What a term gives back: a few numbers, and a vector of its weights."""

    numbers: tuple[float, ...]
    vector: Vector | None = None


class At(NamedTuple):
    """Where calls are made: numbers of the point of the last gradient and of the last line; 0: none yet."""

    point: int = 0
    line: int = 0


#: Gives a vector of a term's own weights: "point" or "direction".
Fetch: TypeAlias = Callable[[str], Vector]

#: Calls at the pinned point.
PINNED = frozenset({"product", "diagonal", "along"})


class Term:
    """The objective of a shard, without a penalty, on its own weights.

    A new term is moved to the pinned point without a pass over its data; products there have the same bytes
    as after the gradient.
    """

    def __init__(self, shard: Shard, part: ShardLayout, options: TermOptions) -> None:
        from crfit.engines import make_objective  # imports this module

        self.objective = make_objective(
            shard.dataset,
            part.layout,
            l1=0.0,
            l2=0.0,
            device=options.device,
            n_threads=options.n_threads,
            arithmetic=options.arithmetic,
            constraints=options.constraints,
            costs=options.costs,
        )
        self.at = At()
        self._step: LineFunction | None = None
        self._point: Vector | None = None
        self._out: Vector | None = None

    @property
    def facts(self) -> Facts:
        """What the objective has to know of this term."""
        one = self.objective
        return Facts(one.capabilities, one.limits, one.total_weight, one.table_bytes)

    def compute(self, call: str, at: At, fetch: Fetch, *arguments: Any) -> Any:
        """One of the calls below. Sets: `at`, what the objective is pinned at."""
        if call in PINNED and self.at.point != at.point:
            if self.at.point:
                self.objective.value_and_grad(fetch("point"))
            else:
                self.objective.pin(fetch("point"))
            self.at = At(at.point)
        if call == "along" and (self._step is None or self.at.line != at.line):
            self._step = self.objective.along(fetch("direction"))
            self.at = at
        if call == "gradient":
            self.at, self._step = At(), None  # until it is there
            part = self.gradient(*arguments)
            self.at = At(at.point)
            return part
        return getattr(self, call)(*arguments)

    def value(self, w: Vector) -> Part:
        """f(w)."""
        return Part((self.objective.value(w),))

    def own(self, call: str, whole: Vector, places: NDArray[np.int64] | None) -> Vector:
        """The term's weights of a vector; the pinned point has memory of its own."""
        if call != "gradient":
            return whole if places is None else whole[places]
        if self._point is None:
            self._point = np.empty(self.objective.n_weights)
        self.at = At()  # what it is pinned at changes
        if places is None:
            np.copyto(self._point, whole)
        else:
            np.take(whole, places, out=self._point, mode="clip")  # the other modes make a copy
        return self._point

    @property
    def out(self) -> Vector:
        """Where results go; they are valid until the next call."""
        if self._out is None:
            self._out = np.empty(self.objective.n_weights)
        return self._out

    def gradient(self, w: Vector) -> Part:
        """f(w) and its gradient; pins `w`."""
        value, gradient = self.objective.value_and_grad(w, self.out)
        return Part((value,), gradient)

    def value_on(self, w: Vector, ids: SequenceIds) -> Part:
        """f(w) on some sequences."""
        return Part((self.objective.value(w, ids),))

    def gradient_on(self, w: Vector, ids: SequenceIds) -> Part:
        """f(w) and its gradient on some sequences."""
        value, gradient = self.objective.value_and_grad(w, subset=ids)
        return Part((value,), gradient)

    def product(self, v: Vector) -> Part:
        """Hessian at the pinned point, times `v`."""
        return Part((), self.objective.hvp(v, self.out))

    def diagonal(self) -> Part:
        """Approximate diagonal of the Hessian at the pinned point."""
        return Part((), self.objective.hessian_diagonal())

    def along(self, step: float) -> Part:
        """Value and slope at ``point + step direction``."""
        assert self._step is not None  # from `compute`
        return Part(self._step(step))

    def expectations(self, w: Vector) -> Part:
        """Expected feature counts."""
        return Part((), self.objective.expectations(w))

    def observed(self) -> Part:
        """Feature counts of the labels."""
        return Part((), self.objective.observed())

    def observed_on(self, ids: SequenceIds) -> Part:
        """Feature counts of the labels of some sequences."""
        return Part((), self.objective.observed(ids))

    def totals(self) -> Vector:
        """Largest feature sum of each sequence."""
        return self.objective.feature_totals()


class TreeSum:
    """Sum of the parts of shards, in a tree that does not depend on who adds them up.

    A node of the tree covers ``2^k`` shards from a multiple of ``2^k`` on; the last nodes are added from the
    right. Parts of shards and of whole nodes are added in the order of shards. Vectors are as long as the
    result; what a part lacks is 0, and no entry is -0.0, so that x + 0 is x to the bit. In single precision
    every node is rounded, so this too is the same for all placements.
    """

    def __init__(
        self, n_weights: int, dtype: DTypeLike = np.float64, spare: list[NDArray[Any]] | None = None
    ) -> None:
        self.n_weights, self.dtype = n_weights, np.dtype(dtype)
        self._nodes: list[tuple[int, NDArray[np.float64], NDArray[Any] | None]] = []
        self._spare: list[NDArray[Any]] = [] if spare is None else spare  # memory to use again

    def add(self, part: Part, places: NDArray[np.int64] | None, size: int = 1) -> None:
        """Add the part of the next shard, or of the next node of `size` shards; places None: all weights."""
        numbers, vector = np.array(part.numbers, dtype=np.float64), part.vector
        if vector is not None:
            vector = vector.astype(self.dtype, copy=False)
            if self._nodes and self._nodes[-1][0] == size == 1:  # a pair of shards
                _, before, left = self._nodes.pop()
                assert left is not None
                _add_at(left, places, vector)
                self._nodes.append((2, before + numbers, left))
            else:
                whole = self._spare.pop() if self._spare else np.empty(self.n_weights, self.dtype)
                whole.fill(0.0)
                _add_at(whole, places, vector)
                self._nodes.append((size, numbers, whole))
        else:
            self._nodes.append((size, numbers, None))
        while len(self._nodes) > 1 and self._nodes[-1][0] == self._nodes[-2][0]:
            self._merge()

    def result(self) -> tuple[list[float], NDArray[Any] | None]:
        """The sums of the numbers and of the vectors."""
        while len(self._nodes) > 1:
            self._merge()
        _, numbers, vector = self._nodes.pop()
        return numbers.tolist(), vector

    def _merge(self) -> None:
        size, numbers, vector = self._nodes.pop()
        left_size, left_numbers, left = self._nodes.pop()
        if left is not None and vector is not None:
            _add_at(left, None, vector)
            self._spare.append(vector)
        self._nodes.append((left_size + size, left_numbers + numbers, left))


def _add_at(total: NDArray[Any], places: NDArray[np.int64] | None, part: NDArray[Any]) -> None:
    if places is not None:
        total[places] += part
    elif total.dtype == np.float64:
        vectors.axpy(total, 1.0, part, total)
    else:
        total += part


def for_each(curvature: Curvature | None, n_shards: int) -> Curvature | None:
    """What each shard may cache, of a limit for all of them."""
    if curvature is None or curvature.cache in ("all", "none"):
        return curvature
    n_sequences, n_bytes = curvature.limits()
    cache = f"{n_bytes // n_shards}b" if isinstance(curvature.cache, str) else n_sequences // n_shards
    return replace(curvature, cache=cache)


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has done so far.

    Parameters
    ----------
    address : str
        Its address in Dask.
    shards : int
        Number of shards that it holds now.
    seconds : float
        Seconds of computing.
    sent, received : int
        Bytes of weights sent to it, and received from it.
    lost : bool
        Whether it was given up.
    """

    address: str
    shards: int
    seconds: float
    sent: int
    received: int
    lost: bool


class Runner(ABC):
    """Computes on all shards."""

    facts: Sequence[Facts]  # of each term
    phases: Phases  # seconds spent so far
    at: At = At()  # numbers of `point` and `direction`
    # Of the last gradient and of the last line. The objective sets them before a call that uses them.
    point: Vector | None = None
    direction: Vector | None = None

    @abstractmethod
    def sum(
        self, call: str, *arguments: Vector | float, own: Sequence[tuple[Any, ...]] | None = None
    ) -> tuple[list[float], Vector | None]:
        """The sums of a call of `Term` over all shards; the vector is valid until the next call.

        Of vectors in `arguments` each shard gets its weights; `own` are further arguments of each shard.
        """

    @abstractmethod
    def each(self, call: str) -> list[Any]:
        """What a call of `Term` returns for each shard."""

    @abstractmethod
    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache."""

    def reports(self) -> list[WorkerReport]:
        """What each process has done so far, if there are several."""
        return []

    def close(self) -> None:
        """Free what the runner holds elsewhere."""
        return


class LocalRunner(Runner):
    """Computes in this process, one shard after the other, each on all threads.

    A subclass may override `terms`, which yields the terms in order; here they are all in memory.
    """

    def __init__(
        self, shards: Shards, layout: Layout, parts: Sequence[ShardLayout], options: TermOptions
    ) -> None:
        self.places, self.n_weights = [part.places for part in parts], layout.n_weights
        self._terms = [Term(shards.load(i), part, options) for i, part in enumerate(parts)]
        self.facts = [term.facts for term in self._terms]
        self.phases = Phases()
        self._spare: list[Vector] = []

    def terms(self) -> Iterator[Term]:
        """The terms in the order of shards; each is used until the next one is taken."""
        yield from self._terms

    def sum(
        self, call: str, *arguments: Vector | float, own: Sequence[tuple[Any, ...]] | None = None
    ) -> tuple[list[float], Vector | None]:
        """The sums of a call of `Term` over all shards."""
        total = TreeSum(self.n_weights, spare=self._spare)
        for places, part in zip(self.places, self._parts(call, arguments, own), strict=True):
            total.add(part, places)
        numbers, vector = total.result()
        if vector is not None:
            self._spare.append(vector)
        return numbers, vector

    def each(self, call: str) -> list[Any]:
        """What a call of `Term` returns for each shard."""
        return list(self._parts(call, (), None))

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache."""
        for term in self._terms:
            term.objective.keep_curvature(for_each(curvature, len(self._terms)))

    def _parts(
        self, call: str, arguments: tuple[Any, ...], own: Sequence[tuple[Any, ...]] | None
    ) -> Iterator[Any]:
        for i, (term, places) in enumerate(zip(self.terms(), self.places, strict=True)):
            before = replace(term.objective.phases)
            given = [term.own(call, x, places) if isinstance(x, np.ndarray) else x for x in arguments]
            further = () if own is None else own[i]
            yield term.compute(call, self.at, self._fetch(places), *given, *further)
            self.phases += term.objective.phases - before

    def _fetch(self, places: NDArray[np.int64]) -> Fetch:
        def fetch(name: str) -> Vector:
            whole: Vector = getattr(self, name)
            return whole[places]

        return fetch


class ShardedObjective(EngineObjective):
    """The sum over shards, with the penalty."""

    device: ClassVar[str] = "cpu"  # of the terms: what decodes held-out data

    def __init__(
        self,
        shards: Shards,
        layout: Layout,
        runner: Runner,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        n_threads: int | None = None,
        toward: Vector | None = None,
    ) -> None:
        facts = runner.facts
        self.runner = runner
        self.capabilities = SUMMED.intersection(*(one.capabilities for one in facts))
        self.limits = tuple(
            dict.fromkeys(("data in shards", *(name for one in facts for name in one.limits)))
        )
        if toward is not None:
            self.capabilities -= {"feature_totals"}
            self.limits = (*self.limits, "l2 toward old weights")
        self._table_bytes = sum(one.table_bytes for one in facts)
        self._n_lines = 0
        self._starts = np.cumsum([0, *(size[0] for size in shards.sizes)])
        total_weight = sum(one.total_weight for one in facts)
        # Shards have what this uses of a dataset.
        self._set_up(cast("Dataset", shards), layout, l1, l2, n_threads, toward, total_weight)

    @property
    def table_bytes(self) -> int:
        """Memory for caching the tables of all sequences for Hessian-vector products, ``cache="all"``."""
        return self._table_bytes

    @property
    def workers(self) -> list[WorkerReport]:
        """What each worker of a cluster has done so far, the lost ones last."""
        return self.runner.reports()

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache; each shard has an equal part of a limit."""
        self.runner.keep_curvature(curvature)

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight; by name only."""
        if kind == "frequency":
            raise CapabilityError("groups", kind, "needs all data in one place: group by family or template")
        return super().weight_groups(kind)

    def aggregated(self, groups: ArrayLike, base: Vector | None = None) -> EngineObjective:
        """Refused: attributes of a group may be in different shards."""
        raise CapabilityError("aggregate", True, "data in shards cannot be aggregated")

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Feature counts of the labels, float64[n_weights], read-only."""
        if subset is not None:
            return self._frozen(self._on("observed_on", self._check_subset(subset))[1])
        if self._observed is None:
            self._observed = self._frozen(self._sum("observed")[1])
        return self._observed

    def feature_totals(self) -> Vector:
        """Largest feature sum of each sequence, float64[n_sequences]."""
        self._require("feature_totals")
        self.counts.sequences += self.n_sequences
        return np.concatenate(self.runner.each("totals"))

    def close(self) -> None:
        """Free what other processes hold for this objective."""
        self.runner.close()

    def _sum(self, call: str, *arguments: Any, own: Any = None) -> tuple[list[float], Vector | None]:
        before = replace(self.runner.phases)
        try:
            return self.runner.sum(call, *arguments, own=own)
        finally:
            self.phases += self.runner.phases - before

    def _on(self, call: str, subset: SequenceIds, *arguments: Any) -> tuple[list[float], Vector | None]:
        """A call on some sequences."""
        shard = np.searchsorted(self._starts, subset, side="right") - 1
        own = [(subset[shard == i] - self._starts[i],) for i in range(len(self._starts) - 1)]
        return self._sum(call, *arguments, own=own)

    @staticmethod
    def _frozen(vector: Vector | None) -> Vector:
        assert vector is not None
        vector = vector.copy()
        vector.flags.writeable = False
        return vector

    def _loss(self, w: Vector) -> float:
        return self._sum("value", w)[0][0]

    def _loss_on(self, w: Vector, subset: SequenceIds) -> float:
        return self._on("value_on", subset, w)[0][0]

    def _loss_and_grad(self, w: Vector, out: Vector, subset: SequenceIds | None, l2: float) -> float:
        if subset is None:
            self.runner.at, self.runner.point = At(self._pin_count), w
            numbers, gradient = self._sum("gradient", w)
        else:
            numbers, gradient = self._on("gradient_on", subset, w)
        assert gradient is not None
        np.copyto(out, gradient)
        return numbers[0] + add_l2(w, l2, out)

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float) -> None:
        _, product = self._sum("product", v)
        assert product is not None
        np.copyto(out, product)
        add_l2(v, l2, out)

    def _hessian_diagonal(self, w: Vector) -> Vector:
        _, diagonal = self._sum("diagonal")
        assert diagonal is not None
        own: Vector = diagonal.copy()
        return own

    def _expectations(self, w: Vector) -> Vector:
        _, expected = self._sum("expectations", w)
        assert expected is not None
        own: Vector = expected.copy()
        return own

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        self._n_lines = line = self._n_lines + 1

        def evaluate(step: float) -> tuple[float, float]:
            self.runner.at, self.runner.direction = self.runner.at._replace(line=line), d
            loss, slope = self._sum("along", step)[0]
            return loss, slope

        return evaluate


def sharded_objective(
    shards: Shards,
    layout: Layout | None,
    how: TermOptions,
    *,
    l1: float,
    l2: float,
    toward: Vector | None = None,
    **features: Any,
) -> ShardedObjective:
    """The objective of shards in memory; without a layout, `features` are options of `make_layout`."""
    own = [shards.load(i) for i in range(shards.n_shards)]
    if layout is None:
        layout = make_layout_of_shards(shards, own, **features)
    parts = [shard_layout(layout, shard.attributes, shard.edges) for shard in own]
    runner = LocalRunner(shards, layout, parts, how)
    return ShardedObjective(shards, layout, runner, l1=l1, l2=l2, n_threads=how.n_threads, toward=toward)
