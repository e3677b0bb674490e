"""Attributes in groups: the data, the weights, and which attributes are the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data import merging as equal_rows
from crfit.data import text
from crfit.data.merging import (
    aggregate_attributes,
    aggregate_layout,
    distinct_tokens,
    equal_attributes,
    expand_weights,
)
from crfit.data.templates import load_template
from crfit.engines import make_objective
from crfit.errors import OptionError
from crfit.layout import make_layout
from oracle import Enumeration, make_dataset, problems, random_dataset
from twins import redundant

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def grouped(draw, order=1):
    """A problem, and groups of its attributes in which all members have the same labels."""
    problem = draw(problems(order=order))
    data, layout = problem.dataset, problem.layout
    drawn = draw(st.lists(st.integers(0, 2), min_size=data.n_attributes, max_size=data.n_attributes))
    kinds = [()] * data.n_attributes
    if layout.state_ptr is not None:
        kinds = [tuple(part) for part in np.split(layout.state_labels, layout.state_ptr[1:-1])]
    return problem, numbered(list(zip(drawn, kinds, strict=True)))


def numbered(keys):
    """Keys as 0, 1, 2, ... by first appearance."""
    return np.array([list(dict.fromkeys(keys)).index(key) for key in keys], dtype=np.int32)


def columns(data):
    """Occurrences of each attribute, written out."""
    lists = [[] for _ in range(data.n_attributes)]
    values = np.ones(data.n_occurrences) if data.attr_values is None else data.attr_values
    for n in range(data.n_tokens):
        for k in range(data.attr_ptr[n], data.attr_ptr[n + 1]):
            lists[data.attr_ids[k]].append((n, float(values[k])))
    return [tuple(column) for column in lists]


def matrix(data):
    """Values as a dense matrix, [N, A]."""
    dense = np.zeros((data.n_tokens, data.n_attributes))
    for a, column in enumerate(columns(data)):
        for n, value in column:
            dense[n, a] += value
    return dense


def projection(layout, merged, groups):
    """P, column by column."""
    unit = np.eye(merged.n_weights)
    return np.array([expand_weights(layout, merged, groups, u) for u in unit]).T


@given(grouped())
def test_the_columns_of_p_are_orthonormal(case):
    problem, groups = case
    merged = aggregate_layout(problem.layout, groups)
    P = projection(problem.layout, merged, groups)
    np.testing.assert_allclose(P.T @ P, np.eye(merged.n_weights), atol=1e-14)
    u = np.random.default_rng(problem.seed).normal(size=merged.n_weights)
    np.testing.assert_allclose(expand_weights(problem.layout, merged, groups, u), P @ u, atol=1e-13)


@given(grouped())
def test_merged_data_has_the_value_of_the_weights_it_stands_for(case):
    problem, groups = case
    data, layout = problem.dataset, problem.layout
    merged = aggregate_layout(layout, groups)
    coarse = aggregate_attributes(data, groups)
    u = np.random.default_rng(problem.seed).normal(size=merged.n_weights)
    w = expand_weights(layout, merged, groups, u)
    by_definition = Enumeration(data, layout, w).loss() + 0.5 * problem.l2 * (w @ w)
    for device in ("cpu", "reference"):
        objective = make_objective(coarse, merged, l2=problem.l2, device=device)
        assert objective.value(u) == pytest.approx(by_definition, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_and_curvature_of_merged_data_are_projections(device, weights, order):
    data = redundant(3, n_edge_attributes=2, values=True, weighted=True)
    groups = equal_attributes(data)
    layout = make_layout(data, weights=weights, order=order, boundary=True)
    merged = aggregate_layout(layout, groups)
    assert merged.n_state_weights < 0.7 * layout.n_state_weights
    fine = make_objective(data, layout, l2=0.3, device=device)
    coarse = make_objective(aggregate_attributes(data, groups), merged, l2=0.3, device=device)
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, merged.n_weights))
    value, gradient = coarse.value_and_grad(u)
    fine_value, fine_gradient = fine.value_and_grad(expand_weights(layout, merged, groups, u))
    assert value == pytest.approx(fine_value, rel=1e-12)
    # Columns are equal, so that nothing of the gradient lies outside the subspace.
    np.testing.assert_allclose(expand_weights(layout, merged, groups, gradient), fine_gradient, atol=1e-11)
    product = fine.hvp(expand_weights(layout, merged, groups, v))
    np.testing.assert_allclose(expand_weights(layout, merged, groups, coarse.hvp(v)), product, atol=1e-11)


@given(grouped())
def test_values_are_sums_over_root_n(case):
    problem, groups = case
    data = problem.dataset
    merged = aggregate_attributes(data, groups)
    sizes = np.bincount(groups)
    member = groups[:, None] == np.arange(len(sizes))
    np.testing.assert_allclose(matrix(merged), matrix(data) @ member / np.sqrt(sizes), atol=1e-14)
    for n in range(merged.n_tokens):  # each once, in order of first appearance; an attribute alone as before
        old = data.attr_ids[data.attr_ptr[n] : data.attr_ptr[n + 1]].tolist()
        expected = dict.fromkeys(g if sizes[g] > 1 else (g, k) for k, g in enumerate(groups[old].tolist()))
        ids = merged.attr_ids[merged.attr_ptr[n] : merged.attr_ptr[n + 1]].tolist()
        assert ids == [key if isinstance(key, int) else key[0] for key in expected]
    names = data.attribute_alphabet.strings()
    assert list(merged.attribute_alphabet) == [names[int(np.argmax(member[:, g]))] for g in range(len(sizes))]


def test_groups_of_one_leave_the_data_as_it_is():
    data = make_dataset(
        [[[(2, 1.0), (0, 1.0), (2, 1.0)], [(1, 1.0)]]], None, n_labels=1, n_attributes=3, with_values=False
    )
    merged = aggregate_attributes(data, np.arange(3))
    assert merged.attr_values is None
    np.testing.assert_array_equal(merged.attr_ids, data.attr_ids)
    assert merged.attribute_alphabet == data.attribute_alphabet


def test_an_attribute_seen_with_value_0_stays_seen():
    data = make_dataset([[[(0, 0.0), (1, 0.0)], []]], [[1, 0]], n_labels=2, n_attributes=3)
    groups = equal_attributes(data)
    assert groups.tolist() == [0, 0, 1]  # the third has never been seen
    merged = aggregate_attributes(data, groups)
    assert merged.attr_ids.tolist() == [0]
    assert merged.attr_values.tolist() == [0.0]
    assert list(merged.attribute_alphabet) == [data.attribute_alphabet.strings()[a] for a in (0, 2)]
    layout = make_layout(data)
    assert aggregate_layout(layout, groups).n_state_weights == 1


def test_wrong_groups_are_refused():
    data = make_dataset([[[(0, 1.0)], [(1, 1.0)]]], [[0, 1]], n_labels=2, n_attributes=3)
    for groups, words in [
        ([0, 1], "an integer for each of 3"),
        ([0.0, 1.0, 2.0], "an integer for each of 3"),
        ([0, -1, 1], "numbered 0, 1, 2"),
        ([0, 2, 2], "group 1 is empty"),
    ]:
        with pytest.raises(OptionError, match=words):
            aggregate_attributes(data, groups)
    layout = make_layout(data, weights="observed")
    for groups in ([0, 0, 1], [0, 1, 1]):  # other labels; other numbers of labels
        with pytest.raises(OptionError, match="different labels"):
            aggregate_layout(layout, groups)
    for groups in ([0, 1, 1], [1, 2, 0], [1, 1, 0]):
        with pytest.raises(OptionError, match="into its own group, at the end"):
            aggregate_layout(make_layout(data, weights="all", n_free=1), groups)
    everything = make_layout(data, weights="all")
    with pytest.raises(OptionError, match="aggregate_layout"):
        expand_weights(everything, everything, [0, 0, 1], np.zeros(everything.n_weights))
    with pytest.raises(OptionError, match="give 10 weights"):
        expand_weights(everything, everything, [0, 1, 2], np.zeros(3))


@given(SEEDS, st.booleans(), st.integers(0, 3))
def test_equal_attributes_are_those_with_equal_columns(seed, values, n_free):
    data = redundant(seed, n_sequences=3, values=values)
    if values and seed % 2:  # few different values, zeros of both signs among them
        data = replace(data, attr_values=np.round(np.clip(data.attr_values, -0.7, 0.7)))
    n_free = min(n_free, data.n_attributes)
    keys = columns(data)
    expected = [*keys[: data.n_attributes - n_free], *range(n_free)]
    np.testing.assert_array_equal(equal_attributes(data, n_free), numbered(expected))


def test_repeats_at_a_position_in_another_order_are_not_taken_for_equal():
    # Their sums are equal whatever the random numbers are; the merged data would still be right.
    data = make_dataset(
        [[[(0, 1.0), (0, 2.0), (1, 2.0), (1, 1.0), (2, 1.0), (2, 2.0)]]], None, n_labels=1, n_attributes=3
    )
    assert equal_attributes(data).tolist() == [0, 1, 0]


@given(SEEDS, st.booleans())
def test_what_agrees_by_chance_is_told_apart(seed, values):
    data = redundant(seed, n_sequences=3, values=values)
    expected = equal_attributes(data)
    tokens, representatives = distinct_tokens(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows.np.random, "default_rng", lambda seed: Ones())
        patch.setattr(equal_rows, "_of_values", lambda values: np.ones(len(values)))
        np.testing.assert_array_equal(equal_attributes(data), expected)
        again, others = distinct_tokens(data)
        np.testing.assert_array_equal(again, tokens)
        np.testing.assert_array_equal(others, representatives)


class Ones:
    """A source of numbers that all are 1."""

    def random(self, n):
        return np.ones(n)


@given(SEEDS, st.booleans())
def test_distinct_tokens_are_those_with_equal_rows(seed, values):
    data = random_dataset(seed, [3, 1, 6], n_labels=2, n_attributes=2, values=values)
    if values:
        data = replace(data, attr_values=np.sign(data.attr_values))
    ones = np.ones(data.n_occurrences) if data.attr_values is None else data.attr_values
    spans = [slice(*data.attr_ptr[n : n + 2]) for n in range(data.n_tokens)]
    keys = [(tuple(data.attr_ids[span]), tuple(ones[span])) for span in spans]
    token_of, representatives = distinct_tokens(data)
    np.testing.assert_array_equal(token_of, numbered(keys))
    np.testing.assert_array_equal(representatives, [keys.index(key) for key in dict.fromkeys(keys)])


def test_nothing_at_all_is_merged_to_nothing():
    data = make_dataset([[[], []]], [[0, 1]], n_labels=2, n_attributes=0)
    assert equal_attributes(data).shape == (0,)
    assert aggregate_attributes(data, []).n_attributes == 0
    assert distinct_tokens(data)[0].tolist() == [0, 0]


def test_the_chunking_template_makes_a_third_of_its_attributes_twice(corpus):
    path = corpus("conll2000") / "train.txt.gz"
    data = text.read(str(path), template=load_template("chunking.template"))
    assert data.n_attributes == 338_551
    groups = equal_attributes(data)
    assert groups.max() + 1 == 241_689
    merged = aggregate_attributes(data, groups)
    assert merged.n_attributes == 241_689
    layout = make_layout(data, weights="all")
    assert (layout.n_weights, aggregate_layout(layout, groups).n_weights) == (7_448_606, 5_317_642)
    rng = np.random.default_rng(0)
    of_position = rng.random(data.n_tokens)
    values = np.repeat(of_position, np.diff(data.attr_ptr))
    sums = np.bincount(data.attr_ids, values)
    merged_values = np.repeat(of_position, np.diff(merged.attr_ptr)) * merged.attr_values
    np.testing.assert_allclose(
        np.bincount(merged.attr_ids, merged_values)[groups] / np.sqrt(np.bincount(groups))[groups], sums
    )
