"""Checks of numbers by other arithmetic, for ``crfit train --check`` and ``crfit doctor``.

    gradient     g(w).d  against  (F(w + h d) - F(w - h d)) / 2h, along random directions d
    product      H v     against  (g(w + h v) - g(w - h v)) / 2h
    engine       F and g of a sample of the sequences against NumPy in the log domain, and F in long double
    definition   F, g and H v against sums over all label sequences, in long double

Long double has 18 digits or more on x86-64 Linux and macOS and on aarch64 Linux. Elsewhere it is float64,
which these checks then repeat in another order of operations.

Differences of values are relative to F, or to the sum of the weights of the sequences if that is larger:
each sequence adds its rounding, even if F is nearly 0. Differences of vectors are relative to the largest
entry in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import rows
from crfit.data import Dataset
from crfit.data.label_sets import LabelSets
from crfit.data.shards import Shards, joined
from crfit.engines import ENGINES
from crfit.engines.objective import Curvature
from crfit.engines.reference.lattice import Lattice, ScoreTables, log_sum_exp
from crfit.errors import CheckError
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines import EngineObjective
    from crfit.layout import Layout

__all__ = ["Check", "check_objective"]

#: Step of finite differences. Their error is about 1e-10: h^2 of the third derivative, and rounding over h.
STEP = 1e-4
#: Allowed differences: of finite differences, of rounding, and of rounding where scores are in the thousands.
FINITE, ROUNDING, LARGE = 1e-7, 1e-9, 1e-7
#: Random weights times this give scores that only the log domain holds.
ENLARGED = 2000.0
#: Directions of the gradient; only one if there are more positions than this.
N_DIRECTIONS, MAX_POSITIONS = 3, 200_000
#: Limits of the sample: sequences, entries of the tables, and the least entries that a position counts as.
MAX_SEQUENCES, MAX_ENTRIES, LEAST_ENTRIES = 40, 10_000_000, 20_000


@dataclass(frozen=True)
class Check:
    """Two ways of computing the same numbers, and how far apart the results are.

    Parameters
    ----------
    name : str
        What was computed.
    error : float
        The difference: relative, or a number of entries that differ.
    tolerance : float
        The largest difference that is allowed.
    note : str
        How it was checked, what went wrong, or why it was skipped.
    skipped : bool
        Whether it was not checked.
    """

    name: str
    error: float = 0.0
    tolerance: float = 0.0
    note: str = ""
    skipped: bool = False

    @property
    def ok(self) -> bool:
        """Whether the difference is allowed."""
        return self.skipped or self.error <= self.tolerance

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name} ... skipped: {self.note}"
        found = f"difference {self.error:.2g}, allowed {self.tolerance:g}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} ... {'ok' if self.ok else 'FAILED'}: {found}{note}"


def require(check: Check) -> None:
    """Raise CheckError if the check failed."""
    if not check.ok:
        remedy = "report this with the output of crfit doctor, or leave out the check"
        raise CheckError(f"{check}: {remedy}")


def difference(found: ArrayLike, expected: ArrayLike, least: float = 1.0) -> float:
    """Largest absolute difference, relative to the largest expected entry or to `least` if that is larger.

    Infinite if an entry is not a number.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    largest = max(np.abs(expected).max(initial=0.0), least) or 1.0
    with np.errstate(invalid="ignore"):  # the difference of infinities
        error = float(np.abs(found - expected).max(initial=0.0) / largest)
    return math.inf if math.isnan(error) else error


#: Value, gradient and product of the Hessian with a direction, at a point.
Numbers: TypeAlias = "tuple[Any, NDArray[Any], NDArray[Any]]"


def evaluate(objective: EngineObjective, w: Vector, v: Vector) -> Numbers:
    """What the objective computes at `w`."""
    return (*objective.value_and_grad(w), objective.hvp(v))


def largest_difference(found: Numbers, expected: Numbers) -> float:
    """The largest `difference` of the three."""
    return max(difference(*pair) for pair in zip(found, expected, strict=True))


def n_different(found: ArrayLike, expected: ArrayLike) -> int:
    """Number of entries that are not equal; all if there are more of one than of the other."""
    one, other = np.asarray(found), np.asarray(expected)
    return int((one != other).sum()) if one.shape == other.shape else max(one.size, other.size)


