"""Scorers for searches, against scores computed by hand and by scikit-learn."""

from itertools import chain

import pytest
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import crfit
from crfit import scorers
from crfit.demo import recipe_data
from crfit.training.stopping import Stop

METRICS = {name: getattr(scorers, name) for name in ("f1", "accuracy", "sequence_accuracy")}


@pytest.fixture(scope="module")
def recipes():
    return recipe_data(80, seed=5)


class Constant:
    """An estimator with given predictions."""

    def __init__(self, predictions):
        self.predictions = predictions

    def predict(self, X):
        return self.predictions


def test_scores_by_hand():
    gold = [["B-X", "I-X", "O"], ["O"], ["B-X", "B-Y"], ["O", "O"]]
    found = [["B-X", "O", "O"], ["O"], ["B-X", "B-Y"], ["O", "B-Y"]]
    estimator = Constant(found)
    assert scorers.accuracy(estimator, None, gold) == 6 / 8
    assert scorers.sequence_accuracy(estimator, None, gold) == 2 / 4
    precision, recall = 2 / 4, 2 / 3  # of spans
    assert scorers.f1(estimator, None, gold) == pytest.approx(2 * precision * recall / (precision + recall))
    assert scorers.all_scores(estimator, None, gold) == {
        name: scorer(estimator, None, gold) for name, scorer in METRICS.items()
    }


def test_cross_validation_scores_each_fold(recipes):
    X, y = recipes
    crf = crfit.CRF(stop=Stop(max_iter=4), n_threads=1)
    found = cross_validate(crf, X, y, cv=KFold(2), scoring=METRICS, error_score="raise")
    together = cross_validate(crf, X, y, cv=KFold(2), scoring=scorers.all_scores, error_score="raise")
    for k, (train, test) in enumerate(KFold(2).split(X)):
        crf.fit([X[i] for i in train], [y[i] for i in train])
        gold, guess = [y[i] for i in test], crf.predict([X[i] for i in test])
        right = [a == b for a, b in zip(gold, guess, strict=True)]
        assert found["test_sequence_accuracy"][k] == sum(right) / len(right)
        flat = list(chain(*gold)), list(chain(*guess))
        assert found["test_accuracy"][k] == pytest.approx(accuracy_score(*flat))
        assert found["test_accuracy"][k] == pytest.approx(crf.score([X[i] for i in test], gold))
        assert found["test_f1"][k] == pytest.approx(crfit.evaluate(gold, guess).f1 / 100)
    for name in METRICS:
        assert together[f"test_{name}"].tolist() == found[f"test_{name}"].tolist()
        alone = cross_val_score(crf, X, y, cv=KFold(2), scoring=METRICS[name], error_score="raise")
        assert alone.tolist() == found[f"test_{name}"].tolist()


@pytest.mark.parametrize("scoring", [METRICS, scorers.all_scores], ids=["dict", "function"])
def test_searches_in_parallel_processes(recipes, scoring):
    X, y = recipes
    crf = crfit.CRF(stop=Stop(max_iter=4), n_threads=1)
    more = {"cv": 2, "error_score": "raise", "n_jobs": 2}
    grid = GridSearchCV(crf, {"l2": [0.1, 1000.0]}, scoring=scoring, refit="sequence_accuracy", **more)
    grid.fit(X, y)
    assert grid.best_params_ == {"l2": 0.1}
    assert {f"mean_test_{name}" for name in METRICS} <= set(grid.cv_results_)
    drawn = RandomizedSearchCV(
        crf, {"l2": [0.1, 1000.0]}, n_iter=2, random_state=0, scoring=scorers.f1, **more
    ).fit(X, y)
    assert drawn.best_score_ == pytest.approx(grid.cv_results_["mean_test_f1"].max())


def test_pipelines_and_labels_that_are_numbers(recipes):
    X, y = recipes
    numbers = {label: i for i, label in enumerate(sorted(set(chain(*y))))}
    as_numbers = [[numbers[label] for label in labels] for labels in y]
    steps = [("same", FunctionTransformer(lambda X: X)), ("crf", crfit.CRF(stop=Stop(max_iter=4)))]
    plain = Pipeline(steps).fit(X[:20], y[:20])
    expected = [scorer(plain, X, y) for scorer in (scorers.sequence_accuracy, scorers.accuracy)]
    coded = Pipeline(steps).fit(X[:20], as_numbers[:20])
    found = [scorer(coded, X, as_numbers) for scorer in (scorers.sequence_accuracy, scorers.accuracy)]
    assert found == expected
    assert 0 < found[0] < found[1] < 1
