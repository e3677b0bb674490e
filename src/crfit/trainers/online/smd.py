"""Stochastic meta-descent: stochastic gradient descent with rates that are learned, one for each weight [1].

    p <- p max(1/2, 1 - meta_rate g v);   w <- w - eta0 p g;   v <- memory v - eta0 p (g + memory H v)

g is the gradient of the share of F of the next few sequences, H its Hessian, and all products are element by
element but H v, which one more sweep through the same lattices gives exactly. v tells how the weights would
differ had the logarithms of their rates been larger: where g and v have opposite signs, longer steps would
have been better.

The method is less stable than plain steps. Where a step's curvature h makes eta h larger than 1 + 1/memory, v
grows from step to step, v <- memory (1 - eta h) v - eta g, and the rates with it, which have no upper limit:
long sequences and large batches want a smaller eta0. The paper has an eta0 of 0.1 and a meta rate of 0.02,
with which runs on names in text diverge for a third of all seeds; half of both holds there, and on chunking
comes as far after ten epochs. A meta rate of 0.1 and a memory of 0.99 gain more where they hold, such as on
chunking with 8 sequences in a step.

A step touches only the weights of its sequences; for the others see `crfit.engines.online.MetaDescent`.

References
----------
[1] S. V. N. Vishwanathan, N. Schraudolph, M. Schmidt, K. Murphy (2006). Accelerated training of conditional
    random fields with stochastic gradient methods. ICML-23, 969-976.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from crfit.engines.objective import Objective
from crfit.engines.online import MetaDescent, Rate
from crfit.trainers.online.calibration import calibrate_by_grid
from crfit.trainers.online.epochs import Plan, batch_option, epochs_option, report_option, seed_option, walk
from crfit.trainers.online.gradient_trainer import GradientVisits
from crfit.trainers.registry import State, Step, option, register
from crfit.vectors import Vector


@register(
    "smd",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="p <- p max(1/2, 1 - meta_rate g v); w <- w - eta0 p g; v <- memory v - eta0 p (g + memory H v)",
    keeps="two vectors of weights",
    choose="as `sgd`, where no good rate is known",
)
@dataclass(frozen=True)
class SMD:
    """Stochastic meta-descent: a rate for each weight that is learned by exact Hessian products."""

    eta0: float | None = option(
        0.05, help="rate at the start; None: best of four on held-out sequences", above=0
    )
    meta_rate: float = option(0.01, help="how fast rates change; 0: they do not", at_least=0)
    memory: float = option(0.9, help="how much of v stays from a step to the next", at_least=0, at_most=1)
    batch: int = batch_option(8)
    averaging: int | None = option(
        None, help="epochs after which the average of all steps begins; None: no average", at_least=0
    )
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        visits = _Visits(
            objective,
            w,
            MetaDescent(self.meta_rate, self.memory),
            rate=partial(Rate, "constant"),
            eta0=self.eta0,
            batch=self.batch,
            calibrate=calibrate_by_grid,
        )
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=self.averaging)
        yield from walk(visits, plan, objective, w, state)


class _Visits(GradientVisits):
    """Visits whose rates may have grown beyond what the loss bears."""

    def advice(self) -> str:
        """What to try if the loss is no longer finite."""
        return f"give a smaller eta0 than {self.eta0:g}, or a smaller meta_rate, memory or batch"
