"""Bregman losses of a CRF's expectations, and the natural gradient steps that they lead to.

With the means of the features under the model, Em, and on the labels, Et, a convex function G = sum_i G(u_i)
with g = G', and B_G(p, q) = G(p) - G(q) - g(q).(p - q), four losses are zero exactly where Em = Et [1]:

    B1  B_G(gamma Em, Et - rho Em)      B2  B_G(Et - rho Em, gamma Em)           rho = 1 - gamma
    B3  B_G(rho Et, Em - gamma Et)      B4  B_G(Em - gamma Et, rho Et)

Their gradients in the weights are D = dEm/dw times something. D is the covariance of the features, which is
the Fisher matrix, so that the natural gradient [2] is that something. For gamma 0 and 1 there are six:

    U1  g'(Et - Em) (Em - Et)      U3  g'(Em - Et) (Em - Et)      U5  g(Em - Et) - g(0)
    U2  g(0) - g(Et - Em)          U4  g'(Em) (Em - Et)           U6  g(Em) - g(Et)

The functions G are even, and then U3 is U1 and U5 is U2. With the scale a and the factor c

    G(u) = c/a S1(a u),    g(u) = c S(a u),    g'(u) = c a S'(a u),     S a sigmoid and S1 its integral from 0

              S                               in [1]: a                c
    quadratic u                               1                        1
    arctan    arctan u                        G1: 1/sqrt(epsilon)      1/sqrt(epsilon)
    erf       erf u                           G2: alpha                1
    gd        2 arctan(tanh(u/2))             G3: beta                 1

The quadratic G turns all six into the gradient of the likelihood. The integral of gd is not elementary: it is
pi/2 x - 2 (Ti(1) - Ti(e^-x)) for x >= 0 with Ti(y) = y - y^3/3^2 + y^5/5^2 - .., a series that is summed as
in [3]. Correct is 2/sqrt(pi) before the integral of exp(-x^2) in erf, where [1] prints 2/pi.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
[2] S. Amari (1998). Natural gradient works efficiently in learning. Neural Computation 10, 251-276.
[3] H. Cohen, F. Rodriguez Villegas, D. Zagier (2000). Convergence acceleration of alternating series.
    Experimental Mathematics 9, 3-12, algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from crfit.engines.online import Potential, Transform
from crfit.vectors import Vector

__all__ = [
    "Loss",
    "PotentialFunction",
    "Update",
    "divergence",
    "function_of",
    "loss",
    "loss_gradient",
    "natural_step",
    "paper_parameter",
    "transformed",
]

#: Names of the losses.
Loss: TypeAlias = Literal["B1", "B2", "B3", "B4"]

#: Names of the natural gradient steps.
Update: TypeAlias = Literal["U1", "U2", "U3", "U4", "U5", "U6"]

#: Steps that have g' in them; the others have g.
CURVATURE_UPDATES: tuple[Update, ...] = ("U1", "U3", "U4")

#: Intervals of the table of a transform on [-1, 1].
TABLE_INTERVALS = 4096

#: Terms of the accelerated series; the error is below 5.8^-24.
SERIES_TERMS = 24


class _Sigmoid(NamedTuple):
    """S with its integral from 0 and its derivative."""

    integral: Callable[[Vector], Vector]
    value: Callable[[Vector], Vector]
    derivative: Callable[[Vector], Vector]


def _erf(x: Vector) -> Vector:
    values = np.fromiter(map(math.erf, x.ravel().tolist()), dtype=np.float64, count=x.size)
    return values.reshape(x.shape)


def _gd(x: Vector) -> Vector:
    return 2.0 * np.arctan(np.tanh(0.5 * x))  # exactly odd, and nothing overflows


def _sech(x: Vector) -> Vector:
    y = np.exp(-np.abs(x))  # at most 1
    return 2.0 * y / (1.0 + y * y)


def _series_weights(n: int) -> list[float]:
    """Factors with which the first n terms of an alternating series give its limit."""
    d = (3.0 + math.sqrt(8.0)) ** n
    d = (d + 1.0 / d) / 2.0
    b, c, weights = -1.0, -d, []
    for k in range(n):
        c = b - c
        weights.append(c / d)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1.0))
    return weights


def _inverse_tangent_integral(y: Vector) -> Vector:
    """Ti(y) = sum_k (-1)^k y^(2k+1) / (2k+1)^2 for 0 <= y <= 1."""
    total, power = np.zeros_like(y), y.copy()
    for k, weight in enumerate(_series_weights(SERIES_TERMS)):
        total += weight / (2 * k + 1) ** 2 * power
        power *= y * y
    return total


def _gd_integral(x: Vector) -> Vector:
    x = np.abs(x)
    at_one = _inverse_tangent_integral(np.ones(1))  # Catalan's constant; 0 at 0 whatever its last bits
    result: Vector = 0.5 * math.pi * x - 2.0 * (at_one - _inverse_tangent_integral(np.exp(-x)))
    return result


_SIGMOIDS: dict[Potential, _Sigmoid] = {
    "quadratic": _Sigmoid(lambda x: 0.5 * x * x, lambda x: x, np.ones_like),
    "arctan": _Sigmoid(
        lambda x: x * np.arctan(x) - 0.5 * np.log1p(x * x), np.arctan, lambda x: 1.0 / (1.0 + x * x)
    ),
    "erf": _Sigmoid(
        lambda x: x * _erf(x) + np.expm1(-x * x) / math.sqrt(math.pi),
        _erf,
        lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-x * x),
    ),
    "gd": _Sigmoid(_gd_integral, _gd, _sech),
}


@dataclass(frozen=True)
class PotentialFunction:
    """One of the functions G, which is even, with G(0) = 0, and its derivatives, all element-wise.

    Parameters
    ----------
    potential : {"quadratic", "arctan", "erf", "gd"}
        Which sigmoid its derivative is.
    scale : float
        What the argument is multiplied by.
    factor : float
        What the derivative is multiplied by.
    """

    potential: Potential
    scale: float = 1.0
    factor: float = 1.0

    def value(self, u: Vector) -> Vector:
        """G(u) of each entry."""
        return self.factor / self.scale * _SIGMOIDS[self.potential].integral(self.scale * u)

    def slope(self, u: Vector) -> Vector:
        """g(u) = G'(u)."""
        return self.factor * _SIGMOIDS[self.potential].value(self.scale * u)

    def curvature(self, u: Vector) -> Vector:
        """g'(u) = G''(u)."""
        return self.factor * self.scale * _SIGMOIDS[self.potential].derivative(self.scale * u)


