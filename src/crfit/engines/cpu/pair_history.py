"""Memory of curvature pairs with native sweeps; see `crfit.engines.pair_history`."""

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.engines.pair_history import GramPairHistory, PairProducts
from crfit.vectors import Vector


class NativePairHistory(GramPairHistory):
    """Both sweeps in native code, threaded."""

    def __init__(self, n_weights: int, memory: int, n_threads: int) -> None:
        super().__init__(n_weights, memory)
        self._n_threads = n_threads

    def _pair_products(
        self, slot: int, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v: Vector
    ) -> PairProducts:
        m, used = self.memory, self.n_used
        sums, scalars = np.empty((3, 2 * used)), np.empty(2)
        _native.pair_products(
            self.s, self.y, used, slot, w_new, w_old, g_new, g_old, v, sums, scalars, self._n_threads
        )
        products = np.zeros((3, 2 * m))
        products[:, :used], products[:, m : m + used] = sums[:, :used], sums[:, used:]
        return PairProducts(products, float(scalars[0]), float(scalars[1]))

    def _combine(
        self,
        coefficients: NDArray[np.float64],
        w: Vector,
        v: Vector,
        step: float,
        out_d: Vector,
        out_w: Vector | None,
    ) -> float:
        m, used = self.memory, self.n_used
        c_s = np.ascontiguousarray(coefficients[:used])
        c_y = np.ascontiguousarray(coefficients[m : m + used])
        c_v = float(coefficients[2 * m])
        return _native.combine_pairs(self.s, self.y, c_s, c_y, c_v, w, v, step, out_d, out_w, self._n_threads)
