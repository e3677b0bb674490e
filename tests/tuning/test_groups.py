"""An l2 per group: the gradient against finite differences and enumeration, and the search."""

import itertools
import os
import signal

import numpy as np
import pytest

from crfit import CRFCV, Dataset, trainers
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.fit import FitOptions, fit_dataset
from crfit.training.stopping import Stop
from crfit.tuning import groups as tuned
from crfit.tuning.groups import check_groups, tune_groups
from crfit.tuning.search import Candidate, Run, make_folds

OPTIONS = FitOptions(n_threads=1)


@pytest.fixture(scope="module")
def dataset():
    return Dataset.from_sequences(*recipe_data(120, seed=5))


@pytest.fixture(scope="module")
def folds(dataset):
    return make_folds(dataset, 3, 0)


def held_out(dataset, folds, options=OPTIONS, kind="template"):
    run = Run(dataset, [Candidate(0.3)], options, folds[:1], None, "f1", None, 1e-12, False, None)
    return tuned._HeldOut(run, 0, Candidate(0.3), kind)


@pytest.mark.parametrize(
    ("kind", "options"), [("template", {}), ("family", {"order": 2, "weights": "all", "boundary": True})]
)
def test_gradient_is_that_of_finite_differences(kind, options):
    data = Dataset.from_sequences(*recipe_data(30, seed=5))
    part = held_out(data, make_folds(data, 3, 0), FitOptions(n_threads=1, **options), kind)
    names = part.names
    theta = np.log(np.linspace(0.1, 2.0, len(names)))

    def loss(there):
        return part.value(part.optimum(dict(zip(names, np.exp(there), strict=True))))

    loss(theta)
    slopes = part.slopes(dict(zip(names, np.exp(theta), strict=True)), 1e-9)
    assert "transitions" in names
    for k, name in enumerate(names):
        step = 0.02 * (np.arange(len(names)) == k)
        assert slopes[name] == pytest.approx(
            (loss(theta + step) - loss(theta - step)) / 0.04, rel=3e-3, abs=3e-4
        )


def test_loss_is_that_of_enumeration():
    X = [[["a=x", "b=y"], ["a=y"]], [["b=x"], ["a=x", "b=z"]], [["a=y", "b=x"]], [["a=x"], ["b=y"], ["a=y"]]]
    y = [["A", "B"], ["B", "A"], ["A"], ["A", "B", "B"]]
    data = Dataset.from_sequences(X, y)
    part = held_out(data, [(np.array([0, 1, 2]), np.array([3]))])
    l2 = {"a": 0.2, "b": 2.0, "transitions": 0.5}
    point = part.optimum(l2)
    options = FitOptions(n_threads=1, l2_by_group=l2, stop=Stop(grad_inf=1e-10))
    fit = fit_dataset(data.subset(np.array([0, 1, 2])), options)
    np.testing.assert_allclose(fit.result.weights, point.weights, atol=1e-6)
    layout, w = part.fits.objective.layout, point.weights
    held = data.subset(np.array([3]))
    scores = {}
    for labels in itertools.product(range(2), repeat=3):
        one = Dataset.from_sequences(X[3:], [[data.label_alphabet[k] for k in labels]], alphabets_of=data)
        scores[labels] = float(layout.observed_counts(one) @ w)
    total = np.log(np.sum(np.exp(list(scores.values()))))
    assert part.value(point) == pytest.approx(total - scores[tuple(held.labels.tolist())], rel=1e-9)


def test_the_loss_falls_and_noise_gets_a_strong_penalty(folds):
    X, y = recipe_data(120, seed=5)
    rng = np.random.default_rng(0)
    X = [[[*names, f"noise={rng.integers(40)}"] for names in sequence] for sequence in X]
    data = Dataset.from_sequences(X, y)
    found = tune_groups(data, Candidate(0.3), OPTIONS, folds=folds)
    assert found.losses == sorted(found.losses, reverse=True)
    assert found.losses[-1] < 0.95 * found.losses[0]
    assert found.l2["noise"] > 10 * np.median(list(found.l2.values()))
    assert found.low <= found.after - found.before <= found.high
    assert found.taken == (found.after >= found.before)
    assert sum(found.sizes.values()) > 0


