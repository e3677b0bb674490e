"""Weights without a penalty in on-line trainers: by the definition of a step, and native against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from crfit.engines import make_objective
from crfit.engines.online import Adaptive, MetaDescent, Periodic, Rate, Transform
from crfit.layout import classifier_layout, make_layout
from crfit.trainers import NGD, PSA, SGD, SMD, AdaGrad, Aitken
from crfit.training.loop import train
from crfit.training.stopping import Stop
from free_weights import PROBLEMS, Classifier, chains, classifier, penalised, problem, with_intercept
from oracle import Enumeration, random_dataset

RULES = {
    "plain": None,
    "transform": Transform("arctan", "U2", 10.0),
    "table": Transform("gd", "U1", 10.0, table=True),
    "adaptive": Adaptive(epsilon=0.3),
    "component": Periodic(2, beta=0.5, alpha=0.9, scope="component"),
    "window": Periodic(2, beta=0.5, alpha=0.9, scope="window"),
    "global": Periodic(2, beta=0.5, alpha=0.9, scope="global"),
    "meta": MetaDescent(meta_rate=0.05),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
every_problem = pytest.mark.parametrize("name", PROBLEMS)
RATE, L2 = Rate("constant", 0.2), 1.5


def start_of(layout):
    return np.random.default_rng(5).normal(size=layout.n_weights)


def visited(objective, w, rule, ids, batch=1):
    """Loss, weights, their sum and square after these steps."""
    run = objective.online(w, rule)
    run.begin_sum()
    loss = run.visit(ids, RATE, 0, batch)
    weights, total = np.empty_like(w), np.empty_like(w)
    square = run.weights(weights)
    run.weight_sum(total)
    return loss, weights, total, square


@every_rule
@every_problem
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_step_is_without_l2_on_free_weights_and_with_it_on_others(name, rule, device):
    data, layout = problem(name)
    w, ids = start_of(layout), [3, 1, 3]
    free = visited(make_objective(data, layout, l2=L2, device=device), w, rule, ids, batch=3)
    plain = visited(make_objective(data, layout, l2=0.0, device=device), w, rule, ids, batch=3)
    other = visited(
        make_objective(data, replace(layout, n_free=0), l2=L2, device=device), w, rule, ids, batch=3
    )
    there = penalised(layout) > 0
    assert free[0] == pytest.approx(plain[0], rel=1e-12)
    np.testing.assert_allclose(free[1], np.where(there, other[1], plain[1]), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(free[2], free[1], rtol=1e-11, atol=1e-13)  # the sum over one step
    assert free[3] == pytest.approx(there @ (free[1] ** 2), rel=1e-11, abs=1e-14)
    if there.all():
        return
    assert np.abs(other[1][layout.free] - free[1][layout.free]).max() > 1e-3


@every_rule
@every_problem
@pytest.mark.parametrize("batch", [1, 2])
def test_engines_agree_over_many_steps(name, rule, batch):
    data, layout = problem(name)
    w = start_of(layout)
    ids = np.random.default_rng(1).integers(0, data.n_sequences, 24)
    found = [
        visited(make_objective(data, layout, l2=L2, device=device, n_threads=2), w, rule, ids, batch)
        for device in ("cpu", "reference")
    ]
    tolerance = 1e-6 if isinstance(rule, Transform) and rule.table else 1e-9
    for native, reference in zip(*found, strict=True):
        np.testing.assert_allclose(native, reference, rtol=tolerance, atol=tolerance)


def test_many_labels_and_a_hot_intercept():
    """An attribute with many labels has a row of its own in the core."""
    data = with_intercept(
        random_dataset(2, [5, 6, 7, 4, 8], n_labels=9, n_attributes=12, n_edge_attributes=1)
    )
    layout = make_layout(data, weights="observed", boundary=True, n_free=3)
    w, ids = start_of(layout), [4, 0, 1, 3, 2, 1, 0, 4]
    for rule in RULES.values():
        if isinstance(rule, Transform) and rule.table:
            continue
        native, reference = (
            visited(make_objective(data, layout, l2=L2, device=device), w, rule, ids)
            for device in ("cpu", "reference")
        )
        for a, b in zip(native, reference, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_an_epoch_of_sgd_by_hand():
    data = chains()
    layout = make_layout(data, n_free=1)
    w = start_of(layout)
    there, order, n = penalised(layout), [2, 0, 4, 1, 3], data.n_sequences
    rate, expected, total = Rate("bottou", 0.3), w.copy(), np.zeros_like(w)
    for k, i in enumerate(order):
        found = Enumeration(data, layout, expected).sequences[i]
        residual = found.factor * (found.p @ found.features - found.features[found.gold])
        eta = 0.3 / (1.0 + 0.3 * L2 * k / n)
        expected = expected - eta * (residual + L2 / n * there * expected)
        total += expected
    run = make_objective(data, layout, l2=L2).online(w)
    run.begin_sum()
    run.visit(order, rate, 0)
    weights, summed = np.empty_like(w), np.empty_like(w)
    run.weights(weights)
    run.weight_sum(summed)
    np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(summed, total, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_a_strong_penalty_over_many_steps(weights):
    """The scale of the other rows falls below what it may be many times, and is taken into the rows."""
    data = chains()
    layout = make_layout(data, weights=weights, n_free=1)
    w, ids = start_of(layout), np.tile(np.arange(data.n_sequences), 200)
    objective = make_objective(data, layout, l2=4.9, device="cpu")
    reference = make_objective(data, layout, l2=4.9, device="reference")
    rate = Rate("constant", 0.9)
    found = []
    for engine, averaged in ((objective, False), (objective, True), (reference, True)):
        run, out, total = engine.online(w), np.empty_like(w), np.zeros_like(w)
        if averaged:
            run.begin_sum()
        run.visit(ids, rate, 0)
        run.weights(out)
        if averaged:
            run.weight_sum(total)
        found.append((out, total))
    np.testing.assert_allclose(found[0][0], found[2][0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[1][0], found[2][0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[1][1], found[2][1], rtol=1e-8, atol=1e-8)


def test_what_is_not_finite_shows_in_the_square():
    data, layout = problem("classifier, two labels")
    w = np.zeros(layout.n_weights)
    w[layout.free] = np.inf
    for device in ("cpu", "reference"):
        run = make_objective(data, layout, l2=L2, device=device).online(w)
        assert not np.isfinite(run.weights(np.empty_like(w)))


ONLINE = {
    "sgd": SGD(epochs=100, schedule="inverse"),
    "averaged sgd": SGD(epochs=100, averaging=50, schedule="constant", eta0=0.03),
    "adagrad": AdaGrad(epochs=100),
    "psa": PSA(epochs=100, eta0=0.03),
    "aitken": Aitken(epochs=100, eta0=0.03),
    "smd": SMD(epochs=100),
    "ngd": NGD(epochs=100, potential="quadratic", batch=1),
}


@pytest.mark.parametrize("name", ONLINE)
def test_trainers_come_near_the_optimum(name):
    data = classifier(2)
    rare = (np.arange(data.n_tokens) % 8 == 0).astype(np.int32)  # which takes a large intercept
    data = replace(data, labels=rare)
    layout, l2 = classifier_layout(data, n_free=1), 10.0
    function = Classifier(data, layout, l2)
    best = scipy.optimize.minimize(function, np.zeros(layout.n_weights), jac=True).fun
    other = scipy.optimize.minimize(
        lambda w: (
            function(w)[0] + 0.5 * l2 * w[-1] ** 2,
            function(w)[1] + l2 * np.append(w[:-1] * 0, w[-1]),
        ),
        np.zeros(layout.n_weights),
        jac=True,
    ).x  # the optimum with a penalty on the intercept
    result = train(make_objective(data, layout, l2=l2), ONLINE[name], stop=Stop(rel_change=0.0))
    assert function(result.weights)[0] - best < 0.1 * (function(other)[0] - best)
    assert result.objective == pytest.approx(function(result.weights)[0], rel=1e-10)


@pytest.mark.parametrize("name", ONLINE)
def test_resume(name):
    data = classifier(3)
    objective = make_objective(data, classifier_layout(data, n_free=1), l2=2.0)
    trainer = replace(ONLINE[name], epochs=8)
    whole = train(objective, trainer)
    half = train(objective, trainer, stop=Stop(max_iter=6), keep_state=True)
    again = train(objective, trainer, state=half.state)
    np.testing.assert_array_equal(again.weights, whole.weights)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_what_is_met_on_the_way_counts_the_penalty_of_others(device):
    data = classifier(2)
    layout = classifier_layout(data, n_free=1)
    objective = make_objective(data, layout, l2=2.0, device=device)
    result = train(objective, SGD(epochs=3, eta0=0.1))
    last = result.history[-1].extra
    penalty = 0.5 * 2.0 * float(result.weights[:-1] @ result.weights[:-1])
    assert result.weights[-1] != 0.0
    assert last["online_objective"] - last["online_loss"] == pytest.approx(penalty, rel=1e-9)
