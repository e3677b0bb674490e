"""Hesterberg's estimates, staggered Aitken, Anderson; the trainers `psa` and `aitken` on-line."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crfit.engines import make_objective
from crfit.errors import OptionError
from crfit.layout import make_layout
from crfit.trainers import GIS, PSA, Aitken
from crfit.trainers.scaling.acceleration import (
    MAX_GAMMA,
    AndersonMixing,
    StaggeredAitken,
    StepProducts,
    estimate,
    step_products,
    stretch,
)
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import online_objective, random_dataset

STEPS = st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=6)


def gammas(previous, last, groups=None):
    products = step_products(previous, last, groups)
    return [estimate(number, products) for number in (1, 2, 3)]


class Linear:
    """The map ``w -> c + Q diag(eigenvalues) Q' (w - c)``."""

    def __init__(self, eigenvalues, seed=0):
        rng = np.random.default_rng(seed)
        n = len(eigenvalues)
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        self.matrix, self.fixed_point = q @ np.diag(eigenvalues) @ q.T, rng.normal(size=n)

    def step(self, w):
        return self.fixed_point + self.matrix @ (w - self.fixed_point) - w


@given(STEPS)
def test_the_second_estimate_is_the_geometric_mean_of_the_others(pairs):
    previous, last = np.array(pairs).T.copy()
    assume(previous @ last > 1e-6)
    one, two, three = gammas(previous, last)
    assert two**2 == pytest.approx(one * three, rel=1e-10)
    assert one <= two * (1 + 1e-12)
    assert two <= three * (1 + 1e-12)


@given(st.floats(0.01, 0.98), st.floats(0.0, 1.0), st.integers(0, 1000), st.integers(0, 20))
def test_estimates_of_a_linear_map_stay_below_its_largest_eigenvalue(largest, share, seed, n_steps):
    linear = Linear([largest, share * largest], seed)
    previous = np.linalg.matrix_power(linear.matrix, n_steps) @ linear.step(np.zeros(2))
    last = linear.matrix @ previous  # the step after that
    one, two, three = gammas(previous, last)
    assert one <= two * (1 + 1e-9) <= three * (1 + 1e-8) <= largest * (1 + 1e-7)
    if share == 1.0:
        assert one == pytest.approx(three)


def test_estimates_are_equal_for_parallel_steps_and_single_weights():
    previous, last = np.array([2.0, -4.0, 1.0]), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(gammas(previous, last), 0.5)
    last = np.array([1.0, 3.0, 0.0])
    one, two, three = gammas(previous, last, "component")
    np.testing.assert_allclose(one, [0.5, -0.75, 0.0])
    np.testing.assert_allclose(two, [0.5, 0.75, 0.0])
    np.testing.assert_array_equal(three, [0.5, np.nan, np.nan])


@given(STEPS, st.data())
def test_a_group_is_estimated_as_if_it_were_alone(pairs, data):
    previous, last = np.array(pairs).T.copy()
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs))))
    for number in (1, 2, 3):
        found = estimate(number, step_products(previous, last, groups))
        for group in range(groups.max() + 1):
            chosen = groups == group
            alone = estimate(number, step_products(previous[chosen], last[chosen]))
            np.testing.assert_allclose(found[group], alone, rtol=1e-9)