def test_scores_are_those_of_models_with_these_penalties(dataset, folds):
    found = tune_groups(dataset, Candidate(0.3), OPTIONS, folds=folds, steps=2, tol=1e-7)
    for l2_by_group, score in ((None, found.before), (found.l2, found.after)):
        options = FitOptions(
            trainers.resolve("newton_cg"), n_threads=1, l2=0.3, l2_by_group=l2_by_group, stop=Stop(tol=1e-8)
        )
        scores = [
            fit_dataset(dataset.subset(a), options).model.evaluate(dataset.subset(b)).f1 for a, b in folds
        ]
        assert np.mean(scores) == pytest.approx(score, abs=1e-9)


def test_same_results_for_any_number_of_threads(dataset, folds):
    found = [
        tune_groups(dataset, Candidate(0.3), FitOptions(n_threads=n), folds=folds, steps=3) for n in (1, 2, 3)
    ]
    for other in found[1:]:
        assert (other.l2, other.losses, other.after) == (found[0].l2, found[0].losses, found[0].after)


def test_held_out_data_with_new_labels_and_names(dataset):
    X, y = recipe_data(30, seed=8)
    dev = Dataset.from_sequences([*X, [["new=1"]]], [*y, ["NEW"]])
    found = tune_groups(dataset, Candidate(0.3), OPTIONS, dev=dev, steps=2)
    assert found.losses[-1] < found.losses[0]
    assert np.isfinite(found.losses).all()


@pytest.mark.parametrize(
    ("candidate", "options"),
    [
        (Candidate(1.0, 0.1), {}),
        (Candidate(0.0), {}),
        (Candidate(1.0), {"task": "classify"}),
        (Candidate(1.0), {"trainer": trainers.resolve("lbfgs")}),
        (Candidate(0.0, 0.0, (("trainer", trainers.resolve("perceptron")),)), {}),
    ],
)
def test_what_has_no_gradient_is_refused(dataset, candidate, options):
    with pytest.raises(OptionError) as refused:
        check_groups([candidate], FitOptions(**options), dataset, "template")
    assert refused.value.option == "groups"


def test_too_many_groups_are_refused(folds):
    X = [[[f"g{i}{j}=1"] for j in range(3)] for i in range(120)]
    data = Dataset.from_sequences(X, [["A", "B", "A"]] * 120)
    with pytest.raises(OptionError, match="more than 200"):
        tune_groups(data, Candidate(1.0), OPTIONS, folds=folds)
    with pytest.raises(OptionError, match="'template' or 'family'"):
        tune_groups(data, Candidate(1.0), OPTIONS, folds=folds, kind="frequency")


def test_interrupted(dataset, folds):
    def interrupt(step, first, loss):
        os.kill(os.getpid(), signal.SIGINT)

    found = tune_groups(dataset, Candidate(0.3), OPTIONS, folds=folds, callback=interrupt)
    assert found.interrupted
    assert len(found.losses) == 2


def test_estimator():
    X, y = recipe_data(120, seed=5)
    found = CRFCV(l2=[0.1, 1.0], groups="family", n_threads=1).fit(X, y)
    used = found.groups_.taken
    assert ("l2_by_group" in found.best_params_) == used
    assert found.best_score_ == pytest.approx(max(found.groups_.before, found.groups_.after) / 100, abs=5e-3)
    assert (found.best_estimator_.l2_by_group is not None) == used
    assert not hasattr(CRFCV(l2=[0.1, 1.0], n_threads=1).fit(X, y), "groups_")
    with pytest.raises(OptionError, match="smooth"):
        CRFCV(l1=[0.1], groups="family").fit(X, y)


def test_estimator_tries_features():
    X, y = recipe_data(60, seed=5)
    words = [[names[0] for names in sequence] for sequence in X]
    grid = {"features": ["word", "default"]}
    found = CRFCV(l2=[1.0], grid=grid, n_threads=1, scoring="accuracy", halving=False).fit(words, y)
    for k, features in enumerate(grid["features"]):
        alone = CRFCV(l2=[1.0], features=features, n_threads=1, scoring="accuracy", halving=False)
        alone.fit(words, y)
        assert alone.predict(words) == alone.best_estimator_.predict(words)
        assert found.cv_results_["mean_test_score"][k] == alone.best_score_
    assert found.best_params_["features"] in grid["features"]
    assert len(found.predict(words)) == len(words)
