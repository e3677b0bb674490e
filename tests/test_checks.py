"""Numbers that users give as options, and values in messages."""

from fractions import Fraction

import numpy as np
import pytest

import crfit
from crfit.checks import check_number, check_whole_number
from crfit.demo import recipe_data
from crfit.errors import CrfitError, OptionError, shown

INFINITE = float("inf")


@pytest.mark.parametrize("value", [0, 3, 2.5, INFINITE, 10**400, Fraction(1, 3), np.float32(1), np.int64(2)])
def test_numbers(value):
    check_number("x", value, at_least=0)


@pytest.mark.parametrize("value", [True, None, "3", float("nan"), -1, -INFINITE, 1j, [1], np.array([1.0])])
def test_no_numbers(value):
    with pytest.raises(OptionError, match=r"^x=.*: give a number, 0 or more$"):
        check_number("x", value, at_least=0)


@pytest.mark.parametrize("value", [1, 3.0, 10**400, Fraction(4, 2), np.float32(1), np.int64(2)])
def test_whole_numbers(value):
    check_whole_number("x", value, at_least=1)


@pytest.mark.parametrize("value", [True, None, "3", float("nan"), 0, INFINITE, 1.5, Fraction(1, 2), [1]])
def test_no_whole_numbers(value):
    with pytest.raises(OptionError, match=r"^x=.*: give a whole number, 1 or more$"):
        check_whole_number("x", value, at_least=1)


def test_without_a_bound():
    check_number("x", -2.5)
    check_whole_number("x", -2)
    with pytest.raises(OptionError, match=r"give a number$"):
        check_number("x", "y")


@pytest.mark.parametrize("value", [3, -0.5, None, True, "observed", "", ["auto", "sgd"], {"l2": 1.0}, (1, 2)])
def test_messages_show_short_values_as_they_are(value):
    assert shown(value) == repr(value)
    assert str(OptionError("x", value, "give another")) == f"x={value!r}: give another"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((3, 1000)), "<ndarray of shape (3, 1000)>"), ([["w=a"] * 10] * 100_000, "<list of 100000>"),
        ([[["w=a"]]], "[[['w=a']]]"), ({str(i): i for i in range(1000)}, "<dict of 1000>"),
        (["x" * 500], "<list of 1>"), (set(range(50)), "<set of 50>"),
    ],
)  # fmt: skip
def test_messages_show_type_and_size_of_data(value, expected):
    assert shown(value) == expected


def test_messages_show_the_beginning_of_long_texts():
    text = shown("ab" * 10_000)
    assert text.startswith("'abab")
    assert text.endswith("'... (20000 characters)")
    assert len(text) < 120


def test_messages_never_print_objects_whose_text_is_long():
    class Long:
        def __repr__(self):
            return "long " * 1000

    assert shown(Long()) == "<Long>"


def test_data_given_for_an_objective_is_not_printed():
    X, y = recipe_data(200, seed=0)
    for call in (
        lambda: crfit.train(X, y),
        lambda: crfit.race((X, y), ["auto"], l2=X),
        lambda: crfit.text.read(X),
    ):
        with pytest.raises(CrfitError) as caught:
            call()
        assert len(str(caught.value)) < 400
