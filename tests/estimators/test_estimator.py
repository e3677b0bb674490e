"""CRF as an estimator: its data, its predictions, and its life inside scikit-learn."""

import copy
import inspect
import pickle
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.errors import CrfitError, DataError, OptionError
from crfit.estimators import CRF, NotFittedError
from crfit.estimators.sklearn_api import seed_from
from crfit.evaluation import evaluate
from crfit.fit import FitOptions
from crfit.layout import make_layout
from crfit.threads import resolve_threads
from crfit.trainers import LBFGS, SGD
from crfit.training.callbacks import EarlyStopping, JsonLines, ProgressBar
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason

QUICK = Stop(max_iter=6)


@pytest.fixture(scope="module")
def recipes() -> tuple[list, list]:
    return recipe_data(60, seed=3)


@pytest.fixture(scope="module")
def fitted(recipes) -> CRF:
    return CRF(stop=QUICK, n_threads=1).fit(*recipes)


def as_dicts(X: list) -> list:
    return [[dict.fromkeys(item, True) for item in x] for x in X]


def as_objects(lists: list) -> np.ndarray:
    array = np.empty(len(lists), dtype=object)
    array[:] = lists
    return array


def test_constructor_is_the_documented_one():
    expected = (
        "(trainer='auto', l2=None, l1=0.0, order=1, weights='observed', transitions='all', boundary=False, "
        "min_count=0, n_threads=None, device='cpu', stop=None, callbacks=(), random_state=0, "
        "merge='auto', scheme='auto', scheme_in_training=False, class_weight=None, costs=None, "
        "l2_by_group=None, features=None, warm_start=None, toward=None, verbose=False)"
    )
    signature = inspect.signature(CRF)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)) == expected


def test_defaults_are_those_of_the_parts():
    ours = inspect.signature(CRF).parameters
    for part in (make_layout, make_objective, FitOptions):
        theirs = inspect.signature(part).parameters
        # The default of l2 depends on the trainer, which an objective knows nothing about.
        others = [name for name in theirs if theirs[name].default is not None]
        others = [name for name in others if name not in ("l2", "trainer")]  # an instance in FitOptions
        shared = [name for name in ours if name in others]
        assert len(shared) >= 3
        for name in shared:
            assert theirs[name].default == ours[name].default, name


def test_fit_minimises_the_documented_function(recipes):
    crf = CRF(l2=0.7, weights="all", boundary=True, stop=Stop(grad_inf=1e-4))
    assert crf.fit(*recipes) is crf
    objective = make_objective(Dataset.from_sequences(*recipes), l2=0.7, weights="all", boundary=True)
    best = train(objective, "lbfgs", stop=Stop(grad_inf=1e-4))
    assert crf.result_.objective == pytest.approx(best.objective, rel=1e-9)
    assert crf.n_iter_ == crf.result_.iterations > 0


def test_every_parameter_reaches_the_training(recipes, fitted, monkeypatch):
    caught = {}

    def fit_dataset(dataset, options, **given):
        caught.update(vars(options) | given)
        raise KeyboardInterrupt

    monkeypatch.setattr("crfit.estimators.crf.fit_dataset", fit_dataset)
    params = {name: object() for name in CRF().get_params(deep=False)}
    params |= {"n_threads": 1, "trainer": "sgd", "random_state": 8, "verbose": 0, "features": None}
    params |= {"warm_start": fitted.model_, "toward": fitted.model_}
    with pytest.raises(KeyboardInterrupt):
        CRF(**params).fit(*recipes)
    params |= {"trainer": SGD(seed=8), "seed": params.pop("random_state")}
    params["init"] = params.pop("warm_start")
    del params["verbose"], params["features"]  # the dataset has the features
    assert caught == {**vars(FitOptions()), **params, "dev": None}


