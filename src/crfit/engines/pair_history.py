"""L-BFGS's memory of curvature pairs, with the direction computed in two sweeps over the vectors.

With pairs s_k = w_{k+1} - w_k, y_k = g_{k+1} - g_k the two-loop recursion [1, alg. 7.4] gives d = -H v. The
textbook form makes one inner product at a time and sweeps over memory 4m times. But d is a combination of
b = (s_1..s_m, y_1..y_m, v), and all inner products of the recursion are entries of the Gram matrix of b [2].
So the recursion runs on 2m+1 coefficients delta, and memory is swept twice:

    push       one sweep: form and store s, y; products of s, y and v with every stored vector
    direction  delta from the Gram matrix (2m+1 numbers); one sweep: d = sum_i delta_i b_i, w + step d

Pairs are stored as float32, which halves memory and time. The Gram matrix is computed from the rounded pairs
in float64, so the recursion is exact for the rounded pairs: as long as each has s.y > 0, H is positive
definite and d is a descent direction.

`GramPairHistory` holds the small-matrix part. Two methods sweep over weights, `_pair_products` and
`_combine`; an engine with faster ones returns its own class from ``objective.pair_history(memory)``.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
[2] W. Chen, Z. Wang, J. Zhou (2014). Large-scale L-BFGS using MapReduce. NIPS.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError, PointError
from crfit.vectors import Vector, blocks, dot, norms, to_numpy

#: A pair is used if s.y > CURVATURE_FLOOR * y.y: below, H would blow up along y.
CURVATURE_FLOOR = 1e-10


class PairProducts(NamedTuple):
    """Inner products from one sweep over the vectors; all sums in float64."""

    # [3, 2m] rows: new s, new y, v; columns: s of each slot, then y of each slot
    products: NDArray[np.float64]
    v_squared: float  # v.v
    v_largest: float  # max |v_i|


class PairHistory(Protocol):
    """Interface of a memory of curvature pairs, as used by the L-BFGS trainers."""

    v_inf: float
    v_norm: float

    @property
    def n_pairs(self) -> int:
        """Pairs in use."""

    def push(
        self, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v_new: Vector | None = None
    ) -> bool:
        """Store the pair of two points and the vector of the next `direction`, by default g_new.

        Returns whether the pair is used, which requires s.y > 0.
        """

    def direction(
        self, w: Vector, v: Vector, out_d: Vector, out_w_trial: Vector | None = None, step: float = 1.0
    ) -> float:
        """Write d = -H v and ``w + step d`` and return the slope v.d; `v` must be the vector last pushed."""

    def reset(self) -> None:
        """Forget all pairs."""

    def export_state(self) -> dict[str, Any]:
        """Return what `import_state` needs, as arrays and numbers."""

    def import_state(self, state: Mapping[str, Any], v: Vector) -> None:
        """Restore an exported state whose last pushed vector was `v`."""


class GramPairHistory(ABC):
    """Ring of pairs, their Gram matrix, and the two-loop recursion on coefficients.

    A subclass implements the two sweeps. It reads `s`, `y` (float32 [memory, n_weights]; only the first
    `n_used` rows are ever written) and writes row `slot` of both in `_pair_products`.
    """

    def __init__(self, n_weights: int, memory: int, xp: Any = np) -> None:
        if memory < 1:
            raise OptionError("memory", memory, "give 1 or more")
        self.n_weights, self.memory, self.xp = n_weights, memory, xp
        self.s = xp.empty((memory, n_weights), dtype=np.float32)  # pages are allocated when rows are written
        self.y = xp.empty((memory, n_weights), dtype=np.float32)
        self.v_inf = self.v_norm = math.nan
        self.reset()

    @property
    def n_pairs(self) -> int:
        """Pairs in use."""
        return len(self._order)

    def reset(self) -> None:
        """Forget all pairs."""
        self._order: list[int] = []  # slots in use, oldest first
        self.n_used = 0  # rows of s, y written since the reset
        self._gram = np.zeros((2 * self.memory + 1, 2 * self.memory + 1))  # of (s slots, y slots, v)
        self._projected: Any = None  # the vector whose products are the last row

    def push(
        self, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v_new: Vector | None = None
    ) -> bool:
        """Store s = w_new - w_old, y = g_new - g_old and project `v_new` on all pairs: one sweep.

        A pair with s.y <= 1e-10 y.y is not used. If the memory was full, it has overwritten the oldest pair,
        which is lost too.
        """
        m = self.memory
        v = g_new if v_new is None else v_new
        free = [slot for slot in range(m) if slot not in self._order]
        slot = free[0] if free else self._order.pop(0)
        self.n_used = max(self.n_used, slot + 1)

        sweep = self._pair_products(slot, w_new, w_old, g_new, g_old, v)
        for index, row in ((slot, 0), (m + slot, 1), (2 * m, 2)):
            self._gram[index, : 2 * m] = self._gram[: 2 * m, index] = sweep.products[row]
        self._gram[2 * m, 2 * m] = sweep.v_squared
        self._projected = v
        self.v_inf, self.v_norm = sweep.v_largest, math.sqrt(sweep.v_squared)

        sy, yy = self._gram[slot, m + slot], self._gram[m + slot, m + slot]
        if sy > CURVATURE_FLOOR * yy > 0.0 and math.isfinite(sy / yy):  # y.y may underflow
            self._order.append(slot)
            return True
        # Unused rows are still swept, with coefficient 0, so they must not contain inf or NaN.
        self.s[slot] = self.y[slot] = 0.0
        self._gram[[slot, m + slot], :] = self._gram[:, [slot, m + slot]] = 0.0
        return False

    def direction(
        self, w: Vector, v: Vector, out_d: Vector, out_w_trial: Vector | None = None, step: float = 1.0
    ) -> float:
        """Write d = -H v and the trial point w + step d: one sweep. Without pairs H is the identity."""
        if self._order and self._projected is not v:
            raise PointError("direction() needs the vector last given to push()")
        return self._combine(self._coefficients(), w, v, step, out_d, out_w_trial)

    def _coefficients(self) -> NDArray[np.float64]:
        """Two-loop recursion on delta [2m+1], the coefficients of d over (s slots, y slots, v)."""
        m, gram = self.memory, self._gram
        delta = np.zeros(2 * m + 1)
        delta[2 * m] = -1.0
        if not self._order:
            return delta
        alpha = {}
        for k in reversed(self._order):
            alpha[k] = (delta @ gram[:, k]) / gram[k, m + k]
            delta[m + k] -= alpha[k]
        newest = self._order[-1]
        delta *= gram[newest, m + newest] / gram[m + newest, m + newest]  # H_0 = (s.y / y.y) I
        for k in self._order:
            beta = (delta @ gram[:, m + k]) / gram[k, m + k]
            delta[k] += alpha[k] - beta
        return delta

    @abstractmethod
    def _pair_products(
        self, slot: int, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v: Vector
    ) -> PairProducts:
        """Write rows `slot` of s and y and return all products with the rows ``< n_used``.

        Columns of rows not yet written are ignored, except that they must be finite. `v` may be `g_new`.
        """

    @abstractmethod
    def _combine(
        self,
        coefficients: NDArray[np.float64],
        w: Vector,
        v: Vector,
        step: float,
        out_d: Vector,
        out_w: Vector | None,
    ) -> float:
        """Set ``out_d`` to the combination of rows ``< n_used`` and v, ``out_w = w + step d``; return v.d."""

    def export_state(self) -> dict[str, Any]:
        """Return what `import_state` needs: live views of the rows in use, the Gram matrix, the order."""
        return {
            "pairs_s": self.s[: self.n_used],
            "pairs_y": self.y[: self.n_used],
            "pairs_gram": self._gram,
            "pairs_order": list(self._order),
            "pairs_norms": [self.v_inf, self.v_norm],
        }

    def import_state(self, state: Mapping[str, Any], v: Vector) -> None:
        """Restore an exported state of a history with the same memory."""
        s, y, gram = state["pairs_s"], state["pairs_y"], np.asarray(state["pairs_gram"])
        size = 2 * self.memory + 1
        if gram.shape != (size, size) or s.shape != y.shape or s.shape[1:] != (self.n_weights,):
            kept, length = (gram.shape[0] - 1) // 2, s.shape[-1]
            raise OptionError("memory", self.memory, f"the state has memory={kept} and {length} weights")
        self.n_used = int(s.shape[0])
        self.s[: self.n_used] = self.xp.asarray(s)
        self.y[: self.n_used] = self.xp.asarray(y)
        self._gram = gram.copy()
        self._order = [int(k) for k in state["pairs_order"]]
        self.v_inf, self.v_norm = (float(x) for x in state["pairs_norms"])
        self._projected = v


def projected_state(state: Mapping[str, Any], v: Vector) -> dict[str, Any]:
    """Return an exported state with `v` as the vector last pushed.

    Curvature pairs from one point are still useful at another, so a run can continue from a different point.
    """
    gram = np.array(state["pairs_gram"])
    last, m = len(gram) - 1, len(gram) // 2
    for name, offset in (("pairs_s", 0), ("pairs_y", m)):
        for slot, row in enumerate(state[name]):
            gram[offset + slot, last] = gram[last, offset + slot] = dot(row.astype(np.float64), v)
    largest, norm = norms(v)
    gram[last, last] = norm * norm
    return {**state, "pairs_gram": gram, "pairs_norms": [largest, norm]}


class NumPyPairHistory(GramPairHistory):
    """Reference implementation of the two sweeps, block by block, for any array library."""

    def _pair_products(
        self, slot: int, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v: Vector
    ) -> PairProducts:
        xp, m, used = self.xp, self.memory, self.n_used
        sums: Any = xp.zeros((3, 2 * used))
        v_squared = v_largest = 0.0
        for k in blocks(self.n_weights, xp):
            self.s[slot, k] = w_new[k] - w_old[k]
            self.y[slot, k] = g_new[k] - g_old[k]
            # [2 used, block]
            stored = xp.concatenate([self.s[:used, k], self.y[:used, k]]).astype(np.float64)
            new = xp.stack([stored[slot], stored[used + slot], v[k]])  # [3, block]
            sums += xp.einsum("ib,jb->ij", new, stored)
            v_squared += float(xp.einsum("b,b->", v[k], v[k]))
            v_largest = float(np.maximum(v_largest, float(xp.max(xp.abs(v[k])))))
        products = np.zeros((3, 2 * m))
        products[:, :used], products[:, m : m + used] = np.split(to_numpy(sums), 2, axis=1)
        return PairProducts(products, v_squared, v_largest)

    def _combine(
        self,
        coefficients: NDArray[np.float64],
        w: Vector,
        v: Vector,
        step: float,
        out_d: Vector,
        out_w: Vector | None,
    ) -> float:
        xp, m, used = self.xp, self.memory, self.n_used
        c_s, c_y = xp.asarray(coefficients[:used]), xp.asarray(coefficients[m : m + used])
        slope = 0.0
        for k in blocks(self.n_weights, xp):
            d = float(coefficients[2 * m]) * v[k]
            if used:
                d += xp.einsum("j,jb->b", c_s, self.s[:used, k].astype(np.float64))
                d += xp.einsum("j,jb->b", c_y, self.y[:used, k].astype(np.float64))
            slope += float(xp.einsum("b,b->", v[k], d))
            out_d[k] = d
            if out_w is not None:
                out_w[k] = w[k] + step * d
        return slope
