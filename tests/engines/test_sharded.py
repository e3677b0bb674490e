"""The sum over shards against the objective on the whole data."""

from dataclasses import replace

import numpy as np
import pytest

import crfit
from crfit import make_objective
from crfit.data.label_sets import LabelSets
from crfit.data.shards import Shards
from crfit.engines.objective import Curvature
from crfit.engines.sharded import Part, ShardedObjective, Term, TermOptions, TreeSum
from crfit.errors import CapabilityError, OptionError
from crfit.layout.constraints import Constraints
from crfit.layout.sharded import shard_layout
from oracle import random_dataset

LENGTHS = [4, 1, 6, 3, 2, 9] * 6
CASES = [
    {},
    {"weights": "all"},
    {"transitions": "observed", "boundary": True, "l2": 0.3},
    {"transitions": "none"},
    {"order": 2, "boundary": True},
    {"n_free": 3},
    {"device": "reference"},
    {"arithmetic": "log"},
]


def data(**options):
    options = {
        "n_labels": 3,
        "n_attributes": 40,
        "n_edge_attributes": 5,
        "values": True,
        "weighted": True,
    } | options
    return random_dataset(1, LENGTHS, **options)


def both(dataset, n=5, **options):
    whole = make_objective(dataset, **options)
    parts = make_objective(Shards.of(dataset, n), **options)
    assert isinstance(parts, ShardedObjective)
    assert parts.n_weights == whole.n_weights
    assert parts.total_weight == pytest.approx(whole.total_weight, rel=1e-14)
    return whole, parts


def vectors(objective, n=3):
    return np.random.default_rng(0).normal(size=(n, objective.n_weights)) / 3.0


def close(a, b, size=1.0):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * size)


def compare(whole, parts):
    """Everything that a batch trainer asks for."""
    w, v, d = vectors(whole)
    value, gradient = whole.value_and_grad(w)
    own_value, own_gradient = parts.value_and_grad(w)
    close(value, own_value)
    close(gradient, own_gradient, value)
    close(whole.value(w), parts.value(w))
    close(whole.observed(), parts.observed(), value)
    close(whole.hvp(v), parts.hvp(v), value)
    close(whole.hessian_diagonal(), parts.hessian_diagonal(), value)
    assert parts.counts == whole.counts
    line, own_line, other = whole.along(d), parts.along(d), parts.along(v)
    for step in (0.0, 0.5):
        close(line(step), own_line(step), value)
        assert other(step) == parts.along(v)(step)  # another line in between
    if "expectations" in whole.capabilities:
        close(whole.expectations(w), parts.expectations(w), value)


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("n", [1, 5])
def test_everything_is_that_of_the_whole_data(options, n):
    compare(*both(data(), n, **options))


@pytest.mark.parametrize("more", [{"n_edge_attributes": 0}, {"values": False}, {"weighted": False}])
def test_other_kinds_of_data(more):
    compare(*both(data(**more)))


def test_a_layout_of_ones_own():
    dataset = data()
    layout = crfit.layout.make_layout(dataset, weights="all", order=2)
    compare(make_objective(dataset, layout), make_objective(Shards.of(dataset, 4), layout))
    with pytest.raises(OptionError, match="the given layout has order=2"):
        make_objective(Shards.of(dataset, 4), layout, order=1)


def test_values_on_some_sequences():
    whole, parts = both(data())
    w = vectors(whole)[0]
    for ids in ([0, 7, 8, 30, 7], [35], []):
        close(whole.value(w, ids), parts.value(w, ids))
        close(whole.value_and_grad(w, subset=ids)[1], parts.value_and_grad(w, subset=ids)[1])
        close(whole.observed(ids), parts.observed(ids))


def test_largest_feature_sums_are_in_the_order_of_sequences():
    whole, parts = both(data(values=False))
    assert np.array_equal(whole.feature_totals(), parts.feature_totals())


def partial(dataset):
    """Some positions with two of three labels, or any."""
    rng = np.random.default_rng(3)
    rows = rng.integers(-1, 2, dataset.n_tokens).astype(np.int32)
    scores = np.array([[0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]])
    rows[(rows == 0) & (dataset.labels == 2)] = -1
    return replace(dataset, label_sets=LabelSets(rows, scores))


def test_partial_labels():
    whole, parts = both(partial(data(n_edge_attributes=0)))
    compare(whole, parts)
    assert "subset" not in parts.capabilities


def test_costs_constraints_and_a_pull_toward_old_weights():
    dataset = data()
    follow = np.ones((3, 3), dtype=bool)
    free = Constraints(follow, np.ones(3, dtype=bool), np.ones(3, dtype=bool))
    first = dataset.labels[dataset.seq_ptr[:-1]]
    begin = np.isin(np.arange(3), first[:1])
    costs = 0.5 - 0.5 * np.eye(3)
    compare(*both(dataset, costs=costs))
    same_start = dataset.subset(np.flatnonzero(first == first[0]))
    compare(*both(same_start, constraints=replace(free, begin=begin)))
    toward = np.random.default_rng(5).normal(size=make_objective(dataset).n_weights)
    whole, parts = both(dataset, toward=toward)
    compare(whole, parts)
    whole, parts = both(dataset)
    scale = np.linspace(0.5, 2.0, whole.n_weights)
    whole.scale_l2(scale)
    parts.scale_l2(scale)
    compare(whole, parts)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 8, 13])
