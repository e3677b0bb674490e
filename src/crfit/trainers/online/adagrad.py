"""AdaGrad: stochastic gradient descent with a learning rate per weight [1].

    h_j <- h_j + u_j^2;   w_j <- w_j - eta0 u_j / (sqrt(h_j) + epsilon)        for the weights j of the step

u is the mini-batch gradient of F. Weights that were updated rarely keep a large learning rate, so rare
features learn fast; unlike natural gradient descent (`ngd`) this does not move the optimum. The penalty is
applied to a weight when one of its sequences is visited, in shares that add up to l2 w over an epoch.

References
----------
[1] J. Duchi, E. Hazan, Y. Singer (2011). Adaptive subgradient methods for online learning and stochastic
    optimization. JMLR 12, 2121-2159.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from crfit.engines.objective import Objective
from crfit.engines.online import Adaptive, Rate
from crfit.trainers.online.calibration import calibrate_by_grid
from crfit.trainers.online.epochs import Plan, batch_option, epochs_option, report_option, seed_option, walk
from crfit.trainers.online.gradient_trainer import GradientVisits
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector

#: Learning rates to try for eta0=None; the first step of a weight has this length.
GRID = (1.0, 0.3, 0.1, 0.03)


@register(
    "adagrad",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="h <- h + u^2; w <- w - eta0 u / (sqrt(h) + epsilon), u the mini-batch gradient of F",
    keeps="one vector of weights",
    choose="you want SGD without a learning-rate schedule",
)
@dataclass(frozen=True)
class AdaGrad:
    """AdaGrad: SGD with a learning rate per weight that falls as the weight is updated."""

    eta0: float | None = option(
        0.1, help="initial learning rate; None: best of four on held-out sequences", above=0
    )
    epsilon: float = option(1e-8, help="added to the root of the sum of squared gradients", above=0)
    batch: int = batch_option()
    averaging: int | None = option(
        None, help="average the weights of all steps after this many epochs; None: no average", at_least=0
    )
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        visits = GradientVisits(
            objective,
            w,
            Adaptive(self.epsilon),
            rate=partial(Rate, "constant"),
            eta0=self.eta0,
            batch=self.batch,
            calibrate=partial(calibrate_by_grid, grid=GRID),
        )
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=self.averaging)
        yield from walk(visits, plan, objective, w, state)
