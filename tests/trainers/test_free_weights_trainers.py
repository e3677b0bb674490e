"""Trainers on the whole data with weights that have no penalty, against another solver."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from crfit.engines import make_objective
from crfit.errors import ConvergenceWarning, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.racing.optimum import found_optimum
from crfit.trainers import BFGS, FIS, GIS, IIS, LBFGS, NGD, Aitken, ClusteredLBFGS, NewtonCG, Step
from crfit.trainers.newton.conjugate_gradient import mixed
from crfit.trainers.scaling.gis_map import ScalingMap
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from free_weights import Classifier, chains, classifier, penalised
from oracle import Enumeration

DEVICES = ["cpu", "reference"]


def direction(layout):
    return np.random.default_rng(7).normal(size=layout.n_weights)


def optimum(data, layout, l2, l1=0.0):
    """By SciPy on the dense form; with l1 as a bounded problem, w = p - n with p, n >= 0."""
    function, n = Classifier(data, layout, l2), layout.n_weights
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 40}
    there = penalised(layout)

    def split(pn):
        value, g = function(pn[:n] - pn[n:])
        return value + l1 * float(np.tile(there, 2) @ pn), np.concatenate([g, -g]) + l1 * np.tile(there, 2)

    if l1 == 0.0:
        return scipy.optimize.minimize(function, np.zeros(n), jac=True, method="L-BFGS-B", options=options)
    found = scipy.optimize.minimize(
        split, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options
    )
    found.x = found.x[:n] - found.x[n:]
    return found


def centred(w, layout):
    """With an intercept for each label F knows their differences alone."""
    w = w.copy()
    if layout.n_labels > 2:
        w[layout.free] -= w[layout.free].mean()
    return w


BATCH = {
    "lbfgs": LBFGS(),
    "newton_cg": NewtonCG(),
    "newton_cg from zero": NewtonCG(start="none", globalisation="trust_region"),
    "newton_cg with a metric": NewtonCG(
        start="none", preconditioner="diag", mix=1.0, globalisation="line_search"
    ),
    "lbfgs, scaled": LBFGS(scaling="diagonal"),
    "clustered_lbfgs": ClusteredLBFGS(),
    "bfgs": BFGS(),
    "iis": IIS(),
    "fis": FIS(),
    "gis": GIS(),
    "gis, ratio": GIS(form="ratio"),
    "aitken on gis": Aitken(map="gis"),
    "aitken on T": Aitken(map="T", acceleration="anderson"),
    "ngd": NGD(batch="all", potential="quadratic", schedule="constant", epochs=5000),
}


@pytest.mark.parametrize("name", BATCH)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_trainers_reach_the_optimum(name, n_labels):
    data = classifier(n_labels)
    layout = classifier_layout(data, n_free=1)
    best = optimum(data, layout, l2=4.0)
    objective = make_objective(data, layout, l2=4.0)
    result = train(objective, BATCH[name], stop=Stop(grad_inf=1e-5, max_iter=20_000))
    assert result.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(centred(result.weights, layout), centred(best.x, layout), atol=1e-4)
    # A penalty on the intercept would have made it another one.
    other = make_objective(data, classifier_layout(data), l2=4.0)
    assert np.abs(other.value_and_grad(result.weights)[1][layout.free]).max() > 0.1


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_trainers_reach_the_optimum_of_chains(weights):
    """By Newton's method on the enumerated function; the labels' intercepts are known up to a number."""
    data, l2 = chains(values=False), 2.0
    layout = make_layout(data, weights=weights, n_free=1)
    penalty, best = l2 * penalised(layout), np.zeros(layout.n_weights)
    for _ in range(8):
        found = Enumeration(data, layout, best)
        g, hessian = found.expected() - found.observed() + penalty * best, found.hessian() + np.diag(penalty)
        best = best - np.linalg.lstsq(hessian, g, rcond=1e-12)[0]
    value = Enumeration(data, layout, best).loss() + 0.5 * penalty @ (best * best)
    objective = make_objective(data, layout, l2=l2)
    for name in ("lbfgs", "newton_cg", "gis"):
        result = train(objective, BATCH[name], stop=Stop(grad_inf=1e-5, max_iter=20_000))
        assert result.objective == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(centred(result.weights, layout), centred(best, layout), atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_lbfgs_with_l1(n_labels, device):
    data = classifier(n_labels)
    layout = classifier_layout(data, n_free=1)
    best = optimum(data, layout, l2=0.5, l1=1.5)
    objective = make_objective(data, layout, l2=0.5, l1=1.5, device=device)
    result = train(objective, LBFGS(), stop=Stop(grad_inf=1e-7, max_iter=5000))
    assert result.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(centred(result.weights, layout), centred(best.x, layout), atol=1e-5)
    assert np.count_nonzero(result.weights == 0.0) > 0
    assert (result.weights[layout.free] != 0.0).all()


def test_a_free_weight_may_cross_zero_in_one_step():
    """Others stop there for a step, since l1 has a kink at 0."""
    data = classifier(2)
    layout = classifier_layout(data, n_free=1)
    objective = make_objective(data, layout, l1=0.1, l2=0.5)
    start = np.copysign(1e-6, objective.value_and_grad(np.zeros(layout.n_weights))[1])  # the wrong side
    moved = train(objective, LBFGS(), start, stop=Stop(max_iter=1)).weights
    assert moved[-1] * start[-1] < 0.0
    assert (moved[:-1] * start[:-1] == 0.0).any()


def test_gradients_that_a_trainer_does_not_tell():
    """The pseudo-gradient of a free weight is its gradient."""

    class Stay:
        def steps(self, objective, w, state=None):
            yield Step(w, stop=StopReason.CONVERGED)

    data = classifier(2)
    objective = make_objective(data, classifier_layout(data, n_free=1), l1=100.0, l2=0.5)
    result = train(objective, Stay())
    slope = objective.value_and_grad(np.zeros(objective.n_weights))[1][-1]
    assert (result.grad_inf, result.grad_norm) == (abs(slope), abs(slope))


def test_every_weight_free_is_maximum_likelihood():
    data = classifier(2)
    result = train(make_objective(data, classifier_layout(data, n_free=data.n_attributes), l2=50.0), LBFGS())
    plain = train(make_objective(data, classifier_layout(data), l2=0.0), LBFGS())
    np.testing.assert_allclose(result.weights, plain.weights, atol=1e-4)


@pytest.mark.parametrize(("map_name", "form"), [("S", "exact"), ("S", "ratio"), ("T", "exact")])
def test_scaling_solves_the_equation_of_each_weight(map_name, form):
    """The steps of free weights are those without a penalty, the others those with it."""
    data = classifier(3)
    w = direction(classifier_layout(data))
    found = {}
    for n_free, l2 in ((1, 4.0), (0, 4.0), (0, 0.0)):
        objective = make_objective(data, classifier_layout(data, n_free=n_free), l2=l2)
        scaling = ScalingMap(objective, map_name, form)
        point = scaling.evaluate(w)
        found[n_free, l2] = point.expected, scaling.step(point), scaling.bound(point, scaling.step(point))
    expected, step, bound = found[1, 4.0]
    there = penalised(classifier_layout(data, n_free=1)) > 0
    np.testing.assert_allclose(expected, found[0, 0.0][0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(step, np.where(there, found[0, 4.0][1], found[0, 0.0][1]), rtol=1e-10)
    if form == "exact":
        assert objective_at(data, w + step) <= bound


def objective_at(data, w):
    return make_objective(data, classifier_layout(data, n_free=1), l2=4.0).value(w)


@pytest.mark.parametrize("update", ["U1", "U2", "U5"])
def test_a_natural_step_is_without_l2_on_free_weights_and_with_it_on_others(update):
    data = classifier(3)
    layout = classifier_layout(data, n_free=1)
    w, trainer = direction(layout), NGD(batch="all", update=update, eta0=0.1, epochs=1)
    found = {}
    for n_free, l2 in ((1, 4.0), (0, 4.0), (0, 0.0)):
        objective = make_objective(data, classifier_layout(data, n_free=n_free), l2=l2)
        result = train(objective, trainer, w)
        found[n_free, l2] = result.weights
        loss = result.history[-1].extra["online_loss"]
        assert loss == pytest.approx(
            make_objective(data, l2=0.0, layout=layout).value(result.weights), rel=1e-10
        )
    there = penalised(layout) > 0
    np.testing.assert_allclose(found[1, 4.0], np.where(there, found[0, 4.0], found[0, 0.0]), rtol=1e-12)


def test_no_bound_is_claimed_where_there_is_none():
    """|g|^2 / (2 l2) bounds F - F* only if every weight has the penalty."""
    data = classifier(2)
    stop = Stop(rel_change=0.5, change="objective")
    with pytest.warns(ConvergenceWarning, match="stopped"):
        result = train(make_objective(data, classifier_layout(data, n_free=1), l2=4.0), GIS(), stop=stop)
    assert result.reason is StopReason.STALLED
    assert "optimum" not in result.message
    with pytest.warns(ConvergenceWarning, match="stopped"):
        penalised_too = train(make_objective(data, classifier_layout(data), l2=4.0), GIS(), stop=stop)
    assert "optimum" in penalised_too.message
    objective = make_objective(data, classifier_layout(data, n_free=1), l2=4.0)
    assert found_optimum(objective, train(objective, LBFGS())).uncertainty is None


def test_a_metric_is_positive_where_neither_penalty_nor_data_make_it_so():
    diagonal = np.array([2.0, 3.0, 0.0, 5.0])
    found = mixed(diagonal, 1.0, 2.0, np.empty(4), slice(2, 3))
    np.testing.assert_array_equal(found, [2.0, 3.0, 5e-10, 5.0])
    assert mixed(diagonal, 1.0, 2.0, np.empty(4), slice(1, 2)).tolist() == diagonal.tolist()


@pytest.mark.parametrize("trainer", ["eg", NewtonCG(start="eg")], ids=["eg", "start=eg"])
def test_the_dual_refuses_free_weights(trainer):
    data = classifier(2)
    objective = make_objective(data, classifier_layout(data, n_free=1), l2=1.0)
    assert objective.dual_bytes is None
    with pytest.raises(OptionError, match="n_free=1: the dual needs a penalty on every weight"):
        train(objective, trainer)
    assert make_objective(data, classifier_layout(data), l2=1.0).dual_bytes is not None


def test_a_state_of_other_free_weights_is_refused():
    data = classifier(2)
    free = make_objective(data, classifier_layout(data, n_free=1), l2=1.0)
    state = train(free, LBFGS(), stop=Stop(max_iter=2), keep_state=True).state
    with pytest.raises(OptionError, match="free weights"):
        train(make_objective(data, classifier_layout(data), l2=1.0), LBFGS(), state=state)
    with pytest.raises(OptionError, match="objective"):
        train(make_objective(data, classifier_layout(data), l2=1.0), LBFGS(), state=replace(state, facts={}))


@pytest.mark.parametrize(
    ("trainer", "l1"), [("lbfgs", 0.0), ("lbfgs", 1.5), ("gis", 0.0), ("newton_cg", 0.0)]
)
def test_resume(trainer, l1):
    data = classifier(3)
    objective = make_objective(data, classifier_layout(data, n_free=1), l2=0.5, l1=l1)
    stop = Stop(max_iter=6, grad_inf=0.0)
    whole = train(objective, trainer, stop=stop)
    half = train(objective, trainer, stop=Stop(max_iter=3, grad_inf=0.0), keep_state=True)
    again = train(objective, trainer, stop=stop, state=half.state)
    np.testing.assert_array_equal(again.weights, whole.weights)
