"""Visits of trainers that go down the gradient of a few sequences at a time (`crfit.online`).

The first rate is given or found by calibration, with the rule of the run. An epoch ends with

    online_objective = sum_i c_i loss_i + l2/2 |w|^2

each loss at the weights before its step, the penalty at the end: F as it was met on the way. ``online_loss``
is the first sum alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.online import Adaptive, OnlineRun, Rate, Rule, check_rate
from crfit.trainers.calibration import Trial
from crfit.trainers.epochs import Visit, Visits
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["GradientVisits"]


class GradientVisits(Visits):
    """Steps of ``objective.online``.

    Parameters
    ----------
    objective : Objective
        Offers ``online``.
    w : float64[n_weights]
        Starting point.
    rule : Rule
        What a step does with the sum of its residuals.
    rate : callable
        First rate to `Rate`.
    eta0 : float or None
        The first rate; None to find it by `calibrate`.
    batch : int
        Sequences per step.
    calibrate : callable, optional
        Finds the first rate by a `crfit.trainers.calibration.Trial`; not needed where that is given.
    """

    run: OnlineRun

    def __init__(
        self,
        objective: Objective,
        w: Vector,
        rule: Rule,
        *,
        rate: Callable[[float], Rate],
        eta0: float | None,
        batch: int,
        calibrate: Callable[[Trial], float] | None = None,
    ) -> None:
        self.objective, self.rate, self.eta0, self.calibrate = objective, rate, eta0, calibrate
        self.batch = min(batch, objective.n_sequences)
        self.decays = not isinstance(rule, Adaptive)  # whose penalty is part of the residual
        if eta0 is not None:
            check_rate(rule, eta0, objective.l2, self.batch, objective.n_sequences)
        super().__init__(objective.online(w, rule))
        self.square = 0.0  # |w|^2 after the last visit, of weights with a penalty

    def prepare(self, w: Vector) -> None:
        """Find the first rate unless it was given. Sets: `eta0`."""
        if self.eta0 is None:
            trial = Trial(self.objective, self.run, w, self.rate, self.batch, self.decays)
            assert self.calibrate is not None
            self.eta0 = self.calibrate(trial)
            self.run.set_weights(w)

    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Make steps over sequences in their order."""
        assert self.eta0 is not None
        n, l2, rate = self.objective.n_sequences, self.objective.l2, self.rate(self.eta0)
        loss = self.run.visit(ids, rate, k, batch)
        if not np.isfinite(loss):
            return Visit(loss)
        self.square = self.run.weights(out)
        if not np.isfinite(self.square):  # the last steps did it, whose losses are not known yet
            return Visit(self.square)
        last = k + (len(ids) - 1) // batch * batch
        return Visit(loss, rate.at(last, n, l2))

    def extra(self, loss: float, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the objective as it was met during the epoch, and its losses alone."""
        return {"online_objective": loss + 0.5 * self.objective.l2 * self.square, "online_loss": loss}

    def state(self) -> Mapping[str, Any]:
        """The first rate, and what the rule remembers, such as the sums of squares of `Adaptive`."""
        return {**({} if self.eta0 is None else {"eta0": self.eta0}), **self.run.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave. Sets: `eta0`, what the rule remembers."""
        if "eta0" in state:
            self.eta0 = float(state["eta0"])
        self.run.restore(state)

    def advice(self) -> str:
        """What to try if the loss is no longer finite."""
        return f"give a smaller eta0 than {self.eta0:g}, or bring attribute values to a common scale"
