"""Noticing that double precision is used up: steps in a row without gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crfit.trainers.wolfe_search import rounding_level

__all__ = ["Stall"]

#: Steps in a row without gain after which a run has stalled.
MAX_STALLED = 10


@dataclass
class Stall:
    """Counts steps in a row that lower neither F, beyond its rounding, nor the norm of the gradient."""

    steps: int = 0  # how many there were
    best_norm: float = math.inf  # least norm so far

    message = "objective and gradient are at rounding level"

    def over(self, old_value: float, value: float, grad_norm: float) -> bool:
        """Take note of a step; return whether the run has stalled."""
        moved = old_value - value > rounding_level(value) or grad_norm < self.best_norm
        self.steps, self.best_norm = (0 if moved else self.steps + 1), min(self.best_norm, grad_norm)
        return self.steps >= MAX_STALLED

    def export_state(self) -> dict[str, Any]:
        """Return what `from_state` needs."""
        return {"stalled": self.steps, "best_norm": self.best_norm}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Stall:
        """Make it again."""
        return cls(int(state["stalled"]), float(state["best_norm"]))
