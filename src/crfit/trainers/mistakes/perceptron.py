"""Structured perceptron: add the features of the given labels, subtract those of the best path.

    w <- w + Phi(x, y) - Phi(x, y^)         where y^ is not y

for sequences shuffled in every epoch; y^ is the best path. By default the reported weights are the mean over
all steps, because the last weights depend too much on the last mistakes. `crfit.engines.margin` has the
references.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crfit.engines import margin
from crfit.engines.objective import Objective
from crfit.trainers.mistakes.margin_visits import (
    DEFAULT_EPOCHS,
    averaging_option,
    epsilon_option,
    margin_steps,
)
from crfit.trainers.online.epochs import batch_option, epochs_option, report_option, seed_option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@register(
    "perceptron",
    needs={"margin"},
    formula="w <- w + Phi(x, y) - Phi(x, y^), y^ the best path",
    change=None,
    aliases={"ap": {}},
    minimises="mistakes of the best path, not F",
    keeps="none, or one vector of weights with `averaging`",
    ends="when no mistakes are left (without averaging)",
    choose="you need labels but no probabilities, as with `pa`",
)
@dataclass(frozen=True)
class Perceptron:
    """Averaged structured perceptron."""

    averaging: bool = averaging_option()
    epochs: int | None = epochs_option(DEFAULT_EPOCHS)
    epsilon: float = epsilon_option()
    batch: int = batch_option()
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        yield from margin_steps(self, margin.Perceptron(), objective, w, state, averaging=self.averaging)
