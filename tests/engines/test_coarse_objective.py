"""Objectives seen through other variables: against differences, against each other, and bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import Logistic
from crfit.engines import make_objective
from crfit.engines.aggregation import position_scores
from crfit.errors import CapabilityError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.trainers.quasi_newton.change_of_variables import (
    AggregatedObjective,
    ClusteredObjective,
    Clusters,
    ScaledObjective,
)
from crfit.trainers.quasi_newton.clusters import coarse_objective, default_factor, find_clusters
from oracle import Enumeration, objective_of, problems, random_dataset

DEVICES = ("reference", "cpu")


def at(view, u):
    """Value and gradient of a view."""
    out = np.empty(len(u))
    value, gradient = view.value_and_grad(u, out)
    assert gradient is out
    return value, out


def differences(view, u, h=1e-6):
    """Gradient by central differences, without a gradient of the objective."""

    def value(v):
        return view.objective.value(view.weights(v).copy())

    return np.array([(value(u + h * e) - value(u - h * e)) / (2 * h) for e in np.eye(len(u))])


def random_clusters(n, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    cmap = np.concatenate((np.arange(n_clusters), rng.integers(0, n_clusters, n - n_clusters)))
    return Clusters(rng.permutation(cmap))


def classifier(n=40, n_labels=2, n_attributes=12, n_free=0, values=False, seed=0, device="cpu", l2=0.7):
    data = random_dataset(
        seed, [1] * n, n_labels=n_labels, n_attributes=n_attributes, values=values, attributes_per_position=6
    )
    return make_objective(data, classifier_layout(data, n_free=n_free), l2=l2, device=device)


@given(seed=st.integers(0, 2**31), n=st.integers(1, 30), share=st.floats(0, 1))
def test_columns_are_orthonormal_and_projection_is_least_squares(seed, n, share):
    clusters = random_clusters(n, 1 + int(share * (n - 1)), seed)
    k = len(clusters)
    p = np.stack([clusters.expand(e) for e in np.eye(k)], axis=1)
    counts = p * np.sqrt(clusters.sizes)  # ones where a weight is in a cluster
    np.testing.assert_allclose(counts.T @ counts, np.diag(clusters.sizes), atol=1e-12)
    np.testing.assert_allclose(p.T @ p, np.eye(k), atol=1e-12)
    w = np.random.default_rng(seed).normal(size=n)
    u = clusters.project(w)
    np.testing.assert_allclose(u, p.T @ w, atol=1e-12)
    np.testing.assert_allclose(u, np.linalg.lstsq(p, w, rcond=None)[0], atol=1e-10)
    np.testing.assert_allclose(clusters.project(clusters.expand(u)), u, atol=1e-12)
    np.testing.assert_allclose(p.T @ clusters.remainder(w), 0.0, atol=1e-12)
    means = [w[clusters.cmap == c].mean() for c in range(k)]
    np.testing.assert_allclose(clusters.expand(u), np.array(means)[clusters.cmap], atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=12)
@given(data=st.data(), affine=st.booleans())
def test_coarse_gradient_is_that_of_differences(device, order, data, affine):
    problem = data.draw(problems(order=order))
    if not problem.layout.n_weights:
        return
    objective = objective_of(problem, device)
    n = objective.n_weights
    clusters = random_clusters(n, max(1, n // 3), problem.seed)
    view = ClusteredObjective(objective, clusters, clusters.remainder(problem.w) if affine else None)
    u = clusters.project(problem.w)
    value, gradient = at(view, u)
    np.testing.assert_allclose(gradient, differences(view, u), atol=2e-5)
    # The ridge counts a mean as often as there are weights in its cluster.
    w = problem.w if affine else clusters.expand(u)
    penalty = 0.5 * problem.l2 * (w @ w)
    if not affine:
        np.testing.assert_allclose(
            penalty, 0.5 * problem.l2 * clusters.sizes @ (u**2 / clusters.sizes), atol=1e-12
        )
    loss = Enumeration(problem.dataset, problem.layout, w).loss()
    np.testing.assert_allclose(value, loss + penalty, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("clustering", ["chunks", "kmeans", "temporal", "rows"])
def test_clusters_of_one_change_no_bit(device, order, affine, clustering):
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=9)
    objective = make_objective(data, l2=0.3, order=order, device=device, boundary=True)
    rng = np.random.default_rng(0)
    w, change = rng.normal(size=(2, objective.n_weights))
    clusters = find_clusters(objective, w, change, clustering, 1)
    u = clusters.project(w)
    assert u.tobytes() == w.tobytes()
    view = ClusteredObjective(objective, clusters, clusters.remainder(w) if affine else None)
    value, gradient = at(view, u)
    fine_value, fine_gradient = objective.value_and_grad(w)
    assert value == fine_value
    assert gradient.tobytes() == fine_gradient.tobytes()


def test_only_attributes_are_clustered():
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=9, n_edge_attributes=2)
    layout = make_layout(data, boundary=True, order=2, n_free=1)
    objective = make_objective(data, layout)
    w, change = np.random.default_rng(0).normal(size=(2, layout.n_weights))
    for clustering in ("chunks", "kmeans", "temporal", "rows"):
        clusters = find_clusters(objective, w, change, clustering, 4)
        alone = clusters.sizes[clusters.cmap] == 1
        assert alone[layout.free.start :].all(), "an intercept and what follows it move on their own"
        assert not alone[: layout.free.start].all()
        assert (
            clusters.cmap[layout.free.start :]
            == np.arange(-alone[layout.free.start :].size, 0) + len(clusters)
        ).all()


def test_equal_weights_have_no_clusters():
    assert find_clusters(Logistic(), np.full(15, 3.0), None, "chunks", 2) is None
    objective = classifier(n_attributes=5, n_free=1)
    w = np.zeros(objective.n_weights)
    w[-1] = 1.0  # the intercept alone
    assert find_clusters(objective, w, None, "chunks", 2) is None


def test_view_knows_the_last_point_alone():
    objective = Logistic()
    view = ClusteredObjective(objective, random_clusters(15, 4))
    u, v = np.random.default_rng(0).normal(size=(2, 4))
    assert view.gradient(u) is None
    at(view, u)
    gradient = view.gradient(u.copy())
    assert gradient is not None
    np.testing.assert_array_equal(gradient, objective.smooth(view.weights(u))[1])
    np.testing.assert_array_equal(view.weights(v), view.clusters.expand(v))
    assert view.gradient(u) is None
    assert view.gradient(v) is None


def test_default_factors():
    assert default_factor(Logistic()) == 10
    assert default_factor(classifier()) == 10
    assert default_factor(make_objective(random_dataset(0, [2, 1], n_labels=2))) == 5


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("n_free", [0, 1])
def test_merged_data_gives_what_accumulation_gives_on_chains(device, order, values, n_free):
    data = random_dataset(
        5, [4, 1, 6, 3], n_labels=3, n_attributes=9, values=values, weighted=True, n_edge_attributes=2
    )
    layout = make_layout(data, weights="all", boundary=True, order=order, n_free=n_free)
    objective = make_objective(data, layout, l2=0.3, device=device)
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    clusters = find_clusters(objective, w, None, "rows", 3)
    for base in (None, clusters.remainder(w)):
        u = clusters.project(w)
        merged = AggregatedObjective(objective, clusters, base)
        summed = ClusteredObjective(objective, clusters, base)
        for point in (u, np.random.default_rng(1).normal(size=len(u))):
            value, gradient = at(merged, point)
            expected_value, expected = at(summed, point)
            assert value == pytest.approx(expected_value, rel=1e-12)
            np.testing.assert_allclose(gradient, expected, atol=1e-11)
            np.testing.assert_array_equal(merged.weights(point), summed.weights(point))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n_labels", "clustering"), [(2, "chunks"), (2, "kmeans"), (2, "rows"), (4, "rows")])
@pytest.mark.parametrize("n_free", [0, 1])
def test_merged_data_gives_what_accumulation_gives_in_classifiers(device, n_labels, clustering, n_free):
    objective = classifier(n_labels=n_labels, n_free=n_free, values=True, device=device)
    w = np.random.default_rng(3).normal(size=objective.n_weights)
    clusters = find_clusters(objective, w, None, clustering, 3)
    merged = coarse_objective(objective, clusters, None, True)
    assert isinstance(merged, AggregatedObjective)
    u = clusters.project(w)
    value, gradient = at(merged, u)
    expected_value, expected = at(ClusteredObjective(objective, clusters), u)
    assert value == pytest.approx(expected_value, rel=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-11)
    np.testing.assert_allclose(gradient, differences(merged, u), atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, 2])
@settings(max_examples=15)
@given(data=st.data())
def test_constant_scores_are_those_of_weights(device, order, data):
    # Constants r and weights w score like r + w.
    problem = data.draw(problems(order=order))
    layout, rng = problem.layout, np.random.default_rng(problem.seed)
    r = np.zeros(layout.n_weights)
    r[: layout.n_state_weights] = rng.normal(size=layout.n_state_weights)
    objective = objective_of(problem, device)
    shifted = objective.aggregated(np.arange(layout.n_attributes), r)
    plain = replace(problem, l2=0.0)
    truth = Enumeration(problem.dataset, layout, problem.w + r)
    ridge = 0.5 * problem.l2 * (problem.w @ problem.w)
    value, gradient = shifted.value_and_grad(problem.w)
    np.testing.assert_allclose(value, truth.loss() + ridge, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        gradient, truth.expected() - truth.observed() + problem.l2 * problem.w, atol=1e-9
    )
    assert shifted.value(problem.w) == pytest.approx(value, rel=1e-12)
    whole = objective_of(plain, device)
    whole.value_and_grad(r + problem.w)
    d = problem.direction()
    np.testing.assert_allclose(shifted.hvp(d), whole.hvp(d) + problem.l2 * d, atol=1e-9)
    line, expected = shifted.along(d), objective_of(plain, device)
    expected.value_and_grad(r + problem.w)
    moved = problem.w + 0.3 * d
    assert line(0.3)[0] == pytest.approx(
        expected.along(d)(0.3)[0] + 0.5 * problem.l2 * (moved @ moved), abs=1e-9
    )


def test_scores_of_positions_do_not_depend_on_blocks(monkeypatch):
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=9, values=True)
    for weights in ("all", "observed"):
        layout = make_layout(data, weights=weights)
        w = np.random.default_rng(0).normal(size=layout.n_weights)
        monkeypatch.undo()
        whole = position_scores(data, layout, w)
        monkeypatch.setattr("crfit.engines.aggregation.BLOCK", 6)
        np.testing.assert_allclose(position_scores(data, layout, w), whole, atol=1e-14)


def test_what_cannot_be_merged_is_said():
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=9)
    objective = make_objective(data)  # weights="observed"
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    for clustering, why in (("chunks", "whole attributes"), ("rows", "different labels")):
        clusters = find_clusters(objective, w, None, clustering, 3)
        assert clusters is not None
        with pytest.raises(OptionError, match=why):
            coarse_objective(objective, clusters, None, True)
        kept = coarse_objective(objective, clusters, None, "auto")
        assert type(kept) is ClusteredObjective
    with pytest.raises(OptionError, match="use 'chunks'"):
        find_clusters(Logistic(), np.arange(15.0), None, "rows", 3)
    with pytest.raises(OptionError, match="whole attributes"):
        coarse_objective(Logistic(), random_clusters(15, 4), None, True)


def test_base_is_checked():
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=9)
    objective = make_objective(data, weights="all", device="reference")
    groups = np.arange(9)
    with pytest.raises(OptionError, match="give 36 weights"):
        objective.aggregated(groups, np.zeros(3))
    with pytest.raises(OptionError, match="weights of attributes can be constant"):
        objective.aggregated(groups, np.ones(36))
    shifted = objective.aggregated(groups, np.zeros(36))
    with pytest.raises(CapabilityError, match="lacks 'dual'"):
        shifted.dual(start=None, eta=0.1)


def test_auto_merges_where_it_pays():
    data = random_dataset(5, [4, 1, 6, 3], n_labels=3, n_attributes=120)
    chains = make_objective(data, weights="all")
    words = classifier(n=20, n_attributes=400)
    for objective, how, factor, expected in (
        (words, "chunks", 50, ClusteredObjective),
        (words, "chunks", 200, AggregatedObjective),
        (chains, "rows", 2, ClusteredObjective),
        (chains, "rows", 6, AggregatedObjective),
    ):
        w = np.random.default_rng(0).normal(size=objective.n_weights)
        clusters = find_clusters(objective, w, None, how, factor)
        assert clusters is not None
        assert type(coarse_objective(objective, clusters, None, "auto")) is expected
        assert type(coarse_objective(objective, clusters, None, False)) is ClusteredObjective


def test_passes_and_phases_of_merged_data_count():
    objective = classifier()
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    clusters = find_clusters(objective, w, None, "chunks", 3)
    merged = AggregatedObjective(objective, clusters)
    before = objective.phases.total
    at(merged, clusters.project(w))
    assert (objective.counts.grads, objective.counts.sequences) == (1, objective.n_sequences)
    assert objective.phases.total > before


def test_scaled_gradient_is_that_of_differences():
    objective = Logistic()
    rng = np.random.default_rng(0)
    view = ScaledObjective(objective, rng.uniform(0.1, 3.0, 15))
    u = rng.normal(size=15)
    value, gradient = at(view, u)
    assert value == objective.smooth(view.scale * u)[0]
    np.testing.assert_allclose(gradient, differences(view, u), atol=1e-5)
