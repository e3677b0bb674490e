"""Passive-aggressive: the smallest update that makes the given labels beat the best path by a margin.

    w <- w + tau delta,   delta = Phi(x, y) - Phi(x, y^),   loss = score(y^) - score(y) + sqrt(d)

for sequences shuffled in every epoch; y^ is the best path and d the number of wrong labels.
`crfit.engines.margin` has the three rules for tau, mini-batches, and the references. There is no likelihood
and no penalty: weights stay small because correct sequences change nothing, and because they are averaged
over all steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from crfit.engines.margin import PassiveAggressive
from crfit.engines.objective import Objective
from crfit.trainers.mistakes.margin_visits import (
    DEFAULT_EPOCHS,
    averaging_option,
    epsilon_option,
    margin_steps,
)
from crfit.trainers.online.epochs import batch_option, epochs_option, report_option, seed_option
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@register(
    "pa",
    needs={"margin"},
    formula="w <- w + tau (Phi(x, y) - Phi(x, y^)), y^ the best path; PA-I: tau = min(c, loss / |change|^2)",
    change=None,
    minimises="mistakes of the best path, not F",
    keeps="none, or one vector of weights with `averaging`",
    ends="when no mistakes are left (without averaging)",
    choose="you need labels but no probabilities; its epochs are the cheapest",
)
@dataclass(frozen=True)
class PA:
    """Passive-aggressive updates on mistakes of the best path."""

    type: Literal["PA", "PA-I", "PA-II"] = option(
        "PA-I", help="step length: unbounded (PA), at most c (PA-I), or softened by c (PA-II)"
    )
    c: float = option(1.0, help="bound on the step length for PA-I and PA-II", above=0)
    error_sensitive: bool = option(True, help="use a margin of sqrt(number of wrong labels) instead of 1")
    averaging: bool = averaging_option()
    epochs: int | None = epochs_option(DEFAULT_EPOCHS)
    epsilon: float = epsilon_option()
    batch: int = batch_option()
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        rule = PassiveAggressive(self.type, self.c, self.error_sensitive)
        yield from margin_steps(self, rule, objective, w, state, averaging=self.averaging)
