"""Stochastic meta-descent: its steps against the definition and between engines, and the trainer."""

import numpy as np
import pytest

import oracle
from crfit.engines import make_objective
from crfit.engines.online import MetaDescent, Rate
from crfit.errors import ConvergenceWarning, OptionError
from crfit.layout import make_layout
from crfit.trainers import LBFGS, SGD, SMD, describe, get
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason

N = 30
NO_RULE = Stop(grad_inf=0)  # and nothing else
devices = pytest.mark.parametrize("device", ["cpu", "reference"])


def result(objective, w, ids, eta0=0.05, batch=3, rule=None):
    """Loss, then weights, their sum, gains and derivatives after some steps."""
    run = objective.online(w, rule or MetaDescent(0.3, 0.9))
    run.begin_sum()
    loss = run.visit(ids, Rate("constant", eta0), 0, batch)
    out, total = np.empty_like(w), np.empty_like(w)
    assert run.weights(out) == pytest.approx(out @ out, rel=1e-12)
    run.weight_sum(total)
    state = run.state()
    return loss, out, total, state["gains"].copy(), state["derivatives"].copy()


def by_definition(data, layout, w, l2, rule, eta0, steps):
    """Weights, their sum, gains and derivatives after steps on the sequences named; all labels enumerated."""
    ids, w = oracle.feature_ids(layout), w.copy()
    gains, v, total = np.ones_like(w), np.zeros_like(w), np.zeros_like(w)
    for part in steps:
        share = l2 * len(part) / data.n_sequences
        g, product = share * w, share * v
        for s in (oracle.Sequence(data, layout, ids, w, i) for i in part):
            g = g + s.factor * (s.p @ s.features - s.features[s.gold])
            centred = s.features - s.p @ s.features
            product = product + s.factor * centred.T @ (s.p * (centred @ v))
        seen = np.any([oracle.touched(data, ids, i) for i in part], axis=0)
        gains = np.where(seen, gains * np.maximum(0.5, 1 - rule.meta_rate * g * v), gains)
        eta = eta0 * gains
        w = np.where(seen, w - eta * g, (1 - eta * share) * w)
        v = rule.memory * v - np.where(seen, eta * (g + rule.memory * product), 0.0)
        total += w
    return w, total, gains, v


@devices
@pytest.mark.parametrize("rule", [MetaDescent(), MetaDescent(2.0, 1.0), MetaDescent(0.5, 0.0)], ids=str)
def test_steps_are_those_of_the_definition(rule, device):
    data = oracle.random_dataset(
        5, [4, 1, 3, 4], n_labels=2, n_attributes=9, n_edge_attributes=2, values=True, weighted=True
    )
    layout = make_layout(data, boundary=True)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    steps = [[0, 2], [1, 3], [3, 1], [1, 1], [0, 0], [2]]
    expected = by_definition(data, layout, w, 0.6, rule, 0.3, steps)
    objective = make_objective(data, layout, l2=0.6, device=device)
    _, *found = result(objective, w, [i for part in steps for i in part], 0.3, 2, rule)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    assert expected[2].min() < 1.0 < expected[2].max(), "rates fall and rise"


@devices
@pytest.mark.parametrize("batch", [1, 3])
def test_with_a_meta_rate_of_0_it_is_plain_descent(device, batch):
    data, layout, w = oracle.random_problem(boundary=True, n_edge_attributes=2)
    objective = make_objective(data, layout, l2=0.7, device=device)
    ids = np.random.default_rng(0).permutation(np.repeat(np.arange(data.n_sequences), 5))
    loss, found, total, gains, v = result(objective, w, ids, batch=batch, rule=MetaDescent(0.0, 0.9))
    run, plain, plain_total = objective.online(w), np.empty_like(w), np.empty_like(w)
    run.begin_sum()
    assert run.visit(ids, Rate("constant", 0.05), 0, batch) == pytest.approx(loss, rel=1e-12)
    run.weights(plain)
    run.weight_sum(plain_total)
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(total, plain_total, rtol=0, atol=1e-11)
    assert (gains == 1.0).all()
    assert np.abs(v).max() > 0.0