def test_fitted_attributes(fitted, recipes):
    seen = list(dict.fromkeys(label for y in recipes[1] for label in y))
    assert fitted.classes_ == seen
    assert fitted.n_iter_ == 6
    assert fitted.result_.reason is StopReason.MAX_ITER
    assert set(fitted.attributes_) <= {a for x in recipes[0] for item in x for a in item}


@pytest.mark.parametrize("form", [list, tuple, as_objects, as_dicts, iter], ids=lambda form: form.__name__)
def test_data_may_come_in_many_forms(fitted, recipes, form):
    X, y = recipes
    expected = fitted.predict(X)
    crf = clone(fitted).fit(form(X), as_objects(y) if form is as_objects else y)
    np.testing.assert_array_equal(crf.result_.weights, fitted.result_.weights)
    assert crf.predict(form(X)) == expected
    assert type(crf.predict(form(X[:2]))[0]) is list
    assert {type(label) for labels in crf.predict(form(X)) for label in labels} == {str}


def test_sequences_of_equal_length_as_a_two_dimensional_array():
    X = [[["a"], ["b"]], [["b"], ["a"]], [["a"], ["a"]]]
    y = [["A", "B"], ["B", "A"], ["A", "A"]]
    items = np.empty((3, 2), dtype=object)
    for i, x in enumerate(X):
        for t, item in enumerate(x):
            items[i, t] = item
    crf = CRF(l2=0.1).fit(items, np.array(y))
    assert crf.predict(items) == CRF(l2=0.1).fit(X, y).predict(X) == y


def test_datasets_of_lists_and_matrices(recipes):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = recipes
    lists = CRF(stop=QUICK).fit(X, y)
    data = Dataset.from_sequences(X, y)
    matrix = sparse.csr_matrix(
        (np.ones(data.n_occurrences), data.attr_ids, data.attr_ptr), shape=(data.n_tokens, data.n_attributes)
    )
    from_csr = Dataset.from_csr(matrix, data.lengths, y)
    from_dense = Dataset.from_dense(matrix.toarray(), data.lengths, y)
    for dataset in (data, from_csr, from_dense):
        crf = CRF(stop=QUICK).fit(dataset)
        assert crf.result_.objective == pytest.approx(lists.result_.objective, rel=1e-9)
        assert crf.predict(dataset) == lists.predict(X)
        assert crf.score(dataset) == pytest.approx(lists.score(X, y))
        for a, b in zip(crf.predict_marginals(dataset), lists.predict_marginals(X), strict=True):
            assert a[0] == pytest.approx(b[0], rel=1e-6)
        (paths, *_), (expected, *_) = crf.predict_nbest(dataset, 2), lists.predict_nbest(X, 2)
        assert [labels for labels, _ in paths] == [labels for labels, _ in expected]


def test_predictions_of_a_dataset_with_other_alphabets(fitted, recipes):
    X, y = recipes
    turned = Dataset.from_sequences(X[::-1], y[::-1])
    assert fitted.predict(turned) == fitted.predict(X)[::-1]
    assert fitted.predict(Dataset.from_sequences(X)) == fitted.predict(X)


def test_marginals_and_best_paths_belong_together(fitted, recipes):
    X, _ = recipes
    for x, marginals, paths in zip(
        X[:10], fitted.predict_marginals(X[:10]), fitted.predict_nbest(X[:10], 3), strict=True
    ):
        assert len(marginals) == len(x)
        for position in marginals:
            assert list(position) == fitted.classes_
            assert sum(position.values()) == pytest.approx(1.0)
        assert paths[0][0] == fitted.predict([x])[0]
        probabilities = [p for _, p in paths]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1.0 + 1e-12
        assert paths[0][1] <= min(
            position[label] for position, label in zip(marginals, paths[0][0], strict=True)
        )


