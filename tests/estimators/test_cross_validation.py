"""CRFCV and LogLinearCV: the same choice as scikit-learn's searches, and their conventions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import crfit
from crfit import CRF, CRFCV, Dataset, LogLinear, LogLinearCV, Stop, features
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.estimators import NotFittedError

L2 = [0.05, 0.5, 5.0]


@pytest.fixture(scope="module")
def recipes():
    return recipe_data(90, seed=3)


def test_same_scores_as_a_grid_search(recipes):
    X, y = recipes
    ours = CRFCV(l2=L2, cv=KFold(3), tol=1e-7, halving=False, n_threads=1).fit(X, y)
    theirs = GridSearchCV(
        CRF(n_threads=1, stop=Stop(tol=1e-7)), {"l2": L2}, scoring=crfit.scorers.f1, cv=KFold(3)
    ).fit(X, y)
    for name in ("split0_test_score", "split2_test_score", "mean_test_score", "std_test_score"):
        assert ours.cv_results_[name] == pytest.approx(theirs.cv_results_[name], abs=1e-9)
    assert ours.cv_results_["rank_test_score"].tolist() == theirs.cv_results_["rank_test_score"].tolist()
    assert ours.best_params_["l2"] == theirs.best_params_["l2"]
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert ours.best_index_ == theirs.best_index_
    assert ours.predict(X) == theirs.best_estimator_.predict(X) or ours.score(X, y) > 0.9


@pytest.mark.parametrize("metric", ["f1", "accuracy", "sequence_accuracy"])
def test_names_functions_and_other_callables_score_alike(recipes, metric):
    X, y = recipes
    function = getattr(crfit.scorers, metric)
    found = [
        CRFCV(l2=L2, scoring=scoring, halving=False, refit=False, n_threads=1).fit(X, y)
        for scoring in (metric, function, lambda *given: function(*given))
    ]
    for one in found[1:]:
        assert one.cv_results_["mean_test_score"] == pytest.approx(found[0].cv_results_["mean_test_score"])
    assert not np.isnan(found[0].cv_results_["low_test_score"]).any()


def test_fitted_attributes(recipes):
    X, y = recipes
    found = CRFCV(l2=L2, n_threads=1, grid={"weights": ["observed", "all"]}).fit(X, y)
    assert set(found.best_params_) == {"l2", "l1", "weights"}
    assert isinstance(found.best_estimator_, CRF)
    assert found.model_.options["weights"] == found.best_params_["weights"]
    assert found.predict(X) == found.best_estimator_.predict(X)
    again = clone(found).fit(X, y)
    assert again.model_.weights.tobytes() == found.model_.weights.tobytes()
    assert not hasattr(clone(found), "model_")


def test_labels_of_any_type(recipes):
    X, y = recipes
    numbers = {label: i for i, label in enumerate(sorted({label for labels in y for label in labels}))}
    labels = [[numbers[label] for label in sequence] for sequence in y]
    found = CRFCV(l2=L2[:2], scoring="accuracy", n_threads=1).fit(X, labels)
    assert isinstance(found.predict(X)[0][0], int)


def test_datasets_and_sample_weights(recipes):
    X, y = recipes
    data = Dataset.from_sequences(X, y)
    one = CRFCV(l2=L2, n_threads=1).fit(data)
    other = CRFCV(l2=L2, n_threads=1).fit(X, y, sample_weight=np.ones(len(X)))
    assert one.cv_results_["mean_test_score"] == pytest.approx(other.cv_results_["mean_test_score"])


def test_without_refit_there_is_no_model(recipes):
    found = CRFCV(l2=L2, refit=False, n_threads=1).fit(*recipes)
    with pytest.raises(NotFittedError, match="refit=False"):
        found.predict(recipes[0])
    with pytest.raises(NotFittedError):
        CRFCV().predict(recipes[0])


@pytest.mark.filterwarnings("ignore::FutureWarning:sklearn")
@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_classifier_chooses_as_scikit_learn(classes):
    X, y = make_classification(180, 12, n_informative=6, n_classes=3, random_state=1, flip_y=0.2)
    folds = StratifiedKFold(3)
    ours = LogLinearCV(l2=[0.1, 1.0, 30.0], cv=folds, tol=1e-7, halving=False, classes=classes, n_threads=1)
    ours.set_params(stop=Stop(tol=1e-8)).fit(X, y)
    if classes == "multinomial":
        theirs = LogisticRegressionCV(Cs=[10.0, 1.0, 1 / 30], cv=folds, tol=1e-8, max_iter=5000).fit(X, y)
        means = np.mean(next(iter(theirs.scores_.values())), axis=0)
        assert ours.cv_results_["mean_test_score"] == pytest.approx(means, abs=1e-9)
        assert ours.best_params_["l2"] == pytest.approx(1 / theirs.C_[0])
    alone = LogLinear(l2=ours.best_params_["l2"], classes=classes, stop=Stop(tol=1e-8), n_threads=1).fit(X, y)
    assert ours.coef_ == pytest.approx(alone.coef_)
    assert np.array_equal(ours.predict(X), alone.predict(X))


def test_classifier_with_a_named_scorer():
    X, y = make_classification(120, 8, random_state=2)
    found = LogLinearCV(l2=L2, scoring="roc_auc", n_threads=1).fit(X, y)
    assert 0.5 < found.best_score_ <= 1.0
    items = [["w=cheap"], ["w=hello"]] * 12
    by_name = LogLinearCV(l2=L2, scoring=lambda e, X, y: e.score(X, y), n_threads=1)
    assert by_name.fit(items, ["spam", "ham"] * 12).best_score_ == 1.0


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"scoring": "beauty"}, "scoring"),
        ({"choice": "any"}, "choice"),
        ({"l2": []}, "l2"),
        ({"l2": [-1.0]}, "l2"),
        ({"cv": 1}, "cv"),
        ({"candidates": []}, "candidates"),
        ({"candidates": [{"colour": 1}]}, "candidates"),
        ({"candidates": [1.0]}, "candidates"),
        ({"candidates": [{"class_weight": {"O": 2.0}}]}, "candidates"),
        ({"grid": {"l2": [1.0]}}, "grid"),
        ({"grid": {"weights": []}}, "grid"),
        ({"grid": {"weights": "all"}}, "grid"),
        ({"grid": {"seed": [1]}}, "grid"),  # an option of the fit, but no parameter
        ({"tol": 0.0}, "tol"),
    ],
)
def test_bad_parameters_are_refused(recipes, given, option):
    with pytest.raises(OptionError) as refused:
        CRFCV(n_threads=1, **given).fit(*recipes)
    assert refused.value.option == option


def test_candidates_may_vary_other_parameters():
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(60, 3))
    y = (X[:, 0] > 2.0).astype(int)
    given = {"candidates": [{"fit_intercept": False}, {"trainer": "lbfgs"}], "n_threads": 1}
    plain = LogLinearCV(**given).fit(X, y)
    assert plain.best_index_ == 1
    assert plain.best_estimator_.trainer.memory == 10
    called = LogLinearCV(scoring=lambda e, X, y: e.score(X, y), **given).fit(X, y)
    assert called.cv_results_["mean_test_score"] == pytest.approx(plain.cv_results_["mean_test_score"])


def test_an_interrupted_search_says_so(recipes, monkeypatch):
    from crfit.errors import CrfitWarning
    from crfit.estimators import cross_validation

    def interrupted(*args, **options):
        search = tune(*args, **options)
        search.interrupted = True
        return search

    tune = cross_validation.tune
    monkeypatch.setattr(cross_validation, "tune", interrupted)
    with pytest.warns(CrfitWarning, match="interrupted"):
        CRFCV(l2=L2, n_threads=1).fit(*recipes)


def test_sets_of_features_that_look_alike_have_data_of_their_own():
    X, y = [["a", "b"], ["b", "a"], ["b"]] * 6, [["X", "Y"], ["Y", "X"], ["Y"]] * 6
    sets = [features.Features(features.bias()), features.Features(features.word())]
    for given in ({"grid": {"features": sets}}, {"candidates": [{"features": one} for one in sets]}):
        cv = CRFCV(l2=[1.0], cv=2, n_threads=1, scoring="accuracy").set_params(**given).fit(X, y)
        assert cv.best_params_["features"] == sets[1]
        assert cv.cv_results_["mean_test_score"][0] < cv.best_score_ == 1.0
        assert [trial.candidate.name for trial in cv.search_.trials] == [
            "l2=1 features=bias",
            "l2=1 features=word",
        ]


def test_folds_as_masks_are_folds_as_ids(recipes):
    X, y = recipes
    test = np.arange(len(X)) % 3 == 0
    found = [
        CRFCV(l2=L2, cv=[fold], refit=False, n_threads=1).fit(X, y).cv_results_["mean_test_score"].tolist()
        for fold in ((~test, test), (np.flatnonzero(~test), np.flatnonzero(test)))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "cv", ["x", None, 2.5, [], [5], [([0, 1], [])], [([], [0])], [([0, 1], [-1])], [([0.5], [1])]]
)
def test_folds_that_are_wrong(recipes, cv):
    with pytest.raises(OptionError, match="cv"):
        CRFCV(l2=L2, cv=cv, n_threads=1).fit(*recipes)
