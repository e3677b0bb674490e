"""The trainer for those who do not want to choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.trainers.base import Step, Trainer, register
from crfit.trainers.lbfgs import LBFGS
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["Auto"]


@register("auto", needs={"value_and_grad"}, handles={"l1", "l2"}, formula="that of the trainer chosen")
@dataclass(frozen=True)
class Auto:
    """Chooses a trainer for the objective; at present always lbfgs."""

    def choose(self, objective: Objective) -> Trainer:
        """Return the trainer for this objective; results carry its name, not "auto".

        Parameters
        ----------
        objective : Objective
            What is to be minimised.
        """
        return LBFGS()

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
