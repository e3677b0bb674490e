"""AdaGrad: stochastic gradient descent with a rate of its own for each weight [1].

    h_j <- h_j + u_j^2;   w_j <- w_j - eta0 u_j / (sqrt(h_j) + epsilon)        for the weights j of the step

u is the gradient of the step's share of F. A weight that was seldom changed keeps a large rate, so that rare
features learn fast; unlike natural gradient descent (`ngd`) this leaves the optimum where it is. A weight
pays its penalty when one of its sequences is visited, in shares that add up to l2 w over an epoch.

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
from crfit.trainers.registry import State, Step, option, register
from crfit.vectors import Vector

#: Rates tried when none is given: a weight's first step is as long as the rate.
GRID = (1.0, 0.3, 0.1, 0.03)


@register(
    "adagrad",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="h <- h + u^2; w <- w - eta0 u / (sqrt(h) + epsilon), u their share of the gradient",
    keeps="a vector of weights",
    choose="as `sgd`, without a schedule",
)
@dataclass(frozen=True)
class AdaGrad:
    """AdaGrad: a rate for each weight that falls as the weight is changed."""

    eta0: float | None = option(
        0.1, help="length of a weight's first step; None: best of four on held-out sequences", above=0
    )
    epsilon: float = option(1e-8, help="added to the root of the sum of squares", above=0)
    batch: int = batch_option()
    averaging: int | None = option(
        None, help="epochs after which the average of all steps begins; None: no average", at_least=0
    )
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
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
