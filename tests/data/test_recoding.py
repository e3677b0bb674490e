"""The same sequences in the ids of other alphabets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crfit.data import Dataset
from crfit.data.dataset import recode
from oracle import make_dataset

NAMES = st.sampled_from("abcdef")
LABELS = st.sampled_from("XYZ")


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[list[dict[str, float]]], list[list[str]]]:
    values = st.sampled_from([0.5, 1.0, 2.0])
    sequence = st.lists(st.tuples(st.dictionaries(NAMES, values, max_size=4), LABELS), min_size=1, max_size=4)
    sequences = draw(st.lists(sequence, min_size=1, max_size=4))
    return [[x for x, _ in s] for s in sequences], [[y for _, y in s] for s in sequences]


@given(labelled(), labelled())
def test_recode_is_reading_with_the_other_alphabets(one, other):
    train, own = Dataset.from_sequences(*one), Dataset.from_sequences(*other)
    recoded, read = recode(own, train), Dataset.from_sequences(*other, alphabets_of=train)
    assert recoded.attribute_alphabet == train.attribute_alphabet
    assert recoded.label_alphabet == read.label_alphabet
    assert recoded.n_dropped == read.n_dropped
    np.testing.assert_array_equal(recoded.attr_ptr, read.attr_ptr)
    np.testing.assert_array_equal(recoded.attr_ids, read.attr_ids)
    np.testing.assert_array_equal(recoded.labels, read.labels)
    values = np.ones(len(read.attr_ids))
    np.testing.assert_array_equal(
        values if recoded.attr_values is None else recoded.attr_values,
        values if read.attr_values is None else read.attr_values,
    )


@given(labelled())
def test_recode_to_pruned_alphabets_is_pruning(data):
    dataset = Dataset.from_sequences(*data)
    pruned = dataset.prune(2)
    recoded = recode(dataset, pruned)
    np.testing.assert_array_equal(recoded.attr_ptr, pruned.attr_ptr)
    np.testing.assert_array_equal(recoded.attr_ids, pruned.attr_ids)
    assert recoded.n_dropped == dataset.n_occurrences - pruned.n_occurrences


def test_equal_alphabets_cost_nothing():
    dataset = Dataset.from_sequences([[["a"], ["b"]]], [["X", "Y"]])
    assert recode(dataset, Dataset.from_sequences([[["a"], ["b"]]], [["X", "Y"]])) is dataset


def test_unknown_labels_come_after_the_known_ones_in_a_copy():
    train = Dataset.from_sequences([[["a"], ["a"]]], [["X", "Y"]])
    dev = recode(Dataset.from_sequences([[["a"], ["a"], ["a"]]], [["NEW", "Y", "X"]]), train)
    assert dev.labels.tolist() == [2, 1, 0]
    assert dev.sequence_labels() == [["NEW", "Y", "X"]]
    assert train.n_labels == 2


def test_unlabelled_data_stays_unlabelled():
    train = Dataset.from_sequences([[["a"], ["b"]]], [["X", "Y"]])
    recoded = recode(Dataset.from_sequences([[["b"], ["c"]]]), train)
    assert recoded.labels is None
    assert recoded.label_alphabet == train.label_alphabet
    assert recoded.attr_ids.tolist() == [1]
    assert recoded.n_dropped == 1


def test_edge_attributes_are_translated_by_name():
    few = make_dataset([[[(0, 1.0)]] * 3], [[0, 1, 0]], n_labels=2, n_attributes=1, n_edge_attributes=2,
                       edges=[[[], [1], [0, 1]]])  # fmt: skip
    many = make_dataset([[[(0, 1.0)]] * 3], [[0, 1, 0]], n_labels=2, n_attributes=1, n_edge_attributes=4,
                        edges=[[[], [3, 1], [0]]])  # fmt: skip
    recoded = recode(many, few)
    assert recoded.edge_ptr.tolist() == [0, 0, 1, 2]
    assert recoded.edge_ids.tolist() == [1, 0]
    assert recoded.n_dropped == 1
