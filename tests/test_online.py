"""Steps of on-line trainers: the native core against plain NumPy, both against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import _native
from crfit.engines import make_objective
from crfit.errors import OptionError
from crfit.layout import make_layout
from crfit.online import Rate
from oracle import Enumeration, Problem, problems, random_dataset

SMALL = Rate("constant", 0.05)
SCHEDULES = ["constant", "inverse", "exponential", "bottou"]


def problem(n_labels=5, *, lengths=(1, 7, 12, 2, 9, 4, 5), seed=0, n_edge_attributes=0, **options):
    data = random_dataset(
        seed,
        list(lengths),
        n_labels=n_labels,
        n_attributes=40,
        n_edge_attributes=n_edge_attributes,
        values=options.pop("values", True),
        weighted=True,
        attributes_per_position=6,
    )
    layout = make_layout(data, **options)
    return data, layout, np.random.default_rng(seed).normal(size=layout.n_weights)


def result(objective, w, ids, rate, k=0, batch=1, averaged=True):
    """Loss, weights, sum of the weights after some steps."""
    run = objective.online(w)
    if averaged:
        run.begin_sum()
    half = len(ids) // 2 // batch * batch  # two visits are one
    loss = run.visit(ids[:half], rate, k, batch) + run.visit(ids[half:], rate, k + half, batch)
    out, total = np.empty_like(w), np.empty_like(w)
    square = run.weights(out)
    assert square == pytest.approx(out @ out, rel=1e-12)
    if averaged:
        run.weight_sum(total)
    return loss, out, total


def agree(data, layout, w, *, l2=0.7, batch=1, rate=SMALL, n_threads=2, epochs=2):
    ids = np.concatenate([np.random.default_rng(i).permutation(data.n_sequences) for i in range(epochs)])
    ours = result(make_objective(data, layout, l2=l2, n_threads=n_threads), w, ids, rate, 3, batch)
    true = result(make_objective(data, layout, l2=l2, device="reference"), w, ids, rate, 3, batch)
    assert ours[0] == pytest.approx(true[0], rel=1e-10)
    for mine, theirs in zip(ours[1:], true[1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10 * max(1.0, np.abs(theirs).max()))


@given(problem=st.integers(1, 3).flatmap(problems), batch=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=100)
def test_native_steps_are_those_of_the_reference(problem: Problem, batch, seed):
    rate = Rate(SCHEDULES[seed % 4], 0.3)
    agree(problem.dataset, problem.layout, problem.w, l2=problem.l2, batch=batch, rate=rate)


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 22, 31, 41, 64, 70])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_width(n_labels, weights):
    data, layout, w = problem(n_labels, seed=n_labels, weights=weights, boundary=n_labels % 2 == 0)
    agree(data, layout, w, batch=3)


@pytest.mark.parametrize("n_labels", [9, 17])
@pytest.mark.parametrize("options", [{"weights": "all"}, {"transitions": "observed", "n_edge_attributes": 2}])
def test_label_histories(n_labels, options):
    data, layout, w = problem(n_labels, order=2, boundary=True, **options)
    agree(data, layout, w, batch=3)
    ids, outcomes = np.arange(data.n_sequences), []
    for n_threads in (1, 2):
        _, out, total = result(make_objective(data, layout, n_threads=n_threads), w, ids, SMALL, batch=3)
        outcomes.append(out.tobytes() + total.tobytes())
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_every_cpu_level(level):
    before = _native.cpu_level()
    try:
        try:
            _native.choose_cpu_level(level)
        except ValueError as error:
            pytest.skip(str(error))
        agree(*problem(22, weights="all", values=False))
        agree(*problem(9, weights="observed", transitions="observed", n_edge_attributes=3), batch=4)
    finally:
        _native.choose_cpu_level(before)


def test_scores_that_need_the_log_domain():
    data, layout, w = problem(4, boundary=True)
    agree(data, layout, 1e3 * w)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_steps_follow_the_schedule(schedule):
    data, layout, w = problem()
    rate = Rate(schedule, 0.2, 0.7)
    expected = {
        "constant": 0.2,
        "inverse": 0.2 / 3,
        "exponential": 0.2 * 0.49,
        "bottou": 0.2 / (1 + 0.2 * 2 * 0.5),
    }[schedule]
    k = 2 * data.n_sequences
    assert rate.at(k, data.n_sequences, 0.5) == pytest.approx(expected, rel=1e-15)
    ours = result(make_objective(data, layout, l2=0.5), w, [2], rate, k)
    fixed = result(make_objective(data, layout, l2=0.5), w, [2], Rate("constant", expected))
    np.testing.assert_allclose(ours[1], fixed[1], rtol=1e-13)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_one_sequence_at_a_constant_rate_is_gradient_descent(device):
    data = random_dataset(3, [4], n_labels=3, n_edge_attributes=1, values=True, weighted=True)
    layout = make_layout(data, boundary=True)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    objective = make_objective(data, layout, l2=0.4, device=device)
    expected = w.copy()
    for _ in range(20):
        truth = Enumeration(data, layout, expected)
        expected = expected - 0.1 * (truth.expected() - truth.observed() + 0.4 * expected)
    loss, found, _ = result(objective, w, [0] * 20, Rate("constant", 0.1), averaged=False)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert math.isfinite(loss)


def test_a_step_on_all_sequences_is_a_gradient_step():
    data, layout, w = problem(weights="observed")
    objective = make_objective(data, layout, l2=0.4)
    value, g = objective.value_and_grad(w)
    loss, found, _ = result(
        objective, w, np.arange(data.n_sequences), Rate("constant", 0.1), batch=data.n_sequences
    )
    np.testing.assert_allclose(found, w - 0.1 * g, rtol=0, atol=1e-11)
    assert loss + 0.2 * (w @ w) == pytest.approx(value, rel=1e-12)


def test_a_scale_that_becomes_tiny_is_folded_into_the_weights():
    # Each step keeps a thousandth of the weights: 1e-9 is passed every fourth step.
    data, layout, w = problem(3, lengths=[5, 3], boundary=True)
    agree(data, layout, w, l2=2 * 0.999, rate=Rate("constant", 1.0), epochs=15)


@pytest.mark.parametrize("options", [{"weights": "all"}, {"weights": "observed", "n_edge_attributes": 3}])
def test_bytes_do_not_depend_on_threads(options):
    data, layout, w = problem(9, lengths=[3, 9, 1, 12, 5, 8, 17, 2] * 20, boundary=True, **options)
    ids = np.random.default_rng(1).permutation(data.n_sequences)
    for batch in (1, 7, 32):
        found = [
            result(make_objective(data, layout, l2=0.3, n_threads=n), w, ids, Rate("inverse", 0.1), 0, batch)
            for n in (1, 2, 3)
        ]
        for other in found[1:]:
            assert other[0] == found[0][0]
            np.testing.assert_array_equal(other[1], found[0][1])
            np.testing.assert_array_equal(other[2], found[0][2])


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_sum_goes_on_from_what_it_had(device):
    data, layout, w = problem(boundary=True)
    objective = make_objective(data, layout, l2=0.5, device=device)
    rate, ids = Rate("inverse", 0.2), np.arange(data.n_sequences)
    whole, first = objective.online(w), objective.online(w)
    whole.begin_sum()
    whole.visit(np.concatenate([ids, ids]), rate, 0)
    first.begin_sum()
    first.visit(ids, rate, 0)
    middle, total, expected, found = (np.empty_like(w) for _ in range(4))
    first.weights(middle)
    first.weight_sum(total)
    second = objective.online(middle)
    second.begin_sum(total)
    second.visit(ids, rate, len(ids))
    whole.weight_sum(expected)
    second.weight_sum(found)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_losses_of_some_sequences(device):
    data, layout, w = problem(weights="observed", boundary=True)
    objective = make_objective(data, layout, l2=0.5, device=device)
    run = objective.online(w)
    ids = [4, 0, 6]
    before = objective.counts.sequences
    expected, _ = objective.value_and_grad(w, subset=ids)
    assert objective.value(w, subset=ids) == pytest.approx(expected, rel=1e-12)
    assert run.loss(ids) == pytest.approx(expected - 0.25 * 3 / 7 * (w @ w), rel=1e-12)
    assert objective.counts.sequences == before + 9
    assert objective.value(w, subset=[]) == 0.0


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_run_counts_sequences_and_leaves_the_pin(device):
    data, layout, w = problem()
    objective = make_objective(data, layout, l2=0.5, device=device)
    objective.value_and_grad(w)
    profile = objective.along(np.ones_like(w))
    point, start = profile(0.1), w.copy()
    before = objective.counts.sequences
    run = objective.online(w)
    run.visit([3, 1, 3], Rate("constant", 0.1), 0, 2)
    assert objective.counts.sequences == before + 3
    np.testing.assert_array_equal(w, start)
    assert profile(0.1) == point
    run.set_weights(w)
    out = np.empty_like(w)
    run.weights(out)
    np.testing.assert_array_equal(out, w)


def test_steps_end_when_a_loss_is_not_finite():
    data, layout, w = problem()
    w[:] = 1e308
    run = make_objective(data, layout, l2=0.5).online(w)
    assert not math.isfinite(run.visit(np.arange(7), Rate("constant", 0.1), 0))


def test_what_cannot_be_is_refused():
    data, layout, w = problem()
    objective = make_objective(data, layout, l2=2.0)
    run = objective.online(w)
    with pytest.raises(OptionError, match=r"eta0.*less than 1\.75"):
        run.visit([0], Rate("constant", 1.75), 0, 2)
    with pytest.raises(OptionError, match="batch"):
        run.visit([0], Rate("constant", 0.1), 0, 0)
    with pytest.raises(OptionError, match="subset"):
        run.visit([7], Rate("constant", 0.1), 0)
    with pytest.raises(OptionError, match="float64"):
        objective.online(w[1:])
    with pytest.raises(RuntimeError, match="begin_sum"):
        run.weight_sum(w)
