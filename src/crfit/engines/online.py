"""Online steps: weights are updated after each mini-batch.

A step on B of the N sequences, with learning rate eta and the expectations at the old weights [1],

    w <- (1 - eta l2 B/N) w + eta sum_i c_i (Phi(x_i, y_i) - E Phi(x_i, .))

is a gradient step on the mini-batch's share of F; over a pass the shares sum to F. The learning rate is a
function of the number k of sequences seen, so one call can make many steps:

    constant     eta0
    inverse      eta0 / (1 + k/N)                     1/k [2]
    exponential  eta0 decay^(k/N)                     [2, 3]
    bottou       eta0 / (1 + eta0 (l2/N) k)           the decay that the penalty suggests [1]
    power        eta0 / (1 + eta0 (l2/N) k)^(3/4)     slower, for an average of the weights [6]

Other rules use the sum u = sum_i c_i (E Phi - Phi) of a step differently:

    Transform    w <- (1 - eta l2 B/N) w - eta T(u)                               natural gradient [4]
    Adaptive     h <- h + u^2;  w <- w - eta u / (sqrt(h) + epsilon)              AdaGrad [5]
    Periodic     w <- w - eta r (u_i + (l2/m) w), one i at a time; r decreases     periodic step sizes [7]
    MetaDescent  the plain step, with a learned rate for each weight               meta-descent [8]

T acts on each weight's sum over the whole step, so it is no longer a sum over occurrences. `Adaptive` and
`Periodic` apply a weight's share of the penalty, l2 w / (sequences that touch it), whenever it is touched.
For unpenalised weights (`Objective.free`) l2 is 0 in these formulas.

References
----------
[1] L. Bottou (2012). Stochastic gradient descent tricks. Neural Networks: Tricks of the Trade, 421-436.
[2] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
[3] Tsuruoka, Tsujii, Ananiadou (2009). Stochastic gradient descent training for L1-regularized log-linear
    models with cumulative penalty. ACL, 477-485.
[4] Y. Cao (2015). Training conditional random fields with natural gradient descent.
[5] J. Duchi, E. Hazan, Y. Singer (2011). Adaptive subgradient methods for online learning and stochastic
    optimization. JMLR 12, 2121-2159.
[6] W. Xu (2011). Towards optimal one pass large scale learning with averaged stochastic gradient descent.
    arXiv:1107.2490; for chains in L. Bottou's crfasgd.
[7] C.-N. Hsu, H.-S. Huang, Y.-M. Chang, Y.-J. Lee (2009). Periodic step-size adaptation in second-order
    gradient descent for single-pass on-line structured learning. Machine Learning 77, 195-224.
[8] S. V. N. Vishwanathan, N. Schraudolph, M. Schmidt, K. Murphy (2006). Accelerated training of conditional
    random fields with stochastic gradient methods. ICML-23, 969-976.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from crfit import vectors
from crfit.engines.weight_groups import GroupKind
from crfit.errors import OptionError
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.engine_objective import EngineObjective, SequenceIds

#: Names of the schedules of `Rate`.
Schedule: TypeAlias = Literal["inverse", "exponential", "bottou", "power", "constant"]

#: Names of the potentials of `Transform`.
Potential: TypeAlias = Literal["quadratic", "arctan", "erf", "gd"]

#: Names of the scopes of `Periodic`.
Scope: TypeAlias = Literal["component", "window", "group", "global"]


@dataclass(frozen=True)
class Rate:
    """Learning rate as a function of the number of sequences seen."""

    schedule: Schedule
    eta0: float  # initial and largest value
    decay: float = 0.85  # per pass, of the exponential schedule

    def at(self, k: int, n_sequences: int, l2: float) -> float:
        """Return the rate after `k` sequences."""
        passes = k / n_sequences
        if self.schedule == "inverse":
            return self.eta0 / (1.0 + passes)
        if self.schedule == "exponential":
            return self.eta0 * math.pow(self.decay, passes)
        if self.schedule == "bottou":
            return self.eta0 / (1.0 + self.eta0 * l2 * passes)
        if self.schedule == "power":
            return self.eta0 / math.pow(1.0 + self.eta0 * l2 * passes, 0.75)
        return self.eta0


@dataclass(frozen=True)
class Transform:
    """Natural gradient descent: transform the summed residual of each weight.

    With g = G' of a potential G, U1 is T(u) = g'(u) u and U2 is T(u) = g(u), up to a factor that the learning
    rate absorbs:

        potential    U1                               U2                                   p
        quadratic    u                                u                                    none
        arctan       u / (u^2 + p)                    arctan(p u)                          U2: slope at 0
        erf          2p/sqrt(pi) u exp(-(p u)^2)      erf(p u)                             slope sqrt(pi)/2
        gd           p u / cosh(p u)                  gd(p u) = 2 arctan(tanh(p u/2))      slope at 0
    """

    potential: Potential
    update: Literal["U1", "U2"]
    parameter: float  # p above
    table: bool = False  # interpolate T linearly between 4,097 points on [-1, 1]

    @property
    def slope(self) -> float:
        """T'(0)."""
        if self.potential == "quadratic":
            return 1.0
        if self.potential == "erf":
            return 2.0 / math.sqrt(math.pi) * self.parameter
        return 1.0 / self.parameter if (self.potential, self.update) == ("arctan", "U1") else self.parameter