def paper_parameter(potential: Potential, update: Update) -> float:
    """Return the parameter with which the experiments of [1] were made; the step has slope 10 at 0.

    Parameters
    ----------
    potential : {"quadratic", "arctan", "erf", "gd"}
        The potential; "quadratic" has no parameter, and 1 stands for that.
    update : {"U1", .., "U6"}
        The step: with g' arctan has epsilon, with g a slope.
    """
    if potential == "quadratic":
        return 1.0
    if potential == "erf":
        return 5.0 * math.sqrt(math.pi)
    return 0.1 if potential == "arctan" and update in CURVATURE_UPDATES else 10.0


def function_of(potential: Potential, update: Update, parameter: float) -> PotentialFunction:
    """Return the function G that a step is made with.

    Parameters
    ----------
    potential : {"quadratic", "arctan", "erf", "gd"}
        The potential.
    update : {"U1", .., "U6"}
        The step.
    parameter : float
        As in `crfit.engines.online.Transform`: epsilon of G1 for arctan in a step with g', else the scale.
    """
    if potential == "quadratic":
        return PotentialFunction(potential)
    if potential == "arctan" and update in CURVATURE_UPDATES:
        return PotentialFunction(potential, 1.0 / math.sqrt(parameter), 1.0 / math.sqrt(parameter))
    return PotentialFunction(potential, parameter)


def transformed(rule: Transform, u: Vector) -> Vector:
    """Return T(u), what a step subtracts where plain gradient descent subtracts u.

    Parameters
    ----------
    rule : Transform
        Which T, and whether it is looked up between -1 and 1.
    u : array of float64
        Sums of residuals.
    """
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


def divergence(function: PotentialFunction, p: Vector, q: Vector) -> float:
    """Return B_G(p, q) = G(p) - G(q) - g(q).(p - q), which is not negative and 0 for p = q.

    Parameters
    ----------
    function : PotentialFunction
        G.
    p, q : array of float64
        Two points.
    """
    return float((function.value(p) - function.value(q) - function.slope(q) * (p - q)).sum())


def _points(name: Loss, gamma: float, expected: Vector, observed: Vector) -> tuple[Vector, Vector]:
    """The two arguments of B_G."""
    rho = 1.0 - gamma
    if name == "B1":
        return gamma * expected, observed - rho * expected
    if name == "B2":
        return observed - rho * expected, gamma * expected
    if name == "B3":
        return rho * observed, expected - gamma * observed
    return expected - gamma * observed, rho * observed


def loss(name: Loss, gamma: float, function: PotentialFunction, expected: Vector, observed: Vector) -> float:
    """Return one of the losses B1 to B4.

    Parameters
    ----------
    name : {"B1", "B2", "B3", "B4"}
        Which.
    gamma : float
        From 0 to 1.
    function : PotentialFunction
        G.
    expected, observed : float64[n_weights]
        Means of the features under the model and on the labels.
    """
    return divergence(function, *_points(name, gamma, expected, observed))


def loss_gradient(
    name: Loss,
    gamma: float,
    function: PotentialFunction,
    expected: Vector,
    observed: Vector,
    fisher: Vector,
) -> Vector:
    """Return the gradient of a loss in the weights.

    Parameters
    ----------
    name, gamma, function, expected, observed
        As in `loss`.
    fisher : float64[n_weights, n_weights]
        Derivative of `expected` in the weights: the mean covariance of the features.
    """
    p, q = _points(name, gamma, expected, observed)
    g, curvature, rho = function.slope, function.curvature, 1.0 - gamma
    u = expected - observed
    if name == "B1":
        inner = gamma * (g(p) - g(q)) + rho * curvature(q) * u
    elif name == "B2":
        inner = rho * (g(q) - g(p)) + gamma * curvature(q) * u
    elif name == "B3":
        inner = curvature(q) * u
    else:
        inner = g(p) - g(q)
    gradient: Vector = fisher @ inner
    return gradient


def natural_step(update: Update, function: PotentialFunction, expected: Vector, observed: Vector) -> Vector:
    """Return what a natural gradient step of rate 1 subtracts from the weights.

    Parameters
    ----------
    update : {"U1", .., "U6"}
        Which.
    function : PotentialFunction
        G.
    expected, observed : float64[n_weights]
        Means of the features under the model and on the labels.
    """
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
