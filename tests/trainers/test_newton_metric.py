"""Metric and Wolfe search of Newton-CG: mixtures by gain, what is computed again, steps that are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import CurvedLogistic, CurvedQuadratic
from crfit.trainers import NewtonCG
from crfit.trainers.newton.conjugate_gradient import (
    SETTLED,
    AdaptiveMetric,
    FixedMetric,
    NoMetric,
    Workspace,
    mixed,
)
from crfit.trainers.newton.globalisation import CURVATURE, SUFFICIENT, Model, Point, WolfeSearch
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason


class CountedDiagonals(CurvedLogistic):
    """Tells how often its diagonal was asked for."""

    diagonals = 0

    def hessian_diagonal(self):
        self.diagonals += 1
        return super().hessian_diagonal()

    def diagonal_at(self, w):
        return np.diag(self.hessian(w))


def pinned(**options):
    objective = CountedDiagonals(**options)
    objective.value_and_grad(np.zeros(objective.n_weights))
    return objective


# --- mixtures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mix", [0.01, 0.5, 1.0])
def test_a_fixed_mixture_is_that_of_the_formula(mix):
    objective = pinned(l2=2.0)
    expected = (1 - mix) * 2.0 + mix * objective.diagonal_at(np.zeros(objective.n_weights))
    np.testing.assert_allclose(FixedMetric(mix).at(objective, math.inf), expected, rtol=1e-14)


@pytest.mark.parametrize("mix", [0.01, 1.0])
def test_without_penalty_every_entry_is_positive(mix):
    objective = pinned(l2=0.0)
    w = np.zeros(objective.n_weights)
    for silent in ([0, 3], slice(None)):  # attributes that never fire have no curvature
        objective.x[:, silent] = 0.0
        objective.value_and_grad(w)
        metric, diagonal = FixedMetric(mix).at(objective, 0.0), objective.diagonal_at(w)
        assert (metric > 0).all()
        np.testing.assert_allclose(metric[diagonal > 0], mix * diagonal[diagonal > 0], rtol=1e-14)
    overlapping = CurvedLogistic(n_rows=300, n_weights=4, l2=0.0, seed=1)  # not separable: has an optimum
    overlapping.x[:, 2] = 0.0
    trainer = NewtonCG(preconditioner="diag", mix=mix)
    result = train(overlapping, trainer, stop=Stop(grad_inf=1e-8, max_iter=99))
    assert result.reason is StopReason.CONVERGED
    assert result.weights[2] == 0.0


def test_a_mixture_may_be_made_in_place():
    diagonal = np.array([4.0, 2.0])
    assert mixed(diagonal, 0.5, 1.0, diagonal) is diagonal
    np.testing.assert_array_equal(diagonal, [2.5, 1.5])
    assert len(mixed(np.empty(0), 1.0, 0.0, np.empty(0))) == 0


# --- the mixture that follows the run --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain", "mix"), [(math.inf, 1.0), (0.02, 1.0), (0.009, 0.1), (2e-5, 0.1), (9e-6, 0.01), (-1e-12, 0.01)]
)
def test_the_mixture_gets_weaker_as_gains_fall(gain, mix):
    objective, metric = pinned(l2=2.0), AdaptiveMetric()
    expected = (1 - mix) * 2.0 + mix * objective.diagonal_at(np.zeros(objective.n_weights))
    np.testing.assert_allclose(metric.at(objective, gain), expected, rtol=1e-14)
    assert metric.mix == mix


def test_a_settled_diagonal_is_not_computed_again():
    objective, metric = pinned(l2=2.0), AdaptiveMetric()
    metric.at(objective, math.inf)
    there = np.full(objective.n_weights, 0.5)
    objective.value_and_grad(there)
    np.testing.assert_allclose(metric.at(objective, 2 * SETTLED), 1.8 + 0.1 * objective.diagonal_at(there))
    assert objective.diagonals == 2
    objective.value_and_grad(np.ones(objective.n_weights))
    for gain, mix in ((SETTLED / 2, 0.1), (1e-6, 0.01), (0.0, 0.01)):
        expected = (1 - mix) * 2.0 + mix * objective.diagonal_at(there)
        np.testing.assert_allclose(metric.at(objective, gain), expected)
    assert objective.diagonals == 2, "that of an earlier point will do"


def test_a_resumed_metric_needs_no_pass():
    objective, metric = pinned(l2=2.0), AdaptiveMetric()
    metric.at(objective, math.inf)
    assert metric.diagonal is not None
    resumed = AdaptiveMetric(metric.diagonal.copy())
    assert resumed.at(objective, 1e-4).tobytes() == metric.at(objective, 1e-4).tobytes()
    assert objective.diagonals == 1


def test_no_metric_asks_for_nothing():
    objective = pinned()
    assert NoMetric().at(objective, 1.0) is None
    assert objective.diagonals == 0


# --- the Wolfe search ------------------------------------------------------------------------------------


class Valley(CurvedQuadratic):
    """sum sqrt(1 + (w - c)^2) + 0.005 (w - c)^2: from afar a Newton step goes far beyond the minimum."""

    def __init__(self, distance, n_weights=1):
        super().__init__(n_weights)
        self.c = np.full(n_weights, distance)

    def smooth(self, w):
        r = w - self.c
        root = np.sqrt(1.0 + r * r)
        return float(root.sum() + 0.005 * (r @ r)), r / root + 0.01 * r

    def hessian(self, w):
        r = w - self.c
        return np.diag((1.0 + r * r) ** -1.5 + 0.01)


def advance(objective, w):
    point = Point(objective, w.copy())
    point.evaluate_start()
    move = WolfeSearch().advance(point, Workspace(w, np), Model(1e-6, False, None, 50))
    return point, move


def test_a_step_that_overshoots_is_cut():
    objective, start = Valley(20.0), np.zeros(1)
    value, g = objective.smooth(start)
    newton = -g[0] / objective.hessian(start)[0, 0]
    point, move = advance(objective, start)
    assert move.stop is None
    assert abs(newton - 20.0) > 20.0, "the full step must be a bad one"
    assert move.rejected >= 1
    assert move.step_size < 1.0
    assert point.w[0] == pytest.approx(move.step_size * newton)
    assert abs(point.w[0] - 20.0) < abs(newton - 20.0)
    assert point.value < value


@given(seed=st.integers(0, 2**31), scale=st.sampled_from([0.1, 1.0, 10.0]))
@settings(deadline=None, max_examples=40)
def test_the_step_found_has_the_strong_wolfe_conditions(seed, scale):
    objective = CurvedLogistic(n_rows=20, n_weights=5, l2=0.05, seed=seed)
    start = scale * np.random.default_rng(seed).normal(size=5)
    value, g = objective.smooth(start)
    with np.errstate(over="ignore"):  # of trials far out
        point, move = advance(objective, start)
    assert move.stop is None
    s = (point.w - start) / move.step_size
    after, g_after = objective.smooth(point.w)
    # The decrease that the slope promises, or its approximation by the slope at the end.
    enough = value + SUFFICIENT * move.step_size * (g @ s)
    assert after <= enough or (after < value and g_after @ s <= (2 * SUFFICIENT - 1) * (g @ s))
    assert abs(g_after @ s) <= -CURVATURE * (g @ s) * (1 + 1e-9)
    assert point.value == after
    assert point.pinned


def test_nowhere_to_go_and_products_that_are_no_numbers():
    class Rising(CurvedQuadratic):
        def smooth(self, w):
            value, g = super().smooth(w)
            return value + 1e3 * self.counts.grads, g

    point, move = advance(Rising(4), np.zeros(4))
    assert (move.stop, move.message) == (StopReason.LINE_SEARCH, "no step lowers the objective")
    assert (point.w == 0).all()

    class Broken(CurvedQuadratic):
        def hessian(self, w):
            return np.full((self.n_weights, self.n_weights), np.nan)

    _, move = advance(Broken(4), np.zeros(4))
    assert (move.stop, move.message) == (StopReason.DIVERGED, "a Hessian product is not finite")
