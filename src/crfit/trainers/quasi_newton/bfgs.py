"""BFGS: quasi-Newton steps with all curvature pairs of the run, in a dense inverse Hessian H = J J'.

The iteration is the same as in `lbfgs` (`iterations`). Memory and time per step grow with the square of the
number of weights, so it is for a few thousand weights; there it needs fewer passes than `lbfgs`, which drops
old pairs. With s = w_{k+1} - w_k = a d, y = g_{k+1} - g_k and B = 1/H the BFGS update [1, eq. 6.17]

    H <- (I - s y'/s.y) H (I - y s'/s.y) + s s'/s.y

is an update of the factor [2]

    J <- J - s (J'q)',        q = y / s.y  -  B s / sqrt(s.y s.Bs)

where ``B s = -a g`` is known because ``d = -H g``. H stays positive definite despite rounding, and rounding
errors grow with the condition number of J, the square root of that of H. An update costs one product with the
matrix and one sweep, as an update of H would; a direction costs two products, ``d = -J (J'g)``. If the
curvature model is right, y = B s, q is 0 and nothing changes.

H starts as the identity and is set to ``(s.y / y.y) I`` before the first update [1, eq. 6.20]. That is about
one over the largest curvature, while most directions have far less, and H grows slowly. So by default H is
multiplied by ``s.Bs / s.y``, if above 1, before each further update [3]: the factor by which H was too small
along the step. On 500 words of a text corpus this takes 4 to 11 times fewer steps.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
[2] K. Brodlie, A. Gourlay, J. Greenstadt (1973). Rank-one and rank-two corrections to positive definite
    matrices expressed in product form. J. Inst. Math. Appl. 11, 73-82.
[3] M. Al-Baali (1998). Global and superlinear convergence of a restricted class of self-scaling methods with
    inexact line searches, for convex functions. Comput. Optim. Appl. 9, 191-203.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crfit import vectors
from crfit.engines.objective import Objective
from crfit.engines.pair_history import CURVATURE_FLOOR
from crfit.errors import OptionError
from crfit.trainers.options import check_options, option
from crfit.trainers.quasi_newton.iterations import (
    Search,
    max_trials_option,
    quasi_newton_steps,
    wolfe_decrease_option,
    wolfe_slope_option,
)
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector

#: Rows of the factor updated at a time.
ROWS = 64


class InverseHessian:
    """All pairs of a run in one matrix H = J J'; a `crfit.engines.pair_history.PairHistory`.

    `rescales`: whether H is scaled before each update, or only before the first. `factor` is J, float64[n,
    n], once there is a pair; `v_inf` and `v_norm` are norms of the gradient last pushed.
    """

    def __init__(self, n_weights: int, rescales: bool = True, xp: Any = np) -> None:
        self.rescales, self.xp = rescales, xp
        self.factor = xp.empty((n_weights, n_weights))
        self.n_pairs = 0
        self.v_inf = self.v_norm = math.nan
        self._direction: Vector | None = None

    def reset(self) -> None:
        """Make H the identity."""
        self.n_pairs = 0

    def direction(
        self, w: Vector, v: Vector, out_d: Vector, out_w_trial: Vector | None = None, step: float = 1.0
    ) -> float:
        """Write d = -H v and the trial point w + step d; return the slope v.d."""
        xp = self.xp
        if self.n_pairs:
            half = xp.einsum("ij,i->j", self.factor, v)
            out_d[:] = -xp.einsum("ij,j->i", self.factor, half)
        else:
            out_d[:] = -v
        self._direction = out_d
        if out_w_trial is not None:
            vectors.axpy(w, step, out_d, out_w_trial)
        return vectors.dot(v, out_d)

    def push(
        self, w_new: Vector, w_old: Vector, g_new: Vector, g_old: Vector, v_new: Vector | None = None
    ) -> bool:
        """Update H by the pair of a step along the last direction; return whether the pair is used.

        A pair with s.y <= 1e-10 y.y is not. `v_new` is ignored: it is `g_new`.
        """
        xp, d = self.xp, self._direction
        self.v_inf, self.v_norm = vectors.norms(g_new)
        if d is None:
            raise RuntimeError("push() needs a step along a direction: call direction() first")
        dd = vectors.dot(d, d)
        step = vectors.dot(w_new - w_old, d) / dd if dd > 0.0 else 0.0  # squares may underflow
        s, y = step * d, g_new - g_old  # more exact than the difference of the points
        sy, yy = vectors.dot(s, y), vectors.dot(y, y)
        if not (sy > CURVATURE_FLOOR * yy > 0.0 and math.isfinite(sy / yy)):
            return False
        if self.n_pairs:
            bs = -step * g_old
            scale = max(1.0, vectors.dot(s, bs) / sy) if self.rescales else 1.0
        else:
            bs, scale = s, sy / yy
            self.factor[:] = 0.0
            xp.einsum("ii->i", self.factor)[:] = 1.0
        root = math.sqrt(scale)
        q = y / sy - bs / (root * math.sqrt(sy * vectors.dot(s, bs)))
        change = root * xp.einsum("ij,i->j", self.factor, q)
        for begin in range(0, len(s), ROWS):  # avoids a temporary as large as the factor
            rows = slice(begin, begin + ROWS)
            if root != 1.0:
                self.factor[rows] *= root
            self.factor[rows] -= s[rows, None] * change
        self.n_pairs += 1
        return True

    def export_state(self) -> dict[str, Any]:
        """Return what `import_state` needs: a live view of the factor, if it is in use."""
        return {
            "factor": self.factor if self.n_pairs else self.factor[:0],
            "n_pairs": self.n_pairs,
            "pairs_norms": [self.v_inf, self.v_norm],
        }

    def import_state(self, state: State, v: Vector) -> None:
        """Restore an exported state."""
        self.n_pairs = int(state["n_pairs"])
        self.v_inf, self.v_norm = (float(x) for x in state["pairs_norms"])
        if self.n_pairs:
            self.factor[:] = self.xp.asarray(state["factor"])


@register(
    "bfgs",
    needs={"value_and_grad"},
    handles={"l2", "toward", "groups"},
    formula="w <- w - a H g, H dense, from all pairs (w_k+1 - w_k, g_k+1 - g_k)",
    descends=True,
    keeps="a dense matrix of n_weights^2 numbers",
    ends="at the limit of double precision",
    choose="you want a baseline for up to a few thousand weights",
)
@dataclass(frozen=True)
class BFGS:
    """BFGS with a dense inverse Hessian, for a few thousand weights."""

    max_weights: int = option(
        5000,
        help="largest number of weights allowed; the matrix takes 8 n_weights^2 bytes, 200 MB for 5000",
        at_least=1,
        may_change=True,
    )
    scaling: Literal["always", "first"] = option(
        "always",
        help="rescale the inverse Hessian before every update, or only before the first as in textbooks",
    )
    wolfe_decrease: float = wolfe_decrease_option()
    wolfe_slope: float = wolfe_slope_option()
    max_trials: int = max_trials_option()

    def __post_init__(self) -> None:
        check_options(self)
        self._search()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per iteration."""
        n = objective.n_weights
        if n > self.max_weights:
            remedy = (
                f"there are {n:,} weights, whose matrix takes {8e-9 * n * n:,.1f} GB: use lbfgs, drop rare "
                "attributes (min_count), or give a larger number"
            )
            raise OptionError("max_weights", self.max_weights, remedy)
        history = InverseHessian(n, self.scaling == "always", objective.xp)
        return quasi_newton_steps(objective, w, state, history, self._search())

    def _search(self) -> Search:
        return Search(self.wolfe_decrease, self.wolfe_slope, self.max_trials)
