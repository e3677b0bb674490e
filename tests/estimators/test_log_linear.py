"""LogLinear: the objective, every trainer, weights of items and classes; what it takes, and its models."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, log_softmax

import crfit
from crfit import Dataset, LogLinear, Stop, make_objective, trainers
from crfit.data.items import INTERCEPT, add_intercept, each_alone, from_rows, one_against_rest
from crfit.errors import CapabilityError, DataError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.model.predictor import log_probabilities
from crfit.training.callbacks import Callback
from fit_helpers import fit_dataset

TIGHT = Stop(grad_inf=1e-8)
quiet = pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")


def problem(n=60, n_features=7, n_classes=3, seed=0):
    """Counts that are not negative, so that every trainer takes them, half of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (n, n_features)).astype(float)
    scores = X @ rng.normal(size=(n_features, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def objective_of(X, y, coef, intercept, l2=1.0, weights=1.0, one_vs_rest=False):
    """F in its own words; `coef` and `intercept` as in scikit-learn."""
    scores = X @ np.atleast_2d(coef).T + intercept
    if one_vs_rest:
        signs = np.where(y[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        losses = -np.log(expit(signs * scores)).sum(axis=1)
    else:
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        losses = -log_softmax(scores, axis=1)[np.arange(len(y)), y]
    return float((weights * losses).sum() + 0.5 * l2 * np.square(coef).sum())


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_result_is_the_minimum_of_the_formula(n_classes, intercept, classes):
    X, y = problem(n_classes=n_classes)
    model = LogLinear(
        l2=0.7, classes=classes, fit_intercept=intercept != "none",
        penalize_intercept=intercept == "penalized", stop=TIGHT, n_threads=1,
    ).fit(X, y)  # fmt: skip
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
        name, classes=classes, penalize_intercept=not free,
        stop=Stop(max_iter=3000, grad_inf=1e-4) if name not in INEXACT else Stop(max_iter=40), n_threads=1,
    ).fit(X, y)  # fmt: skip
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
        ({"class_weight": {"x": 1.0}}, None, r"class_weight=.*\['x'\], which are not in y"),
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


@pytest.mark.parametrize(
    "form",
    [
        "csr", "csc", "coo", "lil", "array", "int64 indices", "integers", "float32", "fortran", "frame",
        "lists",
    ],
)  # fmt: skip
def test_every_form_of_a_matrix_gives_the_same_bits(form):
    pd = pytest.importorskip("pandas")
    X, y = problem()
    forms = {
        "csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "coo": sparse.coo_array, "lil": sparse.lil_matrix,
        "array": sparse.csr_array, "int64 indices": wide, "integers": lambda X: X.astype(np.int64),
        "float32": lambda X: X.astype(np.float32), "fortran": np.asfortranarray, "frame": pd.DataFrame,
        "lists": np.ndarray.tolist,
    }  # fmt: skip
    model, expected = LogLinear().fit(forms[form](X), y), LogLinear().fit(X, y)
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.predict(forms[form](X)), expected.predict(X))
    np.testing.assert_allclose(model.predict_proba(forms[form](X)), expected.predict_proba(X), rtol=1e-6)


def wide(X):
    matrix = sparse.csr_matrix(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def test_rows_without_zeros_are_read_as_others_are():
    X = np.random.default_rng(0).random((20, 3)) + 0.5
    dense, padded = from_rows(X, "abc"), from_rows(np.hstack([X, np.zeros((20, 1))]), "abcd")
    assert dense.attr_values is not None
    np.testing.assert_array_equal(dense.attr_values, padded.attr_values)
    np.testing.assert_array_equal(dense.attr_ids, padded.attr_ids)
    np.testing.assert_array_equal(dense.attr_ptr, padded.attr_ptr)


def test_csr_is_not_copied_and_ones_need_no_values():
    ones = sparse.random(50, 20, 0.2, "csr", random_state=0)
    ones.data[:] = 1.0
    data = from_rows(ones, [str(i) for i in range(20)])
    assert data.attr_values is None
    assert np.shares_memory(data.attr_ids, ones.indices)
    ones.data[-1] = 2.0
    data = from_rows(ones, [str(i) for i in range(20)])
    assert np.shares_memory(data.attr_values, ones.data)


def test_intercept_is_the_last_attribute_of_every_position():
    data = Dataset.from_sequences([[["a", "b"]], [[]], [{"a": 0.5}]], [["x"], ["y"], ["x"]])
    more = add_intercept(data)
    assert more.attribute_alphabet.strings() == ["a", "b", INTERCEPT]
    assert data.attribute_alphabet.strings() == ["a", "b"]
    assert more.attr_ptr.tolist() == [0, 3, 4, 6]
    assert more.attr_ids.tolist() == [0, 1, 2, 2, 0, 2]
    assert more.attr_values.tolist() == [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]
    assert add_intercept(more) is more


ITEMS = [["w=cheap", "w=pills"], {"w": "see", "n": 2.0}, ["w=cheap"], {"w=you": True, "n": 1.0}]


def test_items_by_name():
    model = LogLinear(l2=0.1).fit(ITEMS, ["spam", "ham", "spam", "ham"])
    assert model.feature_names_in_.tolist() == ["w=cheap", "w=pills", "w:see", "n", "w=you"]
    assert model.n_features_in_ == 5
    assert model.predict([["w=cheap", "w=new"], {"n": 3.0}]).tolist() == ["spam", "ham"]
    rows = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 2, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 1]], dtype=float)
    by_row = LogLinear(l2=0.1).fit(rows, ["spam", "ham", "spam", "ham"])
    np.testing.assert_allclose(model.coef_, by_row.coef_)
    np.testing.assert_allclose(model.predict_proba(ITEMS), by_row.predict_proba(rows))
    np.testing.assert_allclose(model.decision_function(ITEMS), by_row.decision_function(rows))


