"""What the on-line runs of all engines share: checks of the arguments and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from crfit.errors import OptionError
from crfit.online import Adaptive, OnlineRun, Rate, Rule, check_rate
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import EngineObjective, SequenceIds

__all__ = ["EngineOnlineRun"]


class EngineOnlineRun(OnlineRun, ABC):
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
        self._objective = objective
        self._rule = rule
        self._summing = False
        self.set_weights(w)

    def visit(self, ids: ArrayLike, rate: Rate, k: int, batch: int = 1) -> float:
        """Make steps over the sequences `ids`, `batch` of them in a step; return the sum of their losses."""
        sequences = self._objective._check_subset(ids)
        if not 1 <= batch < 2**20:
            raise OptionError("batch", batch, "give a number from 1 to 2^20")
        if not isinstance(self._rule, Adaptive):  # whose penalty is part of the residual
            check_rate(rate.eta0, self._objective.l2, batch, self._objective.n_sequences)
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, rate, k, batch)

    def loss(self, ids: ArrayLike) -> float:
        """Sum of the losses of these sequences at the present weights, without penalty."""
        sequences = self._objective._check_subset(ids)
        self._objective.counts.sequences += len(sequences)
        return self._loss(sequences)

    def set_weights(self, w: Vector) -> None:
        """Start again at `w`, which is copied; a sum of weights ends."""
        self._objective._check_vector("w", w)
        self._summing = False
        self._set_weights(w)

    def weights(self, out: Vector) -> float:
        """Write the present weights to `out` and return ``|w|^2``."""
        self._objective._check_vector("out", out)
        return self._weights(out)

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
    def _set_weights(self, w: Vector) -> None: ...

    @abstractmethod
    def _weights(self, out: Vector) -> float: ...

    @abstractmethod
    def _begin_sum(self, total: Vector | None) -> None: ...

    @abstractmethod
    def _weight_sum(self, out: Vector) -> None: ...

    @abstractmethod
    def _squares(self, out: Vector) -> None: ...

    @abstractmethod
    def _set_squares(self, h: Vector) -> None: ...
