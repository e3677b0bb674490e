"""Classifiers on the native engine: softmax and logistic kernels, shared tokens, offsets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import _native
from crfit.engines import make_objective
from crfit.engines.cpu import objective as cpu
from crfit.layout import classifier_layout, make_layout
from oracle import agree, make_dataset, random_dataset


def rows(n_labels, *, n=90, seed=0, values=True, weighted=True, n_attributes=30, per_row=7):
    """Sequences of one position; some attributes are given twice, some rows have none."""
    return random_dataset(
        seed, [1] * n, n_labels=n_labels, n_attributes=n_attributes, values=values, weighted=weighted,
        attributes_per_position=per_row,
    )  # fmt: skip


def weights_for(layout, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=layout.n_weights)


def native_batch(data, layout, n_threads=2, **options):
    return _native.Batch(cpu.native_data(data), cpu.native_layout(layout), n_threads, **options)


def everything(batch, w, v):
    """Value, gradient, expectations, product, diagonal, and value and slope along a line."""
    g, e, h, d = (np.empty_like(w) for _ in range(4))
    value = batch.loss_and_grad(w, 0.7, g)
    batch.expectations(w, e)
    batch.hessian_product(w, v, 0.7, h)
    batch.hessian_diagonal(w, d)
    batch.set_line(w, v)
    ids = np.array([3, 0, 5, 3], dtype=np.int64)
    part = np.empty_like(w)
    few = [batch.loss_and_grad_on(w, 0.2, ids, part), batch.loss_on(w, ids)]
    numbers = [value, batch.loss(w), *few, *batch.along(0.0), *batch.along(0.3), *batch.along(-2.0)]
    return [np.array(numbers), g, e, h, d, part]


def assert_same(found, expected, tolerance=1e-11):
    for ours, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, truth, rtol=0, atol=tolerance * max(1.0, np.abs(truth).max()))


@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9, 24, 33, 64, 65, 97])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_softmax_agrees_with_the_reference(n_labels, weights):
    data = rows(n_labels, seed=n_labels)
    layout = make_layout(data, weights=weights, transitions="none", boundary=n_labels % 2 == 0)
    agree(data, layout, weights_for(layout))


def test_transitions_of_single_positions_have_the_penalty_alone():
    data = rows(4)
    layout = make_layout(data, order=2, weights="all")
    agree(data, layout, weights_for(layout))


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_two_classes_with_one_weight_agree_with_the_reference(values, weighted):
    data = rows(2, n=1500, values=values, weighted=weighted)
    layout = classifier_layout(data)
    assert layout.n_weights == data.n_attributes
    agree(data, layout, weights_for(layout))


def test_as_many_weights_as_attributes_are_not_always_those_of_label_1():
    """The last attribute has none, and a transition makes up the number."""
    chain = make_dataset([[[(0, 1.0)], [(1, 1.0)]]], [[1, 1]], n_labels=2, n_attributes=3)
    layout = make_layout(chain, transitions="observed")
    assert layout.n_weights == 3
    assert layout.state_ptr.tolist() == [0, 1, 2, 2]
    # What stands behind the labels in memory must not be looked at.
    layout = replace(layout, state_labels=np.array([1, 1, 1], dtype=np.int32)[:2])
    data = make_dataset([[[(a, 1.0)]] for a in range(3)], [[1], [0], [1]], n_labels=2, n_attributes=3)
    agree(data, layout, np.array([0.3, -0.2, 0.9]))


@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6])
def test_large_scores_stay_right(scale):
    for n_labels in (2, 5):
        data = rows(n_labels, weighted=False)
        layout = classifier_layout(data)
        agree(data, layout, weights_for(layout, scale=scale))


def test_a_loss_far_below_rounding_of_one_keeps_its_digits():
    data = rows(2, n=40, values=False, weighted=False, per_row=1)
    data = replace(data, labels=np.zeros(40, dtype=np.int32))
    w = np.full(data.n_attributes, -60.0)
    g = np.empty_like(w)
    n_rows = np.diff(data.attr_ptr).sum()
    loss = native_batch(data, classifier_layout(data)).loss_and_grad(w, 0.0, g)
    empty = 40 - n_rows
    assert loss - empty * np.log(2.0) == pytest.approx(n_rows * np.exp(-60.0), abs=1e-14)
    assert g.sum() == pytest.approx(n_rows * np.exp(-60.0), rel=1e-12)


@pytest.mark.parametrize("n_labels", [2, 6, 70])
def test_every_cpu_level_agrees(cpu_level, n_labels):
    data = rows(n_labels, n=300)
    layout = classifier_layout(data)
    agree(data, layout, weights_for(layout))


@pytest.mark.parametrize("n_labels", [2, 5])
def test_the_number_of_threads_does_not_change_a_bit(n_labels):
    data = rows(n_labels, n=3000)
    layout = classifier_layout(data)
    w, v = weights_for(layout), weights_for(layout, 1)
    one, three = (everything(native_batch(data, layout, n), w, v) for n in (1, 3))
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


def doubled(data):
    """Every sequence twice, so that no position has its attributes to itself."""
    return data.subset(np.repeat(np.arange(data.n_sequences), 2))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("lengths", [[4, 1, 9, 3, 6, 2], [1] * 20])
def test_shared_tokens_change_nothing(lengths, weights, order):
    data = random_dataset(
        5, lengths, n_labels=5, n_attributes=9, values=True, weighted=True, n_edge_attributes=2,
        attributes_per_position=9,
    )  # fmt: skip
    data = doubled(data)
    layout = make_layout(data, weights=weights, boundary=True, order=order)
    w, v = weights_for(layout), weights_for(layout, 1)
    shared, plain = (native_batch(data, layout, share_from=share) for share in (0.0, np.inf))
    assert shared.n_distinct <= data.n_tokens // 2
    assert plain.n_distinct == data.n_tokens
    assert_same(everything(shared, w, v), everything(plain, w, v))
    # What is not kept is computed again at each product.
    out, truth = np.empty_like(w), np.empty_like(w)
    plain.hessian_product(w, v, 0.7, truth)
    for limits in (
        (False, False, 2, 1 << 40, True, False),
        (False, False, 0, 0, False, False),
        (False, False, 9, 1 << 40, True, True),
    ):
        shared.keep_curvature(*limits)
        shared.loss_and_grad(w, 0.7, np.empty_like(w))
        shared.hessian_product(w, v, 0.7, out)
        np.testing.assert_allclose(out, truth, rtol=0, atol=1e-10 * np.abs(truth).max())


def test_tokens_share_only_what_is_equal_to_the_last_bit():
    data = random_dataset(1, [3] * 40, n_labels=3, n_attributes=3, values=True, attributes_per_position=2)
    once = native_batch(data, make_layout(data), share_from=0.0)
    empty = int((np.diff(data.attr_ptr) == 0).sum())
    assert once.n_distinct == data.n_tokens - empty + 1  # values are drawn from a continuum
    ones = random_dataset(1, [3] * 100, n_labels=3, n_attributes=2, attributes_per_position=3)
    distinct = {tuple(ones.attr_ids[a:b]) for a, b in zip(ones.attr_ptr, ones.attr_ptr[1:], strict=False)}
    assert native_batch(ones, make_layout(ones), share_from=0.0).n_distinct == len(distinct)
    assert native_batch(ones, make_layout(ones)).n_distinct == ones.n_tokens  # too few to pay


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.booleans(), st.booleans())
def test_shared_tokens_on_random_data(seed, n_labels, values, one):
    rng = np.random.default_rng(seed)
    lengths = [1] * 8 if one else rng.integers(1, 6, 8).tolist()
    data = random_dataset(
        seed, lengths, n_labels=n_labels, n_attributes=3, values=values, attributes_per_position=7
    )
    data = doubled(data)
    layout = make_layout(data, weights=["all", "observed"][seed % 2])
    w, v = weights_for(layout, seed), weights_for(layout, seed + 1)
    shared, plain = (native_batch(data, layout, share_from=share) for share in (0.0, np.inf))
    assert_same(everything(shared, w, v), everything(plain, w, v), 1e-10)


@pytest.mark.parametrize("kind", ["chains", "softmax", "logistic", "shared"])
def test_offsets_are_scores_of_weights_that_stay_as_they_are(kind):
    if kind in ("chains", "shared"):
        data = random_dataset(
            2, [4, 1, 9, 3, 2, 5], n_labels=4, n_attributes=12, values=True, weighted=True,
            attributes_per_position=9,
        )  # fmt: skip
        data = doubled(data) if kind == "shared" else data
        layout = make_layout(data, weights="all")
    else:
        data = rows(2 if kind == "logistic" else 5)
        layout = classifier_layout(data)
    base, u, v = (weights_for(layout, seed) for seed in range(3))
    base[layout.n_state_weights :] = 0.0
    scores = node_scores(data, layout, base)
    moved = native_batch(data, layout, offsets=scores, share_from=0.0 if kind == "shared" else np.inf)
    plain = native_batch(data, layout, share_from=np.inf)
    found, expected = everything(moved, u, v), everything(plain, u + base, v)
    # The penalty is that of u alone: 0.7 in the whole data, 0.2 in a few sequences.
    lost = 0.5 * (np.dot(u + base, u + base) - np.dot(u, u))
    expected[0][0] -= 0.7 * lost
    expected[0][2] -= 0.2 * lost
    expected[1] -= 0.7 * base
    expected[5] -= 0.2 * base
    assert_same(found, expected)


def node_scores(data, layout, w):
    """x_t.w for each position and label, written out."""
    scores = np.zeros((data.n_tokens, layout.n_labels))
    for t in range(data.n_tokens):
        for k in range(data.attr_ptr[t], data.attr_ptr[t + 1]):
            a = data.attr_ids[k]
            value = 1.0 if data.attr_values is None else data.attr_values[k]
            if layout.state_labels is None:
                scores[t] += value * w[a * layout.n_labels : (a + 1) * layout.n_labels]
            else:
                places = slice(layout.state_ptr[a], layout.state_ptr[a + 1])
                scores[t, layout.state_labels[places]] += value * w[places]
    return scores


def test_offsets_of_a_wrong_shape_are_refused():
    data = rows(3)
    with pytest.raises(ValueError, match="a row per position"):
        native_batch(data, classifier_layout(data), offsets=np.zeros((data.n_tokens, 2)))


def test_a_classifier_with_many_labels_needs_no_table_of_label_pairs():
    data = rows(1000, n=5, n_attributes=4)
    objective = make_objective(data, classifier_layout(data), l2=1.0)
    value, _ = objective.value_and_grad(np.zeros(objective.n_weights))
    assert value == pytest.approx(np.log(1000) * objective.total_weight)