@pytest.mark.parametrize("kind", ["lists", "dataset", "iterators"])
def test_probabilities_are_the_marginals_as_arrays(fitted, recipes, kind):
    X, y = recipes
    forms = {"lists": X, "dataset": Dataset.from_sequences(X, y), "iterators": (iter(x) for x in X)}
    found = fitted.predict_proba(forms[kind])
    assert [table.shape for table in found] == [(len(x), len(fitted.classes_)) for x in X]
    for table, marginals in zip(found, fitted.predict_marginals(X), strict=True):
        assert [dict(zip(fitted.classes_, row, strict=True)) for row in table.tolist()] == marginals


@pytest.mark.parametrize("verbose", [True, 1, 2, np.True_])
def test_verbose_shows_each_iteration(recipes, capsys, verbose):
    crf = CRF("lbfgs", stop=Stop(max_iter=4), verbose=verbose)
    crf.fit(*recipes)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines[1:-1]] == [f"iter {k}" for k in range(5)]
    assert lines[-1].startswith("max_iter after 4 iterations")
    crf.set_params(callbacks=[ProgressBar(every_seconds=1000)]).fit(*recipes)
    assert capsys.readouterr().err.count("lbfgs: ") == 1, "the bar of the user is enough"


def test_silent_unless_verbose(recipes, capsys):
    for verbose in (False, 0):
        CRF(stop=QUICK, verbose=verbose).fit(*recipes)
    assert capsys.readouterr() == ("", "")
    for wrong in (-1, "yes", 0.5, None):
        with pytest.raises(OptionError, match="verbose="):
            CRF(stop=QUICK, verbose=wrong).fit(*recipes)


def test_single_sequences(fitted, recipes):
    x = recipes[0][0]
    assert fitted.predict_single(x) == fitted.predict([x])[0]
    assert fitted.predict_marginals_single(x) == fitted.predict_marginals([x])[0]


def test_nothing_and_empty_sequences_can_be_predicted(fitted, recipes):
    assert fitted.predict([]) == []
    assert fitted.predict_marginals([]) == []
    assert fitted.predict_nbest([], 3) == fitted.predict_proba([]) == []
    assert [len(table) for table in fitted.predict_proba([[], recipes[0][0], []])] == [
        0,
        len(recipes[0][0]),
        0,
    ]
    assert fitted.predict([recipes[0][0], []])[1] == []


def test_score_is_the_share_of_right_labels(fitted, recipes):
    X, y = recipes
    right = [
        a == b
        for gold, guess in zip(y, fitted.predict(X), strict=True)
        for a, b in zip(gold, guess, strict=True)
    ]
    assert fitted.score(X, y) == pytest.approx(np.mean(right))
    assert fitted.score(X, y) == pytest.approx(evaluate(y, fitted.predict(X)).accuracy / 100)
    wrong = [["NEVER"] * len(labels) for labels in y]
    assert fitted.score(X, wrong) == 0.0
    halves = [gold if i % 2 else bad for i, (gold, bad) in enumerate(zip(y, wrong, strict=True))]
    odd = np.arange(len(X)) % 2
    assert fitted.score(X, halves, sample_weight=odd) == pytest.approx(fitted.score(X[1::2], y[1::2]))


def test_sample_weights_count_sequences(recipes):
    X, y = recipes
    stop = Stop(grad_inf=1e-5)
    twice = CRF(stop=stop).fit([*X, *X[:20]], [*y, *y[:20]])
    weighted = CRF(stop=stop).fit(X, y, sample_weight=[2] * 20 + [1] * 40)
    assert weighted.result_.objective == pytest.approx(twice.result_.objective, rel=1e-8)
    dataset = Dataset.from_sequences(X, y)
    again = CRF(stop=stop).fit(dataset, sample_weight=[2] * 20 + [1] * 40)
    assert again.result_.objective == pytest.approx(twice.result_.objective, rel=1e-8)