@devices
def test_the_product_is_that_of_differences(device):
    data, layout, w = oracle.random_problem(4, boundary=True, n_edge_attributes=2)
    objective = make_objective(data, layout, l2=0.7, device=device)
    everything, eta0, memory, h = np.arange(data.n_sequences), 0.01, 0.8, 1e-5
    run = objective.online(w, MetaDescent(0.0, memory))
    rate = Rate("constant", eta0)
    run.visit(everything, rate, 0, data.n_sequences)
    v1, w1 = run.state()["derivatives"].copy(), np.empty_like(w)
    run.weights(w1)
    run.visit(everything, rate, 0, data.n_sequences)
    v2 = run.state()["derivatives"]
    g = objective.value_and_grad(w1)[1]
    product = ((memory * v1 - v2) / eta0 - g) / memory
    there, back = (objective.value_and_grad(w1 + side * h * v1)[1] for side in (1, -1))
    at = np.abs(v1) > 0.0  # weights of an attribute that no sequence has are not touched
    expected = (there - back) / (2 * h)
    np.testing.assert_allclose(product[at], expected[at], rtol=0, atol=1e-6 * np.abs(expected).max())


@devices
def test_a_rate_falls_by_no_more_than_a_half(device):
    data, layout, w = oracle.random_problem(3)
    objective = make_objective(data, layout, l2=0.7, device=device)
    *_, gains, _ = result(objective, w, [1, 1], 0.05, 1, MetaDescent(1e9, 0.9))
    assert gains.min() == 0.5
    assert gains.max() > 1e3


def test_a_weight_that_was_not_touched_for_long_is_what_it_would_have_become():
    # One attribute is seen by the first sequence alone: its weights wait for 1,000 steps.
    data = oracle.random_dataset(2, [3, 4, 2], n_labels=3, n_attributes=60, attributes_per_position=4)
    layout = make_layout(data, weights="all")
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    ids = np.array([0, *([1, 2] * 500), 0])
    found = [
        result(make_objective(data, layout, l2=0.3, device=device), w, ids, 0.02, 1, MetaDescent(0.1, 0.999))
        for device in ("cpu", "reference")
    ]
    for mine, theirs in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


def last_weights(trainer, objective=None):
    objective = objective or oracle.online_objective()
    return [step.w.copy() for step in trainer.steps(objective, np.zeros(objective.n_weights))][-1]


def test_learned_rates_make_up_for_a_small_one():
    both = SGD(schedule="constant", eta0=1e-3, batch=8, epochs=10), SMD(eta0=1e-3, epochs=10, meta_rate=1.0)
    plain, learned = (train(oracle.online_objective(), one, stop=NO_RULE).weights for one in both)
    objective = oracle.online_objective()
    start, best = objective.value(np.zeros_like(plain)), train(oracle.online_objective(), LBFGS()).objective
    assert start - objective.value(learned) > 1.2 * (start - objective.value(plain))
    assert objective.value(learned) > best


def test_a_diverged_run_keeps_nothing_worse_than_the_start():
    start = oracle.online_objective().value(np.zeros(oracle.online_objective().n_weights))
    for meta_rate in (3.0, 10.0, 30.0, 100.0):  # some end with finite weights
        trainer = SMD(eta0=0.1, meta_rate=meta_rate, report=4)
        with pytest.warns(ConvergenceWarning, match="use an eta0 below 0.1, or a smaller meta_rate"):
            result = train(oracle.online_objective(), trainer, stop=NO_RULE)
        assert result.reason is StopReason.DIVERGED
        assert result.objective <= start


def test_rates_that_grow_too_fast_are_told():
    trainer = SMD(eta0=0.01, meta_rate=1e4)
    *_, last = trainer.steps(oracle.online_objective(), np.zeros(oracle.online_objective().n_weights))
    assert last.stop is StopReason.DIVERGED
    assert last.advice == "use an eta0 below 0.01, or a smaller meta_rate, memory or batch"
    with pytest.warns(ConvergenceWarning, match="no longer finite"):
        result = train(oracle.online_objective(), trainer, stop=NO_RULE)
    assert result.reason is StopReason.DIVERGED
    assert np.isfinite(result.weights).all()


def test_reports_within_an_epoch_do_not_change_the_steps():
    once, often = (last_weights(SMD(epochs=2, report=report)) for report in (1, 3))
    np.testing.assert_allclose(often, once, rtol=0, atol=1e-12)


def test_options():
    assert get("smd", eta0="none", meta_rate="0.02") == SMD(eta0=None, meta_rate=0.02)
    assert describe("smd").change == "online_objective"
    with pytest.raises(OptionError, match=r"eta0.*less than"):
        last_weights(SMD(eta0=10.0), oracle.online_objective(l2=10.0))
