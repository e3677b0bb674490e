"""Pruned models: how far log-odds change, by enumeration, and what is kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit import CRF, LogLinear
from crfit.demo import recipe_data
from crfit.errors import DataError, OptionError
from crfit.model.pruning import _size_on
from oracle import problems

X, Y = recipe_data(80, seed=7)


def log_odds(model, dataset):
    """For every position, the scores of all labels given the labels of the others, [N, Y]."""
    own = crfit.data.dataset.recode(dataset, model)
    n_labels, inference = len(model.labels), model.layout
    found = []
    for i in range(own.n_sequences):
        place = slice(int(own.seq_ptr[i]), int(own.seq_ptr[i + 1]))
        labels = np.asarray(own.labels[place])
        one = own.subset([i])
        for t in range(len(labels)):
            row = []
            for y in range(n_labels):
                changed = labels.copy()
                changed[t] = y
                row.append(float(inference.observed_counts(one_with(one, changed)) @ model.weights))
            found.append(row)
    return np.array(found)


def one_with(dataset, labels):
    return replace(dataset, labels=labels.astype(np.int32), sequence_weights=None)


@given(problems(), st.sampled_from([0.0, 0.3, 2.0, 20.0]), st.booleans())
@settings(max_examples=120)
def test_no_log_odds_change_by_more(problem, eps, measured):
    model, data = problem.model(), problem.dataset
    if measured:
        pruned = model.prune(eps, data=data)
    else:
        size = _size_on(data)
        pruned = model.prune(eps, max_attributes=max(1, int(np.ceil(max(size.state, size.edge)))))
    change = log_odds(model, data) - log_odds(pruned, data)
    spread = change.max(axis=1) - change.min(axis=1)
    assert (spread <= eps + 1e-9).all()
    facts = pruned.summary["pruned"]
    assert facts["n_weights"] - facts["dropped"] == pruned.layout.n_weights
    assert pruned.layout.n_weights <= model.layout.n_weights
    if measured and not problem.layout.n_edge_attributes:
        assert facts["measured"] == pytest.approx(spread.max(initial=0.0), abs=1e-9)
    if eps == 0.0:
        assert not spread.any()


@pytest.fixture(scope="module")
def trained():
    return CRF(weights="all", boundary=True).fit(X, Y).model_


def test_a_model_with_all_weights_becomes_smaller(trained, tmp_path):
    data = crfit.Dataset.from_sequences(X, Y)
    pruned = trained.prune(0.2, data=data)
    assert pruned.layout.n_weights < 0.8 * trained.layout.n_weights
    assert pruned.layout.n_transition_weights == trained.layout.n_transition_weights
    assert pruned.layout.n_boundary_weights == trained.layout.n_boundary_weights
    probable = [trained.marginals_dataset(data), pruned.marginals_dataset(data)]
    assert np.abs(probable[0] - probable[1]).max() < 0.2
    assert pruned.summary["pruned"]["measured"] <= 0.2
    by_bound = trained.prune(0.2, max_attributes=max(len(token) for x in X for token in x))
    assert by_bound.layout.n_weights > pruned.layout.n_weights, "the bound is for any data"
    for model in (pruned, by_bound):
        model.save(tmp_path / "small.crfit")
        assert crfit.load(tmp_path / "small.crfit").tag_many(X) == model.tag_many(X)
    assert pruned.options == trained.options


def test_everything_may_go_but_transitions(trained):
    empty = trained.prune(1e9, max_attributes=1)
    assert empty.layout.n_attributes == 0
    assert len(empty.tag(X[0])) == len(X[0])


def test_classifiers_keep_their_intercept():
    model = LogLinear().fit([["a"], ["b"], ["c"], ["a"]], ["x", "y", "z", "x"]).model_
    pruned = model.prune(1e9, max_attributes=1)
    assert pruned.attribute_alphabet.strings() == ["(intercept)"]
    assert len(pruned.classify([["a"]])) == 1


def test_what_is_missing_or_wrong_is_told(trained):
    with pytest.raises(OptionError, match="max_attributes"):
        trained.prune(0.1)
    with pytest.raises(OptionError, match="data says it already"):
        trained.prune(0.1, max_attributes=3, data=crfit.Dataset.from_sequences(X))
    with pytest.raises(OptionError, match="eps"):
        trained.prune(-1.0, max_attributes=3)
    with pytest.raises(DataError, match="no sequences"):
        trained.prune(0.1, data=crfit.Dataset.from_sequences([]))
    with pytest.raises(OptionError, match="give a Dataset"):
        trained.prune(0.1, data=X)
