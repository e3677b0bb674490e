"""Stochastic meta-descent: stochastic gradient descent that learns a learning rate per weight [1].

    p <- p max(1/2, 1 - meta_rate g v);   w <- w - eta0 p g;   v <- memory v - eta0 p (g + memory H v)

g is the mini-batch gradient of F and H its Hessian. All products are element-wise except H v, which one more
sweep through the same lattices computes exactly. v is the derivative of the weights with respect to the
logarithm of their learning rates: where g and v have opposite signs, longer steps would have been better.

The method is less stable than SGD. If the curvature h of a step makes eta h larger than 1 + 1/memory, v grows
from step to step, v <- memory (1 - eta h) v - eta g, and the learning rates with it, without a limit. Long
sequences and large mini-batches therefore need a smaller eta0. With the paper's eta0 of 0.1 and meta rate of
0.02 a third of all seeds diverge on named entities; half of both is stable there and as good on chunking
after ten epochs. A meta rate of 0.1 and a memory of 0.99 are faster where they are stable, such as on
chunking with mini-batches of 8.

A step updates only the weights of its sequences; for the others see `crfit.engines.online.MetaDescent`.

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
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@register(
    "smd",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="p <- p max(1/2, 1 - meta_rate g v); w <- w - eta0 p g; v <- memory v - eta0 p (g + memory H v)",
    keeps="two vectors of weights",
    choose="you want SGD without tuning the learning rate",
)
@dataclass(frozen=True)
class SMD:
    """Stochastic meta-descent: SGD that adapts a learning rate per weight with Hessian-vector products."""

    eta0: float | None = option(
        0.05, help="initial learning rate; None: best of four on held-out sequences", above=0
    )
    meta_rate: float = option(0.01, help="how fast learning rates change; 0: constant", at_least=0)
    memory: float = option(
        0.9,
        help="decay per step of v, which tracks how learning rates affect the weights",
        at_least=0,
        at_most=1,
    )
    batch: int = batch_option(8)
    averaging: int | None = option(
        None, help="average the weights of all steps after this many epochs; None: no averaging", at_least=0
    )
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
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
    """Visits with learning rates that may grow too large."""

    def advice(self) -> str:
        """What to try if the loss is no longer finite."""
        return f"use an eta0 below {self.eta0:g}, or a smaller meta_rate, memory or batch"
