"""An l2 of each weight: values, derivatives, names of groups, and who can minimise it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import CRF, Dataset, trainers
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.engines.weight_groups import l2_of_weights, weight_groups
from crfit.errors import CapabilityError, OptionError
from crfit.fit import FitOptions, fit_dataset
from crfit.layout import make_layout
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import problems, random_dataset


@pytest.mark.parametrize("value", [5, "x", [1]])
def test_groups_are_a_dict(value):
    with pytest.raises(OptionError, match=r"l2_by_group=.*give a dict with the l2 of each group"):
        CRF(l2_by_group=value).fit([[["a"]]], [["X"]])


every_device = pytest.mark.parametrize("device", ["cpu", "reference"])


def scaled(data, layout, device="cpu", **options):
    objective = make_objective(data, layout, l2=0.7, device=device, **options)
    scale = np.random.default_rng(1).uniform(0.1, 9.0, layout.n_weights)
    objective.scale_l2(scale)
    scale[layout.free] = 0.0
    return objective, 0.7 * scale


@every_device
@given(problem=problems(), share=st.booleans())
@settings(max_examples=40)
def test_it_is_the_loss_and_the_penalties(problem, device, share):
    (objective, l2), w = scaled(problem.dataset, problem.layout, device), problem.w
    loss = make_objective(problem.dataset, problem.layout, l2=0.0, device=device)
    ids = np.arange(max(1, problem.dataset.n_sequences - 1)) if share else None
    part = 1.0 if ids is None else len(ids) / problem.dataset.n_sequences
    expected = loss.value(w, ids) + 0.5 * part * float(l2 @ w**2)
    assert objective.value(w, ids) == pytest.approx(expected, rel=1e-12, abs=1e-9)
    value, g = objective.value_and_grad(w, subset=ids)
    _, own = loss.value_and_grad(w, subset=ids)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(g, own + part * l2 * w, atol=1e-9)


@every_device
@given(problem=problems(order=2))
@settings(max_examples=25)
def test_curvature_and_lines(problem, device):
    (objective, l2), w, v = scaled(problem.dataset, problem.layout, device), problem.w, problem.direction(2)
    loss = make_objective(problem.dataset, problem.layout, l2=0.0, device=device)
    objective.value_and_grad(w)
    loss.value_and_grad(w)
    np.testing.assert_allclose(objective.hvp(v), loss.hvp(v) + l2 * v, atol=1e-9)
    np.testing.assert_allclose(objective.hessian_diagonal(), loss.hessian_diagonal() + l2, atol=1e-9)
    value, slope = objective.along(v)(0.3)
    there = w + 0.3 * v
    assert value == pytest.approx(objective.value(there), rel=1e-10, abs=1e-9)
    assert slope == pytest.approx(float(objective.value_and_grad(there)[1] @ v), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("name", ["lbfgs", "bfgs", "newton_cg", "auto"])
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_trainers_find_the_optimum_of_scaled_features(name, l1):
    if l1 > 0.0 and name == "bfgs":
        pytest.skip("no l1")
    data = random_dataset(3, [4] * 12, n_labels=3, n_attributes=6)
    objective, l2 = scaled(data, make_layout(data, boundary=True), l1=l1)
    found = train(objective, name, stop=Stop(grad_inf=1e-9)).weights
    loss = make_objective(data, objective.layout, l2=0.0)
    w = np.zeros_like(found)
    for _ in range(20_000):  # by hand, with proximal gradient steps
        w = w - 0.02 * (loss.value_and_grad(w)[1] + l2 * w)
        w = np.sign(w) * np.maximum(np.abs(w) - 0.02 * l1, 0.0)
    np.testing.assert_allclose(found, w, atol=1e-6)


@pytest.mark.parametrize(
    "name", sorted(set(trainers.names(others=True)) - {"lbfgs", "bfgs", "newton_cg", "auto"})
)
def test_others_refuse_and_say_which_can(name):
    data = random_dataset(3, [4] * 6, n_labels=3, n_attributes=6)
    if "groups" in trainers.describe(name).handles:
        pytest.skip("another name of one that can")
    with pytest.raises(CapabilityError, match=r"l2 per group; use one of: .*lbfgs"):
        trainers.check_capabilities(trainers.get(name), scaled(data, make_layout(data))[0])


def test_names_of_groups():
    X, y = recipe_data(20, seed=1)
    data = Dataset.from_sequences(X, y)
    layout = make_layout(data, boundary=True)
    l2 = l2_of_weights(data, layout, {"w": 5.0, "transitions": 2.0, "suffix": 3.0}, 1.0)
    assert set(l2[layout.n_state_weights : layout.start_offset]) == {2.0}
    assert set(l2[layout.start_offset :]) == {1.0}
    for i in range(0, layout.n_state_weights, 37):
        attribute = layout.describe(i, data).attribute
        assert l2[i] == {"w": 5.0, "suffix": 3.0}.get(attribute.partition("=")[0], 1.0)
    assert weight_groups(data, layout, "template").names[-2:] == ["transitions", "boundary"]


def test_a_template_comes_before_its_family():
    data = Dataset.from_sequences([[["w[0]=a", "w[1]=b", "plain"]]], [["A"]])
    layout = make_layout(data, weights="all", transitions="none")
    assert l2_of_weights(data, layout, {"w": 2.0, "w[1]": 3.0}, 1.0).tolist() == [2.0, 3.0, 1.0]
    assert l2_of_weights(data, layout, {"others": 4.0}, 1.0).tolist() == [1.0, 1.0, 4.0]


@pytest.mark.parametrize("wrong", [{"w": 0.0}, {"w": float("inf")}, {"w": "x"}, {"nothing": 1.0}])
def test_wrong_penalties_are_refused(wrong):
    X, y = recipe_data(5, seed=1)
    with pytest.raises(OptionError, match="l2_by_group"):
        CRF(l2_by_group=wrong).fit(X, y)


def test_models_of_estimators_tell_their_penalties(tmp_path):
    X, y = recipe_data(30, seed=1)
    crf = CRF(l2=0.5, l2_by_group={"w": 50.0}, n_threads=1).fit(X, y)
    plain = CRF(l2=0.5, n_threads=1).fit(X, y)
    assert crf.result_.objective > plain.result_.objective
    crf.save(tmp_path / "m.crfit")
    assert CRF.load(tmp_path / "m.crfit").l2_by_group == {"w": 50.0}
    same = CRF(l2=0.5, l2_by_group={"w": 0.5}, trainer="newton_cg", n_threads=1, stop=Stop(tol=1e-7)).fit(
        X, y
    )
    once = CRF(l2=0.5, trainer="newton_cg", n_threads=1, stop=Stop(tol=1e-7)).fit(X, y)
    assert same.result_.objective == pytest.approx(once.result_.objective, rel=1e-6)


def test_merging_and_old_weights_do_not_go_with_it():
    X, y = recipe_data(20, seed=1)
    data = Dataset.from_sequences(X, y)
    options = FitOptions(l2_by_group={"w": 2.0}, merge=True)
    with pytest.raises(OptionError, match="cannot be merged"):
        fit_dataset(data, options)
    old = fit_dataset(data).model
    with pytest.raises(OptionError, match="leave one of the two out"):
        fit_dataset(data, FitOptions(l2_by_group={"w": 2.0}), toward=old)
    with pytest.raises(CapabilityError, match="groups cannot share"):
        scaled(data, make_layout(data))[0].aggregated(np.arange(data.n_attributes))


def test_results_do_not_depend_on_threads():
    X, y = recipe_data(60, seed=1)
    data = Dataset.from_sequences(X, y)
    found = [
        fit_dataset(data, FitOptions(l2_by_group={"w": 9.0, "transitions": 0.1}, n_threads=n)).model.weights
        for n in (1, 2, 3)
    ]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
