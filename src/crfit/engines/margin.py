"""Mistake-driven steps: weights change only where the best path differs from the given labels.

Let y^ be the best label sequence of (x, y) under the current weights, with ties broken as in tagging. If
y^ = y nothing changes. Otherwise, with

    delta = Phi(x, y) - Phi(x, y^)          summed per weight
    d     = number of wrong labels
    miss  = score(x, y^) - score(x, y) >= 0

    Perceptron           w <- w + delta                                            loss d/T               [1]
    PassiveAggressive    w <- w + tau delta                                        loss miss + sqrt(d)    [2]
        PA     tau = loss / |delta|^2                    not error-sensitive: loss = miss + 1
        PA-I   tau = min(c, loss / |delta|^2)
        PA-II  tau = loss / (|delta|^2 + 1/(2c))
    Arow                 w_k <- w_k + a s_k delta_k                                loss miss + d          [3]
        a = loss / (gamma + sum_k s_k delta_k^2)
        1/s_k <- 1/s_k + delta_k^2 / gamma               s_k = variance at first

These are the rules of CRFsuite's ``ap``, ``pa`` and ``arow`` [4]. They are unregularised and do not use the
likelihood. If delta = 0, for example for labels without weights, nothing changes.

**Batches.** All sequences of a mini-batch are decoded at the same weights and treated as one long sequence:
their delta, miss and d are summed and give one tau. The perceptron's loss is summed too.

**Sequence weights** c_i multiply delta, miss and loss of a sequence, as if its hinge loss were counted c_i
times. PA-I's step is then ``min(c c_i, loss/|delta|^2) delta`` and PA's does not depend on c_i. In a batch
with several weights, sqrt(d), 1 and d are multiplied by the mean of c_i over the wrong labels.

**Averages.** CRFsuite reports ``w - ws/u`` with ``ws += u (change)``, where u counts sequences from 1. This
is the mean of the initial weights and the weights after each step: ``(w_0 + .. + w_K) / (K + 1)``.

References
----------
[1] M. Collins (2002). Discriminative training methods for hidden Markov models: theory and experiments with
    perceptron algorithms. EMNLP, 1-8.
[2] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer (2006). Online passive-aggressive
    algorithms. JMLR 7, 551-585.
[3] K. Crammer, A. Kulesza, M. Dredze (2009). Adaptive regularization of weight vectors. NIPS 22, 414-422.
[4] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from crfit.engines.online import MovingWeights
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.engine_objective import EngineObjective, SequenceIds

#: Names of the three rules for tau.
PassiveAggressiveType: TypeAlias = Literal["PA", "PA-I", "PA-II"]


@dataclass(frozen=True)
class Perceptron:
    """A step of length 1 for every mistake."""


@dataclass(frozen=True)
class PassiveAggressive:
    """The smallest weight change with which the given labels win by the margin, or part of that change."""

    type: PassiveAggressiveType = "PA-I"
    c: float = 1.0  # aggressiveness: bound on the step
    error_sensitive: bool = True  # whether the margin is sqrt(d) instead of 1

    def margin(self, d: int) -> float:
        """Required score difference between the given labels and a path with `d` wrong labels."""
        return math.sqrt(d) if self.error_sensitive else 1.0

    def tau(self, loss: float, square: float) -> float:
        """Step length; `loss` is margin plus miss, `square` is ``|delta|^2`` > 0."""
        if self.type == "PA-II":
            return loss / (square + 0.5 / self.c)
        return loss / square if self.type == "PA" else min(self.c, loss / square)


@dataclass(frozen=True)
class Arow:
    """A variance per weight, which shrinks with each update and makes later updates smaller."""

    variance: float = 1.0  # initial value for every weight
    gamma: float = 1.0  # larger values make all updates smaller


#: How a wrong best path changes the weights.
MarginRule: TypeAlias = "Perceptron | PassiveAggressive | Arow"


class Mistakes(NamedTuple):
    """Outcome of a visit."""

    loss: float  # summed over the steps
    sequences: int  # number whose best path was wrong


class MarginRun(MovingWeights):
    """A run of mistake-driven steps from ``objective.margin(w, rule)``; does not move the objective's pin.

    Engines subclass it. Visited sequences are counted in ``objective.counts``.
    """

    def __init__(self, objective: EngineObjective, w: Vector, rule: MarginRule) -> None:
        self._rule = rule
        super().__init__(objective, w)

    def visit(self, ids: ArrayLike, batch: int = 1) -> Mistakes:
        """Decode the sequences `ids` in order and learn from mistakes, in mini-batches of `batch` sequences.

        All sequences of a mini-batch are decoded at the same weights; the last one may be smaller. If the
        loss is no longer finite, the remaining steps are skipped.
        """
        sequences = self._checked_ids(ids, batch)
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, batch)

    def variances(self, out: Vector) -> None:
        """Write the variances of `Arow` to `out`."""
        self._require_variances()
        self._objective._check_vector("out", out)
        self._variances(out)

    def set_variances(self, s: Vector) -> None:
        """Continue with these variances; only for `Arow`."""
        self._require_variances()
        self._objective._check_vector("s", s)
        self._set_variances(s)

    def _require_variances(self) -> None:
        if not isinstance(self._rule, Arow):
            raise RuntimeError("there are no variances: only the rule Arow has them")

    @abstractmethod
    def _visit(self, sequences: SequenceIds, batch: int) -> Mistakes: ...

    @abstractmethod
    def _variances(self, out: Vector) -> None: ...

    @abstractmethod
    def _set_variances(self, s: Vector) -> None: ...
