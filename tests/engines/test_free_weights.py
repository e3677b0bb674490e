"""Weights without a penalty: the objective by enumeration, what models keep of them."""

from __future__ import annotations

import numpy as np
import pytest

from crfit import _native, vectors
from crfit.data import Dataset, tensor_file
from crfit.engines import make_objective
from crfit.errors import ModelFileError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.model import Model, load
from crfit.model.file import KIND
from crfit.trainers import LBFGS
from crfit.training.loop import train
from free_weights import PROBLEMS, chains, classifier, penalised, problem
from oracle import Enumeration

DEVICES = ["cpu", "reference"]
every_problem = pytest.mark.parametrize("name", PROBLEMS)
every_device = pytest.mark.parametrize("device", DEVICES)


def direction(layout, number=0):
    return np.random.default_rng([7, number]).normal(size=layout.n_weights)


# --- layouts and data ------------------------------------------------------------------------------------


@every_problem
def test_free_weights_are_one_slice(name):
    layout = problem(name)[1]
    has_penalty = np.ones(layout.n_weights)
    has_penalty[layout.free] = 0.0
    np.testing.assert_array_equal(has_penalty, penalised(layout))


@pytest.mark.parametrize("n_free", [-1, 8, 1.5, True, "1"])
def test_a_wrong_number_of_free_attributes_is_refused(n_free):
    with pytest.raises(OptionError, match="n_free"):
        make_layout(chains(), n_free=n_free)
    with pytest.raises(OptionError, match="n_free"):
        chains().prune(2, n_free=n_free)


def test_the_core_refuses_more_free_attributes_than_there_are():
    with pytest.raises(ValueError, match="n_free"):
        _native.Layout(2, 1, 0, None, None, [None], None, None, False, 2)


def test_one_position():
    assert classifier(3).one_position
    assert not chains().one_position
    assert chains().subset([0]).one_position  # which has length 1


def test_two_labels_have_one_weight_for_each_attribute():
    data = classifier(2)
    layout = classifier_layout(data, n_free=1)
    assert layout.n_weights == data.n_attributes
    names = [layout.describe(i, data) for i in range(layout.n_weights)]
    assert [name.attribute for name in names] == list(data.attribute_alphabet)
    assert {name.labels for name in names} == {("y1",)}
    assert layout.free == slice(data.n_attributes - 1, data.n_attributes)


@pytest.mark.parametrize("n_labels", [1, 3])
def test_other_classifiers_have_all_weights(n_labels):
    data = classifier(n_labels)
    layout = classifier_layout(data)
    assert (layout.weights, layout.transitions, layout.n_free) == ("all", "none", 0)
    assert layout.n_weights == n_labels * data.n_attributes


def test_rare_attributes_go_and_free_ones_stay():
    X = [[["a", "rare"]], [["a"]], [["a", "b"]], [["b", "last"]]]
    data = Dataset.from_sequences(X, [["x"], ["y"], ["x"], ["y"]])
    names = list(data.attribute_alphabet)
    assert names[-1] == "last"
    assert list(data.prune(2).attribute_alphabet) == ["a", "b"]
    assert list(data.prune(2, n_free=1).attribute_alphabet) == ["a", "b", "last"]
    objective = make_objective(data, min_count=2, n_free=1)
    assert objective.layout.n_free == 1
    assert list(objective.dataset.attribute_alphabet) == ["a", "b", "last"]
    with pytest.raises(OptionError, match="n_free"):
        make_objective(data, objective.layout, n_free=2)


# --- the objective ---------------------------------------------------------------------------------------


@every_problem
@every_device
def test_objective_by_enumeration(name, device):
    data, layout = problem(name)
    l2, l1, w, v = 0.7, 0.3, direction(layout), direction(layout, 1)
    objective = make_objective(data, layout, l2=l2, l1=l1, device=device)
    there = penalised(layout)

    def by_definition(w):
        found = Enumeration(data, layout, w)
        value = found.loss() + 0.5 * l2 * there @ (w * w)
        return value, found.expected() - found.observed() + l2 * there * w

    value, g = by_definition(w)
    assert objective.value(w) == pytest.approx(value, rel=1e-12)
    found, gradient = objective.value_and_grad(w)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, g, rtol=1e-9, atol=1e-11)
    enumeration = Enumeration(data, layout, w)
    product = enumeration.hessian() @ v + l2 * there * v
    np.testing.assert_allclose(objective.hvp(v), product, rtol=1e-9, atol=1e-11)
    diagonal = enumeration.variance_diagonal() + l2 * there
    np.testing.assert_allclose(objective.hessian_diagonal(), diagonal, rtol=1e-9, atol=1e-12)
    along = objective.along(v)
    for step in (0.0, 0.4, -1.3):
        value, g = by_definition(w + step * v)
        assert along(step) == pytest.approx((value, g @ v), rel=1e-10)
    assert objective.l1_term(w) == pytest.approx(l1 * there @ np.abs(w), rel=1e-13)
    assert objective.full_value(w) == pytest.approx(objective.value(w) + objective.l1_term(w), rel=1e-14)


@every_problem
@every_device
def test_gradient_and_products_are_derivatives(name, device):
    data, layout = problem(name)
    objective, w, v, h = (
        make_objective(data, layout, l2=2.0, device=device),
        direction(layout),
        direction(layout, 1),
        1e-5,
    )
    slope = (objective.value(w + h * v) - objective.value(w - h * v)) / (2 * h)
    change = (objective.value_and_grad(w + h * v)[1] - objective.value_and_grad(w - h * v)[1]) / (2 * h)
    assert objective.value_and_grad(w)[1] @ v == pytest.approx(slope, rel=1e-7)
    np.testing.assert_allclose(objective.hvp(v), change, rtol=1e-6, atol=1e-7)