def check_objective(objective: EngineObjective, seed: int = 0) -> Iterator[Check]:
    """Compare an objective with finite differences, with the reference engine and with long double.

    Takes up to 18 evaluations on the whole data, 10 if it is large, and a sample of it for the reference
    engine. Changes the pinned point and frees what is cached for Hessian products.

    Parameters
    ----------
    objective : EngineObjective
        From `crfit.make_objective`; on a cluster with vectors in float64.
    seed : int
        Random seed of weights, directions and sample.

    Yields
    ------
    Check
        The comparisons, each as soon as it is done.
    """
    rng = np.random.default_rng(seed)
    data, ids = _sample(objective, rng)
    n = N_DIRECTIONS if objective.dataset.n_tokens <= MAX_POSITIONS else 1
    scale = typical_weight(objective.dataset if _shards(objective) is None else data)
    w, v, *directions = (scale * rng.normal(size=objective.n_weights) for _ in range(2 + n))
    yield check_gradient("gradient at w = 0", objective, np.zeros_like(w), directions)
    yield check_gradient("gradient at random w", objective, w, directions)
    if "hvp" in objective.capabilities:
        yield check_product(objective, w, v)
    if reason := _why_no_sample(objective, ids):
        yield Check("sample of the sequences", note=reason, skipped=True)
        return
    truth = _on(objective, "reference", data, ids)
    yield from compare_sample(objective, truth, ids, w)


def typical_weight(data: Dataset) -> float:
    """Random weights of this size give scores of at most about 1 at each position."""
    sums = np.diff(data.attr_ptr)
    if data.attr_values is not None:
        sums = np.bincount(np.repeat(np.arange(data.n_tokens), sums), np.abs(data.attr_values))
    return 1.0 / (1.0 + float(sums.max(initial=0)))


def check_gradient(name: str, objective: EngineObjective, w: Vector, directions: list[Vector]) -> Check:
    """The gradient along directions, against central differences of the value."""
    value, gradient = objective.value_and_grad(w)
    slopes = [
        (objective.value(w + STEP * d) - objective.value(w - STEP * d)) / (2 * STEP) for d in directions
    ]
    least = max(abs(value), objective.total_weight)
    error = difference([gradient @ d for d in directions], slopes, least)
    n = len(directions)
    return Check(name, error, FINITE, f"against finite differences along {n} direction{'s' * (n != 1)}")


def check_product(objective: EngineObjective, w: Vector, v: Vector) -> Check:
    """The product of the Hessian and `v`, against central differences of the gradient; nothing is cached."""
    objective.keep_curvature(Curvature("none"))
    objective.value_and_grad(w)
    product = objective.hvp(v)
    objective.keep_curvature(None)
    ahead, behind = (objective.value_and_grad(w + step * v)[1] for step in (STEP, -STEP))
    error = difference(product, (ahead - behind) / (2 * STEP), objective.total_weight)
    return Check("Hessian product at random w", error, FINITE, "against finite differences of the gradient")


def compare_sample(
    objective: EngineObjective, truth: EngineObjective, ids: NDArray[np.int64], w: Vector
) -> Iterator[Check]:
    """Value and gradient of the sequences `ids` against `truth`, which has only these, and long double."""
    data, least = truth.dataset, truth.total_weight
    note = f"against NumPy in the log domain, {len(ids)} sequences of {data.n_tokens} positions"
    for place, point, tolerance in (
        ("at random w", w, ROUNDING),
        ("at large w", ENLARGED * w, LARGE),
    ):
        if "subset" in objective.capabilities:
            value, gradient = objective.value_and_grad(point, subset=ids)
        else:
            value, gradient = _on(objective, objective.device, data, ids).value_and_grad(point)
        expected, slope = truth.value_and_grad(point)
        yield Check(f"value {place}", difference(value, expected, least), tolerance, note)
        yield Check(f"gradient {place}", difference(gradient, slope, least), tolerance, note)
        if place == "at random w":
            error = difference(value, long_double_value(truth, point), least)
            yield Check(
                f"value {place}, to more digits", error, ROUNDING, f"against long double, {digits()} digits"
            )


def digits() -> int:
    """Decimal digits of long double."""
    return int(np.finfo(np.longdouble).precision)


