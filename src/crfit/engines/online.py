"""What the on-line runs of all engines share: checks of the arguments and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from crfit.engines.moving_weights import EngineMovingWeights
from crfit.errors import OptionError
from crfit.online import Adaptive, OnlineRun, Rate, Rule, check_rate
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import EngineObjective, SequenceIds

__all__ = ["EngineOnlineRun"]


class EngineOnlineRun(EngineMovingWeights, OnlineRun, ABC):
    """Weights under way on one engine; see `crfit.online.OnlineRun`.

    Parameters
    ----------
    objective : EngineObjective
        Gives the data, the penalty and the counters.
    w : float64[n_weights]
        Starting point, which is copied.
    rule : Rule
        What a step does with the sum of its residuals.
    """

    def __init__(self, objective: EngineObjective, w: Vector, rule: Rule) -> None:
        self._rule = rule
        super().__init__(objective, w)

    def visit(self, ids: ArrayLike, rate: Rate, k: int, batch: int = 1) -> float:
        """Make steps over the sequences `ids`, `batch` of them in a step; return the sum of their losses."""
        sequences = self._objective._check_subset(ids)
        if not 1 <= batch < 2**20:
            raise OptionError("batch", batch, "give a number from 1 to 2^20")
        check_rate(rate.eta0, self._objective.l2, batch, self._objective.n_sequences)
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, rate, k, batch)

    def loss(self, ids: ArrayLike) -> float:
        """Sum of the losses of these sequences at the present weights, without penalty."""
        sequences = self._objective._check_subset(ids)
        self._objective.counts.sequences += len(sequences)
        return self._loss(sequences)

    def squares(self, out: Vector) -> None:
        """Write the sums of squares of the rule `Adaptive` to `out`."""
        self._require_squares()
        self._objective._check_vector("out", out)
        self._squares(out)

    def set_squares(self, h: Vector) -> None:
        """Go on with these sums of squares, which are 0 after `set_weights`; for `Adaptive`."""
        self._require_squares()
        self._objective._check_vector("h", h)
        self._set_squares(h)

    def _require_squares(self) -> None:
        if not isinstance(self._rule, Adaptive):
            raise RuntimeError("no squares are being added up: they are for the rule Adaptive")

    @abstractmethod
    def _visit(self, sequences: SequenceIds, rate: Rate, k: int, batch: int) -> float: ...

    @abstractmethod
    def _loss(self, sequences: SequenceIds) -> float: ...

    @abstractmethod
    def _squares(self, out: Vector) -> None: ...

    @abstractmethod
    def _set_squares(self, h: Vector) -> None: ...
