"""Conjugate gradients on quadratic models whose minimum is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.trainers.newton import conjugate_gradient
from crfit.trainers.newton.conjugate_gradient import Workspace, minimise_model, to_boundary


class Quadratic:
    """g.s + s.Hs/2 with products counted; a metric if asked for."""

    def __init__(self, h, g, metric=None):
        self.h, self.g = np.asarray(h, dtype=float), np.asarray(g, dtype=float)
        self.metric = None if metric is None else np.asarray(metric, dtype=float)
        self.work = Workspace(self.g, np)
        self.products = 0

    @classmethod
    def random(cls, seed, n, condition=100.0, preconditioned=False):
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        metric = rng.uniform(0.2, 5.0, size=n) if preconditioned else None
        return cls(q @ np.diag(np.geomspace(1.0, condition, n)) @ q.T, rng.normal(size=n), metric)

    def product(self, v, out):
        self.products += 1
        out[:] = self.h @ v
        return out

    def minimise(self, **options):
        options = {"xi": 1e-12, "metric": self.metric} | options
        found = minimise_model(self.product, self.g, self.work, **options)
        assert found.products == self.products
        return found, self.work.s

    def value(self, s):
        return self.g @ s + 0.5 * s @ self.h @ s

    def norm(self, s):
        return math.sqrt(s @ (s if self.metric is None else self.metric * s))


@pytest.mark.parametrize("metric", [None, [0.5, 3.0]], ids=["plain", "metric"])
def test_two_by_two_is_solved_in_two_steps(metric):
    problem = Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0], metric)
    found, s = problem.minimise()
    assert found.products == 2
    assert not found.boundary
    np.testing.assert_allclose(s, np.linalg.solve(problem.h, -problem.g), rtol=1e-14)
    assert found.decrease == pytest.approx(-problem.value(s), rel=1e-14)
    assert found.slope == pytest.approx(problem.g @ s, rel=1e-14)
    assert found.norm == pytest.approx(problem.norm(s), rel=1e-14)


@pytest.mark.parametrize("metric", [None, [0.5, 3.0]], ids=["plain", "metric"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.999])
def test_a_smaller_radius_ends_on_the_sphere(metric, share):
    problem = Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0], metric)
    radius = share * problem.norm(np.linalg.solve(problem.h, -problem.g))
    found, s = problem.minimise(radius=radius)
    assert found.boundary
    assert problem.norm(s) == pytest.approx(radius, rel=1e-14)
    assert found.norm == pytest.approx(radius, rel=1e-14)
    assert found.decrease == pytest.approx(-problem.value(s), rel=1e-12)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 12),
    preconditioned=st.booleans(),
    radius=st.sampled_from([math.inf, 10.0, 0.3, 1e-3]),
    xi=st.sampled_from([0.5, 0.1, 1e-6]),
)
@settings(deadline=None, max_examples=60)
def test_result_describes_the_step_and_beats_the_gradient(seed, n, preconditioned, radius, xi):
    problem = Quadratic.random(seed, n, preconditioned=preconditioned)
    found, s = problem.minimise(radius=radius, xi=xi)
    assert found.decrease == pytest.approx(-problem.value(s), rel=1e-9)
    assert found.norm == pytest.approx(problem.norm(s), rel=1e-9)
    assert problem.norm(s) <= radius * (1 + 1e-12)
    m = np.ones(n) if problem.metric is None else problem.metric
    d = -problem.g / m
    # Cauchy's point: the minimum along the (preconditioned) gradient within the radius.
    length = min(-(problem.g @ d) / (d @ problem.h @ d), radius / problem.norm(d))
    assert found.decrease >= -problem.value(length * d) * (1 - 1e-9)
    if not found.boundary:
        res = problem.g + problem.h @ s
        assert res @ (res / m) <= xi**2 * (problem.g @ (problem.g / m)) * (1 + 1e-6) + 1e-24


@given(seed=st.integers(0, 2**31), preconditioned=st.booleans())
@settings(deadline=None, max_examples=20)
def test_a_metric_is_a_change_of_variables(seed, preconditioned):
    # With s' = sqrt(M) s the problem in the metric M is one in the metric 1, step by step.
    problem = Quadratic.random(seed, 8, preconditioned=True)
    root = np.sqrt(problem.metric)
    plain = Quadratic(problem.h / np.outer(root, root), problem.g / root)
    radius = 0.5 if preconditioned else math.inf
    ours, s = problem.minimise(xi=0.1, radius=radius)
    theirs, t = plain.minimise(xi=0.1, radius=radius)
    assert ours.products == theirs.products
    np.testing.assert_allclose(root * s, t, rtol=1e-8, atol=1e-10)


def test_quadratic_test_stops_where_the_next_product_does_not_pay():
    problem = Quadratic.random(4, 30, condition=1e4)
    xi = 0.5
    found, _ = problem.minimise(xi=xi, quadratic=True)
    share = min(xi, math.sqrt(np.linalg.norm(problem.g)))
    values = [0.0]
    for n in range(1, found.products + 1):
        step = Quadratic(problem.h, problem.g)
        values.append(step.value(step.minimise(max_products=n)[1]))
        l_gain = n * (values[-1] - values[-2])
        assert (l_gain >= share * values[-1]) == (n == found.products)
    assert 1 < found.products < 30


def test_flat_direction_goes_to_the_boundary_or_ends():
    problem = Quadratic(np.diag([1.0, 0.0]), [1.0, 1.0])
    found, s = problem.minimise(radius=50.0)
    assert found.boundary
    assert problem.norm(s) == pytest.approx(50.0)
    problem = Quadratic(np.zeros((2, 2)), [1.0, 1.0])
    found, s = problem.minimise()
    np.testing.assert_array_equal(s, [-1.0, -1.0])  # some direction to search along
    assert found.products == 1


def test_products_are_limited_and_infinite_ones_reported():
    found, _ = Quadratic.random(1, 40, condition=1e6).minimise(max_products=7)
    assert found.products == 7
    broken = Quadratic(np.full((2, 2), np.nan), [1.0, 1.0])
    found, s = broken.minimise()
    assert not found.finite
    np.testing.assert_array_equal(s, [0.0, 0.0])


def test_drifted_residual_is_replaced(monkeypatch):
    # One wrong product spoils the updated residual; only the true one leads to the solution.
    errors = {}
    for every in (10, 1000):
        monkeypatch.setattr(conjugate_gradient, "CHECK_EVERY", every)
        problem = Quadratic.random(2, 30)
        exact = problem.product

        def product(v, out, problem=problem, exact=exact):
            exact(v, out)
            if problem.products == 9:
                out += 100.0 * (problem.g - (problem.g @ v) / (v @ v) * v)
            return out

        problem.product = product
        _, s = problem.minimise(xi=1e-8)
        best = np.linalg.solve(problem.h, -problem.g)
        errors[every] = np.linalg.norm(s - best) / np.linalg.norm(best)
    assert errors[10] < 1e-6
    assert errors[1000] > 0.1


def test_work_is_done_in_the_same_four_vectors():
    problem = Quadratic.random(3, 6)
    before = [v.ctypes.data for v in vars(problem.work).values()]
    first = problem.minimise()[1].copy()
    problem.products = 0
    np.testing.assert_array_equal(problem.minimise()[1], first)  # nothing is left of the first run
    assert [v.ctypes.data for v in vars(problem.work).values()] == before


@given(st.floats(0.0, 1.0), st.floats(-1.0, 1.0), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_boundary_is_met_from_inside(inside, cosine, d_norm, radius):
    s_norm = inside * radius
    ss, sd, dd = s_norm**2, cosine * s_norm * d_norm, d_norm**2
    a = to_boundary(ss, sd, dd, radius)
    assert a >= 0.0
    assert ss + a * (2 * sd + a * dd) == pytest.approx(radius**2, rel=1e-9)