@pytest.mark.parametrize("kind", ["lists", "dataset"])
def test_dev_is_scored_each_iteration_and_stops_early(recipes, kind):
    dev = recipe_data(30, seed=4)
    crf = CRF(l2=0.01, stop=Stop(max_iter=60, grad_inf=0.0), min_count=2, callbacks=[EarlyStopping(3)])
    crf.fit(*recipes, dev=dev if kind == "lists" else Dataset.from_sequences(*dev))
    scores = [p.extra for p in crf.result_.history[1:]]
    assert all({"dev_f1", "dev_accuracy", "dev_sequence_accuracy"} <= set(extra) for extra in scores)
    assert crf.result_.reason is StopReason.HELD_OUT
    best = max(extra["dev_f1"] for extra in scores)
    assert evaluate(dev[1], crf.predict(dev[0])).f1 == pytest.approx(best)


def test_weights_by_name(recipes):
    crf = CRF(stop=QUICK, l1=0.3, weights="all").fit(*recipes)
    objective = make_objective(Dataset.from_sequences(*recipes), weights="all")
    expected = {}
    for k in np.flatnonzero(crf.result_.weights):
        feature = objective.layout.describe(int(k), objective.dataset)
        key = feature.labels if feature.attribute is None else (feature.attribute, *feature.labels)
        expected[key] = crf.result_.weights[k]
    assert {**crf.state_features_, **crf.transition_features_} == expected
    assert len(crf.state_features_) > 100
    assert all(len(key) == 2 for key in crf.transition_features_)


def test_weights_by_name_of_observed_features_and_second_order():
    X, y = [[["a", "b"], ["c"], ["a"]], [["b"], ["c"], ["c"]]], [["A", "B", "A"], ["B", "A", "A"]]
    crf = CRF(order=2, device="reference", stop=QUICK).fit(X, y)
    assert set(crf.state_features_) == {("a", "A"), ("b", "A"), ("b", "B"), ("c", "A"), ("c", "B")}
    assert {len(key) for key in crf.transition_features_} == {2, 3}
    assert crf.transition_features_["B", "A", "A"] > crf.transition_features_["B", "A", "B"]


def test_second_order_predicts_without_a_warning():
    X, y = [[["a", "b"], ["c"], ["a"]], [["b"], ["c"], ["c"]]], [["A", "B", "A"], ["B", "A", "A"]]
    crf = CRF(order=2, device="reference", l2=0.1).fit(X, y)
    assert crf.predict(X) == y
    assert crf.score(X, y) == 1.0


# What is refused, and how it is said


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["a"], ["b"]], [["A"], ["B"]], r"sequence 0, position 0: .*one sequence x is given as \[x\]"),
        ([{"w": "a"}, {"w": "b"}], ["A", "B"], r"one sequence x is given as \[x\]"),
        ([[["a"]], [["a"], ["b"]]], [["A"], ["A"]], "sequence 1: y has 1 labels and X has 2 positions"),
        (
            [[["a"]], [["a"], ["b"]]],
            [["A"], ["A", set()]],
            "sequence 1, position 1: the set of labels is empty",
        ),
        (
            [[["a"]], [["a"], ["b"]]],
            [["A"], ["A", {"B", None}]],
            "sequence 1, position 1: a set of labels must hold str",
        ),
        ([[["a"]], [["a"], ["b"]]], [1, [1, 2]], "sequence 0: the labels of a sequence must be a list"),
        ([[["a"], ["b"]]], ["AB"], "sequence 0: the labels of a sequence must be a list"),
        ([[["a"]]], [["A"], ["B"]], "y has 2 sequences and X has 1"),
        ([[["a"]], []], [["A"], []], "sequence 1: the sequence is empty"),
        ([], [], "the training data is empty"),
        ([[["a"]]], None, "y=None: give one list of labels"),
        (np.eye(3), [["A", "B", "C"]], "Dataset.from_dense"),
    ],
)
def test_bad_data_is_refused_with_its_place(X, y, message):
    with pytest.raises((DataError, OptionError), match=message):
        CRF().fit(X, y)


