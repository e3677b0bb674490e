"""Tagging against all label sequences written out, and its three forms against each other."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings

from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.errors import DataError, OptionError
from crfit.layout import make_layout
from crfit.model import Model, load
from oracle import Enumeration, problems

X, Y = recipe_data(60, seed=4)


@pytest.fixture(scope="module")
def model() -> Model:
    objective = make_objective(Dataset.from_sequences(X, Y), boundary=True)
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    return Model.from_training(objective, w)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_answers_on_datasets_are_those_of_the_definition(problem):
    model, truth = problem.model(), Enumeration(problem.dataset, problem.layout, problem.w)
    data = problem.dataset
    np.testing.assert_allclose(model.marginals_dataset(data), truth.node_marginals(), atol=1e-12)
    gold = [s.scores[s.gold] - s.log_z for s in truth.sequences]
    np.testing.assert_allclose(model.log_probability_dataset(data), gold, atol=1e-10)
    labels = model.tag_dataset(data)
    for s, paths in zip(truth.sequences, model.nbest_dataset(data, 3), strict=True):
        best = tuple(labels[s.tokens.start : s.tokens.stop].tolist())
        assert s.p[s.paths.index(best)] == pytest.approx(s.p.max())
        assert [math.exp(log_p) for _, log_p in paths] == pytest.approx(sorted(s.p, reverse=True)[:3])
        assert [s.p[s.paths.index(tuple(path.tolist()))] for path, _ in paths] == pytest.approx(
            [math.exp(log_p) for _, log_p in paths]
        )


def test_probabilities_of_all_label_sequences_add_up_to_marginals(model):
    small = Model.from_training(
        objective := make_objective(Dataset.from_sequences([[["a"], ["b", "a"], ["c"]]], [["X", "Y", "X"]])),
        np.linspace(-1, 1, objective.n_weights),
    )
    x = [["a"], ["c"], ["b"], ["a"]]
    p = {path: small.probability(x, path) for path in product("XY", repeat=4)}
    assert sum(p.values()) == pytest.approx(1.0)
    for t, at in enumerate(small.marginals(x)):
        assert at == pytest.approx({y: sum(v for path, v in p.items() if path[t] == y) for y in "XY"})
    found = small.nbest(x, 100)
    assert len(found) == 16
    assert found == sorted(found, key=lambda entry: -entry[1])
    assert {tuple(path): value for path, value in found} == pytest.approx(p)
    assert found[0][0] == small.tag(x)


def test_one_many_and_dataset_say_the_same(model):
    data = model.encode(X)
    tags = model.tag_many(X)
    assert tags == [model.tag(x) for x in X]
    assert tags == data.sequence_labels(model.tag_dataset(data))
    assert tags == model.tag_many(iter([iter(x) for x in X]), n_threads=2)
    other = Dataset.from_sequences(X, Y)  # with ids of its own
    for same in (data, other):
        assert model.tag_many(same) == tags
        assert model.marginals_many(same) == model.marginals_many(X)
        assert model.nbest_many(same, 3) == model.nbest_many(X, 3)
    marginals = model.marginals_many(X)
    assert marginals == [model.marginals(x) for x in X]
    table = np.array([[at[label] for label in model.labels] for row in marginals for at in row])
    np.testing.assert_array_equal(table, model.marginals_dataset(data))
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-12)
    paths = model.nbest_many(X, 3)
    assert paths == [model.nbest(x, 3) for x in X]
    names = model.labels
    assert [[path for path, _ in best] for best in paths] == [
        [[names[i] for i in path] for path, _ in best] for best in model.nbest_dataset(data, 3)
    ]
    for x, best in zip(X, paths, strict=True):
        for path, p in best:
            assert model.probability(x, path) == pytest.approx(p, rel=1e-9)
            assert math.exp(model.log_probability(x, path)) == pytest.approx(p, rel=1e-9)


def test_empty_sequences_have_no_labels(model):
    assert model.tag([]) == model.marginals([]) == []
    assert model.nbest([], 2) == [([], 1.0)]
    assert model.tag_many([]) == model.marginals_many([]) == model.nbest_many([], 2) == []
    mixed = [[], X[0], iter([]), X[1], []]
    assert [bool(tags) for tags in model.tag_many(mixed)] == [False, True, False, True, False]
    mixed[2] = []
    assert model.tag_many(mixed)[3] == model.tag(X[1])
    assert model.marginals_many(mixed)[1] == model.marginals(X[0])
    assert model.nbest_many(mixed, 2)[3:] == [model.nbest(X[1], 2), [([], 1.0)]]


def test_unknown_attributes_change_nothing(model):
    strange = [[*item, "never seen", "weder noch"] for item in X[3]]
    assert model.encode([strange]).n_dropped == 2 * len(X[3])
    assert model.marginals(strange) == model.marginals(X[3])
    assert len(model.attribute_alphabet) == model.layout.n_attributes
    assert model.tag([["never seen"]] * 3)


def test_unknown_labels_have_no_probability(model):
    y = ["B-NEW", *Y[0][1:]]
    assert model.probability(X[0], y) == 0.0
    assert model.log_probability(X[0], y) == -math.inf
    data = model.encode(X[:3], [Y[0], ["B-NEW"] * len(X[1]), Y[2]])
    assert data.labels.max() == len(model.labels)
    log_p = model.log_probability_dataset(data)
    assert np.isfinite(log_p).tolist() == [True, False, True]
    assert log_p[2] == pytest.approx(model.log_probability(X[2], Y[2]))
    assert "B-NEW" not in model.labels


def test_datasets_of_other_alphabets_are_translated(model):
    other = Dataset.from_sequences(X[::-1], Y[::-1])
    assert other.label_alphabet != model.label_alphabet
    own = model.encode(X[::-1], Y[::-1])
    assert own.labels is not None
    np.testing.assert_array_equal(model.tag_dataset(other), model.tag_dataset(own))
    np.testing.assert_array_equal(model.log_probability_dataset(other), model.log_probability_dataset(own))
    assert model.evaluate(other).by_label == model.evaluate(own).by_label


def test_threads_share_a_model(model, tmp_path):
    """As in a service: one loaded model; the threads make their first calls at once and share the pool."""

    def answers(asked):
        one = [(asked.tag(x), asked.marginals(x), asked.nbest(x, 2)) for x in X]
        return one, asked.tag_many(X, n_threads=2), asked.marginals_many(X, n_threads=2)

    expected, n = answers(model), 8
    model.save(tmp_path / "model.crfit")
    fresh, begin = load(tmp_path / "model.crfit"), Barrier(n)
    with ThreadPoolExecutor(n) as pool:
        jobs = [pool.submit(lambda: (begin.wait(), answers(fresh))[1]) for _ in range(n)]
        assert all(job.result() == expected for job in jobs)


def test_workers_forked_after_loading_tag_alike():
    code = """
