"""Stochastic gradient descent on single sequences or mini-batches.

    w <- (1 - eta_k l2 B/N) w + eta_k sum_i c_i (Phi(x_i, y_i) - E Phi(x_i, .))

over mini-batches of B sequences i, shuffled in every epoch; k counts sequences. `crfit.engines.online` has
the schedules of eta_k, `calibration` finds eta_0, and the engine takes the step. One epoch lowers F as much
as many full gradient steps, until the learning rate is small; then progress stalls.

While the learning rate is large, an average of the weights is closer to the optimum than the last weights.
``asgd`` averages from the second epoch on, which allows a learning rate that falls more slowly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crfit.engines.objective import Objective
from crfit.trainers.online.gradient_trainer import GradientTrainer
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@register(
    "sgd",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    aliases={
        "l2sgd": {"schedule": "bottou", "calibration": "crfsuite", "epochs": 1000},
        "asgd": {"schedule": "power", "averaging": 1, "calibration": "crfsuite", "epochs": 50},
    },
    formula="w <- w - eta_k g, g the mini-batch gradient of F",
    keeps="none, or one vector of weights with `averaging`",
    choose="you want a good model after a few passes, or have very large data",
)
@dataclass(frozen=True)
class SGD(GradientTrainer):
    """Stochastic gradient descent, optionally averaged."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        yield from self.walk(objective, w, state, None)
