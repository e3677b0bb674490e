"""What the on-line runs of all engines share: checks of the arguments and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from crfit.engines.moving_weights import EngineMovingWeights
from crfit.errors import CapabilityError, OptionError
from crfit.online import Adaptive, MetaDescent, OnlineRun, Periodic, Rate, Rule, check_rate
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
        if not isinstance(self._rule, Adaptive):  # whose penalty is part of the residual
            check_rate(rate.eta0, self._objective.l2, batch, self._objective.n_sequences)
        if isinstance(self._rule, MetaDescent) and rate.schedule != "constant":
            raise OptionError("schedule", rate.schedule, "rates that are learned begin at a constant one")
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, rate, k, batch)

    def begin_sum(self, total: Vector | None = None) -> None:
        """From now on add up the weights after each step, on top of `total` if given; not for `Periodic`."""
        if isinstance(self._rule, Periodic):
            raise CapabilityError(
                "begin_sum", "Periodic", "weights with rates of their own are not added up: leave it out"
            )
        super().begin_sum(total)

    def loss(self, ids: ArrayLike) -> float:
        """Sum of the losses of these sequences at the present weights, without penalty."""
        sequences = self._objective._check_subset(ids)
        self._objective.counts.sequences += len(sequences)
        return self._loss(sequences)

    def state(self) -> dict[str, Vector | float]:
        """Return what the rule remembers besides the weights; arrays are the run's, until the next call."""
        return {} if self._rule is None else self._state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave, among whatever else is in the mapping; after `set_weights`."""
        if self._rule is not None:
            self._restore(state)

    def _vector_of(self, state: Mapping[str, Any], name: str) -> Vector:
        """An array of the state with one number per weight, as this engine takes it."""
        vector: Vector = self._objective.xp.asarray(state[name])
        self._objective._check_vector(name, vector)
        return vector

    @abstractmethod
    def _visit(self, sequences: SequenceIds, rate: Rate, k: int, batch: int) -> float: ...

    @abstractmethod
    def _loss(self, sequences: SequenceIds) -> float: ...

    @abstractmethod
    def _state(self) -> dict[str, Vector | float]: ...

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None: ...
