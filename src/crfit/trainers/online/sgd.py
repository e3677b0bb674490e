"""Stochastic gradient descent: the gradient of one sequence, or of a few, at a time.

    w <- (1 - eta_k l2 B/N) w + eta_k sum_i c_i (Phi(x_i, y_i) - E Phi(x_i, .))

over B sequences i in a random order that is new in every epoch; k counts sequences. `crfit.engines.online`
has the schedules of eta_k, `calibration` finds eta_0, and the step itself is the engine's. An epoch lowers F
by about as much as many gradient steps on the whole data, until the rate is small; then it stalls.

While the rate is still large, an average of the weights lies nearer to the optimum than the last ones. With
``asgd`` it begins after the first epoch, and the rate falls more slowly than it may without one.
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
    formula="w <- w - eta_k g, g the gradient of the share of F of the next sequences",
    keeps="with `averaging` a vector of weights",
    choose="a good model after a few passes, very large data",
)
@dataclass(frozen=True)
class SGD(GradientTrainer):
    """Stochastic gradient descent."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        yield from self.walk(objective, w, state, None)
