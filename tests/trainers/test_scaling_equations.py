"""A step of iterative scaling: Wright's omega, the equations of a weight, bins, feature totals, the bound."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from crfit.engines import make_objective
from crfit.errors import DataError
from crfit.layout import make_layout
from crfit.trainers.scaling.equations import (
    LONGEST,
    binned_step,
    exact_step,
    log_omega,
    ratio_step,
    term_step,
)
from crfit.trainers.scaling.gis_map import MAX_ENDS, ScalingMap, bins_of_totals

COUNTS = st.one_of(st.just(0.0), st.floats(1e-12, 1e6))
POSITIVE = st.floats(1e-12, 1e6)
WEIGHTS = st.floats(-50, 50)
TOTALS = st.floats(0.5, 2000)
L2 = st.floats(1e-4, 1e3)


def one(*numbers):
    return [np.array([x], dtype=np.float64) for x in numbers]


@given(st.floats(-1e15, 1e15))
def test_log_omega_solves_its_equation(x):
    root = float(log_omega(np.array([x]))[0])
    assert root + np.exp(root) == pytest.approx(x, rel=1e-14, abs=1e-14)


def test_log_omega_is_that_of_scipy_where_omega_is_a_number():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-700, 2000, 5000), np.linspace(-3, 5, 1000), [0.0, 1.0, 1e8, 1e300]])
    np.testing.assert_allclose(log_omega(x), np.log(special.wrightomega(x)), rtol=2e-14, atol=2e-15)
    np.testing.assert_array_equal(log_omega(np.array([-1e6, -800.0])), [-1e6, -800.0])


@given(w=WEIGHTS, expected=POSITIVE, observed=COUNTS, total=TOTALS, l2=L2)
@settings(max_examples=300)
def test_the_exact_step_solves_its_equation(w, expected, observed, total, l2):
    d = float(exact_step(*one(w, expected, observed), total, l2)[0])
    left = expected * np.exp(total * d)
    scale = left + observed + l2 * (abs(w) + abs(d))
    assert left + l2 * (w + d) - observed == pytest.approx(0.0, abs=1e-12 * scale)


@given(w=WEIGHTS, expected=POSITIVE, observed=POSITIVE, total=TOTALS)
def test_without_a_penalty_the_step_is_the_log_ratio_and_the_limit_of_weak_ones(w, expected, observed, total):
    plain = exact_step(*one(w, expected, observed), total, 0.0)
    assert plain[0] == pytest.approx(np.log(observed / expected) / total, abs=1e-14)
    # The penalty takes l2 (w + d) from O, which has to be nothing next to O.
    weak = 1e-9 * observed / (1 + abs(w) + abs(plain[0]))
    np.testing.assert_allclose(exact_step(*one(w, expected, observed), total, weak), plain, atol=1e-8 / total)
    # Both forms agree in this limit, but for the longest step of the ratio.
    ratio = ratio_step(*one(w, expected, observed), total, min(weak, 1e-9 * expected / (1 + abs(w))))
    np.testing.assert_allclose(ratio, np.clip(plain, -LONGEST / total, LONGEST / total), atol=1e-8 / total)


def test_steps_of_features_that_are_not_expected_or_not_observed():
    w, none, some = one(2.0, 0.0, 3.0)
    assert exact_step(w, none, none, 5.0, 0.5) == -2.0  # the penalty alone
    assert exact_step(w, none, some, 5.0, 0.5) == 4.0
    assert exact_step(w, none, none, 5.0, 0.0) == 0.0
    assert exact_step(w, some, none, 5.0, 0.0) == -LONGEST / 5  # on its way to minus infinity
    assert exact_step(w, none, none, 0.0, 0.5) == -2.0


def test_the_ratio_gives_way_where_it_is_undefined_and_is_limited():
    w, expected = np.array([1.0, -9.0, 0.0, 0.0, 0.3]), np.array([2.0, 1.0, 1e-5, 1e5, 2.0])
    observed = np.array([0.0, 4.0, 7.0, 7.0, 3.0])
    steps = ratio_step(w, expected, observed, 4.0, 0.5)
    exact = exact_step(w, expected, observed, 4.0, 0.5)
    np.testing.assert_array_equal(steps[:2], exact[:2])
    np.testing.assert_allclose(steps[2:], [LONGEST / 4, -LONGEST / 4, np.log(3 / 2.15) / 4])


@given(
    w=WEIGHTS,
    bins=st.lists(st.tuples(COUNTS, TOTALS), min_size=1, max_size=5),
    observed=COUNTS,
    l2=st.one_of(st.just(0.0), L2),
)
@settings(max_examples=300)
def test_the_step_of_bins_solves_its_equation(w, bins, observed, l2):
    counts, totals = np.array(bins).T
    d = float(binned_step(*one(w), counts[:, None], *one(observed), totals, l2)[0])
    if counts.sum() == 0.0 or (l2 == 0.0 and observed == 0.0):
        mean = counts @ totals / (counts.sum() or 1)
        assert d == pytest.approx(exact_step(*one(w, counts.sum(), observed), mean, l2)[0])
        return
    fires = counts > 0  # others may have an exponential that is no number
    left = float(counts[fires] @ np.exp(totals[fires] * d))
    scale = left + observed + l2 * (abs(w) + abs(d))
    # T d is rounded, and by its rounding the exponential is wrong.
    scale *= 1 + np.abs(totals[fires] * d).max()
    assert left + l2 * (w + d) - observed == pytest.approx(0.0, abs=1e-12 * scale)


@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    seed=st.integers(0, 10**6),
    l2=st.one_of(st.just(0.0), L2),
)
@settings(max_examples=100)
def test_terms_of_its_own_give_each_weight_the_step_of_its_bins(lengths, seed, l2):
    rng, n_terms, starts = np.random.default_rng(seed), sum(lengths), np.cumsum([0, *lengths[:-1]])
    w, observed = (
        rng.normal(size=len(lengths)),
        rng.uniform(0, 5, len(lengths)) * (np.arange(len(lengths)) % 3),
    )
    expected, totals = rng.uniform(0, 5, n_terms), rng.uniform(0.1, 50, n_terms)
    steps = term_step(w, expected, observed, totals, starts, l2)
    for j, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        own, one = slice(start, start + length), slice(j, j + 1)
        wanted = binned_step(w[one], expected[own, None], observed[one], totals[own], l2)
        assert steps[j] == pytest.approx(wanted[0], rel=1e-9, abs=1e-9)
    assert len(term_step(w[:0], expected[:0], observed[:0], totals[:0], starts[:0], l2)) == 0


@given(w=WEIGHTS, expected=POSITIVE, observed=COUNTS, total=TOTALS, l2=st.one_of(st.just(0.0), L2))
def test_equal_bins_are_one(w, expected, observed, total, l2):
    parts = expected * np.array([[0.25], [0.75]])
    found = binned_step(*one(w), parts, *one(observed), [total, total], l2)
    np.testing.assert_allclose(
        found, exact_step(*one(w, expected, observed), total, l2), rtol=1e-9, atol=1e-9 / total
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 4))
def test_bins_are_the_best_of_so_many(values, n_bins):
    totals = np.array(values, dtype=np.float64)
    ids, bounds = bins_of_totals(totals, n_bins)
    assert sorted(np.concatenate(ids).tolist()) == list(range(len(values)))
    assert len(bounds) <= n_bins
    for members, bound in zip(ids, bounds, strict=True):
        assert totals[members].max() == bound
    cost = sum(bound * totals[members].sum() for members, bound in zip(ids, bounds, strict=True))
    distinct = sorted(set(values))
    best = min(
        sum(t * next(end for end in (*inner, distinct[-1]) if end >= t) for t in values)
        for inner in itertools.combinations(distinct, min(n_bins, len(distinct)) - 1)
    )
    assert cost == pytest.approx(best)


def test_bins_of_many_totals_are_bounded_by_their_largest():
    totals = np.random.default_rng(0).uniform(1, 100, 5 * MAX_ENDS)
    ids, bounds = bins_of_totals(totals, 6)
    assert len(bounds) == 6
    assert bounds[-1] == totals.max()
    for members, bound in zip(ids, bounds, strict=True):
        assert totals[members].max() <= bound


def without_signs(problem):
    values = problem.dataset.attr_values
    if values is None:
        return problem
    return replace(problem, dataset=replace(problem.dataset, attr_values=np.abs(values)))


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("order", [1, 2])
@given(data=st.data())
@settings(max_examples=30)
def test_totals_are_the_largest_over_all_labelings(device, order, data):
    problem = without_signs(data.draw(oracle.problems(order)))
    objective = oracle.objective_of(problem, device)
    everything = oracle.Enumeration(problem.dataset, problem.layout, problem.w)
    wanted = [sequence.features.sum(axis=1).max() for sequence in everything.sequences]
    np.testing.assert_allclose(objective.feature_totals(), wanted, rtol=1e-12, atol=0)
    assert objective.counts.sequences == problem.dataset.n_sequences, "a pass is a pass"


def gold_totals(data, layout):
    everything = oracle.Enumeration(data, layout, np.zeros(layout.n_weights))
    return [sequence.features[sequence.gold].sum() for sequence in everything.sequences]


@given(problem=oracle.problems())
@settings(max_examples=30)
def test_the_given_labels_have_the_most_features_in_a_layout_made_of_them(problem):
    problem = without_signs(problem)
    totals = oracle.objective_of(problem, "cpu").feature_totals()
    np.testing.assert_allclose(totals, gold_totals(problem.dataset, problem.layout), rtol=1e-12)


def test_other_labels_may_have_more_in_a_layout_made_elsewhere():
    positions = [[[(0, 1.0), (1, 1.0)]]]
    elsewhere = oracle.make_dataset(positions, [[1]], n_labels=2, n_attributes=2)
    layout = make_layout(elsewhere)
    data = oracle.make_dataset(positions, [[0]], n_labels=2, n_attributes=2)
    assert gold_totals(data, layout) == [0.0]
    assert make_objective(data, layout).feature_totals() == [2.0]


def test_totals_know_no_sequence_weights_but_zero():
    data = oracle.random_dataset(3, [4, 5, 6], n_labels=2)
    plain = make_objective(data).feature_totals()
    weighted = make_objective(replace(data, sequence_weights=np.array([0.0, 0.1, 7.0])))
    np.testing.assert_array_equal(weighted.feature_totals(), [0.0, *plain[1:]])


def test_negative_values_are_refused_with_their_place():
    positions = [[[(0, 1.0)], [(1, 2.0)]], [[(0, 1.0), (1, -0.5)]]]
    data = oracle.make_dataset(positions, [[0, 1], [1]], n_labels=2, n_attributes=2)
    with pytest.raises(
        DataError, match=r"sequence 1, position 0: attribute 'a1' has the negative value -0.5.*lbfgs"
    ):
        make_objective(data).feature_totals()


@pytest.mark.parametrize("name", ["S", "T"])
@given(problem=oracle.problems())
@settings(max_examples=40)
def test_a_point_is_that_of_the_definition_and_the_bound_holds(name, problem):
    problem = without_signs(problem)
    objective = oracle.objective_of(problem, "cpu")
    scaling = ScalingMap(objective, name, n_bins=2)
    point = scaling.evaluate(problem.w)
    everything = oracle.Enumeration(problem.dataset, problem.layout, problem.w)
    penalty = 0.5 * problem.l2 * problem.w @ problem.w
    assert point.value == pytest.approx(everything.loss() + penalty, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(point.expected.sum(axis=0), everything.expected(), rtol=1e-9, atol=1e-9)
    for b, ids in enumerate(scaling.bins):
        chosen = range(problem.dataset.n_sequences) if ids is None else ids
        parts = [everything.sequences[i] for i in chosen]
        wanted = sum(part.factor * (part.p @ part.features) for part in parts)
        np.testing.assert_allclose(point.expected[b], wanted, rtol=1e-9, atol=1e-9)
    gradient = everything.expected() - everything.observed() + problem.l2 * problem.w
    assert point.grad_inf == pytest.approx(np.abs(gradient).max(initial=0.0), rel=1e-8, abs=1e-9)

    step = scaling.step(point)
    after, limit = objective.value(problem.w + step), scaling.bound(point, step)
    rounding = 1e-10 * (1 + abs(point.value))
    assert after <= limit + rounding
    assert limit <= point.value + rounding
    # No other step has a lower bound: it is minimised, weight by weight, where it has a minimum.
    for other in (0.5 * step, 1.5 * step) if problem.l2 else ():
        assert limit <= scaling.bound(point, other) + rounding


def test_map_t_takes_longer_steps_and_one_bin_is_map_s():
    data = oracle.random_dataset(1, [1, 2, 3, 9, 14], n_labels=3, n_attributes=6)
    objective = make_objective(data, l2=0.3)
    points = {}
    for name, bins in (("S", 8), ("T", 1), ("T", 8)):
        scaling = ScalingMap(objective, name, n_bins=bins)
        points[name, bins] = scaling.step(scaling.evaluate(np.zeros(objective.n_weights)))
    np.testing.assert_allclose(points["T", 1], points["S", 8], rtol=1e-12)
    assert np.all(np.abs(points["T", 8]) >= np.abs(points["S", 8]) - 1e-12)
    assert np.abs(points["T", 8]).sum() > 1.3 * np.abs(points["S", 8]).sum()


def test_a_weight_that_hides_its_feature_comes_back_by_steps_that_lower_the_objective():
    # E is 1e-35, lost in the rounding of g - l2 w + O: a step as if it were 0 would leave w = 0 and a high F.
    data = oracle.make_dataset([[[(0, 1.0)]]] * 9, [[0]] * 9, n_labels=2, n_attributes=1)
    layout = make_layout(data, weights="all", transitions="none")
    objective = make_objective(data, layout, l2=0.01)
    scaling, point = ScalingMap(objective, "S"), None
    for w in (np.array([0.0, -80.0]), np.array([60.0, -80.0])):
        point = scaling.evaluate(w)
        for _ in range(4):
            new = scaling.evaluate(point.w + scaling.step(point))
            assert new.value < point.value
            point = new
