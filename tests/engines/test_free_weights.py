"""Unpenalised weights: the objective by enumeration, online steps by definition, what models keep."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from crfit import _native, vectors
from crfit.data import Dataset, tensor_file
from crfit.engines import make_objective
from crfit.engines.online import Adaptive, MetaDescent, Periodic, Rate, Transform
from crfit.errors import ModelFileError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.model import Model, load
from crfit.model.file import KIND
from crfit.trainers import LBFGS, NGD, PSA, SGD, SMD, AdaGrad, Aitken
from crfit.training.loop import train
from crfit.training.stopping import Stop
from free_weights import PROBLEMS, Classifier, chains, classifier, penalised, problem, with_intercept
from oracle import Enumeration, random_dataset

DEVICES = ["cpu", "reference"]
every_problem = pytest.mark.parametrize("name", PROBLEMS)
every_device = pytest.mark.parametrize("device", DEVICES)


def direction(layout, number=0):
    return np.random.default_rng([7, number]).normal(size=layout.n_weights)


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
        make_objective(data, layout, l2=2.0, device=device), direction(layout), direction(layout, 1), 1e-5,
    )  # fmt: skip
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
@every_device
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


@every_device
def test_what_is_met_on_the_way_counts_the_penalty_of_others(device):
    data = classifier(2)
    layout = classifier_layout(data, n_free=1)
    objective = make_objective(data, layout, l2=2.0, device=device)
    result = train(objective, SGD(epochs=3, eta0=0.1))
    last = result.history[-1].extra
    penalty = 0.5 * 2.0 * float(result.weights[:-1] @ result.weights[:-1])
    assert result.weights[-1] != 0.0
    assert last["online_objective"] - last["online_loss"] == pytest.approx(penalty, rel=1e-9)