@dataclass(frozen=True)
class Adaptive:
    """AdaGrad: a learning rate per weight, which decreases with the sum of its squared gradients."""

    epsilon: float = 1e-8  # added to the square root of the sum of squares


@dataclass(frozen=True)
class Periodic:
    """Periodic step-size adaptation: rates adapt to the weight changes in the two halves of a period [7].

    A weight's rate is the rate of the step times a factor r, which starts at 1 and is updated every 2b steps.
    With D1 and D2 the changes of the weight over the two halves, gamma = D2/D1 estimates how much of a change
    remains: near 1 the rate is small compared with the curvature, below 0 it is too large.

        u = sgn(gamma) min(|gamma|, kappa);    r <- ((alpha + beta)/2 + (alpha - beta)/2 u/kappa) r

    A sequence touches the weights of its attributes and all transition and boundary weights. The sequences i
    of a step are applied one at a time, with the residuals u_i at the weights before the step, to the weights
    that they touch; m is the number of sequences in the dataset that touch a weight:

        w <- w - eta r (u_i + (l2/m) w)

    A weight thus gets the whole penalty in a pass and does not move while it is not touched. This differs
    from published forms, which shrink all weights in each step by l2 B/N.

    Special cases: touched only in the second half: u = kappa; only in the first half: u = 0; in neither:
    r <- alpha r. If D1 is negligible, |D1| < 1e-12 max(1, |w|): u = kappa.

    For vectors there are three estimates: 1 = D1.D2/|D1|^2, 2 = |D2|/|D1|, 3 = |D2|^2/(D1.D2), with
    u = -kappa if the divisor is not positive. The scope defines the vectors:

        component    a single weight: 1 and 3 are the ratio above, 2 is its absolute value
        window       a weight's changes in the b steps of each half
        group        all weights of a group that both halves touched; the group has one r
        global       the same for all weights
    """

    period: int  # b, steps of half a period
    alpha: float = 0.9999  # largest factor, below 1
    beta: float = 0.99  # smallest factor, 0 < beta < alpha
    kappa: float = 0.9  # limit of |gamma|
    gamma: int = 3  # which estimate
    scope: Scope = "component"
    groups: GroupKind = "template"  # see `crfit.engines.weight_groups`

    def __post_init__(self) -> None:
        if not self.alpha < 1.0:
            raise OptionError("alpha", self.alpha, "give a number below 1")
        if not 0.0 < self.beta < self.alpha:
            raise OptionError("beta", self.beta, f"give a number above 0 and below alpha={self.alpha:g}")
        if not self.kappa > 0.0:
            raise OptionError("kappa", self.kappa, "give a positive number")
        if self.period < 1:
            raise OptionError("period", self.period, "give at least 1")
        if self.gamma not in (1, 2, 3):
            raise OptionError("gamma", self.gamma, "give 1, 2 or 3")

    @property
    def shared(self) -> bool:
        """Whether a group of weights has one factor."""
        return self.scope in ("group", "global")


@dataclass(frozen=True)
class MetaDescent:
    """Stochastic meta-descent: gradient descent on the logarithm of each weight's learning rate [8].

    Rates are ``eta_i = eta0 p_i``; the gains p start at 1. v starts at 0 and is the derivative of w with
    respect to log p, averaged over the past with factor ``memory``. A step on B of the N sequences, with
    q = l2 B/N and H the Hessian of the step's losses, all at the weights before the step:

        touched      g = u + q w;   p <- p max(1/2, 1 - meta_rate g v)
                     w <- w - eta0 p g;   v <- memory v - eta0 p (g + memory (H v + q v))
        the others   w <- (1 - eta0 p q) w;   v <- memory v;   p stays

    elementwise. A step touches the weights of its sequences' attributes, whatever the label, and all
    transition and boundary weights. Unlike in [8], v and p of an untouched weight ignore the penalty's share
    in g and H, which makes a step as sparse as its sequences. The rate must be constant. With a meta rate of
    0 this is the plain step.
    """

    meta_rate: float = 0.01  # how fast rates change, 0 or more
    memory: float = 0.9  # decay of v per step, 0 to 1


#: How a step uses the sum of its residuals; None is plain gradient descent.
Rule: TypeAlias = "Transform | Adaptive | Periodic | MetaDescent | None"


