from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import Quadratic
from crfit import vectors
from crfit.engines.pair_history import GramPairHistory, NumPyPairHistory, projected_state
from crfit.errors import OptionError, PointError
from crfit.trainers import LBFGS


def two_loop(pairs, g):
    """The recursion as textbooks print it, on explicit pairs."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alpha = (s @ q) / (s @ y)
        alphas.append(alpha)
        q -= alpha * y
    s, y = pairs[-1]
    q *= (s @ y) / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q += s * (alpha - (y @ q) / (s @ y))
    return -q


def walk(objective, n_points, seed=1):
    """Points on a random walk, and their gradients: convex, so every pair has s.y > 0."""
    rng = np.random.default_rng(seed)
    ws = np.cumsum(rng.normal(size=(n_points, objective.n_weights)), axis=0)
    return list(ws), [objective.smooth(w)[1] for w in ws]


def rounded(a):
    return a.astype(np.float32).astype(np.float64)


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def direction(history, w, v, step=1.0):
    d, trial = np.full_like(w, np.nan), np.full_like(w, np.nan)
    slope = history.direction(w, v, d, trial, step)
    np.testing.assert_allclose(trial, w + step * d, rtol=1e-15, atol=1e-15)
    assert slope == pytest.approx(v @ d, rel=1e-9)
    return d, slope


@given(
    memory=st.integers(1, 6), n_points=st.integers(2, 12), n=st.integers(1, 40), seed=st.integers(0, 2**31)
)
@settings(deadline=None, max_examples=60)
def test_direction_is_the_two_loop_recursion(memory, n_points, n, seed):
    objective = Quadratic(n, condition=30.0, seed=seed)
    ws, gs = walk(objective, n_points, seed)
    history = NumPyPairHistory(n, memory)
    for k in range(1, n_points):
        assert history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
        assert history.n_pairs == min(k, memory)
        exact = [(ws[j] - ws[j - 1], gs[j] - gs[j - 1]) for j in range(max(1, k - memory + 1), k + 1)]
        d, slope = direction(history, ws[k], gs[k], step=0.7)
        assert slope < 0
        assert relative(d, two_loop([(rounded(s), rounded(y)) for s, y in exact], gs[k])) < 1e-12
        assert relative(d, two_loop(exact, gs[k])) < 1e-5


def test_direction_over_several_blocks():
    n = 2 * vectors.BLOCK + 17
    rng = np.random.default_rng(0)
    diagonal = np.geomspace(1, 100, n)
    ws = list(rng.normal(size=(6, n)))
    gs = [w * diagonal for w in ws]
    history = NumPyPairHistory(n, 3)
    for k in range(1, 6):
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
    pairs = [(rounded(ws[k] - ws[k - 1]), rounded(gs[k] - gs[k - 1])) for k in (3, 4, 5)]
    d, _ = direction(history, ws[5], gs[5])
    assert relative(d, two_loop(pairs, gs[5])) < 1e-12
    assert history.v_inf == np.abs(gs[5]).max()
    assert history.v_norm == pytest.approx(np.linalg.norm(gs[5]), rel=1e-13)


def test_without_pairs_the_direction_is_steepest_descent():
    history = NumPyPairHistory(3, 4)
    g = np.array([1.0, -2.0, 0.5])
    d, slope = direction(history, np.ones(3), g, step=0.25)
    np.testing.assert_array_equal(d, -g)
    assert slope == pytest.approx(-(g @ g))


def test_projects_another_vector_than_the_gradient():
    objective = Quadratic(8, condition=10.0)
    ws, gs = walk(objective, 4)
    v = np.sin(np.arange(8.0))
    history = NumPyPairHistory(8, 5)
    for k in range(1, 4):
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1], v)
    pairs = [(rounded(ws[k] - ws[k - 1]), rounded(gs[k] - gs[k - 1])) for k in range(1, 4)]
    d, _ = direction(history, ws[3], v)
    assert relative(d, two_loop(pairs, v)) < 1e-12
    assert history.v_inf == np.abs(v).max()
    with pytest.raises(PointError, match="push"):
        history.direction(ws[3], gs[3], np.empty(8))


@pytest.mark.parametrize("bad", [-1.0, 0.0, 1e-12, np.nan, np.inf])
def test_pair_without_curvature_is_dropped(bad):
    objective = Quadratic(5, condition=10.0)
    ws, gs = walk(objective, 6)
    history = NumPyPairHistory(5, 3)
    for k in range(1, 5):
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
    s = np.array([1.0, 0, 0, 0, 0])
    y = np.array([bad, 1.0, 0, 0, 0]) if bad == 1e-12 else np.array([bad, 0, 0, 0, 0])
    g = gs[4] + y if np.isfinite(bad) else gs[4]
    with np.errstate(invalid="ignore"):
        assert not history.push(ws[4] + s, ws[4], gs[4] + y, gs[4], g)
    # The pair that had to make room is gone, the two others are as before.
    assert history.n_pairs == 2
    pairs = [(rounded(ws[k] - ws[k - 1]), rounded(gs[k] - gs[k - 1])) for k in (3, 4)]
    d, slope = direction(history, ws[4] + s, g)
    assert slope < 0
    assert relative(d, two_loop(pairs, g)) < 1e-12
    # The free place is used next.
    assert history.push(ws[5], ws[4], gs[5], gs[4])
    assert history.n_pairs == 3
    pairs.append((rounded(ws[5] - ws[4]), rounded(gs[5] - gs[4])))
    assert relative(direction(history, ws[5], gs[5])[0], two_loop(pairs, gs[5])) < 1e-12


def test_reset_forgets():
    objective = Quadratic(5)
    ws, gs = walk(objective, 4)
    history = NumPyPairHistory(5, 3)
    for k in range(1, 3):
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
    history.reset()
    np.testing.assert_array_equal(direction(history, ws[2], gs[2])[0], -gs[2])
    history.push(ws[3], ws[2], gs[3], gs[2])
    pair = [(rounded(ws[3] - ws[2]), rounded(gs[3] - gs[2]))]
    assert relative(direction(history, ws[3], gs[3])[0], two_loop(pair, gs[3])) < 1e-12


def test_state_goes_over_bit_by_bit():
    objective = Quadratic(9)
    ws, gs = walk(objective, 9)
    history = NumPyPairHistory(9, 3)
    for k in range(1, 6):
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
    copy = NumPyPairHistory(9, 3)
    copy.import_state(history.export_state(), gs[5])
    for k in range(6, 9):
        a, b = direction(history, ws[k - 1], gs[k - 1])[0], direction(copy, ws[k - 1], gs[k - 1])[0]
        assert a.tobytes() == b.tobytes()
        history.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
        copy.push(ws[k], ws[k - 1], gs[k], gs[k - 1])
    with pytest.raises(OptionError, match="memory=3"):
        NumPyPairHistory(9, 4).import_state(history.export_state(), gs[8])


def test_pairs_are_single_precision():
    history = Quadratic(7).pair_history(4)
    assert isinstance(history, GramPairHistory)
    assert history.s.dtype == history.y.dtype == np.float32
    assert history.s.shape == (4, 7)
    with pytest.raises(OptionError, match="memory=0"):
        NumPyPairHistory(7, 0)


def test_lbfgs_uses_the_memory_that_the_objective_offers():
    made = []

    class Own(NumPyPairHistory):
        pass

    objective = Quadratic(7)
    objective.pair_history = lambda memory: made.append(Own(7, memory)) or made[0]
    next(LBFGS(memory=3).steps(objective, np.zeros(7)))
    assert [history.memory for history in made] == [3]


def test_pairs_are_projected_on_another_vector():
    rng = np.random.default_rng(0)
    curvature = np.geomspace(0.5, 8.0, 9)
    points = np.cumsum(rng.normal(size=(6, 9)), axis=0)
    history, pairs = NumPyPairHistory(9, 3), []
    for old, new in pairwise(points):
        history.push(new, old, curvature * new, curvature * old)
        pairs.append((np.float32(new - old).astype(float), np.float32(curvature * (new - old)).astype(float)))
    v, d = rng.normal(size=9), np.empty(9)
    other = NumPyPairHistory(9, 3)
    other.import_state(projected_state(history.export_state(), v), v)
    slope = other.direction(np.zeros(9), v, d)
    np.testing.assert_allclose(d, two_loop(pairs[-3:], v), rtol=1e-5)
    assert slope == pytest.approx(v @ d)
    assert (other.v_inf, other.v_norm) == vectors.norms(v)
