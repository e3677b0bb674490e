"""The objective along a ray from the pinned point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfit.errors import PointError
from crfit.objective import LineFunction

if TYPE_CHECKING:
    from crfit.engines.base import EngineObjective

__all__ = ["PinnedLineFunction"]


class PinnedLineFunction:
    """The objective along a ray, ``phi(a) = F(w + a d)`` without l1, and its slope ``phi'(a)``.

    Scores are linear in the weights, so that the sparse product with ``d`` is done once, when this is
    made; a point of it costs forward-backward on known scores.

    Parameters
    ----------
    objective : EngineObjective
        The objective whose pinned point is the start of the ray.
    evaluate : callable
        Step length to ``(value, slope)``.
    """

    def __init__(self, objective: EngineObjective, evaluate: LineFunction) -> None:
        self._objective = objective
        self._evaluate = evaluate
        self._pin_count = objective._pin_count

    def __call__(self, step: float) -> tuple[float, float]:
        """Value and slope at ``w + step * d``; `PointError` once another point has been pinned."""
        if self._objective._pin_count != self._pin_count:
            raise PointError("this line profile belongs to an earlier point: call along(d) again")
        self._objective.counts.values += 1
        self._objective.counts.sequences += self._objective.n_sequences
        return self._evaluate(float(step))
