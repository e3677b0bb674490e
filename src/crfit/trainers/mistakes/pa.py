"""Passive-aggressive: the smallest change that makes the given labels win over the best path by a margin.

    w <- w + tau delta,   delta = Phi(x, y) - Phi(x, y^),   loss = score(y^) - score(y) + sqrt(d)

for sequences in a random order that is new in every epoch. `crfit.engines.margin` has the three rules for
tau, what a batch is, and the references. There is no likelihood and no penalty: weights stay small because
correct sequences change nothing, and by the average of the weights over all steps.
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
from crfit.trainers.registry import State, Step, option, register
from crfit.vectors import Vector


@register(
    "pa",
    needs={"margin"},
    formula="w <- w + tau (Phi(x, y) - Phi(x, y^)), y^ the best path; PA-I: tau = min(c, loss / |change|^2)",
    change=None,
    minimises="no F: mistakes of best paths",
    keeps="with `averaging` a vector of weights",
    ends="without an average when no mistakes are left",
    choose="scores alone matter, not probabilities; the cheapest epochs",
)
@dataclass(frozen=True)
class PA:
    """Passive-aggressive, by the best paths of the sequences."""

    type: Literal["PA", "PA-I", "PA-II"] = option("PA-I", help="bound of the step: none, c, or soft")
    c: float = option(1.0, help="bound of the step", above=0)
    error_sensitive: bool = option(True, help="margin sqrt(number of wrong labels) instead of 1")
    averaging: bool = averaging_option()
    epochs: int | None = epochs_option(DEFAULT_EPOCHS)
    epsilon: float = epsilon_option()
    batch: int = batch_option()
    report: int = report_option()
    seed: int = seed_option()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        rule = PassiveAggressive(self.type, self.c, self.error_sensitive)
        yield from margin_steps(self, rule, objective, w, state, averaging=self.averaging)
