"""Natural gradient descent on Bregman losses: stochastic gradient descent with a transformed residual [1].

    w <- (1 - eta_k l2 B/N) w - eta_k T(u),        u = sum_i c_i (E Phi(x_i, .) - Phi(x_i, y_i))

over B sequences i; T acts on each weight's sum over the whole step. It follows from minimising a Bregman
divergence between expected and observed features by the natural gradient, in which the Fisher matrix cancels
(`crfit.engines.bregman`). With a sigmoid for T residuals count about alike whatever their size, so that rare
features learn as fast as frequent ones. T has a slope of about 10 at 0: the rate is calibrated with T
switched on. A larger batch changes the meaning of T: the sum over its sequences leaves the range where T is
steep.

The condition E[T(u)] = 0, sequence by sequence, is not that of the likelihood: F levels off above its
optimum, and these steps are to be judged by scores on held-out data.

``batch="all"`` makes steps on the whole data instead, one per pass, in any of six forms U:

    w <- (1 - C lam_t) w - lam_t U(Em, Et)        C = l2 / sum_i c_i,  t steps made before

with C = 0 for unpenalised weights. Em and Et are means over the sequences, weighted by c_i, so that the rate
does not depend on their number. All six U are 0 exactly where Em = Et: without a penalty their common fixed
point is the optimum of the likelihood. With a penalty that holds for the quadratic potential alone. The first
rate, unless given, is found once: from 1/U'(0), where a small u is taken as it is, it is halved until some
steps lower F, and on as long as they lower it more.

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
from crfit.trainers.registry import State, Step, check_options, option, register
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Steps by which a first rate is judged, and how many rates are tried at most.
TRIAL_STEPS = 5
MAX_TRIALS = 20


class BatchDescent:
    """Steps on the whole data."""

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


#: What to do about a form of the step that a few sequences do not have.
REMEDIES = {
    "U3": "is U1 for these potentials, which are even: give that, or batch='all'",
    "U5": "is U2 for these potentials, which are even: give that, or batch='all'",
    "U4": "needs the means over the whole data: give batch='all', or U1 or U2",
    "U6": "needs the means over the whole data: give batch='all', or U1 or U2",
}


@register(
    "ngd",
    needs={"online"},
    handles={"l2"},
    change="online_loss",  # the losses still fall when the penalty makes F rise
    formula="w <- w - eta_k (T(u) + l2 share of w), u the expected minus the observed features",
    minimises="transformed losses of sequences, with l2; its F levels off above the minimum",
    keeps="as `sgd`",
    choose="good scores after a few passes on chunking; elsewhere tune the rate first",
)
@dataclass(frozen=True)
class NGD(GradientTrainer):
    """Natural gradient descent on Bregman losses, on-line or on the whole data."""

    update: Literal["U1", "U2", "U3", "U4", "U5", "U6"] = option(
        "U2", help="form of the step: U1 curvature times residual, U2 slope; U3 to U6 with batch='all'"
    )
    potential: Literal["arctan", "erf", "gd", "quadratic"] = option(
        "arctan", help="its slope transforms the residuals; quadratic leaves them unchanged"
    )
    parameter: float | None = option(
        None, help="scale of the potential, for arctan with U1 its epsilon; None: slope 10 at 0", above=0
    )
    table: bool = option(False, help="look up the transform of residuals from -1 to 1 in a table")
    schedule: Literal["inverse", "exponential", "bottou", "power", "constant"] = schedule_option("bottou")
    calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")
    batch: int | Literal["all"] = option(  # type: ignore[assignment]  # the walk has numbers alone
        1, help="sequences per step, or all of them; more than one use all threads", at_least=1, below=2**20
    )
    epochs: int | None = epochs_option(50)

    def __post_init__(self) -> None:
        check_options(self)
        if self.potential == "quadratic" and self.parameter is not None:
            raise OptionError("parameter", self.parameter, "the quadratic potential has none: leave it out")
        if self.batch != "all" and self.update in REMEDIES:
            raise OptionError("update", self.update, REMEDIES[self.update])
        if self.batch == "all" and self.table:
            raise OptionError("table", self.table, "is for steps on a few sequences: leave it out")
        if self.batch == "all" and self.averaging is not None:
            raise OptionError("averaging", self.averaging, "is for steps on a few sequences: leave it out")

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        parameter = self.parameter or paper_parameter(self.potential, self.update)
        if self.batch == "all":
            function = function_of(self.potential, self.update, parameter)
            descent = BatchDescent(objective, self.update, function, self.rate)
            yield from descent.steps(w, state, self.eta0, self.epochs)
            return
        assert self.update in ("U1", "U2")
        rule = Transform(self.potential, self.update, parameter, self.table)
        yield from self.walk(objective, w, state, rule)