def test_arrays_of_items_are_items():
    array = np.empty(len(ITEMS), dtype=object)
    array[:] = ITEMS
    labels = ["spam", "ham", "spam", "ham"]
    listed, as_array = (LogLinear().fit(X, labels) for X in (ITEMS, array))
    np.testing.assert_array_equal(listed.coef_, as_array.coef_)
    assert list(as_array.predict(array)) == list(listed.predict(ITEMS))


def test_items_without_attributes_and_no_items():
    model = LogLinear().fit(ITEMS, ["spam", "ham", "spam", "ham"])
    assert model.predict([[], []]).tolist() == model.predict([{}, {}]).tolist()
    np.testing.assert_array_equal(model.predict_proba([[]]), model.predict_proba([{}]))
    assert model.predict([]).shape == (0,)
    with pytest.raises(ValueError, match="0 feature"):
        LogLinear().fit([[0.0], [1.0]], [0, 1]).predict([[]])


@pytest.mark.parametrize("trainer", ["auto", "lbfgs", "newton_cg", "bfgs", "clustered_lbfgs"])
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.filterwarnings("error")
def test_runs_without_an_optimum_end(trainer, device):
    """No penalty and classes that a number tells apart: the objective falls to 0 for ever."""
    rows = np.array([[1.0], [2.0], [3.0], [4.0]])
    limited = LogLinear(trainer, l2=0.0, device=device, stop=Stop(max_iter=300)).fit(rows, [0, 0, 1, 1])
    assert limited.n_iter_[0] < 300
    assert limited.score(rows, [0, 0, 1, 1]) == 1.0


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("labels", [["b", "a", "b", "a"], ["b", "a", "c", "a"]])
def test_datasets_of_one_position(labels, classes):
    data = Dataset.from_sequences([[item] for item in ITEMS], [[label] for label in labels])
    model, expected = (LogLinear(classes=classes).fit(data), LogLinear(classes=classes).fit(ITEMS, labels))
    assert model.classes_.tolist() == sorted(set(labels))
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.predict(data).tolist() == expected.predict(ITEMS).tolist()
    assert model.score(data) == expected.score(ITEMS, labels)
    np.testing.assert_allclose(model.predict_proba(data), expected.predict_proba(ITEMS), rtol=1e-12)


