"""Natural gradient descent and AdaGrad as trainers: options, rates, resume, and where they end.

The steps are in test_online, potentials and losses in test_bregman.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

import crfit
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.engines.bregman import function_of, natural_step, paper_parameter
from crfit.engines.online import Adaptive, Rate, Transform
from crfit.errors import ConvergenceWarning, OptionError
from crfit.layout import make_layout
from crfit.trainers import LBFGS, NGD, SGD, AdaGrad, get
from crfit.trainers.online.adagrad import GRID
from crfit.trainers.online.epochs import epoch_order
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import make_dataset, online_objective, random_dataset

N = 30
NO_RULE = Stop(grad_inf=0)  # and nothing else
UPDATES = ["U1", "U2", "U3", "U4", "U5", "U6"]
POTENTIALS = ["arctan", "erf", "gd"]


def steps_of(trainer, objective=None):
    """The steps with copies of their weights, the starting point first."""
    objective = objective or online_objective()
    w = np.zeros(objective.n_weights)
    return [replace(step, w=step.w.copy()) for step in trainer.steps(objective, w)]


def weights_of(trainer, objective=None):
    return steps_of(trainer, objective)[-1].w


@pytest.mark.parametrize(
    ("trainer", "rule"),
    [
        (NGD(), Transform("arctan", "U2", 10.0)),
        (NGD(update="U1"), Transform("arctan", "U1", 0.1)),
        (NGD(potential="erf", table=True), Transform("erf", "U2", 5 * math.sqrt(math.pi), table=True)),
        (NGD(potential="gd", parameter=3.0), Transform("gd", "U2", 3.0)),
        (AdaGrad(epsilon=1e-6), Adaptive(1e-6)),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_epoch_is_a_visit_with_the_rule(trainer, rule, device):
    trainer = replace(trainer, eta0=0.05, epochs=2, batch=4, seed=5)
    steps = steps_of(trainer, online_objective(device=device))
    run = online_objective(device=device).online(np.zeros(len(steps[0].w)), rule)
    rate = Rate("constant" if isinstance(trainer, AdaGrad) else "bottou", 0.05)
    losses = [run.visit(epoch_order(5, epoch, N), rate, epoch * N, 4) for epoch in range(2)]
    w = np.empty(len(steps[0].w))
    square = run.weights(w)
    np.testing.assert_allclose(steps[-1].w, w, rtol=0, atol=1e-12)
    assert steps[-1].extra["online_objective"] == pytest.approx(losses[1] + 0.25 * square)
    assert steps[-1].step_size == pytest.approx(rate.at(N + 28, N, 0.5))


def test_bottous_rate_is_that_of_crfsuite():
    # eta_t = 1/(lambda (t0 + t)) with t0 = 1/(lambda eta0), lambda = l2/N.
    l2, eta0 = 2.0, 0.07
    strength = l2 / N
    t0 = 1 / (strength * eta0)
    for t in (0, 1, 17, 5000):
        assert Rate("bottou", eta0).at(t, N, l2) == pytest.approx(1 / (strength * (t0 + t)), rel=1e-14)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("update", ["U1", "U2"])
def test_with_the_quadratic_potential_it_is_sgd_bit_for_bit(device, update):
    shared = {"schedule": "bottou", "calibration": "crfsuite", "epochs": 3, "batch": 2, "seed": 3}
    mine = steps_of(NGD(update=update, potential="quadratic", **shared), online_objective(device=device))
    theirs = steps_of(SGD(**shared), online_objective(device=device))
    assert len(mine) == 4
    for step, other in zip(mine, theirs, strict=True):
        assert step.w.tobytes() == other.w.tobytes()
        assert step.extra == other.extra


@pytest.mark.parametrize("calibration", ["grid", "crfsuite"])
def test_the_rate_is_calibrated_with_the_transform_on(calibration):
    objective = make_objective(crfit.Dataset.from_sequences(*recipe_data(60, seed=0)), l2=0.5)
    shared = {"schedule": "bottou", "calibration": calibration, "epochs": 1}
    steps = steps_of(NGD(**shared), objective)
    eta0 = steps[-1].state["eta0"]
    assert eta0 < steps_of(SGD(**shared), objective)[-1].state["eta0"]
    np.testing.assert_array_equal(steps[-1].w, weights_of(NGD(**shared, eta0=eta0), objective))


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_adagrad_tries_four_rates(device):
    found = steps_of(AdaGrad(eta0=None, epochs=1), online_objective(device=device))[-1].state["eta0"]
    w = np.zeros(online_objective().n_weights)
    losses = {}
    for eta0 in GRID:
        run = online_objective(device="reference").online(w, Adaptive())
        run.visit(np.arange(N // 2), Rate("constant", eta0), 0)
        losses[eta0] = run.loss(np.arange(N // 2, N))
    assert found == min(losses, key=losses.get)
    # The penalty never turns signs, so that no rate is left out because of it.
    for eta0 in (None, 1.0):
        strong = steps_of(AdaGrad(eta0=eta0, epochs=2, batch=N), online_objective(l2=100.0, device=device))
        assert strong[-1].state["eta0"] in GRID


def test_runs_end_when_the_objective_met_on_the_way_no_longer_falls():
    found = train(online_objective(), NGD(epochs=None, schedule="constant", eta0=0.01))
    assert found.reason is StopReason.CONVERGED
    assert "online_loss" in found.message
    assert all(point.objective is None for point in found.history[:-1]), "F is not evaluated on the way"


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("potential", ["quadratic", *POTENTIALS])
def test_a_step_on_the_whole_data_is_that_of_the_means(device, update, potential):
    objective = online_objective(device=device)
    total = objective.total_weight
    assert total == pytest.approx(sum(objective.factor(i) for i in range(N)))
    function = function_of(potential, update, paper_parameter(potential, update))
    steps = steps_of(NGD(update=update, potential=potential, batch="all", eta0=0.2, epochs=3), objective)
    assert objective.counts.sequences == 4 * N, "one pass for a step, one for the start"
    w, decay = steps[0].w, 0.5 / total
    for t, step in enumerate(steps[1:]):
        lam = 0.2 / (1 + 0.2 * decay * t)
        means = objective.expectations(w) / total, objective.observed() / total
        w = (1 - decay * lam) * w - lam * natural_step(update, function, *means)
        np.testing.assert_allclose(step.w, w, rtol=0, atol=1e-12)
        assert step.step_size == pytest.approx(lam)
        assert step.objective == pytest.approx(objective.value(w))
        loss = step.objective - 0.5 * objective.l2 * float(step.w @ step.w)
        assert step.extra == {"online_objective": step.objective, "online_loss": pytest.approx(loss)}


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_all_six_with_the_quadratic_potential_are_gradient_descent(device):
    options = {"potential": "quadratic", "batch": "all", "eta0": 0.5, "epochs": 20}
    found = [weights_of(NGD(update=update, **options), online_objective(device=device)) for update in UPDATES]
    assert len({w.tobytes() for w in found}) == 1, "bit for bit"
    # The rate of sgd is for the sum over the sequences, this one for their mean.
    objective = online_objective(device=device, weighted=False)
    mine = weights_of(NGD(**options), objective)
    theirs = weights_of(SGD(schedule="bottou", eta0=0.5 / N, epochs=20, batch=N), objective)
    # Bottou's rate, eta0/(1 + eta0 l2 k/N), goes by sequences there and by steps here: the same number.
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)


def regular(device="cpu"):
    """An objective without penalty that has a single finite optimum: F is strictly convex and not separable.

    The weights are those of a few sequences in which an attribute has one label, so that no direction leaves
    all probabilities as they are; the labels of the data are random.
    """
    data = random_dataset(4, [2, 3, 4] * 10, n_labels=2, n_attributes=3, attributes_per_position=2)
    few = make_dataset([[[(0, 1.0)], [(1, 1.0)], [(2, 1.0)]]], [[0, 1, 1]], n_labels=2, n_attributes=3)
    layout = make_layout(few, weights="observed", transitions="observed")
    return make_objective(data, layout, l2=0.0, device=device)


@pytest.fixture(scope="module")
def optimum():
    found = train(regular(), LBFGS(), stop=Stop(grad_inf=1e-9))
    assert found.reason is StopReason.CONVERGED
    assert 0.05 < np.abs(found.weights).max() < 3
    return found


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("potential", POTENTIALS)
def test_steps_on_the_whole_data_come_to_the_optimum_of_the_likelihood(optimum, update, potential):
    # U4 and U6 see the means themselves, where a steep sigmoid is flat.
    steep = {"eta0": 0.1} if update not in ("U4", "U6") else {"eta0": 1.0, "parameter": 1.0}
    trainer = NGD(update=update, potential=potential, batch="all", epochs=1000, **steep)
    found = train(regular(), trainer, stop=Stop(grad_inf=1e-7))
    assert found.reason is StopReason.CONVERGED
    np.testing.assert_allclose(found.weights, optimum.weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"update": "U1"}, {"potential": "gd"}])
def test_steps_on_single_sequences_do_not_come_to_it(optimum, options):
    shared = {"schedule": "inverse", "eta0": 0.3, "epochs": 60}
    far = np.abs(weights_of(NGD(**options, **shared), regular()) - optimum.weights).max()
    near = np.abs(weights_of(SGD(**shared), regular()) - optimum.weights).max()
    assert near < 0.02
    assert far > 0.5


def test_the_rate_for_the_whole_data_is_halved_while_that_helps():
    objective = online_objective(l2=0.1)
    start = objective.value(np.zeros(objective.n_weights))
    eta0 = steps_of(NGD(batch="all", epochs=1), objective)[-1].state["eta0"]
    halvings = -math.log2(10 * eta0)
    assert halvings == pytest.approx(round(halvings))
    assert 0 <= halvings < 20

    def after_five(rate):
        return steps_of(NGD(batch="all", epochs=5, eta0=rate), online_objective(l2=0.1))[-1].objective

    assert after_five(eta0) < min(start, after_five(eta0 / 2))
    assert halvings == 0 or after_five(eta0) < after_five(2 * eta0)


def test_a_penalty_that_forbids_a_rate_on_the_whole_data():
    with pytest.raises(OptionError, match=r"eta0.*must be below .* batch='all'"):
        steps_of(NGD(batch="all", eta0=10.0), online_objective(l2=100.0))
    # Rates that it forbids are not tried.
    *_, last = steps_of(NGD(batch="all", potential="quadratic", epochs=1), online_objective(l2=1000.0))
    assert last.state["eta0"] * 1000 < online_objective().total_weight


def test_a_run_on_the_whole_data_that_diverges_hands_back_its_last_good_point():
    trainer = NGD(batch="all", eta0=1e307, schedule="constant", potential="quadratic")
    with pytest.warns(ConvergenceWarning, match="eta0 below 1e"):
        found = train(online_objective(l2=0.0), trainer, stop=NO_RULE)
    assert found.reason is StopReason.DIVERGED
    assert np.isfinite(found.weights).all()


def test_options_from_text():
    assert get("ngd", batch="all", update="U6") == NGD(batch="all", update="U6")
    assert get("ngd", batch="7", table="yes", parameter="3") == NGD(batch=7, table=True, parameter=3.0)
    assert get("adagrad", eta0="none") == AdaGrad(eta0=None)
