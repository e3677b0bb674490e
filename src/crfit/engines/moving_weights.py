"""Weights that a run changes step by step, on any engine: where they are, and their sum over the steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from crfit import vectors
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import EngineObjective

__all__ = ["EngineMovingWeights"]


class EngineMovingWeights(ABC):
    """A copy of the weights that belongs to a run; checks of the arguments.

    Parameters
    ----------
    objective : EngineObjective
        Gives the length of the weight vector.
    w : float64[n_weights]
        Starting point, which is copied.
    """

    def __init__(self, objective: EngineObjective, w: Vector) -> None:
        self._objective = objective
        self._summing = False
        self.set_weights(w)

    def set_weights(self, w: Vector) -> None:
        """Start again at `w`, which is copied; a sum of weights ends."""
        self._objective._check_vector("w", w)
        self._summing = False
        self._set_weights(w)

    def weights(self, out: Vector) -> float:
        """Write the present weights to `out` and return ``|w|^2`` over those that have a penalty.

        Not finite if any weight is not.
        """
        self._objective._check_vector("out", out)
        free = out[self._objective.free]
        square = self._weights(out)
        return max(square - vectors.dot(free, free), 0.0) if len(free) else square

    def begin_sum(self, total: Vector | None = None) -> None:
        """From now on add up the weights after each step, on top of `total` if given."""
        if total is not None:
            self._objective._check_vector("total", total)
        self._summing = True
        self._begin_sum(total)

    def weight_sum(self, out: Vector) -> None:
        """Write the sum of the weights after each step since `begin_sum` to `out`."""
        self._objective._check_vector("out", out)
        if not self._summing:
            raise RuntimeError("no weights are being added up: call begin_sum() first")
        self._weight_sum(out)

    @abstractmethod
    def _set_weights(self, w: Vector) -> None: ...

    @abstractmethod
    def _weights(self, out: Vector) -> float:
        """Write the present weights to `out` and return ``|w|^2`` over all of them."""

    @abstractmethod
    def _begin_sum(self, total: Vector | None) -> None: ...

    @abstractmethod
    def _weight_sum(self, out: Vector) -> None: ...
