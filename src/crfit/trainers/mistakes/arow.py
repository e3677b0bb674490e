"""AROW, adaptive regularisation of weights: weights updated often change little.

    w_k <- w_k + a s_k delta_k,   1/s_k <- 1/s_k + delta_k^2 / gamma,   delta = Phi(x, y) - Phi(x, y^)

for sequences shuffled in every epoch; y^ is the best path, s_k the variance of weight k, and a the loss
divided by gamma + sum_k s_k delta_k^2. Rare features learn at once, frequent ones settle. Weights are not
averaged. `crfit.engines.margin` has the loss and the references.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crfit.engines import margin
from crfit.engines.objective import Objective
from crfit.trainers.mistakes.margin_visits import DEFAULT_EPOCHS, epsilon_option, margin_steps
from crfit.trainers.online.epochs import batch_option, epochs_option, report_option, seed_option
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@register(
    "arow",
    needs={"margin"},
    formula="w_k <- w_k + a s_k (Phi(x, y) - Phi(x, y^))_k, y^ the best path, s_k the variance of weight k",
    change=None,
    minimises="mistakes of the best path, not F",
    keeps="a variance per weight",
    ends="when no mistakes are left",
    choose="you want a baseline; `pa` scores better on our corpora",
)
@dataclass(frozen=True)
class AROW:
    """AROW, adaptive regularisation of weights, on mistakes of the best path."""

    variance: float = option(1.0, help="initial variance of every weight", above=0)
    gamma: float = option(1.0, help="larger values mean smaller updates of weights and variances", above=0)
    epochs: int | None = epochs_option(DEFAULT_EPOCHS)
    epsilon: float = epsilon_option()
    batch: int = batch_option()
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        rule = margin.Arow(self.variance, self.gamma)
        yield from margin_steps(self, rule, objective, w, state, averaging=False)
