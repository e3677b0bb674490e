"""Constraints of schemes against spelling spans out, and which scheme is detected."""

from itertools import pairwise, product

import numpy as np
import pytest

from crfit.data import Dataset
from crfit.errors import OptionError
from crfit.layout.constraints import Constraints, detect_scheme, first_violation, make_constraints
from span_schemes import LETTERS, is_valid, spell


def names_of(scheme, kinds=("X", "Y")):
    letters = LETTERS[scheme]
    return ["O", *(f"{letter}-{kind}" if kind else letter for kind in kinds for letter in letters)]


def possible(constraints, ids):
    pairs = all(constraints.follow[a, b] for a, b in pairwise(ids))
    return bool(constraints.begin[ids[0]] and constraints.end[ids[-1]] and pairs)


def dataset(*sequences):
    y = [line.split() for line in sequences]
    return Dataset.from_sequences([[["a"]] * len(labels) for labels in y], y)


@pytest.mark.parametrize("kinds", [("X", "Y"), ("A-B",), ("",)])
@pytest.mark.parametrize("scheme", LETTERS)
def test_a_sequence_is_possible_if_spelling_its_spans_gives_it_back(scheme, kinds):
    rng = np.random.default_rng(len(kinds))
    names = [names_of(scheme, kinds)[i] for i in rng.permutation(len(names_of(scheme, kinds)))]
    found = make_constraints(names, scheme="IOBES" if scheme == "BMES" else scheme)
    outcomes = set()
    for length in range(1, 5 if len(names) < 6 else 4):
        for ids in product(range(len(names)), repeat=length):
            expected = is_valid([names[i] for i in ids], scheme)
            assert possible(found, ids) == expected, [names[i] for i in ids]
            outcomes.add(expected)
    assert outcomes == {True, False}
    assert found.always_feasible


def random_spans(rng, length, kinds):
    spans, t = set(), 0
    while t < length:
        if rng.random() < 0.6:
            end = min(length, t + int(rng.integers(1, 4)))
            spans.add((t, end, str(rng.choice(kinds))))
            t = end
        else:
            t += 1
    return spans


@pytest.mark.parametrize("kinds", [("X", "Y"), ("",)])
@pytest.mark.parametrize("scheme", LETTERS)
def test_schemes_are_detected(scheme, kinds):
    rng = np.random.default_rng(3)
    y = [spell(random_spans(rng, 12, kinds), 12, scheme) for _ in range(60)]
    data = Dataset.from_sequences([[["a"]] * 12] * 60, y)
    assert detect_scheme(data) == ("IOBES" if scheme == "BMES" else scheme)
    y[17] = {"BIO": ["O", "I-X"], "IOB1": ["O", "B-X"]}.get(scheme, ["B-X", "O"])[:2] + y[17][2:]
    if not kinds[0]:
        y[17] = [label.partition("-")[0] for label in y[17]]
    assert detect_scheme(Dataset.from_sequences([[["a"]] * 12] * 60, y)) is None


@pytest.mark.parametrize(
    ("sequences", "scheme"),
    [
        (["DET NOUN VERB", "NOUN VERB"], None),
        (["M-X L-Y", "A-Z M-X"], None),  # A is not a prefix
        (["B-X I-X NONE"], None),  # a label without a prefix beside others
        (["O O", "O"], None),
        (["A"], None),
        (["B-X O", "B-X"], None),  # nothing to forbid
        (["I-X O I-X I-X", "O I-Y I-X"], None),  # IOB1 without two neighbours of one type, or IO
        (["B-X I-X", "O B-X"], "BIO"),
        (["B-X", "O", "I-X"], None),  # alone, neither begins a sequence in both schemes
        (["B I O", "O B"], "BIO"),
        (["S-X O", "B-X E-X"], "IOBES"),
        (["U-X O", "B-X L-X"], "BILOU"),
        (["B-X M-X E-X W-X O"], "IOBES"),
    ],
)
def test_detected_scheme_of_labels(sequences, scheme):
    assert detect_scheme(dataset(*sequences)) == scheme


def test_the_first_violation_is_a_position_in_the_dataset():
    data = dataset("B-X I-X O", "O I-X", "I-X")
    names = data.label_alphabet.strings()
    found = make_constraints(names, scheme="BIO")
    assert first_violation(data, found) == 4
    assert first_violation(data, Constraints.none(len(names))) is None
    assert first_violation(data, make_constraints(names, last="O")) == 4
    assert first_violation(data, make_constraints(names, first=["O", "B-X"])) == 5


def test_pairs_ends_and_followers_by_name():
    found = make_constraints(
        "ABC", forbid=[("A", "B")], require={"C": ["A", "B"]}, first="A", last=["B", "C"]
    )
    np.testing.assert_array_equal(found.follow, [[1, 0, 1], [1, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(found.begin, [1, 0, 0])
    np.testing.assert_array_equal(found.end, [0, 1, 1])
    assert not found.trivial
    assert make_constraints("ABC").trivial
    both = found & make_constraints("ABC", forbid=[("B", "B")])
    assert not both.follow[1, 1]
    assert not both.follow[0, 1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"first": "A", "last": "B"}, False),  # no sequence of one
        ({"require": {"A": "B", "B": "A"}, "first": "A", "last": "A"}, False),  # only odd lengths
        ({"require": {"A": "B", "B": "A"}}, True),
        ({"require": {"A": [], "B": []}}, False),
    ],
)
def test_whether_sequences_of_every_length_are_possible(options, expected):
    assert make_constraints("AB", **options).always_feasible is expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "IOB"}, "BIO, IOB1, IOBES, BILOU"),
        ({"forbid": "AB"}, "give pairs of labels"),
        ({"forbid": ["AB"]}, "give pairs of labels"),
        ({"forbid": [("A", "B", "A")]}, "give pairs of labels"),
        ({"forbid": [("A", "Z")]}, "no such label; it has A, B"),
        ({"require": {"Z": "A"}}, "no such label"),
        ({"first": "Z"}, "no such label"),
        ({"last": [3]}, "no such label"),
    ],
)
def test_bad_constraints_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_constraints("AB", **options)
