"""Clusterings of weights: what each promises, on drawn weights with many ties."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.data.merging import aggregate_layout, expand_weights
from crfit.layout import make_layout
from crfit.trainers.quasi_newton.clusters import chunks, kmeans, row_clusters, row_groups, temporal, tiles
from oracle import random_dataset

# Few different values, so that ties are many, and values at the ends of the range of doubles' use.
weights = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-100, 100, allow_nan=False)), min_size=1, max_size=60
).map(np.array)
factors = st.integers(1, 12)


def members(cmap):
    """Indices of each cluster."""
    return [np.flatnonzero(cmap == k) for k in range(int(cmap.max()) + 1)]


def heavy_tailed(n, seed=0):
    return np.random.default_rng(seed).standard_t(2, size=n)


def spread(points, cmap):
    """Squared distances to the means of the clusters."""
    return sum(float(((points[k] - points[k].mean(axis=0)) ** 2).sum()) for k in members(cmap))


@given(w=weights, factor=factors)
def test_chunks_are_runs_of_sorted_weights(w, factor):
    cmap = chunks(w, factor)
    clusters = members(cmap)
    assert len(clusters) == math.ceil(len(w) / factor)
    assert all(0 < len(k) <= factor for k in clusters)
    ends = sorted((w[k].min(), w[k].max()) for k in clusters)
    assert all(high <= low for (_, high), (low, _) in pairwise(ends)), "not contiguous"


@given(w=weights, factor=factors, span=st.sampled_from([1e-9, 0.5, 1.0, 40.0]))
def test_chunks_span_no_more_than_they_may(w, factor, span):
    clusters = members(chunks(w, factor, span))
    assert all(len(k) <= factor and w[k].max() - w[k].min() <= span * (1 + 1e-9) for k in clusters)
    assert len(clusters) >= len(members(chunks(w, factor)))


def test_a_wide_span_changes_nothing():
    w = heavy_tailed(50)
    np.testing.assert_array_equal(chunks(w, 4, 1e9), chunks(w, 4))


def test_equal_weights_fall_together_in_their_order():
    np.testing.assert_array_equal(chunks(np.zeros(7), 3), [0, 0, 0, 1, 1, 1, 2])
    np.testing.assert_array_equal(chunks(np.array([1.0, 0.0, 1.0, 0.0, 1.0]), 2), [0, 1, 0, 1, 2])


@given(w=weights, factor=factors)
def test_kmeans_is_a_fixed_point_of_lloyd(w, factor):
    clusters = members(kmeans(w, factor))
    assert sum(map(len, clusters)) == len(w)
    assert len(clusters) <= math.ceil(len(w) / factor)
    means = np.array([w[k].mean() for k in clusters])
    for k, mean in zip(clusters, means, strict=True):
        nearest = np.abs(w[k, None] - means).min(axis=1)
        np.testing.assert_allclose(np.abs(w[k] - mean), nearest, atol=1e-10)


def test_kmeans_loses_less_than_chunks():
    w = heavy_tailed(2000)
    assert spread(w, kmeans(w, 10)) < 0.5 * spread(w, chunks(w, 10))


@settings(max_examples=50)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 80), q=st.integers(1, 4), factor=factors)
def test_tiles_are_small_and_not_too_many(seed, n, q, factor):
    points = np.random.default_rng(seed).standard_t(2, size=(n, q)) * np.geomspace(4.0, 0.5, q)
    clusters = members(tiles(points, factor))
    assert all(0 < len(k) <= factor for k in clusters)
    assert len(clusters) >= math.ceil(n / factor)


def test_tiles_of_one_coordinate_are_chunks():
    w = heavy_tailed(101)
    np.testing.assert_array_equal(tiles(w[:, None], 7), chunks(w, 7))


def test_tiles_of_many_points():
    points = np.random.default_rng(0).normal(size=(5000, 2))
    cmap = tiles(points, 10)
    assert 500 <= len(members(cmap)) <= 600
    # A fraction of what runs along one coordinate alone lose in the other.
    assert spread(points, cmap) < 0.02 * spread(points, chunks(points[:, 0], 10))


def test_tiles_spare_the_few_large_weights():
    # Slabs of equally many points would hold them all in one, and lose more than chunks do.
    w, change = heavy_tailed(5000), np.random.default_rng(9).normal(size=5000)
    assert spread(w, temporal(w, change, 10)) < 0.5 * spread(w, chunks(w, 10))


def test_temporal_tells_weights_apart_by_their_changes():
    w = np.repeat([0.0, 5.0], 8)
    change = np.tile([-1e-6, 1e-6], 8)
    for k in members(temporal(w, change, 4)):
        assert len(set(zip(w[k], change[k], strict=True))) == 1
    # Units of either do not matter.
    np.testing.assert_array_equal(temporal(w, change, 4), temporal(w, 1e9 * change, 4))


def test_temporal_without_changes_is_chunks():
    w = heavy_tailed(30)
    np.testing.assert_array_equal(temporal(w, np.zeros(30), 4), chunks(w, 4))


def layout_of(weights, n_labels=3, n_attributes=20, n_free=0):
    data = random_dataset(1, [6] * 12, n_labels=n_labels, n_attributes=n_attributes)
    return make_layout(data, weights=weights, n_free=n_free)


@pytest.mark.parametrize("kind", ["all", "observed"])
@pytest.mark.parametrize("n_labels", [2, 3, 40])
@pytest.mark.parametrize("n_free", [0, 1])
def test_rows_cluster_whole_attributes(kind, n_labels, n_free):
    layout = layout_of(kind, n_labels, n_free=n_free)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    groups = row_groups(layout, w, 4)
    clusters = members(groups)
    assert all(0 < len(k) <= 4 for k in clusters)
    assert len(clusters) >= 5
    if n_free:
        assert clusters[-1].tolist() == [layout.n_attributes - 1]
    cmap = row_clusters(layout, groups)
    assert sorted(set(cmap)) == list(range(int(cmap.max()) + 1))
    ptr = layout.state_ptr if layout.state_ptr is not None else n_labels * np.arange(layout.n_attributes + 1)
    labels = layout.state_labels
    if labels is None:
        labels = np.tile(np.arange(n_labels), layout.n_attributes)
    attributes = np.repeat(np.arange(layout.n_attributes), np.diff(ptr))
    for k in members(cmap):
        assert len(set(zip(groups[attributes[k]], labels[k], strict=True))) == 1


def test_rows_with_the_same_weights_fall_together():
    layout = layout_of("all", n_labels=3, n_attributes=8)
    rows = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 2, axis=0)
    groups = row_groups(layout, np.concatenate((rows.ravel(), np.zeros(9))), 2)
    np.testing.assert_array_equal(groups, [0, 0, 1, 1, 2, 2, 3, 3])


def test_row_clusters_are_numbered_as_merged_data_numbers_them():
    layout = layout_of("all", n_free=1)
    groups = row_groups(layout, np.random.default_rng(0).normal(size=layout.n_weights), 3)
    merged = aggregate_layout(layout, groups)
    u = np.arange(float(merged.n_weights))
    root = np.sqrt(np.bincount(groups))[np.repeat(groups, 3)]
    expanded = expand_weights(layout, merged, groups, u)[: layout.n_state_weights]
    np.testing.assert_allclose(expanded * root, u[row_clusters(layout, groups)])


@pytest.mark.parametrize("n", [1, 17])
def test_clusters_of_one_are_the_identity(n):
    w, layout = heavy_tailed(n), layout_of("observed")
    for cmap in (chunks(w, 1), kmeans(w, 1), temporal(w, w[::-1].copy(), 1)):
        np.testing.assert_array_equal(cmap, np.arange(n))
    v = heavy_tailed(layout.n_weights)
    np.testing.assert_array_equal(row_groups(layout, v, 1), np.arange(layout.n_attributes))
    state = np.arange(layout.n_state_weights)
    np.testing.assert_array_equal(row_clusters(layout, np.arange(layout.n_attributes)), state)
