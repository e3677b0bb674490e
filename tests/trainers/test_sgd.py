"""Stochastic gradient descent: rates, calibration, averages, resume. The steps are in test_online."""

import math

import numpy as np
import pytest

from crfit.engines.online import Rate
from crfit.errors import ConvergenceWarning, CrfitError, CrfitWarning, OptionError
from crfit.trainers import SGD, AdaGrad, get
from crfit.trainers.online.calibration import GRID, Doubling, Trial, calibrate_by_doubling, calibrate_by_grid
from crfit.trainers.online.epochs import epoch_order
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import online_objective

N = 30
NO_RULE = Stop(grad_inf=0)  # and nothing else


def weights_of(trainer, objective=None, *, start=None):
    """Copies of the weights reported, the starting point first."""
    objective = objective or online_objective()
    w = np.zeros(objective.n_weights) if start is None else start.copy()
    return [step.w.copy() for step in trainer.steps(objective, w)]


@pytest.mark.parametrize("schedule", ["inverse", "exponential", "bottou", "power", "constant"])
def test_an_epoch_is_a_visit_of_all_sequences_in_a_new_order(schedule):
    objective = online_objective()
    trainer = SGD(schedule=schedule, eta0=0.2, epochs=2, batch=4, seed=5)
    steps = list(trainer.steps(objective, np.zeros(objective.n_weights)))
    run = online_objective(device="reference").online(np.zeros(objective.n_weights))
    w, rate = np.empty(objective.n_weights), Rate(schedule, 0.2, 0.85)
    losses = [run.visit(epoch_order(5, epoch, N), rate, epoch * N, 4) for epoch in range(2)]
    square = run.weights(w)
    np.testing.assert_allclose(steps[-1].w, w, rtol=0, atol=1e-11)
    assert steps[-1].step_size == pytest.approx(rate.at(N + 28, N, 0.5))
    assert steps[-1].extra["online_objective"] == pytest.approx(losses[1] + 0.25 * square)
    assert [step.initial for step in steps] == [True, False, False]
    assert objective.counts.sequences == 2 * N


