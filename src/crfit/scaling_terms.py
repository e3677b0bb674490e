"""What improved iterative scaling asks of a classifier's data, and what an objective answers.

In data whose sequences have one position a feature j belongs to one label y and fires at sequence i with the
value f_j(x_i, y). With f#(x_i, y) = sum_j f_j(x_i, y) the equations of a step d are made of the *terms*

    E_jT exp(T d_j),        E_jT = sum of c_i p(y|x_i) f_j(x_i, y) over the sequences with f#(x_i, y) = T

one for each weight and each distinct T that it meets: there are no more of them than occurrences of features,
and for binary features far fewer. They are kept label by label, sorted by weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.vectors import Vector

__all__ = ["LabelTerms", "ScalingTerms"]


@dataclass(frozen=True)
class LabelTerms:
    """The terms of the weights of one label.

    Parameters
    ----------
    weights : int64[n_rows]
        The weights that fire anywhere: their places in the weight vector, ascending.
    starts : int64[n_rows]
        First term of each.
    totals : float64[n_terms]
        T of each term, positive.
    """

    weights: NDArray[np.int64]
    starts: NDArray[np.int64]
    totals: NDArray[np.float64]


class ScalingTerms(Protocol):
    """The terms of an objective, and sums over its sequences; S sequences, Y labels."""

    @property
    def labels(self) -> Sequence[LabelTerms]:
        """Terms of the labels that have a weight."""

    def probabilities(self, w: Vector) -> tuple[float, NDArray[np.float64]]:
        """Loss ``-sum_i c_i log p(y_i|x_i)`` at `w` and p, float64[S, Y], not 0 anywhere; one pass."""

    def expected(
        self, p: NDArray[np.float64], divisors: NDArray[np.float64] | None = None
    ) -> list[NDArray[np.float64]]:
        """E of every term, float64[n_terms] for each of `labels`, with c_i / divisors_i in place of c_i."""

    def growth(self, p: NDArray[np.float64], step: Vector) -> NDArray[np.float64]:
        """``a_i(d) = sum_y p(y|x_i) sum_j (f_j/f#) exp(d_j f#)``, float64[S]; counts as a pass.

        A label without features has ``exp(0)`` for its sum.
        """
