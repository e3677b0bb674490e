"""Adaptive regularisation of weights: weights that were changed often are changed little.

    w_k <- w_k + a s_k delta_k,   1/s_k <- 1/s_k + delta_k^2 / gamma,   delta = Phi(x, y) - Phi(x, y^)

for sequences in a random order that is new in every epoch; s_k is the variance of weight k, a the loss
divided by gamma + sum_k s_k delta_k^2. Rare features so get their weights at once and frequent ones settle.
There is no average of the weights. `crfit.engines.margin` has the loss and the references.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crfit.engines import margin
from crfit.engines.objective import Objective
from crfit.trainers.mistakes.margin_visits import DEFAULT_EPOCHS, epsilon_option, margin_steps
from crfit.trainers.online.epochs import batch_option, epochs_option, report_option, seed_option
from crfit.trainers.registry import State, Step, option, register
from crfit.vectors import Vector


@register(
    "arow",
    needs={"margin"},
    formula="w_k <- w_k + a s_k (Phi(x, y) - Phi(x, y^))_k, y^ the best path, s_k the variance of weight k",
    change=None,
    minimises="no F: mistakes of best paths",
    keeps="a variance for each weight",
    ends="when no mistakes are left",
    choose="to compare with: `pa` has better scores on our corpora",
)
@dataclass(frozen=True)
class AROW:
    """Adaptive regularisation of weights, by the best paths of the sequences."""

    variance: float = option(1.0, help="variance of every weight at first", above=0)
    gamma: float = option(1.0, help="resistance to changes of weights and variances", above=0)
    epochs: int | None = epochs_option(DEFAULT_EPOCHS)
    epsilon: float = epsilon_option()
    batch: int = batch_option()
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        rule = margin.Arow(self.variance, self.gamma)
        yield from margin_steps(self, rule, objective, w, state, averaging=False)
