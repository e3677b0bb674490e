"""Epochs of the dual on several shards at once."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from crfit.engines.dual import ONE_SHARD, EtaRule, Shards
from crfit.trainers import EG
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import larger, objective_of

RULE = EtaRule(grow=1.05, shrink=0.5, max_trials=5)
PROBLEMS = [
    (larger(3, 5, 9, n_sequences=17, boundary=True), "edge attributes"),
    (larger(4, 12, 6, n_sequences=17, weights="observed"), "observed weights"),
    (larger(5, 70, 3, n_sequences=9, weights="observed", transitions="observed"), "listed pairs"),
]
every_problem = pytest.mark.parametrize(
    "problem", [p for p, _ in PROBLEMS], ids=[name for _, name in PROBLEMS]
)
penalties = pytest.mark.parametrize("l1", [0.0, 0.2])


def of(problem, device="cpu", **options):
    if problem.layout.n_labels == 70:
        problem = replace(problem, dataset=replace(problem.dataset, edge_ptr=None, edge_ids=None))
    return objective_of(problem, device, **options)


def epochs(objective, shards, n=4):
    """u, D after each epoch, and the outcomes of the epochs."""
    dual, u = objective.dual(start=5.0, eta=0.5), np.empty(objective.n_weights)
    dual.weights(u)
    values, done = [dual.value(u)], []
    for k in range(n):
        order = np.random.default_rng(k).permutation(objective.n_sequences)
        done.append(dual.epoch(u, order, RULE, shards))
        values.append(dual.value(u))
    np.testing.assert_allclose(dual.weights(np.empty_like(u)), u, rtol=1e-9, atol=1e-10)  # u is still u(a)
    return u, values, done


@every_problem
@penalties
@pytest.mark.parametrize("shards", [Shards(2, 1.5), Shards(3, 3.0), Shards(100, 4.0)], ids=str)
def test_native_shards_are_those_in_numpy(problem, l1, shards):
    (u, values, done), (u2, values2, done2) = (
        epochs(of(problem, d, l1=l1), shards) for d in ("reference", "cpu")
    )
    np.testing.assert_allclose(u2, u, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(values2, values, rtol=1e-10)
    assert [d[:2] for d in done2] == [d[:2] for d in done]
    np.testing.assert_allclose([d.gain for d in done2], [d.gain for d in done], rtol=1e-7, atol=1e-9)


@every_problem
@penalties
@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_dual_rises_at_least_by_the_gains_of_the_shards(problem, l1, n):
    _, values, done = epochs(of(problem, l1=l1), Shards(n, float(n)), n=6)
    for (before, after), epoch in zip(pairwise(values), done, strict=True):
        assert after - before >= epoch.gain - 1e-9 * abs(after)


def test_one_shard_is_the_epoch_itself():
    problem = PROBLEMS[1][0]
    (u, _, done), (u2, _, done2) = (epochs(of(problem), shards) for shards in (ONE_SHARD, Shards(1, 7.0)))
    assert u.tobytes() == u2.tobytes()
    assert done == done2


@every_problem
def test_bytes_depend_on_the_shards_and_not_on_threads(problem):
    found = [epochs(of(problem, n_threads=n), Shards(3, 2.0))[0].tobytes() for n in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    assert epochs(of(problem), Shards(2, 1.5))[0].tobytes() != found[0]


def test_steps_are_shortened_when_the_dual_falls():
    shards = Shards.of(4)
    assert shards.sigma == 2.5
    shards.note(0.1)
    assert shards.sigma == 2.5
    shards.note(-0.1)
    assert shards.sigma == 4.0
    shards = Shards.of(4)
    shards.note(float("nan"))
    assert shards.sigma == 4.0


@pytest.mark.parametrize("shards", [2, 5])
@penalties
def test_eg_on_shards_reaches_the_optimum(shards, l1):
    problem = replace(PROBLEMS[1][0], l2=0.5)
    best = train(of(problem, l1=l1), "lbfgs", stop=Stop(max_iter=2000, rel_change=1e-14)).objective
    result = train(of(problem, l1=l1), EG(shards=shards), stop=Stop(gap=1e-4 * best, max_iter=300))
    assert result.reason is StopReason.CONVERGED
    assert best * (1 - 1e-9) <= result.objective <= best * (1 + 1e-4)
    assert all(step.extra["dual"] <= best * (1 + 1e-9) for step in result.history)


def test_a_resumed_run_on_shards_is_the_uninterrupted_one():
    problem = replace(PROBLEMS[1][0], l2=0.05)  # so weak that long steps lower the dual
    whole = train(of(problem), EG(shards=4, seed=3), stop=Stop(max_iter=8))
    first = train(of(problem), EG(shards=4, seed=3), stop=Stop(max_iter=5), keep_state=True)
    second = train(of(problem), state=first.state, stop=Stop(max_iter=8))
    assert second.weights.tobytes() == whole.weights.tobytes()
