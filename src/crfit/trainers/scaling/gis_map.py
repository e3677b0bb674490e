"""Generalised iterative scaling as a map of the weights, ``w -> w + d(w)``.

Map S bounds the feature total of every sequence by the largest one [1]. Map T [2, algorithm T] uses the total
of each sequence, rounded up to the largest of its bin, and takes longer steps. The optimum of F is the fixed
point of both, and in their exact form F falls at every step. The equations for d are in
`crfit.trainers.scaling.equations`.

A bin uses the largest total T of its sequences, so the bound holds for all of them. The length of a step is
about one over the mean of these bounds, weighted by expected features, of which a sequence has about T. So
the bins minimise

    sum_k T_k bound(bin of k)

by dynamic programming over the sorted totals.

A point needs the expected features of every bin. They follow from the value and gradient g of the bin's
sequences in one pass over the data: ``E = g + O - l2 w``, with the bin's share of the penalty, and without a
penalty for unpenalised weights. E is raised at least to the size of its rounding error: a larger E makes
steps shorter, so the bound still holds.

References
----------
[1] J. Darroch, D. Ratcliff (1972). Generalized iterative scaling for log-linear models. Ann. Math. Stat. 43.
[2] J. Lafferty, A. McCallum, F. Pereira (2001). Conditional random fields. ICML, 282-289.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.engines.objective import Objective
from crfit.trainers.scaling.equations import MAX_EXPONENT, binned_step, exact_step, ratio_step
from crfit.vectors import Vector

#: Maximum number of candidate bin ends; dynamic programming takes their square in time and memory.
MAX_ENDS = 256


def bins_of_totals(totals: NDArray[np.float64], n_bins: int) -> tuple[list[NDArray[np.int64]], list[float]]:
    """Divide sequences into at most `n_bins` bins: ascending ids, and the largest total of each."""
    ends = np.unique(totals)
    if len(ends) > MAX_ENDS:
        ends = np.unique(ends[np.linspace(0, len(ends) - 1, MAX_ENDS).round().astype(np.int64)])
    place = np.searchsorted(ends, totals)
    # With ends e_1 < .. < e_n and M_j the mass up to e_j: cost[i, j] of a bin above e_i, up to e_j.
    mass = np.concatenate([[0.0], np.cumsum(np.bincount(place, totals, minlength=len(ends)))])
    cost = np.full((len(ends) + 1, len(ends) + 1), np.inf)
    for j in range(1, len(ends) + 1):
        cost[:j, j] = ends[j - 1] * (mass[j] - mass[:j])
    best, choices = cost[0], []
    for _ in range(min(n_bins, len(ends)) - 1):
        through = best[:, None] + cost
        choices.append(through.argmin(axis=0))
        best = through.min(axis=0)
    chosen = [len(ends)]
    for choice in reversed(choices):
        chosen.append(int(choice[chosen[-1]]))
    chosen = sorted({j for j in chosen if j > 0})
    bin_of = np.searchsorted(np.array(chosen) - 1, place)
    ids = [np.flatnonzero(bin_of == b) for b in range(len(chosen))]
    return ids, [float(ends[j - 1]) for j in chosen]


MapName: TypeAlias = Literal["S", "T"]
Form: TypeAlias = Literal["exact", "ratio"]

#: Rounding of E, in units of O + l2 |w|.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass
class Point:
    """Weights, and what the map needs there."""

    w: Vector
    value: float
    grad_inf: float
    grad_norm: float
    expected: Vector  # [n_bins, n_weights]: expected features of the sequences of each bin

    def export_state(self) -> dict[str, Any]:
        """Everything except the weights, for `Step.state`."""
        return {
            "value": self.value,
            "grad_inf": self.grad_inf,
            "grad_norm": self.grad_norm,
            "expected": self.expected,
        }

    @classmethod
    def from_state(cls, w: Vector, state: Mapping[str, Any]) -> Point:
        """Restore the point."""
        value, largest, norm = (float(state[name]) for name in ("value", "grad_inf", "grad_norm"))
        return cls(w, value, largest, norm, vectors.array_module(w).asarray(state["expected"]))


class ScalingMap:
    """The map of an objective.

    It needs ``value_and_grad``, ``observed``, ``feature_totals`` and, for map T, subsets. `totals`: largest
    feature total of each sequence, one pass unless given. `bounds`: S, or T of each bin, 16 bytes per weight
    each. `passes`: points evaluated.
    """

    def __init__(
        self,
        objective: Objective,
        name: MapName,
        form: Form = "exact",
        n_bins: int = 8,
        totals: NDArray[np.float64] | None = None,
    ) -> None:
        self.objective, self.form, self.passes = objective, form, 0
        self.totals = objective.feature_totals() if totals is None else totals
        # Sequences of each bin (None for all), and the bounds and observed features of the bins.
        self.bins: list[NDArray[np.int64]] | list[None] = [None]
        self.bounds = [float(self.totals.max(initial=0.0))]
        self.observed: Vector = objective.observed()
        self.bin_observed = [self.observed]
        if name == "T":
            self.bins, self.bounds = bins_of_totals(self.totals, n_bins)
            self.bin_observed = [objective.observed(ids) for ids in self.bins]

    def evaluate(self, w: Vector) -> Point:
        """Return the point at `w`; one pass. Sets: `passes`."""
        self.passes += 1
        objective, xp = self.objective, self.objective.xp
        expected = xp.empty((len(self.bins), len(w)))
        gradient, part = xp.zeros(len(w)), xp.empty(len(w))
        value = 0.0
        for ids, observed, counts in zip(self.bins, self.bin_observed, expected, strict=True):
            value += objective.value_and_grad(w, out=part, subset=ids)[0]
            gradient += part
            l2 = objective.l2 * (1.0 if ids is None else len(ids) / objective.n_sequences)
            penalty = self._penalised(l2 * w)
            xp.maximum(part + observed - penalty, ROUNDING * (observed + xp.abs(penalty)), out=counts)
        return Point(w, value, *vectors.norms(gradient), expected)

    def step(self, point: Point) -> Vector:
        """Return the step d; no pass."""
        xp = self.objective.xp
        step = xp.empty_like(point.w)
        for part, l2 in self._blocks(len(step)):
            w, expected, observed = point.w[part], point.expected[:, part], self.observed[part]
            if len(self.bounds) > 1:
                step[part] = binned_step(w, expected, observed, self.bounds, l2)
            elif self.form == "ratio":
                step[part] = ratio_step(w, expected[0], observed, self.bounds[0], l2)
            else:
                step[part] = exact_step(w, expected[0], observed, self.bounds[0], l2)
        return step  # type: ignore[no-any-return]

    def bound(self, point: Point, step: Vector) -> float:
        """Return an upper bound on F after an exact step; no pass.

        ``F + sum_i (sum_b E_bi (exp(T_b d_i) - 1)/T_b - O_i d_i + l2 (w_i + d_i/2) d_i)``
        """
        l2, xp = self.objective.l2, self.objective.xp
        change = vectors.dot(step, self._penalised(l2 * (point.w + 0.5 * step)) - self.observed)
        for total, expected in zip(self.bounds, point.expected, strict=True):
            if total > 0.0:
                # Where E is 0 the exponential may overflow.
                change += vectors.dot(expected, xp.expm1(xp.minimum(total * step, MAX_EXPONENT))) / total
        return point.value + change

    def _penalised(self, amounts: Vector) -> Vector:
        """Set the penalty of unpenalised weights to 0."""
        amounts[self.objective.free] = 0.0
        return amounts

    def _blocks(self, n: int) -> Iterator[tuple[slice, float]]:
        """Yield slices of the weights to process at a time, with their l2."""
        free = self.objective.free
        ranges = [(part, self.objective.l2) for part in vectors.penalised_ranges(n, free)]
        for part, l2 in [*ranges, (free, 0.0)]:
            for block in vectors.blocks(part.stop - part.start, self.objective.xp):
                yield slice(part.start + block.start, part.start + block.stop), l2
