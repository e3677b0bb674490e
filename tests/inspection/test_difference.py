"""What changed between two models, against dictionaries of their weights."""

import numpy as np
import pytest
from hypothesis import given, settings

import crfit
from crfit import CRF, LogLinear
from crfit.demo import recipe_data
from crfit.errors import DataError, OptionError
from crfit.inspection.difference import compare
from oracle import feature_ids, problems

X, Y = recipe_data(100, seed=11)


@given(problems(), problems())
@settings(max_examples=80)
def test_all_changes_of_weights_are_found(one, other):
    models = [problem.model() for problem in (one, other)]
    found = compare(*models, n=10_000)
    known = [
        {name: problem.w[k] for name, k in feature_ids(problem.layout).items()} for problem in (one, other)
    ]
    changes = {name: known[1].get(name, 0.0) - known[0].get(name, 0.0) for name in known[0] | known[1]}
    assert sorted(one.change for one in found.weights) == pytest.approx(
        sorted(c for c in changes.values() if c)
    )
    assert found.n_changed == sum(c != 0.0 for c in changes.values())
    assert found.distance == pytest.approx(np.sqrt(sum(c * c for c in changes.values())))
    sizes = [abs(one.change) for one in found.weights]
    assert sizes == sorted(sizes, reverse=True)
    n = [problem.dataset.n_attributes for problem in (one, other)]
    assert len(found.added["attributes"]) == max(0, n[1] - n[0])
    assert len(found.removed["attributes"]) == max(0, n[0] - n[1])


@pytest.fixture(scope="module")
def pair():
    return CRF(l2=0.5).fit(X[:40], Y[:40]).model_, CRF(l2=1.0, boundary=True).fit(X[:80], Y[:80]).model_


def test_labels_that_changed_are_listed_with_scores(pair):
    before, after = pair
    data = crfit.Dataset.from_sequences(X[80:], Y[80:])
    found = compare(before, after, data, n=3)
    labels = [model.tag_many(X[80:]) for model in pair]
    differing = [i for i in range(20) if labels[0][i] != labels[1][i]]
    assert [one.sequence for one in found.sequences] == differing
    for one in found.sequences:
        assert (one.before, one.after) == (labels[0][one.sequence], labels[1][one.sequence])
        assert one.gold == Y[80 + one.sequence]
    assert [scores.f1 for scores in found.scores] == [model.evaluate(data).f1 for model in pair]
    assert found.options["l2"] == (0.5, 1.0)
    assert "{:,.6g} -> {:,.6g}".format(*found.sizes["objective"]) in found.to_text(0)
    assert found.options["boundary"] == (False, True)
    assert found.sizes["n_sequences"] == (40, 80)
    told = found.to_text(2)
    assert "l2" in told
    assert f"{len(differing)} of 20 sequences are labelled differently" in told
    assert told.count("sequence ") <= 2 * max(len(one.positions) for one in found.sequences) + 1
    record = found.to_dict()
    assert record["scores"]["after"]["f1"] == found.scores[1].f1
    unlabelled = compare(before, after, crfit.Dataset.from_sequences(X[80:]))
    assert unlabelled.scores is None
    assert unlabelled.sequences[0].gold is None


def test_a_model_does_not_differ_from_itself(pair):
    found = compare(pair[0], pair[0], crfit.Dataset.from_sequences(X))
    assert not found.options
    assert not found.sizes
    assert not found.weights
    assert not found.sequences
    assert found.distance == 0.0


def test_classifiers_are_compared_whatever_the_order_of_classes():
    one = LogLinear(l2=0.1).fit([["a"], ["b"]], ["x", "y"]).model_
    other = LogLinear(l2=0.1).fit([["b"], ["a"]], ["y", "x"]).model_
    assert compare(one, other).distance == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(OptionError, match="two taggers, or two classifiers"):
        compare(one, CRF().fit([[["a"]]], [["x"]]).model_)


def test_data_must_be_the_same(pair):
    data = crfit.Dataset.from_sequences(X[:3])
    with pytest.raises(DataError, match="different sequences"):
        compare(*pair, (data, data.subset([0, 1])))


def test_the_number_of_changes_to_list(pair):
    assert not compare(*pair, n=0).weights
    with pytest.raises(OptionError, match=r"n=-1: give a whole number, 0 or more"):
        compare(*pair, n=-1)