def _sample(objective: EngineObjective, rng: np.random.Generator) -> tuple[Dataset, NDArray[np.int64]]:
    """Some random sequences, of shards from the first one, and their numbers.

    If all are too large for the reference engine, the shortest one and no number.
    """
    shards = _shards(objective)
    shard = None if shards is None else shards.load(0)
    whole = objective.dataset if shard is None else shard.dataset
    entries = float(objective.layout.n_labels) ** (objective.layout.order + 1)
    cost = whole.lengths * max(entries, LEAST_ENTRIES)
    shuffled = rng.permutation(whole.n_sequences)
    possible = shuffled[cost[shuffled] <= MAX_ENTRIES]
    n = np.searchsorted(np.cumsum(cost[possible]), MAX_ENTRIES, side="right")
    ids = np.sort(possible[: min(int(n), MAX_SEQUENCES)])
    part = whole.subset(ids if len(ids) else [np.argmin(whole.lengths)])
    if shards is not None and shard is not None:
        part = joined([shard._replace(dataset=part)], shards)
    return part, ids


def _shards(objective: EngineObjective) -> Shards | None:
    """The data of the objective if it is in shards."""
    data: object = objective.dataset
    return data if isinstance(data, Shards) else None


def _why_no_sample(objective: EngineObjective, ids: NDArray[np.int64]) -> str:
    """Why the reference engine cannot compute the sample."""
    if objective.device == "reference":
        return "this is the NumPy engine, with which others are compared"
    if not len(ids):
        return "each sequence is too long, or has too many labels, for the NumPy engine"
    others = {"partial labels", "costs", "constraints"}.intersection(objective.limits)
    if _shards(objective) is not None and others:
        return f"the NumPy engine needs data with {' and '.join(sorted(others))} in one piece"
    return ""


def _on(objective: EngineObjective, device: str, data: Dataset, ids: NDArray[np.int64]) -> EngineObjective:
    """The objective of the sequences `ids` alone, `data`, with their share of the penalty, on an engine."""
    extra: dict[str, Any] = {}
    if _shards(objective) is None:
        extra["constraints"] = objective.constraints
        if objective.offsets is not None:
            extra["offsets"] = objective.offsets[rows(objective.dataset.seq_ptr, ids)[1]]
    share = data.n_sequences / objective.n_sequences
    made = ENGINES[device].objective(
        data,
        objective.layout,
        l1=0.0,
        l2=objective.l2 * share,
        n_threads=objective.n_threads,
        toward=objective.centre,
        **extra,
    )
    if objective.l2_scale is not None:
        made.scale_l2(np.where(objective.l2_scale > 0.0, objective.l2_scale, 1.0))
    return made


def long_double_value(objective: EngineObjective, w: Vector) -> Any:
    """F without l1, scores included, in long double.

    The loss of a sequence is D(all) - D(those that agree with its labels), D the log of the sum of
    exp(score).
    """
    data, wide = objective.dataset, cast("Any", w.astype(np.longdouble))
    sets = data.label_sets or LabelSets(
        np.full(data.n_tokens, -1, np.int32), np.empty((0, objective.layout.n_labels))
    )
    agreeing = sets.by_position(data.labels)
    if objective.offsets is not None:
        agreeing += objective.offsets
    every, agree = (
        ScoreTables(data, objective.layout, wide, offsets, objective.constraints)
        for offsets in (objective.offsets, agreeing)
    )
    away = wide if objective.centre is None else wide - objective.centre
    total = (objective.penalty.strengths(objective.l2) * away * away).sum() / 2
    for i in range(data.n_sequences):
        log_z, log_agreeing = (
            log_sum_exp(Lattice(tables(i), objective.layout.order).alpha[-1]) for tables in (every, agree)
        )
        total += objective.factor(i) * (log_z - log_agreeing)
    return total


def by_definition(data: Dataset, layout: Layout, w: Vector, v: Vector) -> Numbers:
    """Loss, gradient and Hessian times `v` as sums over all label sequences, in long double.

    There are ``Y^T`` label sequences: for a few labels and positions only.
    """
    loss: Any = np.longdouble(0.0)
    gradient, product = (np.zeros(layout.n_weights, np.longdouble) for _ in range(2))
    for i in range(data.n_sequences):
        one = replace(data.subset([i]), sequence_weights=None)
        paths = itertools.product(range(layout.n_labels), repeat=one.n_tokens)
        counts = [layout.observed_counts(replace(one, labels=np.array(path, np.int32))) for path in paths]
        phi, gold = np.array(counts, dtype=np.longdouble), layout.observed_counts(one)
        scores = phi @ w
        p = np.exp(scores - scores.max())
        factor = 1.0 if data.sequence_weights is None else data.sequence_weights[i]
        loss += factor * (scores.max() + np.log(p.sum()) - gold @ w)
        p /= p.sum()
        centred = phi - p @ phi
        gradient += factor * (p @ phi - gold)
        product += factor * ((p * (centred @ v)) @ centred)
    return loss, gradient, product
