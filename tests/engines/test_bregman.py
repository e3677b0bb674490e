"""Potentials, transforms, Bregman losses and natural gradient steps, against their definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, special

from crfit.engines.bregman import PotentialFunction, function_of, natural_step, paper_parameter, transformed
from crfit.engines.online import Transform
from crfit.layout import make_layout
from oracle import Enumeration, make_dataset

EPSILON = 0.1
G1 = PotentialFunction("arctan", 1 / math.sqrt(EPSILON), 1 / math.sqrt(EPSILON))
POTENTIALS = ["quadratic", "arctan", "erf", "gd"]
UPDATES = ["U1", "U2", "U3", "U4", "U5", "U6"]
BENT = [(potential, update) for potential in POTENTIALS[1:] for update in ("U1", "U2")]
numbers = st.floats(-50, 50)
parameters = st.floats(0.05, 30)


def of_paper(potential, update, table=False):
    return Transform(potential, update, paper_parameter(potential, update), table)


def at(rule, *u):
    return transformed(rule, np.array(u, dtype=float))


def literal(rule, u):
    """T as the documentation of `Transform` writes it."""
    p = rule.parameter
    return {
        ("quadratic", "U1"): lambda: u,
        ("quadratic", "U2"): lambda: u,
        ("arctan", "U1"): lambda: u / (u * u + p),
        ("arctan", "U2"): lambda: math.atan(p * u),
        ("erf", "U1"): lambda: 2 * p / math.sqrt(math.pi) * u * math.exp(-((p * u) ** 2)),
        ("erf", "U2"): lambda: math.erf(p * u),
        ("gd", "U1"): lambda: p * u / math.cosh(p * u) if abs(p * u) < 700 else 0.0,
        ("gd", "U2"): lambda: 2 * math.atan(math.tanh(p * u / 2)),
    }[rule.potential, rule.update]()


@given(st.sampled_from(POTENTIALS), st.sampled_from(["U1", "U2"]), parameters, numbers)
def test_the_transform_is_that_of_the_formulas(potential, update, parameter, u):
    rule = Transform(potential, update, parameter)
    np.testing.assert_allclose(at(rule, u), literal(rule, u), rtol=1e-12, atol=1e-300)
    assert at(rule, -u) == -at(rule, u), "odd"
    assert at(rule, 0.0) == 0.0


@given(st.sampled_from(POTENTIALS), parameters, numbers, numbers)
def test_transforms_by_the_slope_rise(potential, parameter, a, b):
    rule = Transform(potential, "U2", parameter)
    assume(a < b)
    low, high = at(rule, a, b)
    assert low <= high


@given(st.sampled_from(BENT), parameters, numbers)
def test_transforms_are_bounded(names, parameter, u):
    bound = {
        ("arctan", "U1"): 0.5 / math.sqrt(parameter),
        ("arctan", "U2"): math.pi / 2,
        ("erf", "U1"): math.sqrt(2 / (math.e * math.pi)),
        ("erf", "U2"): 1.0,
        ("gd", "U1"): 0.66274342,  # x / cosh x where x tanh x = 1
        ("gd", "U2"): math.pi / 2,
    }[names]
    assert abs(at(Transform(*names, parameter), u)[0]) <= bound * (1 + 1e-8)


@pytest.mark.parametrize(
    ("rule", "slope", "at_one", "bound"),
    [
        (of_paper("arctan", "U1"), 10, 0.909, 0.5 / math.sqrt(0.1)),
        (Transform("arctan", "U2", 1 / math.sqrt(0.1)), 3.162, 1.2645, math.pi / 2),
        (of_paper("arctan", "U2"), 10, 1.471, math.pi / 2),
        (of_paper("erf", "U2"), 10, 1.0, 1),
        (of_paper("gd", "U2"), 10, 1.571, math.pi / 2),
    ],
)
def test_slopes_values_and_bounds_are_those_of_the_paper(rule, slope, at_one, bound):
    assert rule.slope == pytest.approx(slope, abs=5e-4)
    h = 1e-6
    assert at(rule, h)[0] / h == pytest.approx(rule.slope, rel=1e-8)
    assert at(rule, 1.0)[0] == pytest.approx(at_one, abs=5e-4)
    assert np.abs(transformed(rule, np.linspace(-30, 30, 20_001))).max() == pytest.approx(bound, rel=1e-2)
    assert np.abs(transformed(rule, np.linspace(-30, 30, 20_001))).max() <= bound


def test_the_arctan_step_by_curvature_falls_beyond_the_root_of_epsilon():
    rule, top = of_paper("arctan", "U1"), math.sqrt(EPSILON)
    assert at(rule, top)[0] == pytest.approx(1.581, abs=5e-4)
    rising = transformed(rule, np.linspace(0, top, 100))
    falling = transformed(rule, np.linspace(top, 5, 100))
    assert (np.diff(rising) > 0).all()
    assert (np.diff(falling) < 0).all()


@pytest.mark.parametrize(("potential", "update"), BENT)
def test_the_table_is_close_inside_and_exact_outside(potential, update):
    exact, table = of_paper(potential, update), of_paper(potential, update, table=True)
    inside = np.random.default_rng(0).uniform(-1, 1, 50_000)
    error = np.abs(transformed(table, inside) - transformed(exact, inside)).max()
    assert 0 < error < 1e-5
    outside = np.array([-40.0, -7.5, -1.0, 1.0, np.nextafter(1, 2), 1.3, 30.0])
    np.testing.assert_array_equal(transformed(table, outside), transformed(exact, outside))
    assert at(table, 0.0) == 0.0
    knots = np.arange(-2048, 2049) / 2048
    np.testing.assert_array_equal(transformed(table, knots), transformed(exact, knots))


@given(st.sampled_from(BENT), st.floats(-1.2, 1.2))
def test_the_table_is_odd(names, u):
    rule = of_paper(*names, table=True)
    np.testing.assert_allclose(at(rule, -u), -at(rule, u), rtol=0, atol=1e-15)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("update", ["U1", "U2"])
def test_the_quadratic_potential_changes_no_bit(update, table):
    u = np.random.default_rng(0).normal(size=1000)
    assert transformed(Transform("quadratic", update, 1.0, table), u).tobytes() == u.tobytes()


@pytest.mark.parametrize(("potential", "update"), BENT)
def test_nothing_overflows(potential, update):
    with np.errstate(over="raise", invalid="raise"):
        found = transformed(of_paper(potential, update), np.array([-1e9, -800.0, 800.0, 1e9]))
    assert np.isfinite(found).all()


@given(st.sampled_from(POTENTIALS), parameters, st.floats(0.2, 5), st.floats(-4, 4))
def test_slope_and_curvature_are_derivatives(potential, scale, factor, u):
    function = PotentialFunction(potential, scale, factor)
    h = 1e-4 / scale
    below, above = function.slope(np.array([u - h, u + h]))
    expected = function.curvature(np.array([u]))[0]
    assert (above - below) / (2 * h) == pytest.approx(expected, rel=1e-5, abs=1e-6 * factor * scale)


def test_the_first_potential_is_that_of_the_paper():
    u, r = np.linspace(-3, 3, 41), math.sqrt(EPSILON)
    np.testing.assert_allclose(G1.slope(u), np.arctan(u / r) / r, rtol=1e-14)
    np.testing.assert_allclose(G1.curvature(u), 1 / (u**2 + EPSILON), rtol=1e-14)
    assert function_of("arctan", "U1", EPSILON) == G1


def test_the_error_function_is_that_of_others():
    x = np.linspace(-4, 4, 101).reshape(-1, 1)
    np.testing.assert_allclose(PotentialFunction("erf").slope(x), special.erf(x), rtol=1e-14)


def divergence(function, p, q):
    """B_G(p, q), as the integral of g(t) - g(q) from q to p."""
    total = 0.0
    for a, b in zip(p.tolist(), q.tolist(), strict=True):
        at_b = function.slope(np.array([b]))[0]
        rise = lambda t, at_b=at_b: function.slope(np.array([t]))[0] - at_b  # noqa: E731
        total += integrate.quad(rise, b, a, epsabs=1e-14)[0]
    return total


@given(st.sampled_from(POTENTIALS), st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.floats(0.3, 10))
def test_divergences_are_not_negative(potential, numbers, scale):
    p, q = np.array(numbers[:3]), np.array(numbers[3:])
    function = PotentialFunction(potential, scale)
    assert divergence(function, p, q) >= -1e-12
    assert divergence(function, p, p) == 0.0
    if potential == "quadratic":
        assert divergence(PotentialFunction("quadratic"), p, q) == pytest.approx(((p - q) ** 2).sum() / 2)


# An attribute has a weight with one label alone, and not every pair of labels has one: then no direction of
# the weights leaves all probabilities as they are, and the Fisher matrix is regular.
TOY = make_dataset(
    [
        [[(0, 1.0)], [(1, 0.5), (2, 1.5)], [(1, 1.0)]],
        [[(2, 1.0), (3, -0.5)], [(0, 2.0)]],
        [[(1, 1.0)], [(3, 1.0)], [(0, 0.7)], [(1, 1.3)]],
    ],
    [[0, 1, 1], [1, 0], [1, 1, 0, 1]],
    n_labels=2,
    n_attributes=4,
    sequence_weights=[1.0, 0.5, 2.0],
)


def toy_means(layout, w):
    """Em, Et and the Fisher matrix, means over the weighted sequences."""
    truth, total = Enumeration(TOY, layout, w), 3.5
    return truth.expected() / total, truth.observed() / total, truth.hessian() / total


@pytest.fixture(scope="module")
def toy():
    layout = make_layout(TOY, weights="observed", transitions="observed")
    w = 0.3 * np.random.default_rng(2).normal(size=layout.n_weights)
    return layout, w


def points(name, gamma, expected, observed):
    """The two arguments of B_G in each of the losses."""
    rho = 1 - gamma
    return {
        "B1": (gamma * expected, observed - rho * expected),
        "B2": (observed - rho * expected, gamma * expected),
        "B3": (rho * observed, expected - gamma * observed),
        "B4": (expected - gamma * observed, rho * observed),
    }[name]


def loss(name, gamma, function, expected, observed):
    return divergence(function, *points(name, gamma, expected, observed))


def loss_gradient(name, gamma, function, expected, observed, fisher):
    """Gradient of a loss in the weights, by the chain rule."""
    p, q = points(name, gamma, expected, observed)
    g, curvature, u = function.slope, function.curvature, expected - observed
    inner = {
        "B1": gamma * (g(p) - g(q)) + (1 - gamma) * curvature(q) * u,
        "B2": (1 - gamma) * (g(q) - g(p)) + gamma * curvature(q) * u,
        "B3": curvature(q) * u,
        "B4": g(p) - g(q),
    }[name]
    return fisher @ inner


LOSSES = list(itertools.product(["B1", "B2", "B3", "B4"], [0, 1]))
#: The step to which each loss leads.
STEP_OF = {
    ("B1", 0): "U1", ("B1", 1): "U6", ("B2", 0): "U2", ("B2", 1): "U4", ("B3", 0): "U4", ("B3", 1): "U3",
    ("B4", 0): "U6", ("B4", 1): "U5",
}  # fmt: skip


@pytest.mark.parametrize("gamma", [0, 0.3, 1])
@pytest.mark.parametrize("name", ["B1", "B2", "B3", "B4"])
def test_gradients_of_the_losses_are_differences(toy, name, gamma):
    layout, w = toy
    expected, observed, fisher = toy_means(layout, w)
    gradient = loss_gradient(name, gamma, G1, expected, observed, fisher)
    h = 1e-5
    differences = []
    for i in range(layout.n_weights):
        e = np.eye(layout.n_weights)[i] * h
        up, down = (loss(name, gamma, G1, toy_means(layout, w + s * e)[0], observed) for s in (1, -1))
        differences.append((up - down) / (2 * h))
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize(("name", "gamma"), LOSSES)
def test_the_inverse_fisher_matrix_times_the_gradient_is_the_step(toy, name, gamma):
    expected, observed, fisher = toy_means(*toy)
    assert np.linalg.cond(fisher) < 1e4, "regular, so that there is an inverse"
    gradient = loss_gradient(name, gamma, G1, expected, observed, fisher)
    step = natural_step(STEP_OF[name, gamma], G1, expected, observed)
    np.testing.assert_allclose(np.linalg.solve(fisher, gradient), step, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "gamma"), LOSSES)
def test_losses_are_zero_where_the_means_meet(toy, name, gamma):
    expected, observed, _ = toy_means(*toy)
    assert loss(name, gamma, G1, expected, observed) > 0
    assert loss(name, gamma, G1, observed, observed) == pytest.approx(0, abs=1e-15)
    # With half the squared length all eight are half the squared distance.
    half = ((expected - observed) ** 2).sum() / 2
    quadratic = PotentialFunction("quadratic")
    assert loss(name, gamma, quadratic, expected, observed) == pytest.approx(half, rel=1e-12)


@pytest.mark.parametrize("potential", POTENTIALS)
def test_even_potentials_leave_four_steps(toy, potential):
    expected, observed, _ = toy_means(*toy)
    steps = {}
    for update in UPDATES:
        function = function_of(potential, update, paper_parameter(potential, update))
        steps[update] = natural_step(update, function, expected, observed)
    np.testing.assert_array_equal(steps["U1"], steps["U3"])
    np.testing.assert_array_equal(steps["U2"], steps["U5"])
    u = expected - observed
    for update in ("U1", "U2"):
        np.testing.assert_array_equal(steps[update], transformed(of_paper(potential, update), u))
    if potential == "quadratic":
        for step in steps.values():
            np.testing.assert_array_equal(step, u)
    else:
        assert np.abs(steps["U4"] - steps["U1"]).max() > 1e-3
        assert np.abs(steps["U6"] - steps["U2"]).max() > 1e-3
