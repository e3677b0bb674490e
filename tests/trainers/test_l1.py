"""The trainers with l1 > 0: optimality, OWL-QN's optimum, exact zeros, threads, resuming, estimates."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.engines import make_objective
from crfit.layout import classifier_layout
from crfit.trainers import NewtonCG
from crfit.trainers.newton import orthant
from crfit.trainers.newton.conjugate_gradient import Workspace
from crfit.trainers.newton.globalisation import Model, Point
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import Enumeration, larger, objective_of, problems, random_dataset, random_problem

#: l1, l2
PENALTIES = pytest.mark.parametrize("penalties", [(0.3, 0.2), (1.0, 0.0), (0.05, 1.0)], ids=str)


def objective(penalties=(0.3, 0.2), device="cpu", **options):
    problem = replace(larger(4, 4, 7, 30, boundary=True, weights="observed"), l2=penalties[1])
    return objective_of(problem, device, l1=penalties[0], **options)


def kkt(problem, w, tolerance):
    """Assert the optimality conditions at w."""
    g = problem.value_and_grad(w)[1]
    zero = w == 0.0
    assert (abs(g[zero]) <= problem.l1 + tolerance).all()
    np.testing.assert_allclose(g[~zero], -problem.l1 * np.sign(w[~zero]), atol=tolerance)


@pytest.fixture(scope="module")
def optima():
    def best(penalties):
        if penalties not in found:
            found[penalties] = train(objective(penalties), "lbfgs", stop=Stop(grad_inf=1e-8, max_iter=5000))
        return found[penalties]

    found = {}
    return best


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_products_on_a_face_lead_to_the_same_optimum(weights, monkeypatch):
    data, layout, _ = random_problem(22, lengths=[9] * 40, n_attributes=300, weights=weights, boundary=True)
    ours, full = (make_objective(data, layout, l1=1.5) for _ in range(2))
    masks, restrict = [], ours._restrict
    monkeypatch.setattr(ours, "_restrict", lambda mask: masks.append(mask) or restrict(mask))
    monkeypatch.setattr(full, "_restrict", lambda mask: None)
    result, expected = (
        train(problem, NewtonCG(), stop=Stop(grad_inf=1e-6, max_iter=60)) for problem in (ours, full)
    )
    assert result.reason is expected.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    kkt(ours, result.weights, 1e-5)
    assert masks[-2].sum() < 0.3 * layout.n_weights  # few weights are free at the end
    assert masks[-1] is None


@PENALTIES
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_newton_reaches_the_optimum_of_owl_qn(optima, penalties, device):
    problem, best = objective(penalties, device), optima(penalties)
    result = train(problem, NewtonCG(), stop=Stop(grad_inf=1e-7, max_iter=60))
    assert result.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(best.objective, rel=1e-9)
    kkt(problem, result.weights, 1e-6)
    zeros = result.weights == 0.0
    assert 5 < zeros.sum() < len(zeros) - 5
    assert zeros.sum() >= (best.weights == 0.0).sum()
    values = [step.objective for step in result.history if step.objective is not None]
    assert all(b <= a + 1e-9 * abs(a) for a, b in pairwise(values)), "Newton steps never raise F"


@pytest.mark.parametrize("start", ["eg", "sgd", "none"])
def test_every_start_leads_to_the_optimum(optima, start):
    result = train(objective(), NewtonCG(start=start), stop=Stop(grad_inf=1e-6, max_iter=80))
    assert result.objective == pytest.approx(optima((0.3, 0.2)).objective, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_optimality_by_enumeration(order, data):
    problem = data.draw(problems(order=order))
    l1, l2 = data.draw(st.sampled_from([(0.1, 0.5), (0.5, 0.0), (0.02, 0.05)]), label="l1, l2")
    result = train(
        objective_of(replace(problem, l2=l2), "cpu", l1=l1),
        NewtonCG(),
        stop=Stop(grad_inf=1e-6, max_iter=200),
    )
    layout, w = problem.layout, result.weights

    def smooth(x):
        return Enumeration(problem.dataset, layout, x).loss() + 0.5 * l2 * float(x @ x)

    value = smooth(w)
    size = 1e-9 * (1 + abs(value))
    assert result.objective == pytest.approx(value + l1 * abs(w).sum(), rel=1e-9, abs=size)
    step = 1e-5
    for i in np.random.default_rng(0).permutation(len(w))[:8]:
        d = step * (np.arange(len(w)) == i)
        slope = (smooth(w + d) - smooth(w - d)) / (2 * step)  # finite differences
        assert abs(slope + l1 * np.sign(w[i])) <= (l1 if w[i] == 0.0 else 0.0) + 1e-4


def test_no_penalised_weight_at_all_is_zero_weights():
    result = train(objective((1e4, 0.0)), NewtonCG())
    assert not result.weights.any()
    assert result.reason is StopReason.CONVERGED


@PENALTIES
def test_results_do_not_depend_on_threads(penalties):
    results = [
        train(objective(penalties, n_threads=n), NewtonCG(), stop=Stop(max_iter=18)) for n in (1, 2, 3)
    ]
    assert len({result.weights.tobytes() for result in results}) == 1
    eg = [train(objective((0.3, 0.2), n_threads=n), "eg", stop=Stop(max_iter=3)) for n in (1, 2, 3)]
    assert len({result.weights.tobytes() for result in eg}) == 1


@pytest.mark.parametrize("trainer", ["eg", "newton_cg"])
@pytest.mark.parametrize("cut", [0, 2, 15, 17])
def test_resumed_run_is_the_uninterrupted_one(trainer, cut):
    whole = train(objective(), trainer, stop=Stop(max_iter=19, rel_change=0.0))
    first = train(objective(), trainer, stop=Stop(max_iter=cut, rel_change=0.0), keep_state=True)
    second = train(objective(), state=first.state, stop=Stop(max_iter=19, rel_change=0.0))
    assert second.weights.tobytes() == whole.weights.tobytes()
    assert [step.extra for step in second.history] == [step.extra for step in whole.history]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_eg_bounds_the_optimum(optima, device):
    best, problem = optima((0.3, 0.2)), objective(device=device)
    result = train(problem, "eg", stop=Stop(gap=1e-6, max_iter=400))
    assert result.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(best.objective, abs=1e-5)
    assert (result.weights == 0.0).sum() > 5
    for step in result.history:
        assert step.extra["dual"] <= best.objective + 1e-9
        assert -1e-9 <= step.objective - best.objective <= step.extra["gap"] + 1e-9
    duals = [step.extra["dual"] for step in result.history]
    assert all(b >= a - 1e-11 * abs(a) for a, b in pairwise(duals)), "the dual never falls"


@PENALTIES
def test_stops_by_itself_where_it_says(optima, penalties):
    best = optima(penalties).objective
    result = train(objective(penalties), "auto")
    assert (result.trainer, result.reason) == ("newton_cg", StopReason.CONVERGED)
    assert "above the optimum" in result.message
    assert 0.0 <= result.objective - best + 1e-9 <= 1e-4 * best
    for step in result.history:
        left = step.extra.get("left")
        if left is not None:
            assert step.objective - best <= 3.0 * left * step.objective + 1e-9
    assert result.history[-1].extra["left"] <= 1e-4
    further = train(objective(penalties), "auto", stop=Stop(tol=1e-9))
    assert further.passes > result.passes


def test_a_step_stays_in_its_orthant_and_lowers_the_model():
    problem = objective((0.5, 0.0))
    w = np.random.default_rng(1).normal(size=problem.n_weights)
    w[::3] = 0.0
    point, work = Point(problem, w), Workspace(w, np)
    point.evaluate_start()
    model = Model(0.1, False, problem.hessian_diagonal(), 250)
    search = orthant.OrthantSearch()
    search.reach = 0.5
    face = orthant._Face(point, work, model, search)
    v, s = face.v.copy(), work.s
    face.minimise()
    assert face.solved
    assert face.products > orthant.SHORTEST
    assert (np.where(w != 0.0, w, -v) * (w + s) >= 0.0).all()
    assert not s[(w == 0.0) & (v == 0.0)].any()
    assert ((w != 0.0) & (w + s == 0.0)).any()
    hs = problem.hvp(s) + face.damping * s
    assert face.decrease == pytest.approx(-v @ s - 0.5 * s @ hs, rel=1e-9)
    residual = np.where(face.free, v + hs, 0.0)
    assert residual @ (residual / face.metric) <= 0.01 * (v @ (v / face.metric)) * (1 + 1e-9)


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("intercept", [True, False])
def test_classifiers(classes, intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 12)) * (rng.random((120, 12)) < 0.6)
    y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(120, 3)), axis=1)
    options = {"l1": 1.5, "l2": 0.1, "classes": classes, "fit_intercept": intercept}
    ours = crfit.LogLinear(**options).fit(X, y)
    theirs = crfit.LogLinear(trainer="lbfgs", stop=Stop(grad_inf=1e-7), **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.02)
    assert (ours.coef_ == 0.0).sum() >= (theirs.coef_ == 0.0).sum() > 2
    assert "newton_cg" in str(ours.result_.trainer)


def test_unpenalised_weights_are_never_held():
    data = random_dataset(1, [1] * 60, n_labels=2, n_attributes=9)
    problem = make_objective(data, classifier_layout(data, n_free=1), l1=2.0, l2=0.1)
    result = train(problem, "newton_cg", stop=Stop(grad_inf=1e-8))
    g = problem.value_and_grad(result.weights)[1]
    np.testing.assert_allclose(g[problem.free], 0.0, atol=1e-7)
    best = train(problem, "lbfgs", stop=Stop(grad_inf=1e-8)).objective
    assert result.objective == pytest.approx(best, rel=1e-10)
