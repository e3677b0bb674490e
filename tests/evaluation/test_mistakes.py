"""Wrong sequences, sorted by hand."""

import numpy as np
import pytest

import crfit
from crfit.demo import recipe_data
from crfit.errors import DataError
from crfit.evaluation.mistakes import find_mistakes


@pytest.fixture(scope="module")
def model():
    X, y = recipe_data(15, seed=2)
    return crfit.CRF(l2=0.3).fit(X, y).model_


@pytest.fixture(scope="module")
def lists():
    X, y = recipe_data(150, seed=6)
    y[3] = ["B-NEVER", *y[3][1:]]
    return X, y


def by_hand(model, X, y):
    """(index, wrong tokens, log p(gold), log p(predicted)) of all wrong sequences, worst first."""
    rows = []
    for i, (x, gold) in enumerate(zip(X, y, strict=True)):
        guess = model.tag(x)
        wrong = sum(a != b for a, b in zip(gold, guess, strict=True))
        if wrong:
            rows.append((i, wrong, model.log_probability(x, gold), model.log_probability(x, guess)))
    return sorted(rows, key=lambda row: (-row[1], row[2] - row[3], row[0]))


@pytest.mark.parametrize("n", [None, 1, 2, 7, 20, 1000])
def test_worst_first(model, lists, n):
    X, y = lists
    dataset = model.encode(X, y)
    expected = by_hand(model, X, y)
    assert len({row[1] for row in expected}) > 2, "several numbers of wrong tokens"
    found = find_mistakes(model, dataset, model.tag_dataset(dataset), n, n_threads=1)
    assert found.n_sequences == len(expected)
    expected = expected[:n]
    assert found.sequences.tolist() == [row[0] for row in expected]
    assert found.n_wrong.tolist() == [row[1] for row in expected]
    np.testing.assert_allclose(found.log_gold, [row[2] for row in expected])
    np.testing.assert_allclose(found.log_predicted, [row[3] for row in expected])
    assert (found.log_gold < found.log_predicted).all()


def test_a_label_unknown_to_the_model_has_no_probability(model, lists):
    X, y = lists
    dataset = model.encode(X[3:4], y[3:4])
    found = find_mistakes(model, dataset, model.tag_dataset(dataset))
    assert found.log_gold.tolist() == [-np.inf]


def test_nothing_wrong(model, lists):
    X, _ = lists
    dataset = model.encode(X, model.tag_many(X))
    found = find_mistakes(model, dataset, model.tag_dataset(dataset), 5)
    assert (found.n_sequences, len(found.sequences)) == (0, 0)
    with pytest.raises(DataError, match="no labels"):
        find_mistakes(model, model.encode(X), model.tag_dataset(dataset))
