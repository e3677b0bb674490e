"""Alphabets against a dictionary; arrays and pickles give back the same strings."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.alphabet import Alphabet
from crfit.errors import DataError, OptionError

# Any text, with bytes that are no UTF-8 (they decode to lone low surrogates).
texts = st.binary(max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=40
)


@given(st.lists(texts, max_size=200))
def test_ids_follow_first_appearance(strings):
    expected = {}
    for string in strings:
        expected.setdefault(string, len(expected))
    alphabet = Alphabet()
    assert [alphabet.add(string) for string in strings] == [expected[string] for string in strings]
    assert len(alphabet) == len(expected)
    assert list(alphabet) == alphabet.strings() == list(expected)
    assert [alphabet[i] for i in range(len(alphabet))] == list(expected)
    assert all(string in alphabet and alphabet.get(string) == i for string, i in expected.items())
    assert alphabet == Alphabet(strings)


def test_many_strings_of_every_length_are_kept_apart():
    strings = (
        ["a" * n for n in range(300)] + [str(n) for n in range(200_000)] + ["\0" * n for n in range(1, 9)]
    )
    alphabet = Alphabet(strings)
    assert len(alphabet) == len(strings)
    assert np.array_equal(alphabet.ids(strings), np.arange(len(strings)))
    assert alphabet.get("200000") == -1
    assert "\0" * 9 not in alphabet


def test_ids_of_many_strings():
    alphabet = Alphabet(["a", "", "é"])
    ids = alphabet.ids(["é", "b", "", "a"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [2, -1, 1, 0]
    assert alphabet.ids([]).tolist() == []
    assert Alphabet([""]).ids(["", "a"]).tolist() == [0, -1]  # an alphabet without a byte


def test_a_locked_alphabet_takes_no_new_strings():
    alphabet = Alphabet(["a"])
    assert not alphabet.locked
    alphabet.lock()
    assert alphabet.locked
    assert alphabet.add("a") == 0
    with pytest.raises(OptionError, match="locked"):
        alphabet.add("b")
    assert len(alphabet) == 1
    copy = alphabet.copy()
    assert copy.add("b") == 1
    assert len(alphabet) == 1


def test_indices_out_of_range():
    alphabet = Alphabet(["a", "b"])
    assert alphabet[-1] == "b"
    for index in (2, -3):
        with pytest.raises(IndexError):
            alphabet[index]
    assert 0 not in alphabet


def test_equality_depends_on_strings_and_their_order():
    assert Alphabet(["a", "b"]) != Alphabet(["b", "a"])
    assert Alphabet(["ab", "c"]) != Alphabet(["a", "bc"])
    assert Alphabet(["a"]) == Alphabet(["a"], locked=True)
    assert Alphabet() != "a"


@given(st.lists(texts))
def test_arrays_and_pickles_give_back_the_strings(strings):
    alphabet = Alphabet(strings, locked=True)
    data, offsets = alphabet.to_arrays()
    assert data.dtype == np.uint8
    assert offsets.dtype == np.int64
    assert Alphabet.from_arrays(data, offsets) == alphabet
    again = pickle.loads(pickle.dumps(alphabet))
    assert again == alphabet
    assert again.locked


@pytest.mark.parametrize(
    ("data", "offsets", "message"),
    [
        (b"ab", [0, 1], "offsets"), (b"ab", [0, 3], "offsets"), (b"ab", [1, 2], "offsets"),
        (b"ab", [0, 2, 1, 2], "offsets"), (b"ab", [0, -1, 2], "offsets"), (b"ab", [], "offsets"),
        (b"ab", [[0, 2]], "not an alphabet"), (b"aa", [0, 1, 2], "string 1 is the same as string 0"),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused(data, offsets, message):
    with pytest.raises(DataError, match=message):
        Alphabet.from_arrays(np.frombuffer(data, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def test_a_string_without_encoding_is_refused():
    with pytest.raises(DataError, match="surrogate"):
        Alphabet(["\ud800"])


@given(st.lists(st.text(max_size=4), unique=True, max_size=8), st.data())
def test_a_subset_has_the_marked_strings_in_the_old_order(strings, data):
    try:
        alphabet = Alphabet(strings, locked=True)
    except DataError:
        return  # half of a surrogate pair
    kept = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(strings), max_size=len(strings))), dtype=bool
    )
    part = alphabet.subset(kept)
    assert part.strings() == [string for string, stays in zip(strings, kept, strict=True) if stays]
    assert part.locked
    assert (part is alphabet) == kept.all()


def test_a_subset_needs_an_entry_for_each_string():
    with pytest.raises(OptionError, match="2 strings"):
        Alphabet(["a", "b"]).subset(np.array([True]))
