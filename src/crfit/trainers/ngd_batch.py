"""Natural gradient descent on the whole data: one step per pass, in any of six forms (`crfit.bregman`).

    w <- (1 - C lam_t) w - lam_t U(Em, Et)        C = l2 / sum_i c_i,  t steps made before

with C = 0 for weights that have no penalty.

Em and Et are means over the sequences, weighted by c_i, so that the rate does not depend on their number. All
six U are 0 exactly where Em = Et: without a penalty their common fixed point is the optimum of the
likelihood, which is not true of steps on a few sequences. With a penalty it is the optimum for the quadratic
potential alone.

The first rate, unless given, is found once: from 1/U'(0), where a small u is taken as it is, it is halved
until some steps lower F, and on as long as they lower it more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import vectors
from crfit.bregman import PotentialFunction, Update, natural_step
from crfit.errors import OptionError
from crfit.online import Rate
from crfit.stopping import StopReason
from crfit.trainers.base import Step
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["BatchDescent"]

#: Steps by which a first rate is judged, and how many rates are tried at most.
TRIAL_STEPS = 5
MAX_TRIALS = 20


class BatchDescent:
    """Steps on the whole data.

    Parameters
    ----------
    objective : Objective
        Value and gradient, observed features, and the sum of the sequences' weights.
    update : {"U1", .., "U6"}
        The form of the step.
    function : PotentialFunction
        The potential.
    rate : callable
        First rate to `Rate`, which goes by steps.
    """

    def __init__(
        self,
        objective: Objective,
        update: Update,
        function: PotentialFunction,
        rate: Callable[[float], Rate],
    ) -> None:
        self.objective, self.update, self.function, self.rate = objective, update, function, rate
        self.penalty = objective.l2 / objective.total_weight  # C
        self.observed: Vector = objective.observed() / objective.total_weight

    def steps(
        self, w: Vector, state: Mapping[str, Any] | None, eta0: float | None, epochs: int | None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per pass.

        Parameters
        ----------
        w : float64[n_weights]
            Starting point. Sets: the weights reported.
        state : mapping or None
            `Step.state` of an earlier run that ended at `w`.
        eta0 : float or None
            The first rate; None to find it.
        epochs : int or None
            Steps in all; None for no end.
        """
        objective = self.objective
        if eta0 is not None and not eta0 * self.penalty < 1.0:
            largest = objective.total_weight / objective.l2
            raise OptionError(
                "eta0", eta0, f"with l2={objective.l2:g} and batch='all' give less than {largest:g}"
            )
        if state is None:
            value, g = objective.value_and_grad(w)
            state = {"steps": 0, "value": value, "gradient": g}
            yield self._report(w, state, None)
        t, value, g = int(state["steps"]), float(state["value"]), objective.xp.asarray(state["gradient"])
        eta0 = float(state["eta0"]) if "eta0" in state else eta0
        if eta0 is None:
            eta0 = self._calibrated(w, value, g)
        rate = self.rate(eta0)
        while epochs is None or t < epochs:
            lam = rate.at(t, 1, self.penalty)
            new = self._moved(w, g, lam)
            value, g_new = objective.value_and_grad(new)
            if not math.isfinite(value):
                message, advice = "the objective is no longer finite", f"give a smaller eta0 than {eta0:g}"
                yield Step(w, state=state, stop=StopReason.DIVERGED, message=message, advice=advice)
                return
            w[:], g, t = new, g_new, t + 1
            state = {"steps": t, "value": value, "gradient": g, "eta0": eta0}
            yield self._report(w, state, lam)

    def _report(self, w: Vector, state: Mapping[str, Any], lam: float | None) -> Step:
        value = state["value"]
        largest, norm = vectors.norms(state["gradient"])
        free = w[self.objective.free]
        loss = value - 0.5 * self.objective.l2 * (float(w @ w) - float(free @ free))
        extra = {} if lam is None else {"online_objective": value, "online_loss": loss}
        return Step(w, value, largest, norm, lam, state, extra, initial=lam is None)

    def _moved(self, w: Vector, g: Vector, lam: float) -> Vector:
        """The weights after a step; g is the gradient of F, sum_i c_i (E Phi - Phi) + l2 w."""
        objective = self.objective
        residual, shrunk = g - objective.l2 * w, (1.0 - self.penalty * lam) * w
        residual[objective.free], shrunk[objective.free] = g[objective.free], w[objective.free]
        expected = residual / objective.total_weight + self.observed
        return shrunk - lam * natural_step(self.update, self.function, expected, self.observed)

    def _calibrated(self, w: Vector, start: float, g: Vector) -> float:
        eta0 = 1.0 / float(self.function.curvature(np.zeros(1))[0])
        values: dict[float, float] = {}
        for _ in range(MAX_TRIALS):
            values[eta0] = value = self._tried(w, g, eta0)
            if min(values.values()) < min(start, value):
                break  # an earlier one lowers F, and by more
            eta0 /= 2.0
        eta0 = min(values, key=values.__getitem__)
        if not math.isfinite(values[eta0]):
            raise OptionError("eta0", None, "no rate that was tried gives a finite value: give a small one")
        return eta0

    def _tried(self, w: Vector, g: Vector, eta0: float) -> float:
        """F after some steps with this first rate; infinite if it cannot be."""
        if not eta0 * self.penalty < 1.0:
            return math.inf
        rate, value = self.rate(eta0), math.inf
        for t in range(TRIAL_STEPS):
            w = self._moved(w, g, rate.at(t, 1, self.penalty))
            value, g = self.objective.value_and_grad(w)
            if not math.isfinite(value):
                return math.inf
        return value