def test_bad_data_is_refused():
    long = Dataset.from_sequences([[["a"], ["b"]]], [["x", "y"]])
    with pytest.raises(DataError, match="one position"):
        LogLinear().fit(long)
    with pytest.raises(OptionError, match="y='given'"):
        LogLinear().fit(long.subset([]), ["x"])
    with pytest.raises(DataError, match="only one class, 'x'"):
        LogLinear().fit(ITEMS, ["x"] * 4)
    with pytest.raises(DataError, match="give one class per row"):
        LogLinear().fit(ITEMS, ["x", "y"])
    with pytest.raises(OptionError, match="y=None"):
        LogLinear().fit(ITEMS)
    with pytest.raises(DataError, match=r"\(intercept\).*rename"):
        LogLinear().fit([["(intercept)"], ["a"]], ["x", "y"])
    weighted = Dataset.from_sequences([[["a"]], [["b"]]], [["x"], ["y"]], sequence_weights=[1.0, 2.0])
    with pytest.raises(OptionError, match="sample_weight='given'"):
        LogLinear().fit(weighted, sample_weight=[1.0, 3.0])


@pytest.mark.parametrize(
    "y",
    [[3, 1, 2, 1], ["b", "a", "ü", "a"], [True, False, True, False], [0.5, 1.5, 2.5, 1.5], [-1, 1, 1, -1]],
)
def test_classes_are_sorted_and_keep_their_type(y):
    y = np.array(y) if not isinstance(y[0], float) else np.array([1.0, 2.0, 3.0, 2.0])
    model = LogLinear(l2=0.01).fit(np.eye(4), y)
    assert np.array_equal(model.classes_, np.unique(y))
    assert model.classes_.dtype == y.dtype
    assert np.array_equal(model.predict(np.eye(4)), y)
    assert model.model_.labels == [str(name) for name in np.unique(y).tolist()]


def test_long_sequences_become_items():
    data = Dataset.from_sequences([[["a"], ["b"]], [["c"]]], [["x", "y"], ["x"]], sequence_weights=[2.0, 3.0])
    alone = each_alone(data)
    assert alone.one_position
    assert alone.sequence_weights.tolist() == [2.0, 2.0, 3.0]
    assert each_alone(alone) is alone
    rest = one_against_rest(alone, 1)
    assert rest.labels.tolist() == [0, 1, 0]
    assert rest.attr_ids is not None
    assert np.shares_memory(rest.attr_ids, alone.attr_ids)


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_model_says_the_same_from_its_file(tmp_path, n_classes, classes, fit_intercept):
    X, y = problem(n=80, n_classes=n_classes)
    trained = LogLinear(classes=classes, fit_intercept=fit_intercept).fit(X, y)
    trained.model_.save(tmp_path / "m.crfit")
    items = [{str(j): float(v) for j, v in enumerate(row) if v} for row in X]
    rows = Dataset.from_dense(X, np.ones(len(y), dtype=int))
    for model in (
        trained.model_,
        crfit.load(tmp_path / "m.crfit"),
        pickle.loads(pickle.dumps(trained.model_)),
    ):
        assert model.task == "classify"
        assert model.classify(items) == [str(k) for k in trained.predict(X)]
        assert model.classify(rows) == model.classify(items)
        assert [model.tag([item])[0] for item in items[:5]] == model.classify(items[:5])
        expected = trained.predict_proba(X)
        np.testing.assert_allclose(model.marginals_dataset(rows), expected, atol=1e-13)
        found = model.probabilities(items)
        assert list(found[0]) == model.labels
        np.testing.assert_allclose([list(p.values()) for p in found], expected, atol=1e-13)
        np.testing.assert_allclose(list(model.marginals([items[0]])[0].values()), expected[0], atol=1e-13)
        scores = trained.decision_function(X)
        if n_classes == 2:
            scores = np.stack([np.zeros(len(y)), scores], axis=1)
        np.testing.assert_allclose(model.class_scores(rows), scores, atol=1e-12)


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_best_classes_and_their_probabilities(classes):
    X, y = problem(n_classes=3)
    model = LogLinear(classes=classes).fit(X, y).model_
    items = [{str(j): float(v) for j, v in enumerate(row) if v} for row in X[:5]]
    for item, chances in zip(items, model.probabilities(items), strict=True):
        ranked = sorted(chances.items(), key=lambda entry: -entry[1])
        found = model.nbest([item], 2)
        assert [labels for labels, _ in found] == [[name] for name, _ in ranked[:2]]
        np.testing.assert_allclose([p for _, p in found], [p for _, p in ranked[:2]], rtol=1e-12)
        for name, chance in chances.items():
            assert model.probability([item], [name]) == pytest.approx(chance, rel=1e-12)
    first, second = model.probabilities(items[:2])
    assert model.probability(items[:2], ["0", "1"]) == pytest.approx(first["0"] * second["1"], rel=1e-12)


