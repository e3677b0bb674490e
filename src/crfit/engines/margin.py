"""What the mistake-driven runs of all engines share: checks of the arguments and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from crfit.engines.moving_weights import EngineMovingWeights
from crfit.errors import OptionError
from crfit.margin import Arow, MarginRule, MarginRun, Mistakes
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import EngineObjective, SequenceIds

__all__ = ["EngineMarginRun"]


class EngineMarginRun(EngineMovingWeights, MarginRun, ABC):
    """Weights under way on one engine; see `crfit.margin.MarginRun`.

    Parameters
    ----------
    objective : EngineObjective
        Gives the data and the counters.
    w : float64[n_weights]
        Starting point, which is copied.
    rule : MarginRule
        What is done about a wrong best path.
    """

    def __init__(self, objective: EngineObjective, w: Vector, rule: MarginRule) -> None:
        self._rule = rule
        super().__init__(objective, w)

    def visit(self, ids: ArrayLike, batch: int = 1) -> Mistakes:
        """Decode the sequences `ids` and learn from mistakes, `batch` sequences in a step."""
        sequences = self._objective._check_subset(ids)
        if not 1 <= batch < 2**20:
            raise OptionError("batch", batch, "give a number from 1 to 2^20")
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, batch)

    def variances(self, out: Vector) -> None:
        """Write the variances of `Arow` to `out`."""
        self._require_variances()
        self._objective._check_vector("out", out)
        self._variances(out)

    def set_variances(self, s: Vector) -> None:
        """Go on with these variances; for `Arow`."""
        self._require_variances()
        self._objective._check_vector("s", s)
        self._set_variances(s)

    def _require_variances(self) -> None:
        if not isinstance(self._rule, Arow):
            raise RuntimeError("there are no variances: they are for the rule Arow")

    @abstractmethod
    def _visit(self, sequences: SequenceIds, batch: int) -> Mistakes: ...

    @abstractmethod
    def _variances(self, out: Vector) -> None: ...

    @abstractmethod
    def _set_variances(self, s: Vector) -> None: ...