import os, crfit
from crfit.demo import recipe_data
X, y = recipe_data(60, seed=4)
model = crfit.CRF(stop=crfit.Stop(max_iter=2)).fit(X, y).model_
expected = model.tag_many(X, n_threads=3)  # starts the worker threads, which a fork does not copy
child = os.fork()
if child == 0:
    same = model.tag_many(X, n_threads=3) == expected == [model.tag(x) for x in X]
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "0"


@settings(max_examples=15, deadline=None)
@given(problems(order=2))
def test_higher_order(problem):
    model, truth = problem.model(), Enumeration(problem.dataset, problem.layout, problem.w)
    marginals = model.marginals_dataset(problem.dataset)
    np.testing.assert_allclose(marginals, truth.node_marginals(), atol=1e-12)
    log_p = model.log_probability_dataset(problem.dataset)
    np.testing.assert_allclose(log_p, [s.scores[s.gold] - s.log_z for s in truth.sequences], atol=1e-10)


def test_higher_order_on_python_sequences():
    data = Dataset.from_sequences(X[:5], Y[:5])
    layout = make_layout(data, order=2)
    w = np.random.default_rng(1).normal(size=layout.n_weights)
    model = Model(w, layout, data.attribute_alphabet, data.label_alphabet, data.edge_alphabet)
    best, p = model.nbest(X[0], 1)[0]
    assert model.tag(X[0]) == best
    assert model.probability(X[0], best) == pytest.approx(p)


def test_bad_questions(model):
    with pytest.raises(OptionError, match="n=0"):
        model.nbest(X[0], 0)
    with pytest.raises(DataError, match="sequence 0"):
        model.probability(X[0], Y[0][:-1])
    with pytest.raises(DataError, match="position 1"):
        model.tag([["a"], [3]])
    with pytest.raises(DataError, match="no labels"):
        model.log_probability_dataset(model.encode(X))
