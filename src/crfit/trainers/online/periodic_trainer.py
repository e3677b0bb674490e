"""What `psa` and the on-line form of `aitken` have in common: options, rule and walk.

Both go down the gradient of a few sequences at a time with the rule `crfit.engines.online.Periodic`: a rate for each
weight, or for each group of weights, that falls a little after every period, by less where the weights still
move the same way and by more where they turn back. The first rate is given: nothing is calibrated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crfit.engines.online import Periodic, Rate, Scope
from crfit.engines.periods import half_period
from crfit.engines.weight_groups import GroupKind
from crfit.trainers.online.epochs import Plan, epochs_option, report_option, seed_option, walk
from crfit.trainers.online.gradient_trainer import GradientVisits
from crfit.trainers.registry import Step, check_options, option
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["PeriodicTrainer"]


@dataclass(frozen=True)
class PeriodicTrainer:
    """Options of trainers with periodic step sizes."""

    eta0: float = option(0.1, help="rate of all weights at the start; must be below 1/l2", above=0)
    alpha: float = option(
        0.9999, help="what a rate is multiplied by after a period in which changes go on", above=0, below=1
    )
    beta: float = option(
        0.99,
        help="what it is multiplied by where changes turn back, the rate being too large",
        above=0,
        below=1,
    )
    kappa: float = option(
        0.9,
        help="ratio gamma of the changes of two half periods from which on alpha holds; beta holds from "
        "-kappa down, and a straight line between",
        above=0,
    )
    period: int | None = option(
        None, help="steps in half a period; None: 1,000 periods a pass", at_least=1, below=2**20
    )
    batch: int = option(5, help="sequences per step; 16 or more use all threads", at_least=1, below=2**20)
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_options(self)
        Periodic(1, self.alpha, self.beta, self.kappa)  # beta < alpha

    def walk(
        self,
        objective: Objective,
        w: Vector,
        state: Mapping[str, Any] | None,
        gamma: int,
        scope: Scope,
        groups: GroupKind = "template",
        epochs: int | None = None,
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        batch = min(self.batch, objective.n_sequences)
        b = self.period or half_period(objective.n_sequences, batch)
        visits = GradientVisits(
            objective,
            w,
            Periodic(b, self.alpha, self.beta, self.kappa, gamma, scope, groups),
            rate=partial(Rate, "constant"),
            eta0=self.eta0,
            batch=batch,
        )
        plan = Plan(batch, epochs, self.report, self.seed)
        yield from walk(visits, plan, objective, w, state)
