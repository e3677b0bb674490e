"""The trainer for those who do not want to choose.

l1 > 0, l2 = 0, or no Hessian products               lbfgs
otherwise                                            newton_cg
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.trainers.base import Step, Trainer, register
from crfit.trainers.lbfgs import LBFGS
from crfit.trainers.newton_cg import NewtonCG
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["Auto"]

#: Without these newton_cg would go from zero, by the slow method of the papers.
NEWTON_NEEDS = frozenset({"hvp", "hessian_diagonal", "online"})


@register("auto", needs={"value_and_grad"}, handles={"l1", "l2"}, formula="that of the trainer chosen")
@dataclass(frozen=True)
class Auto:
    """Chooses a trainer for the objective: newton_cg, or lbfgs when l1 > 0 or l2 = 0."""

    def choose(self, objective: Objective) -> Trainer:
        """Return the trainer for this objective; results carry its name, not "auto".

        Parameters
        ----------
        objective : Objective
            What is to be minimised.
        """
        if objective.l1 > 0.0 or objective.l2 == 0.0 or not objective.capabilities >= NEWTON_NEEDS:
            return LBFGS()
        return NewtonCG()

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the steps of the trainer chosen.

        Parameters
        ----------
        objective, w, state
            As for every trainer.
        """
        return self.choose(objective).steps(objective, w, state)
