"""An objective in other variables, ``w = base + M u``.

    F(u) = F(base + M u),    gradient  M^T grad F(w)

`ScaledObjective`: M is a positive diagonal. `ClusteredObjective`: M = P, weights of a cluster move together,

    w_j = base_j + u_k / sqrt(n_k),  k = cmap(j),        grad_k = sum_{j in k} g_j / sqrt(n_k)

with n_k the size of cluster k, so the columns of P are orthonormal and a step has the same length in u and in
w. The penalty on w goes through the same sum. With the mean gamma_k = u_k / sqrt(n_k) of a cluster this is
the objective l(P gamma) of [1], whose ridge counts gamma_k once per weight of its cluster.

base = 0 makes the weights of a cluster equal. With ``base = beta - P P^T beta`` they keep their differences
at beta and move by the same amount; base is orthogonal to the span of P, so |w|^2 = |base|^2 + |u|^2. In both
cases ``u = P^T beta`` is the point closest to beta.

`AggregatedObjective` is the same function of u, computed on data whose attributes are the clusters. The
scores of base are constants, so an evaluation does not visit single attributes.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.engines.cpu.pair_history import NativePairHistory
from crfit.engines.objective import Objective
from crfit.engines.pair_history import NumPyPairHistory, PairHistory
from crfit.engines.profile import phases_of
from crfit.vectors import Vector


class ChangedVariables(ABC):
    """The part of `Objective` that `crfit.trainers.quasi_newton.lbfgs` uses, as a function of u; l1 is 0.

    Calls and passes are counted by the objective itself.
    """

    l1: ClassVar[float] = 0.0
    free: ClassVar[slice] = slice(0, 0)  # matters only for l1

    def __init__(self, objective: Objective, n_variables: int) -> None:
        self.objective = objective
        self.n_weights = n_variables
        # The last evaluated point: u, w and the gradient in w.
        self._u: Vector | None = None
        self._w: Vector = self.xp.empty(objective.n_weights)
        self._g: Vector = self.xp.empty(objective.n_weights)

    @property
    def xp(self) -> ModuleType:
        """Module with the array functions for the vectors."""
        return self.objective.xp

    @abstractmethod
    def set_weights(self, u: Vector, out: Vector) -> None:
        """Set ``out = base + M u``."""

    @abstractmethod
    def project(self, g: Vector, out: Vector) -> None:
        """Set ``out = M^T g``."""

    def value_and_grad(self, u: Vector, out: Vector) -> tuple[float, Vector]:
        """F at u, and its gradient in u."""
        self._u = None  # until the arrays are consistent again
        self.set_weights(u, self._w)
        value, _ = self.objective.value_and_grad(self._w, out=self._g)
        self.project(self._g, out)
        self._u = u.copy()
        return value, out

    def full_value(self, u: Vector, smooth: float) -> float:
        """F, equal to its smooth part."""
        return smooth

    def weights(self, u: Vector) -> Vector:
        """The weights w for u: a live view, valid until the next call of any method."""
        if not self._is_last(u):
            self._u = None
            self.set_weights(u, self._w)
        return self._w

    def gradient(self, u: Vector) -> Vector | None:
        """The gradient in w if u was evaluated last, else None; a live view."""
        return self._g if self._is_last(u) else None

    def pair_history(self, memory: int) -> PairHistory:
        """Return a history of curvature pairs in u."""
        if self.xp is np:
            return NativePairHistory(self.n_weights, memory, self.objective.n_threads)
        return NumPyPairHistory(self.n_weights, memory, self.xp)

    def _is_last(self, u: Vector) -> bool:
        return self._u is not None and bool(self.xp.array_equal(u, self._u))


class ScaledObjective(ChangedVariables):
    """Rescaled variables, ``w = scale * u``."""

    def __init__(self, objective: Objective, scale: Vector) -> None:
        super().__init__(objective, objective.n_weights)
        self.scale = scale

    def set_weights(self, u: Vector, out: Vector) -> None:
        """Set ``out = scale * u``."""
        self.xp.multiply(self.scale, u, out=out)

    def project(self, g: Vector, out: Vector) -> None:
        """Set ``out = scale * g``."""
        self.xp.multiply(self.scale, g, out=out)


class Clusters:
    """A map from weights to clusters, and its matrix P with orthonormal columns.

    `cmap`, int64[d]: cluster of each weight, 0 to K - 1, none empty. `groups`, int64[A]: cluster of each
    attribute, if clusters consist of whole attributes; `cmap` then numbers weights like merged data.
    """

    def __init__(
        self, cmap: NDArray[np.int64], groups: NDArray[np.int64] | None = None, xp: Any = np
    ) -> None:
        self.cmap, self.groups, self.xp = xp.asarray(cmap), groups, xp
        self.sizes = np.bincount(cmap)
        self._inverse_root: Vector = xp.asarray(1.0 / np.sqrt(self.sizes))

    def __len__(self) -> int:
        return len(self.sizes)

    def expand(self, u: Vector, out: Vector | None = None) -> Vector:
        """Return ``P u``: each weight is the mean ``u_k / sqrt(n_k)`` of its cluster."""
        weights: Vector = self.xp.take(u * self._inverse_root, self.cmap, out=out, mode="clip")
        return weights

    def project(self, w: Vector, out: Vector | None = None) -> Vector:
        """Return ``P^T w``: sums over clusters divided by the roots of their sizes.

        It is the u with ``P u`` closest to w; a gradient in w becomes the gradient in u.
        """
        sums = self.xp.bincount(self.cmap, weights=w, minlength=len(self))
        projected: Vector = self.xp.multiply(sums, self._inverse_root, out=out)
        return projected

    def remainder(self, w: Vector) -> Vector:
        """Return ``w - P P^T w``, the part of w lost when the weights of a cluster become equal."""
        return w - self.expand(self.project(w))


class ClusteredObjective(ChangedVariables):
    """Weights of a cluster move together."""

    def __init__(self, objective: Objective, clusters: Clusters, base: Vector | None = None) -> None:
        super().__init__(objective, len(clusters))
        self.clusters, self.base = clusters, base

    def set_weights(self, u: Vector, out: Vector) -> None:
        """Set ``out = base + P u``."""
        self.clusters.expand(u, out)
        if self.base is not None:
            out += self.base

    def project(self, g: Vector, out: Vector) -> None:
        """Set ``out = P^T g``."""
        self.clusters.project(g, out)


class AggregatedObjective(ClusteredObjective):
    """The same on data whose attributes are the clusters; `base` is orthogonal to their span."""

    def __init__(self, objective: Any, clusters: Clusters, base: Vector | None = None) -> None:
        self._merged = objective.aggregated(clusters.groups, base)
        self._merged.counts = objective.counts
        super().__init__(objective, clusters, base)
        self._constant = 0.0 if base is None else 0.5 * objective.l2 * vectors.dot(base, base)

    def value_and_grad(self, u: Vector, out: Vector) -> tuple[float, Vector]:
        """F at u, and its gradient in u."""
        before = phases_of(self._merged)
        value, _ = self._merged.value_and_grad(u, out=out)
        self.objective.phases = phases_of(self.objective) + (phases_of(self._merged) - before)
        return value + self._constant, out

    def pair_history(self, memory: int) -> PairHistory:
        """Return a history of curvature pairs in u."""
        history: PairHistory = self._merged.pair_history(memory)
        return history