def test_orders_differ_by_epoch_and_seed():
    orders = [epoch_order(seed, epoch, N).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(N)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    assert orders[0] == epoch_order(0, 0, N).tolist()


@pytest.mark.parametrize("batch", [1, 7])
def test_reports_within_an_epoch_do_not_change_the_steps(batch):
    once = weights_of(SGD(eta0=0.1, epochs=2, batch=batch))
    often = weights_of(SGD(eta0=0.1, epochs=2, batch=batch, report=3))
    assert (len(once), len(often)) == (3, 7)
    np.testing.assert_allclose(often[3], once[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(often[6], once[2], rtol=0, atol=1e-12)
    many = weights_of(SGD(eta0=0.1, epochs=1, batch=batch, report=1000))
    assert len(many) == 1 + math.ceil(N / batch), "never more reports than steps"


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_average_is_that_of_all_steps(device, batch):
    options = {"eta0": 0.3, "epochs": 3, "batch": batch}
    every = weights_of(SGD(report=N, **options), online_objective(device=device))
    n_steps = math.ceil(N / batch)
    for first in (0, 1):
        averaged = weights_of(SGD(averaging=first, **options), online_objective(device=device))
        expected = np.mean(every[1 + first * n_steps :], axis=0)
        np.testing.assert_allclose(averaged[-1], expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(averaged[first], every[first * n_steps], rtol=0, atol=1e-11)


def test_averaged_descent_is_bottous():
    # crfasgd: eta0 / (1 + lambda eta0 t)^0.75 with lambda = l2/N, averaged after the first epoch.
    trainer = get("asgd", eta0=0.2, epochs=3)
    assert trainer == SGD(schedule="power", averaging=1, calibration="crfsuite", epochs=3, eta0=0.2)
    objective, w = online_objective(device="reference"), np.zeros(online_objective().n_weights)
    total, n_summed = np.zeros_like(w), 0
    for t, i in enumerate(np.concatenate([epoch_order(0, epoch, N) for epoch in range(3)])):
        eta = 0.2 / (1 + 0.5 / N * 0.2 * t) ** 0.75
        w = w - eta * objective.value_and_grad(w, subset=[i])[1]
        if t >= N:
            total, n_summed = total + w, n_summed + 1
    np.testing.assert_allclose(weights_of(trainer)[-1], total / n_summed, rtol=0, atol=1e-11)


@pytest.mark.parametrize("calibration", ["grid", "crfsuite"])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_calibration_starts_the_run_anew(calibration, device):
    objective = online_objective(device=device)
    start = np.random.default_rng(0).normal(size=objective.n_weights)
    steps = list(SGD(calibration=calibration, epochs=1).steps(objective, start.copy()))
    eta0 = steps[-1].state["eta0"]
    assert objective.counts.sequences > N, "trials are counted"
    again = weights_of(SGD(eta0=eta0, epochs=1), online_objective(device=device), start=start)
    np.testing.assert_array_equal(again[-1], steps[-1].w)


def test_the_grid_is_judged_on_sequences_not_trained_on():
    objective = online_objective(l2=0.1)
    w = np.zeros(objective.n_weights)

    def rate(eta0):
        return Rate("inverse", eta0)

    found = calibrate_by_grid(Trial(objective, objective.online(w), w, rate, 1))
    losses = {}
    for eta0 in GRID:
        run = online_objective(l2=0.1, device="reference").online(w)
        run.visit(np.arange(N // 2), rate(eta0), 0)
        losses[eta0] = run.loss(np.arange(N // 2, N))
    assert found == min(losses, key=losses.get)
    assert len({round(loss, 6) for loss in losses.values()}) == len(GRID)


class Scripted:
    """A run whose losses depend on the rate alone."""

    def __init__(self, loss):
        self.tried, self.loss_at = [], loss

    def set_weights(self, w):
        pass

    def weights(self, out):
        return 0.0

    def loss(self, ids):
        return 100.0 * len(ids)

    def visit(self, ids, rate, k, batch):
        self.tried.append(rate.eta0)
        return self.loss_at(rate.eta0) * len(ids)


def doubling(loss, l2=0.0):
    objective, run = online_objective(l2=l2), Scripted(loss)
    w = np.zeros(objective.n_weights)
    found = calibrate_by_doubling(
        Trial(objective, run, w, lambda eta0: Rate("bottou", eta0), 1), np.arange(objective.n_sequences)
    )
    return found, run.tried


def test_doubling_goes_up_while_it_is_good_then_down():
    # Good up to 0.8, best at 0.4; then ten good ones on the way down.
    found, tried = doubling(lambda eta0: 150.0 if eta0 > 1 else 10 + abs(eta0 - 0.4))
    assert found == pytest.approx(0.4)
    np.testing.assert_allclose(tried, [0.1, 0.2, 0.4, 0.8, 1.6, *(0.05 / 2.0**i for i in range(10))])
    # Always good: ten up, ten down, and that is the limit of trials.
    found, tried = doubling(lambda eta0: 50 - 0.01 * eta0)
    assert found == pytest.approx(0.1 * 2**9)
    assert len(tried) == 20
    # Bad above 0.01: what is not finite is never chosen.
    found, tried = doubling(lambda eta0: math.nan if eta0 > 0.01 else 90 - eta0)
    assert found == pytest.approx(0.1 / 16)


def test_a_rate_at_the_end_of_the_trials_is_told():
    with pytest.warns(CrfitWarning, match=r"eta0=1.91e-07: .* smaller ones may be better; set eta0"):
        assert doubling(lambda eta0: 50 + eta0 if eta0 < 1e-5 else 150.0)[0] == 0.1 / 2**19
    with pytest.warns(CrfitWarning, match="none of the 20 learning rates tried lowers the loss; set eta0"):
        doubling(lambda eta0: 100 + eta0)


@pytest.mark.parametrize("name", ["asgd", "l2sgd"])
def test_where_no_rate_lowers_the_losses_on_the_way_the_weights_decide(name):
    # Random labels: what is learnt of some sequences does not help with the next, but they are learnt.
    objective = online_objective()
    found = train(objective, get(name, epochs=5), stop=NO_RULE)
    assert found.history[-1].step_size > 1e-3
    assert found.objective < 0.97 * objective.value(np.zeros(objective.n_weights))


def test_calibration_has_options():
    options = {"calibration": "crfsuite", "calibration_eta": 0.07, "epochs": 1}
    steps = list(SGD(calibration_max_trials=1, **options).steps(*_start(online_objective())))
    assert steps[-1].state["eta0"] == 0.07
    few = {"samples": 4, "candidates": 2, "rate": 1.5}
    trainer = SGD(**{f"calibration_{name}": value for name, value in few.items()}, **options)
    objective = online_objective()
    w = np.zeros(objective.n_weights)
    trial = Trial(objective, objective.online(w), w, trainer.rate, 1)
    expected = calibrate_by_doubling(trial, epoch_order(0, 0, N), Doubling(eta=0.07, **few))
    assert list(trainer.steps(*_start(online_objective())))[-1].state["eta0"] == expected
    assert expected != calibrate_by_doubling(trial, epoch_order(0, 0, N))


def test_rates_that_the_penalty_forbids_are_not_tried():
    found, tried = doubling(lambda eta0: 50 - eta0, l2=100.0)
    assert max(tried) < N / 100
    assert found == pytest.approx(0.2)


def test_no_rate_will_do():
    with pytest.raises(OptionError, match=r"eta0.*set a small eta0"):
        doubling(lambda eta0: math.inf)
    with pytest.raises(OptionError, match=r"eta0.*set a small eta0"):
        next(iter(list(SGD(epochs=1).steps(*_start(online_objective(l2=1e6))))))


def _start(objective):
    return objective, np.zeros(objective.n_weights)


def test_a_state_is_not_read_after_the_next_step():
    steps = AdaGrad(eta0=0.1).steps(*_start(online_objective()))
    first, second = next(steps), next(steps)
    with pytest.raises(CrfitError, match="valid only until the next step: copy it first"):
        dict(first.state)
    kept = dict(second.state)
    next(steps)
    assert "squares" in kept


def test_a_rate_that_turns_signs_is_refused_before_any_step():
    objective = online_objective(l2=10.0)
    with pytest.raises(
        OptionError, match=r"eta0.*less than 0\.1 .*l2=10, mini-batches of 30 of 30 sequences"
    ):
        next(iter(SGD(eta0=0.1, batch=100).steps(*_start(objective))))
    assert objective.counts.sequences == 0


def test_a_run_that_diverges_hands_back_its_last_good_point():
    with pytest.warns(ConvergenceWarning, match=r"finite; .*use an eta0 below 1e\+307, or scale"):
        found = train(online_objective(l2=0.0), SGD(eta0=1e307, schedule="constant"), stop=NO_RULE)
    assert found.reason is StopReason.DIVERGED
    assert np.isfinite(found.weights).all()