@every_device
def test_parts_of_the_data_add_up(device):
    data, layout = problem("chains, observed")
    objective, w = make_objective(data, layout, l2=0.7, device=device), direction(layout)
    value, g = objective.value_and_grad(w)
    parts = [objective.value_and_grad(w, subset=ids) for ids in ([0, 3], [1, 2, 4])]
    assert sum(part[0] for part in parts) == pytest.approx(value, rel=1e-13)
    assert sum(objective.value(w, subset=ids) for ids in ([0, 3], [1, 2, 4])) == pytest.approx(
        value, rel=1e-13
    )
    np.testing.assert_allclose(sum(part[1] for part in parts), g, rtol=1e-11, atol=1e-12)


def test_without_free_weights_nothing_changes():
    data, layout = problem("chains, none")
    assert layout.free.start == layout.free.stop
    objective = make_objective(data, layout, l2=0.7)
    w = direction(layout)
    value, g = objective.value_and_grad(w)
    loss, residual = make_objective(data, layout, l2=0.0).value_and_grad(w)
    assert value == pytest.approx(loss + 0.35 * w @ w, rel=1e-14)
    np.testing.assert_allclose(g, residual + 0.7 * w, rtol=1e-13)


# --- vectors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [slice(0, 0), slice(0, 3), slice(4, 9), slice(15, 20), slice(0, 20)])
def test_orthants_spare_free_weights(free):
    rng = np.random.default_rng(3)
    w, g, d = rng.normal(size=(3, 20))
    w[::3] = 0.0
    there = np.ones(20, dtype=bool)
    there[free] = False
    v, l1 = np.empty(20), 0.5
    expected = np.where(w != 0, g + l1 * np.sign(w), np.sign(g) * np.maximum(np.abs(g) - l1, 0.0))
    expected = np.where(there, expected, g)
    assert vectors.pseudo_gradient(w, g, l1, v, free) == np.count_nonzero(w)
    np.testing.assert_allclose(v, expected, rtol=1e-15)
    in_place = g.copy()
    vectors.pseudo_gradient(w, in_place, l1, in_place, free)
    np.testing.assert_array_equal(in_place, v)
    largest, norm = vectors.pseudo_gradient_norms(w, g, l1, free)
    assert (largest, norm) == (np.abs(v).max(), pytest.approx(np.linalg.norm(v), rel=1e-14))
    aligned = d.copy()
    slope = vectors.align(aligned, v, free)
    np.testing.assert_array_equal(aligned, np.where((d * v < 0) | ~there, d, 0.0))
    assert slope == pytest.approx(aligned @ v, rel=1e-13)
    out, moved = np.empty(20), w + 2.0 * aligned
    predicted = vectors.project_orthant(w, aligned, 2.0, v, out, free)
    orthant = np.where(w != 0, np.sign(w), -np.sign(v))
    np.testing.assert_allclose(out, np.where((moved * orthant > 0) | ~there, moved, 0.0), rtol=1e-15)
    assert predicted == pytest.approx(v @ (out - w), rel=1e-12)


def test_norms_of_a_pseudo_gradient_keep_what_is_not_finite():
    g = np.array([1.0, np.nan, 2.0, 3.0])
    assert all(np.isnan(vectors.pseudo_gradient_norms(np.zeros(4), g, 0.1, slice(1, 2))))
    assert all(np.isnan(vectors.pseudo_gradient_norms(np.zeros(4), g, 0.1, slice(2, 3))))


# --- models ----------------------------------------------------------------------------------------------


def trained(n_free=1, l1=2.0):
    data = classifier(3)
    objective = make_objective(data, classifier_layout(data, n_free=n_free), l1=l1, l2=0.1)
    return objective, train(objective, LBFGS())


def test_models_keep_free_weights(tmp_path):
    objective, result = trained()
    model = Model.from_training(objective, result)
    assert model.options["n_free"] == 1
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.layout.n_free == 1
    assert again.attribute_alphabet[len(again.attribute_alphabet) - 1] == "(intercept)"
    np.testing.assert_array_equal(again.weights, model.weights)
    header, tensors = tensor_file.read(tmp_path / "model", KIND, False)
    del header["layout"]["n_free"]
    tensor_file.write(tmp_path / "older", tensors, header)
    assert load(tmp_path / "older").layout.n_free == 0
    header["layout"]["n_free"] = 99
    tensor_file.write(tmp_path / "damaged", tensors, header)
    with pytest.raises(ModelFileError, match="n_free"):
        load(tmp_path / "damaged")


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_pruning_keeps_the_intercept(weights):
    data = classifier(3)
    layout = make_layout(data, weights=weights, transitions="none", n_free=1)
    w = np.zeros(layout.n_weights)
    w[1] = 2.0
    model = Model.from_training(make_objective(data, layout, l2=1.0), w)
    assert list(model.attribute_alphabet) == ["a0", "(intercept)"]
    assert model.layout.n_free == 1
    assert model.layout.free.stop - model.layout.free.start == 3
    assert model.weights.tolist() == ([0.0, 2.0, 0.0] if weights == "all" else [2.0]) + [0.0] * 3
