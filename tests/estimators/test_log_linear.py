"""LogLinear: the objective, every trainer, weights of items and classes."""

import numpy as np
import pytest
from scipy.special import expit

import crfit
from classifiers import TIGHT, objective_of, problem, quiet
from crfit import Dataset, LogLinear, Stop, make_objective, trainers
from crfit.errors import CapabilityError, DataError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.training.callbacks import Callback


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_result_is_the_minimum_of_the_formula(n_classes, intercept, classes):
    X, y = problem(n_classes=n_classes)
    model = LogLinear(
        l2=0.7,
        classes=classes,
        fit_intercept=intercept != "none",
        penalize_intercept=intercept == "penalized",
        stop=TIGHT,
        n_threads=1,
    ).fit(X, y)
    many = classes == "one_vs_rest" and n_classes > 2
    n_rows = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (n_rows, X.shape[1])
    assert model.intercept_.shape == (n_rows,)
    if intercept == "none":
        assert not model.intercept_.any()

    def value(coef, shift):
        penalty = 0.35 * np.square(shift).sum() if intercept == "penalized" else 0.0
        return objective_of(X, y, coef, shift, 0.7, one_vs_rest=many) + penalty

    best = value(model.coef_, model.intercept_)
    assert model.result_.objective == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(20):
        coef = model.coef_ + 1e-3 * rng.normal(size=model.coef_.shape)
        shift = model.intercept_ + (intercept != "none") * 1e-3 * rng.normal(size=n_rows)
        assert value(coef, shift) > best


def test_gradient_of_two_classes_is_that_of_the_logistic_function():
    X, y = problem(n_classes=2)
    data = Dataset.from_dense(X, np.ones(len(y), dtype=int), [["yes" if k else "no"] for k in y])
    assert data.label_alphabet.strings() == ["no", "yes"]
    objective = make_objective(data, classifier_layout(data), l2=0.3)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    value, gradient = objective.value_and_grad(w)
    # Labels +1 and -1: log(1 + exp(-y w.x)), the specification's f(x, -1) = 0.
    signs = np.where(y == 1, 1.0, -1.0)
    margins = signs * (X @ w)
    assert value == pytest.approx(np.logaddexp(0.0, -margins).sum() + 0.15 * w @ w, rel=1e-13)
    np.testing.assert_allclose(gradient, -X.T @ (signs * expit(-margins)) + 0.3 * w, rtol=1e-12, atol=1e-12)
    for j in range(3):
        step = 1e-5 * np.eye(len(w))[j]
        difference = (objective.value(w + step) - objective.value(w - step)) / 2e-5
        assert gradient[j] == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_two_classes_are_a_crf_of_length_one_with_tied_weights():
    """Weights v and -v of two labels have the scores of one vector 2 v, and |v|^2 twice is |2v|^2 / 2."""
    X, y = problem(n_classes=2)
    labels = [["a" if k else "b"] for k in y]
    lengths = np.ones(len(y), dtype=int)
    data = Dataset.from_dense(X, lengths, [["b"], ["a"], *labels[2:]])
    whole = make_objective(data, make_layout(data, weights="all", transitions="none"), l2=0.8)
    single = make_objective(data, classifier_layout(data), l2=0.4)
    v = np.random.default_rng(0).normal(size=X.shape[1])
    tied = np.stack([-v, v], axis=1).ravel()
    assert single.value(2 * v) == pytest.approx(whole.value(tied), rel=1e-12)
    best = crfit.train(whole, "lbfgs", stop=TIGHT).weights.reshape(-1, 2)
    model = LogLinear(l2=0.4, fit_intercept=False, stop=TIGHT).fit(X, ["a" if k else "b" for k in y])
    np.testing.assert_allclose(best[:, 0], -best[:, 1], atol=1e-7)
    sign = 1 if data.label_alphabet.strings()[1] == "b" else -1
    np.testing.assert_allclose(model.coef_[0], sign * (best[:, 1] - best[:, 0]), atol=1e-7)


#: Trainers that stop short of the optimum: rates, averages, or no objective at all.
INEXACT = {"sgd", "ngd", "adagrad", "smd", "psa", "aitken", "pa", "perceptron", "arow"}


@quiet
@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("name", trainers.names())
def test_every_trainer_trains(name, classes):
    X, y = problem(n_classes=3)
    free = name != "eg"  # which needs a penalty on every weight
    model = LogLinear(
        name,
        classes=classes,
        penalize_intercept=not free,
        stop=Stop(max_iter=3000, grad_inf=1e-6) if name not in INEXACT else Stop(max_iter=40),
        n_threads=1,
    ).fit(X, y)
    best = LogLinear(classes=classes, penalize_intercept=not free, stop=TIGHT, n_threads=1).fit(X, y)
    assert model.score(X, y) >= best.score(X, y) - 0.15
    if name not in INEXACT:
        assert model.result_.objective == pytest.approx(best.result_.objective, rel=1e-6)
        np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=1e-3)


def test_eg_says_what_to_do_about_a_free_intercept():
    with pytest.raises((CapabilityError, OptionError), match=r"intercept|free|penalty"):
        LogLinear("eg").fit(*problem())


