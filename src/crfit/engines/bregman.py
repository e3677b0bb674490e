"""Bregman losses of a CRF's expectations, and their natural gradient steps.

Let Em be the mean features under the model, Et their mean on the labels, G = sum_i G(u_i) a convex function
with g = G', and B_G(p, q) = G(p) - G(q) - g(q).(p - q). Four losses are zero exactly where Em = Et [1]:

    B1  B_G(gamma Em, Et - rho Em)      B2  B_G(Et - rho Em, gamma Em)           rho = 1 - gamma
    B3  B_G(rho Et, Em - gamma Et)      B4  B_G(Em - gamma Et, rho Et)

Their gradients with respect to the weights are D = dEm/dw times a vector. D is the covariance of the
features, which is the Fisher matrix, so the natural gradient [2] is that vector. gamma = 0 and 1 give six:

    U1  g'(Et - Em) (Em - Et)      U3  g'(Em - Et) (Em - Et)      U5  g(Em - Et) - g(0)
    U2  g(0) - g(Et - Em)          U4  g'(Em) (Em - Et)           U6  g(Em) - g(Et)

The functions G are even, and then U3 is U1 and U5 is U2. With the scale a and the factor c

    g(u) = c S(a u),    g'(u) = c a S'(a u),     S a sigmoid

              S                               in [1]: a                c
    quadratic u                               1                        1
    arctan    arctan u                        G1: 1/sqrt(epsilon)      1/sqrt(epsilon)
    erf       erf u                           G2: alpha                1
    gd        2 arctan(tanh(u/2))             G3: beta                 1

The quadratic G turns all six into the gradient of the likelihood. The factor of erf is 2/sqrt(pi); [1]
misprints it as 2/pi.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
[2] S. Amari (1998). Natural gradient works efficiently in learning. Neural Computation 10, 251-276.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from crfit.engines.online import Potential, Transform
from crfit.vectors import Vector

#: Names of the natural gradient steps.
Update: TypeAlias = Literal["U1", "U2", "U3", "U4", "U5", "U6"]

#: Steps that use g'; the others use g.
CURVATURE_UPDATES: tuple[Update, ...] = ("U1", "U3", "U4")

#: Number of intervals in the table of a transform on [-1, 1].
TABLE_INTERVALS = 4096


class _Sigmoid(NamedTuple):
    """S and its derivative."""

    value: Callable[[Vector], Vector]
    derivative: Callable[[Vector], Vector]


def _erf(x: Vector) -> Vector:
    values = np.fromiter(map(math.erf, x.ravel().tolist()), dtype=np.float64, count=x.size)
    return values.reshape(x.shape)


def _gd(x: Vector) -> Vector:
    return 2.0 * np.arctan(np.tanh(0.5 * x))  # exactly odd, cannot overflow


def _sech(x: Vector) -> Vector:
    y = np.exp(-np.abs(x))  # at most 1
    return 2.0 * y / (1.0 + y * y)


_SIGMOIDS: dict[Potential, _Sigmoid] = {
    "quadratic": _Sigmoid(lambda x: x, np.ones_like),
    "arctan": _Sigmoid(np.arctan, lambda x: 1.0 / (1.0 + x * x)),
    "erf": _Sigmoid(_erf, lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-x * x)),
    "gd": _Sigmoid(_gd, _sech),
}


@dataclass(frozen=True)
class PotentialFunction:
    """Elementwise derivatives of one of the functions G."""

    potential: Potential
    scale: float = 1.0  # a
    factor: float = 1.0  # c

    def slope(self, u: Vector) -> Vector:
        """g(u) = G'(u)."""
        return self.factor * _SIGMOIDS[self.potential].value(self.scale * u)

    def curvature(self, u: Vector) -> Vector:
        """g'(u) = G''(u)."""
        return self.factor * self.scale * _SIGMOIDS[self.potential].derivative(self.scale * u)


def paper_parameter(potential: Potential, update: Update) -> float:
    """Parameter used in the experiments of [1]: the step has slope 10 at 0."""
    if potential == "quadratic":
        return 1.0
    if potential == "erf":
        return 5.0 * math.sqrt(math.pi)
    return 0.1 if potential == "arctan" and update in CURVATURE_UPDATES else 10.0


def function_of(potential: Potential, update: Update, parameter: float) -> PotentialFunction:
    """G of a step; `parameter` is epsilon of G1 for arctan in a step with g', otherwise the scale."""
    if potential == "quadratic":
        return PotentialFunction(potential)
    if potential == "arctan" and update in CURVATURE_UPDATES:
        return PotentialFunction(potential, 1.0 / math.sqrt(parameter), 1.0 / math.sqrt(parameter))
    return PotentialFunction(potential, parameter)


def transformed(rule: Transform, u: Vector) -> Vector:
    """T(u), which a step subtracts instead of u (plain gradient descent)."""
    if rule.potential == "quadratic":
        return u
    if not rule.table:
        return _exact(rule, u)
    points, values = _table(rule)
    result: Vector = np.interp(u, points, values)
    outside = np.abs(u) > 1.0
    result[outside] = _exact(rule, u[outside])
    return result


def _exact(rule: Transform, u: Vector) -> Vector:
    function = function_of(rule.potential, rule.update, rule.parameter)
    return function.curvature(u) * u if rule.update == "U1" else function.slope(u)


@lru_cache(maxsize=16)
def _table(rule: Transform) -> tuple[Vector, Vector]:
    points = np.linspace(-1.0, 1.0, TABLE_INTERVALS + 1)
    return points, _exact(rule, points)


def natural_step(update: Update, function: PotentialFunction, expected: Vector, observed: Vector) -> Vector:
    """The vector that a natural gradient step of rate 1 subtracts, from mean features, float64[n_weights]."""
    g, curvature = function.slope, function.curvature
    u = expected - observed
    if update == "U1":
        return curvature(-u) * u
    if update == "U2":
        return g(np.zeros(1)) - g(-u)
    if update == "U3":
        return curvature(u) * u
    if update == "U4":
        return curvature(expected) * u
    if update == "U5":
        return g(u) - g(np.zeros(1))
    return g(expected) - g(observed)