def test_bad_data_at_prediction(fitted):
    with pytest.raises(DataError, match=r"one sequence x is given as \[x\]"):
        fitted.predict([["a"], ["b"]])
    with pytest.raises(DataError, match="from_dense"):
        fitted.predict(np.eye(3))
    with pytest.raises(DataError, match="at least one sequence to score"):
        fitted.score([], [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": [[["a"], ["b", "c"]], [["a"]]]}, r"held-out data goes to dev=\(X_dev, y_dev\)"),
        ({"sample_weight": [1.0]}, "1 entries: give 60, one for each sequence"),
        ({"sample_weight": [-1.0] * 60}, "sequence 0: the sequence weight is -1.0"),
        ({"dev": [1]}, r"dev='list': give a pair \(X, y\)"),
        ({"dev": ([[["a"]]], [["A", "B"]])}, "sequence 0: y has 2 labels and X has 1 positions"),
    ],
)
def test_bad_arguments_of_fit(recipes, given, message):
    with pytest.raises((DataError, OptionError), match=message):
        CRF().fit(*recipes, **given)


def test_a_dataset_comes_with_its_labels_and_weights(recipes):
    data = Dataset.from_sequences(*recipes, sequence_weights=np.ones(60))
    with pytest.raises(OptionError, match="leave y out"):
        CRF().fit(data, recipes[1])
    with pytest.raises(OptionError, match="leave one out"):
        CRF().fit(data, sample_weight=np.ones(60))
    with pytest.raises(DataError, match="no labels"):
        CRF().fit(Dataset.from_sequences(recipes[0]))


def test_options_are_checked_by_fit_and_not_before(recipes):
    crf = CRF(trainer="nonsense", l2=-1, order="x", random_state="x")
    assert crf.get_params()["l2"] == -1
    with pytest.raises(OptionError):
        crf.fit(*recipes)
    for name, value in (
        ("l2", -1.0), ("min_count", -2), ("stop", 5), ("device", "abacus"), ("random_state", -1),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=name):
            CRF(**{name: value}).fit(*recipes)


