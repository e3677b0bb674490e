"""The published problem, end to end: CoNLL-2000 with CRF++'s chunking template and CRFsuite's attributes.

Sizes are exact, optima and scores are those on which CRF++, CRFsuite and Wapiti agree. Skipped where the
corpus is absent: its licence does not allow shipping it.
"""

import gzip

import numpy as np
import pytest

import crfit
from crfit.data import text
from crfit.data.templates import load_template
from crfit.trainers import get


@pytest.fixture(scope="module")
def conll2000(corpus):
    return corpus("conll2000")


@pytest.fixture(scope="module")
def chunking(conll2000):
    template = load_template("chunking.template")
    train = text.read(str(conll2000 / "train.txt.gz"), template=template)
    test = text.read(str(conll2000 / "test.txt.gz"), template=template, alphabets=train)
    return train, test


#: F* of observed and of all weights, to the digits on which the tools agree; F - F* <= |g|^2 / (2 l2).
OBSERVED, ALL = 8856.39, 7705.29


def near_optimum(objective, best, gap, w0=None):
    """L-BFGS to a relative gap, about half of the way to where gradients vanish."""
    result = crfit.train(objective, "lbfgs", w0=w0, stop=crfit.Stop(objective=(1 + gap) * best))
    assert result.reason is crfit.StopReason.CONVERGED
    assert best <= result.objective <= (1 + gap) * best
    assert result.objective - best <= result.grad_norm**2 / 2
    return result


def check_scores(objective, result, test, accuracy, f1):
    scores = crfit.Model.from_training(objective, result).evaluate(test)
    assert scores.accuracy == pytest.approx(accuracy, abs=0.03)
    assert scores.f1 == pytest.approx(f1, abs=0.03)


@pytest.fixture(scope="module")
def observed(chunking):
    """Objective of the observed weights and a result near its optimum."""
    objective = crfit.make_objective(chunking[0], l2=1.0, weights="observed")
    return objective, near_optimum(objective, OBSERVED, 2e-5)


def test_the_optimum_with_observed_weights(chunking, observed):
    objective, result = observed
    assert objective.n_weights == 456_807
    check_scores(objective, result, chunking[1], 95.96, 93.63)


@pytest.mark.parametrize("weights", ["observed", "all"])
def test_the_most_features_of_a_sequence(chunking, weights):
    # 19 attributes a position and a transition between two: 20 T - 1, with T = 78 for the longest sentence.
    totals = crfit.make_objective(chunking[0], weights=weights).feature_totals()
    np.testing.assert_array_equal(totals, 20 * chunking[0].lengths - 1)
    assert totals.max() == 1559
    assert totals.mean() == pytest.approx(473, abs=1)


def test_the_optimum_with_all_weights(chunking, observed):
    # The function has one optimum, so the run may begin where the other ended: there it has the same value.
    train, test = chunking
    few, start = observed
    objective = crfit.make_objective(train, l2=1.0, weights="all")
    assert objective.n_weights == 7_448_606
    layout, n_labels = few.layout, train.n_labels
    attributes = np.repeat(np.arange(train.n_attributes), np.diff(layout.state_ptr))
    w0 = np.zeros(objective.n_weights)
    w0[attributes * n_labels + layout.state_labels] = start.weights[: len(attributes)]
    w0[-(n_labels**2) :] = start.weights[len(attributes) :]
    assert objective.value(w0) == pytest.approx(start.objective, rel=1e-12)
    result = near_optimum(objective, ALL, 1e-4, w0)
    check_scores(objective, result, test, 96.05, 93.79)


def test_newton_reaches_the_optimum_with_all_weights(chunking):
    train, test = chunking
    assert train.n_attributes == 338_551
    objective = crfit.make_objective(train, l2=1.0, weights="all")
    result = crfit.train(objective, "newton_cg", stop=crfit.Stop(grad_inf=0.05, max_iter=60))
    assert result.reason is crfit.StopReason.CONVERGED
    assert ALL <= result.objective <= 7705.31
    check_scores(objective, result, test, 96.05, 93.79)


def test_a_cut_off_counts_occurrences_of_the_string(chunking):
    train, _ = chunking
    assert train.n_attributes == 338_551
    pruned = train.prune(3)
    assert pruned.n_attributes == 76_328
    assert crfit.make_objective(train, weights="all", min_count=3).n_weights == 1_679_700


@pytest.mark.parametrize(
    ("trainer", "objective", "accuracy", "f1"),
    [
        ("sgd:schedule=bottou:calibration=crfsuite:epochs=10", 9726, 95.88, 93.51),
        ("asgd:epochs=10", 9752, 96.05, 93.75),
    ],
)
def test_plain_and_averaged_descent_do_as_bottous(chunking, trainer, objective, accuracy, f1):
    # Published with crfsgd and crfasgd: cut-off 3, c = 1. Orders of the sequences differ.
    train, test = chunking
    name, *options = trainer.split(":")
    ours = crfit.make_objective(train, l2=1.0, weights="all", min_count=3)
    result = crfit.train(ours, get(name, **dict(option.split("=") for option in options)))
    assert result.objective == pytest.approx(objective, rel=0.03)
    scores = crfit.Model.from_training(ours, result).evaluate(test)
    assert scores.accuracy == pytest.approx(accuracy, abs=0.1)
    assert scores.f1 == pytest.approx(f1, abs=0.15)


def crfsuite_attributes(words, tags):
    """CRFsuite's chunking attributes: the same 19 windows, none that leaves the sentence, and two marks."""
    windows = [(words, range(i, i + 1)) for i in range(-2, 3)]
    windows += [(words, range(-1, 1)), (words, range(2))]
    windows += [(tags, range(i, i + n)) for n in (1, 2, 3) for i in range(-2, 4 - n)]
    items = [[] for _ in words]
    for number, (column, window) in enumerate(windows):
        first, last = max(0, -window[0]), len(words) - max(0, window[-1])
        for t in range(first, last):
            items[t].append(f"{number}=" + "|".join(column[t + window[0] : t + window[-1] + 1]))
    items[0].append("__BOS__")
    items[-1].append("__EOS__")
    return items


def test_crfsuites_attributes_have_the_published_numbers_of_weights(conll2000):
    with gzip.open(conll2000 / "train.txt.gz", "rt", encoding="utf-8") as file:
        blocks = [block.split() for block in file.read().split("\n\n")]
    sentences = [[cells[i::3] for i in range(3)] for cells in blocks if cells]
    X = [crfsuite_attributes(words, tags) for words, tags, _ in sentences]
    y = [labels for _, _, labels in sentences]
    data = crfit.Dataset.from_sequences(X, y)
    assert data.n_attributes == 335_674
    assert crfit.make_objective(data, weights="observed", transitions="observed").n_weights == 452_755
    assert crfit.make_objective(data, weights="all").n_weights == 7_385_312
