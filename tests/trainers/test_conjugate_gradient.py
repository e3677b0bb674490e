"""Conjugate gradients on quadratic models, their metric, and the Wolfe search of Newton-CG."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import CurvedLogistic, CurvedQuadratic
from crfit.trainers import NewtonCG
from crfit.trainers.newton import conjugate_gradient
from crfit.trainers.newton.conjugate_gradient import (
    KNOWN,
    SETTLED,
    AdaptiveMetric,
    FixedMetric,
    Metric,
    Workspace,
    minimise_model,
    mixed,
    to_boundary,
)
from crfit.trainers.newton.globalisation import CURVATURE, SUFFICIENT, Model, Point, WolfeSearch
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason


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
    seed=st.integers(0, 2**31), n=st.integers(1, 12), preconditioned=st.booleans(),
    radius=st.sampled_from([math.inf, 10.0, 0.3, 1e-3]), xi=st.sampled_from([0.5, 0.1, 1e-6]),
)  # fmt: skip
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
    # Conjugate gradients multiply rounding by the condition number.
    np.testing.assert_allclose(
        root * s, t, rtol=1e-8, atol=1e-15 * np.linalg.cond(plain.h) * np.linalg.norm(t)
    )


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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_what_the_model_could_still_fall_is_estimated(seed, condition):
    model = Quadratic.random(seed, 300, condition)
    lowest = -model.value(np.linalg.solve(model.h, -model.g))
    for products in (12, 24, 48):
        model.products = 0
        found, s = model.minimise(max_products=products)
        left = lowest + model.value(s)
        assert left / 10.0 <= found.left <= 50.0 * left or math.isinf(found.left)
    model.products = 0
    assert math.isinf(model.minimise(max_products=KNOWN - 1)[0].left)


def test_a_step_ends_where_the_run_would():
    plain = Quadratic.random(3, 200, 1e4)
    accurate, _ = plain.minimise(xi=1e-3, max_products=1000)
    lowest = -plain.value(np.linalg.solve(plain.h, -plain.g))
    assert accurate.solved
    model = Quadratic(plain.h, plain.g)
    early, s = model.minimise(xi=1e-3, wanted=0.05 * lowest, max_products=1000)
    assert early.products < 0.8 * accurate.products
    assert not early.solved
    assert early.left <= 0.05 * lowest
    assert lowest + model.value(s) <= 0.05 * lowest
    # The residual test holds, but a few products more end the run.
    model = Quadratic(plain.h, plain.g)
    late, _ = model.minimise(xi=1e-3, wanted=accurate.left / 1.5, max_products=1000)
    assert accurate.products < late.products < 1.5 * accurate.products
    assert late.left <= accurate.left / 1.5
    # Far from the end of the run nothing changes.
    model = Quadratic(plain.h, plain.g)
    assert model.minimise(xi=1e-3, wanted=accurate.left / 100.0, max_products=1000)[0] == accurate


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
    np.testing.assert_allclose(metric.at(objective, 2 * SETTLED), objective.diagonal_at(there))
    assert objective.diagonals == 2
    objective.value_and_grad(np.ones(objective.n_weights))
    for gain, mix in ((SETTLED / 2, 1.0), (2e-5, 0.1), (1e-6, 0.01), (0.0, 0.01)):
        expected = (1 - mix) * 2.0 + mix * objective.diagonal_at(there)
        np.testing.assert_allclose(metric.at(objective, gain), expected)
    assert objective.diagonals == 2, "that of an earlier point will do"


def test_a_resumed_metric_needs_no_pass():
    objective, metric = pinned(l2=2.0), AdaptiveMetric()
    metric.at(objective, math.inf)
    resumed = AdaptiveMetric(metric.diagonal.copy())
    assert resumed.at(objective, 1e-4).tobytes() == metric.at(objective, 1e-4).tobytes()
    assert objective.diagonals == 1


def test_no_metric_asks_for_nothing():
    objective = pinned()
    assert Metric().at(objective, 1.0) is None
    assert objective.diagonals == 0


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