def test_not_fitted_is_an_error_of_both_libraries():
    crf = CRF()
    calls = [
        lambda: crf.predict([]), lambda: crf.predict_single([]), lambda: crf.predict_marginals([]),
        lambda: crf.predict_marginals_single([]), lambda: crf.predict_nbest([], 2), lambda: crf.score([], []),
        lambda: crf.state_features_,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(NotFittedError, match="call fit") as caught:
            call()
        assert isinstance(caught.value, SklearnNotFittedError)
        assert isinstance(caught.value, CrfitError)
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(crf)


def test_a_failed_fit_leaves_the_estimator_as_it_was(fitted, recipes):
    crf = copy.deepcopy(fitted)
    with pytest.raises(DataError):
        crf.fit(recipes[0], recipes[1][:-1])
    assert crf.predict(recipes[0]) == fitted.predict(recipes[0])


# Parameters


@pytest.mark.parametrize(
    "check",
    [
        "parameters_default_constructible", "no_attributes_set_in_init", "get_params_invariance",
        "set_params", "estimator_repr", "estimator_cloneable", "valid_tag_types",
        "do_not_raise_errors_in_init_or_set_params", "mixin_order",
    ],
)  # fmt: skip
@pytest.mark.parametrize("crf", [CRF(), CRF(trainer=LBFGS(memory=4), stop=QUICK)], ids=["plain", "nested"])
def test_checks_of_scikit_learn(check, crf):
    getattr(estimator_checks, f"check_{check}")("CRF", crf)


def test_options_of_options_can_be_read_and_set():
    crf = CRF(trainer=LBFGS(memory=20), stop=Stop(max_iter=5))
    params = crf.get_params()
    assert (params["trainer__memory"], params["stop__max_iter"]) == (20, 5)
    assert "trainer__memory" not in crf.get_params(deep=False)
    before = crf.trainer
    assert crf.set_params(trainer__memory=7, l2=3.0, stop__grad_inf=0.1) is crf
    assert crf.trainer == LBFGS(memory=7)
    assert crf.stop == Stop(max_iter=5, grad_inf=0.1)
    assert crf.l2 == 3.0
    assert before == LBFGS(memory=20)


def test_options_of_options_that_are_not_there_yet():
    crf = CRF().set_params(trainer="lbfgs", trainer__memory=7, stop__max_iter=5)
    assert crf.trainer == LBFGS(memory=7)
    assert crf.stop == Stop(max_iter=5)


@pytest.mark.parametrize(
    "params", [{"c2": 1.0}, {"trainer__c9": 1}, {"l2__x": 1}, {"trainer__memory": 0, "trainer": "lbfgs"}]
)
def test_unknown_parameters_are_refused(params):
    with pytest.raises(ValueError):
        CRF().set_params(**params)


def test_clones_are_equal_and_independent(fitted, recipes):
    crf = CRF(trainer=LBFGS(memory=4), stop=QUICK, callbacks=[EarlyStopping(2, "objective")])
    other = clone(crf)
    assert other.trainer == crf.trainer
    assert other.callbacks is not crf.callbacks
    assert other.callbacks[0] is not crf.callbacks[0]
    assert other.callbacks[0].patience == 2
    assert not hasattr(clone(fitted), "model_")


def test_callbacks_can_be_cloned_and_pickled_after_a_run(recipes, tmp_path):
    crf = CRF(stop=QUICK, callbacks=[JsonLines(tmp_path / "log.jsonl"), EarlyStopping(), ProgressBar()])
    crf.fit(*recipes, dev=recipes)
    assert clone(crf).fit(*recipes, dev=recipes).n_iter_ == 6
    assert pickle.loads(pickle.dumps(crf)).predict(recipes[0]) == crf.predict(recipes[0])


def test_errors_come_back_from_other_processes(recipes):
    search = GridSearchCV(CRF(n_threads=1), {"l2": [-1.0, -2.0]}, cv=2, n_jobs=2, error_score="raise")
    with pytest.raises(OptionError, match="l2=-"):
        search.fit(*recipes)


def test_pickles_of_the_fitted_and_the_unfitted(fitted, recipes):
    crf = CRF(trainer=LBFGS(memory=4), stop=QUICK, l2=0.3)
    assert pickle.loads(pickle.dumps(crf)).get_params() == crf.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict_marginals(recipes[0]) == fitted.predict_marginals(recipes[0])
    assert again.result_.reason is fitted.result_.reason
    assert again.classes_ == fitted.classes_


def test_repr_shows_what_was_changed():
    assert repr(CRF(l2=0.5, trainer=LBFGS(memory=4))).startswith("CRF(l2=0.5")
    assert "<" in CRF()._repr_html_()


def test_notebooks_show_the_diagram_and_the_model(monkeypatch):
    import sklearn

    crf = CRF(l2=0.5)
    before = crf._repr_html_()
    assert "sk-" in before  # scikit-learn's diagram
    assert "Strongest attributes" not in before
    crf.fit([[["<script>alert(1)</script>", "b\x1b"], ["c"]]], [["A", "B"]])
    for text in (crf._repr_html_(), crf._repr_mimebundle_()["text/html"]):
        assert "sk-" in text
        assert text.count("Strongest attributes") == 1
        assert "&lt;script&gt;alert(1)" in text
        assert "<script>alert" not in text
        assert "\x1b" not in text
    assert crf._repr_mimebundle_()["text/plain"] == repr(crf)
    with sklearn.config_context(display="text"):
        assert not hasattr(crf, "_repr_html_")
        assert "text/html" not in crf._repr_mimebundle_()
    own = crf.model_._repr_html_()
    for words in ("3 attributes", "2: A, B", "l2 0.5", "newton_cg"):
        assert words in own


def test_random_states():
    assert seed_from(5) == 5
    assert seed_from(np.int64(5)) == 5
    assert seed_from(np.random.RandomState(1)) == seed_from(np.random.RandomState(1))
    generator = np.random.default_rng(1)
    assert seed_from(generator) != seed_from(generator)
    assert seed_from(None) >= 0
    for wrong in (-1, "x", 1.5, True):
        with pytest.raises(OptionError, match="random_state"):
            seed_from(wrong)


# Inside scikit-learn


def test_cross_validation_of_ragged_lists(recipes):
    X, y = recipes
    crf = CRF(stop=QUICK, n_threads=1)
    scores = cross_val_score(crf, X, y, cv=3, error_score="raise")
    folds = KFold(3).split(X)
    expected = [
        clone(crf).fit([X[i] for i in a], [y[i] for i in a]).score([X[i] for i in b], [y[i] for i in b])
        for a, b in folds
    ]
    assert scores == pytest.approx(expected)
    np.testing.assert_array_equal(
        cross_val_score(crf, as_objects(X), as_objects(y), cv=3, error_score="raise"), scores
    )
    train_X, test_X, train_y, test_y = train_test_split(X, y, random_state=0)
    assert 0 < crf.fit(train_X, train_y).score(test_X, test_y) <= 1


def test_grid_search_over_options_and_their_options(recipes):
    grid = {"l2": [0.1, 100.0], "trainer": [LBFGS(memory=3), "lbfgs"], "stop__max_iter": [3]}
    search = GridSearchCV(CRF(n_threads=1), grid, cv=2, error_score="raise").fit(*recipes)
    assert search.best_params_["l2"] == 0.1
    assert search.best_estimator_.n_iter_ == 3
    assert search.predict(recipes[0][:2])[0] == search.best_estimator_.predict(recipes[0][:1])[0]


def test_search_in_parallel_processes(recipes):
    grid = {"trainer__memory": [2, 5]}
    search = GridSearchCV(
        CRF("lbfgs", stop=QUICK, n_threads=1), grid, cv=2, n_jobs=2, error_score="raise"
    ).fit(*recipes)
    assert search.best_estimator_.trainer.memory in (2, 5)


def test_pipeline_with_sample_weights_and_dev(recipes):
    X, y = recipes
    words = [[item[0] for item in x] for x in X]
    pipeline = Pipeline(
        [
            ("attributes", FunctionTransformer(lambda X: [[[w, w[:4]] for w in x] for x in X])),
            ("crf", CRF(stop=QUICK)),
        ]
    )
    pipeline.set_params(crf__l2=0.5, crf__trainer="lbfgs", crf__trainer__memory=5)
    weights = np.linspace(0.5, 2, 60)
    dev = ([[[w, w[:4]] for w in x] for x in words[:5]], y[:5])
    pipeline.fit(words, y, crf__sample_weight=weights, crf__dev=dev)
    crf = CRF(stop=QUICK, l2=0.5, trainer=LBFGS(memory=5))
    crf.fit([[[w, w[:4]] for w in x] for x in words], y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline["crf"].result_.weights, crf.result_.weights)
    assert "dev_f1" in pipeline["crf"].result_.scores
    assert pipeline.score(words, y) == pytest.approx(
        pipeline["crf"].score([[[w, w[:4]] for w in x] for x in words], y)
    )


def test_metadata_routing_brings_sample_weights_to_each_fold(recipes):
    X, y = recipes
    weights = np.r_[np.ones(30), np.zeros(30)]
    with sklearn.config_context(enable_metadata_routing=True):
        crf = CRF(stop=QUICK).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_val_score(
            crf, X, y, cv=KFold(2), params={"sample_weight": weights + 0.01}, error_score="raise"
        )
    first = CRF(stop=QUICK).fit(X[30:], y[30:], sample_weight=weights[30:] + 0.01)
    assert scores[0] == pytest.approx(first.score(X[:30], y[:30]))


def test_works_without_scikit_learn(tmp_path):
    script = textwrap.dedent(
        """
        import pickle, sys

        class Block:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "sklearn":
                    raise ImportError(name)

        sys.meta_path.insert(0, Block())
        from crfit.errors import CrfitError
        from crfit.estimators import CRF, NotFittedError
        from crfit.training.stopping import Stop
        from crfit.trainers import LBFGS

        X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
        crf = CRF(l2=0.1, stop=Stop(max_iter=5))
        try:
            crf.predict(X)
        except (ValueError, AttributeError) as error:
            assert isinstance(error, NotFittedError) and isinstance(error, CrfitError)
        else:
            raise AssertionError
        assert crf.fit(X, y).predict(X) == y
        assert crf.score(X, y) == 1.0
        assert pickle.loads(pickle.dumps(crf)).predict(X) == y
        assert crf.get_params()["stop__max_iter"] == 5
        crf.set_params(trainer="lbfgs", trainer__memory=3, l1=0.01)
        print(crf)
        assert CRF(**crf.get_params(deep=False)).fit(X, y).predict(X) == y
        assert not any(name.startswith("sklearn") for name in sys.modules)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CRF(l1=0.01, l2=0.1, stop=Stop(")
    assert "trainer=LBFGS(memory=3" in done.stdout


# Against another tool


def test_workers_of_n_jobs_share_the_cores(monkeypatch):
    joblib = pytest.importorskip("joblib")
    for variable in ("CRFIT_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    cores = resolve_threads(None)
    with joblib.parallel_config("loky", n_jobs=2):
        shares = joblib.Parallel()(joblib.delayed(resolve_threads)(n) for n in (None, 3))
    assert shares == [max(1, cores // 2), 3]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # of the user's own program: not about crfit
    assert resolve_threads(None) == cores


def test_same_model_as_crfsuite(recipes):
    """CRFsuite's c2 |w|^2 is our (l2/2) |w|^2; with possible transitions every label pair has a weight."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    X, y = recipes
    X = [[{**dict.fromkeys(item, 1.0), "length": 0.1 * len(item[0])} for item in x] for x in X]
    test_X = [[dict.fromkeys(item, 1.0) for item in x] for x in recipe_data(20, seed=9)[0]]
    l2 = 0.8

    with tempfile.TemporaryDirectory() as folder:
        trainer = pycrfsuite.Trainer(verbose=False)
        for x, labels in zip(X, y, strict=True):
            trainer.append(x, labels)
        trainer.set_params(
            {"c1": 0.0, "c2": l2 / 2, "feature.possible_transitions": 1, "epsilon": 1e-7, "period": 50,
             "delta": 1e-12, "max_iterations": 2000}
        )  # fmt: skip
        trainer.train(f"{folder}/model")
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        paths, marginals = [], []
        for x in test_X:
            paths.append(tagger.tag(x))
            marginals.append([{c: tagger.marginal(c, t) for c in tagger.labels()} for t in range(len(x))])
        tagger.close()

    crf = CRF(l2=l2, stop=Stop(grad_inf=1e-5), scheme=None).fit(X, y)
    assert crf.predict(test_X) == paths
    for ours, theirs in zip(crf.predict_marginals(test_X), marginals, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a == pytest.approx(b, abs=1e-3)


@pytest.mark.parametrize("metric", ["dev_f1", "dev_F1", "sequence_accuracy"])
def test_early_stopping_without_its_score_is_refused_before_training(recipes, metric):
    crf = CRF(callbacks=[EarlyStopping(metric=metric)])
    with pytest.raises(OptionError, match=rf"metric='{metric}': needs held-out scores: fit with dev="):
        crf.fit(*recipes)
    if metric == "dev_F1":
        with pytest.raises(OptionError, match="'dev_F1': no such score: give one of dev_accuracy, dev_f1"):
            crf.fit(*recipes, dev=recipes)