def test_models_of_sequences_do_not_classify():
    data = Dataset.from_sequences([[["a"], ["b"]]], [["x", "y"]])
    objective = make_objective(data)
    model = crfit.Model.from_training(objective, np.ones(objective.n_weights))
    assert model.task == "tag"
    with pytest.raises(OptionError, match=r"task='tag'.*tag\(\)"):
        model.classify([["a"]])
    with pytest.raises(OptionError, match="task='parse'"):
        crfit.Model.from_training(objective, np.ones(objective.n_weights), options={"task": "parse"})


def test_probabilities_are_finite_for_any_scores():
    scores = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [800.0, 900.0, 1000.0]])
    for classes in ("multinomial", "one_vs_rest"):
        logs = log_probabilities(scores, classes)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(log_probabilities(np.array([-1e4, 0.0]), "multinomial"))[1], 0.5)


def test_held_out_items_are_scored():
    X, y = problem(n=120)
    data = Dataset.from_dense(X, np.ones(len(y), dtype=int), [[f"B-{k}"] for k in y])
    train, dev = data.split(0.7)
    for classes in ("multinomial", "one_vs_rest"):
        fit = fit_dataset(train, task="classify", classes=classes, dev=dev)
        assert fit.dev_scores.scheme == "tokens"  # B-1 is no span here
        right = np.mean(np.array(fit.model.tag_dataset(dev)) == dev.labels)
        assert fit.dev_scores.accuracy == pytest.approx(100 * right)
        assert fit.model.summary["dev"].keys() == {"accuracy", "macro_f1"}
    steps = fit_dataset(train, task="classify", dev=dev).result.history
    assert {"dev_accuracy", "dev_macro_f1"} <= steps[-1].extra.keys()


def test_rare_attributes_are_left_out():
    data = Dataset.from_sequences([[["a", "b"]], [["a"]], [["c"]]], [["x"], ["y"], ["x"]])
    fit = fit_dataset(data, task="classify", min_count=2)
    assert fit.model.attribute_alphabet.strings() == ["a", INTERCEPT]


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_models_know_what_was_rare(n_labels, classes):
    y = [["x"], ["y"], ["z" if n_labels == 3 else "x"]]
    data = Dataset.from_sequences([[["a", "b"]], [["a"]], [["c"]]], y)
    assert fit_dataset(data, task="classify", min_count=2, classes=classes).model.options["min_count"] == 2


def test_verbose_shows_each_iteration(capsys):
    X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]], [0, 0, 1, 2]
    LogLinear("lbfgs", stop=Stop(max_iter=3)).fit(X, y)
    assert capsys.readouterr().err == ""
    LogLinear("lbfgs", stop=Stop(max_iter=3), verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines[1:-1]] == [f"iter {k}" for k in range(4)]
    LogLinear("lbfgs", stop=Stop(max_iter=3), verbose=True, classes="one_vs_rest").fit(X, y)
    assert capsys.readouterr().err.count("max_iter after 3 iterations") == 3
    with pytest.raises(OptionError, match="verbose="):
        LogLinear(verbose=-1).fit(X, y)
