"""Which features have a weight, where, and how often they occur."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.errors import DataError, OptionError
from crfit.layout import features as feature_codes
from crfit.layout import make_layout
from crfit.layout.features import MAX_ORDER, largest_order
from oracle import Problem, feature_ids, make_dataset, path_features, problems, random_dataset


def example(**options):
    """Two sequences over labels y0..y2 (y2 never used) with attributes a0..a3 (a2 never used)."""
    return make_dataset(
        [[[(3, 1.0), (0, 2.0)], [(1, 1.0)], [(1, 1.0), (1, 0.5)]], [[(3, 1.0)]]], [[0, 1, 1], [1]],
        n_labels=3, n_attributes=4, edges=[[[], [1], [1, 0]], [[]]], n_edge_attributes=2, **options,
    )  # fmt: skip


def test_observed_features_in_their_places():
    layout = make_layout(example(), transitions="observed", boundary=True, order=2)
    assert layout.state_ptr.tolist() == [0, 1, 2, 2, 4]
    assert layout.state_labels.tolist() == [0, 1, 0, 1]
    assert layout.state_labels.dtype == np.int32
    assert [codes.tolist() for codes in layout.transition_codes] == [[1, 4], [0 * 9 + 1 * 3 + 1]]
    assert layout.edge_ptr.tolist() == [0, 1, 3]
    assert layout.edge_codes.tolist() == [4, 1, 4]
    assert layout.transition_offsets == (4, 6)
    assert (layout.start_offset, layout.end_offset, layout.edge_offset) == (7, 10, 13)
    assert layout.n_weights == 16
    assert (layout.n_state_weights, layout.n_transition_weights) == (4, 3)
    assert (layout.n_boundary_weights, layout.n_edge_weights) == (6, 3)
    assert layout.transition_slice(2) == slice(6, 7)


def test_all_features_in_their_places():
    layout = make_layout(example(), weights="all", order=2)
    assert layout.state_ptr is None
    assert layout.transition_codes == (None, None)
    assert layout.transition_offsets == (12, 21)
    assert layout.start_offset == layout.end_offset == layout.edge_offset == 12 + 9 + 27
    assert layout.n_weights == 12 + 9 + 27 + 2 * 9


def test_no_transitions_by_option_or_by_template():
    by_option = make_layout(example(), transitions="none")
    by_template = make_layout(replace(example(), plain_transitions=False), transitions="all")
    for layout in (by_option, by_template):
        assert layout.transitions == "none"
        assert layout.n_transition_weights == 0
        assert layout.n_edge_weights == 3


@settings(max_examples=60, deadline=None)
@given(data=st.data(), order=st.integers(1, 3))
def test_observed_features_are_those_that_fire_on_the_labels(data, order):
    problem: Problem = data.draw(problems(order=order))
    dataset, layout = problem.dataset, problem.layout
    everything = make_layout(dataset, weights="all", boundary=layout.boundary, order=order)
    ids = feature_ids(everything)
    total, fires = np.zeros(everything.n_weights), np.zeros(everything.n_weights, dtype=bool)
    unit = replace(dataset, attr_values=None, sequence_weights=None)
    for i in range(dataset.n_sequences):
        gold = tuple(dataset.labels[dataset.seq_ptr[i] : dataset.seq_ptr[i + 1]].tolist())
        c = 1.0 if dataset.sequence_weights is None else dataset.sequence_weights[i]
        total += c * path_features(dataset, everything, ids, i, gold)
        fires |= path_features(unit, everything, ids, i, gold) > 0
    np.testing.assert_allclose(everything.observed_counts(dataset), total, rtol=1e-12, atol=1e-12)
    own = feature_ids(layout)
    assert len(own) == layout.n_weights
    counts = layout.observed_counts(dataset)
    for name, number in ids.items():
        block = {"state": layout.weights, "edge": layout.weights, "ngram": layout.transitions}.get(
            name[0], "all"
        )
        assert (name in own) == {"all": True, "none": False, "observed": fires[number]}[block]
        if name in own:
            assert counts[own[name]] == pytest.approx(total[number], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("dense_codes", [feature_codes.DENSE_CODES, 0])
def test_counts_leave_out_features_without_a_weight(dense_codes, monkeypatch):
    monkeypatch.setattr(feature_codes, "DENSE_CODES", dense_codes)
    layout = make_layout(example(), transitions="observed")
    held_out = make_dataset([[[(2, 1.0), (0, 1.0)], [(0, 3.0)]]], [[2, 0]], n_labels=3, n_attributes=4)
    counts = layout.observed_counts(held_out)
    assert counts[0] == 3.0
    assert counts.sum() == 3.0


def test_sorting_and_marking_give_the_same_layout(monkeypatch):
    dataset = random_dataset(3, [5, 9, 2], n_labels=4, n_attributes=30, n_edge_attributes=3, values=True)
    marked = make_layout(dataset, transitions="observed", order=2)
    counts = marked.observed_counts(dataset)
    monkeypatch.setattr(feature_codes, "DENSE_CODES", 0)
    by_sorting = make_layout(dataset, transitions="observed", order=2)
    for name in ("state_ptr", "state_labels", "edge_ptr", "edge_codes"):
        np.testing.assert_array_equal(getattr(by_sorting, name), getattr(marked, name))
    for one, other in zip(by_sorting.transition_codes, marked.transition_codes, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(by_sorting.observed_counts(dataset), counts, rtol=1e-12)
    nothing = make_layout(dataset, transitions="none")
    assert nothing.observed_counts(dataset).shape == (nothing.n_weights,)


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_weight_has_a_name_of_its_own(weights):
    dataset = example()
    layout = make_layout(dataset, weights=weights, transitions=weights, boundary=True, order=2)
    kinds = {"state": "state", "ngram": "transition", "start": "start", "end": "end", "edge": "edge"}
    names = set()
    for name, number in feature_ids(layout).items():
        feature = layout.describe(number, dataset)
        assert feature.kind == kinds[name[0]]
        with_attribute = name[0] in ("state", "edge")
        prefix = {"state": "a", "edge": "e"}.get(name[0])
        assert feature.attribute == (f"{prefix}{name[1]}" if with_attribute else None)
        assert feature.labels == tuple(f"y{y}" for y in name[2 if with_attribute else 1 :])
        names.add(str(feature))
    assert len(names) == layout.n_weights
    for outside in (-1, layout.n_weights):
        with pytest.raises(OptionError, match="weight_id"):
            layout.describe(outside, dataset)


def test_names_read_well():
    dataset = example()
    layout = make_layout(dataset, weights="all", boundary=True)
    shown = [str(layout.describe(k, dataset)) for k in (1, 12 + 1, 21 + 2, 24 + 2, 27 + 9 + 1)]
    assert shown == ["a0: y1", "y0 -> y1", "START -> y2", "y2 -> END", "e1: y0 -> y1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "some"}, "weights='some'"), ({"transitions": "few"}, "transitions='few'"),
        ({"order": 0}, "order=0"), ({"order": 1.5}, "order=1.5"), ({"order": True}, "order=True"),
        ({"boundary": "no"}, "boundary='no': give True or False"), ({"boundary": 1}, "boundary=1"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_layout(example(), **options)


def test_an_order_that_does_not_fit_is_refused_with_one_that_does():
    dataset = make_dataset([[[]]], [[0]], n_labels=60, n_attributes=1)
    make_layout(dataset, order=3)
    with pytest.raises(OptionError, match=r"order=4.*set order=3 or less"):
        make_layout(dataset, order=4)
    with pytest.raises(OptionError, match="reduce the number of labels"):
        make_layout(make_dataset([[[]]], [[0]], n_labels=8000, n_attributes=1))


@pytest.mark.parametrize(("n_labels", "fitting"), [(1, MAX_ORDER), (2, 24), (60, 3)])
def test_an_absurd_order_is_refused_at_once(n_labels, fitting):
    dataset = make_dataset([[[]]], [[0]], n_labels=n_labels, n_attributes=1)
    with pytest.raises(OptionError, match=f"order={10**12}.*{fitting}"):
        make_layout(dataset, order=10**12)
    make_layout(dataset, order=fitting, transitions="none")


@given(st.integers(1, 100), st.integers(1, 10**9))
def test_largest_order_is_the_largest_that_fits(n_labels, limit):
    order = largest_order(n_labels, limit)
    assert order == 0 or n_labels ** (order + 1) <= limit
    assert order == MAX_ORDER or n_labels ** (order + 2) > limit


def test_more_weights_than_a_vector_can_hold_are_refused():
    layout = make_layout(make_dataset([[[]]], [[0]], n_labels=2, n_attributes=1), weights="all")
    with pytest.raises(OptionError, match="weights='observed'"):
        replace(layout, n_attributes=2_000_000_000)


def test_observed_features_need_labels():
    unlabelled = make_dataset([[[(0, 1.0)]]], None, n_labels=2, n_attributes=1)
    make_layout(unlabelled, weights="all")
    with pytest.raises(DataError, match="no labels"):
        make_layout(unlabelled)
    with pytest.raises(DataError, match="no labels"):
        make_layout(unlabelled, weights="all", transitions="observed")


BROKEN = {
    "pointer too short": {"state_ptr": np.array([0, 1, 2, 4])},
    "pointer falls": {"state_ptr": np.array([0, 2, 1, 2, 4])},
    "pointer beyond the end": {"state_ptr": np.array([0, 1, 2, 2, 5])},
    "label outside": {"state_labels": np.array([0, 1, 0, 3], dtype=np.int32)},
    "negative label": {"state_labels": np.array([-1, 1, 0, 1], dtype=np.int32)},
    "labels do not ascend": {"state_labels": np.array([0, 1, 1, 1], dtype=np.int32)},
    "pair outside": {"edge_codes": np.array([4, 1, 9], dtype=np.int32)},
    "code outside": {"transition_codes": (np.array([1, 9]),)},
    "codes do not ascend": {"transition_codes": (np.array([4, 1]),)},
    "one code list too many": {"transition_codes": (np.array([1]), np.array([1]))},
    "codes missing": {"transition_codes": (None,)},
    "states missing": {"state_ptr": None},
    "lists for all": {"weights": "all"},
    "codes for all": {"transitions": "all"},
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_layout_that_contradicts_itself_is_refused(fault):
    layout = make_layout(example(), transitions="observed")
    with pytest.raises(OptionError):
        replace(layout, **BROKEN[fault])


def test_digits_undo_the_code():
    for code, labels in enumerate(itertools.product(range(3), repeat=4)):
        assert feature_codes.digits(code, 3, 4) == labels