def test_there_is_no_estimate_without_a_step_or_when_the_third_meets_a_right_angle():
    zero, some, across = np.zeros(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert np.isnan(gammas(zero, some)).all()
    assert np.isnan(gammas(some, across)[2])
    assert np.isnan(gammas(some, -some)[2])
    assert gammas(some, across)[:2] == [0.0, 1.0]


def test_the_stretch_is_cut():
    gamma = np.array([-3.0, 0.0, 0.5, 0.98, 0.999, 7.0, np.inf, np.nan])
    np.testing.assert_allclose(stretch(gamma), [1, 1, 2, 50, 100, 100, 100, 1])
    np.testing.assert_allclose(stretch(gamma, 0.75), [1, 1, 2, 4, 4, 4, 4, 1])
    assert StepProducts(*map(np.asarray, (1.0, 0.5, 0.25)))._fields == ("before", "across", "after")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("groups", [None, "component", np.array([0, 1, 1])])
def test_with_one_eigenvalue_a_jump_lands_on_the_fixed_point(number, groups):
    linear, w = Linear([0.9] * 3), np.array([1.0, -2.0, 5.0])
    aitken = StaggeredAitken(number, groups)
    step = linear.step(w)
    assert aitken.propose(w, step) is None
    w = w + step
    np.testing.assert_allclose(aitken.propose(w, linear.step(w)), linear.fixed_point, rtol=1e-9)
    assert aitken.length == pytest.approx(10.0)


def test_each_weight_with_an_eigenvalue_of_its_own_lands_too():
    factors, aitken = np.array([0.1, 0.5, 0.98]), StaggeredAitken(1, "component")
    w = np.array([3.0, -1.0, 2.0])
    aitken.propose(w, (factors - 1) * w)
    w = factors * w
    np.testing.assert_allclose(aitken.propose(w, (factors - 1) * w), 0.0, atol=1e-13)


def test_proposals_never_follow_each_other():
    linear, w, aitken = Linear([0.9, 0.5, 0.2]), np.ones(3), StaggeredAitken(3)
    pattern = []
    for _ in range(7):
        step = linear.step(w)
        trial = aitken.propose(w, step)
        pattern.append(trial is not None)
        w = w + step if trial is None else trial
    assert pattern == [False, True] * 3 + [False]


def test_nothing_is_proposed_where_nothing_is_known():
    w, step = np.ones(2), np.array([1.0, 2.0])
    for previous in (-step, np.zeros(2), np.array([2.0, -1.0]), 1e-13 * step):
        aitken = StaggeredAitken(3)
        aitken.propose(w, previous)
        assert aitken.propose(w, step) is None, previous
    aitken = StaggeredAitken(2)  # a length is no direction: it is the test of F that refuses this
    aitken.propose(w, -2 * step)
    np.testing.assert_allclose(aitken.propose(w, step), w + 2 * step)


def test_a_jump_is_at_most_a_hundred_steps():
    aitken = StaggeredAitken(3, max_gamma=MAX_GAMMA)
    aitken.propose(np.zeros(2), np.ones(2))
    np.testing.assert_allclose(aitken.propose(np.ones(2), 1.5 * np.ones(2)), 1 + 150)


def test_the_longest_jump_is_halved_after_a_bad_one_and_doubled_after_a_good_one():
    aitken, lengths = StaggeredAitken(3, max_gamma=0.9), []
    for taken in (True, False, False, False, False, True, True, True, True):
        aitken.propose(np.zeros(2), np.ones(2))
        aitken.propose(np.ones(2), np.ones(2))
        lengths.append(aitken.length)
        aitken.judged(taken)
    np.testing.assert_allclose(lengths, [10, 10, 5, 2.5, 2, 2, 4, 8, 10])


def test_no_refusal_makes_jumps_longer_than_the_clip():
    aitken = StaggeredAitken(3, None, 0.3)
    d = np.array([1.0, 2.0])
    for _ in range(3):
        for step in (d, 0.9 * d):
            aitken.propose(np.zeros(2), step)
        assert 1.0 < aitken.length <= 1.0 / 0.7 + 1e-12
        aitken.judged(False)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_anderson_solves_a_linear_map_in_as_many_steps_as_it_has_eigenvalues(n):
    linear, w = Linear(np.linspace(0.3, 0.95, n)), np.zeros(n)
    mixing = AndersonMixing(memory=n)
    for _ in range(n + 1):
        step = linear.step(w)
        trial = mixing.propose(w, step)
        w = w + step if trial is None else trial
    np.testing.assert_allclose(w, linear.fixed_point, rtol=1e-8)


def test_anderson_minimises_the_combined_step():
    rng = np.random.default_rng(0)
    points, steps = rng.normal(size=(2, 6, 8))
    mixing = AndersonMixing(memory=3)
    for w, step in zip(points, steps, strict=True):
        trial = mixing.propose(w, step)
    d_points, d_steps = (np.diff(rows[-4:], axis=0).T for rows in (points, steps))
    theta = np.linalg.lstsq(d_steps, steps[-1], rcond=None)[0]
    np.testing.assert_allclose(trial, points[-1] + steps[-1] - (d_points + d_steps) @ theta, rtol=1e-9)


def test_room_is_made_for_the_differences_that_there_are():
    rng = np.random.default_rng(0)
    points, steps = rng.normal(size=(2, 21, 30))
    large, enough = AndersonMixing(memory=10**6), AndersonMixing(memory=20)  # 8 TB, were it all made at once
    for k, (w, step) in enumerate(zip(points, steps, strict=True)):
        trials = [mixing.propose(w, step) for mixing in (large, enough)]
        if k == 10:
            state = large.export_state()
            large = AndersonMixing(memory=10**6)
            large.import_state({name: np.array(value) for name, value in state.items()})
    np.testing.assert_array_equal(*trials)
    assert len(large.gram) <= 40


NO_RULE = Stop(grad_inf=0)


def test_the_default_scope_is_window_and_group_on_the_whole_data():
    def weights(**options):
        return train(online_objective(), Aitken(epochs=3, **options), stop=NO_RULE).weights.tobytes()

    assert weights(period=2) == weights(period=2, scope="window") != weights(period=2, scope="group")
    data = random_dataset(0, [1, 4, 6] * 4, n_labels=3, n_attributes=12)
    objective = make_objective(data, make_layout(data), l2=0.5)
    by_default, by_group = (
        train(objective, Aitken(map="gis", **options), stop=replace(NO_RULE, max_iter=9)).weights.tobytes()
        for options in ({}, {"scope": "group"})
    )
    assert by_default == by_group


def test_a_rate_that_the_penalty_forbids_is_refused():
    objective = online_objective()
    with pytest.raises(OptionError, match=r"eta0.*less than"):
        next(PSA(eta0=100.0).steps(objective, np.zeros(objective.n_weights)))


@pytest.mark.parametrize(("map_", "plain_map"), [("gis", "S"), ("T", "T")])
@pytest.mark.parametrize("options", [{}, {"scope": "component"}, {"acceleration": "anderson"}])
def test_the_same_trainer_accelerates_iterative_scaling(map_, plain_map, options):
    data = random_dataset(0, [1, 4, 6] * 4, n_labels=3, n_attributes=12)
    objective = make_objective(data, make_layout(data), l2=0.5)
    plain = train(objective, GIS(map=plain_map), stop=replace(NO_RULE, max_iter=20))
    found = train(objective, Aitken(map=map_, **options), stop=replace(NO_RULE, max_iter=20))
    assert found.objective < plain.objective
