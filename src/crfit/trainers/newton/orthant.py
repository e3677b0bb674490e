"""Newton steps with l1 > 0: conjugate gradients inside an orthant, with corrections [1, 2].

F = f + l1 |w|_1 is smooth inside an orthant. With v the pseudo-gradient (`crfit.vectors`), a step stays in

    o_i = sign(w_i),  or -sign(v_i) where w_i = 0;      weights with o_i = 0 stay at 0

and minimises there the model with the exact Hessian H of f

    Q(s) = v.s + s.(H + B) s / 2,      w + s in the orthant

In cycles: conjugate gradients on the free weights, until the residual is small or too many of the free
weights have crossed zero; those are then set to 0 and stay there in this step, which costs one product. If Q
does not fall by that, the cycle is shortened, at last to one diagonally scaled gradient step. On paths the
next cycle continues from the last direction, without those weights; this saves products near the optimum, but
training from zero would take up to half as many again. Projecting only at the end of all conjugate gradients
does not work: attributes that mostly occur together compensate each other's large weights of opposite sign.

B damps weights with hardly any curvature. The loss is exponential in them, and Newton steps from the flat
side far too long:

    B_i = max(0, |v_i| / reach - h_i),      h the diagonal of H

so that a step along one weight is at most `reach`, which is doubled or halved by how well Q predicts F. Near
the optimum v is small and B is 0. The metric is (1 - mix) l2 + mix h + B.

Products are wanted only for the weights that are free at the start of the step, often a small part of
them (`Objective.restricted`).

A line search on F follows, projected onto the orthant; the full step nearly always passes.

A run that ends at a distance to the optimum gives it as `wanted`. What Q could still fall after n products is
estimated as if n more gained as much as the last third of them did,

    left = n (mean gain of the last third),     at least (1 - n / 50) (left of the step before - gains)

because the first products of a step say little. On a path the error of the last point stays for a while: its
estimate is added, times the same 1 - n / 50. Conjugate gradients end when that is at most 0.8 of `wanted`,
or 0.3 of the gains so far: the model is not worth more. What Q mispredicted by e, of a decrease m, adds 4
e^2 / m (`crfit.trainers.newton.globalisation`).

References
----------
[1] N. Keskar, J. Nocedal, F. Oztoprak, A. Waechter (2016). A second-order method for convex l1-regularized
    optimization with active-set prediction. Optim. Methods Softw. 31, 605-621.
[2] J. More, G. Toraldo (1991). On the solution of large quadratic programming problems with bound
    constraints. SIAM J. Optim. 1, 93-113.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from crfit import vectors
from crfit.trainers.newton.conjugate_gradient import Workspace, mixed
from crfit.trainers.newton.globalisation import (
    MAX_TRIALS,
    MISSED,
    SUFFICIENT,
    Globalisation,
    Model,
    Move,
    Point,
)
from crfit.trainers.wolfe_search import backtracking
from crfit.training.interrupts import must_hurry
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Share of the Hessian's diagonal in the metric.
MIX = 0.3
#: Products allowed in one step, if `max_cg` allows as many.
MAX_PRODUCTS = 100
#: A cycle of k >= 5 products ends when more than 0.1 / k of the free weights have crossed zero.
CROSSED = 0.1
SHORTEST = 5
#: Lengths of a cycle that are tried until Q falls.
LENGTHS = 1.0, 0.25, 0.0625, 0.015625
#: `reach` at the start, and its range.
REACH = 1.0
REACHES = 0.05, 64.0
#: Q predicts F badly or well: share of the predicted decrease.
POOR, GOOD = 0.25, 0.75
#: With `wanted`, conjugate gradients end when `left` is below the first share of it, or the second of the
#: gains, but not before so many products.
ENOUGH, REST = 0.8, 0.3
FEWEST = 5
#: Products after which `left` does not depend on the step before.
TRUSTED = 50


class OrthantSearch(Globalisation):
    """Minimises the model in the orthant of the point, then searches along the projected step."""

    def __init__(self, longest: float = REACHES[1]) -> None:
        self.reach, self.longest = REACH, longest
        self.predicted = 0.0  # decrease of the model in the last step
        self.carried = 0.0  # what the optimum of other penalties was missed by, for the first step
        self.model_left = 0.0  # what the model of the last step could still fall, 0 if unknown
        self.remaining = math.inf  # what F could still fall after the last step, if known
        self.screened: Any = None  # bool[n_weights], weights that stay at 0; None: none

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Move to a better point, or return why none was found."""
        point.pin()
        face = _Face(point, work, model, self)
        with point.objective.restricted(face.free):
            face.minimise()
        self.predicted, self.solved = face.decrease, face.solved
        if not face.finite:
            return Move(0.0, face.products, 0, StopReason.DIVERGED, "a Hessian product is not finite")

        def trial(length: float) -> tuple[float, float]:
            slope = vectors.project_orthant(point.w, work.s, length, face.v, point.w_trial, point.free)
            return point.evaluate(), slope

        accepted = backtracking(
            trial, point.value, improves=point.shorter_gradient, c1=SUFFICIENT, max_trials=MAX_TRIALS
        )
        if accepted is None:
            return Move(0.0, face.products, 0, StopReason.LINE_SEARCH, "no step lowers the objective")
        kept = (point.value - accepted.value) / face.decrease if face.decrease > 0.0 else 0.0
        if accepted.trials > 1 or kept < POOR:
            self.reach = max(0.5 * self.reach, REACHES[0])
        elif kept > GOOD:
            self.reach = min(2.0 * self.reach, self.longest)
        self.model_left, self.carried, self.remaining = face.left(), 0.0, math.inf
        if accepted.trials == 1 and face.decrease > 0.0:
            missed = point.value - accepted.value - face.decrease
            self.remaining = self.model_left + MISSED * missed * missed / face.decrease
        point.accept()
        return Move(accepted.step, face.products, accepted.trials - 1)

    def extra(self) -> dict[str, float]:
        """Numbers for the log, besides the step size."""
        return {"reach": self.reach, "predicted": self.predicted}

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        return {"reach": self.reach}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: the reach, from `state`."""
        self.reach = float(state["reach"])


class _Face:
    """The model in the orthant of a point, and its approximate minimum ``work.s``."""

    def __init__(self, point: Point, work: Workspace, model: Model, search: OrthantSearch) -> None:
        objective, xp = point.objective, point.objective.xp
        assert model.metric is not None
        self.objective, self.xp, self.work, self.w = objective, xp, work, point.w
        self.xi, self.max_products = model.xi, min(model.max_products, MAX_PRODUCTS)
        self.v = xp.empty_like(point.w)
        vectors.pseudo_gradient(point.w, point.g, objective.l1, self.v, point.free)
        self.orthant = xp.where(point.w != 0.0, xp.sign(point.w), -xp.sign(self.v))
        if search.screened is not None:
            self.orthant[search.screened] = 0.0
        self.free = self.orthant != 0.0  # weights that conjugate gradients move
        self.bounded = xp.ones(len(point.w), dtype=bool)
        self.bounded[point.free] = False  # unpenalised weights have no orthant
        self.free |= ~self.bounded
        self.damping = xp.maximum(xp.abs(self.v) / search.reach - model.metric, 0.0)
        self.metric = mixed(model.metric, MIX, objective.l2, xp.empty_like(point.w), point.free)
        self.metric += self.damping
        self.hs = xp.zeros_like(point.w)  # (H + B) s
        self.products, self.decrease, self.finite, self.solved = 0, 0.0, True, False
        self.curvature = 0.0  # along the last direction
        self.gains: list[float] = []  # of conjugate gradients
        self.wanted, self.left_before, self.carried = model.wanted, search.model_left, search.carried
        self.convex = True  # along the directions tried

    def minimise(self) -> None:
        """Sets: ``work.s``, decrease."""
        work = self.work
        work.clear()
        target, longest = -1.0, self.max_products
        while self.products < self.max_products and not (self.products and must_hurry()):
            work.res[:] = self.xp.where(self.free, -self.v - self.hs, 0.0)
            zr = vectors.cg_residual(work.res, 0.0, self.hs, self.metric)
            if target < 0.0:
                target = self.xi * self.xi * zr
            self.solved = zr <= target
            if self.solved:
                return
            before, hs = work.s.copy(), self.hs.copy()
            done = self._cycle(zr, target, min(longest, self.max_products - self.products))
            if not self.finite or done == 0:
                return
            lower = self._project(before)
            if not lower:
                work.s[:], self.hs[:] = before, hs
            if not lower or self.wanted == 0.0:
                self.curvature = 0.0
            self.solved = lower and self._enough()
            if self.solved:
                return
            if not self.convex or (done == 1 and not lower):
                return
            if not lower:
                longest = max(1, done // 4)

    def _cycle(self, zr: float, target: float, longest: int) -> int:
        """Conjugate gradients from s; return the number of their steps."""
        work, xp, n_free = self.work, self.xp, int(self.free.sum())
        done = 0
        for k in range(1, longest + 1):
            slope = self._direction()
            self._product(work.d, work.product)
            curvature = vectors.dot(work.d, work.product)
            if not curvature > 0.0:
                self.finite = math.isfinite(curvature)
                self.convex = False  # partial labels: the model has no minimum
                if self.finite and done == 0 and self.decrease == 0.0:  # take the damped gradient
                    vectors.axpy(work.s, 1.0, work.d, work.s)
                    vectors.axpy(self.hs, 1.0, work.product, self.hs)
                    done = 1
                return done
            a = slope / curvature
            vectors.axpy(work.s, a, work.d, work.s)
            vectors.axpy(self.hs, a, work.product, self.hs)
            self.gains.append(0.5 * a * slope)
            product = xp.where(self.free, work.product, 0.0)
            zr, done = vectors.cg_residual(work.res, a, product, self.metric), k
            self.curvature = curvature
            crossed = self._crossed(work.s)
            many = k >= SHORTEST and k * int(crossed.sum()) > CROSSED * n_free
            if zr <= target or many or self._enough() or must_hurry():
                break
        return done

    def _enough(self) -> bool:
        """Whether the model has little left to fall, by an estimate."""
        if self.wanted == 0.0 or len(self.gains) < FEWEST:
            return False
        return self.left() <= max(ENOUGH * self.wanted, REST * sum(self.gains))

    def left(self) -> float:
        """By how much the model could still fall, by an estimate."""
        n = len(self.gains)
        if n == 0:
            return self.left_before
        last, doubt = self.gains[-max(3, n // 3) :], max(0.0, 1.0 - n / TRUSTED)
        own = n * sum(last) / len(last)
        return max(own + doubt * self.carried, doubt * (self.left_before - sum(self.gains)))

    def _direction(self) -> float:
        """Sets: ``work.d``, conjugate to the last one on the free weights; return the slope along it."""
        work = self.work
        z = work.res / self.metric
        if self.curvature > 0.0:
            work.d[~self.free] = 0.0
            work.d *= -vectors.dot(z, work.product) / self.curvature
            work.d += z
            slope = vectors.dot(work.res, work.d)
            if slope > 0.0:
                return slope
        work.d[:] = z
        return vectors.dot(work.res, z)

    def _project(self, before: Vector) -> bool:
        """Shorten the cycle from `before` to ``work.s`` until the projected step lowers the model."""
        work, xp = self.work, self.xp
        change = work.s - before
        for length in LENGTHS:
            vectors.axpy(before, length, change, work.s)
            crossed = self._crossed(work.s)
            if length < 1.0 or bool(crossed.any()):
                work.s[:] = xp.where(crossed, -self.w, work.s)
                self._product(work.s, self.hs)
            decrease = -vectors.dot(self.v, work.s) - 0.5 * vectors.dot(work.s, self.hs)
            if decrease > self.decrease:
                self.decrease = decrease
                self.free &= ~crossed
                return True
        return False

    def _crossed(self, s: Vector) -> Any:
        """Free weights that ``w + s`` has outside of the orthant."""
        return self.free & self.bounded & ((self.w + s) * self.orthant <= 0.0)

    def _product(self, x: Vector, out: Vector) -> None:
        """Set ``out = (H + B) x``."""
        self.objective.hvp(x, out=out)
        out += self.damping * x
        self.products += 1
