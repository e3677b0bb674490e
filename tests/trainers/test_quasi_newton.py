"""BFGS with its dense matrix, and L-BFGS in variables scaled by the diagonal of the Hessian at the start."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import CurvedLogistic, CurvedQuadratic, Logistic, Quadratic
from crfit.engines import make_objective
from crfit.errors import CapabilityError, ConvergenceWarning, OptionError
from crfit.layout import classifier_layout
from crfit.trainers import BFGS, LBFGS
from crfit.trainers.quasi_newton.bfgs import InverseHessian
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import random_dataset


def walk(objective, history, n_steps, lengths):
    """Steps along -H g with lengths around the best ones; pairs (s, y) and the B s before each."""
    w, d = np.zeros(objective.n_weights), np.empty(objective.n_weights)
    g = objective.smooth(w)[1]
    for length in itertools.islice(lengths, n_steps):
        slope = history.direction(w, g, d)
        new = w - length * slope / (d @ objective.hessian(w) @ d) * d
        g_new = objective.smooth(new)[1]
        assert history.push(new, w, g_new, g)
        yield new - w, g_new - g
        w, g = new, g_new


@pytest.mark.parametrize("rescales", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 70), condition=st.floats(1.0, 1e4))
@settings(max_examples=25)
def test_the_factor_is_that_of_the_textbook_matrix(rescales, seed, n, condition):
    objective = Quadratic(n, condition, seed=seed)
    history = InverseHessian(n, rescales)
    lengths = np.random.default_rng(seed).uniform(0.3, 1.5, 8)
    h = None
    for s, y in walk(objective, history, 6, lengths):
        scale = (s @ y) / (y @ y) if h is None else 1.0
        if h is None:
            h = np.eye(n)
        elif rescales:
            scale = max(1.0, s @ np.linalg.solve(h, s) / (s @ y))
        v = np.eye(n) - np.outer(s, y) / (s @ y)
        h = scale * v @ h @ v.T + np.outer(s, s) / (s @ y)
        found = history.factor @ history.factor.T
        np.testing.assert_allclose(found, h, atol=1e-7 * np.abs(h).max())
        np.testing.assert_allclose(found @ y, s, atol=1e-7 * np.abs(s).max(), err_msg="the secant equation")


def test_with_exact_searches_a_quadratic_ends_in_as_many_steps_as_weights():
    objective = Quadratic(12, 100.0)
    history = InverseHessian(12, rescales=False)
    list(walk(objective, history, 12, itertools.repeat(1.0)))
    np.testing.assert_allclose(
        history.factor @ history.factor.T, np.linalg.inv(objective.a), atol=1e-9,
        err_msg="the inverse Hessian",
    )  # fmt: skip
    run = train(Quadratic(12, 100.0), BFGS(wolfe_slope=1e-3, scaling="first"), stop=Stop(grad_inf=1e-7))
    assert run.reason is StopReason.CONVERGED
    assert run.iterations <= 15


def test_a_right_matrix_stays_as_it_is():
    objective = Quadratic(9, 50.0)
    history = InverseHessian(9)
    list(walk(objective, history, 1, [1.0]))
    right = np.linalg.cholesky(np.linalg.inv(objective.a))
    history.factor[:] = right
    list(walk(objective, history, 1, [0.7]))
    np.testing.assert_allclose(history.factor, right, atol=1e-13)


@pytest.mark.parametrize(("scaling", "least", "most", "n"), [("first", 0.6, 1.1, 14), ("always", 0.5, 3, 15)])
def test_its_matrix_comes_near_the_inverse_hessian_at_the_optimum(scaling, least, most, n):
    objective = CurvedLogistic(l2=0.5)
    steps = BFGS(scaling=scaling).steps(objective, np.zeros(objective.n_weights))
    last = next(step for step in steps if step.grad_inf < 1e-9)
    root = np.linalg.cholesky(objective.hessian(last.w))  # of the Hessian; H times it is near the identity
    ratios = np.linalg.svd(root.T @ np.asarray(last.state["factor"]), compute_uv=False) ** 2
    assert ((least < ratios) & (ratios < most)).sum() >= n
    curvatures = np.linalg.svd(root, compute_uv=False) ** 2
    assert curvatures.max() > 20 * curvatures.min(), "no scalar would do as much"


def test_a_useless_pair_changes_nothing_and_rounding_keeps_directions_downhill():
    objective = Quadratic(5, 1e3)
    history = InverseHessian(5)
    list(walk(objective, history, 3, itertools.repeat(1.0)))
    before, w, g, d = history.factor.copy(), np.ones(5), np.arange(5.0), np.empty(5)
    history.direction(w, g, d)
    assert not history.push(w + d, w, g - d, g), "curvature is negative along it"
    np.testing.assert_array_equal(history.factor, before)
    history.factor *= 1 + 1e-3 * np.random.default_rng(0).normal(size=(5, 5))
    assert all(history.direction(w, v, d) < 0 for v in np.random.default_rng(1).normal(size=(100, 5)))
    history.reset()
    assert history.direction(w, g, d) == -(g @ g)


def classifier(l2=0.3, n_labels=3, **options):
    data = random_dataset(5, [1] * 80, n_labels=n_labels, n_attributes=9, values=True, weighted=True)
    return make_objective(data, classifier_layout(data), l2=l2, **{"n_threads": 2, **options})


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_optimum_is_that_of_other_trainers(device, n_labels):
    ours = train(classifier(n_labels=n_labels, device=device), BFGS(), stop=Stop(grad_inf=1e-9))
    assert ours.reason is StopReason.CONVERGED
    for name in ("newton_cg", "lbfgs"):
        best = train(classifier(n_labels=n_labels), name, stop=Stop(grad_inf=1e-9))
        np.testing.assert_allclose(ours.weights, best.weights, atol=1e-8)
    values = [progress.objective for progress in ours.history]
    assert all(b <= a * (1 + 1e-13) for a, b in itertools.pairwise(values))


def test_all_pairs_need_fewer_steps_than_a_few_and_scaling_fewer_still():
    def steps(trainer):
        return train(Logistic(200, 60, l2=1e-3), trainer, stop=Stop(grad_inf=1e-6)).iterations

    assert steps(BFGS()) < 0.7 * steps(LBFGS(memory=5))
    assert steps(BFGS()) < 0.7 * steps(BFGS(scaling="first"))


def test_a_run_ends_at_the_end_of_double_precision():
    with pytest.warns(ConvergenceWarning, match=r"no further progress|no step lowers"):
        result = train(classifier(), BFGS(), stop=Stop(grad_inf=0))
    assert result.grad_inf < 1e-9


def test_many_weights_and_l1_are_refused_with_what_would_do():
    many = Quadratic(40)
    with pytest.raises(OptionError, match=r"max_weights=39: there are 40 weights.* use lbfgs"):
        train(many, BFGS(max_weights=39))
    assert train(many, BFGS(max_weights=40), stop=Stop(max_iter=1)).iterations == 1


def test_pairs_whose_squares_underflow_are_left_out():
    history, d = InverseHessian(1, True, np), np.empty(1)
    g = np.array([1e-170])
    history.direction(np.zeros(1), g, d)
    assert not history.push(np.array([-1.0]), np.zeros(1), np.array([1e-171]), g)


SCALED = LBFGS(scaling="diagonal")


class Skewed(CurvedQuadratic):
    """A quadratic whose curvatures lie along the axes."""

    def __init__(self):
        super().__init__(30)
        self.a = np.diag(np.geomspace(1.0, 1e8, 30))


def test_a_diagonal_hessian_becomes_the_identity():
    objective = Skewed()
    result = train(objective, SCALED, stop=Stop(grad_inf=1e-4, max_iter=100))
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-5)
    assert result.iterations < 10
    assert train(Skewed(), "lbfgs", stop=Stop(grad_inf=1e-4, max_iter=100)).iterations > 30


@pytest.mark.parametrize("start", [None, 0.3])
def test_reported_numbers_are_those_of_the_weights(start):
    objective = CurvedLogistic()
    w0 = np.zeros(15) if start is None else np.full(15, start)
    for k, step in enumerate(SCALED.steps(objective, w0)):
        value, g = objective.smooth(step.w)
        assert step.objective == pytest.approx(value, rel=1e-13)
        assert step.grad_inf == pytest.approx(np.abs(g).max(), rel=1e-10)
        assert step.grad_norm == pytest.approx(np.linalg.norm(g), rel=1e-10)
        if k == 12:
            break


def test_reaches_the_optimum_of_a_crf():
    data = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3, n_attributes=6)
    best = train(make_objective(data, l2=0.5), "lbfgs", stop=Stop(grad_inf=1e-8))
    result = train(make_objective(data, l2=0.5), SCALED, stop=Stop(grad_inf=1e-8))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, best.weights, atol=1e-7)


def test_weights_without_curvature_stay():
    class Flat(CurvedQuadratic):
        def __init__(self):
            super().__init__(4)
            self.a = np.diag([1.0, 4.0, 0.0, 0.0])

    objective = Flat()
    result = train(objective, SCALED, stop=Stop(grad_inf=1e-8))
    np.testing.assert_allclose(result.weights, [*objective.c[:2], 0.0, 0.0], atol=1e-7)
    objective.a[:] = 0.0
    assert train(objective, SCALED, stop=Stop(grad_inf=0.0)).iterations == 0


def test_start_costs_two_passes():
    objective = CurvedLogistic()
    next(SCALED.steps(objective, np.zeros(15)))
    assert (objective.counts.grads, objective.counts.sequences) == (1, 2 * objective.n_sequences)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(CapabilityError, match="does not handle l1 > 0"):
        train(CurvedLogistic(l1=1.0), SCALED)
    with pytest.raises(CapabilityError, match="needs l1 = 0"):
        next(SCALED.steps(CurvedLogistic(l1=1.0), np.zeros(15)))
    with pytest.raises(CapabilityError, match="needs hessian_diagonal"):
        train(Logistic(), SCALED)
