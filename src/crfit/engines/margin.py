"""Mistake-driven steps: weights that change where the best path is not the given labels.

Under the present weights let y^ be the best label sequence of (x, y), of equal ones the one that tagging
takes. If y^ = y nothing changes. Otherwise, with

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

These are the rules of CRFsuite's ``ap``, ``pa`` and ``arow`` [4]. None has a penalty, and none looks at the
likelihood. Where delta = 0, as for labels without weights of their own, nothing changes either.

**Batches.** All sequences of a step are decoded at the same weights and act as one long sequence: their
delta, miss and d are added up, and one tau follows. The perceptron's loss is the sum of theirs.

**Sequence weights** c_i multiply delta, miss and loss of a sequence, as if its part of the hinge loss were
counted c_i times. PA-I's step is then ``min(c c_i, loss/|delta|^2) delta`` and PA's does not depend on c_i.
Of a batch with several weights, sqrt(d), 1 and d are multiplied by the mean of c_i over the wrong labels.

**Averages.** CRFsuite reports ``w - ws/u`` with ``ws += u (change)`` and u counting sequences from 1. That is
the mean of the weights after each step, the start being one of them: ``(w_0 + .. + w_K) / (K + 1)``.

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
    """Every mistake is answered by a step of length 1."""


@dataclass(frozen=True)
class PassiveAggressive:
    """The smallest change of the weights that makes the given labels win by the margin, or part of it."""

    type: PassiveAggressiveType = "PA-I"
    c: float = 1.0  # bound of the step: what a kept margin is worth
    error_sensitive: bool = True  # whether the margin is sqrt(d) instead of 1

    def margin(self, d: int) -> float:
        """By how much the given labels should win over labels of which `d` are wrong."""
        return math.sqrt(d) if self.error_sensitive else 1.0

    def tau(self, loss: float, square: float) -> float:
        """Length of the step; `loss` is margin plus miss, `square` is ``|delta|^2`` above 0."""
        if self.type == "PA-II":
            return loss / (square + 0.5 / self.c)
        return loss / square if self.type == "PA" else min(self.c, loss / square)


@dataclass(frozen=True)
class Arow:
    """A confidence for each weight, which grows with its changes and makes them smaller."""

    variance: float = 1.0  # of every weight at first
    gamma: float = 1.0  # resistance to changes, of weights and of variances


#: What is done about a wrong best path.
MarginRule: TypeAlias = "Perceptron | PassiveAggressive | Arow"


class Mistakes(NamedTuple):
    """Outcome of a visit."""

    loss: float  # summed over the steps
    sequences: int  # whose best path was not the given labels


class MarginRun(MovingWeights):
    """A run of mistake-driven steps, made by ``objective.margin(w, rule)``; the objective's pin stays put.

    Engines subclass it. Sequences visited are counted in ``objective.counts``.
    """

    def __init__(self, objective: EngineObjective, w: Vector, rule: MarginRule) -> None:
        self._rule = rule
        super().__init__(objective, w)

    def visit(self, ids: ArrayLike, batch: int = 1) -> Mistakes:
        """Decode the sequences `ids` in their order and learn from mistakes, `batch` sequences in a step.

        All sequences of a step are decoded at the same weights; the last step may have fewer than `batch`.
        Once the loss is no longer finite, the remaining steps are left out.
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
        """Continue with these variances; for `Arow`."""
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
