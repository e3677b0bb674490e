"""Natural gradient descent on Bregman losses: stochastic gradient descent with transformed residuals [1].

    w <- (1 - eta_k l2 B/N) w - eta_k T(u),        u = sum_i c_i (E Phi(x_i, .) - Phi(x_i, y_i))

over mini-batches of B sequences i; T acts element-wise on the sum over the mini-batch. The step minimises a
Bregman divergence between expected and observed features by the natural gradient, in which the Fisher matrix
cancels (`crfit.engines.bregman`). A sigmoid T makes small and large residuals count about the same, so rare
features learn as fast as frequent ones. T has a slope of about 10 at 0, so the learning rate is calibrated
with T applied. With a larger mini-batch the sums leave the steep range of T, which changes its effect.

The fixed point E[T(u)] = 0 differs from the optimum of the likelihood: F levels off above its minimum. Judge
these runs by scores on held-out data.

``batch="all"`` takes full-batch steps instead, one per pass, with one of six updates U:

    w <- (1 - C lam_t) w - lam_t U(Em, Et)        C = l2 / sum_i c_i,  t the number of earlier steps

with C = 0 for unpenalised weights. Em and Et are means over the sequences, weighted by c_i, so the learning
rate does not depend on the number of sequences. All six U are 0 exactly where Em = Et: without a penalty
their fixed point is the optimum of the likelihood; with a penalty only for the quadratic potential. Unless
given, the initial learning rate is calibrated once: from 1/U'(0) it is halved until a few steps lower F, and
further as long as F falls more.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crfit import vectors
from crfit.engines.bregman import PotentialFunction, Update, function_of, natural_step, paper_parameter
from crfit.engines.objective import Objective
from crfit.engines.online import Rate, Transform
from crfit.errors import OptionError
from crfit.trainers.online.epochs import epochs_option
from crfit.trainers.online.gradient_trainer import GradientTrainer, calibration_option, schedule_option
from crfit.trainers.options import check_options, option
from crfit.trainers.registry import State, Step, register
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Steps per calibration trial, and the maximum number of trials.
TRIAL_STEPS = 5
MAX_TRIALS = 20


class BatchDescent:
    """Full-batch steps."""

    def __init__(
        self, objective: Objective, update: Update, function: PotentialFunction, rate: Callable[[float], Rate]
    ) -> None:
        self.objective, self.update, self.function, self.rate = objective, update, function, rate
        self.penalty = objective.l2 / objective.total_weight  # C
        self.observed: Vector = objective.observed() / objective.total_weight

    def steps(self, w: Vector, state: State | None, eta0: float | None, epochs: int | None) -> Iterator[Step]:
        """Yield the starting point, then one step per pass."""
        objective = self.objective
        if eta0 is not None and not eta0 * self.penalty < 1.0:
            largest = objective.total_weight / objective.l2
            raise OptionError(
                "eta0", eta0, f"must be below {largest:g} with l2={objective.l2:g} and batch='all'"
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
                message, advice = "the objective is no longer finite", f"use an eta0 below {eta0:g}"
                yield Step(w, state=state, stop=StopReason.DIVERGED, message=message, advice=advice)
                return
            w[:], g, t = new, g_new, t + 1
            state = {"steps": t, "value": value, "gradient": g, "eta0": eta0}
            yield self._report(w, state, lam)

    def _report(self, w: Vector, state: State, lam: float | None) -> Step:
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
                break  # an earlier value lowers F more
            eta0 /= 2.0
        eta0 = min(values, key=values.__getitem__)
        if not math.isfinite(values[eta0]):
            raise OptionError(
                "eta0", None, "no learning rate tried gives a finite objective: set a small eta0 yourself"
            )
        return eta0

    def _tried(self, w: Vector, g: Vector, eta0: float) -> float:
        """F after a few steps with this eta0; infinite if eta0 is too large."""
        if not eta0 * self.penalty < 1.0:
            return math.inf
        rate, value = self.rate(eta0), math.inf
        for t in range(TRIAL_STEPS):
            w = self._moved(w, g, rate.at(t, 1, self.penalty))
            value, g = self.objective.value_and_grad(w)
            if not math.isfinite(value):
                return math.inf
        return value


#: What to use instead of an update that needs batch="all".
REMEDIES = {
    "U3": "is the same as U1 for these potentials: use U1, or batch='all'",
    "U5": "is the same as U2 for these potentials: use U2, or batch='all'",
    "U4": "needs means over all data: use batch='all', or U1 or U2",
    "U6": "needs means over all data: use batch='all', or U1 or U2",
}


@register(
    "ngd",
    needs={"online"},
    handles={"l2"},
    change="online_loss",  # the loss still falls when the penalty makes F rise
    formula="w <- w - eta_k (T(u) + l2 B/N w), u the expected minus the observed features of a mini-batch",
    minimises="a transformed loss with l2; F ends above its minimum",
    keeps="as `sgd`",
    choose="you want good scores after a few passes and can tune the learning rate",
)
@dataclass(frozen=True)
class NGD(GradientTrainer):
    """Natural gradient descent on Bregman losses, with mini-batches or all data."""

    update: Literal["U1", "U2", "U3", "U4", "U5", "U6"] = option(
        "U2",
        help="update rule: U1 curvature of the potential times residual, U2 slope of the potential; U3 to "
        "U6 need batch=all",
    )
    potential: Literal["arctan", "erf", "gd", "quadratic"] = option(
        "arctan", help="Bregman potential whose slope transforms the residuals; quadratic: plain sgd"
    )
    parameter: float | None = option(
        None, help="scale of the potential (epsilon for arctan with U1); None: slope 10 at 0", above=0
    )
    table: bool = option(False, help="look up the transform of residuals between -1 and 1 in a table")
    schedule: Literal["inverse", "exponential", "bottou", "power", "constant"] = schedule_option("bottou")
    calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")
    batch: int | Literal["all"] = option(  # type: ignore[assignment]  # an int in `walk`
        1, help="mini-batch size, or all; values above 1 use all threads", at_least=1, below=2**20
    )
    epochs: int | None = epochs_option(50)

    def __post_init__(self) -> None:
        check_options(self)
        if self.potential == "quadratic" and self.parameter is not None:
            raise OptionError(
                "parameter", self.parameter, "the quadratic potential has no parameter: leave it out"
            )
        if self.batch != "all" and self.update in REMEDIES:
            raise OptionError("update", self.update, REMEDIES[self.update])
        if self.batch == "all" and self.table:
            raise OptionError("table", self.table, "is for mini-batches, not for batch='all': leave it out")
        if self.batch == "all" and self.averaging is not None:
            raise OptionError(
                "averaging", self.averaging, "is for mini-batches, not for batch='all': leave it out"
            )

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        parameter = self.parameter or paper_parameter(self.potential, self.update)
        if self.batch == "all":
            function = function_of(self.potential, self.update, parameter)
            descent = BatchDescent(objective, self.update, function, self.rate)
            yield from descent.steps(w, state, self.eta0, self.epochs)
            return
        assert self.update in ("U1", "U2")
        rule = Transform(self.potential, self.update, parameter, self.table)
        yield from self.walk(objective, w, state, rule)