def test_the_tree_gives_the_same_bytes_for_parts_and_for_nodes(n):
    rng = np.random.default_rng(n)
    places = [np.sort(rng.choice(50, 30, replace=False)) for _ in range(n)]
    parts = [Part((float(rng.normal()),), rng.normal(size=30)) for _ in range(n)]
    plain = TreeSum(50)
    for part, own in zip(parts, places, strict=True):
        plain.add(part, own)
    numbers, vector = plain.result()
    expected = np.zeros(50)
    for part, own in zip(parts, places, strict=True):
        expected[own] += part.vector
    np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-13)
    assert numbers == pytest.approx([sum(part.numbers[0] for part in parts)], abs=1e-13)
    nodes, first = TreeSum(50), 0
    while first < n:  # the largest nodes from here
        size = next(s for s in (8, 4, 2, 1) if first % s == 0 and first + s <= n)
        union = np.unique(np.concatenate(places[first : first + size]))
        inner = TreeSum(len(union))
        for part, own in zip(parts[first : first + size], places[first : first + size], strict=True):
            inner.add(part, np.searchsorted(union, own))
        nodes.add(Part(*inner.result()), union, size)
        first += size
    other_numbers, other = nodes.result()
    assert (numbers, vector.tobytes()) == (other_numbers, other.tobytes())


@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg", "auto", "bfgs", "gis", "clustered_lbfgs"])
def test_batch_trainers_run_unchanged_with_the_same_bytes_for_any_number_of_threads(trainer):
    dataset = data(values=False, weighted=False)
    stop = crfit.Stop(max_iter=60) if trainer == "gis" else None
    results = [
        crfit.train(make_objective(Shards.of(dataset, 5), n_threads=n), trainer, stop=stop) for n in (1, 1, 3)
    ]
    assert len({result.weights.tobytes() for result in results}) == 1
    best = crfit.train(make_objective(dataset), "lbfgs", stop=crfit.Stop(grad_inf=1e-9, max_iter=1000))
    assert results[0].objective == pytest.approx(best.objective, rel=0.05 if trainer == "gis" else 1e-3)


def test_l1():
    parts = make_objective(Shards.of(data(), 5), l1=0.5, l2=0.1)
    best = crfit.train(make_objective(data(), l1=0.5, l2=0.1), "lbfgs")
    for trainer in ("lbfgs", "newton_cg"):
        assert crfit.train(parts, trainer).objective == pytest.approx(best.objective, rel=1e-3)


@pytest.mark.parametrize("trainer", ["sgd", "adagrad", "ngd", "eg", "perceptron", "aitken"])
def test_other_trainers_are_refused_by_name_with_those_that_can(trainer):
    l2 = 0.0 if trainer == "perceptron" else 1.0
    with pytest.raises(CapabilityError, match=r"data in shards.*use one of: .*lbfgs, newton_cg, auto"):
        crfit.train(make_objective(Shards.of(data(), 3), l2=l2), trainer)


@pytest.mark.parametrize("kept", [Curvature(), Curvature(storage="float32"), Curvature(cache=3), None])
@pytest.mark.parametrize("options", [{}, {"order": 2}, {"device": "reference"}])
def test_a_term_that_is_made_again_gives_the_same_bytes(kept, options):
    parts = make_objective(Shards.of(data(), 4), **options)
    parts.keep_curvature(kept)
    runner = parts.runner
    w, v, d = vectors(parts)
    parts.value_and_grad(w)
    product, diagonal, line = parts.hvp(v), parts.hessian_diagonal(), parts.along(d)
    at_once = line(0.7)
    shards = Shards.of(data(), 4)
    how = TermOptions(device=options.get("device", "cpu"))
    for begin in ("product", "diagonal", "line"):  # whatever is asked for first
        loaded = [shards.load(i) for i in range(4)]
        own = [shard_layout(parts.layout, shard.attributes, shard.edges) for shard in loaded]
        runner._terms = [Term(*pair, how) for pair in zip(loaded, own, strict=True)]
        runner.keep_curvature(kept)
        if begin == "line":
            assert line(0.7) == at_once
        if begin == "diagonal":
            assert parts.hessian_diagonal().tobytes() == diagonal.tobytes()
        assert parts.hvp(v).tobytes() == product.tobytes()
    parts.value_and_grad(v)
    parts.value_and_grad(w)
    assert parts.hvp(v).tobytes() == product.tobytes()


def test_options_that_do_not_suit_shards():
    shards = Shards.of(data(), 3)
    with pytest.raises(OptionError, match="min_count=2: rare attributes"):
        make_objective(shards, min_count=2)
    with pytest.raises(OptionError, match="n=0"):
        Shards.of(data(), 0)


def test_a_model_from_shards_is_the_model():
    dataset = data(values=False, weighted=False)
    whole, parts = both(dataset)
    stop = crfit.Stop(max_iter=20)
    models = [crfit.Model.from_training(one, crfit.train(one, "lbfgs", stop=stop)) for one in (whole, parts)]
    close(models[0].weights, models[1].weights, 1e4)
    assert models[0].attribute_alphabet == models[1].attribute_alphabet