def test_penalties_reach_the_trainer():
    X, y = problem(n=200, n_features=12, n_classes=3)
    sparse_model = LogLinear(l1=15.0, l2=0.0, stop=TIGHT).fit(X, y)
    assert 0 < np.count_nonzero(sparse_model.coef_) < sparse_model.coef_.size / 2
    assert sparse_model.intercept_.any()  # no penalty holds it
    assert LogLinear(l2=100.0).fit(X, y).coef_.std() < 0.5 * LogLinear(l2=1.0).fit(X, y).coef_.std()
    # What has no weight has left the model, which says the same.
    rows = Dataset.from_dense(X, np.ones(len(y), dtype=int))
    np.testing.assert_allclose(
        sparse_model.model_.marginals_dataset(rows), sparse_model.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_number_of_threads_changes_no_bit(classes):
    X, y = problem(n=300, n_classes=4)
    one, two = (LogLinear(classes=classes, n_threads=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.intercept_, two.intercept_)


def test_one_vs_rest_is_each_class_against_the_rest():
    X, y = problem(n=150, n_classes=4)
    together = LogLinear(classes="one_vs_rest", stop=TIGHT).fit(X, y)
    assert len(together.results_) == 4
    assert together.n_iter_.shape == (4,)
    for k in range(4):
        alone = LogLinear(stop=TIGHT).fit(X, y == k)
        assert np.array_equal(alone.classes_, [False, True])
        np.testing.assert_allclose(together.coef_[k], alone.coef_[0], atol=1e-7)
        np.testing.assert_allclose(together.intercept_[k], alone.intercept_[0], atol=1e-7)
        np.testing.assert_allclose(together.decision_function(X)[:, k], alone.decision_function(X), atol=1e-6)
    chances = expit(together.decision_function(X))
    np.testing.assert_allclose(
        together.predict_proba(X), chances / chances.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert together.result_.objective == pytest.approx(sum(r.objective for r in together.results_))


def test_callbacks_see_one_class_after_the_other():
    runs = []

    class Notes(Callback):
        def on_start(self, run):
            runs.append(run.objective.dataset.label_alphabet.strings())

    X, y = problem(n_classes=3)
    LogLinear(classes="one_vs_rest", callbacks=[Notes()], n_threads=2).fit(X, y)
    assert runs == [["(rest)", "0"], ["(rest)", "1"], ["(rest)", "2"]]


def test_failure_of_one_class_is_told():
    class Fails(Callback):
        def on_start(self, run):
            raise RuntimeError("no")

    X, y = problem(n_classes=3)
    with pytest.raises(RuntimeError, match="no"):
        LogLinear(classes="one_vs_rest", callbacks=[Fails()]).fit(X, y)
    with pytest.raises(DataError, match="negative"):
        LogLinear("gis", classes="one_vs_rest", n_threads=2).fit(-X, y)


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_sample_weights_are_repetitions(classes):
    X, y = problem()
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weights[:3] = 1
    settings = {"classes": classes, "stop": TIGHT, "n_threads": 1}
    weighted = LogLinear(**settings).fit(X, y, sample_weight=weights)
    repeated = LogLinear(**settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


def test_items_without_weight_are_left_out_to_the_last_bit():
    X, y = problem(n_classes=3)
    kept = np.flatnonzero(np.arange(len(y)) % 3)
    weights = np.zeros(len(y))
    weights[kept] = 1.0
    given = LogLinear().fit(X, y, sample_weight=weights)
    assert np.array_equal(given.coef_, LogLinear().fit(X[kept], y[kept]).coef_)
    only_two = LogLinear().fit(X, y, sample_weight=(y != 1).astype(float))
    assert only_two.classes_.tolist() == [0, 2]


def test_class_weights_multiply_sample_weights():
    X, y = problem(n_classes=3)
    weights = np.random.default_rng(0).random(len(y))
    counts = np.bincount(y, weights)
    factors = weights.sum() / (3 * counts)
    balanced = LogLinear(class_weight="balanced", stop=TIGHT).fit(X, y, sample_weight=weights)
    plain = LogLinear(stop=TIGHT).fit(X, y, sample_weight=weights * factors[y])
    np.testing.assert_allclose(balanced.coef_, plain.coef_, atol=1e-12)
    named = LogLinear(class_weight={0: 2.0, 2: 0.5}, stop=TIGHT).fit(X, y)
    plain = LogLinear(stop=TIGHT).fit(X, y, sample_weight=np.array([2.0, 1.0, 0.5])[y])
    np.testing.assert_allclose(named.coef_, plain.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "weights", "message"),
    [
        ({"class_weight": "even"}, None, "class_weight='even'.*balanced"),
        ({"class_weight": {"x": 1.0}}, None, r"class_weight=.*\['x'\] are not in y"),
        ({"class_weight": {0: -1.0}}, None, "class_weight=.*not negative"),
        ({}, [1.0], "sample_weight=.*give 60"),
        ({}, np.full(60, -1.0), "sample_weight=-1.0.*not negative"),
        ({}, np.zeros(60), "sample_weight=0.0.*zero"),
        ({}, "many", "sample_weight='str'.*numbers"),
        ({"classes": "ovr"}, None, "classes='ovr'.*'multinomial' or 'one_vs_rest'"),
        ({"fit_intercept": "no"}, None, "fit_intercept='no'.*True or False"),
        ({"penalize_intercept": 2}, None, "penalize_intercept=2.*True or False"),
        ({"l2": -1.0}, None, "l2=-1.0"),
        ({"trainer": "newton"}, None, "trainer='newton'"),
        ({"n_threads": 0}, None, "n_threads=0"),
        ({"device": "abacus"}, None, "device='abacus'"),
    ],
)
def test_bad_options_are_named(settings, weights, message):
    X, y = problem()
    with pytest.raises(OptionError, match=message):
        LogLinear(**settings).fit(X, y, sample_weight=weights)