def check_rate(rule: Rule, eta0: float, l2: float, batch: int, n_sequences: int) -> None:
    """Raise `OptionError` if at rate `eta0`, the largest, the penalty would flip the sign of a weight."""
    if isinstance(rule, Adaptive):
        return
    if isinstance(rule, Periodic):  # the whole penalty, if only one sequence touches a weight
        if not eta0 * l2 < 1.0:
            raise OptionError("eta0", eta0, f"give less than {1.0 / l2:g} (for l2={l2:g})")
    elif not eta0 * l2 * batch < n_sequences:
        largest = n_sequences / (l2 * batch)
        raise OptionError(
            "eta0",
            eta0,
            f"give less than {largest:g} (for l2={l2:g}, mini-batches of {batch} of {n_sequences} sequences)",
        )


def half_period(n_sequences: int, batch: int) -> int:
    """Default b of `Periodic`: rates change a thousand times per pass, if it has enough steps."""
    return max(1, int(0.5 * n_sequences / (1000 * batch)))


class MovingWeights(ABC):
    """A run's copy of the weights, on any engine, and their sum over the steps."""

    def __init__(self, objective: EngineObjective, w: Vector) -> None:
        self._objective = objective
        self._summing = False
        self.set_weights(w)

    def set_weights(self, w: Vector) -> None:
        """Start again at a copy of `w`; resets the sum of weights and the state of the rule."""
        self._objective._check_vector("w", w)
        self._summing = False
        self._set_weights(w)

    def weights(self, out: Vector) -> float:
        """Write the current weights to `out` and return ``|w|^2`` over the penalised ones.

        The result is not finite if any weight is not.
        """
        self._objective._check_vector("out", out)
        free = out[self._objective.free]
        square = self._weights(out)
        return max(square - vectors.dot(free, free), 0.0) if len(free) else square

    def begin_sum(self, total: Vector | None = None) -> None:
        """Start summing the weights after each step, on top of `total` if given."""
        if total is not None:
            self._objective._check_vector("total", total)
        self._summing = True
        self._begin_sum(total)

    def weight_sum(self, out: Vector) -> None:
        """Write the sum of the weights after each step since `begin_sum` to `out`."""
        self._objective._check_vector("out", out)
        if not self._summing:
            raise RuntimeError("weights are not being summed: call begin_sum() first")
        self._weight_sum(out)

    def _checked_ids(self, ids: ArrayLike, batch: int) -> SequenceIds:
        """Ids of the sequences to visit; `OptionError` unless they and `batch` are in range."""
        sequences = self._objective._check_subset(ids)
        if not 1 <= batch < 2**20:
            raise OptionError("batch", batch, "give a number from 1 to 2^20")
        return sequences

    @abstractmethod
    def _set_weights(self, w: Vector) -> None: ...

    @abstractmethod
    def _weights(self, out: Vector) -> float:
        """Write the current weights to `out` and return ``|w|^2`` over all of them."""

    @abstractmethod
    def _begin_sum(self, total: Vector | None) -> None: ...

    @abstractmethod
    def _weight_sum(self, out: Vector) -> None: ...


class OnlineRun(MovingWeights):
    """A run of online steps from ``objective.online(w, rule)``; does not move the objective's pin.

    Engines subclass it. Visited sequences are counted in ``objective.counts``.
    """

    def __init__(self, objective: EngineObjective, w: Vector, rule: Rule) -> None:
        self._rule = rule
        super().__init__(objective, w)

    def visit(self, ids: ArrayLike, rate: Rate, k: int, batch: int = 1) -> float:
        """Make steps over the sequences `ids` in order, in mini-batches of `batch` sequences.

        The last mini-batch may be smaller. `k` is the number of sequences seen before, which sets the rate.
        Returns the sum of the losses ``c_i (-log p)`` without penalty, each at the weights before its step.
        If it is no longer finite, the remaining steps are skipped.
        """
        sequences = self._checked_ids(ids, batch)
        check_rate(self._rule, rate.eta0, self._objective.l2, batch, self._objective.n_sequences)
        if isinstance(self._rule, MetaDescent) and rate.schedule != "constant":
            raise OptionError("schedule", rate.schedule, "meta-descent needs the constant schedule")
        self._objective.counts.sequences += len(sequences)
        return self._visit(sequences, rate, k, batch)

    def loss(self, ids: ArrayLike) -> float:
        """Sum of the losses of these sequences at the current weights, without penalty."""
        sequences = self._objective._check_subset(ids)
        self._objective.counts.sequences += len(sequences)
        return self._loss(sequences)

    def state(self) -> dict[str, Vector | float]:
        """Return the rule's state apart from the weights; arrays are valid until the next call.

        Adaptive: ``squares``, the sums of squares h. Periodic: ``factors``, one r per weight or group, and
        the state of the current period. MetaDescent: ``gains``, p, and ``derivatives``, v. Other rules:
        nothing.
        """
        return {} if self._rule is None else self._state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a result of `state`; other entries are ignored. Call after `set_weights`."""
        if self._rule is not None:
            self._restore(state)

    def _vector_of(self, state: Mapping[str, Any], name: str) -> Vector:
        """An array of the state with one number per weight, in the form that this engine needs."""
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
