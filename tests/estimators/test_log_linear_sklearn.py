"""LogLinear as a scikit-learn classifier: contract, optimum of LogisticRegression, searches, pipelines."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from crfit import LogLinear, LogLinearCV, Stop
from crfit.estimators import NotFittedError
from crfit.estimators.rows import matrix_items
from crfit.trainers import LBFGS

TIGHT = Stop(grad_inf=1e-8)
#: What `check_estimator` asks of weights to seven digits, and the default stopping rule gives to four. With
#: stopping rules that go on to the optimum, below, no check fails.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "the default stop is looser than 1e-7",
    "check_sample_weight_equivalence_on_sparse_data": "the default stop is looser than 1e-7",
}
ignore_convergence = pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")


@ignore_convergence
@pytest.mark.parametrize("settings", [{}, {"classes": "one_vs_rest"}, {"trainer": "lbfgs"}], ids=str)
def test_contract_of_scikit_learn(settings):
    check_estimator(LogLinear(stop=Stop(grad_inf=1e-10), n_threads=1, **settings), on_skip=None)


@ignore_convergence
@pytest.mark.parametrize("kind", [LogLinear, LogLinearCV])
def test_contract_of_scikit_learn_by_the_default_stop(kind):
    found = check_estimator(
        kind(n_threads=1), expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
    )
    assert {check["check_name"] for check in found if check["status"] == "failed"} == set()
    assert is_classifier(kind())


def data(n_classes, seed=0):
    X, y = make_classification(
        250, 15, n_informative=10, n_classes=n_classes, random_state=seed, class_sep=0.7, flip_y=0.1
    )
    X = 0.5 * X + 0.3  # an intercept is needed
    return X, y, np.random.default_rng(seed).random(len(y)) + 0.1


def objective(X, y, coef, intercept, l2, weights):
    scores = X @ coef.T + intercept
    if len(coef) == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    top = scores.max(axis=1)
    log_z = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return (weights * (log_z - scores[np.arange(len(y)), y])).sum() + 0.5 * l2 * np.square(coef).sum()


@pytest.mark.parametrize("weighting", ["none", "sample", "balanced", "both"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("l2", [0.1, 5.0])
def test_same_optimum_as_logistic_regression(n_classes, fit_intercept, weighting, l2):
    X, y, weights = data(n_classes)
    class_weight = "balanced" if weighting in ("balanced", "both") else None
    sample_weight = weights if weighting in ("sample", "both") else None
    ours = LogLinear(
        l2=l2, fit_intercept=fit_intercept, class_weight=class_weight, stop=TIGHT, n_threads=1
    ).fit(X, y, sample_weight)
    total = np.ones(len(y)) if sample_weight is None else weights.copy()
    if class_weight is not None:
        counts = np.bincount(y, total)
        total *= (total.sum() / (n_classes * counts))[y]
    # Versions of scikit-learn balance classes with sample weights in different ways: it gets the product.
    theirs = LogisticRegression(C=1 / l2, fit_intercept=fit_intercept, tol=1e-9, max_iter=5000)
    theirs.fit(X, y, total)
    found = objective(X, y, ours.coef_, ours.intercept_, l2, total)
    assert found == pytest.approx(ours.result_.objective, rel=1e-12)
    assert found <= objective(X, y, theirs.coef_, theirs.intercept_, l2, total) * (1 + 1e-12)
    assert found == pytest.approx(objective(X, y, theirs.coef_, theirs.intercept_, l2, total), rel=1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    assert ours.coef_.shape == theirs.coef_.shape
    shift = 0.0 if n_classes == 2 else 1.0  # more classes: intercepts up to a constant
    np.testing.assert_allclose(
        ours.intercept_ - shift * ours.intercept_.mean(),
        theirs.intercept_ - shift * theirs.intercept_.mean(),
        atol=2e-5,
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-4)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_same_one_against_rest(n_classes):
    X, y, _ = data(n_classes)
    theirs = OneVsRestClassifier(LogisticRegression(C=0.5, tol=1e-9, max_iter=5000)).fit(X, y)
    ours = LogLinear(l2=2.0, classes="one_vs_rest", stop=TIGHT).fit(X, y)
    coef = np.vstack([single.coef_ for single in theirs.estimators_])
    np.testing.assert_allclose(ours.coef_, coef, atol=2e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_same_penalized_intercept_as_a_column_of_ones():
    X, y, _ = data(2)
    theirs = LogisticRegression(fit_intercept=False, tol=1e-9, max_iter=5000)
    theirs.fit(np.hstack([X, np.ones((len(y), 1))]), y)
    ours = LogLinear(penalize_intercept=True, stop=TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_[0, :-1], atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.coef_[0, -1:], atol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_l1_optimum(n_classes):
    X, y, _ = data(n_classes)
    # Before scikit-learn 1.8 l1_ratio needs it, from then on it is deprecated.
    elastic = {"penalty": "elasticnet"} if LogisticRegression().penalty == "l2" else {}
    theirs = LogisticRegression(
        l1_ratio=1.0, C=0.2, solver="saga", tol=1e-9, max_iter=20000, random_state=0, **elastic
    ).fit(X, y)
    ours = LogLinear(l1=5.0, l2=0.0, stop=Stop(grad_inf=1e-7)).fit(X, y)
    assert (ours.coef_ == 0.0).sum() >= 3
    values = [
        objective(X, y, found.coef_, found.intercept_, 0.0, 1.0) + 5.0 * np.abs(found.coef_).sum()
        for found in (ours, theirs)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


TEXTS = [
    "cheap pills now", "see you soon", "cheap cheap offer", "see you at lunch", "pills offer", "lunch soon",
]  # fmt: skip
KINDS = ["spam", "ham", "spam", "ham", "spam", "ham"]


@pytest.mark.parametrize("vectoriser", [CountVectorizer(), TfidfVectorizer(), CountVectorizer(binary=True)])
def test_text_through_a_vectoriser(vectoriser):
    pipeline = make_pipeline(vectoriser, LogLinear(l2=0.1)).fit(TEXTS, KINDS)
    assert pipeline.predict(TEXTS).tolist() == KINDS
    assert pipeline.predict(["cheap lunch pills"]).tolist() == ["spam"]
    np.testing.assert_allclose(pipeline.predict_proba(TEXTS).sum(axis=1), 1.0)


def test_dicts_through_a_vectoriser_are_the_items():
    items = [{"w": text.split()[0], "n": float(len(text))} for text in TEXTS]
    vectoriser = DictVectorizer(separator=":")
    ours = LogLinear(stop=TIGHT).fit(items, KINDS)
    rows = vectoriser.fit_transform(items)
    by_row = LogLinear(stop=TIGHT).fit(rows, KINDS)
    order = [ours.feature_names_in_.tolist().index(name) for name in vectoriser.get_feature_names_out()]
    np.testing.assert_allclose(ours.coef_[:, order], by_row.coef_, atol=1e-6)


def test_searches_and_folds():
    X, y, weights = data(3)
    search = GridSearchCV(
        LogLinear(trainer=LBFGS(), stop=Stop(max_iter=30), n_threads=1),
        {"l2": [0.1, 1.0], "trainer__memory": [5, 10], "stop__max_iter": [20]},
        cv=StratifiedKFold(3),
    ).fit(X, y)
    assert search.best_score_ > 0.5
    assert cross_val_score(LogLinear(n_threads=1), X, y, cv=3, params={"sample_weight": weights}).mean() > 0.4
    chances = cross_val_predict(LogLinear(n_threads=1), sparse.csr_matrix(X), y, cv=3, method="predict_proba")
    assert chances.shape == (len(y), 3)
    assert CalibratedClassifierCV(LogLinear(n_threads=1), cv=2).fit(X, y).predict_proba(X).shape == (
        len(y),
        3,
    )


def test_clone_and_pickle():
    X, y, _ = data(3)
    fitted = LogLinear(l2=0.5, class_weight={0: 2.0}).fit(X, y)
    assert not hasattr(clone(fitted), "coef_")
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert np.array_equal(clone(fitted).fit(X, y).coef_, fitted.coef_)


def test_names_of_a_frame_are_in_the_model():
    pd = pytest.importorskip("pandas")
    X, y, _ = data(2)
    frame = pd.DataFrame(X[:, :2], columns=["height", "weight"])
    fitted = LogLinear().fit(frame, y)
    assert fitted.feature_names_in_.tolist() == ["height", "weight"]
    assert fitted.model_.attribute_alphabet.strings() == ["height", "weight", "(intercept)"]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame.rename(columns={"height": "length"}))
    assert matrix_items(X[:, :2], ["same", "same"]).attribute_alphabet.strings() == ["0", "1"]


def test_not_fitted():
    with pytest.raises(NotFittedError, match=r"call fit\(X, y\)"):
        LogLinear().predict([[1.0]])
    with pytest.raises(SklearnNotFittedError):
        LogLinear().predict_proba([[1.0]])


WITHOUT = """
    import sys
    sys.modules["sklearn"] = None
    import numpy as np
    import crfit

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0.2, "yes", "no")
    model = crfit.LogLinear(l2=0.1).fit(X, y)
    assert model.score(X, y) > 0.8, model.score(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 4
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.get_params()["l2"] == 0.1
    assert "LogLinear(l2=0.1)" == repr(model)
    for bad in (X[:, :2], X[0], np.full((2, 4), np.nan), X.astype(str), X[:0]):
        try:
            model.predict(bad)
        except ValueError:
            continue
        raise AssertionError(bad)
    from scipy import sparse
    assert np.array_equal(model.predict(sparse.coo_array(X)), model.predict(X))
    print("fine")
"""


def test_without_scikit_learn():
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT)], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert ran.stdout == "fine\n", ran.stderr
