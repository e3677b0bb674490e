"""Conjugate gradients on the quadratic model of a Newton step, and their preconditioner (metric).

    Q(s) = g.s + s.Hs/2        minimal where H s = -g, with |s|_M <= radius

Steihaug's method [1]: start at zero, minimise along conjugate directions, and stop where the path leaves the
trust region. Lengths and tests use the metric of a diagonal M, the identity without a preconditioner:

    res = -g - H s             z = res / M              a = z.res / d.Hd
    s <- s + a d               res <- res - a Hd        d <- z + (z_new.res_new / z.res) d

Two stopping tests. `residual`: |res|_{1/M} <= xi |g|_{1/M} [2]. `quadratic`: l (Q_l - Q_{l-1}) >= xi Q_l
after l products [3], so the last product gained too little. Each iteration lowers Q by a z.res/2.

What the model could still fall after l iterations, with A and B the sums of their gains in the second and
the last third: as if every further l/3 iterations gained the same share r of those before, and twice that,
because the gains fall ever more slowly (compare [4]),

    left = 2 B r / (1 - r),    r = B / A

known from twelve iterations on, and while the gains fall. A run that ends at a distance to the optimum gives
that distance as `wanted`. The iteration ends when left is below it, and goes on beyond the residual test when
left is little above it: a few products more cost less than another Newton step.

An iteration costs one product and three sweeps over memory (`crfit.vectors`), and allocates nothing. Norms
are summed in these sweeps: recurrences for them would drift, as the residual does.

The preconditioner is LIBLINEAR's mixture, with l2 instead of its 1:

    M = (1 - mix) l2 + mix diag(H)

Within a few per cent of the optimum the full diagonal works best: a dozen products do what takes hundreds
without it. Closer to the optimum the remaining error lies in directions that the diagonal does not capture,
and a weaker mixture needs fewer products. The gain of the last step measures the distance to the optimum:
with gain = (F_{k-1} - F_k) / F_k

    mix = 1 after the warm-up and while gain > 1e-2, 0.1 while gain > 1e-5, 0.01 below

The diagonal is recomputed, in one pass, while gain > 1e-3; below that it hardly changes.

References
----------
[1] T. Steihaug (1983). The conjugate gradient method and trust regions in large scale optimization. SIAM J.
    Numer. Anal. 20, 626-637.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
[3] S. Nash, A. Sofer (1990). Assessing a search direction within a truncated-Newton method. Oper. Res. Lett.
    9, 219-221.
[4] Z. Strakos, P. Tichy (2002). On error estimation in the conjugate gradient method and why it works in
    finite precision computations. Electron. Trans. Numer. Anal. 13, 56-80.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from crfit import vectors
from crfit.training.interrupts import must_hurry
from crfit.vectors import NONE_FREE, Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

#: Curvature along d that may be rounding, relative to the largest so far.
FLAT = 1e-15
#: The residual is checked every `CHECK_EVERY` products. If its square is still above `STALLED` times the last
#: one, the true residual is computed; it replaces the updated one if they differ by `DRIFT` of its norm.
CHECK_EVERY = 50
STALLED = 0.25
DRIFT = 1e-2
#: Iterations from which on `left` is estimated, and shares of `wanted`: below the first the iteration ends,
#: and below the second it goes on beyond the residual test.
KNOWN = 12
ENOUGH, ALMOST = 0.8, 2.0


class Workspace:
    """Four vectors, allocated once: solution, residual, direction, product."""

    def __init__(self, like: Vector, xp: ModuleType) -> None:
        self.s, self.res = xp.zeros_like(like), xp.zeros_like(like)
        self.d, self.product = xp.zeros_like(like), xp.zeros_like(like)

    def clear(self) -> None:
        """Set solution, residual and direction to zero."""
        for vector in (self.s, self.res, self.d):
            vector[:] = 0.0


@dataclass(frozen=True)
class ModelStep:
    """Outcome of the iteration; the step itself is ``Workspace.s``."""

    products: int  # Hessian-vector products computed
    decrease: float  # by how much the model falls, ``-Q(s)``
    slope: float  # ``g.s``
    norm: float  # ``|s|_M``
    left: float = math.inf  # by how much the model could still fall, by an estimate
    solved: bool = False  # whether the stopping test held
    boundary: bool = False  # whether the path was cut at the radius
    finite: bool = True  # False if a product was infinite or NaN; `Workspace.s` is the step before it


def minimise_model(
    product: Callable[..., Vector],
    g: Vector,
    work: Workspace,
    *,
    xi: float,
    quadratic: bool = False,
    radius: float = math.inf,
    metric: Vector | None = None,
    max_products: int = 250,
    wanted: float = 0.0,
    enough: Callable[[int, float, Vector], bool] | None = None,
) -> ModelStep:
    """Minimise ``g.s + s.Hs/2`` from zero, g not zero, with ``|s|_M <= radius``. Sets: ``work.s``, the step.

    ``product(v, out=hv)`` sets `hv` to ``H v``; `metric` is the diagonal of M, positive. `quadratic` selects
    the quadratic test, with ``min(xi, sqrt(|g|_{1/M}))`` as in LIBLINEAR 2.40, instead of the residual test.
    `wanted` is what the model may still fall at the end of the run, 0 if that does not matter.
    ``enough(products, gain, residual)``, with the decrease of the last iteration, ends it too.
    """
    run = _Run(product, g, work, radius, metric)
    target = xi * xi * run.zr
    share = min(xi, run.zr**0.25)
    checked = run.zr
    while run.n_products < max_products and run.zr > 0.0:
        gain = run.step()
        if gain is None or run.boundary:
            break
        done = run.n_products * gain <= share * run.fall if quadratic else run.zr <= target
        run.solved = done
        if wanted > 0.0 and not quadratic:
            left = run.left()
            done = left <= ENOUGH * wanted or (done and not left <= ALMOST * wanted)
        done = done or (enough is not None and enough(run.n_products, gain, work.res))
        if done or must_hurry():  # any iterate is a descent direction
            break
        if run.n_products % CHECK_EVERY == 0:
            if run.zr > STALLED * checked and run.n_products < max_products:
                run.refresh_residual()
            checked = run.zr
    return run.result()


@dataclass
class _Run:
    """State of `minimise_model`: the vectors of `work` and their scalars.

    The sweep that updates s and d is postponed to the next step, which needs the new direction; the last step
    then updates only s.
    """

    product: Callable[..., Vector]
    g: Vector
    work: Workspace
    radius: float
    metric: Vector | None
    n_products: int = 0
    fall: float = 0.0  # -Q(s)
    gains: list[float] = field(default_factory=list)  # of each iteration
    solved: bool = False  # whether the stopping test held
    boundary: bool = False
    finite: bool = True
    zr: float = field(init=False)  # z.res
    pending: tuple[float, float] = field(init=False)  # a and z_new.res_new / z.res, for the postponed sweep
    square: float = 0.0  # s.Ms, including the postponed update
    steepest: float = 0.0  # largest d.Hd / d.Md

    def __post_init__(self) -> None:
        self.work.clear()
        self.zr = vectors.cg_residual(self.work.res, 1.0, self.g, self.metric)  # res = -g
        self.pending = 0.0, 0.0

    def step(self) -> float | None:
        """Do one iteration; return the decrease of the model, None if no step is possible."""
        work, (a, factor) = self.work, self.pending
        ss, sd, dd = vectors.cg_direction(work.s, a, work.d, work.res, factor, self.metric)
        self.square, self.pending = ss, (0.0, 0.0)
        self.product(work.d, out=work.product)
        self.n_products += 1
        curvature = vectors.dot(work.d, work.product)
        if not math.isfinite(curvature):
            self.finite = False
            return None
        flat = curvature <= FLAT * self.steepest * dd
        self.steepest = max(self.steepest, curvature / dd)
        if flat and math.isinf(self.radius):
            # No minimum along d and no boundary. A line search along s still needs a direction.
            if self.n_products == 1:
                self.square, self.pending = dd, (1.0, 0.0)
            return None
        a = math.inf if flat else self.zr / curvature
        self.square = ss + a * (2.0 * sd + a * dd)
        if self.square > self.radius * self.radius:
            a = to_boundary(ss, sd, dd, self.radius)
            self.boundary, self.square = True, self.radius * self.radius
        gain = a * (self.zr - 0.5 * a * curvature)
        self.fall += gain
        self.gains.append(gain)
        zr = vectors.cg_residual(work.res, a, work.product, self.metric)
        self.pending = a, zr / self.zr
        self.zr = zr
        return gain

    def left(self) -> float:
        """By how much the model could still fall, by an estimate; infinite if unknown."""
        third = len(self.gains) // 3
        if len(self.gains) < KNOWN:
            return math.inf
        before, last = sum(self.gains[-2 * third : -third]), sum(self.gains[-third:])
        return 2.0 * last * last / (before - last) if last < before else math.inf

    def refresh_residual(self) -> None:
        """Recompute the residual; if the updated one has drifted, restart from s with the true one."""
        work = self.work
        vectors.axpy(work.s, self.pending[0], work.d, work.s)
        self.pending = 0.0, self.pending[1]
        self.product(work.s, out=work.product)
        self.n_products += 1
        vectors.axpy(work.product, 1.0, self.g, work.product)  # H s + g, the residual with the other sign
        updated, true = vectors.dot(work.res, work.res), vectors.dot(work.product, work.product)
        drift = updated + true + 2.0 * vectors.dot(work.res, work.product)
        if drift > DRIFT * DRIFT * true:
            work.res[:] = 0.0
            self.zr = vectors.cg_residual(work.res, 1.0, work.product, self.metric)
            self.pending = 0.0, 0.0

    def result(self) -> ModelStep:
        """Update s for the last time; return the outcome."""
        work = self.work
        if self.pending[0] != 0.0:
            vectors.axpy(work.s, self.pending[0], work.d, work.s)
        slope = vectors.dot(self.g, work.s)
        decrease = 0.5 * (vectors.dot(work.s, work.res) - slope)
        norm = math.sqrt(self.square)
        return ModelStep(
            self.n_products, decrease, slope, norm, self.left(), self.solved, self.boundary, self.finite
        )


def to_boundary(ss: float, sd: float, dd: float, radius: float) -> float:
    """Return a >= 0 with ``|s + a d| = radius``, from s.s, s.d, d.d of one metric; without cancellation."""
    room = max(radius * radius - ss, 0.0)
    root = math.sqrt(sd * sd + dd * room)
    return room / (sd + root) if sd > 0.0 else (root - sd) / dd


#: Smallest entry of the preconditioner for unpenalised weights, relative to its largest.
FLOOR = 1e-10
#: (gain above, mix); the first match applies.
MIXES = (1e-2, 1.0), (1e-5, 0.1), (-math.inf, 0.01)
#: Below this gain the diagonal is not recomputed.
SETTLED = 5e-2


def mixed(diagonal: Vector, mix: float, l2: float, out: Vector, free: slice = NONE_FREE) -> Vector:
    """Set ``out = (1 - mix) l2 + mix diagonal`` and return it; `out` may be `diagonal`.

    An unpenalised weight whose feature has no variance has curvature 0: entries of unpenalised weights
    (`free`) are kept above 1e-10 of the largest.
    """
    out[:] = diagonal
    out *= mix
    unbounded = out
    if l2 > 0.0:
        out += (1.0 - mix) * l2
        unbounded = out[free]
    if len(unbounded):
        largest = float(out.max())
        floor = FLOOR * largest if largest > 0.0 else 1.0
        unbounded[unbounded < floor] = floor
    return out


class Metric:
    """The identity; base class of the other preconditioners."""

    mix: float = 0.0  # share of the diagonal
    diagonal: Vector | None = None  # saved for a resume, if set

    def at(self, objective: Objective, gain: float) -> Vector | None:
        """Return M at the pinned point, None for the identity; `gain` is the gain of the last step."""
        return None


class FixedMetric(Metric):
    """A fixed mixture with the diagonal at the current point."""

    def __init__(self, mix: float) -> None:
        self.mix = mix

    def at(self, objective: Objective, gain: float) -> Vector:
        """Return M at the pinned point; one pass."""
        diagonal = objective.hessian_diagonal()
        return mixed(diagonal, self.mix, objective.l2, diagonal, objective.free)


class AdaptiveMetric(Metric):
    """A mixture that gets weaker near the optimum."""

    def __init__(self, diagonal: Vector | None = None) -> None:
        self.mix = math.nan
        self.diagonal = diagonal
        self._metric: Vector | None = None

    def at(self, objective: Objective, gain: float) -> Vector:
        """Return M at the pinned point; one pass if the diagonal is recomputed."""
        mix = next(mix for bound, mix in MIXES if gain > bound)
        diagonal = self.diagonal
        fresh = diagonal is None or gain > SETTLED
        if diagonal is None or fresh:
            diagonal = self.diagonal = objective.hessian_diagonal()
        if self._metric is None or fresh or mix != self.mix:
            if self._metric is None:
                self._metric = objective.xp.empty_like(diagonal)
            mixed(diagonal, mix, objective.l2, self._metric, objective.free)
        self.mix = mix
        return self._metric
